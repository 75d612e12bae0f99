"""What exactly-once writes write down: the commit log, decisions, digests of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import PreparedTransaction
from fairlead_kafka.base.errors import ConfigError, DecodeError
from fairlead_kafka.spark.exactly_once.log import TAIL_RECORDS, CommitLog
from fairlead_kafka.spark.exactly_once.parts import Decision, Digest, Part, Writing
from fairlead_kafka.spark.exactly_once.settings import LOG_TOPIC, Guarantee
from tests.support.exactly_once_rig import TASKS, Query


@pytest.fixture(scope="module")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=1) as made:
        yield made


@pytest.fixture
def query(cluster: fairlead_kafka.Cluster, request: pytest.FixtureRequest) -> Query:
    return Query(cluster.bootstrap_servers, request.node.name.split("[")[0][:60])


# The log


def log(query: Query, topic: str = LOG_TOPIC) -> Any:
    admin = fairlead_kafka.Admin({"bootstrap.servers": query.client["bootstrap.servers"]})
    return CommitLog(query.client, Guarantee(log_topic=topic), query.name, admin)


def test_the_last_decision_is_found_however_much_others_have_written_since(
    query: Query, cluster: fairlead_kafka.Cluster
) -> None:
    query.commit(0)
    with fairlead_kafka.Producer(query.client) as producer:
        noise = pa.table({"key": ["another"] * (TAIL_RECORDS + 1), "value": ["{}"] * (TAIL_RECORDS + 1)})
        noise = noise.append_column("partition", pa.array([0] * noise.num_rows, pa.int32()))
        producer.send_table(LOG_TOPIC, noise).result(30)
    with log(query) as opened:
        last = opened.take_over()
    assert (last.writing, last.done, last.earlier) == (Writing(query.name, 0), True, TASKS)


def test_a_log_that_forgets_is_refused(query: Query, cluster: fairlead_kafka.Cluster) -> None:
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.create_topics([fairlead_kafka.NewTopic("forgetful", 1)])
    with (
        pytest.raises(ConfigError, match=r"cleanup\.policy=delete, so it would forget"),
        log(query, "forgetful") as opened,
    ):
        opened.take_over()


def test_a_name_that_nobody_comes_back_to_is_taken_out_of_the_log(query: Query) -> None:
    assert query.driver(remembers=False).commit(0, query.tasks(0))
    with log(query) as opened:
        assert opened.take_over() is None


def test_decisions_are_read_as_they_were_written() -> None:
    part = Part(PreparedTransaction("a", 2**40, 3, 2), 10**9, 2**64 - 1)
    decision = Decision(Writing("q", 7), (part,), (PreparedTransaction("b", 1, 0, 1),), earlier=4)
    assert Decision.decode("q", decision.encode()) == decision
    assert decision.rows == 10**9
    done = decision.carried_out()
    assert (done.done, done.earlier, done.commit) == (True, 5, ())


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        b"[]",
        b'{"version":2}',
        b'{"version":1,"batch":0,"done":true,"earlier":0,"commit":[[]],"abort":[]}',
    ],
)
def test_what_is_no_decision_is_refused(value: bytes) -> None:
    with pytest.raises(DecodeError):
        Decision.decode("q", value)


# Digests


def digest(*batches: tuple[str, dict[str, Any]]) -> int:
    found = Digest()
    for topic, columns in batches:
        found.add(topic, pa.record_batch(columns))
    return found.value


def test_a_digest_does_not_depend_on_order_or_batches() -> None:
    whole = digest(("t", {"key": ["a", None, "c"], "value": [b"1", b"2", None]}))
    assert whole == digest(
        ("t", {"key": ["c"], "value": pa.array([None], pa.binary())}),
        ("t", {"key": [None, "a"], "value": [b"2", b"1"]}),
    )


@pytest.mark.parametrize(
    "other",
    [
        ("t", {"key": ["b", "a"], "value": [b"1", b"2"]}),
        ("t", {"key": ["a", "b"], "value": [b"1", None]}),
        ("t", {"key": ["a", "b"], "value": [b"1", b""]}),
        ("t", {"key": ["a", None], "value": [b"1", b"2"]}),
        ("u", {"key": ["a", "b"], "value": [b"1", b"2"]}),
        ("t", {"key": ["a", "b", "a"], "value": [b"1", b"2", b"1"]}),
        ("t", {"key": ["a", "b"], "value": [b"1", b"2"], "partition": pa.array([0, 1], pa.int32())}),
    ],
)
def test_a_digest_tells_other_rows(other: tuple[str, dict[str, Any]]) -> None:
    assert digest(("t", {"key": ["a", "b"], "value": [b"1", b"2"]})) != digest(other)
