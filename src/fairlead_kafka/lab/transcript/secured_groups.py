"""Groups and transactions, requested with rights and without."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairlead_kafka.lab.transcript.holders import SECRET, Holder
from fairlead_kafka.lab.transcript.secured_cases import (
    TRIO,
    Case,
    Make,
    Rows,
    about,
    bare,
    mine,
    of,
    partitions,
)
from fairlead_kafka.lab.transcript.steps import WARMING_UP, Body, FieldValue, Seen, Step, ask, batch, request
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    AddPartitionsToTxnRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)

_AddPartitionsToTxnTransaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_OffsetFetchRequestGroup = OffsetFetchRequest.OffsetFetchRequestGroup
_TopicProduceData = ProduceRequest.TopicProduceData
_WritableTxnMarker = WriteTxnMarkersRequest.WritableTxnMarker
_NO_MEMBER: dict[str, FieldValue] = {"member_id": "stranger", "group_instance_id": None}

_NOT_A_MEMBER = {"generation_id": -1, "member_id": ""}
_OF_THE_KIND = {"protocol_type": "consumer", "protocol_name": "range"}


def _in_group(
    name: str, api: ApiKey, version: int, again_on: Iterable[int] = (), **fields: FieldValue
) -> Case:
    """A case of a request that group members send."""

    def make(holder: Holder) -> Step:
        filled: dict[str, Body] = {"group_id": holder.own("joined"), **fields}
        return request(name, api, (version,), filled, again_on=again_on)

    return Case(make, "group", "group-read")


def _commit(things: Iterable[str], versions: Iterable[int]) -> Make:
    return about(
        "committed",
        ApiKey.OFFSET_COMMIT,
        versions,
        "topics",
        partitions(
            "partitions",
            "name",
            True,
            partition_index=0,
            committed_offset=0,
            committed_leader_epoch=-1,
            committed_metadata="",
        ),
        things,
        group_id=of(),
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=-1,
    )


def _in_groups(named: bool) -> Rows:
    """OffsetFetch of two groups, the user's own and the secret one: of the topics that are `named`,
    or of all that the groups have offsets of."""

    def groups(names: list[str], seen: Seen) -> list[_OffsetFetchRequestGroup]:
        mine = names[0].rpartition(".")[0] + ".own"
        topics = [
            OffsetFetchRequest.OffsetFetchRequestTopics(
                name=name, topic_id=seen.id(name), partition_indexes=[0]
            )
            for name in names
        ]
        return [
            _OffsetFetchRequestGroup(
                group_id=group, member_id=None, member_epoch=-1, topics=topics if named else None
            )
            for group in (mine, SECRET)
        ]

    return groups


def _find(name: str, kind: int) -> Make:
    def make(holder: Holder) -> Step:
        keys = [holder.own(), SECRET]
        return ask(
            name,
            ApiKey.FIND_COORDINATOR,
            (1, 4),
            key=keys[0],
            key_type=kind,
            coordinator_keys=keys,
            again_on=WARMING_UP,
        )

    return make


_OFFSET_ROWS = partitions("partition_indexes")

GROUPS: list[Case] = [
    Case(_find("where its group is", 0), "group", "group-describe"),
    _in_group(
        "joined",
        ApiKey.JOIN_GROUP,
        9,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
        reason=None,
        again_on=WARMING_UP,
    ),
    _in_group("beaten", ApiKey.HEARTBEAT, 4, (), generation_id=1, **_NO_MEMBER),
    _in_group(
        "synced",
        ApiKey.SYNC_GROUP,
        5,
        (),
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[],
        **_NO_MEMBER,
    ),
    _in_group(
        "left",
        ApiKey.LEAVE_GROUP,
        5,
        members=[LeaveGroupRequest.MemberIdentity(member_id="stranger", group_instance_id=None, reason=None)],
    ),
    _in_group("left, as it once was", ApiKey.LEAVE_GROUP, 1, member_id="stranger"),
    Case(_commit(TRIO, (2, 9)), "topic group", "commits"),
    Case(_commit(("own", SECRET), (10,)), "topic group", "commits"),
    Case(
        about("its offsets", ApiKey.OFFSET_FETCH, (1, 7), "topics", _OFFSET_ROWS, TRIO, group_id=of()),
        "topic group",
        "looks-up",
    ),
    Case(
        about(
            "all its offsets",
            ApiKey.OFFSET_FETCH,
            (7,),
            "topics",
            lambda _names, _seen: None,
            (),
            group_id=of(),
        ),
        "topic group",
        "looks-up",
    ),
    Case(
        about("two groups' offsets", ApiKey.OFFSET_FETCH, (9,), "groups", _in_groups(named=True), TRIO),
        "topic group",
        "looks-up",
    ),
    Case(
        about(
            "two groups' offsets by id",
            ApiKey.OFFSET_FETCH,
            (10,),
            "groups",
            _in_groups(named=True),
            ("own", SECRET),
        ),
        "topic group",
        "looks-up",
    ),
    Case(
        about("all of two groups", ApiKey.OFFSET_FETCH, (9,), "groups", _in_groups(named=False), ("own",)),
        "topic group",
        "looks-up",
    ),
    Case(
        about(
            "described",
            ApiKey.DESCRIBE_GROUPS,
            (5, 6),
            "groups",
            bare,
            TRIO,
            include_authorized_operations=True,
        ),
        "group",
        "group-describe",
    ),
    Case(
        mine(about("all groups", ApiKey.LIST_GROUPS, (5,), "states_filter", bare, ())),
        "group cluster",
        "group-describe cluster-describe",
    ),
    Case(
        about(
            "a consumer of the new kind",
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            (0,),
            "subscribed_topic_names",
            bare,
            ("own",),
            group_id=of("missing"),
            member_id="a-member",
            member_epoch=-1,
            rebalance_timeout_ms=30_000,
            topic_partitions=[],
        ),
        "group topic",
        "group-read",
    ),
    Case(
        about(
            "consumer groups described",
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            (0, 1),
            "group_ids",
            bare,
            TRIO,
            include_authorized_operations=True,
        ),
        "group",
        "group-describe",
    ),
]

ENDED: list[Case] = [
    Case(
        about(
            "offsets dropped",
            ApiKey.OFFSET_DELETE,
            (0,),
            "topics",
            partitions("partitions", partition_index=0),
            TRIO,
            group_id=of(),
        ),
        "topic group",
        "drops-offsets",
    ),
    Case(
        about("groups deleted", ApiKey.DELETE_GROUPS, (0, 2), "groups_names", bare, TRIO),
        "group",
        "group-delete",
    ),
]
"""Cases that end groups, and hence come late."""

# --- Transactions


def kept_name(holder: Holder) -> str:
    """Name under which the answer to ADMIN's InitProducerId for the user's transactional id is
    kept.
    """
    return f"tx of {holder.user}"


def _identity(holder: Holder) -> dict[str, Callable[[Seen], int]]:
    return {
        "producer_id": lambda seen: seen[kept_name(holder)].producer_id,
        "producer_epoch": lambda seen: seen[kept_name(holder)].producer_epoch,
    }


def _init(name: str, thing: str | None, versions: Iterable[int]) -> Make:
    def make(holder: Holder) -> Step:
        mine = None if thing is None else holder.own(thing)
        fields: dict[str, Body] = {
            "transactional_id": mine,
            "transaction_timeout_ms": 60_000,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        return request(name, ApiKey.INIT_PRODUCER_ID, versions, fields, again_on=WARMING_UP)

    return make


def _add(name: str, things: Iterable[str], versions: Iterable[int]) -> Make:
    def make(holder: Holder) -> Step:
        identity = _identity(holder)
        rows = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                name=one if one == SECRET else holder.own(one), partitions=[0]
            )
            for one in things
        ]

        def transactions(seen: Seen) -> list[_AddPartitionsToTxnTransaction]:
            return [
                _AddPartitionsToTxnTransaction(
                    transactional_id=holder.own(),
                    producer_id=identity["producer_id"](seen),
                    producer_epoch=identity["producer_epoch"](seen),
                    verify_only=True,
                    topics=rows,
                )
            ]

        return ask(
            name,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            versions,
            v3_and_below_transactional_id=holder.own(),
            v3_and_below_producer_id=identity["producer_id"],
            v3_and_below_producer_epoch=identity["producer_epoch"],
            v3_and_below_topics=rows,
            transactions=transactions,
            again_on=WARMING_UP,
        )

    return make


def _write(holder: Holder) -> Step:
    def rows(seen: Seen) -> list[_TopicProduceData]:
        producer = seen[kept_name(holder)]
        data = batch(
            b"in tx",
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        return [
            _TopicProduceData(
                name=holder.own(),
                partition_data=[ProduceRequest.PartitionProduceData(index=0, records=data(seen))],
            )
        ]

    fields: dict[str, Body] = {
        "transactional_id": holder.own(),
        "acks": -1,
        "timeout_ms": 5_000,
        "topic_data": rows,
    }
    return request("produced in a transaction", ApiKey.PRODUCE, (11,), fields, again_on=WARMING_UP)


def _offsets(holder: Holder) -> Step:
    topics = [
        TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name=one,
            partitions=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                    partition_index=0, committed_offset=0, committed_leader_epoch=-1, committed_metadata=""
                )
            ],
        )
        for one in (holder.own(), holder.own("missing"), SECRET)
    ]
    fields: dict[str, Body] = {
        "transactional_id": holder.own(),
        "group_id": holder.own(),
        "generation_id": -1,
        "member_id": "",
        "topics": topics,
    }
    return request(
        "committed in a transaction",
        ApiKey.TXN_OFFSET_COMMIT,
        (0, 3),
        {**fields, **_identity(holder)},
        again_on=WARMING_UP,
    )


def _add_offsets(holder: Holder) -> Step:
    fields: dict[str, Body] = {
        "transactional_id": holder.own(),
        "group_id": holder.own(),
        **_identity(holder),
    }
    return request("a group added", ApiKey.ADD_OFFSETS_TO_TXN, (3,), fields, again_on=WARMING_UP)


def _end(holder: Holder) -> Step:
    fields: dict[str, Body] = {
        "transactional_id": holder.own(),
        "committed": True,
        **_identity(holder),
    }
    return request("ended", ApiKey.END_TXN, (3,), fields, again_on=WARMING_UP)


def _markers(holder: Holder) -> Step:
    def rows(seen: Seen) -> list[_WritableTxnMarker]:
        producer = seen[kept_name(holder)]
        topics = [WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=holder.own(), partition_indexes=[0])]
        marker = {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
            "coordinator_epoch": 0,
        }
        return [_WritableTxnMarker(transaction_result=False, topics=topics, **marker)]

    return ask("a marker by hand", ApiKey.WRITE_TXN_MARKERS, (1,), markers=rows)


def _described(holder: Holder) -> Step:
    names = [holder.own(), holder.own("missing"), SECRET]
    return ask("transactions described", ApiKey.DESCRIBE_TRANSACTIONS, (0,), transactional_ids=names)


def _listed(_holder: Holder) -> Step:
    fields: dict[str, Body] = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    return request("all transactions", ApiKey.LIST_TRANSACTIONS, (1,), fields, mine=True)


TRANSACTIONS: list[Case] = [
    Case(_find("where its transactions are", 1), "tx", "tx-describe"),
    Case(_add("a topic added", ("own",), (3,)), "topic tx cluster", "writes-in-tx"),
    Case(_add("topics added", TRIO, (3, 4)), "topic tx cluster", "writes-in-tx cluster-cluster-action"),
    Case(_write, "topic tx", "writes-in-tx"),
    Case(_add_offsets, "group tx", "commits-in-tx"),
    Case(_offsets, "topic group tx", "commits-in-tx"),
    Case(_described, "tx topic", "tx-describe"),
    Case(_listed, "tx topic", "tx-describe"),
    Case(_end, "tx", "tx-write"),
    Case(_markers, "cluster topic", "cluster-cluster-action cluster-alter"),
    Case(_init("a producer id", None, (1, 4)), "cluster topic", "cluster-idempotent-write topic-write"),
    Case(_init("a transactional producer's id", "new", (1, 4)), "tx", "tx-write"),
]
