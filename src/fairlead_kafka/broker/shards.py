"""The partitions of an internal topic that a broker leads: each is read into a shard when the
broker becomes its leader, and dropped when it is leader no more.

    led ──read to its end──▶ loaded ──no longer led, another epoch, broker stops──▶ dropped
      └──a read failed──▶ begun again, a little later

A shard belongs to one topic id and leader epoch. A broker that loses a partition and gets it back
may learn of both at once, and records that others wrote in between are only in the log.
Reading begins once all that was in the log is replicated, for that is what will count: records of a
leader before this one, and of a shard before this one.

The contents of shards are defined by their owners: the group coordinator keeps offsets in them, the
transaction coordinator transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from fairlead_kafka.base.checks import same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER_EPOCH
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import Change, ClusterView, LeadersChanged, TopicCreated, TopicDeleted
from fairlead_kafka.broker.guard import Guard, Owner
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.broker.timers import Repeating, Timer
from fairlead_kafka.core.effects import Buffer

CHUNK_MAX_BYTES = 256 * 1024
"""Bytes of keys and values written as one batch: well below any topic's max.message.bytes
default."""
APPEND_ERRORS: dict[int, int] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Error of an append to a shard's log → error sent to a client (Kafka's
`TransactionStateManager.appendTransactionToLog`)."""
_LOAD_RETRY_MS = 1_000
"""Wait before a partition that could not be read is tried again."""


class Shard(Protocol):
    """The parts of a shard that `Shards` uses."""

    partition: int
    loaded: bool


AnyShard = TypeVar("AnyShard", bound=Shard)


class ShardHost(Protocol):
    """The parts of a broker that `Shards` uses."""

    node_id: int
    now_ns: int
    controller: ClusterView
    guard: Guard

    def call_at(self, deadline_ns: int, function: Callable[[], None], owner: Owner | None = None) -> Timer:
        """Run `function` at the deadline, in the name of `owner`."""

    def repeat(self, name: str, wait_ms: Callable[[], float], function: Callable[[], object]) -> Repeating:
        """Run `function` again and again, `wait_ms()` milliseconds after its last end."""

    def when_log_replicated(self, topic: str, partition: int, done: Callable[[int], None]) -> None:
        """Call done(0) once all that is in the partition's log is replicated, or done(error
        code)."""

    def read_internal(
        self, topic: str, partition: int, offset: int, done: Callable[[int, Sequence[Buffer], int], None]
    ) -> None:
        """Read batches; done(error_code, batches, next_offset)."""


class ShardKeeper(Protocol[AnyShard]):
    """The owner of the shards of one topic."""

    def new_shard(self, partition: int) -> AnyShard:
        """A new, empty shard, not loaded."""

    def replay(self, shard: AnyShard, batches: bytes, from_offset: int) -> None:
        """Apply batches of the partition's log to the shard, in order, from offset `from_offset`
        on."""

    def shard_loaded(self, shard: AnyShard) -> None:
        """Called when the log was read to its end."""

    def shard_dropped(self, shard: AnyShard) -> None:
        """Called when the partition is led elsewhere, or has no leader: clients that wait have to
        find another coordinator."""


class _ShardOwner(Generic[AnyShard]):
    __slots__ = ("_shard", "_shards")

    def __init__(self, shards: Shards[AnyShard], shard: AnyShard) -> None:
        self._shards = shards
        self._shard = shard

    def __str__(self) -> str:
        return f"{self._shards.topic}-{self._shard.partition}"

    def failed(self, _error: Exception) -> None:
        self._shards.restart(self._shard)


class Shards(Generic[AnyShard]):
    """The shards of one broker for one internal topic: the state of each partition that it leads,
    read from the log. `what` names that state, for errors."""

    def __init__(self, host: ShardHost, topic: str, what: str, keeper: ShardKeeper[AnyShard]) -> None:
        self._host = host
        self.topic = topic
        self._what = what
        self._keeper = keeper
        self._led: dict[int, AnyShard] = {}
        self._reigns: dict[int, tuple[UUID, int]] = {}
        """Topic id and leader epoch that each shard is of."""
        self._unsubscribe: Callable[[], None] = lambda: None

    def __iter__(self) -> Iterator[AnyShard]:
        return iter(list(self._led.values()))

    def loaded(self) -> list[AnyShard]:
        """Shards whose log was read to its end."""
        return [shard for shard in self._led.values() if shard.loaded]

    def start(self) -> None:
        """Begin to follow the controller, and read the shards of partitions that are led here."""
        self._unsubscribe = self._host.controller.subscribe(
            partial(self._host.guard.call, self, self._changed)
        )
        self._follow(fresh=False)

    def __str__(self) -> str:
        return f"the shards of {self.topic}"

    def failed(self, _error: Exception) -> None:
        """Called when following the controller raised: a little later, the shards are compared with
        the partitions that are led here."""
        self._host.call_at(self._host.now_ns + ms_to_ns(_LOAD_RETRY_MS), lambda: self._follow(fresh=False))

    def stop(self) -> None:
        """Stop following the controller, and drop all shards."""
        self._unsubscribe()
        for partition in list(self._led):
            self._drop(partition)

    def led(self, partition: int) -> AnyShard | None:
        """The shard of a partition; None if the partition is not led here."""
        return self._led.get(partition)

    def holds(self, shard: AnyShard) -> bool:
        """True as long as the shard is in use: neither dropped nor replaced."""
        return self._led.get(shard.partition) is shard

    def of(self, key: str) -> AnyShard:
        """The shard that keeps `key`. BrokerError: NOT_COORDINATOR, or COORDINATOR_LOAD_IN_PROGRESS
        while its log is being read."""
        topic = self._host.controller.image.topics.get(self.topic)
        shard = None if topic is None else self._led.get(home_partition(key, len(topic.partitions)))
        if shard is None:
            raise BrokerError(
                ErrorCode.NOT_COORDINATOR,
                f"{self._what} {key!r} is not at home on broker {self._host.node_id}",
            )
        if not shard.loaded:
            raise BrokerError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"what is known of {self._what} {key!r} is being read"
            )
        return shard

    def owner(self, shard: AnyShard) -> Owner:
        """Owner (`guard`) of work for a shard: if that raises, the shard's log is read again."""
        return _ShardOwner(self, shard)

    def restart(self, shard: AnyShard) -> None:
        """Forget a shard whose state is in doubt, and read its log again, a little later."""
        if self.holds(shard):
            self._drop(shard.partition)
            self._host.call_at(
                self._host.now_ns + ms_to_ns(_LOAD_RETRY_MS), lambda: self._follow(fresh=False)
            )

    def check(self) -> None:
        """Raise CheckFailed unless each shard is kept under its own partition, at the present
        leader epoch."""
        same(f"{self.topic}: partitions led", set(self._led), set(self._reigns))
        same(f"{self.topic}: shards", list(self._led), [shard.partition for shard in self._led.values()])

    def _changed(self, change: Change) -> None:
        """React to a change of the cluster, in a later step unless the topic is new: the controller
        may call within another broker's step, in which this broker's files must not be used."""
        if isinstance(change, TopicCreated) and change.topic.name == self.topic:
            self._follow(fresh=True)
        elif _concerns(change, self.topic):
            self._host.call_at(self._host.now_ns, lambda: self._follow(fresh=False))

    def _follow(self, fresh: bool) -> None:
        topic = self._host.controller.image.topics.get(self.topic)
        reigns: dict[int, tuple[UUID, int]] = {}
        if topic is not None:
            mine = (
                (number, one)
                for number, one in enumerate(topic.partitions)
                if one.leader == self._host.node_id
            )
            reigns = {number: (topic.topic_id, one.leader_epoch) for number, one in mine}
        for number in [number for number, reign in self._reigns.items() if reigns.get(number) != reign]:
            self._drop(number)
        for number in [number for number in reigns if number not in self._led]:
            shard = self._led[number] = self._keeper.new_shard(number)
            self._reigns[number] = reigns[number]
            if fresh:
                shard.loaded = True
            else:
                self._host.guard.call(self.owner(shard), self._load, shard)

    def _load(self, shard: AnyShard) -> None:
        """Read a shard's log, also the records that a shard before it wrote in the same leader
        epoch: they are answered once they are replicated, to the shard that is in use no more."""

        def replicated(error: int) -> None:
            if error:
                self._load_later(shard)
            elif self.holds(shard):
                self._read(shard, 0)

        self._host.when_log_replicated(self.topic, shard.partition, replicated)

    def _read(self, shard: AnyShard, offset: int) -> None:
        def read(error: int, batches: Sequence[Buffer], next_offset: int) -> None:
            if not self.holds(shard):
                return
            if error:
                self._load_later(shard)
            elif batches:
                self._keeper.replay(shard, b"".join(batches), offset)
                self._read(shard, next_offset)
            else:
                shard.loaded = True
                self._keeper.shard_loaded(shard)

        self._host.read_internal(self.topic, shard.partition, offset, read)

    def _load_later(self, shard: AnyShard) -> None:
        def again() -> None:
            if self.holds(shard):
                fresh = self._led[shard.partition] = self._keeper.new_shard(shard.partition)
                self._host.guard.call(self.owner(fresh), self._load, fresh)

        self._host.call_at(self._host.now_ns + ms_to_ns(_LOAD_RETRY_MS), again)

    def _drop(self, partition: int) -> None:
        shard = self._led.pop(partition, None)
        self._reigns.pop(partition, None)
        if shard is not None:
            self._keeper.shard_dropped(shard)


def _concerns(change: Change, topic: str) -> bool:
    if isinstance(change, LeadersChanged):
        return any(one.name == topic for one, _ in change.partitions)
    return isinstance(change, TopicDeleted) and change.topic.name == topic


def epoch_of(controller: ClusterView, topic: str, partition: int) -> int:
    """The leader epoch of a partition, which is its coordinator's epoch; -1 if there is no such
    partition."""
    image = controller.image.partition(topic, partition)
    return NO_LEADER_EPOCH if image is None else image.leader_epoch
