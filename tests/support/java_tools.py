"""Kafka's own Java tools, several in one JVM (see `JavaTools.java`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fairlead.lab.apache_kafka import jars, java

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
}
"""Name → main class."""


class JavaTools:
    """One JVM; a context manager. A tool that does not come back is the test's time limit's business."""

    def __init__(self) -> None:
        command = [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
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
