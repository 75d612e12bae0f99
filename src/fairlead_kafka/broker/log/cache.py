"""The newest batches of a broker's log, kept in memory: who reads at the tail never waits for the file.

Only what was appended is here, in the order in which it lies in the files; a batch that is moved is read from its file. What a failed
write is taken back from leaves the cache with it, so that whatever comes to lie in its place later is never taken for it.
"""

from __future__ import annotations

from collections import OrderedDict

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.log.entry import ENTRY_HEADER_BYTES
from fairlead_kafka.broker.log.index import Location
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
        """Keep an entry whose batch lies at `position`, behind all that are here."""
        self._size_bytes += len(entry) + _ENTRY_OVERHEAD_BYTES
        self._entries[file, position] = entry
        while self._size_bytes > self._limit_bytes:
            _key, oldest = self._entries.popitem(last=False)
            self._size_bytes -= len(oldest) + _ENTRY_OVERHEAD_BYTES

    @hook("log: a rewound write leaves the cache")
    def rewind(self, file: int, position: int) -> None:
        """A failed write is taken back: nothing is there any more from `position` of `file` on."""
        while self._entries and next(reversed(self._entries)) >= (file, position):
            _key, newest = self._entries.popitem()
            self._size_bytes -= len(newest) + _ENTRY_OVERHEAD_BYTES

    def get(self, location: Location) -> Buffer | None:
        """The batch, if it is still here."""
        entry = self._entries.get(location[:2])
        return None if entry is None else memoryview(entry)[ENTRY_HEADER_BYTES:]

    def entry(self, location: Location) -> bytes | None:
        """The batch with its entry's header, if it is still here."""
        return self._entries.get(location[:2])

    def check(self) -> None:
        """CheckFailed unless the bytes are counted right, within the limit, and entries lie in order without an overlap."""
        same("bytes in the tail cache", self._size_bytes, sum(len(entry) + _ENTRY_OVERHEAD_BYTES for entry in self._entries.values()))
        holds("the tail cache keeps to its limit", self._size_bytes <= max(self._limit_bytes, 0))
        end = (0, 0)
        for (file, position), entry in self._entries.items():
            begin = position - ENTRY_HEADER_BYTES
            holds(f"the tail cache's entry at byte {begin} of file {file} lies behind {end}", (file, begin) >= end)
            end = file, begin + len(entry)
