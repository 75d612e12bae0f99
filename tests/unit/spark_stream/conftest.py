"""An embedded cluster, and stream readers of its topics as a new driver makes them."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator

import pytest

import fairlead
from fairlead.spark.options import parse_read_options
from fairlead.spark.schema import source_schema
from fairlead.spark.stream_reader import FairleadStreamReader

_numbers = itertools.count()


@pytest.fixture(scope="package")
def cluster() -> Iterator[fairlead.Cluster]:
    with fairlead.Cluster(brokers=1) as running:
        yield running


@pytest.fixture(scope="package")
def admin(cluster: fairlead.Cluster) -> Iterator[fairlead.Admin]:
    with fairlead.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as client:
        yield client


@pytest.fixture(scope="package")
def producer(cluster: fairlead.Cluster) -> Iterator[fairlead.Producer]:
    with fairlead.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as client:
        yield client


@pytest.fixture
def topic(admin: fairlead.Admin) -> str:
    """A topic of two partitions."""
    name = f"stream-{next(_numbers)}"
    admin.create_topics([fairlead.NewTopic(name, partitions=2)])
    return name


@pytest.fixture
def send(producer: fairlead.Producer) -> Callable[..., None]:
    """`send(topic, 3, 5)`: so many records to partition 0, 1, …"""

    def to(topic: str, *counts: int) -> None:
        for partition, count in enumerate(counts):
            for number in range(count):
                producer.send(topic, b"%d" % number, partition=partition)
        producer.flush()

    return to


@pytest.fixture
def stream(cluster: fairlead.Cluster) -> Iterator[Callable[..., FairleadStreamReader]]:
    """`stream(subscribe=…)`: a reader with these options, as a new driver makes it."""
    made = []

    def make(**options: object) -> FairleadStreamReader:
        lowered = {name.lower(): str(value) for name, value in options.items()}
        parsed = parse_read_options({"kafka.bootstrap.servers": cluster.bootstrap_servers, **lowered}, streaming=True)
        # Spark pickles the reader once, to send its copies to executors.
        made.append(pickle.loads(pickle.dumps(FairleadStreamReader(parsed, source_schema(parsed.layout)))))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()
