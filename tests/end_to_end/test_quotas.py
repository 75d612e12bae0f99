"""Producers and consumers that have quotas: they get what is granted and no more, and nothing is
lost.

Rates of our own clients are measured in virtual time, against real brokers; with default windows
(11 of a second) a client gets ten seconds' worth at once and then waits for it, so windows are few
here. A stock client runs in real time: there the test holds that it was never quicker than granted,
which no busy machine can change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import pytest

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, produce_fields
from tests.support.metrics import metric
from tests.support.producer_rig import Rig
from tests.support.quota_calls import Entity, alter_fields, alteration, described
from tests.support.virtual_cluster import VirtualCluster
from tests.support.virtual_hosting import Opening
from tests.support.waiting import PATIENCE_S, until
from tests.support.wire_client import Wire, addresses

WINDOWS = {"quota.window.num": 2}
LIMIT_BYTES = 200_000
VALUE = b"x" * 1_000
OVERHEAD = 1.02
"""What a record takes in a request, to its value."""
NAMED: Entity = {"client-id": "limited"}


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(2, WINDOWS, latency_ms=0.5, checks=False)
    made.topic("t", 2)
    yield made
    made.close()


def grant(cluster: VirtualCluster, entity: Entity = NAMED, **values: float | None) -> None:
    answer = cluster.ask(1, ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter_fields(alteration(entity, **values)))
    assert [row.error_code for row in answer.entries] == [0]


def rate_over(seconds: float, arrived_s: list[float], since_s: float) -> float:
    """Bytes a second that arrived in this span."""
    return sum(since_s <= each < since_s + seconds for each in arrived_s) * len(VALUE) * OVERHEAD / seconds


@pytest.mark.parametrize("partitioner", ["uniform", "late"])
def test_our_producer_gets_its_rate_from_each_broker_and_loses_nothing(
    cluster: VirtualCluster, partitioner: str
) -> None:
    grant(cluster, producer_byte_rate=LIMIT_BYTES)
    rig = Rig(brokers=0)
    rig.host, rig.opener = cluster.host, Opening(cluster.host)
    servers = "127.0.0.1:9092,127.0.0.1:9093"
    # Requests of a tenth of a second's worth: larger ones are paid for in longer waits.
    small = {"batch.size": 16_384, "max.request.size": 20_000, "linger.ms": 5}
    producer = rig.producer(
        {"partitioner.class": partitioner, **small}, bootstrap_servers=servers, client_id="limited"
    )
    begun_ns = rig.host.now_ns()
    arrived_s: list[float] = []

    def delivered(_metadata: object, error: Exception | None) -> None:
        assert error is None
        arrived_s.append((rig.host.now_ns() - begun_ns) / 1e9)

    for number in range(6_000):
        producer.send(
            "t", VALUE, key=b"%d" % number if partitioner == "uniform" else None, on_delivery=delivered
        )
    producer.flush()
    assert len(arrived_s) == 6_000
    assert rate_over(5, arrived_s, 2) == pytest.approx(2 * LIMIT_BYTES, rel=0.15)
    assert metric(producer, "produce-throttle-time-max") > 0
    values = [cluster.values(TopicPartition("t", number)) for number in (0, 1)]
    assert sum(map(len, values)) == 6_000


def test_our_consumer_gets_its_rate_and_reads_everything(cluster: VirtualCluster) -> None:
    for _ in range(150):
        fields = produce_fields({("t", 0): batch([VALUE] * 10)})
        assert cluster.ask(0, ApiKey.PRODUCE, 9, **fields).responses[0].partition_responses[0].error_code == 0
    grant(cluster, consumer_byte_rate=LIMIT_BYTES)
    config = {
        "bootstrap.servers": "127.0.0.1:9092",
        "client.id": "limited",
        "auto.offset.reset": "earliest",
        "fetch.max.bytes": 20_000,
    }
    begun_ns = cluster.host.now_ns()
    arrived_s: list[float] = []
    with Consumer(config, opener=Opening(cluster.host)) as consumer:
        consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
        while len(arrived_s) < 1_500:
            records = consumer.poll(10)
            arrived_s += [(cluster.host.now_ns() - begun_ns) / 1e9] * len(records)
        counters = consumer.metrics()["consumer-fetch-manager-metrics"]
    assert rate_over(5, arrived_s, 2) == pytest.approx(LIMIT_BYTES, rel=0.15)
    assert counters["fetch-throttle-time-max"] > 0
    assert 0 < counters["fetch-throttle-time-avg"] <= counters["fetch-throttle-time-max"]


def test_partitions_are_counted_once_for_the_whole_cluster(cluster: VirtualCluster) -> None:
    """Whichever broker is asked: the controller keeps the account."""
    grant(cluster, {"user": None}, controller_mutation_rate=1)

    def create(node_id: int, name: str, partitions: int) -> Any:
        topic = Message(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
        )
        return cluster.ask(
            node_id, ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=1_000, validate_only=False
        )

    assert create(0, "a", 20).topics[0].error_code == 0
    refused = create(1, "b", 1)
    assert refused.topics[0].error_code == 89
    assert refused.throttle_time_ms == pytest.approx(9_000, abs=20)


# --- In real time


@pytest.mark.parametrize("processes", [False, True])
def test_quotas_are_every_brokers_and_outlive_the_cluster(tmp_path: Any, processes: bool) -> None:
    wanted = {
        frozenset({("user", None)}): {"producer_byte_rate": 10.0},
        frozenset({("ip", None)}): {"connection_creation_rate": 500.0},
    }
    with (
        Cluster(brokers=2, data_dir=tmp_path, processes=processes) as cluster,
        Wire(addresses(cluster)[0]) as wire,
    ):
        entries = (
            alteration({"user": None}, producer_byte_rate=10),
            alteration({"ip": None}, connection_creation_rate=500),
        )
        answer = wire.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter_fields(*entries))
        assert [row.error_code for row in answer.entries] == [0, 0]
    with Cluster(brokers=2, data_dir=tmp_path, processes=processes) as cluster:
        cluster.create_topic("t", 2, 1)
        for address in addresses(cluster):
            with Wire(address) as wire:
                answer = wire.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=[], strict=False)
                assert described(answer) == wanted
                fields = produce_fields({("t", 0): batch([VALUE]), ("t", 1): batch([VALUE])})
                assert wire.ask(ApiKey.PRODUCE, 9, **fields).throttle_time_ms > 0


@pytest.mark.parametrize("processes", [False, True])
def test_a_controller_in_another_process_counts_partitions_too(processes: bool) -> None:
    with Cluster(brokers=2, processes=processes) as cluster:
        first, second = (Wire(address) for address in addresses(cluster))
        with first, second:
            first.ask(
                ApiKey.ALTER_CLIENT_QUOTAS,
                1,
                **alter_fields(alteration({"user": None}, controller_mutation_rate=0.001)),
            )

            def answered() -> bool:
                return bool(
                    described(second.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=[], strict=False))
                )

            until(answered)  # each broker follows the controller
            topics = [
                Message(name=name, num_partitions=5, replication_factor=1, assignments=[], configs=[])
                for name in ("a", "b")
            ]
            fields = {"timeout_ms": 5_000, "validate_only": False}
            assert first.ask(ApiKey.CREATE_TOPICS, 7, topics=topics[:1], **fields).topics[0].error_code == 0
            answer = second.ask(ApiKey.CREATE_TOPICS, 7, topics=topics, **fields)
            assert [row.error_code for row in answer.topics] == [36, 89]
            assert answer.throttle_time_ms > 4_000_000


def test_a_time_granted_is_measured_by_the_threads_clock() -> None:
    with Cluster(brokers=1) as cluster, Wire(addresses(cluster)[0]) as wire:
        entry = alteration({"client-id": "wire"}, request_percentage=1e-6)
        wire.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter_fields(entry))
        assert wire.ask(ApiKey.METADATA, 9, topics=None).throttle_time_ms == 1_000, "a window at most"


def test_librdkafkas_producer_and_consumer_keep_to_their_quotas() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    count, throttles = 500, Counter[str]()
    with Cluster(brokers=1, config=WINDOWS) as cluster:
        servers = cluster.bootstrap_servers
        cluster.create_topic("t", 1, 1)
        with Wire(servers) as wire:
            entry = alteration(
                {"client-id": "limited"}, producer_byte_rate=LIMIT_BYTES, consumer_byte_rate=LIMIT_BYTES
            )
            wire.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter_fields(entry))

        def throttled(name: str) -> Callable[[Any], None]:
            return lambda event: throttles.update({name: int(event.throttle_time > 0)})

        common = {"bootstrap.servers": servers, "client.id": "limited"}
        small = {"message.max.bytes": 20_000, "queue.buffering.max.messages": 10_000, "linger.ms": 5}
        producer = confluent_kafka.Producer({**common, **small, "throttle_cb": throttled("producer")})
        offsets: list[int] = []
        with Clock() as clock:
            for _ in range(count):
                producer.produce(
                    "t",
                    VALUE,
                    on_delivery=lambda error, message: offsets.append(
                        message.offset() if error is None else -1
                    ),
                )
            assert producer.flush(PATIENCE_S) == 0
        assert sorted(offsets) == list(range(count))
        assert clock.rate(count) < LIMIT_BYTES * 1.15
        config = {
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "fetch.max.bytes": 20_000,
            "message.max.bytes": 20_000,
        }
        consumer = confluent_kafka.Consumer({**common, **config, "throttle_cb": throttled("consumer")})
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        read: list[int] = []

        def poll() -> bool:
            read.extend(
                message.offset()
                for message in consumer.consume(count, timeout=0.2)
                if message.error() is None
            )
            return len(read) >= count

        with Clock() as clock:
            until(poll)
        consumer.close()
        assert read == list(range(count))
        assert clock.rate(count) < LIMIT_BYTES * 1.15
    assert throttles["producer"] > 0
    assert throttles["consumer"] > 0


class Clock:
    """How long something took, less what is granted at once."""

    def __enter__(self) -> Clock:
        self._began_s = monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._took_s = monotonic() - self._began_s

    def rate(self, count: int) -> float:
        """Bytes a second beyond the first second's worth."""
        return (count * len(VALUE) * OVERHEAD - LIMIT_BYTES) / self._took_s
