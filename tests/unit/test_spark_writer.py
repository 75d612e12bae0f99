"""The writer of a Spark task: batches go to the producer as Spark made them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import ConfigError, InvalidRecord
from fairlead_kafka.spark.exactly_once.settings import Guarantee
from fairlead_kafka.spark.option_checks import WrongOptions
from fairlead_kafka.spark.options import parse_write_options
from fairlead_kafka.spark.writing import rows_by_topic


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


def sent(given: pa.RecordBatch, topic: str | None = None) -> list[tuple[str, pa.RecordBatch]]:
    return list(rows_by_topic(given, topic))


def addresses(rows: pa.RecordBatch, name: str) -> list[int]:
    return [buffer.address for buffer in rows.column(name).buffers() if buffer is not None]


@pytest.mark.parametrize("given", [{"topic": "t"}, {}])
def test_a_batch_for_one_topic_is_handed_over_without_a_copy(given: dict[str, str]) -> None:
    made = batch(topic=["t", "t"], value=[b"1", b"2"], key=[b"a", None], extra=[1, 2])
    ((topic, rows),) = sent(made, **given)
    assert topic == "t"
    assert isinstance(rows, pa.RecordBatch)
    assert rows.schema.names == ["key", "value"]
    for name in ("key", "value"):
        assert addresses(rows, name) == addresses(made, name)


def test_rows_go_to_the_topics_they_name() -> None:
    found = sent(batch(topic=["t", "u", "t"], value=[b"1", b"2", b"3"]))
    assert [(topic, rows["value"].to_pylist()) for topic, rows in found] == [
        ("t", [b"1", b"3"]),
        ("u", [b"2"]),
    ]


def test_a_row_without_topic_is_refused() -> None:
    with pytest.raises(InvalidRecord, match=r"1 rows of a batch have a null topic"):
        sent(batch(topic=pa.array(["t", None]), value=[b"1", b"2"]))


SERVERS = {"kafka.bootstrap.servers": "h:9"}
ONCE = {**SERVERS, "deliveryguarantee": "exactly-once"}


def test_rows_are_written_at_least_once_unless_asked_for() -> None:
    assert parse_write_options(SERVERS).exactly_once is None
    assert (
        parse_write_options({**SERVERS, "deliveryguarantee": "at-least-once"}, streaming=True).exactly_once
        is None
    )


def test_an_exactly_once_write_is_named_by_its_options() -> None:
    assert parse_write_options(ONCE, streaming=True).exactly_once == Guarantee()
    named = {
        "transactionalidprefix": "team",
        "commitlogtopic": "team-commits",
        "txnappid": "a",
        "txnversion": "7",
    }
    assert parse_write_options({**ONCE, **named}).exactly_once == Guarantee("team", "team-commits", "a", 7)


@pytest.mark.parametrize(
    ("options", "streaming", "said"),
    [
        (
            {**SERVERS, "deliveryguarantee": "at-most-once"},
            False,
            "deliveryGuarantee: must be at-least-once or exactly-once",
        ),
        (
            {**SERVERS, "txnappid": "a"},
            False,
            "txnAppId: says how exactly-once writes are kept; set deliveryGuarantee=exactly-once",
        ),
        ({**SERVERS, "commitlogtopic": "a"}, True, "commitLogTopic: says how exactly-once writes are kept"),
        ({**ONCE, "txnappid": "a"}, False, "txnAppId and txnVersion: one needs the other"),
        (
            {**ONCE, "txnappid": "a", "txnversion": "-1"},
            False,
            "txnVersion: must be a whole number, 0 or more",
        ),
        ({**ONCE, "txnappid": "a", "txnversion": "1"}, True, "txnAppId: is for batch writes"),
        ({**ONCE, "kafka.transactional.id": "a"}, True, "kafka.transactional.id: not supported"),
        (
            {**ONCE, "kafka.enable.idempotence": "false"},
            True,
            "kafka.enable.idempotence: must be true for exactly-once writes",
        ),
        ({**ONCE, "kafka.acks": "1"}, False, "kafka.acks: must be all or -1 for exactly-once writes, not 1"),
        (
            {**ONCE, "asyncprogresstrackingenabled": "true"},
            True,
            "asyncprogresstrackingenabled: unknown option",
        ),
    ],
)
def test_options_of_a_write_that_make_no_sense_are_told(
    options: dict[str, str], streaming: bool, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_write_options(options, streaming=streaming)


@pytest.mark.parametrize(
    ("options", "only"),
    [
        ({"txnappid": "a", "txnversion": "2026-11-21"}, "txnVersion"),
        ({"txnappid": " ", "txnversion": "1"}, "txnAppId"),
        ({"deliveryguarantee": "exactly_once", "txnappid": "a", "txnversion": "1"}, "deliveryGuarantee"),
        ({"topic": "__fairlead_commits"}, "topic"),
        ({"topic": "a", "commitlogtopic": "a"}, "topic"),
    ],
)
def test_what_is_wrong_with_one_option_is_no_complaint_about_another(
    options: dict[str, str], only: str
) -> None:
    with pytest.raises(WrongOptions) as raised:
        parse_write_options({**ONCE, **options})
    assert [problem.partition(":")[0] for problem in raised.value.problems] == [only]
