"""Tables: whatever gives Arrow batches, larger than memory, with results in columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pandas
import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import BufferExhausted, InvalidRecord, RecordTooLarge
from fairlead_kafka.client.pieces import cuts_of
from fairlead_kafka.client.tables import groups_of, parts_of
from fairlead_kafka.records import columns_from_arrow
from tests.support.metrics import memory_is_free, metric
from tests.support.producer_rig import Rig

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema([("value", pa.binary()), ("partition", pa.int32())])


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=2)
    made.cluster.create("t", 4)
    return made


def batch_of(values: list[bytes], partition: int = 0) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array(values, pa.binary()), pa.array([partition] * len(values), pa.int32())], schema=SCHEMA
    )


def test_every_column_arrives_and_results_are_columns(rig: Rig) -> None:
    table = pa.table(
        {
            "key": pa.array([b"k", None, b""], pa.binary()),
            "value": pa.array([b"a", b"", None], pa.binary()),
            "headers": pa.array([[{"key": "h", "value": b"1"}], None, []], HEADERS),
            "timestamp": pa.array([5_000, None, 7_000], pa.timestamp("ms", tz="UTC")),
            "partition": pa.array([2, 2, 2], pa.int32()),
        }
    )
    now_ms = rig.host.now_ms()
    found = rig.producer().send_table("t", table).result()
    assert found.schema == pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("ms", tz="UTC")),
            ("error", pa.string()),
        ]
    )
    assert (found["partition"].to_pylist(), found["offset"].to_pylist()) == ([2, 2, 2], [0, 1, 2])
    assert found["timestamp"].cast(pa.int64()).to_pylist() == [5_000, now_ms, 7_000]
    records = rig.cluster.topics["t"][2].decoded()
    assert (records.keys.to_list(), records.values.to_list()) == ([b"k", None, b""], [b"a", b"", None])
    assert [records.headers.item(row) for row in range(3)] == [[("h", b"1")], [], []]
    assert records.timestamps_ms.tolist() == [5_000, now_ms, 7_000]


class Exporting:
    """What another library's frame is to us."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class ExportingOne:
    """Another library's record batch."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._batch.__arrow_c_array__(requested_schema)


def test_record_batches_readers_and_foreign_frames_are_taken(rig: Rig) -> None:
    producer = rig.producer()
    batch = batch_of([b"1", b"2"])
    for table in (
        batch,
        pa.RecordBatchReader.from_batches(SCHEMA, [batch, batch]),
        Exporting(pa.Table.from_batches([batch])),
        ExportingOne(batch),
        pa.RecordBatchReader.from_batches(SCHEMA, []),
    ):
        assert set(producer.send_table("t", table).result()["partition"].to_pylist()) <= {0}
    assert rig.cluster.values("t")[0] == [b"1", b"2"] * 5


@pytest.mark.parametrize(
    "table", [[b"v"], {"value": [b"v"]}, "text", None, Exporting(pa.chunked_array([[1]]))]
)
def test_what_is_no_table_is_refused(rig: Rig, table: Any) -> None:
    with pytest.raises(
        InvalidRecord,
        match=r"expected a pyarrow.Table, a RecordBatch, or anything with __arrow_c_stream__|not a stream",
    ):
        rig.producer().send_table("t", table)


class LazyFrame:
    """Stands in for polars' own."""

    __module__ = "polars.lazyframe.frame"


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        (LazyFrame(), r"not LazyFrame; call \.collect\(\) on it first"),
        ([{"value": b"v"}], "not list; pa.Table.from_pylist makes one"),
        ({"value": [b"v"]}, "not dict; pa.table makes one"),
        (pandas.Series([b"a"], name="value"), r'not Series; call \.to_frame\("value"\) on it first'),
        (
            pandas.DataFrame({"value": [b"a", 1]}),
            r"column 'value' has values of several types, .* \(Expected bytes, got a 'int' object\): make "
            r"all",
        ),
    ],
)
def test_what_is_nearly_a_table_is_refused_with_what_to_do(rig: Rig, table: Any, hint: str) -> None:
    with pytest.raises(InvalidRecord, match=hint):
        rig.producer().send_table("t", table)


@pytest.mark.parametrize(
    "kind", [pa.string_view(), pa.binary_view(), pa.string(), pa.large_binary(), pa.binary(1)]
)
@pytest.mark.parametrize("start", [0, 1])
def test_dictionaries_of_all_forms_are_decoded(kind: pa.DataType, start: int) -> None:
    items = [b"a", None, b"b", b"a"]
    values = (
        pa.array([b"a", b"b"], pa.binary())
        .cast(pa.string() if kind == pa.string() else pa.binary())
        .cast(kind)
    )
    categories = pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1, 0], pa.uint32()), values
    )  # as of Polars' Categorical
    table = pa.table({"value": categories, "key": categories}).slice(start)
    ((columns, _),) = columns_from_arrow(table)
    assert columns.values is not None
    assert columns.keys is not None
    assert columns.values.to_list() == columns.keys.to_list() == items[start:]
    headers = pa.ListArray.from_arrays(
        pa.array([0, 1, 1, 1, 1]),
        pa.StructArray.from_arrays([categories[:1], categories[:1]], ["key", "value"]),
    )
    stream = pa.table({"value": categories, "headers": headers}).to_reader()
    assert [each.num_rows for each in groups_of(Exporting(stream))] == [4]


def test_the_index_of_a_pandas_frame_is_left_out(rig: Rig) -> None:
    frame = pandas.DataFrame({"value": [b"a", b"b", b"c"], "key": [b"1", b"2", b"3"]})
    filtered = frame[frame.key != b"2"]
    sender = rig.producer()
    assert "__index_level_0__" in pa.Table.from_pandas(filtered).schema.names
    assert sender.send_table("t", pa.Table.from_pandas(filtered)).result().num_rows == 2
    assert sender.send_table("t", filtered.sort_values("key", ascending=False)).result().num_rows == 2
    with pytest.raises(InvalidRecord, match="'id' is unknown"):
        sender.send_table("t", pa.Table.from_pandas(filtered.rename_axis("id")))


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        (
            "bad topic!",
            "a topic's name is made of ASCII letters, digits, '.', '_' and '-'; 'bad topic!' is not",
        ),
        ("", "a topic's name must not be empty"),
        ("..", "a topic's name must not be '..'"),
        ("x" * 250, "a topic's name has at most 249 characters; this one has 250"),
        (7, "topic must be a text, not 7"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_at_once(rig: Rig, topic: Any, text: str) -> None:
    sender = rig.producer()
    with pytest.raises(InvalidRecord, match=re.escape(text)):
        sender.send(topic, b"v")
    with pytest.raises(InvalidRecord, match=re.escape(text)):
        sender.send_table(topic, pa.table({"value": [b"v"]}))


def test_a_stream_whose_columns_do_not_fit_is_refused_before_it_is_read(rig: Rig) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        raise AssertionError("it was read")
        yield

    schema = pa.schema([("value", pa.binary()), ("colour", pa.string())])
    with pytest.raises(InvalidRecord, match=r"'colour' is unknown"):
        rig.producer().send_table("t", pa.RecordBatchReader.from_batches(schema, batches()))


def test_a_stream_is_read_as_its_rows_find_room(rig: Rig) -> None:
    producer = rig.producer(buffer_memory=20_000)
    open_bytes: list[float] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(50):
            open_bytes.append(metric(producer, "record-delivered-total"))
            yield batch_of([b"%03d" % number + b"x" * 97] * 100)

    found = producer.send_table("t", pa.RecordBatchReader.from_batches(SCHEMA, batches())).result()
    assert found["offset"].to_pylist() == list(range(5000))
    assert [value[:3] for value in rig.cluster.values("t")[0]] == [
        b"%03d" % (row // 100) for row in range(5000)
    ]
    assert open_bytes[-1] > 4000, "what came late was read late"
    assert memory_is_free(producer)


def test_a_stream_that_breaks_off_raises_its_own_error_and_the_rows_before_are_sent(rig: Rig) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield batch_of([b"1"])
        raise OSError("the disk is gone")

    producer = rig.producer()
    with pytest.raises(OSError, match="the disk is gone"):
        producer.send_table("t", pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    producer.flush()
    assert rig.cluster.values("t")[0] == [b"1"]
    assert memory_is_free(producer)


def test_a_row_beyond_the_limits_holds_back_its_table_or_its_batch_of_a_stream(rig: Rig) -> None:
    producer = rig.producer(max_request_size=1000)
    small, large = batch_of([b"s"]), batch_of([b"s", b"x" * 2000])
    with pytest.raises(
        RecordTooLarge,
        match=r"row 2 for topic 't' takes up to \d+ bytes; max.request.size=1000 allows 939: raise",
    ):
        producer.send_table("t", pa.Table.from_batches([small, large]))
    producer.flush()
    assert rig.cluster.values("t")[0] == []
    with pytest.raises(RecordTooLarge, match=r"row 2 "):
        producer.send_table("t", pa.RecordBatchReader.from_batches(SCHEMA, [small, large]))
    producer.flush()
    assert rig.cluster.values("t")[0] == [b"s"]


def test_a_partly_failed_table_tells_row_by_row(rig: Rig) -> None:
    rig.cluster.on_produce = lambda node, topic, partition, header: 87 if partition == 1 else None
    producer = rig.producer()
    table = pa.table({"value": [b"a", b"b", b"c", b"d"], "partition": pa.array([0, 1, 9, 2], pa.int32())})
    found = producer.send_table("t", table).result(raise_on_error=False).to_pylist()
    assert [row["partition"] for row in found] == [0, 1, 9, 2]
    assert [row["offset"] for row in found] == [0, None, None, 0]
    assert found[0]["error"] is found[3]["error"] is None
    assert "INVALID_RECORD" in found[1]["error"]
    assert "partitions 0 to 3, not 9" in found[2]["error"]
    assert metric(producer, "record-error-total") == 2


def test_a_table_that_runs_out_of_room_counts_the_rows_that_were_not_handed_over(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: 19
    producer = rig.producer(buffer_memory=8_000, max_block_ms=100)
    with pytest.raises(BufferExhausted, match=r"its first (\d+) rows are on their way"):
        producer.send_table("t", pa.table({"value": [b"x" * 100] * 500}))
    left = metric(producer, "record-error-total")
    rig.cluster.on_produce = lambda *_: None
    producer.flush()
    assert metric(producer, "record-delivered-total") == 500 - left
    assert memory_is_free(producer)


def test_values_are_not_copied_on_their_way_in() -> None:
    batch = batch_of([b"x" * 100] * 50)
    (group,) = groups_of(batch)
    (part,) = parts_of(group, 7)
    assert part.columns.values is not None
    assert part.columns.values.data.ctypes.data == batch.column(0).buffers()[2].address
    assert not part.columns.values.data.flags.owndata
    assert [stop for _, stop, _ in cuts_of(part.columns, 8 * 1070)][-1] == 50
    assert all(size <= 1070 for _, _, size in cuts_of(part.columns, 8 * 1070))
