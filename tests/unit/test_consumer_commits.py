"""Commits of one consumer: their order, and the leader epochs that they carry; on real brokers in
virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, TimedOut, UsageError
from fairlead_kafka.base.ids import NO_LEADER_EPOCH, TopicPartition
from fairlead_kafka.base.units import s_to_ns
from fairlead_kafka.broker.coordinator import GroupOffsets
from fairlead_kafka.consumer.groups import Commit
from fairlead_kafka.core.group_offsets import OffsetAndMetadata
from fairlead_kafka.runtime import Completion
from fairlead_kafka.wire import ApiKey
from tests.support.broker_driver import batch, produce_fields
from tests.support.checked_clients import CheckedConsumer
from tests.support.client_rig import Rig
from tests.support.virtual_cluster import FIRST_PORT, VirtualCluster
from tests.support.virtual_hosting import Opening

OF = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> VirtualCluster:
    made = VirtualCluster(2, latency_ms=1)
    made.opener = Opening(made.host)
    made.controller.create_topic("t", assignments={0: [0, 1]})
    return made


def reader(cluster: VirtualCluster, **more: Any) -> CheckedConsumer:
    config = {
        "bootstrap.servers": f"127.0.0.1:{FIRST_PORT}",
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = CheckedConsumer(config | more, opener=cluster.opener)
    consumer.assign([OF])
    return consumer


def write(cluster: VirtualCluster, count: int) -> None:
    answer = cluster.ask(
        cluster.leader(OF), ApiKey.PRODUCE, 9, **produce_fields({tuple(OF): batch([b"x"] * count)})
    )
    assert not answer.responses[0].partition_responses[0].error_code


def move_leader(cluster: VirtualCluster) -> None:
    """The other replica leads, and the leader epoch grows; both are in sync again before the next
    election."""
    node_id = cluster.leader(OF)
    cluster.kill(node_id)
    cluster.start(node_id)
    cluster.host.run_until(lambda: len(cluster.controller.image.topics["t"].partitions[0].isr) == 2, 60_000)


def submit(cluster: VirtualCluster, offset: int, timeout_s: float = 60) -> Completion:
    """A commit of the newest client, that nobody waits for."""
    hosted = cluster.opener.hosted[-1]
    completion = Completion()
    hosted.submit(Commit(completion, hosted.now_ns() + s_to_ns(timeout_s), {OF: OffsetAndMetadata(offset)}))
    return completion


class Refusing:
    """A coordinator that refuses commits `times` times; `asked` are the offsets of all that it was
    asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int, times: int = 1) -> None:
        self.asked: list[int] = []
        self.times = times
        commit = GroupOffsets.commit

        def refusing(offsets: GroupOffsets, *arguments: Any) -> None:
            self.asked.extend(one.offset for one in arguments[4].values())
            self.times -= 1
            if self.times >= 0:
                raise BrokerError(code, "not now")
            commit(offsets, *arguments)

        monkeypatch.setattr(GroupOffsets, "commit", refusing)


def test_a_commit_that_is_asked_again_does_not_set_back_a_later_one(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = Refusing(monkeypatch, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    consumer = reader(cluster)
    submit(cluster, 10)
    consumer.commit({OF: 20})
    assert refusing.asked == [10, 10, 20]
    assert consumer.committed([OF])[OF] == OffsetAndMetadata(20)


def test_who_waits_for_an_earlier_commit_is_told_when_its_own_time_is_up(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = Refusing(monkeypatch, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=1000)
    consumer = reader(cluster)
    first, second = submit(cluster, 10, timeout_s=3), submit(cluster, 20, timeout_s=1)
    third = submit(cluster, 30)
    cluster.host.run_until(second.done, 2_000)
    assert not first.done()
    assert isinstance(second.error(), TimedOut)
    assert "COORDINATOR_LOAD_IN_PROGRESS" in str(second.error())
    cluster.host.run_until(first.done, 3_000)
    refusing.times = 0
    cluster.host.run_until(third.done, 10_000)
    assert set(refusing.asked) == {10, 30}
    consumer.close()


def test_a_topic_that_is_gone_holds_no_other_commit_up(cluster: VirtualCluster) -> None:
    consumer = reader(cluster)
    gone, begun_ns = TopicPartition("gone", 0), cluster.host.now_ns()
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        consumer.commit({gone: 1, OF: 2})
    assert consumer.committed([OF])[OF] == OffsetAndMetadata(2)
    assert cluster.host.now_ns() - begun_ns < s_to_ns(5)


def poll_to(consumer: CheckedConsumer, offset: int, step: int) -> None:
    while consumer.position(OF) < offset:
        consumer.poll(1, max_records=step)


def poll_table(consumer: CheckedConsumer, offset: int, _step: int) -> None:
    while consumer.position(OF) < offset:
        consumer.poll_table(1)


@pytest.mark.parametrize(
    ("read", "offset", "epoch"),
    [(poll_to, 2, 0), (poll_to, 4, 0), (poll_to, 5, 1), (poll_to, 8, 1), (poll_table, 8, 1)],
)
def test_positions_are_committed_with_the_epoch_of_the_last_record(
    cluster: VirtualCluster, read: Callable[[CheckedConsumer, int, int], None], offset: int, epoch: int
) -> None:
    write(cluster, 4)
    move_leader(cluster)
    write(cluster, 4)
    consumer = reader(cluster)
    read(consumer, offset, 1)
    consumer.commit()
    assert consumer.committed([OF])[OF] == OffsetAndMetadata(offset, "", epoch)
    later = reader(cluster)
    write(cluster, 1)
    read(later, 9, 1)
    later.commit()
    assert later.committed([OF])[OF] == OffsetAndMetadata(9, "", 1)


def test_positions_that_were_committed_in_the_background_carry_it_too(cluster: VirtualCluster) -> None:
    write(cluster, 3)
    consumer = reader(cluster, **{"enable.auto.commit": True, "auto.commit.interval.ms": 100})
    poll_to(consumer, 3, 3)
    for _ in range(3):
        consumer.poll(0.2)
    assert consumer.committed([OF])[OF] == OffsetAndMetadata(3, "", 0)


def test_nothing_is_known_of_the_record_before_a_position_that_was_sought(cluster: VirtualCluster) -> None:
    write(cluster, 3)
    consumer = reader(cluster)
    consumer.seek(OF, 1)
    consumer.commit()
    assert consumer.committed([OF])[OF] == OffsetAndMetadata(1, "", NO_LEADER_EPOCH)


@pytest.mark.parametrize(
    ("committed", "position"),
    [(OffsetAndMetadata(50, "", 0), 40), (OffsetAndMetadata(50), 0), (OffsetAndMetadata(30, "", 0), 30)],
)
def test_a_log_that_was_cut_is_known_by_the_epoch_that_was_committed(
    committed: OffsetAndMetadata, position: int
) -> None:
    rig = Rig()
    rig.cluster.topic("t")
    for _ in range(5):
        rig.cluster.write("t", 0, [b"x"] * 10)
    rig.cluster.cut("t", 0, 40)
    consumer = rig.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    machine = rig.opener.machine
    machine._placing._committed = lambda partitions, deadline_ns, done: done(
        dict.fromkeys(partitions, committed), None
    )
    consumer.assign([OF])
    assert consumer.position(OF) == committed.offset
    found = consumer.poll(1)
    rig.cluster.write("t", 0, [b"y"])
    assert (found + consumer.poll(1))[0].offset == position


@pytest.mark.parametrize(("epoch_later", "used"), [(3, True), (0, False)])
def test_an_epoch_that_metadata_do_not_know_yet_is_waited_for_and_used_only_if_they_come_to_know_it(
    epoch_later: int, used: bool
) -> None:
    rig = Rig()
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"x"] * 10)
    consumer = rig.consumer(group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.partitions_for("t")
    machine = rig.opener.machine
    answers: list[Any] = []
    machine._placing._committed = lambda partitions, deadline_ns, done: answers.append(done)
    consumer.assign([OF])
    rig.host.run_until(lambda: bool(answers) and machine.network.metadata.leader_epoch(*OF) == 0, 10_000)
    asked = len(rig.cluster.asked(ApiKey.METADATA))
    rig.cluster.log("t").epoch = epoch_later
    answers[0]({OF: OffsetAndMetadata(5, "", 3)}, None)
    assert consumer.position(OF) == 5
    assert len(rig.cluster.asked(ApiKey.METADATA)) > asked
    assert machine.positions()[OF].leader_epoch == (3 if used else NO_LEADER_EPOCH)


def test_what_was_committed_of_partitions_that_are_not_assigned_any_more_is_forgotten(
    cluster: VirtualCluster,
) -> None:
    cluster.controller.create_topic("many", assignments={number: [0] for number in range(40)})
    consumer = reader(cluster)
    for number in range(40):
        of = TopicPartition("many", number)
        consumer.assign([of])
        consumer.commit({of: 0, OF: 0})
        assert list(consumer.calls.group._last_committed) == [of]
    assert consumer.committed([TopicPartition("many", 0)])[TopicPartition("many", 0)] == OffsetAndMetadata(0)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_unsubscribing_gives_up_what_was_assigned_by_hand(cluster: VirtualCluster, protocol: str) -> None:
    write(cluster, 5)
    consumer = reader(cluster, **{"enable.auto.commit": True, "group.protocol": protocol})
    assert len(consumer.poll(5, max_records=2)) == 2
    consumer.unsubscribe()
    assert consumer.assignment() == []
    with pytest.raises(UsageError, match="no partition is assigned"):
        consumer.poll(1)
    consumer.unsubscribe()
    consumer.subscribe(["t"])
    assert [record.offset for record in consumer.poll(60)] == [2, 3, 4]
    consumer.close()


def test_unsubscribing_without_a_group_gives_up_what_was_assigned() -> None:
    rig = Rig()
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"a", b"b"])
    consumer = rig.consumer(auto_offset_reset="earliest")
    consumer.assign([OF])
    assert len(consumer.poll(5, max_records=1)) == 1
    consumer.unsubscribe()
    assert consumer.assignment() == []
    with pytest.raises(UsageError, match="is not assigned"):
        consumer.position(OF)
    consumer.assign([OF])
    assert [record.value for record in consumer.poll(5)] == [b"a", b"b"]
