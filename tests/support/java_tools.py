"""Kafka's own Java tools, several in one JVM (see `JavaTools.java`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlead_kafka.lab.apache_kafka import jars, java

_SOURCE = Path(__file__).parent / "JavaTools.java"
_CLASSES = {
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
    "quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
}
"""Name → main class."""


_PATIENCE_MS = (3_000, 20_000)
"""How long the console consumer waits for another record; longer where a slow machine had not begun
by then."""


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

    def run(self, tool: str, *arguments: str, status: int = 0) -> str:
        """What the tool printed; AssertionError if it ended with another status."""
        words = [_CLASSES[tool], *arguments]
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
    tools: JavaTools, servers: str, topic: str, formatter: str, wanted: Callable[[Any], bool]
) -> list[Any]:
    """What one of Kafka's formatters (in `org.apache.kafka.tools.consumer`) makes of the records of
    an internal topic: those `wanted`."""
    found: list[Any] = []
    for patience_ms in _PATIENCE_MS:
        said = tools.run(
            "console-consume", "--bootstrap-server", servers, "--topic", topic, "--from-beginning",
            "--timeout-ms", str(patience_ms),
            "--formatter", f"org.apache.kafka.tools.consumer.{formatter}",
        )  # fmt: skip
        said = said[max(said.find('{"key"'), 0) :]  # before them it may give advice
        rows = []
        while said.lstrip().startswith("{"):  # one object after another, without anything in between
            row, end = json.JSONDecoder().raw_decode(said := said.lstrip())
            rows.append(row)
            said = said[end:]
        found = [row for row in rows if wanted(row)]
        if found:
            break
    return found
