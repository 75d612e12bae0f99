"""A consumer's fetch sessions (KIP-227) and replicas in its rack (KIP-392), over real brokers in
virtual time."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import NS_PER_MS
from fairlead_kafka.broker.fetch_sessions import FetchSessions
from fairlead_kafka.consumer.fetch_session import Asked, FetchSession
from fairlead_kafka.consumer.parting import CLOSE_MS
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, produce_fields
from tests.support.checked_clients import CheckedConsumer
from tests.support.virtual_cluster import FIRST_PORT, VirtualCluster
from tests.support.virtual_hosting import Opening

RACK_AWARE = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
PARTITIONS = [TopicPartition("events", number) for number in range(4)]
T0, T1 = PARTITIONS[:2]
ONE, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


# --- The session by itself


def asked(
    *partitions: TopicPartition, position: int = 0, generation: int = 1, topic_id: uuid.UUID = ONE
) -> dict[TopicPartition, Asked]:
    return {partition: Asked(topic_id, 0, position, generation) for partition in partitions}


def begun(*partitions: TopicPartition) -> FetchSession:
    session = FetchSession()
    assert session.begin(asked(*partitions), True) == (0, 0, list(partitions), [])
    session.answered(77)
    return session


def test_a_session_names_what_moved_and_what_is_gone() -> None:
    session = begun(T0, T1)
    wanted = asked(T0, position=5)
    assert session.begin(wanted, True) == (77, 1, [T0], [(T1, ONE)])
    session.answered(77)
    assert session.begin(wanted, True) == (77, 2, [], [])


def test_a_seek_to_where_it_was_is_no_change_for_the_broker() -> None:
    session = begun(T0, T1)
    assert session.begin(asked(T0, T1, generation=2), True)[2:] == ([], [])
    assert session.asked[T0].generation == 2


def test_a_topic_created_anew_is_forgotten_under_its_old_id() -> None:
    session = begun(T0, T1)
    assert session.begin(asked(T0, T1, topic_id=OTHER), True)[2:] == ([T0, T1], [(T0, ONE), (T1, ONE)])


def test_a_session_of_names_is_closed_for_one_of_ids() -> None:
    session = begun(T0, T1)
    assert session.begin(asked(T0, T1), False) == (77, 0, [T0, T1], [])


def test_after_an_error_the_old_session_is_closed_by_a_full_fetch() -> None:
    session = begun(T0, T1)
    session.begin(asked(T0, T1, position=1), True)
    session.failed()
    assert session.begin(asked(T0, T1, position=1), True) == (77, 0, [T0, T1], [])


def test_a_session_that_the_broker_does_not_know_is_not_closed() -> None:
    session = begun(T0, T1)
    session.begin(asked(T0, T1), True)
    session.failed(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert session.begin(asked(T0, T1), True)[:2] == (0, 0)


def test_without_a_session_every_fetch_names_everything_and_asks_for_one() -> None:
    session = FetchSession()
    for _ in range(2):
        assert session.begin(asked(T0, T1), True)[:3] == (0, 0, [T0, T1])
        session.answered(0)


def test_one_partition_alone_needs_no_session() -> None:
    assert FetchSession().begin(asked(T0), True)[:2] == (0, -1)


# --- With brokers


class Served:
    """What brokers were asked: (broker, session epoch, partitions named)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fetches: list[tuple[int, int, int]] = []
        real = FetchSessions.of

        def of(sessions: FetchSessions, message: Any, by_id: bool) -> Any:
            named = sum(len(topic.partitions) for topic in message.topics)
            self.fetches.append((sessions._broker.node_id, message.session_epoch, named))
            return real(sessions, message, by_id)

        monkeypatch.setattr(FetchSessions, "of", of)

    def nodes(self, since: int = 0) -> list[int]:
        """The brokers asked, neighbours that are the same once."""
        return [node for node, _ in itertools.groupby(node for node, _, _ in self.fetches[since:])]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    return Served(monkeypatch)


def cluster_of(brokers: int, **options: Any) -> VirtualCluster:
    return VirtualCluster(brokers, latency_ms=1, **options)


def write(cluster: VirtualCluster, of: TopicPartition, value: bytes, acks: int = -1) -> None:
    answer = cluster.ask(
        cluster.leader(of), ApiKey.PRODUCE, 9, **produce_fields({tuple(of): batch([value])}, acks)
    )
    assert answer.responses[0].partition_responses[0].error_code == 0, answer


def reader_of(cluster: VirtualCluster, *partitions: TopicPartition, **config: Any) -> CheckedConsumer:
    node_id = min(cluster.brokers)
    config = {
        "bootstrap.servers": f"127.0.0.1:{FIRST_PORT + node_id}",
        "auto.offset.reset": "earliest",
        **config,
    }
    reader = CheckedConsumer(config, opener=Opening(cluster.host))
    reader.assign(partitions)
    return reader


def values(reader: CheckedConsumer, count: int) -> Iterator[bytes]:
    found = 0
    while found < count:
        records = reader.poll(30)
        assert records, "nothing came"
        found += len(records)
        yield from (record.value for record in records)


def test_a_consumer_names_all_its_partitions_once_and_then_those_that_moved(served: Served) -> None:
    cluster = cluster_of(1)
    cluster.topic("events", 4)
    with reader_of(cluster, *PARTITIONS) as reader:
        reader.poll(2)
        assert served.fetches[0] == (0, 0, 4)
        assert {named for _, _, named in served.fetches[1:]} == {0}
        before = len(served.fetches)
        write(cluster, T1, b"one")
        assert list(values(reader, 1)) == [b"one"]
        reader.poll(2)
        assert {named for _, _, named in served.fetches[before:]} == {0, 1}
        assert all(epoch > 0 for _, epoch, _ in served.fetches[1:])
    cluster.close()


def test_a_broker_that_comes_back_knows_no_session_and_nothing_is_missed(served: Served) -> None:
    cluster = cluster_of(1)
    cluster.topic("events", 4)
    with reader_of(cluster, *PARTITIONS) as reader:
        write(cluster, T0, b"before")
        assert list(values(reader, 1)) == [b"before"]
        reader.poll(2)
        cluster.kill(0)
        cluster.start(0)
        before = len(served.fetches)
        write(cluster, T1, b"after")
        assert list(values(reader, 1)) == [b"after"]
        assert served.fetches[before][1] == 0, "a full fetch comes first"
    cluster.close()


def test_a_session_that_was_evicted_is_restarted(served: Served) -> None:
    cluster = cluster_of(1)
    cluster.topic("events", 4)
    with reader_of(cluster, *PARTITIONS) as reader:
        reader.poll(2)
        sessions = cluster.brokers[0].fetch_sessions
        sessions.end(next(iter(sessions._sessions)))
        write(cluster, T0, b"one")
        assert list(values(reader, 1)) == [b"one"]
        assert [epoch for _, epoch, _ in served.fetches].count(0) == 2
    cluster.close()


def test_a_consumer_that_is_closed_leaves_no_session_behind_and_does_not_wait_for_its_fetch() -> None:
    cluster = cluster_of(2)
    cluster.topic("events", 4)
    reader = reader_of(cluster, *PARTITIONS, **{"fetch.max.wait.ms": 60_000})
    for partition in (T0, T1):
        write(cluster, partition, b"one")
    assert list(values(reader, 2)) == [b"one", b"one"]
    reader.poll(2)
    assert [len(cluster.brokers[node_id].fetch_sessions) for node_id in (0, 1)] == [1, 1]
    before_ns = cluster.host.now_ns()
    reader.close()
    assert [len(cluster.brokers[node_id].fetch_sessions) for node_id in (0, 1)] == [0, 0]
    assert cluster.host.now_ns() - before_ns < 50 * NS_PER_MS
    cluster.close()


def test_a_consumer_that_is_closed_waits_but_a_moment_for_a_broker_that_is_silent() -> None:
    cluster = cluster_of(2)
    cluster.topic("events", 4)
    reader = reader_of(cluster, *PARTITIONS)
    reader.poll(2)
    cluster.kill(1)
    before_ns = cluster.host.now_ns()
    reader.close()
    assert cluster.host.now_ns() - before_ns <= CLOSE_MS * NS_PER_MS
    assert len(cluster.brokers[0].fetch_sessions) == 0
    cluster.close()


def in_racks() -> VirtualCluster:
    """Three brokers in racks of their own; partition 0 of events is led by broker 0 and followed by
    the others."""
    cluster = cluster_of(3, config=RACK_AWARE, racks=("a", "b", "c"))
    cluster.controller.create_topic("events", assignments={0: [0, 1, 2]})
    write(cluster, T0, b"first")
    cluster.quiesce()
    return cluster


def test_a_consumer_reads_at_the_replica_in_its_rack(served: Served) -> None:
    cluster = in_racks()
    with reader_of(cluster, T0, **{"client.rack": "b"}) as reader:
        assert list(values(reader, 1)) == [b"first"]
        write(cluster, T0, b"second")
        assert list(values(reader, 1)) == [b"second"]
        assert served.nodes() == [0, 1]
    cluster.close()


@pytest.mark.parametrize("rack", ["", "a", "z"])
def test_a_consumer_elsewhere_or_nowhere_reads_at_the_leader(served: Served, rack: str) -> None:
    cluster = in_racks()
    with reader_of(cluster, T0, **{"client.rack": rack}) as reader:
        assert list(values(reader, 1)) == [b"first"]
    assert served.nodes() == [0]
    cluster.close()


def test_when_its_replica_dies_a_consumer_goes_on_at_the_leader(served: Served) -> None:
    cluster = in_racks()
    with reader_of(cluster, T0, **{"client.rack": "c"}) as reader:
        assert list(values(reader, 1)) == [b"first"]
        assert served.nodes() == [0, 2]
        cluster.kill(2)
        write(cluster, T0, b"second")
        assert list(values(reader, 1)) == [b"second"]
        assert served.nodes()[-1] == 0
    cluster.close()


def test_a_follower_gives_nothing_above_its_high_watermark() -> None:
    cluster = in_racks()
    follower = cluster.brokers[1]
    partition = follower.partitions.find_followed(cluster.controller.image.topics["events"], 0)
    assert not isinstance(partition, int)
    write(cluster, T0, b"second")
    cluster.quiesce()
    row = Message(
        partition=0,
        fetch_offset=0,
        current_leader_epoch=-1,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1 << 20,
    )

    def read(version: int) -> Message:
        fields = {
            "replica_id": -1,
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_epoch": -1,
        }
        topics = [Message(topic="events", partitions=[row])]
        return (
            cluster.ask(1, ApiKey.FETCH, version, topics=topics, rack_id="b", **fields)
            .responses[0]
            .partitions[0]
        )

    assert read(10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, (
        "clients before KIP-392 read at the leader"
    )
    whole = len(read(12).records)
    partition.high_watermark = 1
    assert 0 < len(read(12).records) < whole
    cluster.close()
