"""Records of consumer groups: Kafka's bytes, there and back."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.broker.consumer_groups import MemberState
from fairlead_kafka.broker.consumer_groups.records import (
    About,
    ClassicAbout,
    Current,
    CurrentKey,
    EpochKey,
    EpochRecord,
    GroupsKey,
    GroupsValue,
    MemberKey,
    PatternKey,
    Resolved,
    TargetEpochKey,
    TargetEpochRecord,
    TargetKey,
    decode_groups_key,
    decode_groups_value,
    encode_groups_key,
    encode_groups_value,
)

TOPIC = UUID(int=7)
CLASSIC = ClassicAbout(6_000, (("range", b"meta"), ("sticky", b"")))
SAMPLES: list[tuple[GroupsKey, GroupsValue]] = [
    (EpochKey("g"), EpochRecord(3, 0)),
    (EpochKey("g"), EpochRecord(3, -5)),
    (MemberKey("g", "m"), About()),
    (
        MemberKey("g", "m"),
        About("i", "r", "client", "/127.0.0.1", frozenset({"b", "a"}), "x.*", 60_000, "range", CLASSIC),
    ),
    (TargetEpochKey("g"), TargetEpochRecord(3, 0)),
    (TargetEpochKey("g"), TargetEpochRecord(3, 1_700_000_000_000)),
    (TargetKey("g", "m"), {}),
    (TargetKey("g", "m"), {TOPIC: frozenset({2, 0}), UUID(int=9): frozenset({1})}),
    (CurrentKey("g", "m"), Current()),
    (
        CurrentKey("g", "m"),
        Current(5, 4, MemberState.UNREVOKED_PARTITIONS, {TOPIC: {0: 5, 3: 2}}, {TOPIC: {1: 4}}),
    ),
    (PatternKey("g", "x.*"), Resolved(frozenset({"x1", "x2"}), 4, 5)),
]


@pytest.mark.parametrize(("key", "value"), SAMPLES)
def test_a_record_comes_back_as_it_went(key: GroupsKey, value: GroupsValue) -> None:
    assert decode_groups_key(encode_groups_key(key)) == key
    assert decode_groups_value(key, encode_groups_value(key, value)) == value


def test_bytes_are_those_that_kafka_writes() -> None:
    assert encode_groups_key(CurrentKey("g", "m")) == bytes.fromhex("0008 0001 67 0001 6d")
    assert encode_groups_value(EpochKey("g"), EpochRecord(3, 0)) == bytes.fromhex("0000 00000003 00")
    epoch = encode_groups_value(EpochKey("g"), EpochRecord(3, 1))
    assert epoch == bytes.fromhex("0000 00000003 01 00 08 0000000000000001")
    current = encode_groups_value(CurrentKey("g", "m"), Current(5, 4, assigned={TOPIC: {1: 2}}))
    row = TOPIC.bytes + bytes.fromhex("02 00000001 01 00 05 02 00000002")
    assert current == bytes.fromhex("0000 00000005 00000004 00 02") + row + bytes.fromhex("01 00")


def test_epochs_that_are_not_told_are_the_members_own() -> None:
    row = TOPIC.bytes + bytes.fromhex("02 00000001 00")
    data = bytes.fromhex("0000 00000005 00000004 63 02") + row + bytes.fromhex("01 00")
    current = decode_groups_value(CurrentKey("g", "m"), data)
    assert current == Current(5, 4, MemberState.UNKNOWN, {TOPIC: {1: 5}})


def test_other_kinds_of_keys_are_not_ours() -> None:
    assert [decode_groups_key(bytes([0, number])) for number in (0, 1, 2, 4, 9, 15, 17)] == [None] * 7


@pytest.mark.parametrize(("key", "value"), SAMPLES)
def test_garbage_is_told_as_such(key: GroupsKey, value: GroupsValue) -> None:
    data = encode_groups_value(key, value)
    rng = random.Random(repr(key))
    for cut in range(len(data) - 1):
        with pytest.raises(DecodeError):
            decode_groups_value(key, data[:cut])
    for _ in range(200):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] = rng.randrange(256)
        try:
            decode_groups_value(key, bytes(changed))
        except DecodeError:
            continue
    with pytest.raises(DecodeError, match="version 1"):
        decode_groups_value(key, b"\0\1" + data[2:])
    with pytest.raises(DecodeError):
        decode_groups_key(encode_groups_key(key)[:-1])
