"""The newest batches of a broker's log, kept in memory: who reads at the tail never waits for the file."""

from __future__ import annotations

from collections import OrderedDict

from fairlead_kafka.broker.log.entry import ENTRY_HEADER_BYTES
from fairlead_kafka.core.effects import Buffer

_ENTRY_OVERHEAD_BYTES = 200
"""What one small batch costs in memory beside its bytes."""


class TailCache:
    """Entries (header and batch) by file and the batch's position there; the oldest go first when `limit_bytes` is passed."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        # Plain bytes, not views: views would each be an object for the garbage collector to walk over.
        self._entries: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    def add(self, file: int, position: int, entry: bytes) -> None:
        """Keep an entry whose batch lies at `position`."""
        self._size_bytes += len(entry) + _ENTRY_OVERHEAD_BYTES
        stale = self._entries.pop((file, position), None)
        if stale is not None:  # of a write that failed and was taken back
            self._size_bytes -= len(stale) + _ENTRY_OVERHEAD_BYTES
        self._entries[file, position] = entry
        while self._size_bytes > self._limit_bytes:
            _key, oldest = self._entries.popitem(last=False)
            self._size_bytes -= len(oldest) + _ENTRY_OVERHEAD_BYTES

    def get(self, file: int, position: int) -> Buffer | None:
        """The batch, if it is still here."""
        entry = self._entries.get((file, position))
        return None if entry is None else memoryview(entry)[ENTRY_HEADER_BYTES:]
