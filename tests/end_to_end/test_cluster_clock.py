"""The brokers' clock is moved on: what would take hours happens at once, and nothing else
breaks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fairlead_kafka import Admin, Consumer, Producer, TopicPartition
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey
from tests.support.waiting import PATIENCE_S, until
from tests.support.wire_client import Wire, read

FAST = {"group.initial.rebalance.delay.ms": 0}


EARLIEST, LATEST = -2, -1


def offset_of(admin: Admin, partition: TopicPartition, target: int) -> int:
    found = admin.list_offsets({partition: target})[partition]
    assert found is not None
    return found.offset


def test_retention_deletes_what_is_old_by_the_moved_clock() -> None:
    with Cluster(1, config=FAST) as cluster:
        cluster.create_topic("kept", 1, configs={"retention.ms": str(2 * 3_600_000)})
        config = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(config) as producer, Admin(config) as admin:
            producer.send("kept", b"old", partition=0).result(PATIENCE_S)
            cluster.clock.advance(hours=1)
            assert read(cluster, "kept") == [b"old"]
            cluster.clock.advance(hours=1, minutes=10)
            kept = TopicPartition("kept", 0)
            until(lambda: offset_of(admin, kept, EARLIEST) == 1)


def test_stamps_of_the_broker_are_of_its_own_clock() -> None:
    with Cluster(1, config=FAST) as cluster:
        cluster.create_topic("stamped", 1, configs={"message.timestamp.type": "LogAppendTime"})
        before = cluster.clock.now()
        cluster.clock.advance(days=2)
        config = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(config) as producer, Consumer({**config, "auto.offset.reset": "earliest"}) as consumer:
            producer.send("stamped", b"a", partition=0).result(PATIENCE_S)
            consumer.assign([TopicPartition("stamped", 0)])
            (record,) = consumer.poll(PATIENCE_S)
        assert datetime.fromtimestamp(record.timestamp_ms / 1000, UTC) - before >= timedelta(days=2)
        assert repr(cluster.clock).startswith("<clock of the brokers: 20")


def test_a_member_that_says_nothing_is_gone_and_one_that_lives_joins_again() -> None:
    with Cluster(1, config=FAST) as cluster:
        cluster.create_topic("shared", 1)
        config = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "session.timeout.ms": 300_000,
        }
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin, Consumer(config) as consumer:
            consumer.subscribe(["shared"])
            until(lambda: consumer.poll(0.05) or consumer.assignment())
            (before,) = admin.describe_groups(["g"])["g"].members
            cluster.clock.advance(minutes=6)
            assert admin.describe_groups(["g"])["g"].members == ()
            until(lambda: consumer.poll(0.05) or admin.describe_groups(["g"])["g"].members)
            (after,) = admin.describe_groups(["g"])["g"].members
            assert after.member_id != before.member_id


def test_a_transaction_that_its_producer_left_open_is_aborted() -> None:
    with Cluster(1, config=FAST) as cluster:
        cluster.create_topic("open", 1)
        config = {"bootstrap.servers": cluster.bootstrap_servers}
        producer = Producer({**config, "transactional.id": "left", "transaction.timeout.ms": 600_000})
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("open", b"never", partition=0).result(PATIENCE_S)
        with Admin(config) as admin:
            assert [each.state for each in admin.list_transactions().values()] == ["Ongoing"]
            cluster.clock.advance(minutes=11)
            until(lambda: [each.state for each in admin.list_transactions().values()] == ["CompleteAbort"])
        producer.close(timeout_s=0)


def test_replicas_stay_in_sync_and_acknowledged_records_stay() -> None:
    with Cluster(3, config={**FAST, "min.insync.replicas": 2}) as cluster:
        cluster.create_topic("three", 3, 3)
        config = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(config) as producer, Admin(config) as admin:
            sent = 0
            for _ in range(5):
                for number in range(3):
                    producer.send("three", b"%d" % sent, partition=number).result(PATIENCE_S)
                    sent += 1
                cluster.clock.advance(hours=1)
            assert all(broker.running for broker in cluster.brokers)
            until(
                lambda: all(
                    len(each.isr) == 3 for each in admin.describe_topics(["three"])["three"].partitions
                )
            )
            ends = [offset_of(admin, TopicPartition("three", number), LATEST) for number in range(3)]
            assert sum(ends) == sent


def test_time_moves_forward_only() -> None:
    with Cluster(1) as cluster:
        for wrong in (-1, 87_601):
            with pytest.raises(UsageError, match="advance: must be from 0 to 3650 days"):
                cluster.clock.advance(hours=wrong)
        clock = cluster.clock
        clock.advance()
    with pytest.raises(UsageError, match="is closed"):
        clock.advance(ms=1)
    with pytest.raises(UsageError, match="closed"):
        _ = cluster.clock


def test_the_broker_is_there_after_a_long_idle_time() -> None:
    with Cluster(1) as cluster, Wire(cluster.broker(0).address) as wire:
        wire.ask(ApiKey.METADATA, 8, topics=None, allow_auto_topic_creation=False)
        cluster.clock.advance(minutes=11)  # connections.max.idle.ms is ten
        with pytest.raises(ConnectionError):
            wire.ask(ApiKey.METADATA, 8, topics=None, allow_auto_topic_creation=False)
        with Wire(cluster.broker(0).address) as again:
            again.ask(ApiKey.METADATA, 8, topics=None, allow_auto_topic_creation=False)
