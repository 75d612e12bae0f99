"""Groups of the classic protocol: members that join, share, fall silent and leave."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypedDict, Unpack

from fairlead_kafka.lab.transcript.cluster_steps import appears, create, topic
from fairlead_kafka.lab.transcript.steps import (
    PREFIX,
    WARMING_UP,
    Body,
    Given,
    Seen,
    Step,
    answer,
    ask,
    given,
    request,
    send,
)
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

_MemberIdentity = LeaveGroupRequest.MemberIdentity
_CommitRow = OffsetCommitRequest.OffsetCommitRequestPartition
_CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
_FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup
_Share = SyncGroupRequest.SyncGroupRequestAssignment
TOPIC = PREFIX + "grouped"
GROUP = PREFIX + "group"
SIMPLE = PREFIX + "simple-group"
"""A group whose offsets are committed by hand; it never has a member."""
ABSENT = PREFIX + "absent"
"""A group that no member ever joins."""
_MINUTES = 60_000
_ASKS_FOR_ID = 4


Protocols: TypeAlias = Sequence[tuple[str, bytes]]
"""Names of assignors and the metadata for each."""
Shares: TypeAlias = Sequence[tuple[str, bytes]]
"""Names of kept JoinGroup answers and the assignment for each of these members."""


def member_of(kept: str) -> Callable[[Seen], str]:
    """A function that gives the member id in the JoinGroup answer that was kept under the name
    `kept`."""
    return lambda seen: str(seen[kept].member_id)


def generation_of(kept: str) -> Callable[[Seen], int]:
    """A function that gives the generation in the JoinGroup answer that was kept under the name
    `kept`."""
    return lambda seen: int(seen[kept].generation_id)


class _Join(TypedDict, total=False):
    """Arguments of a JoinGroup step beside group, member and versions."""

    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance: str
    protocol_type: str


def _join_fields(group: str, member: Given[str], **more: Unpack[_Join]) -> dict[str, Body]:
    return {
        "group_id": group,
        "session_timeout_ms": more.get("session_timeout_ms", 30_000),
        "rebalance_timeout_ms": more.get("rebalance_timeout_ms", _MINUTES),
        "member_id": member,
        "group_instance_id": more.get("instance"),
        "protocol_type": more.get("protocol_type", "consumer"),
        "protocols": [
            JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
            for name, metadata in more.get("protocols", (("range", b"meta"),))
        ],
        "reason": None,
    }


def join(
    name: str,
    group: str,
    member: Given[str] = "",
    versions: Iterable[int] = (9,),
    keep: str | None = None,
    on: str = "a",
    again_on: Iterable[int] = (),
    **more: Unpack[_Join],
) -> Step:
    """A JoinGroup step."""
    fields = _join_fields(group, member, **more)
    return request(name, ApiKey.JOIN_GROUP, versions, fields, on=on, keep=keep, again_on=again_on)


class _Sync(TypedDict, total=False):
    """Arguments of a SyncGroup step beside group, member and versions; also a member id and a
    generation other than the member's own."""

    member: str
    generation: int
    instance: str
    protocol_type: str
    protocol_name: str


def sync(
    name: str,
    group: str,
    kept: str,
    versions: Iterable[int] = (5,),
    shares: Shares = (),
    **more: Unpack[_Sync],
) -> Step:
    """A SyncGroup step of the member that joined by the JoinGroup answer `kept`; `shares`: (kept or
    member id, assignment)."""
    return request(name, ApiKey.SYNC_GROUP, versions, _sync_fields(group, kept, shares, **more))


def _sync_fields(group: str, kept: str, shares: Shares, **more: Unpack[_Sync]) -> dict[str, Body]:
    def assignments(seen: Seen) -> list[_Share]:
        return [_Share(member_id=seen[one].member_id, assignment=share) for one, share in shares]

    return {
        "group_id": group,
        "generation_id": more.get("generation", generation_of(kept)),
        "member_id": more.get("member", member_of(kept)),
        "group_instance_id": more.get("instance"),
        "protocol_type": more.get("protocol_type", "consumer"),
        "protocol_name": more.get("protocol_name", "range"),
        "assignments": assignments,
    }


def heartbeat(
    name: str,
    group: str,
    kept: str,
    versions: Iterable[int] = (4,),
    member: str | None = None,
    generation: int | None = None,
    instance: str | None = None,
    again_on: Iterable[int] = (),
) -> Step:
    """A Heartbeat step of the member that joined by the JoinGroup answer `kept`."""
    return ask(
        name,
        ApiKey.HEARTBEAT,
        versions,
        group_id=group,
        generation_id=generation_of(kept) if generation is None else generation,
        member_id=member_of(kept) if member is None else member,
        group_instance_id=instance,
        again_on=again_on,
    )


def leave(
    name: str, group: str, member: Given[str], versions: Iterable[int] = (5,), instance: str | None = None
) -> Step:
    """A LeaveGroup step."""

    def members(seen: Seen) -> list[_MemberIdentity]:
        return [
            _MemberIdentity(member_id=given(member, seen), group_instance_id=instance, reason="transcript")
        ]

    return ask(name, ApiKey.LEAVE_GROUP, versions, group_id=group, member_id=member, members=members)


def find(name: str, *keys: str, kind: int = 0, versions: Iterable[int] = range(7)) -> Step:
    """A FindCoordinator step."""
    return ask(
        name,
        ApiKey.FIND_COORDINATOR,
        versions,
        key=keys[0],
        key_type=kind,
        coordinator_keys=list(keys),
        again_on=WARMING_UP,
    )


def describe(name: str, *groups: str, versions: Iterable[int] = range(7)) -> Step:
    """A DescribeGroups step."""
    return ask(
        name, ApiKey.DESCRIBE_GROUPS, versions, groups=list(groups), include_authorized_operations=False
    )


_FOUND = [
    create("a topic for groups", topic(TOPIC, 2)),
    appears(TOPIC),
    find("of a group", GROUP),
    find("of two groups", GROUP, SIMPLE, versions=(4, 6)),
    find("of a group without a name", "", versions=(3, 4)),
    find("of a kind that is not there", "x", kind=9, versions=(3, 4)),
    find("of a share group with a bad key", "x", kind=2, versions=(6,)),
]


def _flow(version: int) -> list[Step]:
    """Steps of a member from join to leave, in the versions of requests that belong to JoinGroup
    `version`."""
    group, kept = f"{PREFIX}flow-{version}", f"flow-{version}"
    small = min(version, 5)
    first: list[Step] = []
    member: Given[str] = ""
    if version >= _ASKS_FOR_ID:
        first, member = (
            [
                join(
                    "a newcomer is given an id",
                    group,
                    versions=(version,),
                    keep=f"{kept}-id",
                    again_on=WARMING_UP,
                )
            ],
            member_of(f"{kept}-id"),
        )
    return [
        *first,
        join("a member alone", group, member, versions=(version,), keep=kept, again_on=WARMING_UP),
        heartbeat("before the sync", group, kept, (min(version, 4),)),
        sync("its share", group, kept, (small,), [(kept, b"all of it")]),
        sync("its share once more", group, kept, (small,)),
        heartbeat("after the sync", group, kept, (min(version, 4),)),
        join("the leader joins again", group, member_of(kept), versions=(version,), keep=kept),
        sync("another share", group, kept, (small,), [(kept, b"another")]),
        heartbeat("of the generation before", group, kept, (min(version, 4),), generation=1),
        leave("it leaves", group, member_of(kept), (small,)),
        heartbeat("after it left", group, kept, (min(version, 4),)),
        leave("it leaves again", group, member_of(kept), (small,)),
    ]


_LIVES = [step for version in range(10) for step in _flow(version)]

PAIR = PREFIX + "pair"
_TWO = [
    join("first: an id", PAIR, keep="first", again_on=WARMING_UP),
    join(
        "first alone",
        PAIR,
        member_of("first"),
        keep="first",
        protocols=(("range", b"r1"), ("sticky", b"s1")),
    ),
    sync("first has all", PAIR, "first", shares=[("first", b"all")]),
    describe("one member", PAIR),
    join("second: an id", PAIR, keep="second", on="b"),
    send(
        "second joins",
        ApiKey.JOIN_GROUP,
        9,
        on="b",
        **_join_fields(PAIR, member_of("second"), protocols=(("range", b"r2"), ("sticky", b"s2"))),
    ),
    heartbeat("first is told", PAIR, "first", again_on=(0,)),
    describe("while they join", PAIR, versions=(5,)),
    join(
        "first joins too",
        PAIR,
        member_of("first"),
        keep="first",
        protocols=(("range", b"r1"), ("sticky", b"s1")),
    ),
    answer("second is in", ApiKey.JOIN_GROUP, 9, on="b", keep="second"),
    describe("while they wait for shares", PAIR, versions=(5,)),
    send("second waits for its share", ApiKey.SYNC_GROUP, 5, on="b", **_sync_fields(PAIR, "second", ())),
    sync("first shares out", PAIR, "first", shares=[("first", b"one"), ("second", b"two")]),
    answer("second has its share", ApiKey.SYNC_GROUP, 5, on="b"),
    describe("two members", PAIR, versions=(0, 3, 4, 5, 6)),
    ask("all groups", ApiKey.LIST_GROUPS, range(6), mine=True),
    ask("stable groups", ApiKey.LIST_GROUPS, (4, 5), states_filter=["Stable"], mine=True),
    ask(
        "stable groups, in capitals",
        ApiKey.LIST_GROUPS,
        (5,),
        states_filter=["STABLE"],
        types_filter=["Classic"],
        mine=True,
    ),
    ask("groups in no known state", ApiKey.LIST_GROUPS, (4,), states_filter=["Tired"], mine=True),
    ask("groups of no known type", ApiKey.LIST_GROUPS, (5,), types_filter=["tired"], mine=True),
    ask("consumer groups of the new kind", ApiKey.LIST_GROUPS, (5,), types_filter=["consumer"], mine=True),
    ask("delete it with members", ApiKey.DELETE_GROUPS, range(3), groups_names=[PAIR]),
    sync("of another protocol", PAIR, "first", protocol_name="sticky"),
    sync("of another type", PAIR, "first", protocol_type="connect"),
    sync("by a stranger", PAIR, "first", (0, 3, 5), member="nobody"),
    sync("of a generation to come", PAIR, "first", (0, 3, 5), generation=99),
    heartbeat("by a stranger", PAIR, "first", range(5), member="nobody"),
    heartbeat("of a generation to come", PAIR, "first", range(5), generation=99),
    heartbeat("with a strange instance", PAIR, "first", (3, 4), instance="strange"),
    join("a stranger", PAIR, "nobody", (0, 4, 9)),
    join("without a common protocol", PAIR, "", (3, 9), protocols=(("other", b""),)),
    join("of another type", PAIR, "", (3, 9), protocol_type="connect"),
    leave("a stranger", PAIR, "nobody", (0, 2, 3, 5)),
    leave("second", PAIR, member_of("second")),
    heartbeat("first is told again", PAIR, "first"),
]

_BAD = [
    join("no group", "", versions=(3, 9)),
    join("a session too short", PREFIX + "bad", session_timeout_ms=1),
    join("a session too long", PREFIX + "bad", session_timeout_ms=10**8, versions=(3, 9)),
    join("no protocols", PREFIX + "bad", protocols=(), versions=(3, 9)),
    join("no protocol type", PREFIX + "bad", protocol_type="", versions=(3, 9)),
    join("a member of a group that is not there", PREFIX + "bad", "nobody", versions=(3, 9)),
    ask("heartbeat of no group", ApiKey.HEARTBEAT, (0, 4), group_id="", generation_id=1, member_id="x"),
    ask(
        "heartbeat of a group that is not there",
        ApiKey.HEARTBEAT,
        (0, 4),
        group_id=PREFIX + "bad",
        generation_id=1,
        member_id="x",
    ),
    ask(
        "sync of a group that is not there",
        ApiKey.SYNC_GROUP,
        (0, 5),
        group_id=PREFIX + "bad",
        generation_id=1,
        member_id="x",
    ),
    ask("sync of no group", ApiKey.SYNC_GROUP, (0, 5), group_id="", generation_id=1, member_id="x"),
    leave("a group that is not there", PREFIX + "bad", "x", (0, 3, 5)),
    leave("no group", "", "x", (0, 3, 5)),
    describe("groups that are not there", ABSENT, versions=range(7)),
    describe("no group", "", versions=(0, 5, 6)),
    describe("none", versions=(0, 5)),
    ask("delete groups that are not there", ApiKey.DELETE_GROUPS, range(3), groups_names=[ABSENT]),
    ask("delete no group", ApiKey.DELETE_GROUPS, (2,), groups_names=[""]),
    ask("delete none", ApiKey.DELETE_GROUPS, (2,), groups_names=[]),
]

_STATIC = PREFIX + "static"
_READS_TOPIC = b"\0\0" + struct.pack(">ih", 1, len(TOPIC)) + TOPIC.encode() + b"\xff\xff\xff\xff"
"""A consumer's subscription to TOPIC: the coordinator compares what a member that returns reads."""
_SAME: _Join = {"instance": "i1", "protocols": (("range", _READS_TOPIC),)}
_STATICS = [
    join("a static member", _STATIC, keep="static", again_on=WARMING_UP, versions=(5,), **_SAME),
    sync("its share", _STATIC, "static", shares=[("static", b"all")], instance="i1"),
    join("it comes again without its id", _STATIC, keep="returned", versions=(9,), **_SAME),
    heartbeat("its old self", _STATIC, "static", instance="i1", versions=(3, 4)),
    heartbeat("its new self", _STATIC, "returned", instance="i1"),
    sync("its old self syncs", _STATIC, "static", instance="i1"),
    describe("with an instance", _STATIC, versions=(4, 5)),
    leave("by a wrong id", _STATIC, "wrong", (3, 5), instance="i1"),
    leave("by another instance", _STATIC, "", (3, 5), instance="i2"),
    leave("by its instance", _STATIC, "", (5,), instance="i1"),
    describe("empty", _STATIC, versions=(5,)),
]


STEPS: list[Step] = [*_FOUND, *_LIVES, *_TWO, *_BAD, *_STATICS]
