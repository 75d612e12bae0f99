"""One Spark session and one embedded cluster for all Spark tests of a process."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka.spark import spark_session
from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session on two cores."""
    warnings.simplefilter("ignore", ResourceWarning)  # py4j leaves its sockets to the garbage collector.
    # One compiler is enough for jobs this short.
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    session = spark_session("fairlead-tests", "local[2]", settings)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    """An embedded cluster."""
    with fairlead_kafka.Cluster(brokers=2) as made:
        yield made


@pytest.fixture(scope="session")
def servers(cluster: fairlead_kafka.Cluster) -> str:
    """Its `bootstrap.servers`."""
    return cluster.bootstrap_servers


_numbers = itertools.count()


KEPT = {"retention.ms": "-1"}
"""Config of the tests' topics: their records are months old, and a cluster that lives for five
minutes looks for what is older than a week."""


@pytest.fixture
def new_topic(servers: str) -> Callable[..., str]:
    """Makes a topic, filled with the rows of a table if one is given."""

    def make(partitions: int = 3, table: pa.Table | None = None) -> str:
        name = f"spark-{next(_numbers)}"
        with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic(name, partitions=partitions, configs=KEPT)])
        if table is not None:
            with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
                producer.send_table(name, table).result(timeout_s=PATIENCE_S)
        return name

    return make


@pytest.fixture
def read(spark: SparkSession, servers: str) -> Callable[..., object]:
    """`read(subscribe=…, startingOffsets=…)`: a DataFrame of the source."""

    def load(**options: object) -> object:
        reader = spark.read.format("fairlead").option("kafka.bootstrap.servers", servers)
        for name, value in options.items():
            reader = reader.option(name, value)
        return reader.load()

    return load
