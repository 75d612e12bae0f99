"""Apache Kafka's own Java producer, consumer and tools against our cluster."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from tests.support.java_tools import JavaTools

NewTopic = Callable[..., str]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_the_java_producer_is_read_back_whole(
    embedded: str, new_topic: NewTopic, tools: JavaTools, codec: str
) -> None:
    topic = new_topic(embedded, partitions=4)
    said = tools.run(
        "produce",
        "--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1",
        "--producer-props", f"bootstrap.servers={embedded}", "acks=all", f"compression.type={codec}",
    )  # fmt: skip
    assert "20000 records sent" in said
    partitions = [TopicPartition(topic, number) for number in range(4)]
    with fairlead_kafka.Consumer({"bootstrap.servers": embedded}) as consumer:
        assert sum(consumer.end_offsets(partitions).values()) == 20_000
        tables = [
            table
            for partition in partitions
            for table in consumer.read_range(partition, 0, consumer.end_offsets([partition])[partition])
        ]
    assert sum(table.num_rows for table in tables) == 20_000
    assert all(len(value) == 100 for table in tables for value in table["value"].to_pylist())


def test_the_java_consumer_with_a_group_reads_what_we_wrote_and_resumes(
    embedded: str, new_topic: NewTopic, tools: JavaTools
) -> None:
    topic = new_topic(embedded, partitions=4)
    for first, codec in enumerate(CODECS):
        with fairlead_kafka.Producer({"bootstrap.servers": embedded, "compression.type": codec}) as producer:
            for number in range(first, 1_000, len(CODECS)):
                producer.send(topic, b"value-%d" % number, key=b"key-%d" % number)
    arguments = (
        "--bootstrap-server",
        embedded,
        "--topic",
        topic,
        "--group",
        f"java-{topic}",
        "--from-beginning",
        "--timeout-ms",
        "100000",
    )
    first = tools.run("console-consume", *arguments, "--max-messages", "600")
    second = tools.run("console-consume", *arguments, "--max-messages", "400")
    assert sorted(re.findall(r"^value-\d+$", first + second, re.MULTILINE)) == sorted(
        f"value-{number}" for number in range(1_000)
    )


def test_javas_topic_command_creates_describes_and_deletes(embedded: str, tools: JavaTools) -> None:
    command = ("topics", "--bootstrap-server", embedded)
    tools.run(
        *command, "--create", "--topic", "from-java", "--partitions", "5", "--config", "retention.ms=60000"
    )
    described = tools.run(*command, "--describe", "--topic", "from-java")
    assert "PartitionCount: 5" in described
    assert "retention.ms=60000" in described
    tools.run(*command, "--alter", "--topic", "from-java", "--partitions", "6")
    assert "PartitionCount: 6" in tools.run(*command, "--describe", "--topic", "from-java")
    tools.run(*command, "--delete", "--topic", "from-java")
    assert "from-java" not in tools.run(*command, "--list").split()
