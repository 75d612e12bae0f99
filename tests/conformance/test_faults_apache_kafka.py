"""Exactly once, in order, where the ack says: an idempotent producer against Apache Kafka through a
proxy that spoils its requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.cutting_proxy import CUTS, LIES, Fault
from tests.support.delivery_check import PARTITIONS, run

NewTopic = Callable[..., str]


@pytest.mark.parametrize("in_flight", [1, 5])
@pytest.mark.parametrize("fault", [*CUTS, *LIES], ids=lambda fault: fault.name)
def test_a_fault_met_again_and_again_loses_and_repeats_nothing(
    apache_kafka: str, new_topic: NewTopic, fault: Fault, in_flight: int
) -> None:
    topic = new_topic(apache_kafka, partitions=PARTITIONS)
    run(apache_kafka, topic, [fault] * 6, max_in_flight_requests_per_connection=in_flight)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_faults_mixed_lose_and_repeat_nothing_whatever_the_codec(
    apache_kafka: str, new_topic: NewTopic, codec: str
) -> None:
    run(
        apache_kafka,
        new_topic(apache_kafka, partitions=PARTITIONS),
        [*CUTS, *LIES] * 2,
        step=2,
        compression_type=codec,
    )
