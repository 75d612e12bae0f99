"""Transactions as records of `__transaction_state`, in Kafka's own format, so that Kafka's tools
can read them.

| | version | fields | |---|---|---| | key (`TransactionLogKey`) | 0 | transactional id: string with
an int16 length | | value (`TransactionLogValue`) | 0 | producer id: int64, epoch: int16, time-out:
int32, state: int8, partitions, updated, started: int64 | | | 1 | as 0 with compact lengths, then
tagged fields |

Partitions are an array of topic: string and numbers: array of int32; null in the state Empty. Times
are in ms. Value 0 is written, as Kafka does below `transaction.version` 1; both are read, tagged
fields passed over. A null value: forgotten.
"""

from __future__ import annotations

import struct

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.transactions.image import TransactionImage
from fairlead_kafka.broker.transactions.states import NUMBERS, STATES, TransactionState

_KEY_VERSION = 0
_VALUE_VERSION = 0
_COMPACT_VERSION = 1
_HEAD = struct.Struct(">hqhib")
_TIMES = struct.Struct(">qq")


def encode_key(transactional_id: str) -> bytes:
    """A `TransactionLogKey`."""
    return struct.pack(">h", _KEY_VERSION) + _string(transactional_id)


def encode_value(image: TransactionImage) -> bytes:
    """A `TransactionLogValue`."""
    head = _HEAD.pack(_VALUE_VERSION, image.producer_id, image.epoch, image.timeout_ms, NUMBERS[image.state])
    return head + _partitions(image) + _TIMES.pack(image.updated_ms, image.start_ms)


def _partitions(image: TransactionImage) -> bytes:
    if image.state is TransactionState.EMPTY:
        return struct.pack(">i", -1)
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(image.partitions):
        by_topic.setdefault(topic, []).append(number)
    parts = [struct.pack(">i", len(by_topic))]
    for topic, numbers in by_topic.items():
        parts += [_string(topic), struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return b"".join(parts)


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
        reader.skip_tags()
    updated_ms, start_ms = reader.number("q"), reader.number("q")
    return TransactionImage(
        producer_id, epoch, timeout_ms, state, frozenset(partitions), start_ms, updated_ms
    )


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

    def skip_tags(self) -> None:
        for _ in range(self.varint() if self.compact else 0):
            self.varint()
            self.take(self.varint())
