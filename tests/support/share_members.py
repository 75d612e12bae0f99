"""Members of share groups, of Kafka's own client, several in one JVM (see `ShareMembers.java`)."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from fairlead_kafka.lab.apache_kafka import jars, java

_SOURCE = Path(__file__).parent / "ShareMembers.java"


class Got(NamedTuple):
    """A record as the member got it."""

    partition: int
    offset: int
    value: str
    deliveries: int


class ShareMembers:
    """One JVM, whose members do one thing at a time; a context manager. A member that does not come
    back is the test's time limit's business."""

    def __init__(self) -> None:
        command = [java(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{jars()}/*", str(_SOURCE)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._numbers = itertools.count()

    def member(self, servers: str, group: str, topic: str, **configs: str) -> ShareMember:
        """A new member of a group, which subscribes to a topic; further configs with `_` for
        `.`."""
        made = ShareMember(self, str(next(self._numbers)))
        settings = (f"{name.replace('_', '.')}={value}" for name, value in configs.items())
        assert made.ask(" ".join(("open", servers, group, topic, *settings))) == {"opened": True}
        return made

    def ask(self, line: str) -> dict[str, Any]:
        """Have a line of words done, and read the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the members have ended"
        told: dict[str, Any] = json.loads(answer)
        return told

    def kill(self) -> None:
        """End all members without a word to anybody."""
        self._process.kill()
        self._process.__exit__(None, None, None)

    def __enter__(self) -> ShareMembers:
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()


class ShareMember:
    """One member; a context manager, which leaves the group in the end."""

    def __init__(self, members: ShareMembers, name: str) -> None:
        self._members, self._name = members, name

    def __enter__(self) -> ShareMember:
        return self

    def __exit__(self, *_error: object) -> None:
        assert self.ask("close") == {"closed": True}

    def ask(self, words: str) -> dict[str, Any]:
        """Have the member do what the words say, and read the answer."""
        return self._members.ask(f"{self._name} {words}")

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
