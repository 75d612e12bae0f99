"""Stock consumers, unmodified, that read in their own rack (KIP-392)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka.testing import Cluster
from tests.support.java_tools import JavaTools
from tests.support.waiting import PATIENCE_S

TOPIC = "events"
RECORDS = 200


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers in racks a, b and c; a topic of one partition, led in rack a and replicated to
    the others."""
    config = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with Cluster(brokers=3, config=config, racks=("a", "b", "c")) as running:
        with fairlead_kafka.Admin({"bootstrap.servers": running.bootstrap_servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic(TOPIC, assignments=[[0, 1, 2]])])
        with fairlead_kafka.Producer({"bootstrap.servers": running.bootstrap_servers}) as producer:
            for number in range(RECORDS):
                producer.send(TOPIC, b"%d" % number)
        yield running


@pytest.mark.parametrize(("rack", "broker"), [("a", 0), ("b", 1), ("c", 2), ("z", 0)])
def test_librdkafka_fetches_from_the_replica_in_its_rack(cluster: Cluster, rack: str, broker: int) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    seen: list[dict[str, Any]] = []
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"group-{rack}",
            "client.rack": rack,
            "statistics.interval.ms": 50,
            "stats_cb": lambda said: seen.append(json.loads(said)),
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    values: set[bytes] = set()

    def fetched_from() -> int:
        return (
            int(seen[-1]["topics"][TOPIC]["partitions"]["0"]["broker"])
            if seen and TOPIC in seen[-1]["topics"]
            else -1
        )

    deadline_s = time.monotonic() + PATIENCE_S
    while len(values) < RECORDS or fetched_from() != broker:
        assert time.monotonic() < deadline_s, (len(values), fetched_from())
        values.update(
            record.value() for record in consumer.consume(100, timeout=0.1) if record.error() is None
        )
    consumer.close()


def test_the_java_consumer_reads_whole_from_its_rack(cluster: Cluster, tools: JavaTools) -> None:
    said = tools.run(
        "console-consume",
        "--bootstrap-server", cluster.bootstrap_servers, "--topic", TOPIC, "--from-beginning",
        "--max-messages", str(RECORDS),
        "--timeout-ms", "100000", "--command-property", "client.rack=b",
    )  # fmt: skip
    assert sorted(map(int, re.findall(r"^\d+$", said, re.MULTILINE))) == list(range(RECORDS))
