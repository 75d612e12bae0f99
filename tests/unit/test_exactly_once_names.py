"""Names of exactly-once batch writes: an application's versions are counted for each topic, and
what release 0.1.0 counted without one goes on to count."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

import fairlead_kafka
from fairlead_kafka import Admin, NewTopic
from fairlead_kafka.spark.exactly_once.driver import Committer, Step
from fairlead_kafka.spark.exactly_once.parts import Part, Writing
from fairlead_kafka.spark.exactly_once.settings import Guarantee
from fairlead_kafka.spark.exactly_once.task import prepare
from fairlead_kafka.spark.source import FairleadSource
from tests.support.exactly_once_rig import GUARANTEE, Crash, visible_rows

_numbers = itertools.count()


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.create_topics([NewTopic(name, 2) for name in ("first", "second")])
        yield cluster.bootstrap_servers


@pytest.fixture
def app() -> str:
    return f"app-{next(_numbers)}"


def write(servers: str, app: str, version: int, topic: str | None, rows: pa.RecordBatch) -> None:
    """What Spark does for `frame.write.format("fairlead")...save()` of one task."""
    options = {
        "kafka.bootstrap.servers": servers,
        "deliveryguarantee": "exactly-once",
        "txnappid": app,
        "txnversion": str(version),
    }
    schema = StructType([StructField(name, StringType()) for name in rows.schema.names])
    writer = FairleadSource(options if topic is None else {**options, "topic": topic}).writer(schema, False)
    writer.commit([writer.write(iter([rows]))])


def values(*texts: str) -> pa.RecordBatch:
    return pa.record_batch({"value": list(texts)})


def visible(servers: str, topic: str, app: str) -> list[bytes]:
    return [row for row in visible_rows(servers, topic) if row.startswith(f"{app} ".encode())]


def test_one_name_counts_its_versions_for_each_topic(servers: str, app: str) -> None:
    for version in (0, 1):
        for topic in ("first", "second"):
            write(servers, app, version, topic, values(f"{app} {version}"))
            write(servers, app, version, topic, values(f"{app} again"))
    for topic in ("first", "second"):
        assert visible(servers, topic, app) == [f"{app} 0".encode(), f"{app} 1".encode()]


def test_a_write_whose_rows_name_their_topics_counts_by_itself(
    servers: str, app: str, caplog: pytest.LogCaptureFixture
) -> None:
    both = pa.record_batch({"topic": ["first", "second"], "value": [f"{app} column"] * 2})
    with caplog.at_level(logging.WARNING, "fairlead_kafka.spark"):
        write(servers, app, 0, "first", values(f"{app} option"))
        write(servers, app, 0, None, both)
        # Of connections that take long, the network warns at any time.
        assert [one for one in caplog.records if one.name == "fairlead_kafka.spark"] == []
        write(servers, app, 0, None, both)
    assert visible(servers, "first", app) == [f"{app} column".encode(), f"{app} option".encode()]
    assert visible(servers, "second", app) == [f"{app} column".encode()]
    assert (
        f"txnAppId {app} has written txnVersion 0 or a higher one before, to topics that rows" in caplog.text
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [(("a", "b"), ("a-b", None)), (("a", "b-topic"), ("a-b", "topic")), (("a-topic:b", None), ("a", "b"))],
)
def test_no_two_applications_and_topics_share_a_name(
    one: tuple[str, str | None], other: tuple[str, str | None]
) -> None:
    names = [Guarantee(app_id=app, topic=topic).write_name for app, topic in (one, other)]
    assert names[0] != names[1]


def prepared(servers: str, name: str, batch: int, topic: str, value: str) -> Part:
    part = prepare(
        {"bootstrap.servers": servers}, GUARANTEE, Writing(name, batch), topic, iter([values(value)])
    ).part
    assert part is not None
    return part


def test_what_was_counted_for_an_application_alone_goes_on_to_count(servers: str, app: str) -> None:
    former = Committer({"bootstrap.servers": servers}, GUARANTEE, app)
    assert former.commit(5, [prepared(servers, app, 5, "first", f"{app} 5")])
    write(servers, app, 5, "first", values(f"{app} again"))
    write(servers, app, 4, "second", values(f"{app} again"))
    write(servers, app, 6, "first", values(f"{app} 6"))
    write(servers, app, 6, "second", values(f"{app} 6"))
    assert visible(servers, "first", app) == [f"{app} 5".encode(), f"{app} 6".encode()]
    assert visible(servers, "second", app) == [f"{app} 6".encode()]


def test_a_decision_about_an_application_alone_is_carried_out(servers: str, app: str) -> None:
    def reached(step: Step) -> None:
        if step is Step.DECIDED:
            raise Crash

    former = Committer({"bootstrap.servers": servers}, GUARANTEE, app, reached)
    with pytest.raises(Crash):
        former.commit(5, [prepared(servers, app, 5, "first", f"{app} 5")])
    write(servers, app, 5, "first", values(f"{app} again"))
    write(servers, app, 6, "first", values(f"{app} 6"))
    assert visible(servers, "first", app) == [f"{app} 5".encode(), f"{app} 6".encode()]
