"""Cases of producers and transactions."""

from __future__ import annotations

from fairlead_kafka.wire import ApiKey, Message
from tests.support.rights import (
    GHOST,
    GROUP,
    NAMES,
    OPEN,
    TRANSACTION,
    cases,
    named,
    said,
)

_PRODUCER = {"producer_id": 123, "producer_epoch": 0}
_WRITES = "WRITE TRANSACTIONAL_ID transaction"
_OFFSET_ROWS = [
    Message(partition_index=number, committed_offset=1, committed_metadata="") for number in (0, 9)
]

TRANSACTIONS = (
    *cases(
        ApiKey.INIT_PRODUCER_ID,
        4,
        said(transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1),
        nothing=(),
        idempotent=("IDEMPOTENT_WRITE CLUSTER",),
        some=("WRITE TOPIC x",),
        dominated=("WRITE TOPIC x", "DENY WRITE TOPIC x"),
        dominated_by_prefix=("WRITE TOPIC xyz*", "DENY ALL TOPIC xy*"),
        not_dominated=("WRITE TOPIC xy*", "DENY WRITE TOPIC xyz*"),
        everything_denied=("WRITE TOPIC x", "DENY WRITE TOPIC *"),
        reading=("READ TOPIC *",),
    ),
    *cases(
        ApiKey.INIT_PRODUCER_ID,
        4,
        said(transactional_id=TRANSACTION, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1),
        no_transaction=("DESCRIBE TRANSACTIONAL_ID transaction", "IDEMPOTENT_WRITE CLUSTER"),
    ),
    *cases(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        said(
            v3_and_below_transactional_id=TRANSACTION,
            v3_and_below_producer_id=123,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=named(*NAMES, "__consumer_offsets", partitions=[0, 9]),
        ),
        nothing=(),
        transaction=(_WRITES,),
        some=(_WRITES, "WRITE TOPIC open"),
        all=(_WRITES, "ALL TOPIC *"),
    ),
    *cases(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        4,
        said(
            transactions=[
                Message(
                    transactional_id=TRANSACTION,
                    **_PRODUCER,
                    verify_only=True,
                    topics=named(OPEN, partitions=[0]),
                )
            ]
        ),
        nothing=(_WRITES, "ALL TOPIC *"),
    ),
    *cases(
        ApiKey.ADD_OFFSETS_TO_TXN,
        3,
        said(transactional_id=TRANSACTION, **_PRODUCER, group_id=GROUP),
        nothing=(),
        transaction=(_WRITES,),
        both=(_WRITES, "READ GROUP group"),
    ),
    *cases(
        ApiKey.END_TXN,
        3,
        said(transactional_id=TRANSACTION, **_PRODUCER, committed=True),
        nothing=("DESCRIBE TRANSACTIONAL_ID *",),
        may=(_WRITES,),
    ),
    *cases(
        ApiKey.WRITE_TXN_MARKERS,
        1,
        said(
            markers=[
                Message(
                    producer_id=9,
                    producer_epoch=0,
                    transaction_result=False,
                    topics=named(GHOST, partition_indexes=[0]),
                    coordinator_epoch=0,
                )
            ]
        ),
        nothing=("ALL TOPIC *",),
        broker=("CLUSTER_ACTION CLUSTER",),
        admin=("ALTER CLUSTER",),
    ),
    *cases(
        ApiKey.TXN_OFFSET_COMMIT,
        3,
        said(
            transactional_id=TRANSACTION,
            group_id=GROUP,
            **_PRODUCER,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=named(*NAMES, partitions=_OFFSET_ROWS),
        ),
        nothing=(),
        transaction=(_WRITES,),
        group=(_WRITES, "READ GROUP group"),
    ),
    *cases(
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        said(transactional_ids=[TRANSACTION, GHOST]),
        nothing=(),
        some=("DESCRIBE TRANSACTIONAL_ID transaction",),
        topics=("WRITE TRANSACTIONAL_ID *", "DESCRIBE TOPIC open"),
    ),
    *cases(
        ApiKey.LIST_TRANSACTIONS,
        1,
        said(state_filters=[], producer_id_filters=[], duration_filter=-1),
        nothing=(),
        some=("WRITE TRANSACTIONAL_ID t*",),
    ),
)
