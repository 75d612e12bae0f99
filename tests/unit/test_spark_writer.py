"""The writer of a Spark task: batches go to the producer as Spark made them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fairlead.base.errors import InvalidRecord
from fairlead.spark import options
from fairlead.spark.writer import FairleadWriter


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


def sent(writer: FairleadWriter, given: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    return list(writer._by_topic(given))


def writer_for(**given: str) -> FairleadWriter:
    return FairleadWriter(options.WriteOptions(topic=given.get("topic")))


def addresses(rows: pa.RecordBatch, name: str) -> list[int]:
    return [buffer.address for buffer in rows.column(name).buffers() if buffer is not None]


@pytest.mark.parametrize("given", [{"topic": "t"}, {}])
def test_a_batch_for_one_topic_is_handed_over_without_a_copy(given: dict[str, str]) -> None:
    made = batch(topic=["t", "t"], value=[b"1", b"2"], key=[b"a", None], extra=[1, 2])
    ((topic, rows),) = sent(writer_for(**given), made)
    assert topic == "t"
    assert isinstance(rows, pa.RecordBatch)
    assert rows.schema.names == ["key", "value"]
    for name in ("key", "value"):
        assert addresses(rows, name) == addresses(made, name)


def test_rows_go_to_the_topics_they_name() -> None:
    found = sent(writer_for(), batch(topic=["t", "u", "t"], value=[b"1", b"2", b"3"]))
    assert [(topic, rows["value"].to_pylist()) for topic, rows in found] == [("t", [b"1", b"3"]), ("u", [b"2"])]


def test_a_row_without_topic_is_refused() -> None:
    with pytest.raises(InvalidRecord, match=r"1 rows of a batch have a null topic"):
        sent(writer_for(), batch(topic=pa.array(["t", None]), value=[b"1", b"2"]))
