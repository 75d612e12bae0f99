"""The path of a single `send`: a count of bytes, columns, a handle; in machine code and in Python.

The machine code (`src/native/intake.h`) runs under the GIL and never releases it between a check
and the action that follows, so a record is counted, appended and numbered at once, even while
another thread holds a Python lock. The classes here are its reference implementation: the oracle of
the tests, and the fallback where there is no machine code; then the lock of
`client.memory.MemoryPool` guards them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence, Sized
from typing import TYPE_CHECKING, Generic, TypeVar

from fairlead_kafka.base.ids import NO_PARTITION, NO_TIMESTAMP
from fairlead_kafka.base.kernel import native_type
from fairlead_kafka.client.delivery import Delivery, OnDelivery

Column = tuple["bytes | bytearray", "bytes | bytearray", "bytes | bytearray | None"]
"""Data, int64 offsets (one more than there are items), and bools: which are not null (None:
all)."""
Columns = tuple["Column | None", "Column | None", "bytes | bytearray | None", "bytes | bytearray | None"]
"""Values, keys (None: all null), int32 partitions, int64 timestamps (None: none given; -1: not
given)."""
Pairs = Sequence[tuple[str, "bytes | None"]]
"""Headers of a record."""
T = TypeVar("T")
NO_ROOM = -1


class PythonByteCounter:
    """A count of free bytes, of which calls take some and give them back."""

    def __init__(self) -> None:
        self.free_bytes = 0

    def take(self, size_bytes: int) -> bool:
        """Take `size_bytes` of the free bytes. False, and nothing taken, if fewer are free."""
        if size_bytes > self.free_bytes:
            return False
        self.free_bytes -= size_bytes
        return True

    def give(self, size_bytes: int) -> None:
        """Add `size_bytes` to the free bytes."""
        self.free_bytes += size_bytes


class PythonRecordBuffer:
    """Records of one topic, one after the other, until their columns are taken.

    `callbacks` and `headers` are lists that get an item for each record, as far as any record has
    one. `most_bytes`: beyond this, memory for data is not doubled any more.
    """

    def __init__(
        self,
        delivery: Delivery,
        callbacks: list[OnDelivery | None],
        headers: list[Pairs | None],
        most_bytes: int,
    ) -> None:
        self.delivery = delivery
        self.count = 0
        self.size_bytes = 0
        self._callbacks = callbacks
        self._headers = headers
        self._values: list[bytes | None] = []
        self._keys: list[bytes | None] = []
        self._partitions: list[int] = []
        self._timestamps: list[int] = []
        self._taken = False

    def append(
        self,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp_ms: int,
        headers: Pairs | None,
        callback: OnDelivery | None,
        size_bytes: int,
        pool: ByteCounter | None,
    ) -> int:
        """Append a record, -1 for no partition or timestamp, and take its size from `pool` (None:
        it was taken before).

        Returns its row; NO_ROOM, and nothing done, if the pool has too little. ValueError once the
        columns were taken.
        """
        self._check()
        if pool is not None and not pool.take(size_bytes):
            return NO_ROOM
        row = self.count
        if headers is not None:
            padded(self._headers, row).append(headers)
        if callback is not None:
            padded(self._callbacks, row).append(callback)
        self._values.append(value)
        self._keys.append(key)
        self._partitions.append(partition)
        self._timestamps.append(timestamp_ms)
        self.count += 1
        self.size_bytes += size_bytes
        return row

    def take_columns(self) -> Columns:
        """The columns; from now on nothing can be appended. ValueError the second time."""
        self._check()
        self._taken = True
        partitions = (
            array("i", self._partitions).tobytes()
            if max(self._partitions, default=NO_PARTITION) != NO_PARTITION
            else None
        )
        timestamps = (
            array("q", self._timestamps).tobytes()
            if max(self._timestamps, default=NO_TIMESTAMP) != NO_TIMESTAMP
            else None
        )
        return _column(self._values), _column(self._keys), partitions, timestamps

    def _check(self) -> None:
        if self._taken:
            raise ValueError("the columns of this buffer were taken")


class PythonHandle:
    """A reference to one row of a delivery; the base of handles on records."""

    __slots__ = ("delivery", "row")

    def __init__(self, delivery: Delivery, row: int) -> None:
        self.delivery = delivery
        self.row = row


class PythonSingleSend(Generic[T]):
    """Has a function `send` for single records: a plain record is appended to the open buffer of
    its topic, any other is passed to `slow`.

    A record is plain if it has no headers, nobody waits for memory and there is enough, and the
    buffer stays below `chunk_max_bytes`. `slow` takes every record. In Python there would be
    nothing to gain: everything goes to `slow`.
    """

    def __init__(
        self,
        pool: ByteCounter,
        waiters: Sized,
        open_buffers: dict[str, RecordBuffer],
        handle: type[Handle],
        slow: Callable[..., T],
        largest_bytes: int,
        chunk_max_bytes: int,
        overhead_bytes: int,
    ) -> None:
        self.send = slow


def padded(items: list[T | None], count: int) -> list[T | None]:
    """`items`, lengthened to `count` in place with None."""
    if len(items) < count:
        items.extend([None] * (count - len(items)))
    return items


def _column(items: list[bytes | None]) -> Column | None:
    if all(item is None for item in items):
        return None
    offsets = array("q", [0])
    for item in items:
        offsets.append(offsets[-1] + len(item or b""))
    valid = None if None not in items else bytes(item is not None for item in items)
    return b"".join(item or b"" for item in items), offsets.tobytes(), valid


if TYPE_CHECKING:
    ByteCounter = PythonByteCounter
    RecordBuffer = PythonRecordBuffer
    Handle = PythonHandle
    SingleSend = PythonSingleSend
else:
    ByteCounter = native_type(PythonByteCounter)
    RecordBuffer = native_type(PythonRecordBuffer)
    Handle = native_type(PythonHandle)
    SingleSend = native_type(PythonSingleSend)
