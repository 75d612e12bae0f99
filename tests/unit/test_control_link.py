"""Brokers and a controller with a network between them, in virtual time: decisions, the copies of
the image, loss and return."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import FairleadError, UsageError
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker import BrokerState, Faults, StopBroker
from fairlead_kafka.broker.control import LinkState
from fairlead_kafka.broker.control.link import TRANSITIONS, RemoteController, Trigger
from fairlead_kafka.broker.controller import (
    AlterBrokerConfigs,
    AlterOperation,
    AlterTopicConfigs,
    Change,
    ConfigAlteration,
    Controller,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    LeadersChanged,
    NewTopic,
    PartitionsAdded,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
)
from fairlead_kafka.broker.controller.controller import DECIDERS
from fairlead_kafka.runtime import Completion
from tests.support.remote_cluster import RemoteCluster

SESSION_MS = 9_000


@pytest.fixture
def cluster() -> Iterator[RemoteCluster]:
    made = RemoteCluster()
    yield made
    made.host.close()


def heard(view: RemoteController) -> list[Change]:
    """Changes told to listeners from now on."""
    changes: list[Change] = []
    view.subscribe(changes.append)
    return changes


def test_every_broker_has_the_image_of_the_controller(cluster: RemoteCluster) -> None:
    cluster.decided(1, CreateTopics([NewTopic("events", 3, configs={"retention.ms": "5"})]))
    cluster.host.advance(100)
    assert len(cluster.controller.image.alive()) == 3
    for view in cluster.views.values():
        assert view.image == cluster.controller.image
        assert view.topic_settings("events")["retention.ms"] == 5


def test_a_decision_is_answered_when_the_asker_has_it(cluster: RemoteCluster) -> None:
    answer = cluster.decide(2, CreateTopics([NewTopic("events", 2), NewTopic("no such name!")]))
    assert answer.told == 0
    cluster.host.run_until(lambda: answer.told)
    created, refused = answer.result
    assert answer.topics == ["events"]
    assert created is cluster.views[2].image.topics["events"]
    assert refused.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_what_would_be_crosses_whole_though_no_image_has_it(cluster: RemoteCluster) -> None:
    (topic,) = cluster.decided(
        0, CreateTopics([NewTopic("events", assignments={0: [2], 1: [1]})], validate_only=True)
    ).result
    assert [partition.replicas for partition in topic.partitions] == [(2,), (1,)]
    assert not cluster.views[0].image.topics


def test_a_refusal_crosses_as_the_error_it_is(cluster: RemoteCluster) -> None:
    error = cluster.decided(0, CreatePartitions("missing", 3)).error
    assert error is not None
    assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "missing" in str(error)


def test_a_broker_that_dies_is_gone_at_once(cluster: RemoteCluster) -> None:
    cluster.decided(0, CreateTopics([NewTopic("events", assignments={0: [2]})]))
    cluster.die(2)
    cluster.host.advance(5)
    assert not cluster.controller.image.is_alive(2)
    assert cluster.views[0].image.topics["events"].partitions[0].leader == NO_LEADER


def test_a_broker_that_starts_again_lives_anew(cluster: RemoteCluster) -> None:
    before = cluster.controller.image.brokers[2].epoch
    cluster.die(2)
    cluster.start(2).result(0)
    assert cluster.controller.image.is_alive(2)
    assert cluster.controller.image.brokers[2].epoch > before


def test_a_second_life_ends_the_first_though_its_connection_seems_to_stand(cluster: RemoteCluster) -> None:
    first = cluster.handles[2]
    cluster.host.link(first, cluster.serving).cut()
    cluster.host.remove(first)
    cluster.start(2).result(0)
    cluster.host.advance(2 * SESSION_MS)
    assert cluster.controller.image.is_alive(2)


def test_a_broker_that_is_cut_off_is_fenced_and_comes_back_with_all_it_missed(cluster: RemoteCluster) -> None:
    cluster.decided(0, CreateTopics([NewTopic(name, 1) for name in ("kept", "gone", "grown", "changed")]))
    cluster.host.advance(10)
    kept = cluster.views[2].image.topics["kept"]
    epoch = cluster.controller.image.brokers[2].epoch
    cluster.faults(2, Faults(cut_from_controller=True))
    cluster.host.run_until(lambda: not cluster.controller.image.is_alive(2), 2 * SESSION_MS)
    set_retention = [ConfigAlteration("retention.ms", AlterOperation.SET, "7")]
    cluster.decided(0, DeleteTopics(["gone"]))
    cluster.decided(0, CreateTopics([NewTopic("new", 1)]))
    cluster.decided(0, CreatePartitions("grown", 2))
    cluster.decided(0, AlterTopicConfigs("changed", set_retention))
    cluster.decided(
        0, AlterBrokerConfigs("", [ConfigAlteration("message.max.bytes", AlterOperation.SET, "70000")])
    )
    assert "gone" in cluster.views[2].image.topics

    changes = heard(cluster.views[2])
    cluster.faults(2, Faults())
    cluster.host.run_until(lambda: cluster.controller.image.is_alive(2))
    cluster.host.advance(10)
    assert cluster.views[2].image == cluster.controller.image
    assert cluster.views[2].image.topics["kept"] is kept
    assert cluster.controller.image.brokers[2].epoch > epoch
    assert cluster.brokers[2].state is BrokerState.RUNNING
    assert cluster.brokers[2].settings["message.max.bytes"] == 70_000
    told = {type(change): change for change in reversed(changes)}
    assert told[TopicDeleted].topic.name == "gone"  # type: ignore[union-attr]
    assert told[TopicCreated].topic.name == "new"  # type: ignore[union-attr]
    assert told[PartitionsAdded].topic.name == "grown"  # type: ignore[union-attr]
    assert told[TopicConfigsChanged].topic.name == "changed"  # type: ignore[union-attr]
    assert cluster.views[2].topic_settings("changed")["retention.ms"] == 7


def test_a_broker_that_is_cut_off_hears_of_its_lost_leadership_when_it_returns(
    cluster: RemoteCluster,
) -> None:
    cluster.decided(0, CreateTopics([NewTopic("events", assignments={0: [2, 1]})]))
    cluster.host.advance(10)
    changes = heard(cluster.views[2])
    cluster.faults(2, Faults(cut_from_controller=True))
    cluster.host.run_until(lambda: not cluster.controller.image.is_alive(2), 2 * SESSION_MS)
    assert cluster.controller.image.topics["events"].partitions[0].leader == 1
    assert cluster.views[2].image.topics["events"].partitions[0].leader == 2
    cluster.faults(2, Faults())
    cluster.host.run_until(lambda: cluster.controller.image.is_alive(2))
    assert cluster.views[2].image.topics["events"].partitions[0].leader == 1
    assert any(isinstance(change, LeadersChanged) for change in changes)


def test_what_was_asked_is_told_to_be_open_when_the_link_is_lost(cluster: RemoteCluster) -> None:
    cluster.host.link(cluster.handles[1], cluster.serving).cut()
    answer = cluster.decide(1, CreateTopics([NewTopic("events", 1)]))
    assert answer.told == 0
    cluster.host.run_until(lambda: answer.told, 2 * SESSION_MS)
    assert answer.error is not None
    assert answer.error.code == ErrorCode.NOT_CONTROLLER


def test_what_is_asked_while_the_link_is_away_waits_for_it(cluster: RemoteCluster) -> None:
    link = cluster.host.link(cluster.handles[1], cluster.serving)
    link.cut()
    cluster.host.run_until(lambda: cluster.views[1].state is not LinkState.FOLLOWING, 2 * SESSION_MS)
    answer = cluster.decide(1, CreateTopics([NewTopic("events", 1)]))
    cluster.host.advance(SESSION_MS / 2)
    assert not answer.told
    link.heal()
    cluster.host.run_until(lambda: answer.told)
    assert answer.topics == ["events"]


def test_what_is_asked_while_the_link_is_away_does_not_wait_for_ever(cluster: RemoteCluster) -> None:
    cluster.host.link(cluster.handles[1], cluster.serving).cut()
    cluster.host.run_until(lambda: cluster.views[1].state is not LinkState.FOLLOWING, 2 * SESSION_MS)
    answer = cluster.decide(1, CreateTopics([NewTopic("events", 1)]))
    cluster.host.advance(2 * SESSION_MS)
    assert answer.told == 1
    assert answer.error is not None
    assert answer.error.code == ErrorCode.NOT_CONTROLLER


def test_a_quiet_link_stays_up(cluster: RemoteCluster) -> None:
    epochs = {node_id: broker.epoch for node_id, broker in cluster.controller.image.brokers.items()}
    cluster.host.advance(5 * SESSION_MS)
    assert {node_id: broker.epoch for node_id, broker in cluster.controller.image.brokers.items()} == epochs
    assert all(view.state is LinkState.FOLLOWING for view in cluster.views.values())


def test_a_broker_that_stops_says_goodbye(cluster: RemoteCluster) -> None:
    cluster.submit(0, StopBroker(Completion())).result(0)
    cluster.host.advance(5)
    assert not cluster.controller.image.is_alive(0)
    assert cluster.views[0].state is LinkState.CLOSED


def test_a_stranger_is_refused(cluster: RemoteCluster) -> None:
    refused = cluster.start(3, token="another")
    with pytest.raises(FairleadError, match="belongs to another cluster"):
        refused.result(0)
    assert 3 not in cluster.controller.image.brokers


def test_the_log_holds_what_was_decided_and_no_more(cluster: RemoteCluster) -> None:
    before = len(cluster.lines)
    cluster.decided(1, CreateTopics([NewTopic("events", 3)]))
    cluster.decided(1, CreateTopics([NewTopic("other", 3)], validate_only=True))
    assert len(cluster.lines) == before + 1


def test_where_no_network_is_none_can_be_cut() -> None:
    cluster = RemoteCluster(brokers=0)
    with pytest.raises(UsageError, match="processes=True"):
        cluster.controller.cut(True)
    cluster.controller.cut(False)


def test_the_table_of_the_link_names_every_state_and_ends_closed() -> None:
    assert {state for state, _ in TRANSITIONS} == set(LinkState)
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)
    assert {target for (state, _), target in TRANSITIONS.items() if state is LinkState.CLOSED} == {
        LinkState.CLOSED
    }
    assert all((state, Trigger.DETACHED) in TRANSITIONS for state in LinkState)


def test_an_answer_that_its_taker_fails_at_ends_nothing_but_its_own_affair(
    cluster: RemoteCluster, caplog: pytest.LogCaptureFixture
) -> None:
    view, broker = cluster.views[1], cluster.brokers[1]
    broker.call_at(
        broker.now_ns,
        lambda: view.decide(CreateTopics([NewTopic("events", 1)]), lambda _result, _error: 1 / 0),
    )
    broker.wake()
    cluster.host.advance(10)
    assert "ZeroDivisionError" in caplog.text
    assert broker.state is BrokerState.RUNNING
    assert cluster.decided(1, CreateTopics([NewTopic("other", 1)])).error is None


def test_a_decision_that_raises_is_the_error_of_who_asked(
    cluster: RemoteCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(controller: Controller, decision: DeleteTopics) -> None:
        raise KeyError("a fault of the controller")

    monkeypatch.setitem(DECIDERS, DeleteTopics, fail)
    answer = cluster.decided(1, DeleteTopics(["events"]))
    assert answer.error is not None
    assert answer.error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "DeleteTopics: KeyError" in str(answer.error)
    cluster.decided(1, CreateTopics([NewTopic("events", 3)]))
    cluster.host.advance(SESSION_MS)
    assert [broker.node.node_id for broker in cluster.controller.image.alive()] == [0, 1, 2]
    assert cluster.server.guard.errors == 1
