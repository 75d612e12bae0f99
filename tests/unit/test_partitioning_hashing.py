"""murmur2, the partitions of keys and the counting sort: Kafka's vectors, and kernels that agree
with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fairlead_kafka.partitioning import (
    counting_sort,
    keyed_partition,
    keyed_partitions,
    murmur2,
    murmur2_column,
)
from fairlead_kafka.records import BinaryColumn
from tests.support.records_samples import kernels_served_by

KAFKA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
    b"": 275646681,
}
FRUIT = {b"mango": 2, b"banana": 1, b"apple": 1, b"lime": 0, b"grape": 0, b"pear": 0}
"""On three partitions, as Kafka's Java client, librdkafka (`murmur2`), kafka-python and aiokafka
place them."""
FRUIT_OF_THE_ARTICLE = {b"mango": 0, b"banana": 1, b"apple": 1, b"lime": 0, b"grape": 2, b"pear": 2}
"""As the article on partitioning, batching and replication has them, by
`murmur2_32(key).absoluteValue % 3`."""


def column_of(keys: list[bytes | None], lead: bytes = b"") -> BinaryColumn:
    sizes = [len(key or b"") for key in keys]
    data = np.frombuffer(lead + b"".join(key or b"" for key in keys) + b"tail", dtype=np.uint8)
    valid = None if None not in keys else np.array([key is not None for key in keys])
    return BinaryColumn(
        data, len(lead) + np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64), valid
    )


@pytest.fixture(params=["reference", "machine"])
def body(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the test with the reference implementations and with machine code."""
    with kernels_served_by(request.param):
        yield


@pytest.mark.parametrize(("key", "expected"), KAFKA_VECTORS.items())
def test_murmur2_gives_kafkas_vectors(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected


@pytest.mark.usefixtures("body")
def test_a_column_hashes_to_kafkas_vectors() -> None:
    assert murmur2_column(column_of(list(KAFKA_VECTORS))).tolist() == list(KAFKA_VECTORS.values())
    assert murmur2_column(column_of(list(KAFKA_VECTORS))).dtype == np.int32


@pytest.mark.usefixtures("body")
def test_fruit_goes_where_every_kafka_client_puts_it() -> None:
    assert keyed_partitions(column_of(list(FRUIT)), 3).tolist() == list(FRUIT.values())
    assert {key: keyed_partition(key, 3) for key in FRUIT} == FRUIT


def test_the_articles_partitions_follow_from_the_same_hashes_by_the_absolute_value() -> None:
    """The article's formula is not Kafka's: they agree on positive hashes, and on negative ones by
    chance."""
    assert {key: abs(murmur2(key)) % 3 for key in FRUIT_OF_THE_ARTICLE} == FRUIT_OF_THE_ARTICLE
    assert all(FRUIT[key] == FRUIT_OF_THE_ARTICLE[key] for key in FRUIT if murmur2(key) > 0)


@pytest.mark.usefixtures("body")
def test_the_sign_bit_is_masked_off_and_not_the_absolute_value_taken() -> None:
    negative = murmur2(b"21")
    assert keyed_partitions(column_of([b"21"]), 7).tolist() == [(negative & 0x7FFFFFFF) % 7]
    assert (negative & 0x7FFFFFFF) % 7 != abs(negative) % 7


@pytest.mark.usefixtures("body")
def test_null_keys_have_no_partition_and_empty_keys_do() -> None:
    partitions = keyed_partitions(column_of([None, b"mango", b"", None]), 3)
    assert partitions.tolist() == [-1, 2, (murmur2(b"") & 0x7FFFFFFF) % 3, -1]
    assert partitions.dtype == np.int32


@pytest.mark.usefixtures("body")
def test_a_column_may_begin_within_its_data() -> None:
    assert murmur2_column(column_of([b"21", b"foobar"], lead=b"xyz")).tolist() == [-973932308, -790332482]


@pytest.mark.usefixtures("body")
def test_keys_of_every_length_hash_alike_alone_and_in_a_column() -> None:
    keys = [
        bytes((7 * size + at) & 0xFF for at in range(size)) for size in [*range(70), 255, 256, 257, 260, 4099]
    ]
    assert murmur2_column(column_of(keys)).tolist() == [murmur2(key) for key in keys]


@pytest.mark.usefixtures("body")
def test_an_empty_column_gives_empty_arrays() -> None:
    assert murmur2_column(column_of([])).tolist() == []
    assert keyed_partitions(column_of([]), 3).tolist() == []
    order, bounds = counting_sort(np.empty(0, dtype=np.int32), 3)
    assert (order.tolist(), bounds.tolist()) == ([], [0, 0, 0, 0])


def test_a_topic_without_partitions_is_refused() -> None:
    with pytest.raises(ValueError, match="one partition or more, not 0"):
        keyed_partitions(column_of([b"mango"]), 0)


@pytest.mark.usefixtures("body")
def test_counting_sort_groups_by_partition_in_order_of_arrival() -> None:
    order, bounds = counting_sort(np.array([2, 0, 2, 3, 0, 2], dtype=np.int32), 5)
    assert order.tolist() == [1, 4, 0, 2, 5, 3]
    assert bounds.tolist() == [0, 2, 2, 5, 6, 6]
    assert (order.dtype, bounds.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize("partitions", [[0, -1], [3]])
def test_counting_sort_refuses_partitions_out_of_range(partitions: list[int]) -> None:
    with pytest.raises(ValueError, match="expected 0 to 2"):
        counting_sort(np.array(partitions, dtype=np.int32), 3)
