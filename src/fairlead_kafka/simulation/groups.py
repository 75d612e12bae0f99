"""The groups of a world: their members through all their processes, the members' faults, and in the
end the check that each group has recovered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.simulation.former_members import FormerMembers
from fairlead_kafka.simulation.group_ledger import GroupLedger, Place
from fairlead_kafka.simulation.group_member import GroupMember, await_close
from fairlead_kafka.simulation.group_story import CLASSIC, GroupsStory, GroupStory, Happening
from fairlead_kafka.simulation.member import MemberProcess, Role
from fairlead_kafka.simulation.process import Stage
from fairlead_kafka.simulation.processor import Processor
from fairlead_kafka.simulation.real_cluster import RealCluster

CONVERGE_MS = 12_000.0
"""Milliseconds within which every partition has one owner who has read all of it, once all is
well."""
OUTPUT = "outputs"
OUTPUT_PARTITIONS = 2
REQUEST_TIMEOUT_MS = 400
MEMBER = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "fetch.max.wait.ms": 150,
    "request.timeout.ms": REQUEST_TIMEOUT_MS,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "socket.connection.setup.timeout.ms": 200,
}
"""Configs of every member."""


class Member(GroupMember[MemberProcess]):
    """One member of a group: a process, and after it another."""

    def __init__(self, groups: Groups, story: GroupStory, number: int, ledger: GroupLedger) -> None:
        super().__init__(groups.stage, groups.cluster, f"group {story.name}: member {number}", story.topics)
        self.story, self.ledger, self.seat, self.number = story, ledger, story.seats[number], number
        self._groups = groups
        self._protocol = story.protocols[0]

    def _new_process(self) -> MemberProcess:
        groups = self._groups
        kind = Processor if self.story.processes else MemberProcess
        role = Role(groups.next_process(), groups.new_rng(), self._config(), self.seat.habits, self.ledger)
        return kind(groups.stage, role, self._ended)

    def _config(self) -> dict[str, object]:
        story = self.story
        config: dict[str, object] = {
            **MEMBER,
            "bootstrap.servers": self._groups.cluster.bootstrap_servers,
            "group.id": story.name,
            "group.protocol": self._protocol,
            "isolation.level": "read_committed" if story.committed_only else "read_uncommitted",
            "max.poll.interval.ms": story.max_poll_ms,
        }
        if self._protocol == CLASSIC:
            config["session.timeout.ms"] = story.session_ms
            config["heartbeat.interval.ms"] = story.session_ms // 5
            config["partition.assignment.strategy"] = story.assignor
        if story.static:
            config["group.instance.id"] = f"{story.name}-{self.number}"
        return config

    def meet(self, happening: Happening) -> None:
        """Let one event of the member's story happen."""
        if happening.kind == "roll" and not self._calm:
            self._protocol = self.story.protocols[1]
        super().meet(happening)

    def calm(self) -> None:
        """Let nothing happen to the member any more: a process runs, with the protocol and the
        topics of the world's end."""
        last = self.story.protocols[1]
        rolls, self._protocol = self._protocol != last, last
        self._calm_down(restarts=rolls)


class Groups:
    """All groups of a world. `partitions`: topic → number of partitions, for topics they read."""

    def __init__(
        self,
        story: GroupsStory,
        stage: Stage,
        cluster: RealCluster,
        partitions: Mapping[str, int],
        rng: Random,
    ) -> None:
        self.stage, self.cluster = stage, cluster
        self.host, self.script, self._violated = stage
        self.ledgers: list[GroupLedger] = []
        self.members: list[Member] = []
        self._partitions = partitions
        self._rng = rng
        self._processes = 0
        addresses = [broker.address for broker in cluster.brokers]
        self.former_members = FormerMembers(stage.host, stage.script, addresses, self.new_rng())
        for group in story.groups:
            ledger = GroupLedger(group.name, group.topics, group.committed_only, REQUEST_TIMEOUT_MS)
            ledger.on_claimed = self.former_members.claimed
            if group.processes:
                ledger.output = f"{OUTPUT}-{group.name}"
            ledger.mixed = len(set(group.protocols)) > 1
            self.ledgers.append(ledger)
            self.members += [Member(self, group, number, ledger) for number in range(len(group.seats))]

    def begin(self) -> None:
        """Plan the joins of all members and what happens to them, from now on."""
        for member in self.members:
            member.plan(member.seat.joins_ms, member.seat.happenings)

    def new_rng(self) -> Random:
        """A random number generator for one process, seeded by the world's."""
        return Random(self._rng.getrandbits(64))

    def next_process(self) -> int:
        """The number of the next process."""
        self._processes += 1
        return self._processes

    def outputs(self) -> dict[str, int]:
        """The topics that members write to, with the number of partitions of each."""
        return {ledger.output: OUTPUT_PARTITIONS for ledger in self.ledgers if ledger.output is not None}

    def calm(self) -> None:
        """Let nothing happen to any member any more."""
        for member in self.members:
            member.calm()

    def converge(self) -> None:
        """Wait until each group has read its topics to the end, then have all members leave."""
        try:
            self.host.run_until(lambda: not self._unfinished(), CONVERGE_MS)
        except TimedOut:
            for what in self._unfinished():
                self._violated(f"{CONVERGE_MS:g} ms after all was well, {what}")
        for member in self.members:
            member.close()
        await_close(self.stage, self.members)

    def _unfinished(self) -> list[str]:
        """Texts that name the partitions not read to their end by one owner yet; empty: every
        partition is."""
        found = []
        for ledger in self.ledgers:
            members = [member for member in self.members if member.ledger is ledger]
            for topic in ledger.topics:
                for index in range(self._partitions[topic]):
                    found += self._wanting(ledger.group, members, (topic, index))
        return found

    def _wanting(self, group: str, members: Sequence[Member], place: Place) -> list[str]:
        owners = [
            member.process
            for member in members
            if member.process is not None and place in member.process.claims
        ]
        name = f"{place[0]}-{place[1]}"
        if len(owners) != 1:
            numbers = [process.number for process in owners]
            return [f"group {group}: {name} is with {len(owners)} members, processes {numbers}"]
        end, position = self._end(place), owners[0].position(place)
        if end is None or position < end:
            claim = owners[0].claims[place]
            return [f"group {group}: {claim}, is read up to {position} of {end}"]
        return []

    def _end(self, place: Place) -> int | None:
        image = self.cluster.controller.image.topics[place[0]]
        leader = image.partitions[place[1]].leader
        if leader < 0:
            return None
        log = self.cluster.brokers[leader].machine.logs.known(image.topic_id, place[1])
        return None if log is None else log.log_end
