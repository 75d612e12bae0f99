"""Apache Kafka's own Java tools against our groups: they read our log of them, describe and list
them, reset and delete their offsets."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka.broker.consumer_groups import encode_groups_key, encode_groups_value
from fairlead_kafka.lab.apache_kafka import java_command
from tests.support.java_tools import JavaTools, formatted
from tests.support.stock_clients import until
from tests.unit.test_consumer_groups_records import SAMPLES

confluent_kafka = pytest.importorskip("confluent_kafka")

NewTopic = Callable[..., str]
OFFSETS = "__consumer_offsets"

pytestmark = pytest.mark.usefixtures("kafka_jars")


@contextmanager
def member(servers: str, group: str, topic: str) -> Iterator[Any]:
    """The one member of a group, which has read and committed all of a topic of two partitions with
    five records each."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for partition in (0, 1):
        for _ in range(5):
            producer.produce(topic, b"x", partition=partition)
    producer.flush()
    config = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "client.id": "reader",
    }
    consumer = confluent_kafka.Consumer({**config, "enable.auto.commit": False})
    consumer.subscribe([topic])
    got: list[Any] = []
    until(lambda: len(got) == 10, lambda: got.extend(consumer.consume(10, timeout=0.2)))
    consumer.commit(asynchronous=False)
    try:
        yield consumer
    finally:
        consumer.close()


def test_kafkas_formatters_read_our_log_of_groups(
    embedded: str, new_topic: NewTopic, tools: JavaTools
) -> None:
    topic = new_topic(embedded, partitions=2)
    with member(embedded, topic, topic):
        offsets = formatted(
            tools,
            embedded,
            OFFSETS,
            "OffsetsMessageFormatter",
            topic,
            lambda row: row["key"]["data"]["group"] == topic,
        )
        assert {(row["key"]["data"]["partition"], row["value"]["data"]["offset"]) for row in offsets} == {
            (0, 5),
            (1, 5),
        }
        groups = formatted(
            tools,
            embedded,
            OFFSETS,
            "GroupMetadataMessageFormatter",
            topic,
            lambda row: row["key"]["data"]["group"] == topic,
        )
        data = groups[-1]["value"]["data"]
        assert (data["protocolType"], data["generation"], data["protocol"]) == ("consumer", 1, "range")
        (one,) = data["members"]
        assert (one["memberId"], one["clientId"], one["sessionTimeout"]) == (data["leader"], "reader", 45_000)


def test_kafkas_group_command_describes_resets_and_deletes(
    embedded: str, new_topic: NewTopic, tools: JavaTools
) -> None:
    topic = new_topic(embedded, partitions=2)  # which gives the group its name

    def tool(*arguments: str) -> list[list[str]]:
        """The words of each line about the group."""
        lines = [
            line.split()
            for line in tools.run("groups", "--bootstrap-server", embedded, *arguments).splitlines()
            if line.strip()
        ]
        return [line for line in lines if line[0] == topic]

    with member(embedded, topic, topic):
        assert [row[-1] for row in tool("--list", "--state")] == ["Stable"]
        described = tool("--describe", "--group", topic)
        assert [row[:6] for row in described] == [
            [topic, topic, "0", "5", "5", "0"],
            [topic, topic, "1", "5", "5", "0"],
        ]
        assert [
            "reader" in row for row in tool("--describe", "--group", topic, "--members", "--verbose")
        ] == [True]
    assert tool(
        "--reset-offsets", "--group", topic, "--topic", f"{topic}:0", "--to-earliest", "--execute"
    ) == [[topic, topic, "0", "0"]]
    tool("--delete-offsets", "--group", topic, "--topic", f"{topic}:1")
    with fairlead_kafka.Admin({"bootstrap.servers": embedded}) as admin:
        assert admin.list_group_offsets([topic])[topic] == {
            fairlead_kafka.TopicPartition(topic, 0): fairlead_kafka.OffsetAndMetadata(0)
        }
        tool("--delete", "--group", topic)
        assert topic not in admin.list_groups()


def test_kafkas_reader_and_writer_of_group_records_agree_with_ours() -> None:
    lines = [
        f"{encode_groups_key(key).hex()} {encode_groups_value(key, value).hex()}" for key, value in SAMPLES
    ]
    source = Path(__file__).parents[1] / "support" / "GroupRecords.java"
    ran = subprocess.run(
        java_command(str(source), heap="128m"),
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found = [line.split(" ", 2) for line in ran.stdout.splitlines()]
    assert [f"{key} {value}" for key, value, _ in found] == lines
    assert {"epoch": 3, "metadataHash": -5} in [json.loads(told) for *_, told in found]
