"""partitioner.class: names, Kafka's class names, callables and dotted paths."""

from __future__ import annotations

from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.partitioning import (
    POLICY_NAMES,
    Partitioner,
    deprecation,
    make_policy,
    per_record,
    resolve_partitioner,
)
from fairlead_kafka.partitioning.crc32 import crc32_partitions
from fairlead_kafka.partitioning.custom import is_per_record
from fairlead_kafka.records import BinaryColumn


def to_zero(topic: str, keys: Any, values: Any, partition_count: int) -> list[int]:
    return [0] * len(values)


@per_record
class ToZero:
    def __call__(self, topic: str, key: Any, value: Any, partition_count: int) -> int:
        return 0


class NotCallable:
    pass


@pytest.mark.parametrize("built_in", [None, "", "null", " "])
def test_null_is_kafkas_built_in_logic(built_in: str | None) -> None:
    assert resolve_partitioner(built_in) == Partitioner("late", ignore_keys=False)
    assert resolve_partitioner(built_in, adaptive=False, ignore_keys=True) == Partitioner(
        "uniform", ignore_keys=True
    )


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_policys_name_is_that_policy(name: str) -> None:
    assert resolve_partitioner(name, adaptive=False) == Partitioner(name, ignore_keys=False)
    assert resolve_partitioner(name, ignore_keys=True).ignore_keys
    assert make_policy(name, batch_size_bytes=16384, rng=Random(1)).name == name


def test_librdkafkas_default_places_keys_by_crc32() -> None:
    found = resolve_partitioner("consistent_random", adaptive=False, ignore_keys=True)
    assert found == Partitioner("uniform", ignore_keys=True, keyed=crc32_partitions)
    keys = BinaryColumn(
        np.frombuffer(b"customer 1customer 2", np.uint8),
        np.array([0, 10, 20, 20, 20]),
        np.array([True, True, True, False]),
    )
    assert found.keyed(keys, 12).tolist() == [crc32(b"customer 1") % 12, crc32(b"customer 2") % 12, -1, -1]


@pytest.mark.parametrize(
    ("short", "name"), [("RoundRobinPartitioner", "round_robin"), ("UniformStickyPartitioner", "sticky")]
)
def test_kafkas_class_names_resolve_and_ignore_keys(short: str, name: str) -> None:
    assert resolve_partitioner(f"org.apache.kafka.clients.producer.{short}") == Partitioner(
        name, ignore_keys=True
    )


def test_kafkas_deprecated_classes_behave_as_they_always_did_and_say_what_to_do_instead() -> None:
    """KIP-794: DefaultPartitioner is KIP-480's sticky with keys; UniformStickyPartitioner the same
    without."""
    for name in ("internals.DefaultPartitioner", "DefaultPartitioner"):
        path = f"org.apache.kafka.clients.producer.{name}"
        assert resolve_partitioner(path) == Partitioner("sticky", ignore_keys=False)
        assert deprecation(path) == "remove it"
    assert deprecation("org.apache.kafka.clients.producer.UniformStickyPartitioner") == (
        "remove it, and set partitioner.ignore.keys=true instead"
    )
    assert deprecation("org.apache.kafka.clients.producer.RoundRobinPartitioner") is None
    assert deprecation(None) is None


def test_a_callable_is_a_custom_partitioner_beside_the_built_in_policy() -> None:
    assert resolve_partitioner(to_zero) == Partitioner("late", ignore_keys=False, custom=to_zero)
    assert resolve_partitioner(to_zero, adaptive=False, ignore_keys=True) == Partitioner(
        "uniform", ignore_keys=True, custom=to_zero
    )
    assert make_policy(to_zero, batch_size_bytes=16384, rng=Random(1), adaptive=False).name == "uniform"


def test_a_dotted_path_is_imported_and_a_class_made_an_instance_of() -> None:
    assert resolve_partitioner(f"{__name__}.to_zero").custom is to_zero
    custom = resolve_partitioner(f"{__name__}.ToZero").custom
    assert isinstance(custom, ToZero)
    assert is_per_record(custom)
    assert not is_per_record(to_zero)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("roundrobin", "round_robin"),
        ("Sticky", "sticky"),
        ("unifrom", "uniform"),
        (
            "org.apache.kafka.clients.producer.RoundRobinPartitoner",
            "org.apache.kafka.clients.producer.RoundRobinPartitioner",
        ),
        ("adaptive_partitioner", "adaptive"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(
        ConfigError,
        match=rf"partitioner\.class: no partitioner is named '{name}'; did you mean '{nearest}'\?",
    ):
        resolve_partitioner(name)


@pytest.mark.parametrize("path", ["no.such.module", f"{__name__}.missing", ".leading", "trailing."])
def test_a_path_that_cannot_be_imported_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"partitioner\.class: cannot import"):
        resolve_partitioner(path)


@pytest.mark.parametrize("partitioner", [f"{__name__}.NotCallable", 7])
def test_what_cannot_be_called_is_refused(partitioner: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be called"):
        resolve_partitioner(partitioner)


def test_a_resolved_partitioner_makes_a_policy_per_topic() -> None:
    resolved = resolve_partitioner(None)
    first, second = (make_policy(resolved, batch_size_bytes=16384, rng=Random(1)) for _ in range(2))
    assert first is not second
    assert first.name == "late"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("late.any", "write late, with partitioner.max.skew.bytes=9223372036854775807"),
        ("murmur2_random", "leave it out (null)"),
        ("consistent", "write consistent_random"),
    ],
)
def test_names_of_the_plots_and_of_librdkafka_are_answered_with_what_to_write(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        resolve_partitioner(name)
    assert said in str(raised.value)
