"""Cases of groups and their offsets."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import fetch_fields
from tests.support.rights import (
    GHOST,
    GHOST_ID,
    GROUP,
    NAMES,
    OPEN,
    SECRET,
    SOME,
    TRANSACTION,
    Fields,
    Ids,
    cases,
    named,
    said,
)


def _fetch_by_id(ids: Ids) -> dict[str, Any]:
    rows = fetch_fields({(OPEN, 0): 0})["topics"][0].partitions
    return fetch_fields({}) | {
        "topics": [Message(topic_id=one, partitions=rows) for one in (ids[OPEN], ids[SECRET], GHOST_ID)]
    }


def _commit(by_id: bool, **more: Any) -> Fields:
    def fields(ids: Ids) -> dict[str, Any]:
        rows = [
            Message(partition_index=number, committed_offset=1, committed_metadata="") for number in (0, 9)
        ]
        if by_id:
            topics = [Message(topic_id=one, partitions=rows) for one in (ids[OPEN], ids[SECRET], GHOST_ID)]
        else:
            topics = named(*NAMES, partitions=rows)
        return {
            "group_id": GROUP,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": topics,
        } | more

    return fields


def _offsets(version: int, topics: Fields | None) -> Fields:
    def fields(ids: Ids) -> dict[str, Any]:
        asked = None if topics is None else topics(ids)["topics"]
        if version < 8:
            return {"group_id": GROUP, "topics": asked}
        return {"groups": [Message(group_id=GROUP, topics=asked), Message(group_id=GHOST, topics=asked)]}

    return fields


_OFFSETS_BY_NAME = said(topics=named(*NAMES, partition_indexes=[0]))


def _OFFSETS_BY_ID(ids: Ids) -> dict[str, Any]:
    return {
        "topics": [Message(topic_id=one, partition_indexes=[0]) for one in (ids[OPEN], ids[SECRET], GHOST_ID)]
    }


_READS = ("READ GROUP group", "READ TOPIC open")
_SEES = ("DESCRIBE GROUP group", "DESCRIBE TOPIC open")
_MEMBER = {"group_id": GROUP, "generation_id": 1, "member_id": "m", "group_instance_id": None}

GROUPS = (
    *cases(ApiKey.FETCH, 16, _fetch_by_id, nothing=(), some=SOME),
    *cases(
        ApiKey.OFFSET_COMMIT,
        9,
        _commit(False),
        nothing=(),
        group=("READ GROUP group",),
        some=_READS,
        topics=SOME,
    ),
    *cases(ApiKey.OFFSET_COMMIT, 10, _commit(True), nothing=(), group=("READ GROUP group",), some=_READS),
    *cases(
        ApiKey.OFFSET_COMMIT,
        8,
        _commit(False, generation_id_or_member_epoch=3, member_id="m"),
        strangers=_READS,
    ),
    *cases(
        ApiKey.OFFSET_COMMIT,
        9,
        _commit(False, generation_id_or_member_epoch=3, member_id="m"),
        strangers=_READS,
    ),
    *cases(
        ApiKey.OFFSET_COMMIT,
        9,
        _commit(False, group_id=GHOST, generation_id_or_member_epoch=3),
        unknown=("READ GROUP *", *SOME),
    ),
    *cases(ApiKey.OFFSET_FETCH, 7, _offsets(7, _OFFSETS_BY_NAME), nothing=(), some=_SEES),
    *cases(ApiKey.OFFSET_FETCH, 1, _offsets(1, _OFFSETS_BY_NAME), nothing=(), some=_SEES),
    *cases(
        ApiKey.OFFSET_FETCH,
        8,
        _offsets(8, _OFFSETS_BY_NAME),
        nothing=(),
        some=_SEES,
        both=("READ GROUP *", "READ TOPIC *"),
    ),
    *cases(ApiKey.OFFSET_FETCH, 8, _offsets(8, None), everything=_SEES),
    *cases(ApiKey.OFFSET_FETCH, 10, _offsets(10, _OFFSETS_BY_ID), some=_SEES),
    *cases(ApiKey.OFFSET_FETCH, 10, _offsets(10, None), everything=_SEES),
    *cases(
        ApiKey.FIND_COORDINATOR, 4, said(key_type=0, coordinator_keys=[GROUP, GHOST]), nothing=(), some=_SEES
    ),
    *cases(ApiKey.FIND_COORDINATOR, 3, said(key_type=0, key=GROUP), nothing=()),
    *cases(
        ApiKey.FIND_COORDINATOR,
        4,
        said(key_type=1, coordinator_keys=[TRANSACTION, GHOST]),
        transaction=("WRITE TRANSACTIONAL_ID transaction",),
    ),
    *cases(
        ApiKey.JOIN_GROUP,
        9,
        said(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="m",
            protocol_type="consumer",
            protocols=[Message(name="range", metadata=b"")],
        ),
        nothing=("DESCRIBE GROUP group",),
        member=("READ GROUP group",),
    ),
    *cases(ApiKey.HEARTBEAT, 4, said(**_MEMBER), nothing=(), member=("READ GROUP group",)),
    *cases(
        ApiKey.LEAVE_GROUP,
        5,
        said(group_id=GROUP, members=[Message(member_id="m", group_instance_id=None)]),
        nothing=(),
    ),
    *cases(ApiKey.LEAVE_GROUP, 2, said(group_id=GROUP, member_id="m"), nothing=()),
    *cases(
        ApiKey.SYNC_GROUP,
        5,
        said(**_MEMBER, protocol_type="consumer", protocol_name="range", assignments=[]),
        nothing=(),
        member=_READS,
    ),
    *cases(
        ApiKey.SYNC_GROUP,
        5,
        said(**_MEMBER, protocol_type=None, protocol_name=None, assignments=[]),
        nameless=(),
    ),
    *cases(
        ApiKey.DESCRIBE_GROUPS,
        5,
        said(groups=[GROUP, GHOST, "other"], include_authorized_operations=True),
        nothing=(),
        some=("READ GROUP g*",),
        all=("ALL GROUP *",),
    ),
    *cases(
        ApiKey.LIST_GROUPS,
        5,
        said(states_filter=[], types_filter=[]),
        nothing=(),
        some=("READ GROUP group",),
        cluster=("DESCRIBE CLUSTER",),
        altering=("ALTER CLUSTER",),
    ),
    *cases(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        1,
        said(group_id=GHOST, member_id="m", member_epoch=3, subscribed_topic_names=["open", SECRET]),
        nothing=(),
        group=("READ GROUP *",),
        some=("READ GROUP *", "DESCRIBE TOPIC open"),
        both=("READ GROUP *", "DESCRIBE TOPIC *"),
    ),
    *cases(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        said(group_ids=[GROUP, GHOST, "other"], include_authorized_operations=True),
        nothing=(),
        some=("READ GROUP g*",),
    ),
    *cases(
        ApiKey.OFFSET_DELETE,
        0,
        said(group_id=GROUP, topics=named(*NAMES, partitions=[Message(partition_index=9)])),
        nothing=(),
        group=("DELETE GROUP group",),
        some=("DELETE GROUP group", "READ TOPIC open"),
    ),
    *cases(
        ApiKey.OFFSET_DELETE,
        0,
        said(group_id=GHOST, topics=named(SECRET, partitions=[Message(partition_index=0)])),
        gone=("ALL GROUP *",),
    ),
    *cases(
        ApiKey.DELETE_GROUPS,
        2,
        said(groups_names=[GHOST, GROUP, "other"]),
        nothing=(),
        some=("DELETE GROUP ghost",),
    ),
)
