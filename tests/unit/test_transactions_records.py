"""Records of `__transaction_state` as Kafka writes and reads them."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.transactions import TransactionImage, TransactionState
from fairlead_kafka.broker.transactions.records import decode_key, decode_value, encode_key, encode_value

PARTITIONS = frozenset({TopicPartition("b", 2), TopicPartition("a", 7), TopicPartition("a", 1)})


@pytest.mark.parametrize("state", TransactionState, ids=lambda state: state.value)
def test_what_is_written_is_read_back(state: TransactionState) -> None:
    partitions = frozenset() if state is TransactionState.EMPTY else PARTITIONS
    image = TransactionImage(2**40, 32_767, 60_000, state, partitions, 123, 456)
    assert decode_value(encode_value(image, 0)) == image
    assert decode_value(encode_value(image, 1)) == image
    ending = replace(image, previous_producer_id=7, next_producer_id=2**41, client_version=2)
    assert decode_value(encode_value(ending, 2)) == ending
    assert decode_key(encode_key("zahlung-\u00e9")) == "zahlung-\u00e9"


def test_the_bytes_are_kafkas() -> None:
    """Laid out by hand from TransactionLogKey.json and TransactionLogValue.json, version 0."""
    assert encode_key("tx") == b"\x00\x00\x00\x02tx"
    image = TransactionImage(1, 2, 3, TransactionState.ONGOING, PARTITIONS, 5, 4)
    topics = (
        struct.pack(">i", 2)
        + b"\x00\x01a"
        + struct.pack(">iii", 2, 1, 7)
        + b"\x00\x01b"
        + struct.pack(">ii", 1, 2)
    )
    assert encode_value(image, 0) == struct.pack(">hqhib", 0, 1, 2, 3, 1) + topics + struct.pack(">qq", 4, 5)
    empty = TransactionImage(1, 2, 3, TransactionState.EMPTY, frozenset(), -1, 4)
    assert encode_value(empty, 0) == struct.pack(">hqhib", 0, 1, 2, 3, 0) + struct.pack(
        ">i", -1
    ) + struct.pack(">qq", 4, -1)


def test_the_bytes_of_version_1_are_kafkas() -> None:
    """Laid out by hand from TransactionLogValue.json, version 1."""
    topics = b"\x02" + b"\x02a" + b"\x03" + struct.pack(">ii", 1, 7) + b"\x00"
    tags = b"\x02" + b"\x00\x08" + struct.pack(">q", 9) + b"\x02\x02" + struct.pack(">h", 2)
    data = struct.pack(">hqhib", 1, 1, 2, 3, 4) + topics + struct.pack(">qq", 4, 5) + tags
    partitions = frozenset({TopicPartition("a", 1), TopicPartition("a", 7)})
    image = TransactionImage(1, 2, 3, TransactionState.COMPLETE_COMMIT, partitions, 5, 4)
    image = replace(image, previous_producer_id=9, client_version=2)
    assert encode_value(image, 2) == data
    assert decode_value(data) == image
    unknown = data[: -len(tags)] + b"\x03" + tags[1:] + b"\x03\x02" + struct.pack(">h", 5)
    assert decode_value(unknown) == image  # tag 3 is newer than this release: passed over


def test_garbage_is_refused_at_every_length() -> None:
    image = TransactionImage(1, 2, 3, TransactionState.ONGOING, PARTITIONS, 5, 4, client_version=2)
    compact = encode_value(image, 2)
    for size in range(len(compact)):
        with pytest.raises(DecodeError):
            decode_value(compact[:size])
    whole = encode_value(image, 0)
    for size in range(len(whole)):
        with pytest.raises(DecodeError):
            decode_value(whole[:size])
    for data in (b"\x00\x09" + whole[2:], whole[:16] + b"\x63" + whole[17:]):
        with pytest.raises(DecodeError):
            decode_value(data)
    assert decode_key(b"\x00\x05\x00\x00") is None
    with pytest.raises(DecodeError):
        decode_key(b"\x00\x00\x00\x05ab")
    with pytest.raises(DecodeError):
        decode_key(b"\x00\x00\x00\x01\xff")
