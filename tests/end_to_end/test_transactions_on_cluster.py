"""Our own transactional producer and read_committed consumer on the embedded cluster, with brokers
dying at every step of a transaction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from tests.support.waiting import PATIENCE_S, until_transactions_are_over

PARTITIONS = [TopicPartition("events", number) for number in range(3)]


@pytest.fixture
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=3) as made:
        with fairlead_kafka.Admin({"bootstrap.servers": made.bootstrap_servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic("events", partitions=3, replication_factor=1)])
        yield made


def values(cluster: fairlead_kafka.Cluster, isolation: str = "read_committed") -> dict[int, list[bytes]]:
    """Everything there is to read, by partition."""
    until_transactions_are_over(cluster.bootstrap_servers)
    config = {"bootstrap.servers": cluster.bootstrap_servers, "isolation.level": isolation}
    with fairlead_kafka.Consumer(config) as consumer:
        ends = consumer.end_offsets(PARTITIONS)
        read: dict[int, list[bytes]] = {of.partition: [] for of in PARTITIONS}
        for of in PARTITIONS:
            for table in consumer.read_range(of, 0, ends[of]):
                read[of.partition] += table["value"].to_pylist()
        return read


def bounce(cluster: fairlead_kafka.Cluster, node_id: int) -> None:
    cluster.broker(node_id).kill()
    cluster.broker(node_id).start()


@pytest.mark.parametrize("node_id", range(3))
@pytest.mark.parametrize("step", ["begun", "sent", "flushed", "committed"])
def test_a_broker_dies_at_a_step_of_a_transaction_and_nothing_is_lost_or_doubled(
    cluster: fairlead_kafka.Cluster, node_id: int, step: str
) -> None:
    with fairlead_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "payments"}
    ) as producer:
        producer.init_transactions(PATIENCE_S)
        for number in range(3):
            producer.begin_transaction()
            for of in PARTITIONS:
                producer.send("events", b"%d first" % number, partition=of.partition)
            if step == "begun" and number == 1:
                bounce(cluster, node_id)
            for of in PARTITIONS:
                producer.send("events", b"%d second" % number, partition=of.partition)
            if step == "sent" and number == 1:
                bounce(cluster, node_id)
            producer.flush(PATIENCE_S)
            if step == "flushed" and number == 1:
                bounce(cluster, node_id)
            producer.commit_transaction(PATIENCE_S)
            if step == "committed" and number == 1:
                bounce(cluster, node_id)
    expected = [b"%d %s" % (number, which) for number in range(3) for which in (b"first", b"second")]
    assert values(cluster) == {of.partition: expected for of in PARTITIONS}


def test_what_is_aborted_or_left_open_is_not_read(cluster: fairlead_kafka.Cluster) -> None:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "payments"}
    with fairlead_kafka.Producer(config) as producer:
        producer.init_transactions(PATIENCE_S)
        with producer.transaction():
            producer.send("events", b"kept", partition=0)
        producer.begin_transaction()
        producer.send("events", b"aborted", partition=0)
        producer.flush(PATIENCE_S)
        producer.abort_transaction(PATIENCE_S)
        producer.begin_transaction()
        producer.send("events", b"open", partition=0)
        producer.flush(PATIENCE_S)
        assert values(cluster)[0] == [b"kept"]
        assert values(cluster, "read_uncommitted")[0] == [b"kept", b"aborted", b"open"]
        with fairlead_kafka.Producer(config) as successor:
            successor.init_transactions(PATIENCE_S)
            with pytest.raises(fairlead_kafka.FairleadError):
                producer.commit_transaction(PATIENCE_S)
            with successor.transaction():
                successor.send("events", b"kept too", partition=0)
    assert values(cluster)[0] == [b"kept", b"kept too"]
