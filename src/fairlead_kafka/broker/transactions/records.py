"""Transactions as records of `__transaction_state`, in Kafka's own format, so that Kafka's tools
can read them.

- Key (`TransactionLogKey`), version 0: the transactional id, a string with an int16 length.
- Value (`TransactionLogValue`), version 0: producer id: int64; epoch: int16; time-out: int32, ms;
  state: int8; partitions; time of the last change and of the start: int64, ms since 1970.
- Value, version 1: the same fields with compact lengths, then tagged fields: 0 the previous
  producer id: int64; 1 the next producer id: int64; 2 the client's transaction version: int16.

Partitions are an array of topic: string and numbers: array of int32; null in the state Empty. Times
are in ms. Value 0 is written while the feature `transaction.version` is at 0, else value 1; both
are read, and unknown tagged fields are ignored. A null value is a tombstone: it deletes the
transactional id.
"""

from __future__ import annotations

import struct

from fairlead_kafka.base.ids import NO_PRODUCER_ID, TopicPartition
from fairlead_kafka.broker.fields import Reader, Writer
from fairlead_kafka.broker.transactions.image import TransactionImage
from fairlead_kafka.broker.transactions.states import NUMBERS, STATES, TransactionState

_KEY_VERSION = 0
_VALUE_VERSION = 0
_COMPACT_VERSION = 1
_PREVIOUS_ID_TAG, _NEXT_ID_TAG, _CLIENT_VERSION_TAG = 0, 1, 2


def encode_key(transactional_id: str) -> bytes:
    """The bytes of a `TransactionLogKey`."""
    writer = Writer()
    writer.number(">h", _KEY_VERSION)
    writer.text(transactional_id)
    return writer.joined()


def encode_value(image: TransactionImage, transaction_version: int) -> bytes:
    """The bytes of a `TransactionLogValue`, in the form that the cluster's level of
    `transaction.version` has."""
    compact = transaction_version > 0
    writer = Writer(compact=compact)
    writer.number(">h", _COMPACT_VERSION if compact else _VALUE_VERSION)
    writer.number(">qhib", image.producer_id, image.epoch, image.timeout_ms, NUMBERS[image.state])
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(image.partitions):
        by_topic.setdefault(topic, []).append(number)
    writer.count(None if image.state is TransactionState.EMPTY else len(by_topic))
    for topic, numbers in by_topic.items():
        writer.text(topic)
        writer.numbers(numbers)
        writer.tags({})
    writer.number(">qq", image.updated_ms, image.start_ms)
    writer.tags(_tags(image))
    return writer.joined()


def _tags(image: TransactionImage) -> dict[int, bytes]:
    """The tagged fields of a value that differ from their defaults, by tag."""
    fields: dict[int, bytes] = {}
    if image.previous_producer_id != NO_PRODUCER_ID:
        fields[_PREVIOUS_ID_TAG] = struct.pack(">q", image.previous_producer_id)
    if image.next_producer_id != NO_PRODUCER_ID:
        fields[_NEXT_ID_TAG] = struct.pack(">q", image.next_producer_id)
    if image.client_version:
        fields[_CLIENT_VERSION_TAG] = struct.pack(">h", image.client_version)
    return fields


def decode_key(data: bytes) -> str | None:
    """The transactional id, or None for a record of another kind. DecodeError for garbage."""
    reader = Reader(data, "the key of a transaction")
    return reader.text() if reader.number(">h") == _KEY_VERSION else None


def decode_value(data: bytes) -> TransactionImage:
    """The image in a `TransactionLogValue`. DecodeError for garbage or a version that is not
    known."""
    reader = Reader(data, "the value of a transaction")
    reader.compact = reader.version(_COMPACT_VERSION) == _COMPACT_VERSION
    producer_id, epoch, timeout_ms = reader.number(">q"), reader.number(">h"), reader.number(">i")
    state = STATES.get(reader.number(">b"))
    if state is None:
        raise reader.error()
    partitions = []
    for _ in range(reader.count(nullable=True)):
        topic = reader.text()
        partitions += [TopicPartition(topic, number) for number in reader.numbers()]
        reader.tags()
    updated_ms, start_ms = reader.number(">q"), reader.number(">q")
    tags = reader.tags()
    return TransactionImage(
        producer_id,
        epoch,
        timeout_ms,
        state,
        frozenset(partitions),
        start_ms,
        updated_ms,
        previous_producer_id=reader.tagged(tags, _PREVIOUS_ID_TAG, ">q", NO_PRODUCER_ID),
        next_producer_id=reader.tagged(tags, _NEXT_ID_TAG, ">q", NO_PRODUCER_ID),
        client_version=reader.tagged(tags, _CLIENT_VERSION_TAG, ">h", 0),
    )
