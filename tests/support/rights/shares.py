"""Cases of share groups."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.wire import ApiKey, Message
from tests.support.rights import GHOST, GHOST_ID, GROUP, NAMES, OPEN, SECRET, Fields, Ids, cases, said

_MEMBER_ID = "member"
_LIMITS = {
    "max_wait_ms": 0,
    "min_bytes": 0,
    "max_bytes": 1,
    "max_records": 1,
    "batch_size": 1,
    "forgotten_topics_data": [],
}
_SEEN = ("DESCRIBE GROUP *", "DESCRIBE TOPIC open")


def _by_id(fetches: bool, **fields: Any) -> Fields:
    """A request that names topics by their ids."""

    def asked(ids: Ids) -> dict[str, Any]:
        partitions = [Message(**{"partition_index": 0, **fields})]
        topics = [Message(topic_id=one, partitions=partitions) for one in (ids[OPEN], ids[SECRET], GHOST_ID)]
        return {
            "group_id": GHOST,
            "member_id": _MEMBER_ID,
            "share_session_epoch": 0,
            "topics": topics,
        } | (_LIMITS if fetches else {})

    return asked


def _state(**fields: Any) -> Fields:
    """A request to the share coordinator."""

    def asked(ids: Ids) -> dict[str, Any]:
        topics = [Message(topic_id=GHOST_ID, partitions=[Message(partition=0, **fields)])]
        return {"group_id": GHOST, "topics": topics}

    return asked


_OFFSETS = [Message(topic_name=name, partitions=[0]) for name in NAMES]

SHARES = (
    *cases(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        said(group_id=GHOST, member_id=_MEMBER_ID, member_epoch=3, subscribed_topic_names=[OPEN, SECRET]),
        nothing=(),
        group=("READ GROUP *",),
        some=("READ GROUP *", "DESCRIBE TOPIC open"),
        both=("READ GROUP *", "DESCRIBE TOPIC *"),
    ),
    *cases(
        ApiKey.SHARE_GROUP_DESCRIBE,
        1,
        said(group_ids=[GROUP, GHOST, "other"], include_authorized_operations=True),
        nothing=(),
        some=("READ GROUP g*",),
    ),
    *cases(ApiKey.SHARE_FETCH, 1, _by_id(True, acknowledgement_batches=[]), nothing=("READ TOPIC *",)),
    *cases(ApiKey.SHARE_ACKNOWLEDGE, 1, _by_id(False, acknowledgement_batches=[]), nothing=("READ TOPIC *",)),
    *cases(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, _state(state_epoch=0, start_offset=0), nothing=()),
    *cases(ApiKey.READ_SHARE_GROUP_STATE, 0, _state(leader_epoch=0), nothing=()),
    *cases(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        0,
        _state(state_epoch=0, leader_epoch=0, start_offset=0, state_batches=[]),
        nothing=(),
    ),
    *cases(ApiKey.DELETE_SHARE_GROUP_STATE, 0, _state(), nothing=()),
    *cases(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, _state(leader_epoch=0), nothing=()),
    *cases(
        ApiKey.FIND_COORDINATOR,
        6,
        said(key_type=2, coordinator_keys=["ghost:AAAAAAAAAAAAAAAAAAAATQ:0"]),
        share=("ALL GROUP *",),
    ),
    *cases(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        0,
        said(groups=[Message(group_id=name, topics=_OFFSETS) for name in (GROUP, GHOST)]),
        nothing=(),
        some=_SEEN,
    ),
    *cases(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        said(
            group_id=GHOST,
            topics=[
                Message(topic_name=name, partitions=[Message(partition_index=0, start_offset=0)])
                for name in NAMES
            ],
        ),
        nothing=(),
        some=("READ GROUP *", "READ TOPIC open"),
    ),
    *cases(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        said(group_id=GHOST, topics=[Message(topic_name=name) for name in NAMES]),
        nothing=(),
        some=("DELETE GROUP *", "READ TOPIC open"),
    ),
)
