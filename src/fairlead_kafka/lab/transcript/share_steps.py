"""Share groups (KIP-932): members that join, acquire, acknowledge, fall behind and leave; offsets
that are set and deleted; states at the share coordinator; and groups of other kinds by the same
name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fairlead_kafka.lab.transcript.cluster_steps import appears, create, topic
from fairlead_kafka.lab.transcript.consumer_group_steps import enter
from fairlead_kafka.lab.transcript.group_steps import describe as describe_classic
from fairlead_kafka.lab.transcript.group_steps import find, join
from fairlead_kafka.lab.transcript.record_steps import produce
from fairlead_kafka.lab.transcript.steps import (
    PREFIX,
    UNKNOWN_ID,
    WARMING_UP,
    Body,
    Given,
    Seen,
    Step,
    ask,
    batch,
    request,
)
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    IncrementalAlterConfigsRequest,
    OffsetFetchRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)

TOPIC = PREFIX + "shared"
GROUP = PREFIX + "sharers"
CLASSIC = PREFIX + "no-sharers"
STATED = PREFIX + "stated"
MISSING = PREFIX + "missing"
_GROUP_RESOURCE = 32

_Ack = ShareFetchRequest.AcknowledgementBatch
Said = Sequence[tuple[int, int, Sequence[int]]]
"""Acknowledged offsets: (first, last, types)."""


def beat(name: str, epoch: Given[int], keep: str | None = None, group: str = GROUP, **more: Body) -> Step:
    """A ShareGroupHeartbeat step."""
    return request(
        name,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        (1,),
        {
            "group_id": group,
            "member_id": more.get("member", "sharer"),
            "member_epoch": epoch,
            "rack_id": more.get("rack"),
            "subscribed_topic_names": more.get("topics"),
        },
        keep=keep,
        again_on=WARMING_UP,
    )


def epoch_of(kept: str) -> Callable[[Seen], int]:
    """A function that gives the member epoch in the heartbeat answer that was kept under the name
    `kept`."""
    return lambda seen: int(seen[kept].member_epoch)


def _has_partitions(answer: Message) -> bool:
    return answer.error_code != 0 or bool(answer.assignment and answer.assignment.topic_partitions)


def _batches(said: Said) -> list[_Ack]:
    return [
        _Ack(first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, types in said
    ]


def share_fetch(
    name: str,
    epoch: int,
    versions: Iterable[int] = (1,),
    said: Said = (),
    named: bool = True,
    group: str | None = GROUP,
    **more: Body,
) -> Step:
    """A ShareFetch step; `said`: acknowledgements in it; `named`: it names the topic's
    partition."""

    def topics(seen: Seen) -> list[ShareFetchRequest.FetchTopic]:
        number = int(str(more.get("partition", 0)))
        row = ShareFetchRequest.FetchPartition(partition_index=number, acknowledgement_batches=_batches(said))
        topic_id = UNKNOWN_ID if more.get("unknown") else seen.id(TOPIC)
        return [ShareFetchRequest.FetchTopic(topic_id=topic_id, partitions=[row])] if named else []

    renews = bool(more.get("renews"))
    return ask(
        name,
        ApiKey.SHARE_FETCH,
        versions,
        group_id=group,
        member_id=more.get("member", "sharer"),
        share_session_epoch=epoch,
        max_wait_ms=more.get("wait_ms", 0),
        min_bytes=more.get("min_bytes", 0 if renews else 1),
        max_bytes=0 if renews else 1 << 20,
        max_records=more.get("records", 0 if renews else 100),
        batch_size=0 if renews else 100,
        topics=topics,
        forgotten_topics_data=[],
        share_acquire_mode=more.get("mode", 0),
        is_renew_ack=renews,
    )


def acknowledge(name: str, epoch: int, said: Said, version: int = 1, **more: Body) -> Step:
    """A ShareAcknowledge step; `said` are the acknowledgements."""

    def topics(seen: Seen) -> list[ShareAcknowledgeRequest.AcknowledgeTopic]:
        row = ShareAcknowledgeRequest.AcknowledgePartition(
            partition_index=0,
            acknowledgement_batches=[
                ShareAcknowledgeRequest.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=list(types)
                )
                for first, last, types in said
            ],
        )
        topic_id = UNKNOWN_ID if more.get("unknown") else seen.id(TOPIC)
        return [ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=topic_id, partitions=[row])] if said else []

    return ask(
        name,
        ApiKey.SHARE_ACKNOWLEDGE,
        (version,),
        group_id=GROUP,
        member_id=more.get("member", "sharer"),
        share_session_epoch=epoch,
        topics=topics,
        is_renew_ack=bool(more.get("renews")),
    )


def describe(name: str, *groups: str) -> Step:
    """A ShareGroupDescribe step."""
    return ask(
        name,
        ApiKey.SHARE_GROUP_DESCRIBE,
        (1,),
        group_ids=list(groups or (GROUP,)),
        include_authorized_operations=True,
    )


def offsets(name: str, group: str = GROUP, names: Sequence[str] | None = None) -> Step:
    """A DescribeShareGroupOffsets step; `names` None: of all topics."""
    rows = (
        None
        if names is None
        else [
            DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic(
                topic_name=one, partitions=[0]
            )
            for one in names
        ]
    )
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(
        group_id=group, topics=rows
    )
    return ask(name, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, (0, 1), groups=[asked])


def alter(
    name: str, offset: int, group: str = GROUP, names: Sequence[str] = (TOPIC,), number: int = 0
) -> Step:
    """An AlterShareGroupOffsets step."""
    row = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition(
        partition_index=number, start_offset=offset
    )
    topics = [
        AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic(topic_name=one, partitions=[row])
        for one in names
    ]
    return ask(name, ApiKey.ALTER_SHARE_GROUP_OFFSETS, (0,), group_id=group, topics=topics)


def delete_offsets(name: str, *names: str, group: str = GROUP) -> Step:
    """A DeleteShareGroupOffsets step."""
    topics = [
        DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic(topic_name=one) for one in names
    ]
    return ask(name, ApiKey.DELETE_SHARE_GROUP_OFFSETS, (0,), group_id=group, topics=topics)


def state(name: str, api: ApiKey, versions: Iterable[int] = (0,), group: str = STATED, **row: Body) -> Step:
    """A step that asks the share coordinator about partition 0 of the topic, unless `row` names
    another."""
    unknown = bool(row.pop("unknown", False))
    fields = {"partition": 0, **row}

    def topics(seen: Seen) -> list[Message]:
        topic_id = UNKNOWN_ID if unknown else seen.id(TOPIC)
        return [Message(topic_id=topic_id, partitions=[Message(**fields)])]

    return ask(name, api, versions, again_on=WARMING_UP, group_id=group, topics=topics)


def write(name: str, state_epoch: int, leader_epoch: int, start: int, *batches: Sequence[int]) -> Step:
    """A WriteShareGroupState step; batches are (first, last, state, deliveries)."""
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    return state(
        name,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        (0, 1),
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start,
        state_batches=[Message(**dict(zip(names, one, strict=True))) for one in batches],
        delivery_complete_count=1,
    )


def _find(name: str, key: str) -> Step:
    return ask(name, ApiKey.FIND_COORDINATOR, (6,), again_on=WARMING_UP, key_type=2, coordinator_keys=[key])


def _from_earliest() -> Step:
    change = IncrementalAlterConfigsRequest.AlterableConfig(
        name="share.auto.offset.reset", config_operation=0, value="earliest"
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=_GROUP_RESOURCE, resource_name=GROUP, configs=[change]
    )
    return ask(
        "a share group from the first record on",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (1,),
        resources=[resource],
        validate_only=False,
    )


def _listed() -> Step:
    return ask("share groups", ApiKey.LIST_GROUPS, (5,), states_filter=[], types_filter=["share"], mine=True)


_PREPARED: tuple[Step, ...] = (
    create("a topic for share groups", topic(TOPIC)),
    appears(TOPIC),
    produce("records to share", batch(b"0", b"1", b"2", b"3", b"4"), to=TOPIC),
    produce("more records to share", batch(b"5", b"6", b"7"), to=TOPIC),
    _from_earliest(),
    find("of a group of sharers", GROUP, versions=(6,)),
)

_STATES: tuple[Step, ...] = (
    _find("of a share partition", f"{STATED}:AAAAAAAAAAAAAAAAAAAATQ:0"),
    _find("of a share partition without a number", f"{STATED}:x"),
    state("a state that was never begun", ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=0),
    state("of nothing", ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, (0, 1), leader_epoch=0),
    write("a state that was never begun", 0, 0, 0),
    state("a state", ApiKey.INITIALIZE_SHARE_GROUP_STATE, state_epoch=2, start_offset=3),
    state("of before", ApiKey.INITIALIZE_SHARE_GROUP_STATE, state_epoch=1, start_offset=0),
    state("of no topic", ApiKey.INITIALIZE_SHARE_GROUP_STATE, unknown=True, state_epoch=2, start_offset=3),
    state(
        "of no partition", ApiKey.INITIALIZE_SHARE_GROUP_STATE, partition=-1, state_epoch=2, start_offset=3
    ),
    state("by its leader", ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=4),
    state("by the leader before", ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=3),
    state("by nobody's epoch", ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=-1),
    write("what is new", 2, 4, 3, (3, 4, 2, 1), (5, 9, 0, 1)),
    write("what overlaps", 2, 4, 3, (4, 6, 2, 1), (8, 9, 4, 2)),
    write("of the leader before", 2, 3, 3),
    write("of the state before", 1, 4, 3),
    state("what is new", ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=4),
    state("what is new", ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, (0, 1), leader_epoch=-1),
    write("a later start", 2, 4, 6),
    state("from a later start", ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=4),
    state("a state", ApiKey.DELETE_SHARE_GROUP_STATE),
    state("nothing", ApiKey.DELETE_SHARE_GROUP_STATE),
    state("of no topic", ApiKey.DELETE_SHARE_GROUP_STATE, unknown=True),
    state("deleted", ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=4),
)

_MEMBERS: tuple[Step, ...] = (
    beat("without a topic", 0),
    beat("without a member id", 0, member="", topics=[TOPIC]),
    beat("with a long member id", 0, member="m" * 37, topics=[TOPIC]),
    beat("without a group", 0, group="", topics=[TOPIC]),
    beat("with an empty rack", 0, rack="", topics=[TOPIC]),
    beat("of an epoch that cannot be", -2, topics=[TOPIC]),
    beat("of a group that is not there", 3, group=MISSING),
    beat("joins", 0, keep="first", topics=[TOPIC]),
    replace(beat("gets partitions", epoch_of("first"), keep="first"), until=_has_partitions),
    beat("lives", epoch_of("first")),
    beat("says it all", epoch_of("first"), topics=[TOPIC]),
    beat("of an epoch to come", 99),
    beat("of a stranger", 1, member="stranger"),
    beat("with a rack", epoch_of("first"), rack="r"),
    beat("of a stranger who leaves", -1, member="stranger"),
    beat("of an empty list of topics", 0, member="none", topics=[]),
    beat("of a topic that is not there", 0, member="lost", topics=[MISSING]),
    beat("of a topic that is not there leaves", -1, member="lost"),
    describe("a share group", GROUP, MISSING),
    _listed(),
)

_RECORDS: tuple[Step, ...] = (
    share_fetch("without a group", 0, group=None),
    share_fetch("without a member", 0, member=""),
    share_fetch("of no session", 4),
    share_fetch("begins with an acknowledgement", 0, said=[(0, 0, [1])]),
    share_fetch("ends what never was", -1, named=False),
    share_fetch("acquires", 0, wait_ms=5_000),
    share_fetch("of another epoch", 7),
    share_fetch("of no topic", 0, member="stray", unknown=True),
    share_fetch("of no topic ends", -1, member="stray", named=False),
    share_fetch("of no partition", 0, member="asker", partition=9, wait_ms=1_000),
    share_fetch("of an epoch that cannot be", -2, member="asker"),
    share_fetch("acknowledges nothing that is its own", 1, member="asker", said=[(0, 0, [1])]),
    share_fetch("in a way that there is not", 2, (2,), member="asker", mode=7),
    share_fetch("asks no more", -1, member="asker", named=False),
    share_fetch("of a group that is not there", 0, group=MISSING, wait_ms=1_000),
    share_fetch("of a group that is not there ends", -1, group=MISSING, named=False),
    acknowledge("without a member", 1, [(0, 0, [1])], member=""),
    acknowledge("of an epoch that cannot be", -2, [(0, 0, [1])]),
    offsets("before the first acknowledgement"),
    acknowledge("of no session", 1, [(0, 0, [1])], member="stranger"),
    acknowledge("begins", 0, [(0, 0, [1])]),
    acknowledge("two records", 1, [(0, 1, [1])]),
    acknowledge("each by itself", 2, [(2, 4, [2, 3, 0])]),
    acknowledge("them again", 3, [(2, 4, [1])]),
    acknowledge("before the start", 4, [(0, 0, [1])]),
    acknowledge("behind the end", 5, [(20, 21, [1])]),
    acknowledge("part of it behind the end", 6, [(5, 21, [1])]),
    acknowledge("with a type that there is not", 7, [(5, 5, [9])]),
    acknowledge("with too few types", 8, [(5, 7, [1, 1])]),
    acknowledge("backwards", 9, [(7, 5, [1])]),
    acknowledge("renewed before its time", 10, [(5, 5, [4])]),
    acknowledge("renewed", 11, [(5, 6, [4])], version=2, renews=True),
    acknowledge("of no topic", 12, [(5, 5, [1])], unknown=True),
    offsets("on the way"),
    share_fetch("what was released", 13, said=[(5, 7, [1])], wait_ms=5_000, named=True),
    share_fetch("renews with limits", 14, (2,), renews=True, records=1),
    share_fetch("renews", 14, (2,), said=[(2, 2, [4])], renews=True),
    produce("still more records to share", batch(b"8", b"9", b"10", b"11"), to=TOPIC),
    share_fetch("one record and no more", 15, (2,), named=False, records=1, mode=1, wait_ms=5_000),
    share_fetch("nothing for long enough", 16, (2,), named=False, records=1, min_bytes=100_000, wait_ms=10),
    acknowledge("ends", -1, [(2, 2, [1])]),
    acknowledge("has ended", 17, [(8, 8, [1])]),
    offsets("after the end"),
    offsets("of a topic", names=(TOPIC,)),
    offsets("of a group that is not there", MISSING),
    offsets("of a group that is not there, of topics", MISSING, (TOPIC,)),
)

_ADMIN: tuple[Step, ...] = (
    alter("with members", 0),
    delete_offsets("with members", TOPIC),
    ask("with members", ApiKey.DELETE_GROUPS, (2,), groups_names=[GROUP]),
    beat("leaves", -1),
    beat("has left", -1),
    describe("an empty share group"),
    _listed(),
    alter("to the beginning", 0),
    alter("of topics that are not there", 0, names=(TOPIC, MISSING)),
    alter("of a partition that is not there", 0, number=9),
    alter("of a group without a name", 0, group=""),
    offsets("at the beginning"),
    beat("joins again", 0, keep="again", topics=[TOPIC]),
    beat("lives again", epoch_of("again")),
    share_fetch("acquires again", 0, wait_ms=5_000, records=1),
    share_fetch("ends", -1, named=False),
    beat("leaves again", -1),
    delete_offsets("of a topic that is not there", MISSING, TOPIC),
    delete_offsets("once more", TOPIC),
    offsets("deleted"),
)

_OTHERS: tuple[Step, ...] = (
    join("a classic group", CLASSIC),
    beat("of a classic group", 0, group=CLASSIC, topics=[TOPIC]),
    join("a share group", GROUP),
    enter("a share group", "member", "none", group=GROUP),
    describe("a classic group", CLASSIC),
    describe_classic("a share group", GROUP),
    ask(
        "of a share group",
        ApiKey.OFFSET_COMMIT,
        (9,),
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[],
    ),
    ask(
        "of a share group",
        ApiKey.OFFSET_FETCH,
        (9,),
        groups=[
            OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=GROUP, member_id=None, member_epoch=-1, topics=None
            )
        ],
        require_stable=False,
    ),
    ask("a share group", ApiKey.OFFSET_DELETE, (0,), group_id=GROUP, topics=[]),
    ask("a share group", ApiKey.DELETE_GROUPS, (2,), groups_names=[GROUP]),
    describe("a share group that is deleted", GROUP),
)

STEPS: tuple[Step, ...] = (*_PREPARED, *_STATES, *_MEMBERS, *_RECORDS, *_ADMIN, *_OTHERS)
