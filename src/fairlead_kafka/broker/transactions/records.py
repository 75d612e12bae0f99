"""Transactions as records of `__transaction_state`, in Kafka's own format, so that Kafka's tools
can read them.

| | version | fields | |---|---|---| | key (`TransactionLogKey`) | 0 | transactional id: string with
an int16 length | | value (`TransactionLogValue`) | 0 | producer id: int64, epoch: int16, time-out:
int32, state: int8, partitions, updated, started: int64 | | | 1 | as 0 with compact lengths, then
tagged fields: 0 previous producer id: int64, 1 next producer id: int64, 2 client transaction
version: int16 |

Partitions are an array of topic: string and numbers: array of int32; null in the state Empty. Times
are in ms. Value 0 is written while the feature `transaction.version` is at 0, else value 1; both
are read, and tagged fields that are not known are passed over. A null value: forgotten.
"""

from __future__ import annotations

import struct

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.ids import NO_PRODUCER_ID, TopicPartition
from fairlead_kafka.broker.transactions.image import TransactionImage
from fairlead_kafka.broker.transactions.states import NUMBERS, STATES, TransactionState

_KEY_VERSION = 0
_VALUE_VERSION = 0
_COMPACT_VERSION = 1
_PREVIOUS_ID_TAG, _NEXT_ID_TAG, _CLIENT_VERSION_TAG = 0, 1, 2
_HEAD = struct.Struct(">hqhib")
_TIMES = struct.Struct(">qq")


def encode_key(transactional_id: str) -> bytes:
    """A `TransactionLogKey`."""
    return struct.pack(">h", _KEY_VERSION) + _string(transactional_id)


def encode_value(image: TransactionImage, transaction_version: int) -> bytes:
    """A `TransactionLogValue`, as the cluster's level of `transaction.version` has it."""
    compact = transaction_version > 0
    version = _COMPACT_VERSION if compact else _VALUE_VERSION
    head = _HEAD.pack(version, image.producer_id, image.epoch, image.timeout_ms, NUMBERS[image.state])
    times = _TIMES.pack(image.updated_ms, image.start_ms)
    if compact:
        return head + _compact_partitions(image) + times + _tags(image)
    return head + _partitions(image) + times


def _by_topic(image: TransactionImage) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(image.partitions):
        by_topic.setdefault(topic, []).append(number)
    return by_topic


def _partitions(image: TransactionImage) -> bytes:
    if image.state is TransactionState.EMPTY:
        return struct.pack(">i", -1)
    by_topic = _by_topic(image)
    parts = [struct.pack(">i", len(by_topic))]
    for topic, numbers in by_topic.items():
        parts += [_string(topic), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return b"".join(parts)


def _compact_partitions(image: TransactionImage) -> bytes:
    if image.state is TransactionState.EMPTY:
        return _varint(0)
    by_topic = _by_topic(image)
    parts = [_varint(len(by_topic) + 1)]
    for topic, numbers in by_topic.items():
        data = topic.encode()
        parts += [_varint(len(data) + 1), data, _varint(len(numbers) + 1)]
        parts += [struct.pack(f">{len(numbers)}i", *numbers), _varint(0)]
    return b"".join(parts)


def _tags(image: TransactionImage) -> bytes:
    """The tagged fields that differ from their defaults."""
    fields: dict[int, bytes] = {}
    if image.previous_producer_id != NO_PRODUCER_ID:
        fields[_PREVIOUS_ID_TAG] = struct.pack(">q", image.previous_producer_id)
    if image.next_producer_id != NO_PRODUCER_ID:
        fields[_NEXT_ID_TAG] = struct.pack(">q", image.next_producer_id)
    if image.client_version:
        fields[_CLIENT_VERSION_TAG] = struct.pack(">h", image.client_version)
    parts = [_varint(len(fields))]
    for tag, data in fields.items():
        parts += [_varint(tag), _varint(len(data)), data]
    return b"".join(parts)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def decode_key(data: bytes) -> str | None:
    """The transactional id, or None for a record of another kind. DecodeError for garbage."""
    reader = _Reader(data)
    return reader.string() if reader.number("h") == _KEY_VERSION else None


def decode_value(data: bytes) -> TransactionImage:
    """The image. DecodeError for garbage or a version that is not known."""
    reader = _Reader(data)
    version = reader.number("h")
    if version not in (_VALUE_VERSION, _COMPACT_VERSION):
        raise DecodeError(
            f"a transaction of version {version}; this release reads up to {_COMPACT_VERSION}", 0
        )
    reader.compact = version == _COMPACT_VERSION
    producer_id, epoch, timeout_ms = reader.number("q"), reader.number("h"), reader.number("i")
    state = STATES.get(reader.number("b"))
    if state is None:
        raise DecodeError(f"a transaction in a state that is not known: {data[:64]!r}", reader.position - 1)
    partitions = []
    for _ in range(reader.count()):
        topic = reader.string()
        partitions += [TopicPartition(topic, reader.number("i")) for _ in range(reader.count())]
        reader.tags()
    updated_ms, start_ms = reader.number("q"), reader.number("q")
    tags = reader.tags()
    return TransactionImage(
        producer_id,
        epoch,
        timeout_ms,
        state,
        frozenset(partitions),
        start_ms,
        updated_ms,
        previous_producer_id=_tagged(tags, _PREVIOUS_ID_TAG, "q", NO_PRODUCER_ID),
        next_producer_id=_tagged(tags, _NEXT_ID_TAG, "q", NO_PRODUCER_ID),
        client_version=_tagged(tags, _CLIENT_VERSION_TAG, "h", 0),
    )


def _tagged(tags: dict[int, bytes], tag: int, form: str, default: int) -> int:
    return default if tag not in tags else _Reader(tags[tag]).number(form)


class _Reader:
    """Reads fields one after another; `compact`: lengths are varints of one more, and structures
    end with tagged fields."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self.compact = False

    def _fail(self) -> DecodeError:
        return DecodeError(f"not a record of a transaction: {self._data[:64]!r}", self.position)

    def take(self, size_bytes: int) -> bytes:
        end = self.position + size_bytes
        if size_bytes < 0 or end > len(self._data):
            raise self._fail()
        taken, self.position = self._data[self.position : end], end
        return taken

    def number(self, form: str) -> int:
        number: int = struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))[0]
        return number

    def varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise self._fail()

    def string(self) -> str:
        size_bytes = self.varint() - 1 if self.compact else self.number("h")
        try:
            return self.take(size_bytes).decode()
        except UnicodeDecodeError:
            raise self._fail() from None

    def count(self) -> int:
        """An array's length; 0 for null. Each item takes at least a byte, so no more than are left."""
        count = self.varint() - 1 if self.compact else self.number("i")
        if count > len(self._data) - self.position:
            raise self._fail()
        return max(0, count)

    def tags(self) -> dict[int, bytes]:
        """The tagged fields of a structure, by tag; none where lengths are not compact."""
        found: dict[int, bytes] = {}
        for _ in range(self.varint() if self.compact else 0):
            tag = self.varint()
            found[tag] = self.take(self.varint())
        return found
