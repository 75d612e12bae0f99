"""Brokers as the controller has to do with them, without files or network: each has its copy of the
metadata, replicas that are lists of numbered records, and the part of a leader or a follower."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead_kafka.broker.controller import ClusterImage, Controller
from fairlead_kafka.broker.controller.decisions import ProposedIsr
from fairlead_kafka.broker.controller.fold import apply
from fairlead_kafka.broker.controller.image import PartitionImage
from fairlead_kafka.broker.controller.log import decode_log

MIN_IN_SYNC = 2
"""`min.insync.replicas` of all topics of the model."""


class Entry(NamedTuple):
    """One record: the epoch of the leader that took it, and its number, which no other has."""

    leader_epoch: int
    number: int


class Fetched(NamedTuple):
    """What a leader knows of a follower: where its log ends, and the broker epoch of its life."""

    end: int
    broker_epoch: int


@dataclass
class Replica:
    """One broker's replica of a partition. `synced`: how many entries survive a power cut;
    `damaged`: it lost entries in one, and has not been level with a leader since."""

    entries: list[Entry] = field(default_factory=list)
    synced: int = 0
    high_watermark: int = 0
    damaged: bool = False

    def append(self, leader_epoch: int, number: int) -> None:
        """Take a record, as its leader."""
        self.entries.append(Entry(leader_epoch, number))

    def cut(self, length: int) -> None:
        """Remove the entries from offset `length` on."""
        del self.entries[length:]
        self.synced = min(self.synced, length)

    def lose_power(self) -> None:
        """Lose what is not on the disk."""
        if self.synced < len(self.entries):
            self.damaged = True
            self.cut(self.synced)
            self.high_watermark = min(self.high_watermark, self.synced)

    def numbers(self) -> set[int]:
        """The numbers of all its entries."""
        return {entry.number for entry in self.entries}


@dataclass
class Leading:
    """A leader's state for one partition: `start` is where its log ended as it began;
    `proposed` is what it asked of the controller and was not answered."""

    epoch: int
    start: int
    followers: dict[int, Fetched] = field(default_factory=dict)
    proposed: ProposedIsr | None = None


class ModelledBroker:
    """One broker. `running`: its process is there; `registered`: in this life too; `linked`: the
    controller's decisions reach it. `lines` are those that have come and were not looked at."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.running = self.registered = self.linked = False
        self.life = 0
        self.epoch = -1
        self.disk_works = True
        self.image = ClusterImage()
        self.replicas: dict[str, Replica] = {}
        """By topic id, in hex: all topics have one partition."""
        self.leads: dict[str, Leading] = {}
        self.lines: list[bytes] = []

    def begin(self) -> None:
        """Begin another life."""
        self.running, self.registered, self.disk_works = True, False, True
        self.life += 1
        self.epoch = -1

    def end(self, power_cut: bool) -> None:
        """End, with what is on the disk or with all that was written."""
        self.running = self.registered = self.linked = False
        self.leads.clear()
        if power_cut:
            for replica in self.replicas.values():
                replica.lose_power()

    def join(self, controller: Controller) -> None:
        """Begin to follow the controller, from a snapshot."""
        self.image, self.linked = ClusterImage(), True
        self.lines = [controller.snapshot()]
        self.take_lines()

    def take_lines(self, count: int | None = None) -> None:
        """Apply the metadata that has come, or its first `count` lines."""
        taken, self.lines = self.lines[:count], self.lines[len(self.lines[:count]) :]
        for line in taken:
            decisions, _ = decode_log(line)
            for record in (record for decision in decisions for record in decision):
                apply(self.image, record)
            self._follow_image()

    def partition(self, topic_id: str) -> PartitionImage:
        """The partition of a topic that this broker knows."""
        topic = self.image.topic_of_hex(topic_id)
        assert topic is not None
        return topic.partitions[0]

    def partitions(self) -> dict[str, PartitionImage]:
        """The partitions that this broker has a replica of, by topic id."""
        return {
            topic.topic_id.hex: topic.partitions[0]
            for topic in self.image.topics.values()
            if self.node_id in topic.partitions[0].replicas
        }

    def _follow_image(self) -> None:
        held = self.partitions()
        for topic_id in self.replicas.keys() - held.keys():
            del self.replicas[topic_id]
            self.leads.pop(topic_id, None)
        for topic_id, partition in held.items():
            replica = self.replicas.setdefault(topic_id, Replica())
            leading = self.leads.get(topic_id)
            if partition.leader != self.node_id:
                self.leads.pop(topic_id, None)
            elif leading is None or leading.epoch != partition.leader_epoch:
                self.leads[topic_id] = Leading(partition.leader_epoch, len(replica.entries))

    # --- Leader and follower

    def fetch(self, topic_id: str, leader: ModelledBroker, most: int) -> None:
        """Take up to `most` entries from a partition's leader, and cut off first what it does not
        have."""
        own, theirs = self.replicas[topic_id], leader.replicas[topic_id]
        both = zip(own.entries, theirs.entries, strict=False)
        same = next((at for at, (one, other) in enumerate(both) if one != other), None)
        own.cut(min(len(own.entries), len(theirs.entries)) if same is None else same)
        end = len(own.entries)
        own.entries += theirs.entries[end : end + most]
        own.high_watermark = min(len(own.entries), theirs.high_watermark)
        if len(own.entries) >= theirs.high_watermark:
            own.damaged = False
        leader.leads[topic_id].followers[self.node_id] = Fetched(len(own.entries), self.epoch)

    def acknowledged(self, topic_id: str) -> list[Entry]:
        """Move the high watermark of a partition that this broker leads; returns all entries that
        every replica in sync has, if that is more than before, and they are enough replicas."""
        leading, replica = self.leads[topic_id], self.replicas[topic_id]
        partition = self.partition(topic_id)
        if len(partition.isr) < MIN_IN_SYNC:
            return []
        needed = {*partition.isr, *(leading.proposed.isr if leading.proposed else ())} - {self.node_id}
        end = min(
            len(replica.entries), *(leading.followers[i].end if i in leading.followers else 0 for i in needed)
        )
        if end <= replica.high_watermark:
            return []
        replica.high_watermark = end
        return replica.entries[:end]

    def is_behind(self, topic_id: str, follower: int) -> bool:
        """True if a follower has not fetched all that this leader has."""
        fetched = self.leads[topic_id].followers.get(follower)
        return fetched is None or fetched.end < len(self.replicas[topic_id].entries)

    def may_come_into_sync(self, topic_id: str) -> list[int]:
        """Followers of a partition that its leader may propose (Kafka's
        `Partition.isFollowerInSync` and KIP-903)."""
        leading, partition = self.leads[topic_id], self.partition(topic_id)
        replica = self.replicas[topic_id]
        reached = max(replica.high_watermark, leading.start)
        return [
            follower
            for follower, (end, epoch) in leading.followers.items()
            if follower in partition.replicas
            and follower not in partition.isr
            and end >= reached
            and self.image.brokers[follower].eligible
            and self.image.brokers[follower].epoch == epoch
        ]

    def proposal(self, topic_id: str, isr: tuple[int, ...]) -> ProposedIsr:
        """Ask for these replicas in sync, in the lives that this leader knows of."""
        leading, partition = self.leads[topic_id], self.partition(topic_id)
        epochs = tuple(
            leading.followers[i].broker_epoch if i in leading.followers else self.image.brokers[i].epoch
            for i in isr
        )
        leading.proposed = ProposedIsr(topic_id, 0, leading.epoch, partition.partition_epoch, isr, epochs)
        return leading.proposed
