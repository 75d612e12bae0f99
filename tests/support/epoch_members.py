"""Members of KIP-848 groups of three makes: ours, librdkafka's and Kafka's own, with what each has
read."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka.lab.apache_kafka import java_command
from tests.support.group_clients import Member, member_config, poll_until

confluent_kafka = pytest.importorskip("confluent_kafka")

Place = tuple[int, int]
"""(partition, offset) of a record."""


class Ours(Member):
    """Our consumer."""

    def __init__(self, servers: str, group: str, topics: Any, **config: Any) -> None:
        topics = [topics] if isinstance(topics, str) else topics
        super().__init__(servers, group, topics, **{"group_protocol": "consumer", **config})

    @property
    def seen(self) -> list[Place]:
        """(Partition, offset) of each record that it has read."""
        return [(record.partition, record.offset) for record in self.records]

    def __str__(self) -> str:
        return f"ours: {super().__str__()}"


class Librdkafka:
    """confluent-kafka's consumer."""

    def __init__(self, servers: str, group: str, topic: str, **config: Any) -> None:
        self.seen: list[Place] = []
        self.consumer = confluent_kafka.Consumer(
            member_config(servers, group, {"group_protocol": "consumer", **config})
        )
        self.consumer.subscribe([topic])

    def poll(self) -> None:
        for message in self.consumer.consume(500, timeout=0.05):
            assert message.error() is None, message.error()
            self.seen.append((message.partition(), message.offset()))

    @property
    def partitions(self) -> list[int]:
        return sorted(one.partition for one in self.consumer.assignment())

    def close(self) -> None:
        self.consumer.close()

    def __str__(self) -> str:
        return f"librdkafka: partitions {self.partitions}, {len(self.seen)} records"


class Java:
    """Kafka's console consumer, in a process of its own."""

    def __init__(self, servers: str, group: str, topic: str, **config: Any) -> None:
        settings = {"group.protocol": "consumer", "auto.commit.interval.ms": 100}
        settings |= {key.replace("_", "."): value for key, value in config.items()}
        command = java_command(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            "--bootstrap-server", servers, "--topic", topic, "--group", group, "--from-beginning",
            "--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true",
            "--formatter-property", "print.value=false",
            *(word for key, value in settings.items() for word in ("--command-property", f"{key}={value}")),
            heap="128m",
        )  # fmt: skip
        self.seen: list[Place] = []
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            numbers = dict(part.split(":") for part in line.split())
            self.seen.append((int(numbers["Partition"]), int(numbers["Offset"])))

    def poll(self) -> None:
        """Nothing: it polls by itself."""

    def close(self) -> None:
        self._process.terminate()
        self._ended()

    def kill(self) -> None:
        self._process.kill()
        self._ended()

    def _ended(self) -> None:
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __str__(self) -> str:
        return f"java: {len(self.seen)} records"


def produce(servers: str, topic: str, partitions: int, count: int) -> None:
    """Write `count` records to each partition."""
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        for number in range(count * partitions):
            producer.send(topic, b"%d" % number, partition=number % partitions)


def read_by(members: Iterable[Any]) -> Counter[Place]:
    """How often each record was read."""
    return Counter(place for member in members for place in member.seen)


def shared(members: Sequence[Any], partitions: int) -> None:
    """Poll until the members read all partitions, each its part."""
    low, high = partitions // len(members), -(-partitions // len(members))
    poll_until(
        members,
        lambda: (
            sorted(number for one in members for number in one.partitions) == list(range(partitions))
            and all(low <= len(one.partitions) <= high for one in members)
        ),
    )
