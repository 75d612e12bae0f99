"""`lab rebalance`: a group under load whose members join, leave, die and are rolled one by one.

A writer sends a record to each partition twice a second. Each member is a process of its own, and
prints what it reads. All configs have their defaults, session time-outs and heartbeats too: a death
is detected after 45 seconds. An event comes at a random moment of the members' heartbeat intervals,
and finds as many members as it would in the first round.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, NamedTuple

from fairlead_kafka import Admin, NewTopic, Producer
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.json_types import number_at, text_at
from fairlead_kafka.lab.apache_kafka import Unavailable, jars, java
from fairlead_kafka.lab.experiment import Row, Status, not_installed
from fairlead_kafka.lab.plotting import Bars, figure
from fairlead_kafka.lab.rebalance_figures import (
    CALM_MS,
    PAUSE_MS,
    ROLLED_MAX,
    Reading,
    figures,
    is_calm,
    members_before,
)
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
_JAVA_COMPILER = ("-m", "jdk.compiler/com.sun.tools.javac.Main")
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


class _Cell(NamedTuple):
    """One group: where, of which clients, by which protocol, and how large."""

    target: str
    system: str
    protocol: str
    members: int
    partitions: int

    def head(self) -> Row:
        """The columns that all rows of this group begin with."""
        return dict(self._asdict())


class _Course(NamedTuple):
    """Events that each group goes through, `rounds` times over, at moments drawn from `seed`."""

    events: Sequence[str]
    rounds: int
    seed: int


class _Group:
    """The group of one cell. `classes`: folder of the compiled Java member."""

    def __init__(self, servers: str, cell: _Cell, classes: Path, rng: Random) -> None:
        self.topic = f"rebalance-{cell.system}-{cell.protocol}-{cell.members}"
        self._system, self._partitions = cell.system, cell.partitions
        self._classes, self._rng = classes, rng
        self._config = {
            "bootstrap.servers": servers,
            "group.id": self.topic,
            "auto.offset.reset": "earliest",
            **PROTOCOLS[cell.protocol],
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
            task = {"system": self._system, "topic": self.topic, "config": self._config}
            return [sys.executable, "-m", "fairlead_kafka.lab.peers.group_member", json.dumps(task)]
        config = dict(self._config)
        if (name := config.get("partition.assignment.strategy")) is not None:
            config["partition.assignment.strategy"] = (
                f"org.apache.kafka.clients.consumer.{_JAVA_ASSIGNORS[name]}"
            )
        options = ["-Xmx128m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        words = [f"{key}={value}" for key, value in config.items()]
        path = f"{self._classes}:{jars()}/*"
        return [java(), *options, "-cp", path, _JAVA_MEMBER.stem, self.topic, *words]

    def calm(self, since_ms: int) -> None:
        """Wait until the group is calm (`is_calm`). _Ended if a member ended by itself, or if that
        takes longer than `_PATIENCE_S` seconds."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            for member in self.members:
                member.check()
            now_ms = _now_ms()
            if now_ms - since_ms > CALM_MS and is_calm(self.readings, now_ms, self._partitions, CALM_MS):
                return
            if time.monotonic() > deadline:
                raise _Ended(f"not all partitions were read within {_PATIENCE_S:g} s")
            time.sleep(0.2)

    def become(self, count: int) -> None:
        """Start or end members, until there are so many and the group is calm."""
        if len(self.members) == count:
            return
        while len(self.members) > count:
            self.members.pop(0).end(signal.SIGTERM)
        for member in [self.start() for _ in range(count - len(self.members))]:
            self._reading(member)
        self.calm(_now_ms())

    def event(self, name: str) -> Row:
        """Make one event happen, and wait until the group is calm again: the event's figures."""
        time.sleep(self._rng.random() * PAUSE_MS / 1000)
        since_ms = _now_ms()
        self._happen(name)
        self.calm(_now_ms())
        return figures(self.readings, since_ms, _now_ms())

    def _happen(self, name: str) -> None:
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
    rounds: int = 1,
    at_once: bool = False,
) -> list[Row]:
    """A row for each event of each round, of each group. See `rebalance_figures.figures`.

    `clock` "virtual": members of ours on a cluster of ours, in virtual time (`rebalance_virtual`);
    `targets` and `systems` do not matter then. `at_once`: the groups of all systems at the same
    time, so that each has the same conditions, and deaths are waited for together.
    """
    if clock == "virtual":
        chosen = {name: PROTOCOLS[name] for name in protocols}
        return run_virtual(status, chosen, events, members, partitions, seed, rounds)
    rows: list[Row] = []
    course = _Course(events, rounds, seed)
    for name in targets:
        try:
            with target(name) as servers, _java_member("java" in systems) as classes:
                for count in members:
                    for protocol in protocols:
                        cells = [_Cell(name, system, protocol, count, partitions) for system in systems]
                        for cell in cells:
                            status(f"{name}, {count} members of {cell.system}, {protocol}")
                        with ThreadPoolExecutor(len(cells) if at_once else 1) as pool:
                            groups = pool.map(lambda cell: _group(servers, cell, course, classes), cells)
                            rows += [row for found in groups for row in found]
        except Unavailable as error:
            rows.append({"target": name, "skipped": str(error)})
    return rows


@contextmanager
def _java_member(needed: bool) -> Iterator[Path]:
    """The folder with the compiled Java member: compiled once, for a member of a group that is
    rolled is not to be waited for while it compiles. Raises Unavailable without a JDK."""
    with TemporaryDirectory(prefix="fairlead-rebalance-") as folder:
        if needed:
            path = ":".join(map(str, jars().glob("*.jar")))  # javac without its launcher knows no *
            command = [java(), *_JAVA_COMPILER, "-d", folder, "-cp", path, str(_JAVA_MEMBER)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Unavailable(f"javac: {done.stderr.strip()[-200:]}")
        yield Path(folder)


def _group(servers: str, cell: _Cell, course: _Course, classes: Path) -> list[Row]:
    """The rows of one group."""
    head = cell.head()
    reason = not_installed({"confluent-kafka": "confluent_kafka"}.get(cell.system))
    if reason is not None:
        return [head | {"skipped": reason}]
    group = _Group(servers, cell, classes, Random(course.seed))
    with Admin({"bootstrap.servers": servers}) as admin:
        admin.create_topics([NewTopic(group.topic, partitions=cell.partitions, replication_factor=1)])
    rows: list[Row] = []
    try:
        with _writing(servers, group.topic, cell.partitions):
            for number in range(course.rounds):
                for event in course.events:
                    group.become(members_before(event, cell.members))
                    rows.append(head | {"round": number + 1, "event": event} | group.event(event))
    except _Ended as error:
        rows.append(head | {"skipped": str(error)})
    finally:
        for member in group.members:
            member.end(signal.SIGKILL)
    return rows


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw, for each event a panel, the longest wait of partitions that stayed and the time until
    all is read again, by system and protocol; means of the rounds."""
    panels = []
    measured = [row for row in rows if "event" in row]
    for name, event in dict.fromkeys((text_at(row, "target"), text_at(row, "event")) for row in measured):
        groups: dict[str, list[Row]] = {}
        for row in measured:
            if (row["target"], row["event"]) == (name, event):
                label = f"{row['system']} {row['protocol']}, {row['members']} members"
                groups.setdefault(label, []).append(row)
        series = {
            "until all is read again": [_mean(rounds, "again_s") for rounds in groups.values()],
            "longest wait of a partition that stayed": [
                _mean(rounds, "kept_wait_ms") / 1000 for rounds in groups.values()
            ],
        }
        panels.append(Bars(f"{event}, {name}", list(groups), series, "s"))
    figure(path, panels, title="A group under load: members join, leave, die, and are rolled")


def _mean(rounds: Sequence[Row], key: str) -> float:
    return fmean(number_at(row, key) for row in rounds)
