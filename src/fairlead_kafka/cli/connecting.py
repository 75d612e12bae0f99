"""Clients for commands: an unreachable cluster is reported within seconds, and Ctrl-C never waits
for one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairlead_kafka import client  # it loads the one client that a command asks it for
from fairlead_kafka.base.errors import ConnectionFailed, NoBrokerReached
from fairlead_kafka.cli.terminal import errors

if TYPE_CHECKING:
    from fairlead_kafka.client import Admin, Consumer, Producer, ShareConsumer

NETWORK_LOG = logging.getLogger("fairlead_kafka.network")
QUIET_S = 1.0
"""Seconds to connect in before a line says that it takes long."""
PATIENCE_S = 4.0
"""Seconds more after which a cluster that has not answered is taken to be down: the minute of
`default.api.timeout.ms` suits programs."""
TOPIC_S = 3.0
"""Seconds after which a topic that the cluster does not know is taken to be missing."""


@contextmanager
def open_admin(config: Mapping[str, object]) -> Iterator[Admin]:
    """An admin client, for a `with` block, of a cluster that answers. ConnectionFailed if none
    does."""
    NETWORK_LOG.disabled = True  # a client connects as soon as it is made; `_reach` says what there is to say
    with client.Admin(config) as admin:
        _reach(admin, config)
        yield admin


@contextmanager
def open_consumer(config: Mapping[str, object]) -> Iterator[Consumer]:
    """A consumer, for a `with` block, of a cluster that answers; ConnectionFailed if none does. It
    creates no topics: a missing topic is most often misspelt."""
    NETWORK_LOG.disabled = True
    with client.Consumer({"allow.auto.create.topics": "false", **config}) as consumer:
        _reach(consumer, config)
        yield consumer


@contextmanager
def open_share_consumer(config: Mapping[str, object]) -> Iterator[ShareConsumer]:
    """A share consumer, for a `with` block, of a cluster that answers; ConnectionFailed if none
    does. It creates no topics either."""
    NETWORK_LOG.disabled = True
    with client.ShareConsumer({"allow.auto.create.topics": "false", **config}) as consumer:
        _reach(consumer, config)
        yield consumer


@contextmanager
def open_producer(config: Mapping[str, object]) -> Iterator[Producer]:
    """A producer, for a `with` block, to a cluster that answers; ConnectionFailed if none does.
    At the end of the block it delivers all records; after Ctrl-C it gives up those that are not
    sent."""
    NETWORK_LOG.disabled = True
    producer = client.Producer(config)
    try:
        _reach(producer, config)
        yield producer
    except (KeyboardInterrupt, SystemExit, BrokenPipeError):
        producer.close(timeout_s=0)
        raise
    finally:
        producer.close()


def _reach(opened: Admin | Consumer | Producer | ShareConsumer, config: Mapping[str, object]) -> None:
    """Wait until a broker is reached. ConnectionFailed if that takes longer than PATIENCE_S
    seconds. After QUIET_S seconds a line says so; nothing is logged."""
    NETWORK_LOG.disabled = True
    try:
        try:
            opened.connect(QUIET_S)
        except NoBrokerReached:
            errors.print(f"waiting for {config['bootstrap.servers']} …", markup=False)
            opened.connect(PATIENCE_S)
    except NoBrokerReached as error:
        reason = str(error).removesuffix(NoBrokerReached.HINT)
        raise ConnectionFailed(
            f"{reason}; `fairlead up` starts a cluster, --bootstrap-server names another"
        ) from None
    finally:
        NETWORK_LOG.disabled = False
