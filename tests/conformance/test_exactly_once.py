"""The protocol of exactly-once writes on Apache Kafka: what it builds on, and crashes where it
matters."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.spark.exactly_once.driver import Committer, Step
from fairlead_kafka.spark.exactly_once.errors import NotCommitted
from fairlead_kafka.spark.exactly_once.parts import Part, Writing
from fairlead_kafka.spark.exactly_once.settings import Guarantee
from fairlead_kafka.spark.exactly_once.task import prepare
from tests.support.waiting import PATIENCE_S, until_transactions_are_over

NewTopic = Callable[..., str]
TASKS = 2
GUARANTEE = Guarantee(log_topic="conformance-commits")


class Crash(Exception):
    """What stands for `kill -9` here."""


@pytest.fixture
def client(apache_kafka: str) -> dict[str, str]:
    return {"bootstrap.servers": apache_kafka}


def write(client: dict[str, str], topic: str, batch: int) -> list[Part]:
    """What the tasks of a batch prepare."""
    parts = []
    for number in range(TASKS):
        batches = iter([pa.record_batch({"value": [f"{batch} {number} {row}" for row in range(3)]})])
        parts.append(prepare(client, GUARANTEE, Writing(topic, batch), topic, batches).part)
    return [part for part in parts if part is not None]


def written(*batches: int) -> list[bytes]:
    return sorted(
        f"{batch} {number} {row}".encode() for batch in batches for number in range(TASKS) for row in range(3)
    )


def visible(client: dict[str, str], topic: str) -> list[bytes]:
    until_transactions_are_over(client["bootstrap.servers"])
    found: list[bytes] = []
    partitions = [TopicPartition(topic, number) for number in range(3)]
    with fairlead_kafka.Consumer({**client, "isolation.level": "read_committed"}) as consumer:
        for of, end in consumer.end_offsets(partitions).items():
            for table in consumer.read_range(of, 0, end, timeout_s=PATIENCE_S):
                found += table["value"].to_pylist()
    return sorted(found)


def test_an_end_is_answered_as_done_when_it_is_asked_for_again(
    client: dict[str, str], new_topic: NewTopic
) -> None:
    """The end raises the epoch (KIP-890), and whoever asks again has the one before."""
    topic = new_topic(client["bootstrap.servers"])
    prepared = [part.transaction for part in write(client, topic, 0)]
    with fairlead_kafka.Admin(client) as admin:
        for _ in range(2):
            admin.end_transactions(prepared, commit=True)
        described = admin.describe_transactions([each.transactional_id for each in prepared])
        assert [(each.producer_id, each.epoch) for each in described.values()] == [
            (each.producer_id, each.epoch + 1) for each in prepared
        ]
        with pytest.raises(fairlead_kafka.ItemsFailed) as caught:
            admin.end_transactions(prepared, commit=False)
    assert {error.code for error in caught.value.errors.values()} <= {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
    assert visible(client, topic) == written(0)


@pytest.mark.parametrize("step", [Step.DECISION_SENT, Step.DECIDED, Step.ENDED_SOME, Step.DONE])
def test_a_driver_that_dies_at_any_step_leaves_a_batch_that_is_repeated_once(
    client: dict[str, str], new_topic: NewTopic, step: Step
) -> None:
    topic = new_topic(client["bootstrap.servers"])

    def reached(now: Step) -> None:
        if now is step:
            raise Crash

    Committer(client, GUARANTEE, topic).commit(0, write(client, topic, 0))
    with pytest.raises(Crash):
        Committer(client, GUARANTEE, topic, reached, at_once=1).commit(1, write(client, topic, 1))
    Committer(client, GUARANTEE, topic).commit(1, write(client, topic, 1))
    assert visible(client, topic) == written(0, 1)


def test_transactions_that_were_aborted_after_the_decision_are_replaced(
    client: dict[str, str], new_topic: NewTopic
) -> None:
    topic = new_topic(client["bootstrap.servers"])
    parts = write(client, topic, 0)

    def reached(now: Step) -> None:
        if now is Step.DECIDED:
            with fairlead_kafka.Producer(
                {**client, "transactional.id": parts[0].transaction.transactional_id}
            ) as other:
                other.init_transactions()
            raise Crash

    with pytest.raises(Crash):
        Committer(client, GUARANTEE, topic, reached).commit(0, parts)
    assert Committer(client, GUARANTEE, topic).commit(0, write(client, topic, 0))
    assert visible(client, topic) == written(0)


def test_transactions_that_were_aborted_before_it_are_told(
    client: dict[str, str], new_topic: NewTopic
) -> None:
    topic = new_topic(client["bootstrap.servers"])
    parts = write(client, topic, 0)
    with fairlead_kafka.Admin(client) as admin:
        admin.end_transactions([parts[0].transaction], commit=False)
    with pytest.raises(NotCommitted, match="1 of 2 transactions were aborted"):
        Committer(client, GUARANTEE, topic).commit(0, parts)
    assert visible(client, topic) == []
