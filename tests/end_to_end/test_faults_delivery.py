"""Exactly once, in order, where the ack says: an idempotent producer against our cluster through a
proxy that spoils its requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fairlead_kafka
from tests.support.cutting_proxy import CUTS, LIES, CuttingProxy, Fault, every
from tests.support.delivery_check import PARTITIONS, QUICK, Sent, check_delivered, read_back, run

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=3, config={"num.partitions": PARTITIONS}) as cluster:
        yield cluster


@pytest.mark.parametrize("in_flight", [1, 5])
@pytest.mark.parametrize("fault", [*CUTS, *LIES], ids=lambda fault: fault.name)
def test_a_fault_met_again_and_again_loses_and_repeats_nothing(
    cluster: fairlead_kafka.Cluster, fault: Fault, in_flight: int
) -> None:
    topic = f"{fault.name}-{in_flight}"
    run(cluster.bootstrap_servers, topic, [fault] * 8, max_in_flight_requests_per_connection=in_flight)


@pytest.mark.parametrize("codec", CODECS)
def test_all_faults_mixed_lose_and_repeat_nothing_whatever_the_codec(
    cluster: fairlead_kafka.Cluster, codec: str
) -> None:
    run(cluster.bootstrap_servers, f"mixed-{codec}", [*CUTS, *LIES] * 2, step=2, compression_type=codec)


@pytest.mark.parametrize("in_flight", [1, 5])
def test_requests_that_are_never_answered_are_sent_again_after_the_request_timeout(
    cluster: fairlead_kafka.Cluster, in_flight: int
) -> None:
    run(
        cluster.bootstrap_servers, f"swallowed-{in_flight}", [Fault.SWALLOWED] * 3, step=5,
        request_timeout_ms=200, max_in_flight_requests_per_connection=in_flight,
    )  # fmt: skip


@pytest.mark.parametrize("faults", [CUTS, LIES], ids=["cuts", "lies"])
def test_the_very_first_requests_of_a_producer_may_be_the_spoiled_ones(
    cluster: fairlead_kafka.Cluster, faults: tuple[Fault, ...]
) -> None:
    for fault in faults:
        sent = Sent(f"first-{fault.name}", PARTITIONS)
        with (
            CuttingProxy(cluster.bootstrap_servers, every(1, [fault] * 4, start=0)) as proxy,
            fairlead_kafka.Producer(
                {"bootstrap.servers": proxy.bootstrap_servers, **QUICK, "batch.size": 300}
            ) as producer,
        ):
            sent.send_all_ways(producer)
            placed = sent.acknowledged()
        check_delivered(placed, read_back(cluster.bootstrap_servers, sent.topic, PARTITIONS))
