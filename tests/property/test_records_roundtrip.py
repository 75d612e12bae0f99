"""Any records survive the trip through bytes, and the machine code does what its reference does,
byte for byte."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.kernel import read_only
from fairlead_kafka.records import (
    Compression,
    RecordColumns,
    Slice,
    bounds_of,
    check_produced,
    columns_from_arrow,
    cut,
    decode,
    encode,
    encode_many,
    scan,
)
from fairlead_kafka.records.encode_kernels import encode_batches, measure_records
from tests.support.records_samples import Sample, columns_of, decoded, encoded, kernels_served_by, stamped

contents = st.none() | st.binary(max_size=40) | st.integers(0, 20_000).map(lambda size: b"x" * size)
headers = st.lists(st.tuples(st.text(max_size=12), st.none() | st.binary(max_size=80)), max_size=4).map(tuple)
timestamps = st.just(-1) | st.integers(0, 2**63 - 1) | st.integers(1_700_000_000_000, 1_700_000_000_100)
records = st.builds(Sample, contents, contents, st.just(()) | headers, timestamps)
batches = st.lists(records, min_size=1, max_size=30)
alike = st.builds(Sample, st.none(), st.binary(max_size=9), st.just(()), st.just(-1))
codecs = st.sampled_from(list(Compression))


@given(
    batches | st.lists(alike, min_size=1, max_size=200), codecs, st.integers(0, 2**62), st.integers(-1, 2**62)
)
def test_records_survive_the_trip_in_machine_code_and_reference(
    samples: list[Sample], codec: Compression, base_offset: int, now: int
) -> None:
    made = {}
    for body in ("reference", "machine"):
        with kernels_served_by(body):
            batch = encoded(samples, create_time_ms=now, base_offset=base_offset, compression=codec)
            (header,) = scan(batch.buffer)
            check_produced(batch.buffer, header)
            records = decode(batch.buffer, from_offset=base_offset)
            assert decoded(records) == stamped(samples, now)
            assert records.offsets.tolist() == list(range(base_offset, base_offset + len(samples)))
            assert (
                batch.max_timestamp_ms
                == header.max_timestamp_ms
                == max(each.timestamp_ms for each in stamped(samples, now))
            )
            made[body] = bytes(batch.buffer)
    assert made["reference"] == made["machine"]


@given(batches, st.integers(0, 2**31 - 1))
def test_sizes_and_batches_of_machine_code_and_reference_are_equal(samples: list[Sample], seed: int) -> None:
    columns = columns_of(samples)
    rng = np.random.RandomState(seed)
    order = (
        read_only(rng.permutation(len(samples)).astype(np.int64))
        if seed % 2
        else read_only(np.empty(0, np.int64))
    )
    cuts = read_only(
        np.unique(np.concatenate([[0, len(samples)], rng.randint(0, len(samples) + 1, 3)])).astype(np.int64)
    )
    sequences = read_only(rng.randint(0, 2**31 - 1, len(cuts) - 1).astype(np.int64))
    capacity = int(columns.sizes_bytes().sum() + 100 * len(samples))
    room = capacity if seed % 5 else rng.randint(0, capacity)
    outcomes = []
    for body in ("reference", "machine"):
        with kernels_served_by(body):
            sizes = np.empty(len(samples), np.int64)
            measure_records(*columns.flat()[:-1], sizes)
            out, table = np.zeros(room, np.uint8), np.zeros(3 * (len(cuts) - 1), np.int64)
            end = encode_batches(
                *columns.flat(),
                order,
                read_only(bounds_of(cuts)),
                sequences,
                out,
                table,
                0,
                61,
                17,
                17,
                0,
                16,
                5,
                6,
                7,
                8,
            )
            outcomes.append(
                (sizes.tolist(), end, out.tobytes() if end >= 0 else b"", table.tolist() if end >= 0 else [])
            )
    assert outcomes[0] == outcomes[1]


@given(
    st.lists(st.integers(7, 60), max_size=40),
    st.integers(0, 2**31 - 1),
    st.integers(-5, 200),
    st.integers(1, 200),
)
def test_cuts_of_machine_code_and_reference_are_equal_and_respect_the_limits(
    sizes: list[int], seed: int, room: int, limit: int
) -> None:
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(sizes)).astype(np.int64) if seed % 2 else None
    start, stop = sorted(rng.randint(0, len(sizes) + 1, 2).tolist())
    columns = RecordColumns(len(sizes), None, None)
    row_sizes = columns._sizes = np.array(sizes, np.int64)
    found = []
    for body in ("reference", "machine"):
        with kernels_served_by(body):
            found.append(cut(Slice(columns, start, stop, order), room, limit).tolist())
    assert found[0] == found[1]
    bounds = [start, *found[0]]
    assert bounds[-1] == stop
    for nth, (begin, end) in enumerate(pairwise(bounds)):
        chosen = row_sizes[begin:end] if order is None else row_sizes[order[begin:end]]
        assert begin < end or nth == 0
        assert (
            len(chosen) == 0
            or chosen.sum() <= (room if nth == 0 else limit)
            or (len(chosen) == 1 and nth > 0)
        )
        if nth + 1 < len(bounds) - 1:
            following = row_sizes[end if order is None else order[end]]
            assert chosen.sum() + following > (room if nth == 0 else limit)


@given(batches, st.integers(1, 5))
@settings(max_examples=50)
def test_a_table_survives_the_trip(samples: list[Sample], chunks: int) -> None:
    size = -(-len(samples) // chunks)
    pieces = [
        pa.record_batch(
            {
                "key": pa.array([each.key for each in part], pa.binary()),
                "value": pa.array([each.value for each in part], pa.binary()),
                "headers": pa.array(
                    [[{"key": key, "value": value} for key, value in each.headers] for each in part],
                    pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
                ),
                "timestamp": pa.array(
                    [None if each.timestamp_ms < 0 else each.timestamp_ms for each in part],
                    pa.timestamp("ms"),
                ),
            }
        )
        for part in (samples[i : i + size] for i in range(0, len(samples), size))
    ]
    data = b""
    for columns, _ in columns_from_arrow(pa.Table.from_batches(pieces)):
        cuts = np.arange(columns.count + 1, dtype=np.int64)
        data += b"".join(
            each.buffer for each in encode_many(columns, None, bounds_of(cuts), create_time_ms=9)
        )
    assert decoded(decode(data)) == stamped(samples, 9)


@given(batches, batches)
@settings(max_examples=50)
def test_slices_of_two_columns_make_the_batch_of_their_records(
    left: list[Sample], right: list[Sample]
) -> None:
    for body in ("reference", "machine"):
        with kernels_served_by(body):
            both = encode(
                [Slice(columns_of(left), 0, len(left)), Slice(columns_of(right), 0, len(right))],
                create_time_ms=4,
            )
            assert both.buffer == encoded(left + right, create_time_ms=4).buffer
