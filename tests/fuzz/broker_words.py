"""What a peer that knows the fuzzed broker would say: names that exist, ids that were given out,
batches that are sound."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import UUID

from fairlead_kafka.records import Compression, Slice, columns_from_lists, encode
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.primitives import encode_varint
from tests.fuzz.messages import Words
from tests.fuzz.tape import Tape
from tests.fuzz.target_records import garbled_batch
from tests.support.broker_driver import WALL_MS

TOPICS = ("t", "c")
REMEMBERED = 8
LONG = "@@LONG@@"
"""Stands for a text that is longer than our encoders write: see `too_long`."""


def words(topic_ids: list[UUID]) -> Words:
    """Of a broker with the topics `t` and `c`; ids that it gives out are put in by `learn`."""
    small = (0, 0, 1, 2, -1, 7)
    return Words(
        texts=(
            *TOPICS,
            "t",
            "g",
            "tx",
            "",
            "__consumer_offsets",
            "__transaction_state",
            "range",
            "consumer",
            "g2",
            "no",
            "0",
        ),
        ids=[*topic_ids, UUID(int=0), UUID(int=5)],
        records=_records,
        by_name={
            "group_id": ["g", "g", "g2", LONG],
            "member_id": ["", "", LONG],
            "group_instance_id": [None, None, "i", LONG],
            "transactional_id": ["tx", None, "tx2", LONG],
            "v3_and_below_transactional_id": ["tx", "tx2"],
            "producer_id": [-1, 0, 1, 1000],
            "v3_and_below_producer_id": [-1, 0, 1],
            "producer_epoch": small,
            "generation_id": small,
            "generation_id_or_member_epoch": small,
            "member_epoch": small,
            "session_id": [0, 1],
            "session_epoch": [0, -1, 1, 2],
            "partition": small,
            "partition_index": small,
            "partition_indexes": small,
            "index": small,
            "partitions": small,
            "name": TOPICS,
            "topic": TOPICS,
            "topic_name": TOPICS,
            "key_type": [0, 1],
            "acks": [-1, 1, 0],
            "fetch_offset": [0, 1, 5, 100],
            "timestamp": [-3, -1, -2, -4, -5, 0, WALL_MS],
            "session_timeout_ms": [6000, 1000, 1500],
            "rebalance_timeout_ms": [1000, 0, 100],
            "transaction_timeout_ms": [1000, 10, 60_000],
            "max_wait_ms": [0, 1, 50, 500],
            "max_bytes": [1 << 20, 100, 0],
            "partition_max_bytes": [1 << 20, 100, 0],
            "timeout_ms": [100, 0, 1000],
            "num_partitions": [1, -1, 2, 0],
            "count": [3, 1, 0, 2],
            "replication_factor": [1, -1],
            "broker_ids": [0, 1],
            "replicas": [0, 1],
            "protocol_type": ["consumer"],
            "resource_type": [2, 4, 32],
            "leader_epoch": small,
            "current_leader_epoch": [-1, 0, 1],
        },
    )


def too_long(data: bytes) -> bytes:
    """The frame with 40,000 bytes, or in versions that have only 16 bits for a length 32,767, where
    `LONG` stands."""
    mark = LONG.encode()
    compact = data.replace(bytes([len(mark) + 1]) + mark, encode_varint(40_001) + b"x" * 40_000)
    longer = compact.replace(bytes([0, len(mark)]) + mark, b"\x7f\xff" + b"x" * 32_767)
    return len(longer[4:]).to_bytes(4, "big") + longer[4:]


def learn(known: Words, api_key: int, answer: Message) -> None:
    """Remember what an answer gives out: members, producers, sessions."""
    if api_key in (ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT):
        _remember(known, "member_id", answer.member_id)
    elif api_key == ApiKey.INIT_PRODUCER_ID:
        for name in ("producer_id", "v3_and_below_producer_id"):
            _remember(known, name, answer.producer_id)
    elif api_key == ApiKey.FETCH:
        _remember(known, "session_id", answer.session_id)


def _remember(known: Words, name: str, value: Any) -> None:
    values = known.by_name[name]
    assert isinstance(values, list)
    if value and value not in values:
        values.insert(0, value)  # the plainest choice, from now on
        del values[REMEMBERED:]


def _records(tape: Tape) -> bytes:
    if tape.chance(60):
        return garbled_batch(tape)
    batch = _batch(
        tape.byte() % 32,
        tape.pick((-1, 0, 0, 1, 1000)),
        tape.pick((0, 1)),
        tape.pick((0, 1, 2, -1)),
        tape.below(8),
    )
    return batch * 2 if tape.chance(4) else batch


@lru_cache(maxsize=4096)
def _batch(shape: int, producer_id: int, epoch: int, sequence: int, more: int) -> bytes:
    count = shape % 3 + 1
    keys = [b"k%d" % (nth % 2) if shape & 4 else None for nth in range(count)]
    values = [None if shape & 8 and nth == 0 else b"v" * (nth * 40) for nth in range(count)]
    times = [(WALL_MS, -1, 0, WALL_MS + 1_000_000)[(nth + more) % 4] for nth in range(count)]
    encoded = encode(
        [Slice(columns_from_lists(keys, values, None, times), 0, count, None)],
        create_time_ms=WALL_MS,
        compression=Compression(more % 5 if shape & 16 else 0),
        transactional=more & 4 != 0 and producer_id >= 0,
        producer_id=producer_id,
        producer_epoch=epoch if producer_id >= 0 else -1,
        base_sequence=sequence if producer_id >= 0 else -1,
    )
    return bytes(encoded.buffer)
