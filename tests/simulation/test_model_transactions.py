"""The model coordinator under a real transactional producer: whole or not at all, fenced by its
successor, timed out."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from fairlead_kafka.base.errors import ProducerFenced
from fairlead_kafka.producer.submission import BeginTransaction, EndTransaction, InitTransactions
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation import Application, ProduceCluster
from fairlead_kafka.simulation.delivery_checks import contents_of
from fairlead_kafka.simulation.transaction_checks import committed_records
from fairlead_kafka.simulation.workload import Completion

SOON_NS = 10**13


class Desk:
    """A cluster with a topic of two partitions, and transactional producers that do one thing after
    another."""

    def __init__(self) -> None:
        self.host = VirtualHost(latency_ms=1)
        self.cluster = ProduceCluster(self.host, 2, keeps_records=True, rng=random.Random(1))
        self.cluster.create_topic("t", 2)

    def producer(self, **config: Any) -> Application:
        settings = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "transactional.id": "id",
            "linger.ms": 0,
            **config,
        }
        application = Application(self.host, settings, random.Random(2), lambda *_: None)
        self.ask(application, lambda done: InitTransactions(done, self.host.now_ns() + SOON_NS))
        return application

    def ask(self, application: Application, operation: Callable[[Completion], object]) -> None:
        """Do it, wait for it, and raise what it fails with."""
        ended: list[Exception | None] = []
        self.host.submit(application.handle, operation(Completion(lambda _, error: ended.append(error))))
        self.host.run_until(lambda: ended, 5_000)
        if ended[0] is not None:
            raise ended[0]

    def send(self, application: Application, *serials: int) -> None:
        """Begin a transaction, and send records as the judge knows them, dealt out to both
        partitions."""
        self.ask(application, BeginTransaction)
        for serial in serials:
            application.submit("t", [b"0/%d/" % serial], None, [serial % 2])
        self.host.advance(50)

    def end(self, application: Application, commit: bool) -> None:
        self.ask(application, lambda done: EndTransaction(done, self.host.now_ns() + SOON_NS, commit))

    def seen(self) -> list[int]:
        """The serials that a read_committed reader sees; nothing may be left undecided."""
        log = self.cluster.log
        seen, wrong = committed_records(
            log, {(topic, index): contents_of(partition) for topic, index, partition in log.each()}
        )
        assert not wrong
        return sorted(serial for _, serial in seen)


def test_a_transaction_is_seen_once_it_is_committed_and_never_if_aborted() -> None:
    desk = Desk()
    producer = desk.producer()
    for serials, commit in (((1, 2), True), ((3, 4), False), ((5, 6), True)):
        desk.send(producer, *serials)
        desk.end(producer, commit)
    desk.host.advance(10)
    assert desk.seen() == [1, 2, 5, 6]
    assert desk.cluster.log.topics["t"].partitions[0].end_offset == 6, "three records and three markers"


def test_a_successor_ends_what_was_left_open_and_fences() -> None:
    desk = Desk()
    old = desk.producer()
    desk.send(old, 1, 2)
    new = desk.producer()
    desk.send(new, 3)
    with pytest.raises(ProducerFenced):
        desk.end(old, True)
    desk.end(new, True)
    desk.host.advance(10)
    assert desk.seen() == [3]


def test_a_transaction_that_takes_too_long_is_aborted_by_its_coordinator() -> None:
    desk = Desk()
    producer = desk.producer(**{"transaction.timeout.ms": 500})
    desk.send(producer, 1, 2)
    desk.host.advance(1000)
    assert desk.seen() == []
    with pytest.raises(ProducerFenced):
        desk.end(producer, True)
