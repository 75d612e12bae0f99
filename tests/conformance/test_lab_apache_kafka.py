"""Several brokers of Apache Kafka with a slow proxy before one: what the lab's experiments stand
on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fairlead_kafka
from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.lab.apache_kafka import Unavailable, jars
from fairlead_kafka.lab.faulty_targets import FaultyTarget, fault, faulty_target
from fairlead_kafka.lab.held import held
from fairlead_kafka.lab.paced import make_topics
from tests.support.waiting import PATIENCE_S

TOPIC = "led-by-both"


def _leaders(servers: str) -> list[int]:
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        return [partition.leader for partition in admin.describe_topics([TOPIC])[TOPIC].partitions]


@pytest.fixture(scope="module")
def target() -> Iterator[FaultyTarget]:
    """Two brokers, 0 behind a proxy; skips with the reason where Java or Maven is missing."""
    try:
        jars()
    except Unavailable as error:
        pytest.skip(str(error))
    with faulty_target("apache-kafka", brokers=2) as target:
        make_topics(target.bootstrap_servers, [TOPIC], brokers=2, partitions=2)
        yield target


def test_records_pass_a_slow_proxy_and_are_counted_behind_it(target: FaultyTarget) -> None:
    with (
        fault(target, "serial", 5),
        fairlead_kafka.Producer({"bootstrap.servers": target.bootstrap_servers}) as producer,
    ):
        for partition in (0, 0, 1):
            producer.send(TOPIC, b"x" * 100, partition=partition).result(timeout_s=PATIENCE_S)
    found = held(target.bootstrap_servers, TOPIC)
    assert [(one.leader, one.records, one.batches) for one in found] == [(0, 2, 2), (1, 1, 1)]
    assert found[0].size_bytes == 2 * found[1].size_bytes > 2 * (BATCH_OVERHEAD_BYTES + 100)


def test_a_killed_broker_is_known_to_be_gone_and_comes_back_with_what_it_had(target: FaultyTarget) -> None:
    before = held(target.bootstrap_servers, TOPIC)
    with fault(target, "dead", 0):
        assert _leaders(target.bootstrap_servers) == [-1, 1]
    assert held(target.bootstrap_servers, TOPIC) == before
