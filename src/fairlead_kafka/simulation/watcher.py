"""Watches a world while it runs: reads as a consumer does, asks for end offsets, compares replicas,
and records what it read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fairlead_kafka.broker import BrokerState
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import scan
from fairlead_kafka.simulation.model_log import ModelLog
from fairlead_kafka.simulation.real_cluster import RealBroker, RealCluster
from fairlead_kafka.simulation.replica_logs import diverged
from fairlead_kafka.simulation.script import Script

PERIOD_MS = 60.0


class Seen(NamedTuple):
    """A batch that a consumer was given."""

    base_offset: int
    crc: int


class Watcher:
    """Looks at every partition of `topics` (name → partitions) every `PERIOD_MS` milliseconds, and
    reports at once what violates the promises.

    Every batch that the watcher was given must be in the log at the end (`forgotten`), under the
    same offset: that is what the high watermark means. `durable`: the topics that may have lost
    nothing by now; the others are left alone.
    """

    def __init__(
        self,
        script: Script,
        cluster: RealCluster,
        topics: Mapping[str, int],
        durable: Callable[[], Sequence[str]],
        violated: Callable[[str], None],
    ) -> None:
        self._durable = durable
        self._script = script
        self._cluster = cluster
        self._violated = violated
        self._places = [(name, index) for name, count in topics.items() for index in range(count)]
        self._seen: dict[tuple[str, int], list[Seen]] = {place: [] for place in self._places}
        self._position = dict.fromkeys(self._places, 0)
        self._marks: dict[tuple[str, int], tuple[object, int]] = {}
        """High watermarks by partition, with the start of the leader that had them."""
        self._reading: dict[tuple[str, int], object] = {}

    def begin(self) -> None:
        """Look at all partitions now, and every `PERIOD_MS` milliseconds from now on."""
        durable = self._durable()
        for topic, index in self._places:
            if topic in durable:
                self._look(topic, index)
        self._script.after(PERIOD_MS, self.begin)

    @property
    def read(self) -> int:
        """Number of batches that consumers were given."""
        return sum(len(seen) for seen in self._seen.values())

    def forgotten(self, log: ModelLog) -> list[str]:
        """Batches that consumers were given and `log` does not have, as texts."""
        found, durable = [], self._durable()
        for topic, index, partition in log.each():
            if topic not in durable:
                continue
            there = {batch.base_offset: batch.header.crc for batch in partition.batches}
            for seen in self._seen.get((topic, index), ()):
                if there.get(seen.base_offset) != seen.crc:
                    what = "nothing" if seen.base_offset not in there else "another batch"
                    found.append(
                        f"a consumer was given the batch at {seen.base_offset} of {topic}-{index}, where "
                        f"{what} is in the end"
                    )
        return found

    def _look(self, topic: str, index: int) -> None:
        image = self._cluster.controller.image.topics[topic]
        partition = image.partitions[index]
        if partition.leader < 0:
            return
        leader = self._cluster.brokers[partition.leader]
        log = leader.machine.logs.known(image.topic_id, index)
        if not self._serves(leader) or log is None:
            return
        place, position = (topic, index), self._position[topic, index]
        if log.log_end < position:
            self._violated(
                f"a consumer has read {topic}-{index} up to {position}, and its leader, broker "
                f"{leader.node_id}, ends at {log.log_end}"
            )
        life: object = (id(leader.machine), partition.leader_epoch)
        before = self._marks.get(place)
        if before is not None and before[0] == life and log.high_watermark < before[1]:
            self._violated(
                f"the high watermark of {topic}-{index} went from {before[1]} back to {log.high_watermark} "
                "on its leader"
            )
        self._marks[place] = (life, log.high_watermark)
        for node_id in partition.replicas:
            follower = self._cluster.brokers[node_id]
            own = follower.machine.logs.known(image.topic_id, index)
            if follower is leader or own is None or not self._serves(follower):
                continue
            offset = diverged(log, own)
            if offset is not None:
                marks = f"high watermarks {log.high_watermark} and {own.high_watermark}"
                who = f"broker {leader.node_id} and broker {node_id}"
                self._violated(f"{topic}-{index}: {who} have unlike batches at {offset}, below both {marks}")
        self._read(topic, index, leader)

    def _serves(self, broker: RealBroker) -> bool:
        return broker.running and broker.machine.state is BrokerState.RUNNING

    def _read(self, topic: str, index: int, leader: RealBroker) -> None:
        place = (topic, index)
        if self._reading.get(place) is leader.machine:
            return
        self._reading[place] = leader.machine

        def given(code: int, batches: Sequence[Buffer], after: int) -> None:
            self._reading.pop(place, None)
            if code:
                return
            for batch in batches:
                self._seen[place] += [Seen(header.base_offset, header.crc) for header in scan(batch)]
            self._position[place] = max(self._position[place], after)

        leader.machine.read_internal(topic, index, self._position[place], given)
        leader.machine.wake()
