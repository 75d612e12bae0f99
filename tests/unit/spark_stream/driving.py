"""A stream reader's questions as Spark asks them."""

from __future__ import annotations

import json
import pickle

from fairlead_kafka.spark.stream_reader import FairleadStreamReader

Offsets = dict[str, dict[str, int]]


def advance(reader: FairleadStreamReader, start: Offsets) -> Offsets:
    """Spark's question at each trigger; offsets take the way through JSON."""
    return json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))  # type: ignore[no-any-return]


def rows(reader: FairleadStreamReader, start: Offsets, end: Offsets) -> list[tuple[int, int]]:
    """Partition and offset of everything that the micro-batch reads."""
    found = []
    for task in reader.partitions(start, end):
        for batch in reader.read(pickle.loads(pickle.dumps(task))):
            found += zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True)
    return found
