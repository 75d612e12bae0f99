"""Decisions and results as they cross between a broker and the controller: the same again, and
nothing else is built from what arrives."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any
from uuid import UUID

import pytest

from fairlead_kafka.base.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.ids import Node
from fairlead_kafka.broker.control.plain import dump, load
from fairlead_kafka.broker.controller import AlterOperation, ConfigAlteration, NewTopic, decisions
from fairlead_kafka.broker.controller.controller import DECIDERS
from tests.support.controllers import make_controller

ALTERATIONS = [
    ConfigAlteration("retention.ms", AlterOperation.SET, "1"),
    ConfigAlteration("retention.ms", AlterOperation.DELETE),
]
SAMPLES: dict[str, Any] = {
    "topics": [
        NewTopic("events", 3, assignments={0: [1, 2]}, configs={"retention.ms": None}),
        "a",
        UUID(int=7),
    ],
    "alterations": ALTERATIONS,
    "decision": decisions.DeleteTopics(["a"]),
    "spender": decisions.Spender("alice", None, True),
    "node": Node(3, "localhost", 9092, None),
    "changes": [decisions.ProposedIsr("00ff", 1, 2, 3, [1, 2], (4, 5))],
    "moves": [decisions.Reassignment("events", 0, [1, 2]), decisions.Reassignment("events", 1, None)],
    "partitions": [("events", 0)],
    "bindings": [
        AclBinding(
            AclResourceType.TOPIC,
            "events",
            AclPatternType.PREFIXED,
            "User:alice",
            "*",
            AclOperation.READ,
            AclPermission.ALLOW,
        )
    ],
    "filters": [AclFilter(), AclFilter(AclResourceType.GROUP, "g", AclPatternType.MATCH, "User:bob", "::1")],
}


@pytest.mark.parametrize("kind", DECIDERS, ids=lambda kind: kind.__name__)
def test_every_decision_crosses_unchanged(kind: Any) -> None:
    view = make_controller()
    decision = kind(**{name: SAMPLES.get(name, 5) for name in (one.name for one in fields(kind))})
    assert load(dump([1, decision], view), view) == [1, decision]


def test_a_topic_that_both_sides_have_is_named_and_any_other_is_whole() -> None:
    here, there = make_controller(), make_controller()
    topic = here.create_topic("events", 2)
    there.replay(here.snapshot())
    assert len(dump(topic, here)) < 60
    assert load(dump(topic, here), there) is there.image.topics["events"]
    here.delete_topic("events")
    gone = load(dump(topic, here), there)
    assert gone == topic


def test_an_error_crosses_with_its_code_and_words() -> None:
    view = make_controller()
    error = load(dump(BrokerError(ErrorCode.POLICY_VIOLATION, "too many"), view), view)
    assert (error.code, str(error)) == (ErrorCode.POLICY_VIOLATION, "POLICY_VIOLATION (44): too many")


GARBAGE: list[object] = [
    {"object": ["Controller"]},
    {"object": ["NewTopic"]},
    {"enum": ["AlterOperation", 77]},
    {"known": "00"},
    {"uuid": 1},
    {"other": 1},
    {},
]


@pytest.mark.parametrize("content", GARBAGE, ids=str)
def test_whatever_else_arrives_is_refused(content: object) -> None:
    with pytest.raises(DecodeError):
        load(json.dumps(content).encode(), make_controller())


def test_what_is_not_plain_does_not_leave() -> None:
    with pytest.raises(TypeError, match="plain values"):
        dump(object(), make_controller())
