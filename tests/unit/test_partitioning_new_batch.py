"""Custom partitioners that want to hear of new batches: `on_new_batch`, as KIP-480 has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairlead_kafka.base.errors import InvalidRecord
from fairlead_kafka.partitioning import OpenBatches, assign_partitions, per_record
from fairlead_kafka.records import columns_from_lists
from tests.support.producer_rig import Rig

LIMIT = 100


@per_record
class Sticky:
    """What KIP-480 shows: stay until a new batch would be created, then go on to the next
    partition."""

    def __init__(self) -> None:
        self.current = 0
        self.heard: list[tuple[str, int, int]] = []

    def __call__(self, topic: str, key: Any, value: Any, partition_count: int) -> int:
        return -1 if value == b"you decide" else self.current

    def on_new_batch(self, topic: str, previous_partition: int, partition_count: int) -> None:
        self.heard.append((topic, previous_partition, partition_count))
        if previous_partition == self.current:
            self.current = (self.current + 1) % partition_count


class Columns:
    """All records to partition 1."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def __call__(self, topic: str, keys: Any, values: Any, partition_count: int) -> list[int]:
        return [1] * len(values)

    def on_new_batch(self, topic: str, previous_partition: int, partition_count: int) -> None:
        self.heard.append(previous_partition)


def assign(
    custom: Any,
    values: list[bytes],
    size_bytes: int,
    rooms: dict[int, int] | None = None,
    explicit: Any = None,
) -> Any:
    batches = OpenBatches(
        np.full(len(values), size_bytes, np.int64), lambda partition: (rooms or {}).get(partition, 0), LIMIT
    )
    columns = columns_from_lists(None, list(values), None, None)
    given = None if explicit is None else np.array(explicit, np.int32)
    found = assign_partitions(columns, given, 3, topic="t", custom=custom, batches=batches)
    return None if found is None else found.tolist()


def test_a_record_that_would_open_a_batch_is_announced_and_asked_about_again() -> None:
    """Batches of two: each time one would be created the partitioner moves on, and the record
    follows it."""
    custom = Sticky()
    assert assign(custom, [b"x"] * 6, 50) == [1, 1, 2, 2, 0, 0]
    assert custom.heard == [("t", 0, 3), ("t", 1, 3), ("t", 2, 3)]


def test_a_record_that_fits_the_open_batch_is_not_announced() -> None:
    custom = Sticky()
    assert assign(custom, [b"x"] * 3, 50, {0: 100, 1: 100}) == [0, 0, 1]
    assert custom.heard == [("t", 0, 3)]


def test_the_second_answer_holds_even_if_it_opens_a_batch_too() -> None:
    custom = Sticky()
    assert assign(custom, [b"x"], 50, {2: 100}) == [1]
    assert custom.heard == [("t", 0, 3)]


def test_explicit_partitions_are_announced_and_stay() -> None:
    custom = Sticky()
    assert assign(custom, [b"x"] * 3, 60, explicit=[2, -1, 2]) == [2, 1, 2]
    assert [partition for _, partition, _ in custom.heard] == [2, 0, 2]
    assert assign(custom, [b"x"] * 2, 60, explicit=[0, 0]) == [0, 0]


def test_records_left_to_the_producer_are_not_announced() -> None:
    custom = Sticky()
    assert assign(custom, [b"you decide"] * 3, 60) is None
    assert custom.heard == []


@pytest.mark.parametrize(("room", "announced"), [(0, 5), (40, 5), (60, 5), (120, 4), (1000, 0)])
def test_one_over_columns_is_told_of_each_batch_that_its_records_open(room: int, announced: int) -> None:
    custom = Columns()
    assert assign(custom, [b"x"] * 10, 50, {1: room}) == [1] * 10
    assert custom.heard == [1] * announced


def test_a_hook_that_raises_fails_its_records_and_the_producer_goes_on() -> None:
    class Broken(Columns):
        def on_new_batch(self, topic: str, previous_partition: int, partition_count: int) -> None:
            raise KeyError("broken")

    rig = Rig()
    rig.cluster.create("t", 3)
    producer = rig.producer({"partitioner.class": Broken()})
    ack = producer.send("t", b"x")
    producer.flush()
    with pytest.raises(
        InvalidRecord,
        match=r"the partitioner failed for 1 record of topic 't': KeyError\('broken'\) at "
        r".*test_partitioning_new_batch.py:\d+$",
    ):
        ack.result()


@pytest.mark.parametrize("policy_made", [Sticky, Columns])
def test_it_is_called_for_the_batches_that_the_producer_then_opens(policy_made: Any) -> None:
    rig = Rig()
    rig.cluster.create("t", 3)
    custom = policy_made()
    producer = rig.producer(
        {"partitioner.class": custom, "batch.size": 61 + 5 * 14, "batch.max.size": 0, "linger.ms": 20}
    )
    for number in range(100):
        producer.send("t", b"%06d" % number)
        if number % 8 == 3:
            rig.host.advance(1)
    producer.flush()
    batches = sum(len(partition.headers) for partition in rig.cluster.topics["t"])
    assert batches == len(custom.heard) >= 20
