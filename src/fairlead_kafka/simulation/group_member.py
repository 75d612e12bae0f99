"""One member of a group of either kind through all its processes, and its faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.simulation.group_story import Happening
from fairlead_kafka.simulation.process import GroupProcess, Stage
from fairlead_kafka.simulation.real_cluster import RealCluster

CALM_PAUSE_MS = 50.0
"""Milliseconds between two processes of a member to which nothing happens."""
CLOSE_MS = 5_000.0
"""Milliseconds within which members that are closed have left."""
ProcessT = TypeVar("ProcessT", bound=GroupProcess)


class GroupMember(ABC, Generic[ProcessT]):
    """One member of a group: a process, and after its end another.

    `name`: how violations call it; `topics`: what it subscribes to, unless its story has others.
    """

    def __init__(self, stage: Stage, cluster: RealCluster, name: str, topics: Sequence[str]) -> None:
        self.name = name
        self.process: ProcessT | None = None
        self.gone = False
        """True once it has left for good."""
        self._stage, self._cluster = stage, cluster
        self._first_topics = self._topics = topics
        self._away_ms = CALM_PAUSE_MS
        self._calm = False

    @abstractmethod
    def _new_process(self) -> ProcessT:
        """A process that has not begun; it calls `_ended` when it has ended."""

    def plan(self, joins_ms: float, happenings: Sequence[Happening]) -> None:
        """Plan the first process, `joins_ms` from now, and everything that happens to the
        member."""
        self._stage.script.after(joins_ms, self.begin)
        for happening in happenings:
            self._stage.script.after(happening.at_ms, self.meet, happening)

    def begin(self) -> None:
        """Start a process, unless one runs."""
        if not self.gone and self.process is None:
            self.process = self._new_process()
            self.process.begin(self._topics)

    def _ended(self) -> None:
        self.process = None
        self._stage.script.after(CALM_PAUSE_MS if self._calm else self._away_ms, self.begin)
        self._away_ms = CALM_PAUSE_MS

    # What happens

    def meet(self, happening: Happening) -> None:
        """Let one event of the member's story happen."""
        if self._calm:
            return
        if happening.kind == "retire":
            self.gone = True
        if happening.kind == "subscribe":
            self._topics = happening.topics
        process = self.process
        if process is None:
            return
        self._away_ms = happening.ms
        match happening.kind:
            case "kill":
                process.kill()
            case "close" | "roll" | "retire":
                process.close()
            case "nap":
                process.nap(happening.ms)
            case "hang":
                process.handle.busy_until_ns = self._stage.host.now_ns() + ms_to_ns(happening.ms)
            case "subscribe":
                process.subscribe(self._topics)
            case "cut":
                self._cut(process, happening)

    def _cut(self, process: ProcessT, happening: Happening) -> None:
        """Cut a process off from a broker, or from all, for a while."""
        host = self._stage.host
        links = [
            host.link(process.handle, broker.handle)
            for broker in self._cluster.brokers
            if happening.broker in (-1, broker.node_id)
        ]
        for link in links:
            link.cut()

        def heal() -> None:
            for link in links:
                if happening.lost:
                    link.reset()  # TCP has given up: what was under way never arrives
                link.heal()

        self._stage.script.after(happening.ms, heal)

    # The end

    def calm(self) -> None:
        """Let nothing happen to the member any more: a process runs, with the topics of the world's
        end."""
        self._calm_down(restarts=False)

    def _calm_down(self, *, restarts: bool) -> None:
        """Let nothing happen to the member any more; `restarts`: the process that runs ends, for
        another to begin."""
        self._calm = True
        self._topics = self._first_topics
        process = self.process
        if process is None:
            self.begin()
        elif restarts:
            process.close()
        else:
            process.nap(0.0)
            process.subscribe(self._topics)

    def close(self) -> None:
        """Have the member's process commit what is left, leave the group, and end for good."""
        self.gone = True
        if self.process is not None:
            self.process.close()


def await_close(stage: Stage, members: Sequence[GroupMember[ProcessT]]) -> None:
    """Wait until members that were closed have left; a member that has not within `CLOSE_MS`
    milliseconds is a violation, and is killed."""
    try:
        stage.host.run_until(lambda: all(one.process is None for one in members), CLOSE_MS)
    except TimedOut:
        for member in members:
            if member.process is not None:
                stage.violated(f"{member.name} could not leave")
                member.process.kill()
        stage.host.advance(1.0)
