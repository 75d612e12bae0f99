"""Explicit, then custom, then keyed, then unkeyed; and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fairlead_kafka.base.errors import InvalidRecord
from fairlead_kafka.partitioning import (
    Runs,
    TopicLoad,
    assign_partitions,
    expand,
    make_policy,
    murmur2,
    per_record,
    place_unkeyed,
)
from fairlead_kafka.records import BinaryColumn, RecordColumns


def binary(items: Sequence[bytes | None]) -> BinaryColumn:
    data = np.frombuffer(b"".join(item or b"" for item in items), dtype=np.uint8)
    valid = np.array([item is not None for item in items]) if None in items else None
    return BinaryColumn(data, np.cumsum([0, *(len(item or b"") for item in items)], dtype=np.int64), valid)


def columns_of(keys: Sequence[bytes | None] | None, count: int | None = None) -> RecordColumns:
    count = len(keys or ()) if count is None else count
    return RecordColumns(
        count,
        None if keys is None else binary(keys),
        binary([b"value-%d" % record for record in range(count)]),
    )


def int32(*partitions: int) -> npt.NDArray[np.int32]:
    return np.array(partitions, dtype=np.int32)


def by_key(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class Zeros:
    def random(self) -> float:
        return 0.0

    def randrange(self, stop: int, /) -> int:
        return 0


def test_explicit_goes_before_key_and_key_before_policy() -> None:
    assigned = assign_partitions(columns_of([b"mango", b"mango", None, None]), int32(4, -1, 3, -1), 5)
    assert assigned is not None
    assert assigned.tolist() == [4, by_key(b"mango", 5), 3, -1]
    assert assigned.dtype == np.int32


def test_nothing_keyed_and_nothing_explicit_is_answered_without_an_array() -> None:
    assert assign_partitions(columns_of(None, 3), None, 5) is None
    assert assign_partitions(columns_of([None, None]), None, 5) is None
    assert assign_partitions(columns_of(None, 2), int32(-1, -1), 5) is None
    assert assign_partitions(columns_of(None, 0), int32(), 5) is None
    assert assign_partitions(columns_of([], 0), None, 5) is None


def test_with_ignore_keys_keyed_records_are_the_policys_and_explicit_ones_are_not() -> None:
    columns = columns_of([b"mango", b"pear"])
    assert assign_partitions(columns, None, 5, ignore_keys=True) is None
    assigned = assign_partitions(columns, int32(-1, 2), 5, ignore_keys=True)
    assert assigned is not None
    assert assigned.tolist() == [-1, 2]


def test_if_every_record_is_explicit_the_array_is_passed_on() -> None:
    explicit = int32(1, 0)
    assert assign_partitions(columns_of([b"mango", None]), explicit, 2) is explicit


def test_the_empty_key_is_a_key() -> None:
    assigned = assign_partitions(columns_of([b"", None]), None, 7)
    assert assigned is not None
    assert assigned.tolist() == [by_key(b"", 7), -1]


@pytest.mark.parametrize(("explicit", "record", "partition"), [((0, 1, 3, 9), 2, 3), ((-1, -2), 1, -2)])
def test_an_explicit_partition_out_of_range_is_refused_with_record_topic_and_range(
    explicit: tuple[int, ...], record: int, partition: int
) -> None:
    with pytest.raises(
        InvalidRecord,
        match=rf"record {record} asks for partition {partition}, but topic 'fruit' has 3 partitions, 0 to 2",
    ):
        assign_partitions(columns_of(None, len(explicit)), int32(*explicit), 3, topic="fruit")


def test_a_custom_partitioner_over_columns_goes_before_the_key_and_may_leave_records_open() -> None:
    seen: list[Any] = []

    def partitioner(
        topic: str, keys: BinaryColumn | None, values: BinaryColumn | None, partition_count: int
    ) -> npt.NDArray[np.int64]:
        seen.append((topic, keys, values, partition_count))
        return np.array([2, -1, -1, 0])

    columns = columns_of([b"mango", b"mango", None, None])
    assigned = assign_partitions(columns, int32(-1, -1, -1, 1), 3, topic="fruit", custom=partitioner)
    assert assigned is not None
    assert assigned.tolist() == [2, by_key(b"mango", 3), -1, 1]
    assert seen == [("fruit", columns.keys, columns.values, 3)]


def test_a_custom_partitioner_that_leaves_all_open_leaves_all_to_the_policy() -> None:
    assert assign_partitions(columns_of(None, 2), None, 3, custom=lambda *_: [-1, -1]) is None
    assert (
        assign_partitions(columns_of([b"a", b"b"]), None, 3, ignore_keys=True, custom=lambda *_: [-1, -1])
        is None
    )


def test_one_per_record_is_given_bytes_and_not_asked_about_explicit_records() -> None:
    seen: list[Any] = []

    @per_record
    def partitioner(topic: str, key: bytes | None, value: bytes | None, partition_count: int) -> int:
        seen.append((topic, key, value, partition_count))
        return 2 if key else -1

    assigned = assign_partitions(
        columns_of([b"mango", b"pear", None]), int32(-1, 0, -1), 3, topic="fruit", custom=partitioner
    )
    assert assigned is not None
    assert assigned.tolist() == [2, 0, -1]
    assert seen == [("fruit", b"mango", b"value-0", 3), ("fruit", None, b"value-2", 3)]


def test_no_record_is_a_fine_question_for_a_custom_partitioner() -> None:
    assert assign_partitions(columns_of(None, 0), None, 3, custom=lambda *_: []) is None
    assert assign_partitions(columns_of(None, 0), None, 3, custom=per_record(lambda *_: 0)) is None


def test_one_per_record_names_the_record_as_the_caller_counts() -> None:
    with pytest.raises(InvalidRecord, match="put record 2 on partition 9"):
        assign_partitions(columns_of(None, 3), int32(0, 1, -1), 3, custom=per_record(lambda *_: 9))


def test_one_per_record_sees_none_where_a_column_is_absent() -> None:
    seen: list[Any] = []

    @per_record
    def partitioner(*arguments: Any) -> int:
        seen.append(arguments[1:3])
        return 0

    assign_partitions(RecordColumns(1, None, None), None, 3, custom=partitioner)
    assert seen == [(None, None)]


@pytest.mark.parametrize("answer", [[0], [0.5, 1.0], None, "ab", [[0, 1]], [[0], [1, 2]], ["0", "1"]])
def test_a_custom_answer_that_is_not_one_integer_per_record_is_refused(answer: Any) -> None:
    def careless(*_: Any) -> Any:
        return answer

    with pytest.raises(InvalidRecord, match=r"careless answered .*expected 2 integers"):
        assign_partitions(columns_of(None, 2), None, 3, topic="fruit", custom=careless)


@pytest.mark.parametrize("partition", [3, -2, 2**40])
def test_a_custom_partition_out_of_range_is_refused_naming_partitioner_record_and_range(
    partition: int,
) -> None:
    def careless(*_: Any) -> list[int]:
        return [0, partition]

    with pytest.raises(
        InvalidRecord,
        match=rf"careless put record 1 on partition {partition} of topic 'fruit', which has partitions 0 to "
        r"2",
    ):
        assign_partitions(columns_of(None, 2), None, 3, topic="fruit", custom=careless)


def test_an_unsigned_answer_beyond_all_bounds_is_not_taken_for_minus_one() -> None:
    with pytest.raises(InvalidRecord, match="put record 0 on partition 18446744073709551615"):
        assign_partitions(
            columns_of(None, 1), None, 3, custom=lambda *_: np.array([2**64 - 1], dtype=np.uint64)
        )


def test_what_a_custom_partitioner_raises_is_the_cause_and_says_where() -> None:
    def failing(*_: Any) -> Any:
        raise LookupError("no such tenant")

    with pytest.raises(
        InvalidRecord, match=r"failed for 2 records of topic 't': LookupError\('no such tenant'\) at .*:\d+"
    ) as failed:
        assign_partitions(columns_of(None, 2), None, 3, topic="t", custom=failing)
    assert isinstance(failed.value.__cause__, LookupError)


def test_unkeyed_records_among_keyed_ones_are_placed_by_the_policy_with_their_sizes() -> None:
    policy = make_policy("uniform", batch_size_bytes=1000, rng=Zeros())
    load = TopicLoad(3, [2], [0, 0, 0], (), lambda partition: 0)
    assigned = int32(1, -1, 0, -1)
    placed = place_unkeyed(assigned, np.array([10, 20, 30, 40], dtype=np.int64), policy, load)
    assert placed.tolist() == [1, 2, 0, 2]  # type: ignore[union-attr]
    assert assigned.tolist() == [1, -1, 0, -1]
    assert policy.produced_bytes == 61 + 20 + 40  # type: ignore[attr-defined]


def test_wholly_unkeyed_columns_keep_the_policys_runs_and_wholly_assigned_ones_their_array() -> None:
    policy = make_policy("sticky", batch_size_bytes=1000, rng=Zeros())
    load = TopicLoad(3, range(3), [0, 0, 0], (), lambda partition: 0)
    sizes = np.full(2, 10, dtype=np.int64)
    assert place_unkeyed(None, sizes, policy, load) == Runs([(0, 2)])
    assigned = int32(1, 2)
    assert place_unkeyed(assigned, sizes, policy, load) is assigned


def test_runs_expand_to_one_partition_per_record() -> None:
    assert expand(Runs([(2, 3), (0, 4)]), 4).tolist() == [2, 2, 2, 0]
    assert expand(Runs(), 0).tolist() == []
    with pytest.raises(ValueError, match="cover 4 records, not 5"):
        expand(Runs([(2, 3), (0, 4)]), 5)
