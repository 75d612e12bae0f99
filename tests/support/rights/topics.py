"""Cases of Metadata, and of what is in topics."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, fetch_fields
from tests.support.rights import (
    GHOST_ID,
    NAMES,
    NO_ID,
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


def _metadata(version: int, topics: Any = None, **more: Any) -> Fields:
    def fields(ids: Ids) -> dict[str, Any]:
        asked = topics(ids) if callable(topics) else topics
        return {"topics": asked, "allow_auto_topic_creation": False} | more

    return fields


def _by_id(ids: Ids) -> list[Message]:
    return [Message(name=None, topic_id=one) for one in (ids[OPEN], ids[SECRET], GHOST_ID)]


def _by_name(_ids: Ids) -> list[Message]:
    return [Message(name=name, topic_id=NO_ID) for name in NAMES]


METADATA = (
    *cases(
        ApiKey.METADATA,
        12,
        _metadata(12, _by_name),
        nothing=(),
        some=SOME,
        all=("ALL TOPIC *",),
        prefix=("WRITE TOPIC o*",),
    ),
    *cases(ApiKey.METADATA, 12, _metadata(12, _by_id), ids=SOME, no_ids=()),
    *cases(
        ApiKey.METADATA,
        12,
        _metadata(12, None),
        everything=SOME,
        everything_denied=("ALL TOPIC *", "DENY DESCRIBE TOPIC open"),
    ),
    *cases(
        ApiKey.METADATA,
        10,
        _metadata(
            10, _by_name, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
        ),
        operations=("READ TOPIC open", "ALTER_CONFIGS TOPIC open", "DESCRIBE TOPIC ghost"),
        cluster=("ALTER CLUSTER", "DESCRIBE TOPIC *"),
        not_cluster=("CREATE CLUSTER",),
    ),
    *cases(
        ApiKey.METADATA,
        12,
        _metadata(12, lambda ids: [Message(name="made-1", topic_id=NO_ID)], allow_auto_topic_creation=True),
        may_not_create=("DESCRIBE TOPIC *",),
    ),
)


def _produce(transactional_id: str | None, **options: Any) -> Fields:
    def fields(_ids: Ids) -> dict[str, Any]:
        rows = [Message(index=0, records=batch([b"x"], **options))]
        return {
            "transactional_id": transactional_id,
            "acks": -1,
            "timeout_ms": 10_000,
            "topic_data": [Message(name=name, partition_data=rows) for name in NAMES],
        }

    return fields


RECORDS = (
    *cases(
        ApiKey.PRODUCE,
        9,
        _produce(None),
        nothing=(),
        some=("WRITE TOPIC open",),
        described=("DESCRIBE TOPIC *",),
    ),
    *cases(
        ApiKey.PRODUCE,
        9,
        _produce(TRANSACTION, transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
        no_transaction=("WRITE TOPIC *",),
    ),
    *cases(ApiKey.PRODUCE, 9, _produce(TRANSACTION), named_for_nothing=("WRITE TOPIC open",)),
    *cases(
        ApiKey.FETCH, 12, lambda ids: fetch_fields({(name, 0): 0 for name in NAMES}), nothing=(), some=SOME
    ),
    *cases(
        ApiKey.FETCH,
        12,
        lambda ids: fetch_fields({(name, 0): 0 for name in NAMES}, replica_id=1),
        follower=("READ TOPIC *",),
    ),
    *cases(
        ApiKey.LIST_OFFSETS,
        7,
        said(
            replica_id=-1,
            isolation_level=0,
            topics=named(
                *NAMES, partitions=[Message(partition_index=0, current_leader_epoch=-1, timestamp=-2)]
            ),
        ),
        nothing=(),
        some=SOME,
    ),
    *cases(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        said(
            replica_id=-1,
            topics=[
                Message(
                    topic=name, partitions=[Message(partition=0, current_leader_epoch=-1, leader_epoch=0)]
                )
                for name in NAMES
            ],
        ),
        nothing=(),
        some=SOME,
        broker=("CLUSTER_ACTION CLUSTER",),
    ),
    *cases(
        ApiKey.DELETE_RECORDS,
        2,
        said(timeout_ms=10_000, topics=named(*NAMES, partitions=[Message(partition_index=0, offset=0)])),
        nothing=(),
        some=("DELETE TOPIC open", "WRITE TOPIC *"),
    ),
    *cases(
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        said(topics=named(*NAMES, "?", partition_indexes=[0])),
        nothing=(),
        some=SOME,
        all=("READ TOPIC *",),
    ),
)
