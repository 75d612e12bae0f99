"""Chunks decoded for the columns that are asked for, and for no others."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer import Chunk, decode_chunk, to_batch
from tests.support.records_samples import VARIED, encoded

PARTITION = TopicPartition("t", 0)
CHUNK = Chunk(
    partition=PARTITION,
    data=bytes(encoded(VARIED).buffer),
    start=0,
    end=2**62,
    next_offset=len(VARIED),
    generation=0,
    aborted=(),
    node_id=0,
)


@pytest.mark.parametrize(
    "columns",
    [("value",), ("key",), ("headers",), ("offset", "timestamp"), ("partition", "value"), ("topic",)],
)
def test_what_is_not_asked_for_is_not_decoded(columns: tuple[str, ...]) -> None:
    decoded = decode_chunk(CHUNK, columns, check_crcs=True)
    assert (decoded.keys is not None) == ("key" in columns)
    assert (decoded.values.data.nbytes > 0) == ("value" in columns)
    assert (decoded.headers is not None) == ("headers" in columns)
    whole = to_batch(PARTITION, decode_chunk(CHUNK, check_crcs=True), columns, 0, len(VARIED))
    assert to_batch(PARTITION, decoded, columns, 0, len(VARIED)).equals(whole)
