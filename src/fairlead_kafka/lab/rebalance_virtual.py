"""`lab rebalance --clock virtual`: groups of hundreds of members, without a process for each.

Members are Fairlead's real consumer machines and brokers its real brokers, on one virtual clock:
steps take no time, a message takes NETWORK_MS, and a seed gives the same figures on every run. So
the figures are the waits of the protocols: for heartbeats, time-outs and other members. Delays of a
busy machine are not included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.broker.controller import NewTopic
from fairlead_kafka.consumer import Chunk, decode_chunk
from fairlead_kafka.consumer.metrics import Recorder
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.rebalance_figures import (
    CALM_MS,
    PAUSE_MS,
    ROLLED_MAX,
    Reading,
    figures,
    is_calm,
    members_before,
)
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.application import Application
from fairlead_kafka.simulation.group_ledger import Claim, GroupLedger
from fairlead_kafka.simulation.member import Habits, MemberProcess, Role
from fairlead_kafka.simulation.process import Stage
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.script import Script

BROKERS = 3
NETWORK_MS = 0.2
"""Network latency one way, ms."""
WRITE_EVERY_MS = 500.0
PATIENCE_MS = 300_000.0
LOOK_MS = 200.0
"""Virtual milliseconds between two looks whether an event is over."""
JOIN_SPREAD_MS = 2_000.0
"""The first members join within so long."""
HABITS = Habits(poll_ms=500.0, work_ms=1.0, commit_share=0.02, waits_share=0.0, commits_when_revoked=True)
"""A program that polls without a pause, and commits now and then."""
TOPIC = "rebalance"


class _Member(MemberProcess):
    """A member that notes which records it was given when."""

    def __init__(self, stage: Stage, role: Role, group: _VirtualGroup) -> None:
        super().__init__(stage, role, lambda: group.ended(self))
        self._readings = group.readings
        self.reads = False

    def _given(self, chunks: Sequence[Chunk]) -> list[tuple[Claim, int, bytes]]:
        taken = super()._given(chunks)
        now_ms = self._host.now_ms()
        for chunk in chunks:
            if self._generations.get(chunk.partition) != chunk.generation:
                continue
            decoded = decode_chunk(chunk, check_crcs=False)
            offsets, timestamps = decoded.offsets, decoded.timestamps_ms
            if len(offsets):
                first, last, written_ms = int(offsets[0]), int(offsets[-1]), int(timestamps[0])
                number = chunk.partition.partition
                self._readings.append(Reading(self.number, now_ms, number, first, last, written_ms))
                self.reads = True
        return taken


class _Task(NamedTuple):
    """One group: `config` of its members beside what all members have."""

    config: dict[str, str]
    members: int
    partitions: int
    seed: int


class _VirtualGroup:
    """A cluster, a writer, and a group whose members come and go."""

    def __init__(self, task: _Task) -> None:
        self.readings: list[Reading] = []
        self.members: list[_Member] = []
        self._task = task
        self._rng = Random(task.seed)
        self.host = VirtualHost(latency_ms=NETWORK_MS, rng=self._new_rng())
        self._script = Script(self.host)
        self._cluster = RealCluster(self.host, BROKERS, {"default.replication.factor": 1}, self._new_rng)
        self._cluster.start()
        self._cluster.controller.create_topics([NewTopic(TOPIC, task.partitions, 1)])
        self._servers = self._cluster.bootstrap_servers
        self._writer = Application(
            self.host,
            {"bootstrap.servers": self._servers, "acks": "1", "enable.idempotence": False},
            self._new_rng(),
            lambda *_completed: None,
        )
        self._ledger = GroupLedger(TOPIC, [TOPIC], committed_only=False, request_timeout_ms=30_000)
        self._stage = Stage(self.host, self._script, self._violated)
        self._count = 0
        self._recorders: list[Recorder] = []
        """The recorders of all members that have ever been there."""
        self._write()

    def begin(self) -> None:
        """Have all members join, and wait until every partition is read. TimedOut if it never
        is."""
        for _ in range(self._task.members):
            self._script.after(self._rng.random() * JOIN_SPREAD_MS, self._join)
        self.host.advance(JOIN_SPREAD_MS)
        for member in self.members:
            self._await_reading(member)
        self._calm()

    def become(self, count: int) -> None:
        """Start or end members, until there are so many and the group is calm."""
        if len(self.members) == count:
            return
        while len(self.members) > count:
            self._leave()
        while len(self.members) < count:
            self._await_reading(self._start())
        self._calm()

    def event(self, name: str) -> Row:
        """The figures of one event, and how many heartbeats were answered until the group was calm
        again. TimedOut if it does not become so."""
        self.host.advance(self._rng.random() * PAUSE_MS)
        since_ms, heartbeats = self.host.now_ms(), self._heartbeats()
        if name == "join":
            self._await_reading(self._start())
        elif name == "leave":
            self._leave()
        elif name == "die":
            self.members.pop(0).kill()
        else:
            for _ in range(min(len(self.members), ROLLED_MAX)):
                self._leave()
                self._await_reading(self._start())
        self._calm()
        calm_s = (self.host.now_ms() - since_ms) / 1000
        row: Row = {"event": name} | figures(self.readings, since_ms, self.host.now_ms())
        row |= {"heartbeats": self._heartbeats() - heartbeats, "calm_s": calm_s}
        self._forget()
        return row

    def _heartbeats(self) -> int:
        return sum(recorder.whole.heartbeats for recorder in self._recorders)

    def ended(self, process: MemberProcess) -> None:
        """Forget a member that has ended."""
        self.members = [member for member in self.members if member is not process]

    def _start(self) -> _Member:
        self._count += 1
        config = {
            "bootstrap.servers": self._servers,
            "group.id": TOPIC,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **self._task.config,
        }
        role = Role(self._count, self._new_rng(), config, HABITS, self._ledger)
        member = _Member(self._stage, role, self)
        self.members.append(member)
        self._recorders.append(member.machine.recorder)
        member.begin([TOPIC])
        return member

    def _join(self) -> None:
        self._start()

    def _leave(self) -> None:
        member = self.members[0]
        member.close()
        self.host.run_until(lambda: member.ended, PATIENCE_MS)

    def _await_reading(self, member: _Member) -> None:
        self.host.run_until(lambda: member.reads or member.ended, PATIENCE_MS)

    def _calm(self) -> None:
        """Wait until the group is calm. TimedOut if it never is."""
        since_ms = self.host.now_ms()
        while True:
            self.host.advance(LOOK_MS)
            now_ms = self.host.now_ms()
            if now_ms - since_ms > CALM_MS and is_calm(self.readings, now_ms, self._task.partitions):
                return
            if now_ms - since_ms > PATIENCE_MS:
                raise TimedOut(f"not all partitions were read within {PATIENCE_MS / 1000:g} s")

    def _forget(self) -> None:
        """Forget all readings but the last of each partition: later events do not need them."""
        last = {one.partition: one for one in self.readings}
        self.readings[:] = sorted(last.values(), key=lambda one: one.read_ms)
        self._ledger.claims.clear()
        self._ledger.commits.clear()

    def _write(self) -> None:
        partitions = range(self._task.partitions)
        self._writer.submit(TOPIC, [b"x"] * len(partitions), partitions=list(partitions))
        self._script.after(WRITE_EVERY_MS, self._write)

    def _new_rng(self) -> Random:
        return Random(self._rng.getrandbits(64))

    def _violated(self, what: str) -> None:
        raise TimedOut(what)


def run_virtual(
    status: Status,
    protocols: Mapping[str, Mapping[str, str]],
    events: Sequence[str],
    members: Sequence[int],
    partitions: int,
    seed: int,
    rounds: int = 1,
) -> list[Row]:
    """A row for each event of each group; `protocols`: name → configs of its members."""
    rows: list[Row] = []
    for count in members:
        for protocol, config in protocols.items():
            status(f"virtual time: {count} members, {protocol}")
            head: Row = {
                "target": "fairlead",
                "clock": "virtual",
                "system": "fairlead",
                "protocol": protocol,
                "members": count,
                "partitions": partitions,
            }
            try:
                group = _VirtualGroup(_Task(dict(config), count, partitions, seed))
                group.begin()
                for number in range(rounds):
                    for event in events:
                        group.become(members_before(event, count))
                        rows.append(head | {"round": number + 1} | group.event(event))
            except TimedOut as error:
                rows.append(head | {"skipped": str(error)})
    return rows
