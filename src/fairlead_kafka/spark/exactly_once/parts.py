"""Messages from tasks to the driver, and the records that the driver writes to the commit log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.json_types import Json, integer_at, json_object, list_at
from fairlead_kafka.core.prepared import PreparedTransaction
from fairlead_kafka.partitioning.hashing import murmur2, murmur2_column
from fairlead_kafka.records import BinaryColumn, columns_from_arrow

FORMAT_VERSION = 1
_MASK_64 = 2**64 - 1


class Writing(NamedTuple):
    """Identity of a write.

    Micro-batch `batch` of the query `name`, or version `batch` of the application `name`.
    """

    name: str
    batch: int

    def __str__(self) -> str:
        return f"batch {self.batch} of {self.name}"


class Part(NamedTuple):
    """A task's part of a batch: its rows, all of them in one prepared transaction. `digest` does
    not depend on their order."""

    transaction: PreparedTransaction
    rows: int
    digest: int


@dataclass
class TaskPrepared(WriterCommitMessage):
    """A task's message to the driver; `part` is None if the task had no rows."""

    writing: Writing
    part: Part | None


@dataclass(frozen=True)
class Decision:
    """A record of the commit log: the transactions `commit` are to be committed and `abort`
    aborted, whatever happens from now on. A batch that has a decision is not committed again.
    `done`: the decision has been carried out. `earlier`: how many transactions of the same batch
    earlier decisions have committed."""

    writing: Writing
    commit: tuple[Part, ...]
    abort: tuple[PreparedTransaction, ...] = ()
    done: bool = False
    earlier: int = 0

    @property
    def rows(self) -> int:
        """Number of rows to commit."""
        return sum(part.rows for part in self.commit)

    def carried_out(self) -> Decision:
        """The record that says that this decision is carried out; it names no transactions."""
        return replace(self, commit=(), abort=(), done=True, earlier=self.earlier + len(self.commit))

    def encode(self) -> bytes:
        """The decision as JSON: the value of its record in the commit log."""
        fields = {
            "version": FORMAT_VERSION,
            "batch": self.writing.batch,
            "done": self.done,
            "earlier": self.earlier,
            "commit": [[*part.transaction, part.rows, part.digest] for part in self.commit],
            "abort": [list(each) for each in self.abort],
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, name: str, value: bytes) -> Decision:
        """The decision about `name` that `encode` wrote. DecodeError for any other value."""
        try:
            fields = json_object(value)
            if fields["version"] != FORMAT_VERSION:
                raise DecodeError(
                    f"the commit log has a record of format {fields['version']}, written by a newer release; "
                    "use that",
                    0,
                )
            return cls(
                Writing(name, integer_at(fields, "batch")),
                tuple(_part(row) for row in list_at(fields, "commit")),
                tuple(_transaction(row) for row in list_at(fields, "abort")),
                bool(fields["done"]),
                integer_at(fields, "earlier"),
            )
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise DecodeError(
                f"the commit log has a record about {name} that is none of its own: {error!r}", 0
            ) from None


def _part(row: Json) -> Part:
    """A part of a decision, from its JSON in the log: a transaction's fields, the rows and the
    digest."""
    *transaction, rows, digest = _list(row)
    return Part(_transaction(transaction), int(str(rows)), int(str(digest)))


def _transaction(row: Json) -> PreparedTransaction:
    name, producer_id, epoch, partitions = _list(row)
    return PreparedTransaction(str(name), int(str(producer_id)), int(str(epoch)), int(str(partitions)))


def _list(row: Json) -> list[Json]:
    if not isinstance(row, list):
        raise ValueError(f"expected a list, got {row!r}")
    return row


class Digest:
    """A number that two sets of rows share if they are the same rows, in whatever order and
    batches: sums of hashes, 64 bits.

    It shows whether a repeated task has written the same as the first one: topic, partition asked
    for, key and value.
    """

    def __init__(self) -> None:
        self.value = 0

    def add(self, topic: str, rows: pa.RecordBatch) -> None:
        """Add rows for a topic, with columns as `Producer.send_table` takes them."""
        for columns, partitions in columns_from_arrow(rows):
            hashes = _mixed(
                _hashes(columns.keys, columns.count) + np.uint64(murmur2(topic.encode()) & 0xFFFFFFFF)
            )
            hashes = _mixed(hashes + _hashes(columns.values, columns.count))
            if partitions is not None:
                hashes = _mixed(hashes + partitions.astype(np.uint64))
            self.value = (self.value + int(hashes.sum(dtype=np.uint64))) & _MASK_64


def _hashes(column: BinaryColumn | None, count: int) -> npt.NDArray[np.uint64]:
    """uint64[count]: a hash of each item, which differs between null and the empty item."""
    if column is None:
        return np.zeros(count, np.uint64)
    hashes = murmur2_column(column).view(np.uint32).astype(np.uint64) + np.uint64(1)
    if column.valid is not None:
        hashes[~column.valid] = 0
    return hashes


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Numbers whose every bit depends on every bit (the finish of splitmix64), so that sums of them
    do not cancel out."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def parts_of(messages: Sequence[WriterCommitMessage | None]) -> tuple[Writing | None, list[Part]]:
    """The write that tasks' messages are about (None: there is none), and the parts that have
    rows."""
    prepared = [message for message in messages if isinstance(message, TaskPrepared)]
    return (prepared[0].writing if prepared else None), [
        message.part for message in prepared if message.part is not None
    ]
