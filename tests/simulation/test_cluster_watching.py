"""What world `cluster` is made of: power that goes at a point of the disk's work, cuts that outlive
restarts, replicas compared."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker import BrokerState
from fairlead_kafka.broker.controller import AlterPartitions, CreateTopics, NewTopic
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Committer
from fairlead_kafka.simulation.real_cluster import HERE, RealCluster
from fairlead_kafka.simulation.replica_logs import differences, diverged, ends_apart, read_log, whole
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.watcher import Watcher

CONFIG = {
    "offsets.topic.num.partitions": 1,
    "min.insync.replicas": 2,
    "log.flush.interval.messages": 1,
    "broker.session.timeout.ms": 600,
    "broker.heartbeat.interval.ms": 150,
    "replica.lag.time.max.ms": 300,
}


def started(*, distant: bool = False) -> tuple[VirtualHost, RealCluster]:
    """Three brokers with topic "orders" of one partition on all of them."""
    seeds = random.Random(1)
    host = VirtualHost(latency_ms=1.0, rng=random.Random(2))
    host.disk.sync_ms, host.disk.append_ms = 3.0, 0.05
    cluster = RealCluster(host, 3, CONFIG, lambda: random.Random(seeds.random()), distant)
    cluster.start()
    cluster.controller.decide(CreateTopics([NewTopic("orders", 1, 3)]), lambda result, error: None)
    host.advance(50.0)
    return host, cluster


def partition(cluster: RealCluster, topic: str = "orders") -> Any:
    return cluster.controller.image.topics[topic].partitions[0]


def committing(host: VirtualHost, cluster: RealCluster) -> Committer:
    committer = Committer(
        host, Script(host), [broker.address for broker in cluster.brokers], random.Random(3)
    )
    committer.begin()
    return committer


@pytest.mark.parametrize("distant", [False, True])
def test_committed_offsets_are_on_all_replicas_and_judged(distant: bool) -> None:
    host, cluster = started(distant=distant)
    committer = committing(host, cluster)
    host.advance(2_000.0)
    committer.finish()
    host.advance(200.0)
    assert committer.acknowledged > 5
    assert committer.violations() == []
    assert ends_apart(cluster) == []
    assert differences(cluster) == []
    assert read_log(cluster, {"__consumer_offsets": 1}).topics["__consumer_offsets"].partitions[0].batches
    committer.acknowledged += 1
    assert committer.violations() == [
        f"group 'committer' has offset {committer.acknowledged - 1}, though {committer.acknowledged} was "
        "acknowledged last"
    ]


def test_the_power_goes_right_after_the_file_effect_that_was_named() -> None:
    host, cluster = started()
    committer = committing(host, cluster)
    host.advance(500.0)
    leader = cluster.brokers[partition(cluster, "__consumer_offsets").leader]
    seen: list[Any] = []
    watch = host.disk.watch
    host.disk.watch = lambda handle, effect: (
        seen.append(effect) if handle is leader.handle else None,
        watch(handle, effect),
    )[1]
    leader.lose_power_after(2)
    host.advance(1_000.0)
    assert len(seen) == 2
    assert (leader.running, leader.handle.ended, leader.machine.state) == (False, True, BrokerState.STOPPED)
    assert cluster.power_cuts == 1
    assert leader.node_id not in partition(cluster, "__consumer_offsets").isr
    leader.start()
    host.run_until(lambda: whole(partition(cluster, "__consumer_offsets")), 5_000.0)
    committer.finish()
    host.advance(200.0)
    assert committer.violations() == []


def test_brokers_stay_cut_from_each_other_through_a_restart() -> None:
    host, cluster = started()
    follower = cluster.brokers[partition(cluster).replicas[1]]
    cluster.cut(partition(cluster).leader, follower.node_id)
    follower.kill()
    host.advance(10.0)
    follower.start()
    host.advance(3_000.0)
    assert follower.machine.state is BrokerState.RUNNING
    assert follower.node_id not in partition(cluster).isr
    cluster.heal_all()
    host.run_until(lambda: whole(partition(cluster)), 10_000.0)


def test_a_broker_that_is_cut_off_from_the_controller_leaves_those_in_sync_and_comes_back() -> None:
    host, cluster = started(distant=True)
    leader = partition(cluster).leader
    cluster.cut(leader, HERE)
    host.advance(1_500.0)
    assert partition(cluster).leader not in (leader, -1)
    assert leader not in partition(cluster).isr
    cluster.heal_all()
    host.run_until(lambda: whole(partition(cluster)), 10_000.0)


def test_a_change_of_those_in_sync_stands_until_it_is_known_what_became_of_it() -> None:
    """The controller may have let a replica in, and elect it, though the answer was lost: nothing
    may be acknowledged that it lacks."""
    host, cluster = started(distant=True)
    committer = committing(host, cluster)
    host.advance(500.0)
    image = partition(cluster, "__consumer_offsets")
    leader, follower = (
        cluster.brokers[image.leader],
        cluster.brokers[next(one for one in image.replicas if one != image.leader)],
    )
    view, asked = leader.machine.controller, list[Any]()
    decide = view.decide

    def losing_answers(decision: Any, done: Any) -> None:
        if not isinstance(decision, AlterPartitions):
            decide(decision, done)
            return
        asked.append(decision)
        decide(
            decision,
            lambda result, error: done(None, BrokerError(ErrorCode.NOT_CONTROLLER, "the link was lost")),
        )

    follower.kill()
    host.run_until(lambda: follower.node_id not in image.isr, 5_000.0)
    view.decide = losing_answers  # type: ignore[method-assign]
    follower.start()
    host.run_until(lambda: follower.node_id in image.isr, 5_000.0)
    host.advance(1_000.0)
    log = leader.machine.logs.known(cluster.controller.image.topics["__consumer_offsets"].topic_id, 0)
    assert log is not None
    led = leader.machine.replication.led(log)
    assert led is not None
    assert led.proposal is not None
    assert len(asked) > 1, "it is asked again"
    view.decide = decide  # type: ignore[method-assign]
    host.run_until(lambda: led.proposal is None, 2_000.0)
    committer.finish()
    host.advance(300.0)
    assert committer.violations() == []


def test_replicas_that_differ_are_noticed_at_once_and_what_was_read_is_remembered() -> None:
    host, cluster = started()
    committer = committing(host, cluster)
    topics, found = {"__consumer_offsets": 1}, list[str]()
    host.advance(500.0)
    watcher = Watcher(Script(host), cluster, topics, lambda: list(topics), found.append)
    watcher.begin()
    host.advance(1_000.0)
    committer.finish()
    host.advance(200.0)
    log = read_log(cluster, topics)
    assert watcher.read > 3
    assert (found, watcher.forgotten(log)) == ([], [])
    image = cluster.controller.image.topics["__consumer_offsets"]
    one, other = (
        cluster.brokers[node_id].machine.logs.known(image.topic_id, 0)
        for node_id in image.partitions[0].replicas[:2]
    )
    assert one is not None
    assert other is not None
    assert diverged(one, other) is None
    other.index.rows[0 * 8 + 4] += 1  # the first batch is a byte longer
    assert diverged(one, other) == 0
    host.advance(100.0)
    assert "have unlike batches at 0, below both high watermarks" in found[0]
    log.topics["__consumer_offsets"].partitions[0].batches.pop(0)
    assert watcher.forgotten(log) == [
        "a consumer was given the batch at 0 of __consumer_offsets-0, where nothing is in the end"
    ]
