"""`lab rebalance`: a group under load whose members join, leave, die and are rolled one by one.

A writer sends a record to each partition twice a second. Each member is a process of its own, and
prints what it reads. All configs have their defaults, session time-outs and heartbeats too: a death
is detected after 45 seconds.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from fairlead_kafka import Admin, NewTopic, Producer
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.json_types import number_or_none, text_at
from fairlead_kafka.lab.apache_kafka import Unavailable, jars, java
from fairlead_kafka.lab.experiment import Row, Status, not_installed
from fairlead_kafka.lab.plotting import Bars, figure
from fairlead_kafka.lab.rebalance_figures import CALM_MS, ROLLED_MAX, Reading, figures, is_calm
from fairlead_kafka.lab.rebalance_virtual import run_virtual
from fairlead_kafka.lab.targets import target

SYSTEMS = ("fairlead", "confluent-kafka", "java")
PROTOCOLS: Mapping[str, Mapping[str, str]] = {
    "range": {"group.protocol": "classic", "partition.assignment.strategy": "range"},
    "cooperative": {"group.protocol": "classic", "partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}


class Size(NamedTuple):
    """Sizes of a run: the groups' numbers of members, and the partitions that they share."""

    members: tuple[int, ...]
    partitions: int


PROFILES: Mapping[str, Size] = {"quick": Size((3,), 200), "full": Size((3, 30), 1_000)}
EVENTS = ("join", "leave", "die", "roll")
_JAVA_ASSIGNORS = {"range": "RangeAssignor", "cooperative-sticky": "CooperativeStickyAssignor"}
_JAVA_MEMBER = Path(__file__).parent / "peers" / "GroupMember.java"
_WRITE_EVERY_S = 0.5
_PATIENCE_S = 180.0


class _Ended(FairleadError):
    """A member ended by itself."""


class _Member:
    """One member's process, and a thread that reads its output."""

    def __init__(self, number: int, command: Sequence[str], readings: list[Reading]) -> None:
        self.number = number
        self.reads = False
        self._errors: IO[bytes] = TemporaryFile()  # noqa: SIM115  # closed with the member
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        self._thread = threading.Thread(target=self._take, args=(readings,), daemon=True)
        self._thread.start()

    def _take(self, readings: list[Reading]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with suppress(ValueError):  # the last line of one that was killed may be cut
                readings.append(Reading.parse(self.number, line))
                self.reads = True

    def check(self) -> None:
        """_Ended, with its last words, if the process is gone."""
        if self._process.poll() is not None:
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().splitlines()
            raise _Ended(said[-1][:200] if said else "a member ended without a word")

    def end(self, number: signal.Signals) -> None:
        """Send a signal, and wait until the process is gone."""
        self._process.send_signal(number)
        self._process.wait()
        self._thread.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()


class _Group:
    """A group on one target, of one system and protocol."""

    def __init__(self, servers: str, system: str, protocol: str, topic: str, partitions: int) -> None:
        self._system, self._topic, self._partitions = system, topic, partitions
        self._config = {
            "bootstrap.servers": servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            **PROTOCOLS[protocol],
        }
        self.readings: list[Reading] = []
        self.members: list[_Member] = []
        self._count = 0

    def start(self) -> _Member:
        """Start a member."""
        self._count += 1
        member = _Member(self._count, self._command(), self.readings)
        self.members.append(member)
        return member

    def _command(self) -> list[str]:
        if self._system != "java":
            task = {"system": self._system, "topic": self._topic, "config": self._config}
            return [sys.executable, "-m", "fairlead_kafka.lab.peers.group_member", json.dumps(task)]
        config = dict(self._config)
        if (name := config.get("partition.assignment.strategy")) is not None:
            config["partition.assignment.strategy"] = (
                f"org.apache.kafka.clients.consumer.{_JAVA_ASSIGNORS[name]}"
            )
        options = ["-Xmx128m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        words = [f"{key}={value}" for key, value in config.items()]
        return [java(), *options, "-cp", f"{jars()}/*", str(_JAVA_MEMBER), self._topic, *words]

    def calm(self, since_ms: int) -> None:
        """Wait until the group is calm (`is_calm`). _Ended if a member ended by itself, or if that
        takes longer than `_PATIENCE_S` seconds."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            for member in self.members:
                member.check()
            now_ms = time.time_ns() // 1_000_000
            if now_ms - since_ms > CALM_MS and is_calm(self.readings, now_ms, self._partitions, CALM_MS):
                return
            if time.monotonic() > deadline:
                raise _Ended(f"not all partitions were read within {_PATIENCE_S:g} s")
            time.sleep(0.2)

    def event(self, name: str) -> None:
        """Make one event happen."""
        if name == "join":
            self._reading(self.start())
        elif name == "leave":
            self.members.pop(0).end(signal.SIGTERM)
        elif name == "die":
            self.members.pop(0).end(signal.SIGKILL)
        else:
            for _ in range(min(len(self.members), ROLLED_MAX)):
                self.members.pop(0).end(signal.SIGTERM)
                self._reading(self.start())

    def begin(self, count: int) -> None:
        """Start `count` members, and wait until all of them read."""
        for _ in range(count):
            self.start()
        for member in self.members:
            self._reading(member)
        self.calm(time.time_ns() // 1_000_000)

    def _reading(self, member: _Member) -> None:
        """Wait until a member reads. _Ended if it never does."""
        deadline = time.monotonic() + _PATIENCE_S
        while not member.reads:
            member.check()
            if time.monotonic() > deadline:
                raise _Ended(f"a member read nothing within {_PATIENCE_S:g} s")
            time.sleep(0.05)


@contextmanager
def _writing(servers: str, topic: str, partitions: int) -> Iterator[None]:
    """Context manager: write a record to each partition twice a second while the block runs."""
    over = threading.Event()

    def write() -> None:
        with Producer({"bootstrap.servers": servers}) as producer:
            while not over.wait(_WRITE_EVERY_S):
                for partition in range(partitions):
                    producer.send(topic, b"x", partition=partition)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run(
    status: Status,
    *,
    targets: Sequence[str],
    systems: Sequence[str],
    protocols: Sequence[str],
    events: Sequence[str],
    members: Sequence[int],
    partitions: int,
    clock: str = "real",
    seed: int = 1,
) -> list[Row]:
    """A row for each event, of each group. See `rebalance_figures.figures`.

    `clock` "virtual": members of ours on a cluster of ours, in virtual time (`rebalance_virtual`);
    `targets` and `systems` do not matter then.
    """
    if clock == "virtual":
        chosen = {name: PROTOCOLS[name] for name in protocols}
        return run_virtual(status, chosen, events, members, partitions, seed)
    rows: list[Row] = []
    for name in targets:
        try:
            with target(name) as servers:
                for count in members:
                    for system in systems:
                        for protocol in protocols:
                            status(f"{name}, {count} members of {system}, {protocol}")
                            head: Row = {
                                "target": name,
                                "system": system,
                                "protocol": protocol,
                                "members": count,
                                "partitions": partitions,
                            }
                            rows += [head | row for row in _group(servers, head, events, count, partitions)]
        except Unavailable as error:
            rows.append({"target": name, "skipped": str(error)})
    return rows


def _group(servers: str, head: Row, events: Sequence[str], count: int, partitions: int) -> list[Row]:
    """The rows of one group."""
    system, protocol = str(head["system"]), str(head["protocol"])
    reason = not_installed({"confluent-kafka": "confluent_kafka"}.get(system))
    if reason is not None:
        return [{"skipped": reason}]
    topic = f"rebalance-{system}-{protocol}-{count}"
    with Admin({"bootstrap.servers": servers}) as admin:
        admin.create_topics([NewTopic(topic, partitions=partitions, replication_factor=1)])
    group = _Group(servers, system, protocol, topic, partitions)
    rows: list[Row] = []
    try:
        with _writing(servers, topic, partitions):
            group.begin(count)
            for event in events:
                since_ms = time.time_ns() // 1_000_000
                group.event(event)
                group.calm(time.time_ns() // 1_000_000)
                rows.append({"event": event} | figures(group.readings, since_ms, time.time_ns() // 1_000_000))
    except _Ended as error:
        rows.append({"skipped": str(error)})
    finally:
        for member in group.members:
            member.end(signal.SIGKILL)
    return rows


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw, for each event a panel, the longest wait of partitions that stayed and the time until
    all is read again, by system and protocol."""
    panels = []
    for name, event in dict.fromkeys((text_at(row, "target"), text_at(row, "event")) for row in rows):
        shown = [row for row in rows if (row["target"], row["event"]) == (name, event)]
        groups = [f"{row['system']} {row['protocol']}, {row['members']} members" for row in shown]
        series = {
            "until all is read again": [number_or_none(row, "again_s") for row in shown],
            "longest wait of a partition that stayed": [
                None if (wait_ms := number_or_none(row, "kept_wait_ms")) is None else wait_ms / 1000
                for row in shown
            ],
        }
        panels.append(Bars(f"{event}, {name}", groups, series, "s"))
    figure(path, panels, title="A group under load: members join, leave, die, and are rolled")
