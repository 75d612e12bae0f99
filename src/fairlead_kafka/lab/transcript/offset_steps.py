"""Committed offsets of groups: committed, fetched and deleted, with members and without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict, Unpack
from uuid import UUID

from fairlead_kafka.lab.transcript.cluster_steps import create, topic
from fairlead_kafka.lab.transcript.group_steps import ABSENT, PAIR, SIMPLE, TOPIC, describe
from fairlead_kafka.lab.transcript.steps import (
    JUST_CHANGED,
    NO_ID,
    PREFIX,
    UNKNOWN_ID,
    WARMING_UP,
    Given,
    Seen,
    Step,
    ask,
    given,
)
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    DeleteTopicsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)

_CommitRow = OffsetCommitRequest.OffsetCommitRequestPartition
_CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
_FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup


class _Commit(TypedDict, total=False):
    """Arguments of an OffsetCommit step beside group, partition and offset."""

    epoch: int
    metadata: str | None
    topic_id: Given[UUID]
    generation: int
    member: str
    again_on: Iterable[int]


def commit(
    name: str,
    group: str,
    versions: Iterable[int] = (9,),
    to: str = TOPIC,
    partition: int = 0,
    offset: int = 7,
    **more: Unpack[_Commit],
) -> Step:
    """An OffsetCommit step of one partition."""

    def rows(seen: Seen) -> list[_CommitTopic]:
        row = _CommitRow(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=more.get("epoch", -1),
            committed_metadata=more.get("metadata", "m"),
        )
        return [
            _CommitTopic(name=to, topic_id=given(more.get("topic_id", seen.id(to)), seen), partitions=[row])
        ]

    return ask(
        name,
        ApiKey.OFFSET_COMMIT,
        versions,
        group_id=group,
        generation_id_or_member_epoch=more.get("generation", -1),
        member_id=more.get("member", ""),
        group_instance_id=None,
        retention_time_ms=-1,
        topics=rows,
        again_on={*WARMING_UP, *more.get("again_on", ())},
    )


class _Committed(TypedDict, total=False):
    """Arguments of an OffsetFetch step beside group and topics."""

    topic_id: Given[UUID]
    member: str
    epoch: int
    require_stable: bool
    again_on: Iterable[int]


def committed(
    name: str,
    group: str,
    versions: Iterable[int] = (9,),
    topics: Sequence[tuple[str, Iterable[int]]] | None = ((TOPIC, (0, 1)),),
    **more: Unpack[_Committed],
) -> Step:
    """An OffsetFetch step; `topics` None: all of them."""

    made, made_with_id = (
        OffsetFetchRequest.OffsetFetchRequestTopic,
        OffsetFetchRequest.OffsetFetchRequestTopics,
    )
    named = [(one, list(numbers)) for one, numbers in topics or ()]
    rows = None if topics is None else [made(name=one, partition_indexes=numbers) for one, numbers in named]

    def groups(seen: Seen) -> list[_FetchGroup]:
        with_ids = [
            made_with_id(
                name=one, topic_id=given(more.get("topic_id", seen.id(one)), seen), partition_indexes=numbers
            )
            for one, numbers in named
        ]
        member, epoch, wanted = (
            more.get("member"),
            more.get("epoch", -1),
            None if topics is None else with_ids,
        )
        return [_FetchGroup(group_id=group, member_id=member, member_epoch=epoch, topics=wanted)]

    stable, again_on = more.get("require_stable", False), {*WARMING_UP, *more.get("again_on", ())}
    return ask(
        name,
        ApiKey.OFFSET_FETCH,
        versions,
        group_id=group,
        topics=rows,
        groups=groups,
        require_stable=stable,
        again_on=again_on,
    )


_OFFSETS = [
    commit("by hand", SIMPLE, range(2, 11), again_on=JUST_CHANGED),
    commit("another", SIMPLE, partition=1, offset=11, epoch=0, metadata=None),
    committed("two partitions", SIMPLE, range(1, 11)),
    committed("all", SIMPLE, range(2, 11), topics=None),
    committed("none", SIMPLE, (1, 7, 8, 9), topics=()),
    committed("of a partition that is not there", SIMPLE, (1, 9), topics=((TOPIC, (9,)),)),
    committed("of a topic that is not there", SIMPLE, (1, 8, 9), topics=((PREFIX + "missing", (0,)),)),
    committed(
        "of an id that is not there", SIMPLE, (10,), topics=((PREFIX + "missing", (0,)),), topic_id=UNKNOWN_ID
    ),
    committed("of a group that is not there", ABSENT, (1, 5, 8, 9, 10)),
    committed("all of a group that is not there", ABSENT, (5, 8), topics=None),
    committed("of no group", "", (1, 8)),
    committed("as a member that is not there", SIMPLE, (9,), member="nobody", epoch=3),
    committed("stable ones", SIMPLE, (7, 9), require_stable=True),
    commit("of a topic that is not there", SIMPLE, (2, 9), to=PREFIX + "missing"),
    commit("of an id that is not there", SIMPLE, (10,), topic_id=UNKNOWN_ID),
    commit("of no id", SIMPLE, (10,), topic_id=NO_ID),
    commit("of a partition that is not there", SIMPLE, (2, 9, 10), partition=9),
    commit("below zero", SIMPLE, offset=-3),
    commit("metadata too long", SIMPLE, (2, 9), metadata="x" * 5000),
    commit("as a member that is not there", SIMPLE, (2, 9, 10), member="nobody", generation=3),
    commit("of no group", "", (2, 9)),
    commit("of a group that is not there, as a member", ABSENT, (2, 9), member="nobody", generation=3),
    commit("into a group with members, by hand", PAIR, (2, 9)),
    ask(
        "nothing",
        ApiKey.OFFSET_COMMIT,
        (2, 9),
        group_id=SIMPLE,
        generation_id_or_member_epoch=-1,
        retention_time_ms=-1,
        topics=[],
    ),
    ask(
        "a retention of its own",
        ApiKey.OFFSET_COMMIT,
        (4,),
        group_id=PREFIX + "kept",
        generation_id_or_member_epoch=-1,
        retention_time_ms=5,
        topics=[_CommitTopic(name=TOPIC, partitions=[_CommitRow(partition_index=0, committed_offset=1)])],
    ),
    describe("a group of offsets alone", SIMPLE, versions=(0, 5, 6)),
]


def _drop(name: str, group: str, to: str = TOPIC, partition: int = 0) -> Step:
    rows = [
        OffsetDeleteRequest.OffsetDeleteRequestTopic(
            name=to, partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=partition)]
        )
    ]
    return ask(name, ApiKey.OFFSET_DELETE, (0,), group_id=group, topics=rows)


_DROPPED = [
    _drop("one", SIMPLE, partition=1),
    committed("what is left", SIMPLE, topics=None),
    _drop("one that is not there", SIMPLE, partition=1),
    _drop("of a partition that is not there", SIMPLE, partition=9),
    _drop("of a topic that is not there", SIMPLE, to=PREFIX + "missing"),
    _drop("of a group that is not there", ABSENT),
    _drop("of no group", ""),
    ask("delete the group", ApiKey.DELETE_GROUPS, (2,), groups_names=[SIMPLE]),
    committed("of a group that is gone", SIMPLE),
    ask("delete it again", ApiKey.DELETE_GROUPS, (2,), groups_names=[SIMPLE]),
]


_AGAIN = PREFIX + "made-again"


def _first_id(seen: Seen) -> UUID:
    """The id of the topic before it was deleted and made again."""
    found: UUID = seen["made at first"].topics[0].topic_id
    return found


_MADE_AGAIN = [
    create("to be made again", topic(_AGAIN)),
    ask(
        "made at first",
        ApiKey.METADATA,
        (13,),
        topics=[MetadataRequest.MetadataRequestTopic(name=_AGAIN)],
        keep="made at first",
        again_on=JUST_CHANGED,
        allow_auto_topic_creation=False,
    ),
    commit("of the topic at first", _AGAIN, (10,), to=_AGAIN, again_on=JUST_CHANGED),
    ask(
        "the topic at first",
        ApiKey.DELETE_TOPICS,
        (6,),
        topics=[DeleteTopicsRequest.DeleteTopicState(name=_AGAIN)],
        timeout_ms=10_000,
    ),
    create("made again", topic(_AGAIN)),
    committed("of the new topic", _AGAIN, (10,), topics=((_AGAIN, (0,)),), again_on=JUST_CHANGED),
    committed("of the id before", _AGAIN, (10,), topics=((_AGAIN, (0,)),), topic_id=_first_id),
    commit("of the id before", _AGAIN, (10,), to=_AGAIN, topic_id=_first_id),
    commit("of the new topic", _AGAIN, (10,), to=_AGAIN, offset=3, again_on=JUST_CHANGED),
    committed("of the new topic, once it has some", _AGAIN, (9, 10), topics=((_AGAIN, (0,)),)),
]
"""A topic that is deleted and made again has no offsets of the one before."""

STEPS: list[Step] = [*_OFFSETS, *_DROPPED, *_MADE_AGAIN]
