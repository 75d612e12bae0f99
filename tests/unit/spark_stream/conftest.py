"""An embedded cluster, and stream readers of its topics as a new driver makes them."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator

import pytest

import fairlead_kafka
from fairlead_kafka.spark.options import parse_read_options
from fairlead_kafka.spark.schema import source_schema
from fairlead_kafka.spark.stream_reader import FairleadStreamReader

_numbers = itertools.count()


@pytest.fixture(scope="package")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=1) as running:
        yield running


@pytest.fixture(scope="package")
def admin(cluster: fairlead_kafka.Cluster) -> Iterator[fairlead_kafka.Admin]:
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as client:
        yield client


@pytest.fixture(scope="package")
def producer(cluster: fairlead_kafka.Cluster) -> Iterator[fairlead_kafka.Producer]:
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as client:
        yield client


@pytest.fixture
def topic(admin: fairlead_kafka.Admin) -> str:
    """A topic of two partitions."""
    name = f"stream-{next(_numbers)}"
    admin.create_topics([fairlead_kafka.NewTopic(name, partitions=2)])
    return name


@pytest.fixture
def send(producer: fairlead_kafka.Producer) -> Callable[..., None]:
    """`send(topic, 3, 5)`: so many records to partition 0, 1, …"""

    def to(topic: str, *counts: int) -> None:
        for partition, count in enumerate(counts):
            for number in range(count):
                producer.send(topic, b"%d" % number, partition=partition)
        producer.flush()

    return to


@pytest.fixture
def stream(cluster: fairlead_kafka.Cluster) -> Iterator[Callable[..., FairleadStreamReader]]:
    """`stream(subscribe=…)`: a reader with these options, as a new driver makes it."""
    made = []

    def make(**options: object) -> FairleadStreamReader:
        lowered = {name.lower(): str(value) for name, value in options.items()}
        parsed = parse_read_options(
            {"kafka.bootstrap.servers": cluster.bootstrap_servers, **lowered}, streaming=True
        )
        # Spark pickles the reader once, to send its copies to executors.
        made.append(pickle.loads(pickle.dumps(FairleadStreamReader(parsed, source_schema(parsed.layout)))))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()
