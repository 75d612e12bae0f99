"""Followers that catch up, in virtual time: beside others on their stream, over records that are
deleted meanwhile, and from a leader whose disk lost what it had not written."""

from __future__ import annotations

import errno
import gc
from collections.abc import Callable
from dataclasses import replace

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.controller import PartitionImage
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.replication.feed import Feed
from fairlead_kafka.core.effects import Effect, FileSync
from fairlead_kafka.core.events import FileDone
from fairlead_kafka.runtime import Handle
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, produce_fields
from tests.support.virtual_cluster import Asked, VirtualCluster

GONE_MS = 20_000
"""By then a killed broker is out of sync."""


def produce(
    cluster: VirtualCluster, topic: str, values: list[bytes], acks: int, node_id: int = 0, lane: int = 0
) -> Asked:
    fields = produce_fields({(topic, 0): batch(values)}, acks) | {"timeout_ms": 60_000}
    return cluster.send(node_id, ApiKey.PRODUCE, 9, lane, **fields)


def answered(cluster: VirtualCluster, asked: Asked, patience_ms: float = 100_000) -> int:
    cluster.host.run_until(lambda: asked.answer is not None, patience_ms)
    assert asked.answer is not None
    code: int = asked.answer.responses[0].partition_responses[0].error_code
    return code


def put(cluster: VirtualCluster, topic: str, values: list[bytes], acks: int, node_id: int = 0) -> int:
    return answered(cluster, produce(cluster, topic, values, acks, node_id))


def image(cluster: VirtualCluster, topic: str) -> PartitionImage:
    found = cluster.controller.image.partition(*TopicPartition(topic, 0))
    assert found is not None
    return found


def part(cluster: VirtualCluster, node_id: int, topic: str) -> Partition:
    topic_id = cluster.controller.image.topics[topic].topic_id
    return cluster.brokers[node_id].logs.partition(topic_id, 0)


def test_a_batch_that_does_not_fit_beside_a_backlog_is_first_in_the_next_answer() -> None:
    config = {"replica.fetch.max.bytes": 40_000, "replica.lag.time.max.ms": 2_000}
    cluster = VirtualCluster(2, config, latency_ms=50)
    for topic in ("backlog", "large"):
        cluster.controller.create_topic(topic, assignments={0: [0, 1]})
    cluster.host.advance(100)
    assert put(cluster, "large", [b"first"], -1) == 0
    cluster.kill(1)
    cluster.host.advance(GONE_MS)
    for _ in range(40):
        assert put(cluster, "backlog", [b"x" * 30_000], 1) == 0
    cluster.start(1)
    cluster.host.run_until(lambda: 1 in image(cluster, "large").isr, 5_000)
    begun_ns = cluster.host.now_ns()
    assert put(cluster, "large", [b"y" * 60_000], -1) == 0
    assert cluster.host.now_ns() - begun_ns < 1e9, "it waited for the whole backlog"
    assert part(cluster, 1, "backlog").log_end < 40
    assert image(cluster, "large").isr == (0, 1)
    cluster.close()


@pytest.mark.parametrize("offset", [5, 10])
def test_records_deleted_up_to_the_midst_of_a_batch_that_a_follower_lacks(offset: int) -> None:
    limits = {"replica.fetch.response.max.bytes": 100_000, "replica.fetch.max.bytes": 100_000}
    cluster = VirtualCluster(2, limits, latency_ms=50)
    for topic in ("backlog", "cut"):
        cluster.controller.create_topic(topic, assignments={0: [0, 1]})
    cluster.host.advance(100)
    cluster.kill(1)
    cluster.host.advance(GONE_MS)
    for _ in range(20):
        assert put(cluster, "backlog", [b"x" * 30_000], 1) == 0
    assert put(cluster, "cut", [b"y" * 6_000] * 10, 1) == 0
    cluster.start(1)
    cluster.host.advance(300)  # they have met, and nothing of `cut` was sent
    rows = [Message(partition_index=0, offset=offset)]
    cluster.ask(0, ApiKey.DELETE_RECORDS, 2, topics=[Message(name="cut", partitions=rows)], timeout_ms=10_000)
    cluster.host.advance(5_000)
    assert put(cluster, "cut", [b"z"], -1) == 0
    assert image(cluster, "cut").isr == (0, 1)
    leader, follower = part(cluster, 0, "cut"), part(cluster, 1, "cut")
    assert (follower.log_start, follower.log_end) == (leader.log_start, leader.log_end) == (offset, 11)
    cluster.close()


class HeldSyncs:
    """Holds the syncs of one broker's files back, until they are done or have failed."""

    def __init__(self, cluster: VirtualCluster, node_id: int) -> None:
        self._disk = cluster.host.disk
        self._carry_out: Callable[[Handle, Effect], None] = self._disk.carry_out
        self._folder = f"/data/{node_id}/"
        self._held: list[tuple[Handle, FileSync]] = []
        self._disk.carry_out = self._take  # type: ignore[method-assign]

    def _take(self, handle: Handle, effect: Effect) -> None:
        if isinstance(effect, FileSync) and effect.path.startswith(self._folder):
            self._held.append((handle, effect))
        else:
            self._carry_out(handle, effect)

    def release(self, fail: bool) -> None:
        self._disk.carry_out = self._carry_out  # type: ignore[method-assign]
        for handle, effect in self._held:
            if fail:
                error = OSError(errno.EIO, "I/O error")
                self._disk._deliver(handle, FileDone(effect.token, None, error))
            else:
                self._carry_out(handle, effect)


@pytest.mark.parametrize("fail", [True, False], ids=["lost", "written"])
def test_a_follower_that_met_what_its_leader_then_lost_meets_it_again(fail: bool) -> None:
    limits = {"replica.fetch.response.max.bytes": 100_000, "replica.fetch.max.bytes": 100_000}
    cluster = VirtualCluster(3, limits, latency_ms=20)
    cluster.controller.create_topic("events", assignments={0: [0, 1, 2]}, configs={"flush.messages": "1"})
    cluster.host.advance(100)
    cluster.kill(2)
    cluster.host.advance(GONE_MS)
    assert put(cluster, "events", [b"first" + b"." * 20_000], -1) == 0
    held = HeldSyncs(cluster, 1)
    sent = [
        produce(cluster, "events", [letter + b"%d" % number + b"." * size for number in range(10)], 1, lane=2)
        for letter, size in ((b"a", 3_000), (b"b", 6_000))
    ]
    assert [answered(cluster, one) for one in sent] == [0, 0]
    cluster.host.advance(500)
    assert (part(cluster, 1, "events").written_end, part(cluster, 1, "events").log_end) == (1, 21)
    cluster.start(2)
    cluster.host.run_until(lambda: part(cluster, 2, "events").written_end == 11, 5_000)
    cluster.kill(0)
    cluster.host.run_until(lambda: image(cluster, "events").leader == 1, 30_000)
    cluster.host.advance(300)  # broker 2, which has 11, follows broker 1, which has written one
    held.release(fail)
    cluster.host.advance(3_000)
    for values in ([b"new"] * 10, [b"next"] * 10):
        assert put(cluster, "events", values, -1, image(cluster, "events").leader) == 0
    cluster.host.advance(1_000)
    assert set(image(cluster, "events").isr) == {1, 2}
    leader = image(cluster, "events").leader
    values = cluster.values(TopicPartition("events", 0), 0, False)
    cluster.kill(leader)
    cluster.host.run_until(lambda: image(cluster, "events").leader == 3 - leader, 30_000)
    cluster.host.advance(300)
    assert cluster.values(TopicPartition("events", 0), 0, False) == values
    assert values[-20:] == [b"new"] * 10 + [b"next"] * 10
    assert len(values) == (21 if fail else 41)
    cluster.close()


def test_a_replica_joins_a_leader_that_lost_what_it_had_not_written() -> None:
    cluster = VirtualCluster(3)
    configs = {"flush.messages": "1", "min.insync.replicas": "2"}
    cluster.controller.create_topic("events", assignments={0: [0, 1, 2]}, configs=configs)
    cluster.host.advance(100)
    assert put(cluster, "events", [b"first"], -1) == 0
    cluster.kill(2)
    cluster.host.advance(GONE_MS)
    held = HeldSyncs(cluster, 1)
    assert put(cluster, "events", [b"old"] * 10, 1) == 0
    cluster.host.advance(100)
    cluster.kill(0)
    cluster.host.run_until(lambda: image(cluster, "events").leader == 1, 30_000)
    cluster.host.advance(200)
    assert part(cluster, 1, "events").log_end == 11
    held.release(fail=True)
    cluster.host.advance(3_000)
    cluster.start(2)
    cluster.host.run_until(lambda: set(image(cluster, "events").isr) == {1, 2}, 10_000)
    leader = image(cluster, "events").leader
    assert put(cluster, "events", [b"new"], -1, leader) == ErrorCode.NONE
    cluster.close()


def test_a_stream_that_a_follower_begins_again_and_again_leaves_nothing_behind() -> None:
    """As it does while its disk is full, every replica.fetch.backoff.ms."""
    cluster = VirtualCluster(2)
    cluster.controller.create_topic("events", assignments={0: [0, 1]})
    assert put(cluster, "events", [b"a"], acks=-1) == ErrorCode.NONE
    follower = cluster.brokers[1]
    follower.faults = replace(follower.faults, disk_full=True)
    for _ in range(20):
        assert put(cluster, "events", [b"b"], acks=1) == ErrorCode.NONE
        cluster.host.advance(1_000)
    gc.collect()
    feeds = [one for one in gc.get_objects() if isinstance(one, Feed) and one.node_id == 1]
    assert len(feeds) <= 2, "one in use, and one whose timer runs"
    follower.faults = replace(follower.faults, disk_full=False)
    cluster.host.advance(GONE_MS)
    assert image(cluster, "events").isr == (0, 1)
    cluster.close()
