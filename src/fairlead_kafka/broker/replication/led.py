"""A partition at its leader, for one leader epoch: its followers, their offsets, and the requests
that wait for them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Protocol

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.controller import PartitionImage, TopicImage
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.replication.rules import effective_min_isr, in_time, replicated_end
from fairlead_kafka.broker.replication.stream import Key

UNKNOWN_END = -1
"""End offset of a replica in sync that is not known yet in this leader epoch: nothing counts as
replicated to it."""

Replicated = Callable[[int], None]
"""Called once with an error code: 0, the high watermark has passed."""


class Waiting:
    """Those who wait until an offset is reached: callbacks by offset, each called once by who takes
    it, unless it is forgotten before."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, Replicated]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, offset: int, done: Replicated) -> None:
        """Have `done` taken once `offset` is reached."""
        insort(self._entries, (offset, done), key=_offset)

    def forget(self, offset: int, done: Replicated) -> None:
        """Forget `done`, whose request is answered; does nothing if it was taken."""
        entries, at = self._entries, bisect_left(self._entries, offset, key=_offset)
        while at < len(entries) and entries[at][0] == offset:
            if entries[at][1] is done:
                del entries[at]
                return
            at += 1

    def take(self, offset: int) -> list[Replicated]:
        """Take those that wait for `offset` or less, in the order of their offsets."""
        count = bisect_right(self._entries, offset, key=_offset)
        taken = [done for _offset, done in self._entries[:count]]
        del self._entries[:count]
        return taken

    def take_all(self) -> list[Replicated]:
        """Take all, whatever they wait for."""
        entries, self._entries = self._entries, []
        return [done for _offset, done in entries]

    def offsets(self) -> list[int]:
        """The offsets that are waited for, in order."""
        return [offset for offset, _done in self._entries]


class Proposal(Protocol):
    """A change of the replicas in sync that the controller was asked for."""

    @property
    def isr(self) -> tuple[int, ...]:
        """The replicas in sync that were proposed."""


class Stream(Protocol):
    """A follower broker's stream, as the partitions that are replicated over it need it
    (`feed`)."""

    def grown(self, led: Led) -> None:
        """Called when there is more in the log of a partition."""

    def mark_moved(self, led: Led) -> None:
        """Called when high watermark or log start of a partition moved."""

    def forget(self, key: Key) -> None:
        """Forget a partition: the follower's log is compared with the leader's again before it goes
        on."""


class Follower:
    """A remote replica that has met its leader in this leader epoch."""

    __slots__ = ("behind_since_ns", "broker_epoch", "end", "feed", "node_id", "sent", "start")

    def __init__(self, node_id: int, broker_epoch: int, feed: Stream, end: int) -> None:
        self.node_id = node_id
        self.broker_epoch = broker_epoch
        """Epoch of the follower's broker, which grows with each of its starts."""
        self.feed: Stream | None = feed
        """The stream it is fed by; None: that has ended."""
        self.end = end
        """Offset below which everything is written there."""
        self.sent = end
        """Offset below which everything was sent."""
        self.start = 0
        """Offset below which everything is deleted there."""
        self.behind_since_ns: int | None = None
        """Time until which the follower had everything, ns; None: it has."""


class Led:
    """One partition that this broker leads, in one leader epoch: its followers, and who waits for
    them. `image` is the controller's, and is replaced by newer ones."""

    __slots__ = (
        "deleting",
        "epoch",
        "epoch_start",
        "followers",
        "image",
        "key",
        "number",
        "partition",
        "proposal",
        "since_ns",
        "topic",
        "waiting",
    )

    def __init__(self, topic: TopicImage, number: int, key: Key, partition: Partition, now_ns: int) -> None:
        self.topic = topic
        self.number = number
        self.key = key
        self.partition = partition
        self.image: PartitionImage = topic.partitions[number]
        self.epoch = self.image.leader_epoch
        self.epoch_start = partition.log_end
        """Offset where this epoch's records begin. Before the high watermark has come here nobody
        can say where the partition ends (KIP-207)."""
        self.since_ns = now_ns
        self.followers: dict[int, Follower] = {}
        self.proposal: Proposal | None = None
        """At most one is under way (KIP-497)."""
        self.waiting = Waiting()
        """Those who wait for the high watermark."""
        self.deleting = Waiting()
        """Those who wait for the low watermark."""

    @property
    def min_isr(self) -> int:
        """`min.insync.replicas` as it holds for this partition: never more than it has replicas."""
        return effective_min_isr(self.partition.limits.min_insync_replicas, len(self.image.replicas))

    @property
    def below_min_isr(self) -> bool:
        """True if too few replicas are in sync to acknowledge anything to acks=all."""
        return len(self.image.isr) < self.min_isr

    def check_in_sync(self) -> None:
        """Raise BrokerError NOT_ENOUGH_REPLICAS if too few replicas are in sync for acks=all."""
        if self.below_min_isr:
            text = (
                f"{self.partition}: {len(self.image.isr)} replicas are in sync, and min.insync.replicas "
                f"asks for {self.min_isr}"
            )
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, text)

    @property
    def end_known(self) -> bool:
        """True once the high watermark has reached the offset at which this leader epoch began:
        until then acknowledged records may lie above it."""
        return self.partition.high_watermark >= self.former_end

    @property
    def former_end(self) -> int:
        """The log end offset before this leader epoch; lower if the disk failed to take the last
        records before it."""
        return min(self.epoch_start, self.partition.log_end)

    def maximal_isr(self) -> tuple[int, ...]:
        """The replicas in sync, and those that will be if the controller agrees to a proposal
        (KIP-497): the high watermark waits for all of them."""
        isr = self.image.isr
        return (
            isr
            if self.proposal is None
            else (*isr, *(node_id for node_id in self.proposal.isr if node_id not in isr))
        )

    @hook("replication: how far the high watermark may go")
    def reachable_mark(self, now_ns: int, lag_max_ns: int) -> int:
        """The high watermark that the replicas' log ends allow (Kafka's
        `Partition.maybeIncrementLeaderHW`); it never falls. It stays while fewer than
        `min.insync.replicas` are in sync (KIP-966), and waits for replicas that are about to catch
        up, which might otherwise never do so."""
        partition, followers, leader = self.partition, self.followers, self.image.leader
        if self.below_min_isr:
            return partition.high_watermark
        required = self.maximal_isr()
        ends = [
            followers[node_id].end if node_id in followers else UNKNOWN_END
            for node_id in required
            if node_id != leader
        ]
        if len(followers) >= len(required):  # at least one of them is out of sync
            ends += [
                follower.end
                for node_id, follower in followers.items()
                if node_id not in required
                and follower.feed is not None
                and in_time(follower.behind_since_ns, now_ns, lag_max_ns)
            ]
        return max(partition.high_watermark, replicated_end(partition.written_end, ends))

    def laggards(self, now_ns: int, lag_max_ns: int) -> list[int]:
        """The replicas in sync that have been behind for too long (Kafka's
        `Partition.getOutOfSyncReplicas`)."""
        found = []
        for node_id in self.image.isr:
            if node_id == self.image.leader:
                continue
            follower = self.followers.get(node_id)
            behind_since_ns = self.since_ns if follower is None else follower.behind_since_ns
            if not in_time(behind_since_ns, now_ns, lag_max_ns):
                found.append(node_id)
        return found

    def when_replicated(self, offset: int, done: Replicated) -> None:
        """Call done(0) once the high watermark has reached `offset`, perhaps at once; done(error)
        if this broker leads no more. Who does not wait so long takes it out of `waiting`."""
        if self.partition.high_watermark >= offset:
            done(self.replicated_code())
        else:
            self.waiting.add(offset, done)

    def replicated_code(self) -> int:
        """The error code to answer once the high watermark has passed a batch (Kafka's
        `Partition.checkEnoughReplicasReachOffset`)."""
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if self.below_min_isr else ErrorCode.NONE

    def check(self, now_ns: int) -> None:
        """Raise CheckFailed unless the high watermark is as high as the replicas' log ends allow,
        and all callbacks that it has passed were called."""
        partition, offsets = self.partition, self.waiting.offsets()
        same(f"{partition}: who waits for the high watermark", offsets, sorted(offsets))
        holds(
            f"{partition}: nobody waits for what is replicated",
            all(offset > partition.high_watermark for offset in offsets),
        )
        # Whom it waited for too long is for the next look to say, so nobody is too late here.
        same(f"{partition}: high watermark", partition.high_watermark, self.reachable_mark(now_ns, 1 << 62))
        for node_id, follower in self.followers.items():
            same(f"{partition}: a follower is entered as", node_id, follower.node_id)
            holds(
                f"{partition}: broker {node_id} has written no more than was sent to it",
                follower.end <= follower.sent,
            )


def _offset(waiting: tuple[int, Replicated]) -> int:
    return waiting[0]
