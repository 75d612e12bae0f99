"""Configs that contradict each other, and what the others come to."""

from typing import Any

import pytest

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.producer.settings import ProducerSettings, producer_settings
from fairlead_kafka.records import Compression


def settings(**given: Any) -> ProducerSettings:
    dotted = {key.replace("_", "."): value for key, value in given.items()}
    return producer_settings(CLIENT_CONFIGS.parse("producer", {"bootstrap.servers": "h:1", **dotted}))


def test_defaults_are_kafkas() -> None:
    made = settings()
    assert (made.acks, made.idempotent, made.max_in_flight, made.delivery_timeout_ms) == (
        -1,
        True,
        5,
        120_000,
    )
    assert (made.batch_size_bytes, made.batch_limit_bytes) == (16_384, 16_384 - 61)
    assert made.partitioner.policy_name == "late"


@pytest.mark.parametrize(
    "conflict", [{"acks": 1}, {"acks": "0"}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}]
)
def test_idempotence_yields_to_a_conflict_unless_it_was_asked_for(conflict: dict[str, Any]) -> None:
    assert not settings(**conflict).idempotent
    with pytest.raises(ConfigError, match=r"enable.idempotence=true needs"):
        settings(enable_idempotence=True, **conflict)


def test_all_conflicts_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"acks=all, not 1 and retries above 0"):
        settings(enable_idempotence=True, acks=1, retries=0)


def test_a_delivery_timeout_below_linger_and_request_timeout_is_refused_if_given_and_raised_if_not() -> None:
    with pytest.raises(
        ConfigError, match=r"delivery.timeout.ms=1000 is below linger.ms \+ request.timeout.ms"
    ):
        settings(delivery_timeout_ms=1000)
    assert settings(linger_ms=200_000).delivery_timeout_ms == 230_000


def test_compression_levels_apply_to_their_codec() -> None:
    assert settings(compression_type="zstd", compression_zstd_level=7).compression_level == 7
    assert settings(compression_type="gzip").compression_level is None
    assert settings(compression_type="snappy").compression_level is None
    assert settings(compression_type="lz4").compression is Compression.lz4


def test_one_request_in_flight_keeps_order_by_muting() -> None:
    assert settings(max_in_flight_requests_per_connection=1).keeps_order_by_muting
    assert not settings().keeps_order_by_muting
