"""Records that were acquired of one partition, and their decoding to records or Arrow.

A broker sends whole batches and says which of their offsets it has acquired for this consumer; the
other offsets belong to other members, or are complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.decoding import decode_chunk, fields_of
from fairlead_kafka.consumer.partition import Chunk
from fairlead_kafka.consumer.share.acknowledging import Acquired, Place, counts_of, offsets_of
from fairlead_kafka.records import DecodedRecords, Room
from fairlead_kafka.records.arrays import Bools, Int64
from fairlead_kafka.records.layout import LENGTH_PREFIX_BYTES

_LENGTH = slice(8, LENGTH_PREFIX_BYTES)


class ShareRecord(NamedTuple):
    """A record as `ShareConsumer.poll` returns it: the fields of `Record`, and how often it was
    delivered, this time included."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    delivery_count: int = 1


class ShareChunk(NamedTuple):
    """One partition's part of an answer to ShareFetch; `acquired` is in ascending order of
    offsets."""

    partition: TopicPartition
    topic_id: UUID
    node_id: int
    session: int
    """Number of the share session that it was acquired in."""
    acquired: Sequence[Acquired]
    data: memoryview
    lock_ns: int
    """Monotonic time, ns, at which the broker's locks end at the latest."""

    @property
    def place(self) -> Place:
        """Topic id and partition number, as requests name the partition."""
        return self.topic_id, self.partition.partition

    @property
    def size(self) -> int:
        """Number of offsets that were acquired."""
        return sum(last - first + 1 for first, last, _ in self.acquired)


class Part(NamedTuple):
    """Decoded records of a chunk, which of them were acquired (`wanted`), and the delivery count of
    each (`counts`)."""

    decoded: DecodedRecords
    wanted: Bools
    counts: npt.NDArray[np.int16]
    """The delivery count of each record; of those that are not wanted it says nothing."""


class Decoded(NamedTuple):
    """A chunk's records. `damaged`: acquired offsets whose batches do not decode, and `error`
    why."""

    parts: list[Part]
    damaged: Int64
    error: DecodeError | None

    @property
    def offsets(self) -> Int64:
        """Offsets of the records that were acquired."""
        found = [part.decoded.offsets[part.wanted] for part in self.parts]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def records(self, partition: TopicPartition) -> list[ShareRecord]:
        """The records that were acquired, as `ShareConsumer.poll` returns them."""
        found: list[ShareRecord] = []
        for decoded, wanted, counts in self.parts:
            fields = zip(fields_of(partition, decoded, 0, decoded.count), counts.tolist(), strict=True)
            if wanted.all():
                found += [tuple.__new__(ShareRecord, (*each, count)) for each, count in fields]
            else:
                rows = zip(fields, wanted.tolist(), strict=True)
                found += [tuple.__new__(ShareRecord, (*each, count)) for (each, count), kept in rows if kept]
        return found


def decode_share_chunk(
    chunk: ShareChunk,
    columns: Sequence[str],
    *,
    check_crcs: bool,
    only: Int64 | None = None,
    room: Room | None = None,
) -> Decoded:
    """The acquired records of a chunk, with what `columns` need; `only`: not all, but those at
    these offsets.

    A batch that does not decode spoils no other: it is left out, and its error is returned beside
    the records.
    """
    offsets, counts = offsets_of(chunk.acquired), counts_of(chunk.acquired)
    if only is not None:
        kept = np.isin(offsets, only)
        offsets, counts = offsets[kept], counts[kept]
    whole = _plain(chunk, chunk.data)
    try:
        return Decoded(
            _parts(whole, columns, offsets, counts, check_crcs=check_crcs, room=room),
            np.empty(0, np.int64),
            None,
        )
    except DecodeError as error:
        return _batch_by_batch(chunk, columns, offsets, counts, error, check_crcs=check_crcs, room=room)


def _plain(chunk: ShareChunk, data: memoryview) -> Chunk:
    """A share chunk as a chunk of a consumer that reads on from its first offset, to be decoded
    alike."""
    start, end = chunk.acquired[0].first, chunk.acquired[-1].last + 1
    return Chunk(chunk.partition, 0, start, end, end, data, chunk.node_id)


def _parts(
    whole: Chunk,
    columns: Sequence[str],
    offsets: Int64,
    counts: npt.NDArray[np.int16],
    *,
    check_crcs: bool,
    room: Room | None,
) -> list[Part]:
    """Decoded parts of a chunk: one, unless inflating stops at its limit of memory."""
    found: list[Part] = []
    while True:
        decoded = decode_chunk(whole, columns, check_crcs=check_crcs, room=room)
        if decoded.count:
            at = np.searchsorted(offsets, decoded.offsets)
            at[at == len(offsets)] = 0
            wanted = offsets[at] == decoded.offsets
            if wanted.any():
                found.append(Part(decoded, wanted, counts[at]))
        if not whole.start < decoded.next_offset < whole.end or not len(offsets):
            return found
        whole = whole._replace(start=decoded.next_offset)


def _batch_by_batch(
    chunk: ShareChunk,
    columns: Sequence[str],
    offsets: Int64,
    counts: npt.NDArray[np.int16],
    error: DecodeError,
    *,
    check_crcs: bool,
    room: Room | None,
) -> Decoded:
    """Decode each batch by itself; acquired offsets that no sound batch covers are damaged, for
    `error`."""
    parts: list[Part] = []
    damaged = np.ones(len(offsets), np.bool_)
    position, size_bytes = 0, len(chunk.data)
    while position + LENGTH_PREFIX_BYTES <= size_bytes:
        length = int.from_bytes(chunk.data[position:][_LENGTH], "big", signed=True)
        after = position + LENGTH_PREFIX_BYTES + length
        if length <= 0 or after > size_bytes:
            break
        data = chunk.data[position:after]
        base = int.from_bytes(data[:8], "big", signed=True)
        position = after
        try:
            batch = _plain(chunk, data)
            found = _parts(batch, columns, offsets, counts, check_crcs=check_crcs, room=room)
            end = decode_chunk(batch, columns, check_crcs=check_crcs).next_offset
        except DecodeError:
            continue
        parts += found
        damaged &= ~((offsets >= base) & (offsets < end))
    return Decoded(parts, offsets[damaged], error)
