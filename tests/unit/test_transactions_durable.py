"""With one replica the log of transactions is synced before anybody is answered: what was given out
is not given out again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.controller import TRANSACTIONS_TOPIC
from fairlead_kafka.wire import ApiKey
from tests.support.virtual_cluster import Transactor, VirtualCluster, state_of

P0 = TopicPartition("events", 0)


def power_cut(cluster: VirtualCluster) -> None:
    cluster.kill(0)
    cluster.host.disk.cut_power("/data/0")
    cluster.start(0)


@pytest.fixture
def cluster() -> VirtualCluster:
    made = VirtualCluster(brokers=1)
    made.topic()
    return made


def test_an_epoch_is_not_given_twice_by_a_broker_that_lost_its_power(cluster: VirtualCluster) -> None:
    first = Transactor(cluster).ready()
    power_cut(cluster)
    second = Transactor(cluster).ready()
    assert second.identity.producer_id == first.identity.producer_id
    assert second.identity.epoch == first.identity.epoch + 1


def test_an_outcome_that_was_answered_stands_after_a_power_cut(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    producer.write(P0, b"value")
    assert producer.end(True) == 0
    power_cut(cluster)
    cluster.quiesce()
    assert state_of(cluster) == "CompleteCommit"


@pytest.mark.parametrize(("brokers", "flushed"), [(1, "1"), (3, None)])
def test_replicas_stand_in_for_the_disk(brokers: int, flushed: str | None) -> None:
    cluster = VirtualCluster(brokers=brokers)
    Transactor(cluster).ready()
    assert cluster.controller.image.topics[TRANSACTIONS_TOPIC].configs.get("flush.messages") == flushed


def test_an_id_whose_first_record_could_not_be_written_is_forgotten(cluster: VirtualCluster) -> None:
    Transactor(cluster, "other").ready()
    broker = cluster.brokers[0]
    broker.faults = replace(broker.faults, disk_full=True)

    def initialized() -> int:
        fields = {"transactional_id": "id", "transaction_timeout_ms": 60_000}
        asked = cluster.ask(0, ApiKey.INIT_PRODUCER_ID, 4, producer_id=-1, producer_epoch=-1, **fields)
        return int(asked.error_code)

    def known() -> list[str]:
        return [id for shard in broker.transactions.shards for id in shard.transactions]

    assert initialized() != 0
    assert known() == ["other"]
    broker.faults = replace(broker.faults, disk_full=False)
    cluster.host.advance(10_000)
    assert initialized() == 0
    assert sorted(known()) == ["id", "other"]


def test_an_id_that_is_unknown_is_not_kept_for_a_producer_that_claims_it(cluster: VirtualCluster) -> None:
    fields = {"transactional_id": "id", "transaction_timeout_ms": 60_000}
    cluster.coordinator("id")
    cluster.ask(0, ApiKey.INIT_PRODUCER_ID, 4, producer_id=77, producer_epoch=3, **fields)
    kept = [one for shard in cluster.brokers[0].transactions.shards for one in shard.transactions.values()]
    assert all(one.position >= 0 for one in kept)
