"""A streaming query as an exactly-once sink sees it, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

import fairlead_kafka
from fairlead_kafka import TopicPartition
from fairlead_kafka.spark.exactly_once.driver import Committer, Step
from fairlead_kafka.spark.exactly_once.parts import Part, Writing
from fairlead_kafka.spark.exactly_once.settings import Guarantee
from fairlead_kafka.spark.exactly_once.task import TaskStep, is_task_of, prepare
from tests.support.waiting import PATIENCE_S, until_transactions_are_over

TASKS = 3
GUARANTEE = Guarantee()


class Crash(Exception):
    """What stands for `kill -9` here: nothing after it is done."""


class Query:
    """A streaming query as the sink sees it, with a topic of its own; each test's own on the same
    cluster."""

    def __init__(self, servers: str, name: str) -> None:
        self.client = {"bootstrap.servers": servers, "linger.ms": "0"}
        self.name = name
        with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic(name, partitions=2)])

    def rows(self, batch: int, number: int) -> list[bytes]:
        return [f"{self.name} {batch} {number} {row}".encode() for row in range(4)]

    def task(
        self,
        batch: int,
        number: int,
        rows: list[bytes] | None = None,
        reached: Callable[[TaskStep], None] = lambda step: None,
    ) -> Part:
        values = self.rows(batch, number) if rows is None else rows
        batches = iter([pa.record_batch({"value": values[:2]}), pa.record_batch({"value": values[2:]})])
        part = prepare(self.client, GUARANTEE, Writing(self.name, batch), self.name, batches, reached).part
        assert part is not None
        return part

    def tasks(self, batch: int) -> list[Part]:
        return [self.task(batch, number) for number in range(TASKS)]

    def driver(self, crash_at: Step | None = None, **more: Any) -> Committer:
        def reached(step: Step) -> None:
            if step is crash_at:
                raise Crash

        return Committer(self.client, GUARANTEE, self.name, reached, at_once=1, **more)

    def commit(self, batch: int) -> bool:
        return self.driver().commit(batch, self.tasks(batch))

    def visible(self) -> list[bytes]:
        """The query's rows that a reader of committed data finds, in order."""
        return visible_rows(self.client["bootstrap.servers"], self.name)

    def all_rows(self, *batches: int) -> list[bytes]:
        return sorted(row for batch in batches for number in range(TASKS) for row in self.rows(batch, number))

    def open_transactions(self) -> list[str]:
        with fairlead_kafka.Admin({"bootstrap.servers": self.client["bootstrap.servers"]}) as admin:
            return [
                each
                for each in admin.list_transactions(["Ongoing"])
                if is_task_of(GUARANTEE, self.name, each)
            ]

    def time_out(self, part: Part) -> None:
        """What a coordinator does to a transaction that is open for too long: abort it, under an
        epoch of its own."""
        with fairlead_kafka.Producer(
            {**self.client, "transactional.id": part.transaction.transactional_id}
        ) as producer:
            producer.init_transactions()


def visible_rows(servers: str, topic: str) -> list[bytes]:
    """The values in a topic of two partitions that a reader of committed data finds, in order."""
    until_transactions_are_over(servers)
    found: list[bytes] = []
    partitions = [TopicPartition(topic, number) for number in range(2)]
    with fairlead_kafka.Consumer(
        {"bootstrap.servers": servers, "isolation.level": "read_committed"}
    ) as consumer:
        for of, end in consumer.end_offsets(partitions).items():
            for table in consumer.read_range(of, 0, end, timeout_s=PATIENCE_S):
                found += table["value"].to_pylist()
    return sorted(found)
