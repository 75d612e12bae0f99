"""Reads batches: from the tail cache, and what is not there in few reads of the files.

In a shared log the batches of a partition have strangers between them. Batches that lie near each other, of whichever
partition, are read in one go with what is between; a batch alone costs one read. What comes from a file is checked against its CRC: a start
from a checkpoint looks through nothing, and damage must not go out to readers and replicas.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from fairlead_kafka.base.units import KIB, MIB
from fairlead_kafka.broker.files import Files
from fairlead_kafka.broker.log.cache import TailCache
from fairlead_kafka.broker.log.index import Location
from fairlead_kafka.broker.log.scan import sound_batch
from fairlead_kafka.core.effects import Buffer

GAP_MAX_BYTES = 64 * KIB
"""Strangers' bytes read along rather than begin another read: about what a disk or the page cache gives in the time of a call."""
SPAN_MAX_BYTES = 8 * MIB
"""Longest read, so that one fetch does not hold the disk's queue for long."""

_logger = logging.getLogger("fairlead_kafka.broker")

ReadDone = Callable[[list[Buffer] | None], None]


class Reader:
    """Serves reads of one log. `path_of` gives the path of a file's number."""

    def __init__(self, files: Files, cache: TailCache, path_of: Callable[[int], str]) -> None:
        self._files = files
        self._cache = cache
        self._path_of = path_of

    def read(self, locations: Sequence[Location], done: ReadDone) -> None:
        """Fetch batches: done(one buffer per location), at once if all are cached; done(None) if a file could not be read."""
        found: list[Buffer | None] = [self._cache.get(location) for location in locations]
        missing = sorted((location, number) for number, location in enumerate(locations) if found[number] is None)
        if not missing:
            done([buffer for buffer in found if buffer is not None])
            return
        spans = _coalesce(missing)
        _Reading(found, len(spans), done).begin(self._files, spans, self._path_of)


def _coalesce(missing: list[tuple[Location, int]]) -> list[list[tuple[Location, int]]]:
    """Group sorted locations into spans that are worth one read each."""
    spans: list[list[tuple[Location, int]]] = []
    begin = end = 0
    file = -1
    for location, number in missing:
        stop = location.position + location.size_bytes
        near = location.file == file and location.position - end <= GAP_MAX_BYTES and stop - begin <= SPAN_MAX_BYTES
        if near:
            spans[-1].append((location, number))
            end = max(end, stop)
        else:
            spans.append([(location, number)])
            file, begin, end = location.file, location.position, stop
    return spans


class _Reading:
    """One read under way: counts the spans that are still out."""

    def __init__(self, found: list[Buffer | None], outstanding: int, done: ReadDone) -> None:
        self._found = found
        self._outstanding = outstanding
        self._done = done
        self._failed = False

    def begin(self, files: Files, spans: list[list[tuple[Location, int]]], path_of: Callable[[int], str]) -> None:
        for span in spans:
            begin = span[0][0].position
            end = max(location.position + location.size_bytes for location, _number in span)
            path = path_of(span[0][0].file)
            files.read(path, begin, end - begin, self._taker(path, span, begin))

    def _taker(self, path: str, span: list[tuple[Location, int]], begin: int) -> Callable[[bytes | None, OSError | None], None]:
        def take(data: bytes | None, error: OSError | None) -> None:
            if error is not None or data is None:
                self._failed = True
            else:
                view, array = memoryview(data), np.frombuffer(data, np.uint8)
                for location, number in span:
                    start = location.position - begin
                    stop = start + location.size_bytes
                    if sound_batch(data, array, start, stop) is None:
                        _logger.error("%s: the batch at byte %d is damaged; restore the file from a copy", path, location.position)
                        self._failed = True
                    self._found[number] = view[start:stop]
            self._outstanding -= 1
            if self._outstanding == 0:
                self._done(None if self._failed else [buffer for buffer in self._found if buffer is not None])

        return take
