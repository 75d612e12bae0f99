"""Configs that have no effect together are allowed, and warned about."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.producer.settings import producer_settings
from tests.support.producer_rig import Rig

KAFKA = "org.apache.kafka.clients.producer."


def to_zero(topic: str, keys: Any, values: Any, partition_count: int) -> list[int]:
    return [0] * len(values)


def warnings(config: dict[str, Any]) -> tuple[str, ...]:
    return producer_settings(
        CLIENT_CONFIGS.parse("producer", {"bootstrap.servers": "h:1", **config})
    ).warnings


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {"partitioner.availability.timeout.ms": 5, "partitioner.adaptive.partitioning.enable": False},
            "no effect with the policy uniform",
        ),
        (
            {"partitioner.availability.timeout.ms": 5, "partitioner.class": "sticky"},
            "no effect with the policy sticky",
        ),
        (
            {"partitioner.adaptive.partitioning.enable": True, "partitioner.class": to_zero},
            "only the records for which the custom",
        ),
        (
            {"partitioner.adaptive.partitioning.enable": True, "partitioner.class": "late"},
            "no effect with partitioner.class=late",
        ),
        (
            {"partitioner.ignore.keys": True, "partitioner.class": f"{KAFKA}RoundRobinPartitioner"},
            "which ignores keys anyway",
        ),
        (
            {"partitioner.class": f"{KAFKA}UniformStickyPartitioner"},
            "is deprecated .KIP-794. and behaves as it always did: remove it, and set",
        ),
        (
            {"partitioner.class": f"{KAFKA}internals.DefaultPartitioner"},
            "is deprecated .KIP-794. and behaves as it always did: remove it",
        ),
        (
            {"partitioner.max.skew.bytes": 1, "partitioner.class": "adaptive"},
            "partitioner.max.skew.bytes has no effect with the policy adaptive",
        ),
        (
            {"partitioner.skew.include.keyed": True, "partitioner.class": "uniform"},
            "partitioner.skew.include.keyed has no effect",
        ),
        ({"batch.size": 0, "linger.ms": 10}, "linger.ms=10 only delays records with batch.size=0"),
        ({"compression.zstd.level": 5}, "compression.zstd.level has no effect with compression.type=none"),
        (
            {"max.in.flight.requests.per.connection": 1, "max.in.flight.requests.adaptive.enable": True},
            "nothing to adapt with max.in.flight.requests.per.connection=1",
        ),
        ({"acks": "0", "retries": 3}, "retries=3 has no effect with acks=0"),
        ({"retries": 0, "retry.backoff.ms": 5}, "retry.backoff.ms=5 does not apply"),
        ({"transaction.timeout.ms": 5000}, "no effect without transactional.id"),
    ],
)
def test_a_config_without_effect_is_warned_about(config: dict[str, Any], words: str) -> None:
    (warning,) = warnings(config)
    assert re.search(words, warning)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"partitioner.availability.timeout.ms": 5},
        {
            "partitioner.class": "late",
            "partitioner.availability.timeout.ms": 5,
            "partitioner.max.skew.bytes": 1,
        },
        {"partitioner.adaptive.partitioning.enable": False, "partitioner.ignore.keys": True},
        {"partitioner.class": f"{KAFKA}RoundRobinPartitioner"},
        {"compression.type": "zstd", "compression.zstd.level": 5},
        {"batch.size": 0},
        {"max.in.flight.requests.per.connection": 1},
    ],
)
def test_configs_that_work_together_are_not(config: dict[str, Any]) -> None:
    assert warnings(config) == ()


def test_the_face_logs_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "fairlead_kafka.producer"):
        Rig().producer(partitioner_class="uniform", partitioner_max_skew_bytes=5)
    assert [record.name for record in caplog.records] == ["fairlead_kafka.producer"]
    assert "partitioner.max.skew.bytes has no effect" in caplog.text
