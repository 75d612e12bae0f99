"""Kafka's own Java tools, several in one JVM (see `JavaTools.java`)."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairlead_kafka
from fairlead_kafka.lab.apache_kafka import jars, java

_SOURCE = Path(__file__).parent / "JavaTools.java"
CLASSES = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "configs": "kafka.admin.ConfigCommand",
    "produce": "org.apache.kafka.tools.ProducerPerformance",
    "consume": "org.apache.kafka.tools.ConsumerPerformance",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "reassign": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "offsets": "org.apache.kafka.tools.GetOffsetShell",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "list-groups": "org.apache.kafka.tools.GroupsCommand",
    "acls": "org.apache.kafka.tools.AclCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "console-consume": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-produce": "org.apache.kafka.tools.ConsoleProducer",
    "console-share-consume": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "verifiable-produce": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consume": "org.apache.kafka.tools.VerifiableConsumer",
    "verifiable-share-consume": "org.apache.kafka.tools.VerifiableShareConsumer",
    "share-consume": "org.apache.kafka.tools.ShareConsumerPerformance",
    "latency": "org.apache.kafka.tools.EndToEndLatency",
    "copy-in-transactions": "org.apache.kafka.tools.TransactionalMessageCopier",
    "compatibility": "org.apache.kafka.tools.ClientCompatibilityTest",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "reset-streams": "org.apache.kafka.tools.StreamsResetter",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
}
"""Name → main class."""


_PATIENCE_MS = 20_000
"""How long the console consumer waits for another record, of which it is told how many there
are."""


class JavaTools:
    """One JVM; a context manager. A tool that does not come back is the test's time limit's
    business."""

    def __init__(self) -> None:
        command = [
            java(),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        ]
        command += ["-cp", f"{jars()}/*", str(_SOURCE)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, tool: str, *arguments: str, status: int = 0, reads: Path | None = None) -> str:
        """What the tool printed; AssertionError if it ended with another status. `reads`: the file
        that is its input."""
        words = ["" if reads is None else str(reads), CLASSES[tool], *arguments]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("".join(f"{word}\n" for word in (str(len(words)), *words)).encode())
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        assert answer, f"{tool} ended the whole process"
        said = self._process.stdout.read(int(answer[0])).decode()
        assert int(answer[1]) == status, f"{tool} {' '.join(arguments)} ended with {int(answer[1])}:\n{said}"
        return said

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> JavaTools:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def formatted(
    tools: JavaTools, servers: str, topic: str, formatter: str, of: str, wanted: Callable[[Any], bool]
) -> list[Any]:
    """What one of Kafka's formatters (in `org.apache.kafka.tools.consumer`) makes of the records of
    an internal topic: those `wanted`, in the partition whose keys name `of`, a group or a
    transactional id."""
    partition, count = _records_of(servers, topic, of.encode())
    said = tools.run(
        "console-consume", "--bootstrap-server", servers, "--topic", topic, "--partition", str(partition),
        "--offset", "earliest", "--max-messages", str(count), "--timeout-ms", str(_PATIENCE_MS),
        "--formatter", f"org.apache.kafka.tools.consumer.{formatter}",
    )  # fmt: skip
    said = said[max(said.find('{"key"'), 0) :]  # before them it may give advice
    rows = []
    while said.lstrip().startswith("{"):  # one object after another, without anything in between
        row, end = json.JSONDecoder().raw_decode(said := said.lstrip())
        rows.append(row)
        said = said[end:]
    return [row for row in rows if wanted(row)]


def _records_of(servers: str, topic: str, name: bytes) -> tuple[int, int]:
    """The partition that has records whose keys hold a name, and how many records it has in all."""
    with fairlead_kafka.Consumer({"bootstrap.servers": servers, "auto.offset.reset": "earliest"}) as consumer:
        partitions = [
            fairlead_kafka.TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)
        ]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        counts, found = Counter[int](), set[int]()
        while any(consumer.position(each) < end for each, end in ends.items()):
            records = consumer.poll(1)
            counts.update(record.partition for record in records)
            found.update(record.partition for record in records if name in (record.key or b""))
    (partition,) = found
    return partition, counts[partition]
