"""Reads batches: from the tail cache, and the rest in few reads of the files.

In a shared log the batches of a partition have batches of others between them. Batches that lie
near each other, of any partitions, are read at once with the bytes in between; a single batch costs
one read. Bytes from a file are checked against the CRCs of the entry and the batch, because a start
from a checkpoint checks no batch, and damage must not reach readers and replicas. Each batch has a
result of its own, so that a damaged one only fails requests for it; it is logged once, not at every
try.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.limits import DAMAGE_REPORTED_MAX
from fairlead_kafka.base.units import KIB, MIB
from fairlead_kafka.broker.files import Files
from fairlead_kafka.broker.log.cache import TailCache
from fairlead_kafka.broker.log.entry import ENTRY_HEADER_BYTES
from fairlead_kafka.broker.log.index import Location
from fairlead_kafka.broker.log.scan import sound_entry
from fairlead_kafka.core.effects import Buffer

GAP_MAX_BYTES = 64 * KIB
"""Strangers' bytes read along rather than begin another read: about what a disk or the page cache
gives in the time of a call."""
SPAN_MAX_BYTES = 8 * MIB
"""Longest read, so that one fetch does not hold the disk's queue for long."""

_logger = GuardedLogger("fairlead_kafka.broker")

ReadBatch = Buffer | int
"""A batch, or the error code for which there is none: CORRUPT_MESSAGE, it is damaged;
KAFKA_STORAGE_ERROR, its file cannot be read."""
ReadDone = Callable[[list[ReadBatch]], None]
_CODES = frozenset({int, ErrorCode})
"""The types of a result that is an error code."""


def readable(batches: Sequence[ReadBatch]) -> tuple[list[Buffer], int]:
    """The batches before the first that could not be read, and its error code; 0: all could."""
    if _CODES.isdisjoint(map(type, batches)):
        return list(batches), ErrorCode.NONE  # type: ignore[arg-type]
    number = next(number for number, batch in enumerate(batches) if isinstance(batch, int))
    return list(batches[:number]), batches[number]  # type: ignore[arg-type, return-value]


class Reader:
    """Serves reads of one log. `path_of` gives the path of a file's number."""

    def __init__(self, files: Files, cache: TailCache, path_of: Callable[[int], str]) -> None:
        self._files = files
        self._cache = cache
        self._path_of = path_of
        self._reported: dict[tuple[int, int], None] = {}
        """Damaged batches that were logged, by (file, position)."""

    def read(self, locations: Sequence[Location], done: ReadDone) -> None:
        """Fetch batches: done(one result per location), at once if all are cached."""
        found: list[ReadBatch | None] = [self._cache.get(location) for location in locations]
        missing = sorted(
            (location, number) for number, location in enumerate(locations) if found[number] is None
        )
        if not missing:
            done(found)  # type: ignore[arg-type]
            return
        spans = _coalesce(missing)
        outstanding = len(spans)

        def taken(span: list[tuple[Location, int]], data: bytes | None, error: OSError | None) -> None:
            nonlocal outstanding
            self._take(span, data, error, found)
            outstanding -= 1
            if not outstanding:
                self._finish(found, done)  # type: ignore[arg-type]

        for span in spans:
            begin, end = (
                span[0][0].position - ENTRY_HEADER_BYTES,
                max(location.position + location.size_bytes for location, _ in span),
            )
            self._files.read(self._path_of(span[0][0].file), begin, end - begin, partial(taken, span))

    @hook("reader: one damaged batch fails itself alone")
    def _finish(self, found: list[ReadBatch], done: ReadDone) -> None:
        done(found)

    def _take(
        self,
        span: list[tuple[Location, int]],
        data: bytes | None,
        error: OSError | None,
        found: list[ReadBatch | None],
    ) -> None:
        """Take the bytes that a read gave apart into batches; each has the header of its entry
        before it."""
        if error is not None or data is None:
            for location, number in span:
                self._report(location, f"cannot be read: {error}")
                found[number] = ErrorCode.KAFKA_STORAGE_ERROR
            return
        begin = span[0][0].position - ENTRY_HEADER_BYTES
        view, array = memoryview(data), np.frombuffer(data, np.uint8)
        for location, number in span:
            start = location.position - begin
            stop = start + location.size_bytes
            if sound_entry(data, array, start - ENTRY_HEADER_BYTES, stop):
                found[number] = view[start:stop]
                if self._reported:
                    self._reported.pop(location[:2], None)
            else:
                self._report(location, "is damaged")
                found[number] = ErrorCode.CORRUPT_MESSAGE

    def _report(self, location: Location, what: str) -> None:
        if location[:2] in self._reported:
            return
        self._reported[location[:2]] = None
        if len(self._reported) > DAMAGE_REPORTED_MAX:
            del self._reported[next(iter(self._reported))]
        path = self._path_of(location.file)
        _logger.error(
            "%s: the batch at byte %d %s; restore the file from a copy", path, location.position, what
        )


def _coalesce(missing: list[tuple[Location, int]]) -> list[list[tuple[Location, int]]]:
    """Group sorted locations into spans that are worth one read each."""
    spans: list[list[tuple[Location, int]]] = []
    begin = end = 0
    file = -1
    for location, number in missing:
        stop = location.position + location.size_bytes
        near = (
            location.file == file
            and location.position - end <= GAP_MAX_BYTES
            and stop - begin <= SPAN_MAX_BYTES
        )
        if near:
            spans[-1].append((location, number))
            end = max(end, stop)
        else:
            spans.append([(location, number)])
            file, begin, end = location.file, location.position, stop
    return spans
