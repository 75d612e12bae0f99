"""Share groups, requested with rights and without."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.lab.transcript.holders import Holder
from fairlead_kafka.lab.transcript.secured_cases import TRIO, Case, Make, about, bare, named, of
from fairlead_kafka.lab.transcript.steps import UNKNOWN_ID, WARMING_UP, Body, FieldValue, Seen, Step, request
from fairlead_kafka.wire import ApiKey, Message

_STATE_KEY = "sharers:AAAAAAAAAAAAAAAAAAAATQ:0"
_LIMITS: dict[str, FieldValue] = {
    "max_wait_ms": 0,
    "min_bytes": 0,
    "max_bytes": 1,
    "max_records": 1,
    "batch_size": 1,
    "forgotten_topics_data": [],
}


def _by_id(names: list[str], seen: Seen) -> list[Message]:
    part = Message(partition_index=0, acknowledgement_batches=[])
    return [Message(topic_id=seen.id(name), partitions=[part]) for name in names]


def _session(name: str, api: ApiKey, **more: FieldValue) -> Make:
    """A function that makes a request in a share session that does not exist."""
    return about(
        name,
        api,
        (1,),
        "topics",
        _by_id,
        TRIO,
        group_id=of(),
        member_id="sharer",
        share_session_epoch=5,
        **more,
    )


def _state(name: str, api: ApiKey, versions: Iterable[int] = (0,), **row: FieldValue) -> Case:
    """The case of a request to the share coordinator, about a topic that does not exist."""

    def make(_holder: Holder) -> Step:
        topics = [Message(topic_id=UNKNOWN_ID, partitions=[Message(partition=0, **row)])]
        fields: dict[str, Body] = {"group_id": "sharers", "topics": topics}
        return request(name, api, versions, fields, again_on=WARMING_UP)

    return Case(make, "cluster", "cluster-cluster-action")


def _coordinator(_holder: Holder) -> Step:
    fields: dict[str, Body] = {"key_type": 2, "coordinator_keys": [_STATE_KEY]}
    return request("where a share partition is", ApiKey.FIND_COORDINATOR, (6,), fields, again_on=WARMING_UP)


SHARES: list[Case] = [
    Case(
        about(
            "a sharer",
            ApiKey.SHARE_GROUP_HEARTBEAT,
            (1,),
            "subscribed_topic_names",
            bare,
            ("own",),
            group_id=of("missing"),
            member_id="sharer",
            member_epoch=3,
            rack_id=None,
        ),
        "group topic",
        "group-read",
    ),
    Case(
        about(
            "share groups described",
            ApiKey.SHARE_GROUP_DESCRIBE,
            (1,),
            "group_ids",
            bare,
            TRIO,
            include_authorized_operations=True,
        ),
        "group",
        "group-describe",
    ),
    Case(_session("records to share", ApiKey.SHARE_FETCH, **_LIMITS), "group topic", "group-read"),
    Case(_session("shared records", ApiKey.SHARE_ACKNOWLEDGE), "group topic", "group-read"),
    Case(_coordinator, "cluster", "cluster-cluster-action"),
    _state("a state", ApiKey.INITIALIZE_SHARE_GROUP_STATE, state_epoch=0, start_offset=0),
    _state("a state", ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=0),
    _state(
        "a state",
        ApiKey.WRITE_SHARE_GROUP_STATE,
        state_epoch=0,
        leader_epoch=0,
        start_offset=0,
        state_batches=[],
    ),
    _state("a state", ApiKey.DELETE_SHARE_GROUP_STATE),
    _state("a state", ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, leader_epoch=0),
    Case(
        about(
            "share groups' offsets",
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
            (0,),
            "groups",
            named("group_id", topics=[Message(topic_name="nowhere", partitions=[0])]),
            TRIO,
        ),
        "group",
        "group-describe",
    ),
    Case(
        about(
            "offsets of a share group",
            ApiKey.ALTER_SHARE_GROUP_OFFSETS,
            (0,),
            "topics",
            named("topic_name", partitions=[Message(partition_index=9, start_offset=0)]),
            TRIO,
            group_id=of("missing"),
        ),
        "group topic",
        "group-read",
    ),
    Case(
        about(
            "offsets of a share group",
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            (0,),
            "topics",
            named("topic_name"),
            TRIO,
            group_id=of("missing"),
        ),
        "group topic",
        "group-delete",
    ),
]
