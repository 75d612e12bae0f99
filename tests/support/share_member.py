"""A member of a share group, of Kafka's own client, in a JVM of its own (see `ShareMember.java`)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from fairlead_kafka.lab.apache_kafka import jars, java

_SOURCE = Path(__file__).parent / "ShareMember.java"


class Got(NamedTuple):
    """A record as the member got it."""

    partition: int
    offset: int
    value: str
    deliveries: int


class ShareMember:
    """One member; a context manager. Without a way out of its own: a test's time limit is."""

    def __init__(self, servers: str, group: str, topic: str, **configs: str) -> None:
        command = [java(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{jars()}/*", str(_SOURCE)]
        command += [
            servers,
            group,
            topic,
            *(f"{name.replace('_', '.')}={value}" for name, value in configs.items()),
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> ShareMember:
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            if self._process.poll() is None:
                self.close()
        finally:
            self._process.kill()
            self._process.__exit__(None, None, None)

    def ask(self, line: str) -> dict[str, Any]:
        """Have a line of words done, and read the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the member has ended"
        told: dict[str, Any] = json.loads(answer)
        return told

    def poll(self, wait_ms: int = 500) -> list[Got]:
        """Records that come within `wait_ms`."""
        return [Got(*row) for row in self.ask(f"poll {wait_ms}")["records"]]

    def poll_until(self, count: int, polls: int = 60) -> list[Got]:
        """At least `count` records."""
        found: list[Got] = []
        for _ in range(polls):
            found += self.poll()
            if len(found) >= count:
                return found
        raise AssertionError(f"{len(found)} of {count} records came: {found}")

    def acknowledge(self, record: Got, kind: str) -> dict[str, Any]:
        """Acknowledge a record, in the next request."""
        return self.ask(f"ack {record.partition} {record.offset} {kind}")

    def commit(self) -> dict[str, Any]:
        """Have acknowledgements written; partition → error."""
        committed: dict[str, Any] = self.ask("commit")["committed"]
        return committed

    def close(self) -> None:
        """Leave the group."""
        assert self.ask("close") == {"closed": True}

    def kill(self) -> None:
        """End the member without a word to anybody."""
        self._process.kill()
        self._process.wait(60)
