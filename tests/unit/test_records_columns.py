"""Columns from Arrow and from lists, and back to Arrow."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import InvalidRecord
from fairlead_kafka.records import (
    MESSAGE_SCHEMA,
    BinaryColumn,
    RecordColumns,
    columns_from_arrow,
    columns_from_lists,
    decode,
)
from fairlead_kafka.records.buffers import arrow_array, numpy_array, repeated_text, validity
from tests.support.records_samples import VARIED, as_batch, columns_of, encoded

ITEMS = [b"a", None, b"", b"long" * 10]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def only(table: pa.Table | pa.RecordBatch) -> tuple[RecordColumns, np.ndarray | None]:
    ((columns, partitions),) = columns_from_arrow(table)
    return columns, partitions


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.large_binary(),
        pa.string(),
        pa.large_string(),
        pa.binary_view(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.binary()),
    ],
    ids=str,
)
def test_every_binary_like_type_is_accepted_whole_and_sliced(kind: pa.DataType) -> None:
    array = pa.array(ITEMS, pa.binary())
    if pa.types.is_dictionary(kind):
        array = array.dictionary_encode()
    else:
        array = array.cast(pa.string()).cast(kind) if "string" in str(kind) else array.cast(kind)
    columns, _ = only(pa.table({"key": array, "value": array}))
    assert columns.keys is not None
    assert columns.keys.to_list() == ITEMS
    sliced, _ = only(pa.table({"value": array}).slice(1, 3))
    assert sliced.values is not None
    assert sliced.values.to_list() == ITEMS[1:]


def test_fixed_size_binary_is_accepted() -> None:
    columns, _ = only(pa.table({"value": pa.array([b"abc", None, b"def"], pa.binary(3))}))
    assert columns.values is not None
    assert columns.values.to_list() == [b"abc", None, b"def"]


def test_binary_data_are_not_copied() -> None:
    array = pa.array([b"x" * 100] * 10, pa.binary())
    columns, _ = only(pa.table({"value": array}))
    assert columns.values is not None
    assert columns.values.data.ctypes.data == array.buffers()[2].address


def test_a_column_of_nulls_alone_is_none_and_one_of_null_type_too() -> None:
    columns, partitions = only(
        pa.table(
            {
                "key": pa.nulls(2),
                "value": pa.nulls(2, pa.binary()),
                "headers": pa.nulls(2, HEADERS),
                "partition": pa.nulls(2),
            }
        )
    )
    assert (columns.keys, columns.values, columns.headers, partitions, columns.count) == (
        None,
        None,
        None,
        None,
        2,
    )


def test_each_chunk_gives_its_columns_and_empty_chunks_none() -> None:
    value = pa.chunked_array([[b"1"], [], [b"2", b"3"]], pa.binary())
    assert [columns.count for columns, _ in columns_from_arrow(pa.table({"value": value}))] == [1, 2]
    assert columns_from_arrow(pa.table({"value": pa.array([], pa.binary())})) == []


@pytest.mark.parametrize(
    ("unit", "ticks"),
    [
        ("s", 1_700_000_000),
        ("ms", 1_700_000_000_000),
        ("us", 1_700_000_000_000_999),
        ("ns", 1_700_000_000_000_999_999),
    ],
)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_timestamps_of_any_unit_become_milliseconds(unit: str, ticks: int, zone: str | None) -> None:
    times = pa.array([ticks, None], pa.timestamp(unit, tz=zone))
    columns, _ = only(pa.table({"value": [b"1", b"2"], "timestamp": times}))
    assert columns.timestamps_ms is not None
    assert columns.timestamps_ms.tolist() == [1_700_000_000_000, -1]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.uint16()], ids=str)
def test_partitions_of_any_integer_type_become_int32_with_null_as_minus_one(kind: pa.DataType) -> None:
    _, partitions = only(pa.table({"value": [b"1", b"2"], "partition": pa.array([7, None], kind)}))
    assert partitions is not None
    assert partitions.dtype == np.int32
    assert partitions.tolist() == [7, -1]


@pytest.mark.parametrize(
    "wrap",
    [pa.list_, pa.large_list, pa.list_view, "map", "sliced", "binary keys"],
    ids=["list", "large list", "list view", "map", "sliced", "binary keys"],
)
def test_headers_of_any_list_type_are_accepted(wrap: object) -> None:
    rows = [[("skipped", b"")], [("a", b"1"), ("b", None)], None, [], [("é", b"")]]
    structs = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
    if wrap == "map":
        array = pa.array(rows, pa.map_(pa.string(), pa.binary()))
    elif wrap == "binary keys":
        keys = [
            None if row is None else [{"key": key.encode(), "value": value} for key, value in row]
            for row in rows
        ]
        array = pa.array(keys, pa.list_(pa.struct([("key", pa.binary()), ("value", pa.string())])))
    else:
        kind = wrap(HEADERS.value_type) if callable(wrap) else HEADERS
        array = pa.array(structs, kind)
    columns, _ = only(pa.table({"value": pa.array([b""] * 5), "headers": array}).slice(1, 4))
    assert columns.headers is not None
    assert [columns.headers.item(i) for i in range(4)] == [[("a", b"1"), ("b", None)], [], [], [("é", b"")]]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"key": [b"k"]}, "'value' is missing"),
        ({"value": [b"v"], "colour": [1]}, "'colour' is unknown"),
        ({"value": [1]}, "'value' has type int64"),
        ({"value": [b"v"], "key": [1.5]}, "'key' has type double"),
        ({"value": [b"v"], "timestamp": [17]}, "'timestamp' has type int64"),
        ({"value": [b"v"], "timestamp": [dt.datetime(1969, 1, 1)]}, "before 1970"),
        ({"value": [b"v"], "timestamp": pa.array([2**60], pa.timestamp("s"))}, "64 bits"),
        ({"value": [b"v"], "partition": ["0"]}, "'partition' has type string"),
        ({"value": [b"v"], "partition": [-2]}, "'partition' has -2"),
        ({"value": [b"v"], "partition": [2**40]}, "not a partition"),
        ({"value": [b"v"], "headers": [b"h"]}, "'headers' has type binary"),
        ({"value": [b"v"], "headers": [["h"]]}, "'headers' has type list<"),
        ({"value": [b"v"], "headers": pa.array([[{"key": None, "value": b""}]], HEADERS)}, "key is null"),
    ],
)
def test_a_wrong_table_is_refused_by_naming_the_column(columns: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        columns_from_arrow(pa.table(columns))
    assert words in str(caught.value)


def test_a_column_twice_and_no_table_at_all_are_refused() -> None:
    with pytest.raises(InvalidRecord, match="2 times"):
        columns_from_arrow(pa.table([[b"1"], [b"2"]], names=["value", "value"]))
    with pytest.raises(InvalidRecord, match="dict"):
        columns_from_arrow({"value": [b"1"]})  # type: ignore[arg-type]


def test_lists_become_columns() -> None:
    columns = columns_of(VARIED)
    assert columns.count == len(VARIED)
    assert columns.keys is not None
    assert columns.values is not None
    assert columns.headers is not None
    assert columns.timestamps_ms is not None
    assert columns.keys.to_list() == [each.key for each in VARIED]
    assert columns.values.to_list() == [each.value for each in VARIED]
    assert [tuple(columns.headers.item(i)) for i in range(columns.count)] == [each.headers for each in VARIED]
    assert columns.timestamps_ms.tolist() == [each.timestamp_ms for each in VARIED]


def test_lists_of_nothing_but_nulls_headers_or_create_times_are_left_out() -> None:
    columns = columns_from_lists([None, None], [None, None], [None, []], [-1, -1])
    assert (columns.keys, columns.values, columns.headers, columns.timestamps_ms) == (None, None, None, None)
    assert columns_from_lists(None, []).count == 0


@pytest.mark.parametrize(
    ("keys", "values", "headers", "words"),
    [
        (None, [1], None, "a value is not bytes"),
        ([object()], [b""], None, "a key is not bytes"),
        ([b"", b""], [b""], None, "2 keys for 1 values"),
        (None, [b""], [[("h", 1)]], "header's value is not bytes"),
        (None, [b""], [[(b"h", b"1")]], "not a pair of a str"),
        (None, [b""], [["h"]], "not a pair of a str"),
    ],
)
def test_wrong_lists_are_refused(keys: object, values: object, headers: object, words: str) -> None:
    with pytest.raises(InvalidRecord, match=words):
        columns_from_lists(keys, values, headers)  # type: ignore[arg-type]


def test_columns_go_to_arrow_from_any_first_offset() -> None:
    data = np.frombuffer(b"..abc", np.uint8)
    column = BinaryColumn(data, np.array([2, 3, 3, 5]), np.array([True, False, True]))
    array = column.to_arrow()
    array.validate(full=True)
    assert array.type == pa.binary()
    assert array.to_pylist() == [b"a", None, b"bc"]
    assert column.item(1) is None
    assert BinaryColumn(data, np.array([0])).to_arrow().to_pylist() == []


def test_decoded_records_go_to_arrow_in_the_schema_of_messages() -> None:
    batch = as_batch(decode(encoded(VARIED).buffer), "topic", 3)
    batch.validate(full=True)
    assert batch.schema == MESSAGE_SCHEMA
    rows = batch.to_pylist()
    assert [row["value"] for row in rows] == [each.value for each in VARIED]
    assert rows[4]["headers"] == [{"key": key, "value": value} for key, value in VARIED[4].headers]
    assert rows[0]["timestamp"] == dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in rows} == {("topic", 3, 0)}


def test_header_keys_that_are_not_utf8_are_mended_in_arrow() -> None:
    batch = bytearray(encoded([VARIED[4]]).buffer)
    batch[batch.index("é".encode())] = 0xFF
    headers = decode(batch, check_crcs=False).headers
    assert headers is not None
    assert headers.to_arrow().to_pylist()[0][3]["key"] == "\ufffd\ufffd"


@pytest.mark.parametrize("offsets", [[0, 2, 1, 3], [0, 1, 2, 9], [-1, 0, 1, 2]])
def test_an_array_whose_offsets_leave_its_data_is_refused(offsets: list[int]) -> None:
    memory = np.array([0, 1, 2, 3], np.int32)
    table = pa.table(
        {"value": pa.Array.from_buffers(pa.binary(), 3, [None, pa.py_buffer(memory), pa.py_buffer(b"abc")])}
    )
    memory[:] = offsets
    with pytest.raises(InvalidRecord, match="not a sound Arrow array"):
        columns_from_arrow(table)


@pytest.mark.parametrize("start", [0, 1, 7, 8, 9])
def test_arrow_arrays_and_numpy_s_share_memory_and_nulls(start: int) -> None:
    values, valid = np.arange(20, dtype=np.int64), np.arange(20) % 3 != 0
    array = arrow_array(values, pa.int64(), valid)
    assert array.to_pylist() == [
        int(each) if there else None for each, there in zip(values, valid, strict=True)
    ]
    part = array.slice(start, 8)
    assert numpy_array(part, np.int64).tolist() == list(range(start, start + 8))
    assert validity(part).tolist() == valid[start : start + 8].tolist()
    assert validity(arrow_array(values, pa.int64()).slice(start)).all()
    assert array.buffers()[1].address == values.ctypes.data


def test_arrays_of_other_kinds_and_of_nothing() -> None:
    assert arrow_array(np.array([True, False, True]), pa.bool_()).to_pylist() == [True, False, True]
    assert repeated_text("é", 3).to_pylist() == ["é"] * 3
    assert (
        repeated_text("t", 0).to_pylist() == arrow_array(np.empty(0, np.int32), pa.int32()).to_pylist() == []
    )
    nothing = pa.nulls(3, pa.int64())
    assert (len(numpy_array(nothing, np.int64)), validity(nothing).tolist()) == (3, [False] * 3)
    assert (
        validity(pa.array([], pa.int64())).tolist()
        == numpy_array(pa.array([], pa.int64()), np.int64).tolist()
        == []
    )
