"""Apache Kafka's own Java client and tools against our transactions: they write them, look at them,
read our log of them and end one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import fairlead_kafka
from tests.support.java_tools import JavaTools, formatted
from tests.support.waiting import PATIENCE_S

confluent_kafka = pytest.importorskip("confluent_kafka")

NewTopic = Callable[..., str]
READER_PATIENCE_MS = (5_000, 30_000)
"""How long the console consumer waits for another record; longer where a slow machine had not begun
by then."""

pytestmark = pytest.mark.usefixtures("kafka_jars")


def hanging(servers: str, topic: str, transactional_id: str) -> object:
    """A producer with one record in a transaction that it does not end."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "transactional.id": transactional_id, "log_level": 1}
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, b"hanging", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def test_what_the_java_producer_commits_its_consumer_reads_and_not_what_is_open(
    embedded: str, new_topic: NewTopic, tools: JavaTools
) -> None:
    topic = new_topic(embedded, partitions=3)
    said = tools.run(
        "produce",
        "--topic", topic, "--num-records", "3000", "--record-size", "50", "--throughput", "-1",
        "--transactional-id", topic,
        "--transaction-duration-ms", "20", "--producer-props", f"bootstrap.servers={embedded}",
    )  # fmt: skip
    assert "3000 records sent" in said
    kept = hanging(embedded, topic, f"{topic}-hanging")
    arguments = (
        "--bootstrap-server",
        embedded,
        "--topic",
        topic,
        "--from-beginning",
        "--isolation-level",
        "read_committed",
    )
    for patience_ms in READER_PATIENCE_MS:
        said = tools.run("console-consume", *arguments, "--timeout-ms", str(patience_ms))
        values = re.findall(r"^(?:[A-Z]{50}|hanging)$", said, re.MULTILINE)
        if len(values) >= 3000:
            break
    assert len(values) == 3000
    assert "hanging" not in values
    del kept


def test_javas_tools_see_transactions_and_end_one_that_hangs(
    embedded: str, new_topic: NewTopic, tools: JavaTools
) -> None:
    topic = new_topic(embedded, partitions=1)
    kept = hanging(embedded, topic, topic)
    tool = ("transactions", "--bootstrap-server", embedded)
    assert any(topic in line and "Ongoing" in line for line in tools.run(*tool, "list").splitlines())
    described = tools.run(*tool, "describe", "--transactional-id", topic)
    assert "Ongoing" in described
    assert f"{topic}-0" in described
    with fairlead_kafka.Consumer({"bootstrap.servers": embedded}) as consumer:
        partition = fairlead_kafka.TopicPartition(topic, 0)
        assert consumer.end_offsets([partition])[partition] == 1
        tools.run(*tool, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
        assert consumer.end_offsets([partition])[partition] == 2
    del kept


def test_kafkas_formatter_reads_our_log_of_transactions(
    embedded: str, new_topic: NewTopic, tools: JavaTools
) -> None:
    topic = new_topic(embedded, partitions=2)
    kept = hanging(embedded, topic, topic)

    def begun(row: Any) -> bool:
        return bool(
            row["key"]["data"]["transactionalId"] == topic and row["value"]["data"]["transactionStatus"] == 1
        )

    (row,) = formatted(tools, embedded, "__transaction_state", "TransactionLogMessageFormatter", topic, begun)
    assert row["value"]["data"]["transactionPartitions"] == [{"topic": topic, "partitionIds": [0]}]
    assert row["value"]["data"]["producerEpoch"] == 0
    del kept
