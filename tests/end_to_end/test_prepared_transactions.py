"""Transactions that one client prepares and another one ends, on the embedded cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

import fairlead_kafka
from fairlead_kafka import PreparedTransaction, TopicPartition
from fairlead_kafka.base.codes import ErrorCode
from tests.support.waiting import PATIENCE_S, until, until_transactions_are_over

EVENTS = TopicPartition("events", 0)


@pytest.fixture
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    # Overdue transactions are looked for often, so that a test of that does not wait for ten
    # seconds.
    with fairlead_kafka.Cluster(
        brokers=3, config={"transaction.abort.timed.out.transaction.cleanup.interval.ms": 50}
    ) as made:
        with fairlead_kafka.Admin({"bootstrap.servers": made.bootstrap_servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic("events", partitions=2)])
        yield made


@pytest.fixture
def admin(cluster: fairlead_kafka.Cluster) -> Iterator[fairlead_kafka.Admin]:
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as made:
        yield made


def prepare(
    cluster: fairlead_kafka.Cluster, name: str, *values: bytes, timeout_ms: int = 60_000
) -> PreparedTransaction:
    """A transaction with these records, left open by a producer that is gone."""
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "transactional.id": name,
        "transaction.timeout.ms": timeout_ms,
    }
    with fairlead_kafka.Producer(config) as producer:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for value in values:
            producer.send("events", value, partition=0)
        prepared = producer.prepare_transaction(PATIENCE_S)
    assert prepared is not None
    return prepared


def prepare_late(cluster: fairlead_kafka.Cluster) -> PreparedTransaction:
    """A transaction that soon takes too long, but was prepared before: a slow machine needs more
    time for that."""
    for timeout_ms in (50, 1_000, 10_000):
        with suppress(fairlead_kafka.TransactionFailed, fairlead_kafka.ProducerFenced):
            return prepare(cluster, "late", b"1", timeout_ms=timeout_ms)
    return prepare(cluster, "late", b"1", timeout_ms=30_000)


def committed(cluster: fairlead_kafka.Cluster) -> list[bytes]:
    """What readers of committed data find."""
    until_transactions_are_over(cluster.bootstrap_servers)
    with fairlead_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "isolation.level": "read_committed"}
    ) as consumer:
        end = consumer.end_offsets([EVENTS])[EVENTS]
        return [
            value for table in consumer.read_range(EVENTS, 0, end) for value in table["value"].to_pylist()
        ]


def test_transactions_are_committed_and_aborted_by_another_client(
    cluster: fairlead_kafka.Cluster, admin: fairlead_kafka.Admin
) -> None:
    kept, dropped = prepare(cluster, "kept", b"1", b"2"), prepare(cluster, "dropped", b"3")
    described = admin.describe_transactions(["kept", "dropped"])
    assert [(each.is_open, each.producer_id, each.epoch) for each in described.values()] == [
        (True, *kept[1:3]),
        (True, *dropped[1:3]),
    ]
    assert described["kept"].partitions == (EVENTS,)
    assert {name for name, each in admin.list_transactions(["Ongoing"]).items()} == {"kept", "dropped"}
    assert committed(cluster) == []
    admin.end_transactions([kept], commit=True)
    admin.end_transactions([dropped], commit=False)
    assert committed(cluster) == [b"1", b"2"]
    assert admin.list_transactions(["Ongoing"]) == {}


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_can_be_asked_for_again_but_not_changed(
    cluster: fairlead_kafka.Cluster, admin: fairlead_kafka.Admin, commit: bool
) -> None:
    prepared = prepare(cluster, "app", b"1")
    for _ in range(3):
        admin.end_transactions([prepared], commit=commit)
    with pytest.raises(fairlead_kafka.ItemsFailed) as caught:
        admin.end_transactions([prepared], commit=not commit)
    assert caught.value.errors[prepared].code == ErrorCode.INVALID_TXN_STATE
    assert committed(cluster) == ([b"1"] if commit else [])


def test_a_transaction_that_took_too_long_cannot_be_committed(
    cluster: fairlead_kafka.Cluster, admin: fairlead_kafka.Admin
) -> None:
    late, good = prepare_late(cluster), prepare(cluster, "good", b"2")
    until(lambda: admin.describe_transactions(["late"])["late"].state == "CompleteAbort")
    with pytest.raises(fairlead_kafka.ItemsFailed) as caught:
        admin.end_transactions([late, good], commit=True)
    assert list(caught.value.errors) == [late]
    assert caught.value.errors[late].code == ErrorCode.INVALID_TXN_STATE
    assert list(caught.value.results) == [good]
    assert committed(cluster) == [b"2"]


def test_a_transaction_that_a_producer_is_still_writing_can_be_aborted_from_outside(
    cluster: fairlead_kafka.Cluster, admin: fairlead_kafka.Admin
) -> None:
    with fairlead_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "zombie"}
    ) as zombie:
        zombie.init_transactions(PATIENCE_S)
        zombie.begin_transaction()
        zombie.send("events", b"1", partition=0).result(PATIENCE_S)
        seen = admin.describe_transactions(["zombie"])["zombie"]
        found = PreparedTransaction("zombie", seen.producer_id, seen.epoch, len(seen.partitions))
        admin.end_transactions([found], commit=False)
        zombie.send("events", b"2", partition=0)
        with pytest.raises(fairlead_kafka.FairleadError):
            zombie.prepare_transaction(PATIENCE_S)
    newer = prepare(cluster, "zombie", b"3")
    with pytest.raises(fairlead_kafka.ItemsFailed, match="PRODUCER_FENCED"):
        admin.end_transactions([found], commit=False)
    admin.end_transactions([newer], commit=True)
    assert committed(cluster) == [b"3"]


def test_a_prepared_transaction_outlives_its_coordinator(
    cluster: fairlead_kafka.Cluster, admin: fairlead_kafka.Admin
) -> None:
    prepared = prepare(cluster, "app", b"1")
    home = admin.describe_transactions(["app"])["app"].coordinator
    assert home is not None
    cluster.broker(home.node_id).kill()
    cluster.broker(home.node_id).start()
    admin.end_transactions([prepared], commit=True)
    assert committed(cluster) == [b"1"]


def test_unknown_and_repeated_ids_are_refused(admin: fairlead_kafka.Admin) -> None:
    with pytest.raises(fairlead_kafka.ItemsFailed) as caught:
        admin.describe_transactions(["nobody"])
    assert caught.value.errors["nobody"].code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    with pytest.raises(fairlead_kafka.UsageError, match="named twice"):
        admin.end_transactions(
            [PreparedTransaction("a", 1, 1, 1), PreparedTransaction("a", 1, 2, 1)], commit=True
        )
