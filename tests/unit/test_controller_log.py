"""The metadata log: what is replayed is what was lived, torn tails are cut, damage is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker.controller import (
    AlterOperation,
    ConfigAlteration,
    Controller,
    NewTopic,
    Reassignment,
)
from fairlead_kafka.broker.controller.journal import FOLD_MIN_BYTES
from fairlead_kafka.broker.controller.log import decode_log, encode_decision
from tests.support.controllers import make_controller, node


def facts(controller: Controller, leaders: bool = True) -> dict[str, Any]:
    """All that an image says, for comparison."""
    image = controller.image
    partitions = [
        (topic.name, number, one.replicas, one.isr, one.adding, one.removing)
        + ((one.leader, one.leader_epoch, one.partition_epoch) if leaders else ())
        for topic, number, one in image.partitions()
    ]
    return {
        "cluster_id": image.cluster_id,
        "brokers": sorted((info.node, info.epoch) for info in image.brokers.values()),
        "topics": {name: (topic.topic_id, dict(topic.configs)) for name, topic in image.topics.items()},
        "by_id": {topic_id: topic.name for topic_id, topic in image.topics_by_id.items()},
        "partitions": partitions,
        "broker_configs": {name: dict(configs) for name, configs in image.broker_configs.items() if configs},
        "next_producer_id": image.next_producer_id,
    }


def live(controller: Controller) -> None:
    """A life with a bit of everything."""
    controller.create_topic("a", 3, configs={"retention.ms": "5"})
    controller.create_topic("b", 1)
    controller.create_partitions("a", 5)
    controller.broker_stopped(1)
    controller.alter_topic_configs("a", [ConfigAlteration("segment.bytes", AlterOperation.SET, "2000000")])
    controller.alter_topic_configs("a", [ConfigAlteration("retention.ms", AlterOperation.DELETE)])
    controller.alter_broker_configs("", [ConfigAlteration("message.max.bytes", AlterOperation.SET, "9")])
    controller.allocate_producer_ids(0)
    controller.create_offsets_topic()
    controller.delete_topic("b")
    controller.broker_started(node(1))
    controller.create_topic("c", assignments={0: [0, 1], 1: [1, 2]})
    controller.alter_reassignments([Reassignment("c", 0, [0, 2])])
    controller.broker_stopping(2)


def test_a_replayed_log_gives_the_image_that_was_lived() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    live(controller)
    replayed = make_controller(brokers=0)
    data = b"".join(log)
    assert replayed.replay(data) == len(data)
    assert facts(replayed, leaders=False) == facts(controller, leaders=False)
    assert replayed.topic_settings("a")["segment.bytes"] == 2_000_000


def test_a_snapshot_replays_to_the_same_image_and_is_all_that_is_kept() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    live(controller)
    snapshot = controller.snapshot()
    assert len(snapshot) < len(b"".join(log))
    again = make_controller(brokers=0, replay=snapshot)
    assert facts(again, leaders=False) == facts(controller, leaders=False)
    assert (
        make_controller(brokers=0, replay=again.snapshot()).snapshot()
        == make_controller(brokers=0, replay=snapshot).snapshot()
    )


def test_after_a_replay_no_broker_is_alive_and_a_started_one_leads_in_a_new_epoch() -> None:
    log: list[bytes] = []
    lived = make_controller(log=log).create_topic("a", assignments={0: [1]}).partitions[0]
    controller = make_controller(brokers=0, replay=b"".join(log))
    partition = controller.image.topics["a"].partitions[0]
    assert not controller.image.alive()
    assert partition.leader == -1
    controller.broker_started(node(1))
    assert partition.leader == 1
    assert partition.leader_epoch > lived.leader_epoch


def test_names_still_collide_and_ids_go_on_after_a_replay() -> None:
    log: list[bytes] = []
    first = make_controller(log=log)
    first.create_topic("a.b")
    used = first.allocate_producer_ids(0)
    controller = make_controller(replay=b"".join(log))
    assert controller.allocate_producer_ids(0).start == used.stop
    with pytest.raises(Exception, match="collides"):
        controller.create_topic("a_b")


@settings(max_examples=60)
@given(data=st.data())
def test_a_log_cut_anywhere_replays_to_whole_decisions(data: st.DataObject) -> None:
    log: list[bytes] = []
    live(make_controller(log=log))
    whole = b"".join(log)
    cut = data.draw(st.integers(0, len(whole)))
    size_bytes = make_controller(brokers=0).replay(whole[:cut])
    bounds = [len(b"".join(log[:count])) for count in range(len(log) + 1)]
    assert size_bytes == max(bound for bound in bounds if bound <= cut)


def test_a_torn_last_line_of_garbage_is_cut() -> None:
    lines = encode_decision([{"type": "cluster", "cluster_id": "x"}])
    assert decode_log(lines + b"\x00\x00garbage\n\x00") == (
        [[{"type": "cluster", "cluster_id": "x"}]],
        len(lines),
    )


@settings(max_examples=60)
@given(data=st.data())
def test_damage_before_the_end_is_refused(data: st.DataObject) -> None:
    log: list[bytes] = []
    live(make_controller(log=log))
    position = data.draw(st.integers(0, len(b"".join(log[:-1])) - 1))
    damaged = bytearray(b"".join(log))
    damaged[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DecodeError, match="damaged before its end"):
        make_controller(brokers=0).replay(bytes(damaged))


def test_a_refused_change_writes_nothing() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    before = len(log)
    for attempt in (
        lambda: controller.create_topic("a", 0),
        lambda: controller.delete_topic("a"),
        lambda: controller.create_partitions("a", 2),
    ):
        with pytest.raises(Exception, match=r"INVALID|UNKNOWN"):
            attempt()
    assert len(log) == before


class _Disk:
    """A log that can be full."""

    def __init__(self) -> None:
        self.full = False
        self.room_after = 0
        """Writes refused until there is room; 0: there is none until `full` is set."""
        self.lines: list[bytes] = []
        self.replaced = 0

    def replace(self, data: bytes) -> None:
        self._room()
        self.lines = [data]
        self.replaced += 1

    def append(self, data: bytes) -> None:
        self._room()
        self.lines.append(data)

    def _room(self) -> None:
        if self.full:
            self.room_after -= 1
            self.full = self.room_after != 0
            raise OSError(28, "No space left on device")


def _with_full_log(*replicas: int) -> tuple[_Disk, Controller]:
    """A controller of as many brokers as topic "a" has replicas, after its log became full."""
    disk = _Disk()
    controller = make_controller(brokers=len(replicas), log=disk, replace=disk.replace)
    controller.create_topic("a", assignments={0: replicas})
    disk.full = True
    return disk, controller


def test_when_the_log_cannot_be_written_nothing_changes_any_more() -> None:
    disk = _Disk()
    controller = Controller(BROKER_CONFIGS.parse("broker", {}), random.Random(7), disk.append)
    controller.broker_started(node(0))
    controller.create_topic("a")
    before = facts(controller)
    for disk.full in (True, False):
        for attempt in (
            lambda: controller.create_topic("b"),
            lambda: controller.delete_topic("a"),
            lambda: controller.allocate_producer_ids(0),
        ):
            with pytest.raises(BrokerError, match="No space left") as caught:
                attempt()
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert facts(controller) == before
    controller.broker_stopped(0)
    assert not controller.image.is_alive(0)
    assert controller.image.topics["a"].partitions[0].leader == -1


def test_who_leads_and_who_is_in_sync_changes_only_once_it_is_written() -> None:
    """A replica that left those in sync of a controller that forgets it could lead later, without
    what was acknowledged meanwhile."""
    disk = _Disk()
    controller = make_controller(brokers=3, log=disk, replace=disk.replace)
    controller.create_topic("a", assignments={0: [0, 1, 2], 1: [1, 0, 2], 2: [2, 1, 0]})

    def seen(of: Controller) -> list[tuple[int, tuple[int, ...]]]:
        return [(one.leader, one.isr) for one in of.image.topics["a"].partitions]

    everybody = [(0, (0, 1, 2)), (1, (1, 0, 2)), (2, (2, 1, 0))]
    assert seen(controller) == everybody
    disk.full = True
    controller.broker_stopped(0)
    assert not controller.image.is_alive(0)
    assert seen(controller) == [(-1, (0, 1, 2)), *everybody[1:]]
    for now_ms in (0, 500, 1_000, 2_000):
        assert controller.deadline_ns() is not None
        controller.tick(now_ms * 1_000_000)
    assert seen(controller) == [(-1, (0, 1, 2)), *everybody[1:]]
    again = make_controller(brokers=0, replay=b"".join(disk.lines))
    assert [isr for _leader, isr in seen(again)] == [isr for _leader, isr in everybody]
    disk.full = False
    controller.tick(3_000 * 1_000_000)
    assert seen(controller) == [(1, (1, 2)), (1, (1, 2)), (2, (2, 1))]
    again = make_controller(brokers=0, replay=b"".join(disk.lines))
    assert [isr for _leader, isr in seen(again)] == [(1, 2), (1, 2), (2, 1)]


def test_a_broker_that_comes_back_before_its_end_could_be_written_is_not_in_sync() -> None:
    """Found by seeds of the world `cluster`: its machine had lost power, and with it what was
    acknowledged, and it led."""
    disk, controller = _with_full_log(0, 1)
    controller.broker_stopped(0)
    controller.tick(0)
    with pytest.raises(BrokerError, match="make room, and try again"):
        controller.broker_started(node(0))
    assert not controller.image.is_alive(0)
    disk.full = False
    controller.broker_started(node(0))
    one = controller.image.topics["a"].partitions[0]
    for now_ms in (1_000, 2_000):
        assert (one.leader, one.isr) == (1, (1,))
        controller.tick(now_ms * 1_000_000)


@pytest.mark.parametrize("room", ["before the second ends", "between two writes", "before both"])
def test_brokers_that_end_while_the_log_is_full_leave_in_the_order_in_which_they_ended(room: str) -> None:
    """Broker 1 ended last and has everything; broker 0 lost what it had not synced."""
    disk, controller = _with_full_log(0, 1)
    controller.broker_stopped(0)
    controller.tick(0)
    disk.full = room != "before the second ends"
    controller.broker_stopped(1)
    if room == "between two writes":
        disk.room_after = 1
        controller.tick(1_000_000_000)
    disk.full = False
    controller.broker_started(node(0))
    one = controller.image.topics["a"].partitions[0]
    assert (one.leader, one.isr) == (NO_LEADER, (1,))
    controller.broker_started(node(1))
    one = controller.image.topics["a"].partitions[0]
    assert (one.leader, one.isr) == (1, (1,))


def test_a_broker_that_ends_is_written_before_the_resignation_of_one_that_runs() -> None:
    disk, controller = _with_full_log(0, 1)
    controller.broker_stopping(0)
    disk.full = False
    controller.broker_stopped(1)
    for now_ms in (0, 1_000):
        one = controller.image.topics["a"].partitions[0]
        assert (one.leader, one.isr) == (0, (0,))
        controller.tick(now_ms * 1_000_000)


@pytest.mark.parametrize("ends", [True, False], ids=["and ends", "and runs"])
def test_a_broker_that_resigned_first_and_ended_last_stays_in_sync(ends: bool) -> None:
    disk, controller = _with_full_log(1, 0)
    controller.broker_stopping(1)
    controller.broker_stopped(0)
    if ends:
        controller.broker_stopped(1)
    disk.full = False
    for now_ms in (0, 1_000):
        controller.tick(now_ms * 1_000_000)
    assert controller.image.topics["a"].partitions[0].isr == (1,)
    controller.broker_started(node(0))
    assert controller.image.topics["a"].partitions[0].leader == (NO_LEADER if ends else 1)


@pytest.mark.parametrize("room", ["before the last", "after all"])
@pytest.mark.parametrize("resigns", ["stopping", "with a failed disk"])
def test_of_brokers_that_all_resign_the_last_goes_on_leading(resigns: str, room: str) -> None:
    disk, controller = _with_full_log(0, 1, 2)
    for node_id in range(3):
        disk.full = room != "before the last" or node_id < 2
        if resigns == "stopping":
            controller.broker_stopping(node_id)
        else:
            controller.disk_reported(node_id, controller.image.brokers[node_id].epoch, works=False)
    disk.full = False
    for now_ms in (0, 1_000):
        controller.tick(now_ms * 1_000_000)
    one = controller.image.topics["a"].partitions[0]
    assert (one.leader, one.isr) == (2, (2,))


@pytest.mark.parametrize("isr", [(0,), (0, 1, 2)])
def test_who_resigned_does_not_come_before_who_may_lead(isr: tuple[int, ...]) -> None:
    disk = _Disk()
    controller = make_controller(brokers=3, log=disk, replace=disk.replace)
    topic = controller.create_topic(
        "a", assignments={0: [0, 1, 2]}, configs={"unclean.leader.election.enable": "true"}
    )
    if isr == (0,):
        for node_id in (1, 2):
            controller.broker_stopped(node_id)
            controller.broker_started(node(node_id))
    assert topic.partitions[0].isr == isr
    disk.full = True
    controller.broker_stopping(1)
    disk.full = False
    controller.broker_stopped(0)
    assert controller.image.topics["a"].partitions[0].leader == 2


def test_a_resignation_from_before_all_stop_is_not_carried_out() -> None:
    disk, controller = _with_full_log(0, 1)
    controller.broker_stopping(0)
    disk.full = False
    controller.cluster_stopping()
    controller.broker_stopped(1)
    for now_ms in (0, 1_000):
        controller.tick(now_ms * 1_000_000)
    one = controller.image.topics["a"].partitions[0]
    assert (one.leader, one.isr) == (0, (0, 1))


def test_an_end_from_before_all_stop_is_written_still() -> None:
    """Else the broker that ended first would be in sync after the restart, and might lead."""
    disk, controller = _with_full_log(0, 1)
    controller.broker_stopped(0)
    disk.full = False
    controller.cluster_stopping()
    controller.broker_stopped(1)
    again = make_controller(brokers=0, replay=b"".join(disk.lines))
    assert again.image.topics["a"].partitions[0].isr == (1,)


def test_a_broker_whose_start_could_not_be_written_is_waited_for_no_longer_than_others() -> None:
    """The partition that it led has another leader once its time is over."""
    disk = _Disk()
    make_controller(brokers=3, log=disk, replace=disk.replace).create_topic("a", assignments={0: [0, 1, 2]})
    controller = make_controller(brokers=0, replay=b"".join(disk.lines), log=disk, replace=disk.replace)
    controller.tick(0)
    for node_id in (1, 2):
        controller.broker_started(node(node_id))
    disk.full = True
    with pytest.raises(BrokerError, match="make room, and try again"):
        controller.broker_started(node(0))
    disk.full = False
    assert controller.image.topics["a"].partitions[0].leader == NO_LEADER
    for second in range(1, 12):
        controller.tick(second * 1_000_000_000)
    one = controller.image.topics["a"].partitions[0]
    assert (one.leader, one.isr) == (1, (1, 2))


@pytest.mark.parametrize("room", [True, False])
def test_no_replica_whose_end_could_not_be_written_takes_over_from_others_in_sync(room: bool) -> None:
    disk, controller = _with_full_log(0, 1, 2)
    controller.broker_stopped(0)
    disk.full = not room
    move = [Reassignment("a", 0, [0])]
    if room:
        controller.alter_reassignments(move)
    else:
        with pytest.raises(BrokerError, match="make room, and try again"):
            controller.alter_reassignments(move)
    one = controller.image.topics["a"].partitions[0]
    assert (one.leader, one.isr) == ((1, (1, 2)) if room else (NO_LEADER, (0, 1, 2)))


def test_topics_of_one_request_are_one_decision() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    before = len(log)
    results = controller.create_topics(
        [NewTopic("a.b", 2), NewTopic("a_b"), NewTopic("c", 0), NewTopic("d", 4)]
    )
    assert [result.code if isinstance(result, BrokerError) else result.name for result in results] == [
        "a.b",
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_PARTITIONS,
        "d",
    ]
    assert len(log) == before + 1
    assert [partition.leader for _, _, partition in controller.image.partitions()] == [0, 1, 2, 0, 1, 2]
    deleted = controller.delete_topics(["a.b", "missing", "d"])
    assert [type(result).__name__ for result in deleted] == ["TopicImage", "BrokerError", "TopicImage"]
    assert len(log) == before + 2
    assert not controller.image.topics


def test_a_log_that_could_not_be_written_is_mended_as_soon_as_there_is_room() -> None:
    disk = _Disk()
    controller = make_controller(brokers=1, log=disk, replace=disk.replace)
    controller.create_topic("a")
    disk.full = True
    with pytest.raises(BrokerError, match="make room, and try again"):
        controller.create_topic("b")
    disk.lines.append(b"0000 torn")
    with pytest.raises(BrokerError, match="No space left"):
        controller.create_topic("b")
    disk.full = False
    controller.create_topic("c")
    again = make_controller(brokers=0, replay=b"".join(disk.lines))
    assert sorted(again.image.topics) == ["a", "c"]
    assert disk.replaced == 1


def write_much(controller: Controller) -> None:
    """More than a log may hold before it is folded, and little that stays."""
    value = "x" * (FOLD_MIN_BYTES // 1_000)
    for number in range(1_100):
        controller.journal.commit(
            [{"type": "broker_configs", "name": "9", "configs": {"k": value + str(number)}}]
        )


def test_a_log_that_grows_is_folded_while_the_cluster_runs() -> None:
    disk = _Disk()
    controller = make_controller(log=disk, replace=disk.replace)
    write_much(controller)
    assert disk.replaced == 1
    assert sum(map(len, disk.lines)) < FOLD_MIN_BYTES // 4
    live(controller)
    again = make_controller(brokers=0, replay=b"".join(disk.lines))
    assert facts(again, leaders=False) == facts(controller, leaders=False)


def test_a_log_that_cannot_be_folded_goes_on() -> None:
    disk = _Disk()

    def replace(data: bytes) -> None:
        raise OSError(28, "No space left on device")

    controller = make_controller(log=disk, replace=replace)
    write_much(controller)
    assert sum(map(len, disk.lines)) > FOLD_MIN_BYTES
    again = make_controller(brokers=0, replay=b"".join(disk.lines))
    assert facts(again, leaders=False) == facts(controller, leaders=False)


def test_a_log_of_release_0_1_is_read() -> None:
    topic_id = "0000000000000000000000000000000a"
    lines = [
        {"type": "cluster", "cluster_id": "c"},
        *(
            {"type": "broker", "node_id": one, "host": "h", "port": 1, "rack": None, "alive": True}
            for one in range(2)
        ),
        {
            "type": "topic",
            "topic_id": topic_id,
            "name": "a",
            "partitions": [[[0], [0], 0, 0], [[1], [1], 1, 0]],
            "configs": {},
        },
        {"type": "partitions_added", "topic_id": topic_id, "partitions": [[[0], [0], 0, 0]]},
        {"type": "leaders", "changes": [[topic_id, 1, [1], -1, 1]]},
        {"type": "leaders", "changes": [[topic_id, 1, [1], 1, 2]]},
    ]
    controller = make_controller(brokers=0, replay=b"".join(encode_decision([line]) for line in lines))
    partitions = controller.image.topics["a"].partitions
    assert [one.replicas for one in partitions] == [(0,), (1,), (0,)]
    assert partitions[1].leader_epoch == 3
    controller.broker_started(node(1))
    assert (partitions[1].leader, partitions[1].leader_epoch) == (1, 4)
    assert make_controller(brokers=0, replay=controller.snapshot()).image.topics["a"].partitions[1].isr == (
        1,
    )
