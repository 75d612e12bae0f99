"""A driver that dies at any moment, and goes on by its checkpoint."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka.spark.stream_reader import FairleadStreamReader
from tests.unit.spark_stream.driving import Offsets, advance, rows


class Query:
    """A streaming query as Spark's `MicroBatchExecution` runs it, with its two logs, by a driver
    that may die between any two steps."""

    def __init__(self, new_reader: Callable[[], FairleadStreamReader], rng: random.Random) -> None:
        self._new_reader = new_reader
        self._rng = rng
        self._reader: FairleadStreamReader | None = None
        self.ends: list[Offsets] = []
        self.committed: list[list[tuple[int, int]]] = []

    def trigger(self) -> None:
        """One micro-batch; a death leaves it where it was."""
        reader = self._reader = self._reader or self._new_reader()
        if len(self.ends) == len(self.committed):
            start = self._start(reader)
            end = advance(reader, start)
            if self.ends and end == start:
                return
            if self._dies():
                return
            self.ends.append(end)
        if self._dies():
            return
        start, end = self._start(reader), self.ends[-1]
        found = rows(reader, start, end)
        if self._dies():
            return
        self.committed.append(found)
        reader.commit(end)

    def _start(self, reader: FairleadStreamReader) -> Offsets:
        batch = len(self.committed)
        return self.ends[batch - 1] if batch else json.loads(json.dumps(reader.initialOffset()))

    def _dies(self) -> bool:
        if self._rng.random() < (
            0.2 if self.committed else 0.5
        ):  # the first micro-batch is the one that is hard to get right
            self._reader = None
        return self._reader is None


@pytest.mark.parametrize("starting", ["earliest", "latest"])
@pytest.mark.parametrize("seed", range(4))
def test_every_record_is_read_once_whenever_the_driver_dies(
    stream: Any, send: Any, admin: Any, topic: str, seed: int, starting: str
) -> None:
    rng = random.Random(seed)
    limits = rng.choice(
        [
            {},
            {"maxOffsetsPerTrigger": 4},
            {"maxBytesPerTrigger": "200"},
            {"minOffsetsPerTrigger": 3, "maxTriggerDelay": "0"},
        ]
    )
    query = Query(lambda: stream(subscribe=topic, startingOffsets=starting, balanceBy="bytes", **limits), rng)
    sent = [0, 0]
    send(topic, *(counts := [rng.randrange(5) for _ in sent]))
    sent = list(counts)
    for _ in range(25):
        if rng.random() < 0.5:
            counts = [rng.randrange(4) for _ in sent]
            send(topic, *counts)
            sent = [before + more for before, more in zip(sent, counts, strict=True)]
        if rng.random() < 0.1:
            sent.append(0)
            admin.create_partitions({topic: fairlead_kafka.NewPartitions(len(sent))})
        query.trigger()
    while query.ends[-1:] != [{topic: {str(number): count for number, count in enumerate(sent)}}] or len(
        query.ends
    ) > len(query.committed):
        query.trigger()
    first = query.ends[0].get(topic, {}) if starting == "latest" else {}
    expected = [
        (number, offset)
        for number, count in enumerate(sent)
        for offset in range(first.get(str(number), 0), count)
    ]
    assert sorted(row for batch in query.committed for row in batch) == expected
