"""Nobody waits in silence for a broker that cannot be reached: what each client says, by how the
broker fails. (How soon: in virtual time, `tests/unit/test_core_reachability.py`.)"""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import fairlead_kafka
from fairlead_kafka.base.errors import ConnectionFailed
from tests.support.waiting import PATIENCE_S, until


@contextmanager
def refusing() -> Iterator[str]:
    with socket.socket() as taken:  # bound and not listening: nobody else can listen there meanwhile
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def unresolvable() -> Iterator[str]:
    yield "no-such-broker.invalid:9092"


@contextmanager
def silent() -> Iterator[str]:
    """Accepts, and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(100)
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def unreachable() -> Iterator[str]:
    """Takes no packet: a queue of connections that is full, from which nobody accepts."""
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"


KINDS = {
    refusing: "connection refused",
    unresolvable: "name not resolved",
    silent: "ApiVersions is not answered",
    unreachable: "no answer so far",
}


class Log:
    """The lines that a client of some `client.id` has logged."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        caplog.set_level(logging.INFO, logger="fairlead_kafka")

    def lines(self, start: str, level: int = logging.WARNING) -> list[str]:
        """Those that begin so."""
        return [
            record.getMessage()
            for record in self._caplog.records
            if record.levelno == level and record.getMessage().startswith(start)
        ]

    def wait(self, start: str, level: int = logging.WARNING) -> str:
        """The first of them, once it is there."""
        return until(lambda: self.lines(start, level))[0]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Log:
    return Log(caplog)


@pytest.fixture(params=list(KINDS), ids=lambda kind: kind.__name__)
def broker(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """An address, and what is wrong with it."""
    with request.param() as address:
        yield address, KINDS[request.param]


def test_each_client_says_what_is_wrong(broker: tuple[str, str], log: Log) -> None:
    address, why = broker
    config = {"bootstrap.servers": address}
    group = {"group.id": "g", "client.id": "consumer"}
    with (
        fairlead_kafka.Admin({**config, "client.id": "admin"}),
        fairlead_kafka.Consumer({**config, **group}) as consumer,
        fairlead_kafka.Producer({**config, "client.id": "producer"}) as producer,
    ):
        consumer.subscribe(["orders"])
        ack = producer.send("orders", b"1")
        assert consumer.poll(0.1) == []
        for client in ("admin", "consumer", "producer"):
            assert why in log.wait(f"{client}: no connection to {address} (")
        said = log.lines("consumer: no connection to")
        first = [line for line in said if " s (" not in line]  # those that come later say for how long
        assert len(first) == 1, "a consumer in a group says it once"
        with pytest.raises(
            fairlead_kafka.TimedOut,
            match=r"a record of topic 'orders' not delivered within 0.1 s: .*could not reach any of ",
        ) as late:
            ack.result(timeout_s=0.1)
        assert address in str(late.value)
        assert why in str(late.value)
        with pytest.raises(
            fairlead_kafka.TimedOut, match=r"flush: 1 record is .*could not reach any of "
        ) as late:
            producer.flush(0.1)
        assert why in str(late.value)
        producer.close(timeout_s=0)


def test_a_call_without_a_time_out_fails_soon_if_no_broker_was_ever_reached(broker: tuple[str, str]) -> None:
    address, why = broker
    config = {"bootstrap.servers": address}
    begun = time.monotonic()
    with fairlead_kafka.Admin(
        {**config, "default.api.timeout.ms": 3_000, "request.timeout.ms": 3_000}
    ) as admin:
        with pytest.raises(fairlead_kafka.NoBrokerReached, match="could not reach any of ") as late:
            admin.list_topics()
        assert why in str(late.value)
        assert str(late.value).endswith("; check bootstrap.servers, and that a broker runs there")
        assert isinstance(late.value, ConnectionFailed)
    with fairlead_kafka.Consumer(config) as consumer:
        with pytest.raises(fairlead_kafka.NoBrokerReached, match="could not reach any of "):
            consumer.connect(timeout_s=0.3)
        with pytest.raises(fairlead_kafka.TimedOut, match="could not reach any of "):
            consumer.partitions_for("orders", timeout_s=0.3)
    with fairlead_kafka.Producer({**config, "max.block.ms": 300}) as producer:
        with pytest.raises(fairlead_kafka.NoBrokerReached):
            producer.connect(timeout_s=0.1)
        with pytest.raises(fairlead_kafka.NoBrokerReached):
            producer.partitions_for("orders")
    assert time.monotonic() - begun < PATIENCE_S


def test_the_end_of_a_with_block_says_what_it_waits_for(log: Log) -> None:
    with refusing() as address:
        begun = time.monotonic()
        config = {
            "bootstrap.servers": address,
            "delivery.timeout.ms": 6_000,
            "request.timeout.ms": 1_000,
            "max.block.ms": 6_000,
        }
        with fairlead_kafka.Producer(config) as producer:
            producer.send("orders", b"1")
            producer.send("orders", b"2")
            producer.send("bills", b"3")
        assert time.monotonic() - begun < PATIENCE_S
    (line,) = log.lines("closing waits for records (")
    assert re.match(
        r"closing waits for records \(1 of topic 'bills', 2 of topic 'orders'\), for at most \d s more: ",
        line,
    )
    assert "connection refused" in line


def test_brokers_that_die_are_told_of_and_so_is_their_coming_back(log: Log) -> None:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        config = {"bootstrap.servers": cluster.bootstrap_servers}
        with fairlead_kafka.Producer({**config, "client.id": "producer"}) as producer:
            producer.send("orders", b"1").result(10)
            cluster.brokers[0].kill()
            ack = producer.send("orders", b"2")
            # An earlier line may tell of a first connection that took long.
            until(
                lambda: any("connection refused" in line for line in log.lines("producer: no connection to "))
            )
            with pytest.raises(fairlead_kafka.TimedOut, match=r"could not reach any of .*connection refused"):
                ack.result(timeout_s=0.3)
            cluster.brokers[0].start()
            ack.result(20)
            log.wait("producer: ", logging.INFO)
            assert any("answers again, after" in line for line in log.lines("producer: ", logging.INFO))


def test_a_topic_that_does_not_exist_is_told_of_by_who_reads_it(log: Log) -> None:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        config = {"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "earliest"}
        with fairlead_kafka.Consumer({**config, "group.id": "g"}) as consumer:
            consumer.subscribe(["evnets"])
            while not consumer.assignment():
                assert consumer.poll(0.1) == []
        log.wait(
            "topic 'evnets' does not exist; the cluster is asked to create it "
            "(allow.auto.create.topics=true): check its name"
        )
        log.wait("topic 'evnets' was created just now, with 1 partition")
        with fairlead_kafka.Consumer(config) as consumer:
            consumer.assign([fairlead_kafka.TopicPartition("odrers", 0)])
            until(lambda: consumer.poll(0.1) or log.lines("topic 'odrers' was created just now"))
        log.wait("topic 'odrers' does not exist; the cluster is asked to create it")
        with fairlead_kafka.Consumer(
            {**config, "allow.auto.create.topics": False, "group.id": "h"}
        ) as consumer:
            consumer.subscribe(["nohting"])
            missing = "topic 'nohting' does not exist; nothing can be read of it: check its name"
            until(lambda: consumer.poll(0.1) or log.lines(missing))
        with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            assert sorted(admin.list_topics()) == ["evnets", "odrers"]
