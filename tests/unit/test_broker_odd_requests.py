"""Requests and states that no client of today makes, and a broker outlives: no wait at all, names
that come again and again, clocks that were ahead, logs that refuse."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import ConfigKey
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.log.compaction import horizon, passes_after
from fairlead_kafka.broker.purgatory import Deadlines
from fairlead_kafka.broker.timers import Timers
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Driver, batch, fetch_fields, produce_fields
from tests.support.replica_rig import EVENTS, ReplicaRig
from tests.support.share_group_rig import GROUP, ShareGroupRig
from tests.support.virtual_cluster import Asked, Transactor, VirtualCluster, state_of

SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


def test_a_timer_that_is_set_by_one_that_is_due_waits_for_the_next_step() -> None:
    timers, called = Timers(), list[int]()

    def again() -> None:
        called.append(1)
        timers.call_at(0, again)

    timers.call_at(0, again)
    timers.call_at(5, lambda: called.append(2))
    timers.run_due(10)
    assert called == [1, 2]
    assert timers.deadline_ns() == 0


def takes_no_wait(key: ConfigKey) -> bool:
    if not key.name.endswith((".interval.ms", ".interval.seconds", ".interval.minutes", ".backoff.ms")):
        return False
    try:
        BROKER_CONFIGS.parse("broker", {key.name: 0})
    except ConfigError:
        return False
    return True


def test_a_timer_behind_one_that_raises_is_called_the_next_time() -> None:
    timers, called = Timers(), list[int]()
    timers.call_at(0, lambda: 1 / 0)
    timers.call_at(1, lambda: called.append(1))
    with pytest.raises(ZeroDivisionError):
        timers.run_due(5)
    timers.run_due(5)
    assert called == [1]


def test_all_deadlines_that_are_past_are_looked_at_at_once() -> None:
    timers, called = Timers(), list[int]()
    deadlines = Deadlines(timers.call_at, now_ns=lambda: 2_000)
    for number in range(1_000):
        deadlines.add(number, lambda number=number: called.append(number))  # type: ignore[misc]
    timers.run_due(2_000)
    assert called == list(range(1_000))
    assert timers.deadline_ns() is None


@pytest.mark.parametrize("name", [key.name for key in BROKER_CONFIGS.keys.values() if takes_no_wait(key)])
def test_a_task_without_a_wait_leaves_the_broker_time(name: str) -> None:
    driver = Driver({name: 0})
    driver.advance(20)
    assert driver.connect().ask(ApiKey.API_VERSIONS, 0).error_code == 0


def test_a_static_member_that_grants_a_rebalance_no_time_leaves_the_broker_time() -> None:
    cluster = VirtualCluster(1)

    def join(lane: int, member_id: str, instance_id: str, rebalance_timeout_ms: int = 60_000) -> Asked:
        return cluster.send(
            0,
            ApiKey.JOIN_GROUP,
            5,
            lane,
            group_id="g",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[Message(name="range", metadata=SUBSCRIPTION)],
        )

    cluster.ask(0, ApiKey.FIND_COORDINATOR, 2, key="g", key_type=0)
    cluster.host.advance(500)
    first = join(1, "", "A")
    cluster.host.advance(5_000)
    second = join(2, "", "B")
    cluster.host.advance(50)
    first = join(1, first.answer.member_id, "A")
    cluster.host.advance(5_000)
    ids = {"A": first.answer.member_id, "B": second.answer.member_id}
    for lane, (instance_id, member_id) in enumerate(ids.items(), start=1):
        leads = member_id == first.answer.leader
        rows = [Message(member_id=one, assignment=b"") for one in ids.values()] if leads else []
        fields = {"group_id": "g", "generation_id": first.answer.generation_id, "member_id": member_id}
        cluster.send(0, ApiKey.SYNC_GROUP, 3, lane, **fields, group_instance_id=instance_id, assignments=rows)
    cluster.host.advance(500)
    leader = next(name for name, member_id in ids.items() if member_id == first.answer.leader)
    other = "B" if leader == "A" else "A"
    join(3, ids[other], other, rebalance_timeout_ms=0)
    cluster.host.advance(100)
    leaving = [Message(member_id=ids[leader], group_instance_id=leader)]
    cluster.send(0, ApiKey.LEAVE_GROUP, 3, 4, group_id="g", members=leaving)
    cluster.host.advance(100)
    assert cluster.ask(0, ApiKey.METADATA, 9, topics=[]).brokers
    cluster.host.advance(60_000)
    described = cluster.ask(0, ApiKey.DESCRIBE_GROUPS, 4, groups=["g"]).groups[0]
    assert described.members == [], "its session is over at last"
    cluster.close()


def test_a_follower_that_caught_up_in_several_answers_knows_how_far_records_may_be_read() -> None:
    rig = ReplicaRig(brokers=2)
    rig.must_put(b"a")
    rig.kill(1)
    rig.host.advance(15_000)
    for _ in range(8):
        rig.must_put(os.urandom(400_000))
    rig.start(1)
    rig.host.advance(40_000)
    assert rig.image.isr == (0, 1)
    assert [rig.replica(node_id).high_watermark for node_id in (0, 1)] == [9, 9]
    fetched = rig.ask(1, ApiKey.FETCH, 12, **fetch_fields({tuple(EVENTS): 6}))
    assert len(fetched.responses[0].partitions[0].records) > 400_000
    rig.close()


def test_an_acknowledgement_that_the_log_refused_for_a_time_is_written_once() -> None:
    rig = ShareGroupRig()
    rig.produce(10)
    client, broker = rig.driver.connect(), rig.driver.broker
    rig.call(client, ApiKey.SHARE_FETCH, 1, **rig.fields(0))
    rig.call(client, ApiKey.SHARE_FETCH, 1, **rig.fields(1))
    broker.faults = replace(broker.faults, disk_full=True)
    other = rig.driver.connect()
    other.send(ApiKey.PRODUCE, 9, **produce_fields({("t", 0): batch([b"x"])}))
    rig.driver.advance(50)
    row = Message(first_offset=0, last_offset=0, acknowledge_types=[1])
    topics = [
        Message(topic_id=rig.topic_id, partitions=[Message(partition_index=0, acknowledgement_batches=[row])])
    ]
    fields = {"group_id": GROUP, "member_id": "m", "share_session_epoch": 2}
    before = len(client.arrived)
    client.send(ApiKey.SHARE_ACKNOWLEDGE, 1, **fields, topics=topics)
    rig.driver.advance(1_500)
    broker.faults = replace(broker.faults, disk_full=False)
    rig.driver.advance(2_500)
    assert [answer.error_code for answer in client.arrived[before:]] == [0]
    state = broker.controller.image.topics["__share_group_state"]
    ends = [broker.logs.partition(state.topic_id, number).log_end for number in range(len(state.partitions))]
    rig.driver.advance(15_000)
    later = [broker.logs.partition(state.topic_id, number).log_end for number in range(len(state.partitions))]
    assert later == ends, "nothing was asked since"


def test_a_transaction_of_a_clock_that_was_ahead_is_aborted() -> None:
    cluster = VirtualCluster(1, {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000})
    cluster.topic()
    producer = Transactor(cluster).ready()
    shard = next(one for one in cluster.brokers[0].transactions.shards if one.transactions)
    producer.write(TopicPartition("events", 0), b"v")
    (transaction,) = shard.transactions.values()
    ahead_ms = transaction.image.start_ms + 10 * 365 * 86_400_000
    transaction.image = replace(transaction.image, start_ms=ahead_ms)
    cluster.quiesce(10_000)
    assert state_of(cluster) == "CompleteAbort"


def test_tombstones_go_though_a_pass_was_made_by_a_clock_that_was_ahead() -> None:
    day_ms = 86_400_000
    limits = SimpleNamespace(delete_retention_ms=day_ms)
    partition: Any = SimpleNamespace(passes=((100, 10_000 * day_ms),), limits=limits)
    for day in range(1, 6):
        partition.passes = passes_after(partition, 100 + day, day * day_ms)
    assert horizon(partition, 6 * day_ms) >= 102


def test_what_a_request_names_again_and_again_is_answered_once() -> None:
    driver = Driver()
    driver.controller.create_topic("t", 1)
    client = driver.connect()
    client.ask(ApiKey.FIND_COORDINATOR, 2, key="g", key_type=0)
    driver.advance(1_000)
    group = Message(group_id="g", topics=None)
    assert len(client.ask(ApiKey.OFFSET_FETCH, 8, groups=[group] * 1_000, require_stable=False).groups) == 1
    assert len(client.ask(ApiKey.DESCRIBE_GROUPS, 5, groups=["g"] * 1_000).groups) == 1
    ids = ["t"] * 1_000
    states = client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=ids).transaction_states
    assert [row.transactional_id for row in states] == ["t"]
    resource = Message(resource_type=4, resource_name="0", configuration_keys=None)
    asked = {"include_synonyms": False, "include_documentation": False}
    assert len(client.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource] * 1_000, **asked).results) == 1
    topic = Message(name="t", partition_indexes=[0] * 1_000)
    (answered,) = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[topic] * 10).topics
    assert [row.error_code for row in answered.partitions] == [ErrorCode.NONE]
    others = [Message(name="t", partition_indexes=[number]) for number in (0, 1, 0)]
    answered = client.ask(ApiKey.DESCRIBE_PRODUCERS, 0, topics=others).topics
    assert [row.partition_index for each in answered for row in each.partitions] == [0, 1]
