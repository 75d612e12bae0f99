"""Clients for commands: an unreachable cluster is said within seconds, and Ctrl-C never waits for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairlead_kafka import client  # it loads the one client that a command asks it for
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConnectionFailed, TimedOut
from fairlead_kafka.cli.terminal import errors, given_keys

if TYPE_CHECKING:
    from fairlead_kafka.client import Admin, Consumer, Producer

QUIET_S = 1.0
"""What takes longer is told."""
PATIENCE_S = 4.0
"""A cluster that has not answered after so much longer is taken to be down: the minute of `default.api.timeout.ms` suits programs."""
TOPIC_S = 3.0
"""A topic that the cluster does not know by then is taken to be missing."""


@contextmanager
def open_admin(config: Mapping[str, Any]) -> Iterator[Admin]:
    """An admin client of a cluster that answers. ConnectionFailed if it does not."""
    with client.Admin(config) as admin:
        _reach(admin, str(config["bootstrap.servers"]))
        yield admin


def check_reachable(config: Mapping[str, Any]) -> None:
    """ConnectionFailed if the cluster of a client's config does not answer."""
    with open_admin(given_keys(config, {key.name for key in CLIENT_CONFIGS.scope("admin")})):
        pass


@contextmanager
def open_consumer(config: Mapping[str, Any]) -> Iterator[Consumer]:
    """A consumer of a cluster that answers. It creates no topics: who asks for a missing one has most often misspelt it."""
    with client.Consumer({"allow.auto.create.topics": "false", **config}) as consumer:
        check_reachable(config)
        yield consumer


@contextmanager
def open_producer(config: Mapping[str, Any]) -> Iterator[Producer]:
    """A producer to a cluster that answers. It delivers all it was given at the end, but after Ctrl-C gives up what is not sent."""
    producer = client.Producer(config)
    try:
        check_reachable(config)
        yield producer
    except (KeyboardInterrupt, SystemExit, BrokenPipeError):
        producer.close(timeout_s=0)
        raise
    finally:
        producer.close()


def _reach(admin: Admin, bootstrap_servers: str) -> None:
    try:
        admin.describe_cluster(timeout_s=QUIET_S)
    except TimedOut:
        errors.print(f"waiting for {bootstrap_servers} …", markup=False)
    else:
        return
    try:
        admin.describe_cluster(timeout_s=PATIENCE_S)
    except TimedOut as error:
        reason = str(error).rpartition("; ")[2]
        raise ConnectionFailed(f"{reason}; `fairlead up` starts a cluster, --bootstrap-server names another") from None
