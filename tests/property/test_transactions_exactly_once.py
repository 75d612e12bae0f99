"""Transactions under random faults in virtual time, by seed: what is committed is read once and in
order, what is aborted never."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import ProducerFenced, TimedOut, TransactionFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.producer import Producer
from fairlead_kafka.wire import ApiKey
from tests.support.producer_brokers import BREAK, IGNORE, IGNORE_WRITTEN, LOSE_ANSWER, Fault
from tests.support.producer_rig import Rig
from tests.support.transaction_broker import FakeTransactions

PARTITIONS = 3
SOURCE = TopicPartition("source", 0)
COORDINATOR_FAULTS: list[Fault] = [
    BREAK,
    LOSE_ANSWER,
    IGNORE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.TRANSACTION_ABORTABLE,
]
LEADER_FAULTS: list[Fault] = [BREAK, LOSE_ANSWER, IGNORE, IGNORE_WRITTEN, 6, 19, 20, 87, 47, 120]


class World:
    """A producer that goes through transactions while its cluster misbehaves, and the model of what
    readers must find."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rig = Rig(brokers=2, latency_ms=1)
        self.cluster = self.rig.cluster
        self.cluster.create("t", PARTITIONS)
        self.coordinator = FakeTransactions(self.cluster)
        self.trouble = 0.0
        self.serial = 0
        self.model: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.offset = -1
        self.aborts = 0
        self.producer = self.new_producer()
        self.cluster.on_produce = lambda *_: self.spoil(LEADER_FAULTS)
        serve = self.coordinator.serve

        def spoiled(node_id: int, request: Any) -> Any:
            fault = self.spoil(COORDINATOR_FAULTS)
            if fault is not None and (fault != ErrorCode.TRANSACTION_ABORTABLE or self.may_fail(request)):
                self.coordinator.faults[ApiKey(request.api_key)].append(fault)
            if self.rng.random() < self.trouble / 4:
                self.coordinator.coordinator = 1 - self.coordinator.coordinator
            return serve(node_id, request)

        self.coordinator.serve = spoiled

    def new_producer(self) -> Producer:
        made = self.rig.producer(
            transactional_id="app",
            linger_ms=self.rng.choice([0, 5]),
            batch_size=self.rng.choice([120, 400]),
            retry_backoff_ms=5,
            retry_backoff_max_ms=50,
            request_timeout_ms=200,
            delivery_timeout_ms=self.rng.choice([300, 5000]),
            max_block_ms=2000,
            partitioner_class=self.rng.choice(["late", "uniform"]),
        )
        self.insist(made.init_transactions)
        return made

    def spoil(self, faults: list[Fault]) -> Fault:
        if self.rng.random() >= self.trouble:
            return None
        if self.rng.random() < 0.1:
            self.cluster.move("t", self.rng.randrange(PARTITIONS), self.rng.randrange(2))
        return self.rng.choice(faults)

    def may_fail(self, request: Any) -> bool:
        """True for requests that a transaction may fail by, not those that begin it or abort it."""
        begins = request.api_key in (ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID)
        return not begins and (request.api_key != ApiKey.END_TXN or request.message.committed)

    def insist(self, call: Callable[[], None]) -> None:
        """The same call until it has an end."""
        while True:
            try:
                return call()
            except TimedOut:
                continue

    def transact(self) -> None:
        """One transaction, and what it adds to the model."""
        self.producer.begin_transaction()
        sent = []
        for _ in range(self.rng.randrange(12)):
            value, self.serial = b"%06d" % self.serial, self.serial + 1
            partition = self.rng.choice([None, *range(PARTITIONS)])
            sent.append((value, self.producer.send("t", value, partition=partition)))
            if self.rng.random() < 0.1:
                self.rig.host.advance(self.rng.randrange(20))
        offset = self.serial if self.rng.random() < 0.5 else -1
        try:
            if offset >= 0:
                self.producer.send_offsets_to_transaction({SOURCE: offset}, "group")
            if self.rng.random() < 0.2:
                raise TransactionFailed("the application changes its mind")
            self.insist(self.producer.commit_transaction)
        except (TransactionFailed, TimedOut):
            self.aborts += 1
            self.insist(self.producer.abort_transaction)
            assert all(ack.done() for _, ack in sent), "every record is settled by the end of its transaction"
            return
        placed = sorted((ack.result(0).partition, ack.result(0).offset, value) for value, ack in sent)
        for partition, _, value in placed:
            self.model[partition].append(value)
        self.offset = max(self.offset, offset)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_committed_is_there_once_and_in_order_whatever_goes_wrong(seed: int) -> None:
    world = World(seed)
    for number in range(12):
        world.trouble = 0.15 if number % 3 else 0.0
        try:
            world.transact()
        except (
            ProducerFenced
        ):  # by its own retry that came in late, or by the coordinator: a new one takes over
            world.trouble = 0.0
            world.producer.close()
            world.producer = world.new_producer()
    world.trouble = 0.0
    world.transact()
    metrics = world.producer.metrics()["producer-metrics"]
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
    world.producer.close()
    assert world.coordinator.committed("t") == world.model
    assert world.coordinator.offsets["group"].get(SOURCE, -1) == world.offset
