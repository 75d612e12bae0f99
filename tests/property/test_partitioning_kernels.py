"""Machine code and reference implementations agree on any column."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.partitioning import counting_sort, murmur2
from fairlead_kafka.partitioning.grouping import sort_by_partition
from fairlead_kafka.partitioning.hashing import hash_keys, partition_keys

keys = st.lists(st.none() | st.binary(max_size=40) | st.binary(min_size=250, max_size=300), max_size=30)


@given(keys, st.integers(1, 10_000))
def test_both_bodies_hash_and_partition_as_one_key_at_a_time(
    column: list[bytes | None], partition_count: int
) -> None:
    data = np.frombuffer(b"".join(key or b"" for key in column), dtype=np.uint8)
    offsets = np.cumsum([0, *(len(key or b"") for key in column)], dtype=np.int64)
    valid = np.array([key is not None for key in column], dtype=np.bool_)
    hashes = [murmur2(key or b"") for key in column]
    expected = [
        -1 if key is None else (value & 0x7FFFFFFF) % partition_count
        for key, value in zip(column, hashes, strict=True)
    ]
    for hash_body, partition_body in (
        (hash_keys, partition_keys),
        (hash_keys.reference, partition_keys.reference),
    ):
        found = np.empty(len(column), dtype=np.int32)
        hash_body(data, offsets, found)
        assert found.tolist() == hashes
        partition_body(data, offsets, valid, partition_count, found)
        assert found.tolist() == expected


@given(
    st.integers(1, 40).flatmap(
        lambda count: st.tuples(st.just(count), st.lists(st.integers(0, count - 1), max_size=200))
    )
)
def test_counting_sort_is_a_stable_grouping_by_both_bodies(drawn: tuple[int, list[int]]) -> None:
    partition_count, given_partitions = drawn
    partitions = np.array(given_partitions, dtype=np.int32)
    order, bounds = counting_sort(partitions, partition_count)
    for partition in range(partition_count):
        expected = [record for record, each in enumerate(given_partitions) if each == partition]
        assert order[bounds[partition] : bounds[partition + 1]].tolist() == expected
    plain_order, plain_bounds = np.empty_like(order), np.zeros_like(bounds)
    sort_by_partition.reference(partitions, plain_order, plain_bounds)
    assert (plain_order.tolist(), plain_bounds.tolist()) == (order.tolist(), bounds.tolist())
