"""Who leads and who is in sync when brokers come and go, as tables; and the life of a cluster
through stops, restarts and elections."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker.controller import (
    AlterOperation,
    Change,
    ConfigAlteration,
    Controller,
    LeadersChanged,
    PartitionImage,
    PartitionsChanged,
    ProposedIsr,
)
from fairlead_kafka.broker.controller.elections import Electorate, after_coming, after_leaving, preferred
from tests.support.controllers import make_controller, node

SECOND_NS = 1_000_000_000
Row = tuple[tuple[int, ...], tuple[int, ...], int]
"""Replicas, replicas in sync, leader."""


def electorate(alive: str, awaited: str = "", stopping: str = "") -> Electorate:
    ids = {int(one) for one in alive}
    return Electorate(ids, ids - {int(one) for one in stopping}, {int(one) for one in awaited})


def partition(row: Row) -> PartitionImage:
    replicas, isr, leader = row
    return PartitionImage(replicas, isr, leader, 5, 7)


def seen(before: PartitionImage, after: PartitionImage | None) -> tuple[tuple[int, ...], int, int] | None:
    """Replicas in sync, leader, and by how much the leader epoch grew; None for no change."""
    if after is None:
        return None
    assert after.partition_epoch == before.partition_epoch + 1
    return after.isr, after.leader, after.leader_epoch - before.leader_epoch


@pytest.mark.parametrize(
    ("before", "leaving", "alive", "unclean", "after"),
    [
        pytest.param(
            ((0, 1, 2), (0, 1, 2), 0),
            0,
            "12",
            False,
            ((1, 2), 1, 1),
            id="the leader leaves: the next in sync leads",
        ),
        pytest.param(
            ((0, 1, 2), (0, 2), 0), 0, "12", False, ((2,), 2, 1), id="who is not in sync is passed over"
        ),
        pytest.param(
            ((0, 1, 2), (0, 1, 2), 0), 2, "01", False, ((0, 1), 0, 0), id="a follower leaves: the same reign"
        ),
        pytest.param(((0, 1, 2), (0, 1), 0), 2, "01", False, None, id="who was not in sync changes nothing"),
        pytest.param(
            ((0, 1, 2), (0,), 0),
            0,
            "12",
            False,
            ((0,), NO_LEADER, 1),
            id="the last in sync stays in sync, and nobody leads",
        ),
        pytest.param(
            ((0, 1, 2), (0,), 0),
            0,
            "12",
            True,
            ((1,), 1, 1),
            id="unclean: the first alive leads, alone in sync",
        ),
        pytest.param(
            ((0, 1, 2), (0,), 0), 0, "", True, ((0,), NO_LEADER, 1), id="unclean, with nobody alive"
        ),
        pytest.param(((3,), (3,), 3), 0, "3", False, None, id="a broker without a replica"),
    ],
)
def test_when_a_broker_leaves(
    before: Row, leaving: int, alive: str, unclean: bool, after: tuple[tuple[int, ...], int, int] | None
) -> None:
    one = partition(before)
    assert seen(one, after_leaving(one, leaving, electorate(alive), unclean)) == after


@pytest.mark.parametrize(
    ("before", "alive", "awaited", "unclean", "last", "after"),
    [
        pytest.param(
            ((0, 1), (1,), NO_LEADER), "1", "", False, NO_LEADER, ((1,), 1, 1), id="who is in sync leads"
        ),
        pytest.param(((0, 1), (1,), NO_LEADER), "0", "", False, NO_LEADER, None, id="who is not does not"),
        pytest.param(
            ((0, 1), (1,), NO_LEADER),
            "0",
            "",
            True,
            NO_LEADER,
            ((0,), 0, 1),
            id="but for an unclean election",
        ),
        pytest.param(
            ((0, 1), (1,), NO_LEADER), "0", "1", True, NO_LEADER, None, id="which waits for who is awaited"
        ),
        pytest.param(
            ((0, 1), (0, 1), 0), "01", "", False, NO_LEADER, None, id="a partition that is led is left alone"
        ),
        pytest.param(
            ((0, 1), (0, 1), NO_LEADER), "1", "0", False, NO_LEADER, None, id="the preferred one is awaited"
        ),
        pytest.param(((0, 1), (0, 1), NO_LEADER), "0", "1", False, 1, None, id="who led last is awaited"),
        pytest.param(
            ((0, 1), (0, 1), NO_LEADER),
            "01",
            "",
            False,
            1,
            ((0, 1), 1, 1),
            id="who led last goes before the preferred one",
        ),
        pytest.param(
            ((0, 1), (0,), NO_LEADER), "01", "", False, 1, ((0,), 0, 1), id="unless it is not in sync"
        ),
    ],
)
def test_when_a_broker_comes(
    before: Row,
    alive: str,
    awaited: str,
    unclean: bool,
    last: int,
    after: tuple[tuple[int, ...], int, int] | None,
) -> None:
    one = partition(before)
    assert seen(one, after_coming(one, electorate(alive, awaited), unclean, last)) == after


@pytest.mark.parametrize(
    ("before", "alive", "stopping", "after"),
    [
        (((0, 1), (0, 1), 1), "01", "", ((0, 1), 0, 1)),
        (((0, 1), (0, 1), 0), "01", "", None),
        (((0, 1), (1,), 1), "01", "", None),
        (((0, 1), (0, 1), 1), "1", "", None),
        (((0, 1), (0, 1), 1), "01", "0", None),
    ],
)
def test_the_preferred_leader_leads_if_it_is_alive_in_sync_and_staying(
    before: Row, alive: str, stopping: str, after: tuple[tuple[int, ...], int, int] | None
) -> None:
    one = partition(before)
    assert seen(one, preferred(one, electorate(alive, stopping=stopping))) == after


# --- The controller itself


def one_partition(
    config: dict[str, str] | None = None, replicas: tuple[int, ...] = (0, 1, 2)
) -> tuple[Controller, PartitionImage]:
    controller = make_controller()
    topic = controller.create_topic("a", assignments={0: replicas}, configs=dict(config or {}))
    return controller, topic.partitions[0]


def rejoin(controller: Controller, replica: int) -> None:
    """The leader of a-0 says that `replica` has caught up."""
    topic = controller.image.topics["a"]
    one = topic.partitions[0]
    proposal = ProposedIsr(topic.topic_id.hex, 0, one.leader_epoch, one.partition_epoch, (*one.isr, replica))
    assert controller.alter_partitions(
        one.leader, controller.image.brokers[one.leader].epoch, [proposal]
    ) == [0]


def test_a_new_partition_has_all_live_replicas_in_sync() -> None:
    controller = make_controller()
    controller.broker_stopped(1)
    (one,) = controller.create_topic("a", assignments={0: [1, 0, 2]}).partitions
    assert (one.replicas, one.isr, one.leader) == ((1, 0, 2), (0, 2), 0)


def test_a_broker_that_comes_back_leads_nothing_until_its_leader_has_let_it_in() -> None:
    controller, one = one_partition()
    controller.broker_stopped(0)
    assert (one.isr, one.leader) == ((1, 2), 1)
    controller.broker_started(node(0))
    assert (one.isr, one.leader) == ((1, 2), 1)
    rejoin(controller, 0)
    assert (one.isr, one.leader) == ((1, 2, 0), 1)


def test_a_start_that_follows_no_stop_ends_the_life_before() -> None:
    controller, one = one_partition()
    first = controller.image.brokers[0].epoch
    second = controller.broker_started(node(0))
    assert second > first
    assert (one.isr, one.leader) == ((1, 2), 1)


def test_every_start_has_an_epoch_of_its_own_even_after_a_restart() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    epochs = {info.epoch for info in controller.image.brokers.values()}
    again = make_controller(brokers=0, replay=b"".join(log))
    epochs |= {again.broker_started(node(node_id)) for node_id in range(3)}
    assert len(epochs) == 6


def test_a_broker_that_is_about_to_stop_hands_over_and_is_given_nothing_more() -> None:
    controller, one = one_partition()
    only_here = controller.create_topic("b", assignments={0: [0]}).partitions[0]
    controller.broker_stopping(0)
    assert (one.isr, one.leader) == ((1, 2), 1)
    assert (only_here.isr, only_here.leader) == ((0,), 0)
    assert controller.image.brokers[0].alive
    placed = controller.create_topic("c", 6, 2).partitions
    assert not any(0 in partition.replicas for partition in placed)
    controller.broker_stopped(0)
    assert (only_here.isr, only_here.leader) == ((0,), NO_LEADER)
    controller.broker_started(node(0))
    assert not controller.image.brokers[0].stopping
    assert only_here.leader == 0


def test_unclean_election_is_a_config_of_the_topic_and_may_be_switched_on_when_it_is_needed() -> None:
    controller, one = one_partition()
    safe = controller.create_topic(
        "b", assignments={0: [0, 1]}, configs={"unclean.leader.election.enable": "false"}
    ).partitions[0]
    for node_id in (1, 2, 0):
        controller.broker_stopped(node_id)
    controller.broker_started(node(1))
    assert (one.isr, one.leader) == ((0,), NO_LEADER)
    controller.alter_broker_configs(
        "", [ConfigAlteration("unclean.leader.election.enable", AlterOperation.SET, "true")]
    )
    assert (one.isr, one.leader) == ((1,), 1)
    assert safe.leader == NO_LEADER
    controller.alter_topic_configs(
        "b", [ConfigAlteration("unclean.leader.election.enable", AlterOperation.SET, "true")]
    )
    assert (safe.isr, safe.leader) == ((1,), 1)


def test_unclean_election_is_no_affair_of_one_broker() -> None:
    controller, _ = one_partition()
    with pytest.raises(BrokerError, match="set it for all") as caught:
        controller.alter_broker_configs(
            "1", [ConfigAlteration("unclean.leader.election.enable", AlterOperation.SET, "true")]
        )
    assert caught.value.code == ErrorCode.INVALID_CONFIG


def test_an_unclean_election_happens_by_itself_where_it_is_on() -> None:
    controller, one = one_partition({"unclean.leader.election.enable": "true"})
    controller.broker_stopped(1)
    controller.broker_stopped(2)
    controller.broker_started(node(2))
    assert (one.isr, one.leader) == ((0,), 0)
    controller.broker_stopped(0)
    assert (one.isr, one.leader) == ((2,), 2)


@pytest.mark.parametrize(
    ("election", "named", "code"),
    [
        (0, ("a", 0), ErrorCode.ELECTION_NOT_NEEDED),
        (0, ("moved", 0), None),
        (0, ("lagging", 0), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (0, ("a", 9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, ("missing", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, ("a", 0), ErrorCode.ELECTION_NOT_NEEDED),
        (1, ("lost", 0), None),
        (1, ("gone", 0), ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_elections_that_are_asked_for(election: int, named: tuple[str, int], code: int | None) -> None:
    controller = make_controller(brokers=4)
    for name, replicas in {"a": [1], "moved": [0, 1], "lagging": [0, 2], "lost": [3, 1], "gone": [3]}.items():
        controller.create_topic(name, assignments={0: replicas})
    controller.broker_stopped(1)
    controller.broker_stopped(3)
    controller.broker_started(node(1))
    controller.broker_stopped(0)
    controller.broker_started(node(0))
    topics = controller.image.topics
    topics["moved"].partitions[0].isr = (1, 0)
    topics["moved"].partitions[0].leader = 1
    topics["lagging"].partitions[0].isr, topics["lagging"].partitions[0].leader = (2,), 2
    topics["lost"].partitions[0].isr = (3,)
    topics["lost"].partitions[0].leader = NO_LEADER
    ((topic, number, error),) = controller.elect_leaders(election, [named])
    assert (topic, number) == named
    assert (None if error is None else error.code) == code
    if code is None:
        partition = topics[topic].partitions[number]
        assert (partition.leader, partition.isr) == {"moved": (0, (1, 0)), "lost": (1, (1,))}[topic]


def test_an_election_for_all_tells_only_of_those_that_needed_one() -> None:
    controller, one = one_partition()
    controller.create_topic("b", assignments={0: [1]})
    controller.broker_stopped(0)
    controller.broker_started(node(0))
    rejoin(controller, 0)
    assert controller.elect_leaders(0, None) == [("a", 0, None)]
    assert one.leader == 0


def test_an_election_of_no_known_type_is_refused() -> None:
    with pytest.raises(BrokerError, match="0 preferred, 1 unclean") as caught:
        make_controller().elect_leaders(2, None)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("enabled", "leader"), [("true", 0), ("false", 1)])
def test_partitions_go_back_to_their_preferred_leaders_from_time_to_time(enabled: str, leader: int) -> None:
    controller = make_controller(
        config={"auto.leader.rebalance.enable": enabled, "leader.imbalance.check.interval.seconds": 10}
    )
    one = controller.create_topic("a", assignments={0: [0, 1]}).partitions[0]
    controller.tick(0)
    controller.broker_stopped(0)
    controller.broker_started(node(0))
    rejoin(controller, 0)
    assert controller.deadline_ns() == 10 * SECOND_NS
    controller.tick(9 * SECOND_NS)
    assert one.leader == 1
    controller.tick(10 * SECOND_NS)
    assert one.leader == leader
    assert controller.deadline_ns() == 20 * SECOND_NS


def test_a_log_that_is_full_keeps_partitions_where_they_are_and_breaks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Full(list[bytes]):
        full = False

        def append(self, line: bytes) -> None:
            if self.full:
                raise OSError(28, "No space left on device")

    log = Full()
    controller = make_controller(log=log, config={"leader.imbalance.check.interval.seconds": 10})
    one = controller.create_topic("a", assignments={0: [0, 1]}).partitions[0]
    controller.tick(0)
    controller.broker_stopped(0)
    controller.broker_started(node(0))
    rejoin(controller, 0)
    log.full = True
    controller.tick(10 * SECOND_NS)
    assert one.leader == 1
    assert "No space left" in caplog.text


# --- Restarts


def restarted(log: list[bytes]) -> tuple[Controller, PartitionImage]:
    controller = make_controller(brokers=0, replay=b"".join(log))
    return controller, controller.image.topics["a"].partitions[0]


def test_after_a_restart_whoever_led_leads_again_and_all_are_in_sync_as_before() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    controller.create_topic("a", assignments={0: [0, 1, 2]})
    controller.broker_stopped(0)
    controller.broker_started(node(0))
    rejoin(controller, 0)
    again, one = restarted(log)
    assert one.leader == NO_LEADER
    again.broker_started(node(0))
    assert one.leader == NO_LEADER
    again.broker_started(node(1))
    assert (one.leader, one.isr) == (1, (1, 2, 0))
    again.broker_started(node(2))
    assert (one.leader, one.isr) == (1, (1, 2, 0))


def test_who_does_not_come_back_after_a_restart_is_waited_for_one_session_and_no_longer() -> None:
    log: list[bytes] = []
    make_controller(log=log).create_topic("a", assignments={0: [0, 1, 2]})
    again, one = restarted(log)
    again.broker_started(node(1))
    again.tick(5 * SECOND_NS)
    assert again.deadline_ns() == 14 * SECOND_NS
    again.tick(13 * SECOND_NS)
    assert (one.leader, one.isr) == (NO_LEADER, (0, 1, 2))
    again.tick(14 * SECOND_NS)
    assert (one.leader, one.isr) == (1, (1,))


def test_a_cluster_that_ends_as_a_whole_keeps_everybody_in_sync() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    controller.create_topic("a", assignments={0: [0, 1, 2]})
    controller.cluster_stopping()
    for node_id in range(3):
        controller.broker_stopping(node_id)
        controller.broker_stopped(node_id)
    again, one = restarted(log)
    for node_id in range(3):
        again.broker_started(node(node_id))
    assert (one.leader, one.isr) == (0, (0, 1, 2))


# --- What listeners hear


def test_a_change_of_leader_and_one_of_followers_are_told_apart() -> None:
    controller = make_controller()
    controller.create_topic("a", assignments={0: [0, 1], 1: [1, 0], 2: [2, 1]})
    heard: list[Change] = []
    controller.subscribe(heard.append)
    controller.broker_stopped(0)
    leaders = [change for change in heard if isinstance(change, LeadersChanged)]
    others = [change for change in heard if isinstance(change, PartitionsChanged)]
    assert [[number for _, number in change.partitions] for change in leaders] == [[0]]
    assert [[number for _, number in change.partitions] for change in others] == [[1]]
