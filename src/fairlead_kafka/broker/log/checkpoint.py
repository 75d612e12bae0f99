"""The checkpoint: the state of all partitions at one place of the log, in one file.

    magic 8 · length of heading 8 · heading (JSON) · tables of int64, little-endian · CRC-32 4

The heading has the place in the log, the log's files and the length of each table. Partitions
without state are left out. Tables: the ids of `topics`; a row for each of the `partitions`; and in
their order what belongs to them: `batches` (rows of the index), `epochs`, `producers` (packed),
`passes` of compaction.
"""

from __future__ import annotations

import json
import struct
import sys
import uuid
import zlib
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.broker.log.index import FILE, MARK, ROW_BYTES, SIZE, TRANSACTIONAL, WIDTH, BatchIndex
from fairlead_kafka.broker.log.partition import Partition

_MAGIC = b"FLCKPT01"
_LENGTH = struct.Struct(">Q")
_CRC = struct.Struct(">I")
_PARTITION_WIDTH = 9
_PAIR_WIDTH = 2

assert sys.byteorder == "little", "the tables are written as they lie in memory"

Int64 = npt.NDArray[np.int64]


@dataclass
class Place:
    """Position of a checkpoint in the log: it covers everything before byte `position` of file
    `file`.

    `closed` gives the sizes of earlier files, in bytes.
    """

    file: int = 1
    position: int = 0
    sequence: int = 0
    closed: dict[int, int] = field(default_factory=dict)


class Encoder:
    """Makes the bytes of a checkpoint's file of partitions, which are given one by one, in any
    order."""

    def __init__(self) -> None:
        self._topics: dict[uuid.UUID, int] = {}
        self._rows, self._epochs, self._passes = array("q"), array("q"), array("q")
        self._batches: list[bytes] = []
        self._producers: list[bytes] = []

    def take(self, one: Partition) -> None:
        """Add a partition to the checkpoint, as it is now."""
        epoch_rows, packed = one.epochs.items(), one.producers.packed()
        if not (one.log_end or epoch_rows or packed):
            return
        topic = self._topics.setdefault(one.topic_id, len(self._topics))
        offsets = (one.log_start, one.high_watermark, one.log_end)
        self._rows.extend(
            (topic, one.partition, *offsets, len(one.index), len(epoch_rows), len(packed), len(one.passes))
        )
        self._batches.append(one.index.rows.tobytes())
        self._producers.append(packed)
        for pair in epoch_rows:
            self._epochs.extend(pair)
        for pair in one.passes:
            self._passes.extend(pair)

    def content(self, place: Place) -> list[bytes]:
        """The checkpoint's file, in pieces, for this place in the log."""
        ids = b"".join(topic_id.bytes for topic_id in self._topics)
        batches, producers = b"".join(self._batches), b"".join(self._producers)
        tables = (
            ids,
            self._rows.tobytes(),
            batches,
            self._epochs.tobytes(),
            producers,
            self._passes.tobytes(),
        )
        heading = {
            "file": place.file,
            "position": place.position,
            "sequence": place.sequence,
            "closed": sorted(place.closed.items()),
            "bytes": [len(table) for table in tables],
        }
        text = json.dumps(heading).encode()
        pieces = [_MAGIC, _LENGTH.pack(len(text)), text, *tables]
        crc = 0
        for piece in pieces:
            crc = zlib.crc32(piece, crc)
        return [*pieces, _CRC.pack(crc)]


class Checkpoint:
    """A decoded checkpoint. DecodeError if `data` is not a whole one."""

    def __init__(self, data: bytes) -> None:
        begin = len(_MAGIC) + _LENGTH.size
        if len(data) < begin + _CRC.size or data[: len(_MAGIC)] != _MAGIC:
            raise DecodeError("not a checkpoint of this version", 0)
        view = memoryview(data)
        if zlib.crc32(view[: -_CRC.size]) != _CRC.unpack(data[-_CRC.size :])[0]:
            raise DecodeError("the checkpoint is damaged: its CRC does not fit", len(data) - _CRC.size)
        stop = begin + _LENGTH.unpack_from(data, len(_MAGIC))[0]
        heading = json.loads(data[begin:stop])
        self.place = Place(heading["file"], heading["position"], heading["sequence"], dict(heading["closed"]))
        tables = []
        for size_bytes in heading["bytes"]:
            tables.append(view[stop : stop + size_bytes])
            stop += size_bytes
        ids, rows, self._batches, epochs, self._producers, passes = tables
        self._topics = [uuid.UUID(bytes=bytes(ids[at : at + 16])) for at in range(0, len(ids), 16)]
        self._partitions = np.frombuffer(bytes(rows), np.int64).reshape(-1, _PARTITION_WIDTH)
        self._epochs, self._passes = _pairs(epochs), _pairs(passes)

    def restore(self, partition_of: Callable[[uuid.UUID, int], Partition | None]) -> dict[int, int]:
        """Restore every partition that `partition_of` gives (None: its topic was deleted). Returns
        {file: live bytes}."""
        kept = np.ones(len(self._partitions), np.bool_)
        transactional = self._transactional()
        sums = np.concatenate(([0], np.cumsum(self._table()[:, SIZE])))
        batch = epoch = producer = compacted = 0
        for number, row in enumerate(self._partitions.tolist()):
            (
                topic,
                index,
                log_start,
                high_watermark,
                log_end,
                batch_count,
                epoch_count,
                producer_bytes,
                pass_count,
            ) = row
            one = partition_of(self._topics[topic], index)
            if one is not None:
                one.log_start, one.high_watermark, one.log_end, one.written_end = (
                    log_start,
                    high_watermark,
                    log_end,
                    log_end,
                )
                if batch_count:
                    one.index = BatchIndex()
                    one.index.rows.frombytes(
                        self._batches[batch * ROW_BYTES : (batch + batch_count) * ROW_BYTES]
                    )
                    one.size_bytes = int(sums[batch + batch_count] - sums[batch])
                if epoch_count:
                    pairs = self._epochs[epoch : epoch + epoch_count]
                    one.epochs.restore(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))
                if producer_bytes:
                    one.producers.restore(bytes(self._producers[producer : producer + producer_bytes]))
                if pass_count:
                    one.passes = tuple(
                        (end, at_ms) for end, at_ms in self._passes[compacted : compacted + pass_count]
                    )
                if number in transactional:
                    one.recall_transactions()
            else:
                kept[number] = False
            batch, epoch = batch + batch_count, epoch + epoch_count
            producer, compacted = producer + producer_bytes, compacted + pass_count
        return self._live_bytes(kept)

    def _table(self) -> Int64:
        return (
            np.frombuffer(self._batches, np.int64).reshape(-1, WIDTH)
            if self._batches.nbytes
            else np.empty((0, WIDTH), np.int64)
        )

    def _transactional(self) -> set[int]:
        """Numbers of the rows of partitions that have batches of transactions."""
        counts = self._partitions[:, 5]
        found = np.flatnonzero(self._table()[:, MARK] & TRANSACTIONAL)
        return set(np.searchsorted(np.cumsum(counts), found, side="right").tolist())

    def _live_bytes(self, kept: npt.NDArray[np.bool_]) -> dict[int, int]:
        """{file: bytes of batches in it}, of the partitions that are `kept`."""
        batches = self._table()[np.repeat(kept, self._partitions[:, 5])]
        files, places = np.unique(batches[:, FILE], return_inverse=True)
        live_bytes = np.bincount(places, weights=batches[:, SIZE], minlength=len(files)).astype(np.int64)
        return dict(zip(files.tolist(), live_bytes.tolist(), strict=True))


def _pairs(table: memoryview) -> list[list[int]]:
    return np.frombuffer(bytes(table), np.int64).reshape(-1, _PAIR_WIDTH).tolist()
