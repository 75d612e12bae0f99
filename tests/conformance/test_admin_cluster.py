"""Admin calls about the cluster, with the same results on Apache Kafka and on ours."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from fairlead_kafka import (
    AbortTransaction,
    Admin,
    AsyncAdmin,
    BrokerError,
    Cluster,
    ConfigChange,
    ConfigResource,
    ElectionType,
    FairleadError,
    ItemsFailed,
    NewTopic,
    PartitionReplica,
    Producer,
    ResourceType,
    TopicPartition,
    UpgradeType,
)
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.core.partition_offsets import EARLIEST_LOCAL, LATEST, LATEST_TIERED, MAX_TIMESTAMP
from fairlead_kafka.lab.apache_kafka import ApacheKafka
from tests.support.waiting import until

CONFIG = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
_numbers = itertools.count()


class Asked(NamedTuple):
    """A cluster and an admin client of it."""

    servers: str
    admin: Admin
    topic: str

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    def transactional(self, name: str) -> Producer:
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": name})
        producer.init_transactions()
        return producer


@pytest.fixture(scope="module", params=["fairlead", "apache-kafka"])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "fairlead":
        with Cluster(brokers=1, config=CONFIG) as cluster:
            yield cluster.bootstrap_servers
    else:
        request.getfixturevalue("kafka_jars")
        with ApacheKafka(heap="512m", properties=CONFIG) as kafka:
            yield kafka.bootstrap_servers


@pytest.fixture
def asked(servers: str) -> Iterator[Asked]:
    with Admin({"bootstrap.servers": servers}) as admin:
        topic = f"admin-cluster-{next(_numbers)}"
        admin.create_topics([NewTopic(topic, 2, 1)])
        yield Asked(servers, admin, topic)


def codes(failed: ItemsFailed) -> dict[str, int]:
    return {str(item): error.code for item, error in failed.errors.items()}


def test_an_election_that_is_not_needed_says_so(asked: Asked) -> None:
    assert asked.admin.elect_leaders(ElectionType.PREFERRED) == {}
    missing = TopicPartition("missing", 0)
    with pytest.raises(ItemsFailed) as caught:
        asked.admin.elect_leaders(ElectionType.PREFERRED, [asked.partition, missing])
    assert codes(caught.value) == {
        str(asked.partition): ErrorCode.ELECTION_NOT_NEEDED,
        str(missing): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_reassignments_are_begun_listed_and_taken_back(asked: Asked) -> None:
    second = TopicPartition(asked.topic, 1)
    assert asked.admin.alter_partition_reassignments({asked.partition: [0]}) == {asked.partition: None}
    assert asked.admin.list_partition_reassignments([asked.partition, second]) == {}
    assert asked.admin.list_partition_reassignments() == {}
    with pytest.raises(ItemsFailed) as caught:
        asked.admin.alter_partition_reassignments({asked.partition: [77], second: None})
    assert codes(caught.value) == {
        str(asked.partition): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        str(second): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    }


def test_a_folder_that_no_broker_has_is_told(asked: Asked) -> None:
    replica = PartitionReplica(asked.topic, 0, 0)
    with pytest.raises(ItemsFailed) as caught:
        asked.admin.alter_replica_log_dirs({replica: "/nowhere"})
    assert codes(caught.value) == {str(replica): ErrorCode.LOG_DIR_NOT_FOUND}


def test_an_open_transaction_is_seen_and_ended_by_force(asked: Asked) -> None:
    name = f"{asked.topic}-open"
    with asked.transactional(name) as producer:
        producer.begin_transaction()
        producer.send(asked.topic, b"x", partition=0).result(60)
        (state,) = asked.admin.describe_producers([asked.partition])[asked.partition]
        assert (state.last_sequence, state.transaction_start_offset) == (0, 0)
        asked.admin.force_terminate_transaction(name)
        until(
            lambda: (
                not [
                    one
                    for one in asked.admin.describe_producers([asked.partition])[asked.partition]
                    if one.transaction_start_offset is not None
                ]
            )
        )
        assert asked.admin.describe_transactions([name])[name].state in ("Empty", "CompleteAbort")
        with pytest.raises(FairleadError):
            producer.commit_transaction()


def test_producers_are_described_with_the_time_of_their_newest_batch(asked: Asked) -> None:
    with asked.transactional(f"{asked.topic}-times") as producer:
        producer.begin_transaction()
        for timestamp_ms in (1_000_000_000_000, 900_000_000_000):
            producer.send(asked.topic, b"x", partition=0, timestamp_ms=timestamp_ms).result(60)
            (state,) = asked.admin.describe_producers([asked.partition])[asked.partition]
            assert state.last_timestamp_ms == timestamp_ms
        producer.commit_transaction()

        def newest_ms() -> int:
            (state,) = asked.admin.describe_producers([asked.partition])[asked.partition]
            return state.last_timestamp_ms

        until(lambda: newest_ms() > 1_000_000_000_000)  # the marker's


def test_a_transaction_is_aborted_past_its_coordinator(asked: Asked) -> None:
    name = f"{asked.topic}-past"
    with asked.transactional(name) as producer:
        producer.begin_transaction()
        producer.send(asked.topic, b"x", partition=0).result(60)
        (state,) = asked.admin.describe_producers([asked.partition])[asked.partition]
        asked.admin.abort_transaction(
            AbortTransaction(asked.partition, state.producer_id, state.epoch, state.coordinator_epoch or 0)
        )
        (state,) = asked.admin.describe_producers([asked.partition])[asked.partition]
        assert state.transaction_start_offset is None
        producer.abort_transaction()


def test_fencing_ends_older_producers(asked: Asked) -> None:
    name = f"{asked.topic}-fenced"
    with asked.transactional(name) as producer:
        fenced = asked.admin.fence_producers([name])[name]
        assert fenced.producer_id >= 0
        assert fenced.epoch > 0
        producer.begin_transaction()
        producer.send(asked.topic, b"x")
        with pytest.raises(FairleadError):
            producer.commit_transaction()


def test_a_member_that_is_not_there_cannot_be_removed(asked: Asked) -> None:
    with pytest.raises(BrokerError) as caught:
        asked.admin.remove_members(f"{asked.topic}-group", ["somebody"])
    failed = caught.value
    seen = {failed.code, *(codes(failed).values() if isinstance(failed, ItemsFailed) else ())}
    assert seen & {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}


def test_what_has_configs_is_listed(asked: Asked) -> None:
    subscription = ConfigResource.client_metrics(asked.topic)
    asked.admin.alter_configs({subscription: [ConfigChange.set("interval.ms", "5000")]})
    until(lambda: subscription in asked.admin.list_config_resources([ResourceType.CLIENT_METRICS]))
    every = asked.admin.list_config_resources()
    assert {subscription, ConfigResource.topic(asked.topic), ConfigResource.broker(0)} <= set(every)
    asked.admin.alter_configs({subscription: [ConfigChange.delete("interval.ms")]})
    until(lambda: subscription not in asked.admin.list_config_resources([ResourceType.CLIENT_METRICS]))


def test_features_are_told_and_changes_checked(asked: Asked) -> None:
    features = asked.admin.describe_features()
    level = features.finalized["transaction.version"]
    assert features.supported["transaction.version"].highest >= level
    asked.admin.update_features({"transaction.version": 1}, UpgradeType.SAFE_DOWNGRADE, validate_only=True)
    assert asked.admin.describe_features().finalized["transaction.version"] == level
    with pytest.raises(BrokerError) as caught:
        asked.admin.update_features({"transaction.version": 99})
    assert caught.value.code == ErrorCode.INVALID_UPDATE_VERSION


def test_the_quorum_and_brokers_that_are_down(asked: Asked) -> None:
    quorum = asked.admin.describe_metadata_quorum()
    assert quorum.leader_id in {voter.replica_id for voter in quorum.voters}
    assert quorum.high_watermark > 0
    described = asked.admin.describe_cluster(include_fenced_brokers=True)
    assert ([node.node_id for node in described.nodes], described.fenced) == ([0], frozenset())


def test_offsets_by_every_spec(asked: Asked) -> None:
    with Producer({"bootstrap.servers": asked.servers}) as producer:
        for number, timestamp_ms in enumerate((1_000, 9_000, 5_000)):
            producer.send(asked.topic, b"%d" % number, partition=0, timestamp_ms=timestamp_ms).result(60)

    def offset(target: int) -> int | None:
        found = asked.admin.list_offsets({asked.partition: target})[asked.partition]
        return None if found is None else found.offset

    targets = (LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, 9_000)
    assert [offset(target) for target in targets] == [3, 1, 0, None, 1]


def test_groups_are_listed_by_protocol_type(asked: Asked) -> None:
    group = f"{asked.topic}-offsets"
    asked.admin.alter_group_offsets(group, {asked.partition: 0})
    assert group in asked.admin.list_groups()
    assert group not in asked.admin.list_groups(protocol_types=["connect"])


def test_the_awaiting_client_does_the_same(asked: Asked) -> None:
    async def ask() -> None:
        admin = AsyncAdmin({"bootstrap.servers": asked.servers})
        try:
            assert await admin.elect_leaders(ElectionType.PREFERRED) == {}
            assert await admin.list_partition_reassignments() == {}
            assert (await admin.describe_producers([asked.partition]))[asked.partition] == []
            assert (await admin.describe_metadata_quorum()).high_watermark > 0
            assert ConfigResource.topic(asked.topic) in await admin.list_config_resources()
            assert (await admin.describe_features()).supported
        finally:
            await admin.close()

    asyncio.run(ask())
