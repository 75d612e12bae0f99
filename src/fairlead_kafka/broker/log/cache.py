"""The tail of a broker's log, kept in memory: readers of recent batches never wait for the file.

It holds the bytes that were appended to the files last, in blocks of a megabyte; a batch is found
by its place in the file. An object for each batch would be less to copy and more to hold: objects
of every size that live for a while leave holes in the allocator's heap, and a broker's memory rose
by 16 MB an hour. Blocks are pages of the system's, or they would leave such holes themselves. The
bytes of a failed write are removed from the cache as well, so that they are never mistaken for
bytes written to the same place later.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.units import KIB, MIB
from fairlead_kafka.broker.log.entry import ENTRY_HEADER_BYTES
from fairlead_kafka.broker.log.index import Location
from fairlead_kafka.core.effects import Buffer

BLOCK_BYTES = MIB
"""Size of a block. An entry lies in one block, and a larger entry has a block of its own size."""
COPIED_BYTES = 16 * KIB
"""A smaller batch is given as a copy: a view of it would keep its whole block for as long as
somebody reads slowly."""
_PRIVATE: dict[str, int] = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
)
"""Pages of the system's own, not of the allocator's heap, and no other process's."""


class _Block:
    """Bytes `begin` to `end` of a file. Bytes are never changed while a view of them exists, which
    may outlive the block."""

    __slots__ = ("begin", "data", "end", "file", "full", "pages", "view")

    def __init__(self, file: int, begin: int, pages: mmap.mmap) -> None:
        self.file = file
        self.begin = self.end = begin
        self.pages = pages
        self.data = memoryview(pages)
        self.view = self.data.toreadonly()
        self.full = False

    def give_up(self) -> mmap.mmap | None:
        """Release the block; returns its memory, to be used again, if no view of it exists any
        more, else None."""
        self.view.release()
        self.data.release()
        try:
            self.pages.resize(len(self.pages))  # refused while there is a view
        except (BufferError, SystemError, ValueError, OSError):
            return None
        return self.pages

    def takes(self, file: int, position: int, size_bytes: int) -> bool:
        """True if an entry that lies there can be put behind what is here."""
        return (
            not self.full
            and (file, position) == (self.file, self.end)
            and self.end - self.begin + size_bytes <= len(self.data)
        )


class TailCache:
    """The newest bytes of the log, `limit_bytes` of memory at most; the oldest block goes first."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._blocks: list[_Block] = []
        self._begins: list[tuple[int, int]] = []
        """(file, begin) of each block, ascending."""
        self._spare: mmap.mmap | None = None
        """Pages of the block that went last: those of a new one are not in memory yet, and cost
        seven times as much to fill."""

    def add(self, file: int, position: int, entry: bytes) -> None:
        """Keep the bytes of an entry that is appended to `file` at `position`, behind all
        others."""
        size_bytes = len(entry)
        if size_bytes > self._limit_bytes:
            return
        blocks = self._blocks
        if not blocks or not blocks[-1].takes(file, position, size_bytes):
            room_bytes = max(size_bytes, min(BLOCK_BYTES, self._limit_bytes))
            self._make_room(room_bytes)
            pages, self._spare = self._spare, None
            if pages is None or len(pages) != room_bytes:
                pages = mmap.mmap(-1, room_bytes, **_PRIVATE)
            blocks.append(_Block(file, position, pages))
            self._begins.append((file, position))
            self._size_bytes += room_bytes
        block = blocks[-1]
        start = block.end - block.begin
        block.data[start : start + size_bytes] = entry
        block.end += size_bytes

    def _make_room(self, room_bytes: int) -> None:
        while self._blocks and self._size_bytes + room_bytes > self._limit_bytes:
            self._size_bytes -= len(self._blocks[0].pages)
            self._spare = self._blocks.pop(0).give_up()
            del self._begins[0]

    @hook("log: a rewound write leaves the cache")
    def rewind(self, file: int, position: int) -> None:
        """Called when a failed write is taken back: the cache forgets everything from `position` of
        `file` on."""
        while self._begins and self._begins[-1] >= (file, position):
            self._begins.pop()
            self._size_bytes -= len(self._blocks.pop().pages)
        if self._blocks and self._blocks[-1].file == file:
            block = self._blocks[-1]
            block.end, block.full = (
                min(block.end, position),
                True,
            )  # somebody may still look at what lay behind

    def get(self, location: Location) -> Buffer | None:
        """The batch at a location; None if the cache does not have it any more."""
        return self._cut(location, 0)

    def entry(self, location: Location) -> Buffer | None:
        """The batch at a location with its entry's header; None if the cache does not have it any
        more."""
        return self._cut(location, ENTRY_HEADER_BYTES)

    def _cut(self, location: Location, header_bytes: int) -> Buffer | None:
        file, position, size_bytes = location
        number = bisect_right(self._begins, (file, position)) - 1
        if number < 0:
            return None
        block = self._blocks[number]
        start = position - header_bytes - block.begin
        stop = position + size_bytes - block.begin
        if block.file != file or start < 0 or stop > block.end - block.begin:
            return None
        if size_bytes < COPIED_BYTES:
            return bytes(block.view[start:stop])
        return block.view[start:stop]

    def check(self) -> None:
        """Raise CheckFailed unless the bytes are counted right, within the limit, and blocks lie in
        order without an overlap."""
        same("bytes in the tail cache", self._size_bytes, sum(len(block.pages) for block in self._blocks))
        holds("the tail cache keeps to its limit", self._size_bytes <= self._limit_bytes)
        same("where blocks begin", self._begins, [(block.file, block.begin) for block in self._blocks])
        end = (0, 0)
        for block in self._blocks:
            holds(
                f"the tail cache's block at byte {block.begin} of file {block.file} lies behind {end}",
                (block.file, block.begin) >= end,
            )
            holds("a block holds what it has room for", 0 <= block.end - block.begin <= len(block.data))
            end = block.file, block.end
