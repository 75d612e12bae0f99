"""An application in the simulation: a real producer machine, with stand-ins for the client API's
intake, memory and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import cast

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.limits import RECORD_OVERHEAD_MAX_BYTES
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.producer import CompletedRows, ProducerMachine, Submission, Wake
from fairlead_kafka.producer.submission import Rows
from fairlead_kafka.records import BinaryColumn, RecordColumns, columns_from_lists
from fairlead_kafka.runtime import VirtualHost

Int64 = npt.NDArray[np.int64]


class CountedMemory:
    """Implements `core.machine.MemoryPool`: counts the bytes of `buffer.memory` that are in use. A
    caller without room has to wait by itself."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.free_bytes = total_bytes
        self.wanted = False
        """True while a caller would wait for memory."""
        self.on_release: Callable[[], None] = lambda: None

    def reserve(self, size_bytes: int) -> bool:
        """Take `size_bytes`; False, and nothing taken, if there is no room."""
        if size_bytes > self.free_bytes:
            return False
        self.free_bytes -= size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        """Give `size_bytes` of buffer.memory back."""
        self.free_bytes += size_bytes
        self.on_release()

    def waiting(self) -> bool:
        """True if a caller is blocked because there is no memory."""
        return self.wanted


class Inbox:
    """Implements `producer.submission.Intake`: a list of submissions."""

    def __init__(self) -> None:
        self.items: list[Submission] = []
        self.expected = False
        """True if the machine will look again by itself, without being woken."""
        self.closed: Exception | None = None

    def take(self, coming_back: bool) -> Sequence[Submission]:
        """Take all submissions; `coming_back`: the machine will look again by itself."""
        items = self.items
        self.expected = coming_back and bool(items)
        if items:
            self.items = []
        return items

    def close(self, error: Exception) -> None:
        """Called when the machine has ended, with this error."""
        self.closed = error


class SubmittedRecords:
    """Implements `producer.submission.Delivery` for records submitted together: passes completed
    rows, with their partition and offset, to `on_completed`.
    """

    __slots__ = ("_on_completed", "count", "created_ns", "incomplete", "serial", "topic")

    def __init__(
        self, topic: str, serial: int, count: int, created_ns: int, on_completed: OnCompleted
    ) -> None:
        self.topic = topic
        self.serial = serial
        """Number of its first record, counted by its application."""
        self.count = count
        self.created_ns = created_ns
        self.incomplete = count
        self._on_completed = on_completed

    def complete(self, completed: CompletedRows) -> None:
        """Pass completed rows on to `on_completed`, with their partition and offset, or their
        error."""
        first_row, start, stop, order, partition, base_offset, _, error = completed
        self.incomplete -= stop - start
        rows = (
            range(first_row + start, first_row + stop)
            if order is None
            else (order[start:stop] + first_row).tolist()
        )
        self._on_completed(self, rows, partition, base_offset, error)


OnCompleted = Callable[[SubmittedRecords, Sequence[int], int, int, "Exception | None"], None]
"""Callback for completed rows: (submission, its rows, partition, offset of the first row or -1,
error).
"""


class Application:
    """One producer machine on a virtual host. `config` is as for `fairlead_kafka.Producer`, with
    bootstrap.servers."""

    def __init__(
        self,
        host: VirtualHost,
        config: Mapping[str, object],
        rng: Rng,
        on_completed: OnCompleted,
        machine_type: Callable[..., ProducerMachine] = ProducerMachine,
    ) -> None:
        self.host = host
        self.settings: Settings = CLIENT_CONFIGS.parse("producer", dict(config))
        self.memory = CountedMemory(self.settings["buffer.memory"])
        self.inbox = Inbox()
        self.machine = machine_type(self.settings, rng, self.inbox, self.memory)
        self.handle = host.add(self.machine)
        self.records = 0
        """Records submitted so far; the next record gets this number."""
        self._on_completed = on_completed

    def submit(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        partitions: Sequence[int] | None = None,
        timestamps_ms: Sequence[int] | None = None,
    ) -> SubmittedRecords | None:
        """Submit records together; None if buffer.memory has no room for them.

        `partitions`: explicit ones, -1 for none. UsageError if the records could never fit, or if
        the machine has ended.
        """
        columns = RecordColumns(len(values), None if keys is None else _column(keys), _column(values))
        now_ms = self.host.now_ms()
        columns.timestamps_ms = (
            np.full(columns.count, now_ms, np.int64)
            if timestamps_ms is None
            else np.array(timestamps_ms, np.int64)
        )
        explicit = None if partitions is None else np.array(partitions, np.int32)
        return self.submit_columns(topic, columns, _size_bytes(values, keys), explicit)

    def submit_columns(
        self,
        topic: str,
        columns: RecordColumns,
        size_bytes: int,
        partitions: npt.NDArray[np.int32] | None = None,
    ) -> SubmittedRecords | None:
        """Submit columns that take `size_bytes` of buffer.memory, as `submit` does. UsageError if
        the producer has ended, or the columns are larger than buffer.memory.

        Records without a timestamp get the batch's create time.
        """
        if self.inbox.closed is not None:
            raise UsageError(f"the producer has ended: {self.inbox.closed!r}")
        if size_bytes > self.memory.total_bytes:
            raise UsageError(
                f"{columns.count} records take up to {size_bytes} bytes, more than "
                f"buffer.memory={self.memory.total_bytes}"
            )
        if not self.memory.reserve(size_bytes):
            return None
        now_ns = self.host.now_ns()
        submitted = SubmittedRecords(topic, self.records, columns.count, now_ns, self._on_completed)
        self.records += columns.count
        self.inbox.items.append(
            Submission(
                topic, Rows(columns, partitions), submitted, created_ns=now_ns, reserved_bytes=size_bytes
            )
        )
        if not self.inbox.expected:
            self.inbox.expected = True
            self.host.submit(self.handle, Wake())
        return submitted


def _column(items: Sequence[bytes | None]) -> BinaryColumn | None:
    """Items as a column, None if all are null. Faster than `columns_from_lists` for items without
    nulls."""
    if None in items:
        return columns_from_lists(None, list(items)).values
    offsets = np.zeros(len(items) + 1, np.int64)
    offsets[1:] = [*accumulate(len(item) for item in items if item is not None)]
    return BinaryColumn(np.frombuffer(b"".join(cast("Sequence[bytes]", items)), np.uint8), offsets)


def _size_bytes(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None) -> int:
    size_bytes = len(values) * RECORD_OVERHEAD_MAX_BYTES + sum(
        len(value) for value in values if value is not None
    )
    return size_bytes if keys is None else size_bytes + sum(len(key) for key in keys if key is not None)
