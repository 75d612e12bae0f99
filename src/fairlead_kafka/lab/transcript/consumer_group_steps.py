"""Groups of the consumer protocol (KIP-848): members that join, share, fall behind, are fenced and
leave; static ones, expressions, and groups that change their protocol while they have members."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TypedDict, Unpack

from fairlead_kafka.lab.transcript.cluster_steps import appears, create, topic
from fairlead_kafka.lab.transcript.group_steps import describe as describe_classic
from fairlead_kafka.lab.transcript.group_steps import heartbeat as heartbeat_classic
from fairlead_kafka.lab.transcript.group_steps import join, member_of, sync
from fairlead_kafka.lab.transcript.group_steps import leave as leave_classic
from fairlead_kafka.lab.transcript.steps import PREFIX, WARMING_UP, Given, Seen, Step, ask, given, request
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)

_Owned = ConsumerGroupHeartbeatRequest.TopicPartitions
TOPIC = PREFIX + "kip-848"
OTHER = PREFIX + "kip-848-other"
GROUP = PREFIX + "consumers"
_MINUTES = 60_000


class _Beat(TypedDict, total=False):
    """Arguments of a heartbeat beside group, member and epoch."""

    instance: str
    rack: str
    rebalance_timeout_ms: int
    topics: Sequence[str] | None
    pattern: str | None
    assignor: str
    owned: Sequence[tuple[str, Sequence[int]]] | None


def epoch_of(kept: str) -> Callable[[Seen], int]:
    """A function that gives the member epoch in the heartbeat answer that was kept under the name
    `kept`."""
    return lambda seen: int(seen[kept].member_epoch)


def beat(
    name: str,
    member: str,
    epoch: Given[int],
    versions: Iterable[int] = (1,),
    keep: str | None = None,
    group: str = GROUP,
    **more: Unpack[_Beat],
) -> Step:
    """A ConsumerGroupHeartbeat step; fields that are not given are null."""
    owned = more.get("owned")

    def partitions(seen: Seen) -> list[_Owned] | None:
        if owned is None:
            return None
        return [_Owned(topic_id=seen.id(one), partitions=list(numbers)) for one, numbers in owned]

    return request(
        name,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        versions,
        {
            "group_id": group,
            "member_id": member,
            "member_epoch": epoch,
            "instance_id": more.get("instance"),
            "rack_id": more.get("rack"),
            "rebalance_timeout_ms": more.get("rebalance_timeout_ms", -1),
            "subscribed_topic_names": more.get("topics"),
            "subscribed_topic_regex": more.get("pattern"),
            "server_assignor": more.get("assignor"),
            "topic_partitions": partitions,
        },
        keep=keep,
        again_on=WARMING_UP,
    )


def enter(name: str, member: str, keep: str, group: str = GROUP, **more: Unpack[_Beat]) -> Step:
    """A ConsumerGroupHeartbeat step by which a member joins."""
    more.setdefault("rebalance_timeout_ms", _MINUTES)
    more.setdefault("topics", [TOPIC])
    more.setdefault("owned", ())
    return beat(name, member, 0, keep=keep, group=group, **more)


def describe(name: str, *groups: str, versions: Iterable[int] = (0, 1)) -> Step:
    """A ConsumerGroupDescribe step."""
    return ask(
        name,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        versions,
        group_ids=list(groups or (GROUP,)),
        include_authorized_operations=False,
    )


def commit(
    name: str, member: str, epoch: Given[int], partition: int = 0, version: int = 9, group: str = GROUP
) -> Step:
    """An OffsetCommit step of one partition, by a member at an epoch."""
    row = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=0, committed_leader_epoch=-1, committed_metadata=""
    )
    return ask(
        name,
        ApiKey.OFFSET_COMMIT,
        (version,),
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        group_instance_id=None,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[row])],
    )


def fetch(name: str, member: str | None, epoch: Given[int], group: str = GROUP) -> Step:
    """An OffsetFetch step, by a member at an epoch."""

    def groups(seen: Seen) -> list[OffsetFetchRequest.OffsetFetchRequestGroup]:
        rows = [OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
        return [
            OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=group, member_id=member, member_epoch=given(epoch, seen), topics=rows
            )
        ]

    return ask(name, ApiKey.OFFSET_FETCH, (9,), groups=groups, require_stable=False)


def _listed(name: str, *types: str) -> Step:
    return ask(name, ApiKey.LIST_GROUPS, (5,), states_filter=[], types_filter=list(types), mine=True)


def _delete(name: str, group: str) -> Step:
    return ask(name, ApiKey.DELETE_GROUPS, (2,), groups_names=[group])


TOPICS: list[Step] = [
    create("topics for the consumer protocol", topic(TOPIC, 2), topic(OTHER, 1)),
    appears(TOPIC),
    appears(OTHER),
]
"""Steps that come long before the others: a coordinator of Apache Kafka learns of topics after its
broker does, and would raise a group's epoch once more for that."""

_BAD = [
    beat("without a group", "m", 0, group=""),
    beat("without an id", "", 0),
    beat("without an id, later", "", 3, versions=(0, 1)),
    beat("with a blank instance", "m", 0, instance=" "),
    beat("with a blank rack", "m", 0, rack=""),
    beat("that joins and says nothing", "m", 0),
    beat("that joins without topics", "m", 0, rebalance_timeout_ms=_MINUTES, owned=()),
    beat("that joins and owns", "m", 0, rebalance_timeout_ms=_MINUTES, topics=[TOPIC], owned=[(TOPIC, [0])]),
    beat(
        "of an assignor that is not there", "m", 0, rebalance_timeout_ms=1, topics=[], owned=(), assignor="x"
    ),
    beat("that leaves for a while without an instance", "m", -2),
    beat("of an epoch that cannot be", "m", -3),
    beat("to a group that is not there", "m", 3),
    beat("that leaves a group that is not there", "m", -1),
    describe("of a group that is not there", PREFIX + "no-group"),
    beat("with an expression that is none", "m", 0, rebalance_timeout_ms=1, pattern="(a", owned=()),
    beat("with an expression that looks ahead", "m", 0, rebalance_timeout_ms=1, pattern="(?=a)", owned=()),
]

_PAIR = [
    enter("first", "first", "first"),
    describe("one member"),
    beat("first again", "first", epoch_of("first"), (0, 1)),
    beat("first says what it owns", "first", epoch_of("first"), owned=[(TOPIC, [0, 1])]),
    beat(
        "first says all",
        "first",
        epoch_of("first"),
        rebalance_timeout_ms=_MINUTES,
        topics=[TOPIC],
        owned=[(TOPIC, [0, 1])],
    ),
    beat("first of a greater epoch", "first", 99),
    beat("somebody else", "nobody", 1),
    enter("second", "second", "second", rack="r1", assignor="uniform"),
    describe("before the first gives up"),
    beat("first hears of it", "first", epoch_of("first"), keep="first-1", owned=[(TOPIC, [0, 1])]),
    describe("while the first gives up"),
    beat("second waits", "second", epoch_of("second"), keep="second-1"),
    beat("first gives up", "first", epoch_of("first-1"), keep="first-2", owned=[(TOPIC, [0])]),
    beat("second has it", "second", epoch_of("second-1"), keep="second-2", owned=()),
    describe("both have theirs"),
    beat("first of the epoch before, owning less", "first", epoch_of("first-1"), owned=[(TOPIC, [0])]),
    beat("first of the epoch before, saying nothing", "first", epoch_of("first-1")),
]

_OFFSETS = [
    commit("of the first", "first", epoch_of("first-2")),
    commit("of the first, at the epoch before", "first", epoch_of("first-1")),
    commit("of the second, at an epoch without the partition", "second", 1, 1),
    commit("of what is another's", "second", 1, 0),
    commit("of a later epoch", "first", 99),
    commit("of nobody", "nobody", 1),
    commit("not of a member", "", -1),
    commit("in an older version", "first", epoch_of("first-2"), version=8),
    fetch("of the first", "first", epoch_of("first-2")),
    fetch("of another epoch", "first", 99),
    fetch("of nobody", "nobody", 1),
    fetch("not of a member", None, -1),
    _listed("of the consumer protocol", "consumer"),
    describe_classic("a consumer group", GROUP),
    _delete("a group with members", GROUP),
    ask(
        "offsets of a topic that is read",
        ApiKey.OFFSET_DELETE,
        (0,),
        group_id=GROUP,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=TOPIC,
                partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)],
            )
        ],
    ),
]

_CHANGES = [
    beat("first reads another topic", "first", epoch_of("first-2"), keep="first-3", topics=[OTHER]),
    describe("who reads something else"),
    beat("first gives that up", "first", epoch_of("first-3"), keep="first-4", owned=()),
    beat("second is given it", "second", epoch_of("second-2"), keep="second-3"),
    describe("each reads its own"),
    beat("second leaves", "second", -1),
    beat("second leaves again", "second", -1),
    describe("one is left"),
    beat("first goes on", "first", epoch_of("first-4"), keep="first-5"),
    beat("first leaves", "first", -1),
    describe("empty"),
    fetch("of an empty group", None, -1),
    enter("third, with a topic that is not there", "third", "third", topics=[PREFIX + "not-yet"]),
    describe("of nothing"),
    beat("third leaves", "third", -1),
    _delete("an empty group", GROUP),
    describe("deleted"),
]

_STATIC = PREFIX + "static-consumers"
_STATICS = [
    enter("static", "one", "static", group=_STATIC, instance="i1", assignor="range"),
    enter("another of its instance", "two", "two", group=_STATIC, instance="i1"),
    beat("by a wrong id", "two", epoch_of("static"), group=_STATIC, instance="i1"),
    beat("by an instance that is not there", "one", epoch_of("static"), group=_STATIC, instance="i2"),
    beat("leaves for a while", "one", -2, group=_STATIC, instance="i1"),
    describe("while it is away", _STATIC),
    enter("comes again", "two", "two", group=_STATIC, instance="i1"),
    describe("after it came again", _STATIC),
    beat("its old self", "one", epoch_of("static"), group=_STATIC, instance="i1"),
    beat("leaves for good", "two", -1, group=_STATIC, instance="i1"),
    describe("after it left", _STATIC),
]


def _subscription(*topics: str, owned: Sequence[int] = ()) -> bytes:
    names = b"".join(struct.pack(">h", len(one)) + one.encode() for one in topics)
    partitions = struct.pack(">i", 0)
    if owned:
        name = struct.pack(">h", len(TOPIC)) + TOPIC.encode()
        partitions = struct.pack(">i", 1) + name + struct.pack(f">i{len(owned)}i", len(owned), *owned)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">i", -1) + partitions


_ASSIGNED = (
    struct.pack(">hih", 1, 1, len(TOPIC))
    + TOPIC.encode()
    + struct.pack(">iii", 2, 0, 1)
    + struct.pack(">i", -1)
)
_MIXED = PREFIX + "mixed"
_READS = (("range", _subscription(TOPIC)),)
_UPGRADE = [
    join("an id", _MIXED, keep="old", again_on=WARMING_UP),
    join("a classic member alone", _MIXED, member_of("old"), keep="old", protocols=_READS),
    sync("it has all", _MIXED, "old", shares=[("old", _ASSIGNED)]),
    beat("a heartbeat to a classic group", "new", 3, group=_MIXED),
    enter("a member of the consumer protocol", "new", "new", group=_MIXED),
    describe("both protocols", _MIXED, versions=(1,)),
    heartbeat_classic("is told to join again", _MIXED, "old"),
    join(
        "it joins again",
        _MIXED,
        member_of("old"),
        keep="old",
        protocols=(("range", _subscription(TOPIC, owned=[0, 1])),),
    ),
    sync("its share", _MIXED, "old"),
    heartbeat_classic("has something to give up", _MIXED, "old"),
    join(
        "it gave up",
        _MIXED,
        member_of("old"),
        keep="old",
        protocols=(("range", _subscription(TOPIC, owned=[0])),),
    ),
    sync("its share is smaller", _MIXED, "old"),
    heartbeat_classic("nothing is new", _MIXED, "old"),
    beat("the other has its share", "new", epoch_of("new"), keep="new", group=_MIXED, owned=()),
    describe("both have theirs", _MIXED, versions=(1,)),
    sync("of another generation", _MIXED, "old", generation=1),
    heartbeat_classic("of another generation", _MIXED, "old", generation=1),
    heartbeat_classic("of the other's id", _MIXED, "old", member="new"),
    join("of a protocol that others have not", _MIXED, "x", protocols=(("odd", _subscription(TOPIC)),)),
]
_DOWNGRADE = [
    beat("the member of the consumer protocol leaves", "new", -1, group=_MIXED),
    describe("a classic group again", _MIXED, versions=(1,)),
    describe_classic("a classic group again", _MIXED, versions=(6,)),
    heartbeat_classic("rebalances", _MIXED, "old"),
    join("joins the classic group", _MIXED, member_of("old"), keep="old", protocols=_READS),
    sync("has all again", _MIXED, "old", shares=[("old", _ASSIGNED)]),
    leave_classic("the last one leaves", _MIXED, member_of("old")),
    enter("a member in an empty classic group", "new", "new", group=_MIXED),
    leave_classic("that somebody takes out by the classic protocol", _MIXED, "new"),
    describe("without it", _MIXED, versions=(1,)),
    enter("again", "new", "new", group=_MIXED),
    describe("of the consumer protocol again", _MIXED, versions=(1,)),
    beat("it leaves", "new", -1, group=_MIXED),
    join("an id in an empty consumer group", _MIXED, keep="old"),
    join("a classic member in it", _MIXED, member_of("old"), keep="old", protocols=_READS),
    leave_classic("leaves", _MIXED, member_of("old")),
]

STEPS: list[Step] = [*_BAD, *_PAIR, *_OFFSETS, *_CHANGES, *_STATICS, *_UPGRADE, *_DOWNGRADE]
