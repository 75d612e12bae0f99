"""The metadata cache: what it believes, and when it asks."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConnectionFailed
from fairlead_kafka.base.ids import NO_LEADER, NO_LEADER_EPOCH, NO_TOPIC_ID, Node
from fairlead_kafka.base.units import NS_PER_MS
from fairlead_kafka.core import Metadata
from fairlead_kafka.wire import Message
from tests.support.fake_broker import TOPIC_ID, metadata_message, partition_message, topic_message
from tests.support.kept import grown, kept

NODES = {0: ("zero", 1), 1: ("one", 1)}
OTHER_ID = uuid.UUID(int=8)


def make(scope: str = "producer", **configs: Any) -> Metadata:
    given = {"bootstrap.servers": "a:1", **{name.replace("_", "."): value for name, value in configs.items()}}
    return Metadata(CLIENT_CONFIGS.parse(scope, given), random.Random(1))


def learn(metadata: Metadata, *topics: Message, now_ns: int = 0) -> Message:
    request = metadata.begin(now_ns)
    metadata.apply(metadata_message(NODES, topics), now_ns)
    return request


def names(request: Message) -> list[str] | None:
    return None if request.topics is None else [topic.name for topic in request.topics]


def test_an_answer_is_taken_whole() -> None:
    metadata = make()
    metadata.want("a", 0)
    version = metadata.version
    learn(metadata, topic_message("a", [partition_message(1, 1, 4), partition_message(0, 0, 3)]))
    assert metadata.version > version
    assert metadata.cluster_id == "cluster"
    assert metadata.nodes[1] == Node(1, "one", 1)
    assert [metadata.leader("a", index) for index in range(3)] == [0, 1, NO_LEADER]
    assert [metadata.leader_epoch("a", index) for index in range(3)] == [3, 4, NO_LEADER_EPOCH]
    assert metadata.topic_name(TOPIC_ID) == "a"
    assert metadata.topic("b") is None
    assert metadata.topics() == ["a"]


def test_the_first_request_is_due_at_once_and_only_one_is_under_way() -> None:
    metadata = make()
    assert metadata.due_ns() == 0
    metadata.begin(0)
    assert metadata.due_ns() is None


def test_a_new_topic_is_asked_for_at_once_and_alone() -> None:
    metadata = make()
    metadata.want("a", 0)
    learn(metadata, topic_message("a", [partition_message(0, 0, 0)]))
    metadata.want("b", 5)
    assert metadata.due_ns() == 0
    request = learn(metadata, topic_message("b", [partition_message(0, 1, 0)], OTHER_ID), now_ns=5)
    assert names(request) == ["b"]
    assert metadata.leader("a", 0) == 0, "what was not asked for is kept"
    metadata.want("b", 6)
    assert metadata.due_ns() != 0


def test_a_topic_wanted_while_an_answer_is_under_way_is_asked_for_next() -> None:
    metadata = make()
    metadata.want("a", 0)
    metadata.begin(0)
    metadata.want("b", 0)
    metadata.apply(metadata_message(NODES, [topic_message("a", [partition_message(0, 0, 0)])]), 0)
    assert names(metadata.begin(0)) == ["b"]


def test_metadata_is_refreshed_when_it_is_old() -> None:
    metadata = make(metadata_max_age_ms=1000)
    learn(metadata, now_ns=7)
    assert metadata.due_ns() == 7 + 1000 * NS_PER_MS


def test_an_update_that_was_asked_for_waits_for_the_back_off() -> None:
    metadata = make()
    learn(metadata)
    metadata.request_update()
    due_ns = metadata.due_ns()
    assert due_ns is not None
    assert 80 * NS_PER_MS <= due_ns <= 120 * NS_PER_MS


def test_answers_that_bring_nothing_new_make_the_next_wait_longer() -> None:
    metadata = make()
    metadata.want("a", 0)
    waits = []
    for _ in range(6):
        learn(
            metadata, topic_message("a", [partition_message(0, NO_LEADER, 3, ErrorCode.LEADER_NOT_AVAILABLE)])
        )
        waits.append((metadata.due_ns() or 0) / NS_PER_MS)
    assert waits[0] <= 120
    assert 640 <= waits[4] <= 1000
    learn(metadata, topic_message("a", [partition_message(0, 1, 4)]))
    metadata.request_update()
    assert (metadata.due_ns() or 0) <= 120 * NS_PER_MS


@pytest.mark.parametrize("code", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_retriable_error_is_asked_about_again(code: int) -> None:
    metadata = make(metadata_max_age_ms=10**9)
    metadata.want("a", 0)
    learn(metadata, topic_message("a", [], error_code=code))
    found = metadata.topic("a")
    assert found is not None
    assert (found.error_code, found.partitions) == (code, [])
    assert (metadata.due_ns() or 0) < 10**9


def test_an_error_that_will_not_go_away_is_left_alone() -> None:
    metadata = make()
    metadata.want("a b", 0)
    learn(metadata, topic_message("a b", [], error_code=ErrorCode.INVALID_TOPIC_EXCEPTION))
    assert metadata.due_ns() == 300_000 * NS_PER_MS


def test_an_older_epoch_does_not_replace_a_newer_one() -> None:
    metadata = make()
    metadata.want("a", 0)
    learn(metadata, topic_message("a", [partition_message(0, 1, 5), partition_message(1, 0, 5)]))
    learn(metadata, topic_message("a", [partition_message(0, 0, 4), partition_message(1, 1, 6)]))
    assert [(metadata.leader("a", index), metadata.leader_epoch("a", index)) for index in (0, 1)] == [
        (1, 5),
        (1, 6),
    ]


def test_an_older_epoch_is_refused_even_after_an_answer_with_an_error() -> None:
    metadata = make()
    metadata.want("a", 0)
    learn(metadata, topic_message("a", [partition_message(0, 1, 5)]))
    learn(metadata, topic_message("a", [], error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    learn(metadata, topic_message("a", [partition_message(0, 0, 4)]))
    assert metadata.leader("a", 0) == NO_LEADER
    learn(metadata, topic_message("a", [partition_message(0, 0, 6)]))
    assert metadata.leader("a", 0) == 0


def test_a_new_topic_id_replaces_everything() -> None:
    metadata = make()
    metadata.want("a", 0)
    learn(metadata, topic_message("a", [partition_message(0, 1, 5), partition_message(1, 1, 5)]))
    learn(metadata, topic_message("a", [partition_message(0, 0, 0)], OTHER_ID))
    assert (metadata.leader("a", 0), metadata.leader_epoch("a", 0)) == (0, 0)
    assert metadata.partition("a", 1) is None
    assert metadata.topic_name(TOPIC_ID) is None
    assert metadata.topic_name(OTHER_ID) == "a"


def test_hints_move_the_leader_forward_only() -> None:
    metadata = make()
    metadata.want("a", 0)
    learn(metadata, topic_message("a", [partition_message(0, 0, 5)]))
    version = metadata.version
    metadata.saw_leader("a", 0, 1, 5)
    metadata.saw_leader("a", 0, 1, 4)
    metadata.saw_leader("a", 9, 1, 6)
    metadata.saw_leader("b", 0, 1, 6)
    metadata.saw_leader("a", 0, -1, 6)
    assert (metadata.leader("a", 0), metadata.version) == (0, version)
    metadata.saw_leader("a", 0, 1, 6)
    assert (metadata.leader("a", 0), metadata.leader_epoch("a", 0)) == (1, 6)
    learn(metadata, topic_message("a", [partition_message(0, 0, 5)]))
    assert metadata.leader("a", 0) == 1, "an answer older than the hint"


def test_a_hint_at_an_unknown_broker_asks_for_metadata_unless_its_address_came_along() -> None:
    metadata = make(metadata_max_age_ms=10**9)
    metadata.want("a", 0)
    learn(metadata, topic_message("a", [partition_message(0, 0, 5)]))
    metadata.saw_leader("a", 0, 7, 6)
    assert metadata.leader("a", 0) == 0
    assert (metadata.due_ns() or 0) < 10**9
    metadata.saw_nodes([Node(7, "seven", 1)])
    metadata.saw_leader("a", 0, 7, 6)
    assert metadata.leader("a", 0) == 7


def test_a_failed_request_is_wanted_still_and_backs_off() -> None:
    metadata = make()
    metadata.want("a", 0)
    metadata.begin(0)
    metadata.failed(0, ConnectionFailed("gone"))
    assert isinstance(metadata.last_error, ConnectionFailed)
    due_ns = metadata.due_ns()
    assert due_ns is not None
    assert 80 * NS_PER_MS <= due_ns <= 120 * NS_PER_MS
    assert names(metadata.begin(due_ns)) == ["a"]


def test_a_failed_request_for_a_new_topic_is_made_again() -> None:
    metadata = make()
    learn(metadata)
    metadata.want("a", 0)
    metadata.begin(0)
    metadata.failed(0, ConnectionFailed("gone"))
    assert names(metadata.begin(0)) == ["a"]


def test_an_answer_without_brokers_is_a_failure() -> None:
    metadata = make()
    learn(metadata)
    metadata.begin(0)
    metadata.apply(metadata_message({}), 0)
    assert metadata.nodes
    assert isinstance(metadata.last_error, ConnectionFailed)


def test_a_request_to_bootstrap_again_forgets_the_brokers() -> None:
    metadata = make()
    learn(metadata)
    metadata.begin(0)
    answer = metadata_message(NODES)
    answer.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
    metadata.apply(answer, 0)
    assert metadata.nodes == {}


def test_forgotten_topics_are_dropped_even_if_an_answer_still_names_them() -> None:
    metadata = make()
    metadata.want("a", 0)
    metadata.begin(0)
    metadata.forget("a")
    metadata.apply(metadata_message(NODES, [topic_message("a", [partition_message(0, 0, 0)])]), 0)
    assert metadata.topic("a") is None
    assert metadata.topic_name(TOPIC_ID) is None


def test_all_topics_can_be_wanted_and_deleted_ones_go() -> None:
    metadata = make("consumer")
    metadata.want_all()
    request = learn(
        metadata, topic_message("a", [partition_message(0, 0, 0)]), topic_message("b", [], OTHER_ID)
    )
    assert request.topics is None
    assert metadata.topics() == ["a", "b"]
    learn(metadata, topic_message("a", [partition_message(0, 0, 0)]))
    assert metadata.topics() == ["a"]


def test_topics_that_are_not_used_are_forgotten_by_a_producer() -> None:
    metadata = make(metadata_max_idle_ms=5000)
    metadata.want("idle", 0)
    metadata.want("busy", 0)
    learn(
        metadata,
        topic_message("idle", [partition_message(0, 0, 0)]),
        topic_message("busy", [partition_message(0, 0, 0)], OTHER_ID),
    )
    metadata.want("busy", 4000 * NS_PER_MS)
    metadata.request_update()
    assert names(metadata.begin(5000 * NS_PER_MS)) == ["busy"]
    assert metadata.topic("idle") is None


@pytest.mark.parametrize(
    ("scope", "configs", "at_once", "when_missing"),
    [
        ("producer", {}, True, True),
        ("consumer", {}, False, True),
        ("consumer", {"allow_auto_create_topics": False}, False, False),
        ("admin", {}, False, False),
    ],
)
def test_who_may_create_topics_by_asking(
    scope: str, configs: dict[str, Any], at_once: bool, when_missing: bool
) -> None:
    metadata = make(scope, **configs)
    metadata.want("a", 0)
    assert metadata.begin(0).allow_auto_topic_creation is at_once
    metadata.apply(
        metadata_message(NODES, [topic_message("a", [], error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]), 0
    )
    assert metadata.begin(1000 * NS_PER_MS).allow_auto_topic_creation is when_missing
    metadata.apply(
        metadata_message(NODES, [topic_message("a", [partition_message(0, 0, 0)])]), 1000 * NS_PER_MS
    )
    metadata.request_update()
    assert metadata.begin(2000 * NS_PER_MS).allow_auto_topic_creation is at_once


def test_partition_numbers_beyond_the_count_are_garbage() -> None:
    metadata = make()
    metadata.want("a", 0)
    learn(metadata, topic_message("a", [partition_message(2**30, 0, 0), partition_message(0, 1, 0)]))
    found = metadata.topic("a")
    assert found is not None
    assert [partition.leader for partition in found.partitions] == [1, NO_LEADER]


def test_an_answer_counts_for_those_who_asked_before_it_was_asked_for() -> None:
    metadata = make(metadata_max_idle_ms=5000)
    for topic in ("a", "idle"):
        metadata.want(topic, 0)
    learn(metadata, topic_message("a", [partition_message(0, 0, 0)]), topic_message("idle", [], OTHER_ID))
    assert (metadata.asked, metadata.answered("a"), metadata.answered("missing")) == (1, 1, 0)
    asked, version = metadata.asked, metadata.version
    metadata.forget("idle")
    assert metadata.version > version
    assert metadata.answered("a") <= asked, "what was forgotten is no answer"
    assert metadata.answered("idle") == 0
    metadata.begin(1)
    asked = metadata.asked  # asked for while a request is under way
    metadata.apply(metadata_message(NODES, [topic_message("a", [partition_message(0, 0, 0)])]), 2)
    assert metadata.answered("a") <= asked
    learn(metadata, topic_message("a", [partition_message(0, 0, 0)]), now_ns=3)
    assert metadata.answered("a") > asked
    metadata.check()


def test_nothing_is_kept_of_topics_that_were_deleted() -> None:
    metadata = make()
    counts = []
    for number in range(2_000):
        name, topic_id = f"t{number}", uuid.UUID(int=100 + number)
        metadata.want(name, 0)
        learn(metadata, topic_message(name, [partition_message(0, 0, 0)], topic_id))
        assert metadata.topic_name(topic_id) == name
        metadata.want(name, 0)
        metadata.request_update()
        learn(metadata, topic_message(name, [], NO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        assert metadata.topic_name(topic_id) == name, "answers that are under way still name it by its id"
        metadata.forget(name)
        assert metadata.topic_name(topic_id) is None
        metadata.check()
        if number in (499, 1_999):
            counts.append(kept(metadata))
    assert grown(*counts, least=100) == {}
