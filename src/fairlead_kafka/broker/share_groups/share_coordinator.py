"""The share coordinator of one broker (KIP-932): it keeps the states of share partitions for their
leaders, in the partitions of `__share_group_state` that are led here.

A state is written by the leader of the share partition. Of two brokers that write, the one with the
lesser leader epoch is fenced, and so is one whose state epoch is from before the group's offsets
were altered. State epochs only grow, also from one group of a name to the next, so a late request
of a group coordinator neither initializes nor deletes a newer state. A record is a snapshot of the
state, or an update since the last one; after
`share.coordinator.snapshot.update.records.per.snapshot` updates a snapshot is due. Records before
the snapshots of all share partitions are deleted from time to time; idle share partitions have
their snapshots written again, so that they do not prevent that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.controller import SHARE_STATE_TOPIC, Change, TopicDeleted
from fairlead_kafka.broker.guard import Task
from fairlead_kafka.broker.log import Logs, Partition
from fairlead_kafka.broker.purgatory import Purgatory
from fairlead_kafka.broker.replication import Replication
from fairlead_kafka.broker.shards import ShardHost, Shards
from fairlead_kafka.broker.share_groups.share_state import (
    NO_COUNT,
    NO_OFFSET,
    ShareKey,
    ShareState,
    StateEntry,
    StateUpdate,
    combined,
)
from fairlead_kafka.broker.share_groups.state_shard import StateLog, StateShard, replay
from fairlead_kafka.broker.share_groups.window import OFFSET_MAX, StateBatch
from fairlead_kafka.broker.timers import Repeating
from fairlead_kafka.records import RecordColumns

Stateful = Callable[[int, ShareState | None], None]
"""done(error code, state): what was asked for, once the log has committed what it rests on."""
Done = Callable[[int], None]
_NO_STATE = ShareState(0, NO_OFFSET)
ANY_EPOCH = -1
"""State epoch of a deletion that takes whatever state there is, as all of Kafka's do."""


class ShareCoordinatorHost(ShardHost, Protocol):
    """The parts of a broker that the share coordinator uses."""

    wall_ms: int
    settings: Settings
    logs: Logs
    purgatory: Purgatory
    replication: Replication

    def append_internal(
        self, topic: str, partition: int, columns: RecordColumns, done: Callable[[int, int], None]
    ) -> None:
        """Append records; done(error_code, base_offset) once they are replicated."""

    def log_of(self, topic: str, number: int) -> Partition | int:
        """A partition led here, by topic name, or the error code to answer."""


class ShareCoordinator:
    """The share coordinator: keeps the states of share partitions whose partition of
    `__share_group_state` is led here. Methods raise BrokerError with the code to answer."""

    def __init__(self, broker: ShareCoordinatorHost) -> None:
        self._broker = broker
        self.shards: Shards[StateShard] = Shards(broker, SHARE_STATE_TOPIC, "share partition", self)
        self._log = StateLog(broker.append_internal, self.shards.restart)
        self._tasks: list[Repeating] = []
        self._unsubscribe: Callable[[], None] = lambda: None

    # --- Which states are here

    def start(self) -> None:
        """Begin: read the states whose partition is led here."""
        self._unsubscribe = self._broker.controller.subscribe(
            self._broker.guard.bind(self._changed, Task("forgetting the share state of topics"))
        )
        self.shards.start()
        for name, key, function in (
            ("snapshots of share partitions", "cold.partition.snapshot.interval.ms", self._refresh),
            ("pruning of share state", "state.topic.prune.interval.ms", self._prune),
        ):
            wait_ms = partial(self._setting, key)
            self._tasks.append(self._broker.repeat(name, wait_ms, function))

    def _setting(self, key: str) -> float:
        return float(self._broker.settings.integer(f"share.coordinator.{key}"))

    def stop(self) -> None:
        """End: requests are answered so that brokers look for another coordinator."""
        self._unsubscribe()
        for task in self._tasks:
            task.cancel()
        self.shards.stop()

    def new_shard(self, partition: int) -> StateShard:
        """A new, empty shard for a partition of `__share_group_state`."""
        return StateShard(partition)

    def replay(self, shard: StateShard, batches: bytes, from_offset: int) -> None:
        """Apply batches of the log to the shard in memory, from offset `from_offset` on."""
        replay(shard, batches, from_offset)

    def shard_loaded(self, shard: StateShard) -> None:
        """Called when a shard's log was read: states of deleted topics are deleted."""
        topics = self._broker.controller.image.topics_by_id
        self._forget(shard, {key.topic_id for key in shard.states if key.topic_id not in topics})

    def shard_dropped(self, shard: StateShard) -> None:
        """Called when a shard's partition is led elsewhere. (Requests that wait for a write get the
        write's error.)"""

    def _changed(self, change: Change) -> None:
        if isinstance(change, TopicDeleted):
            for shard in self.shards:
                gone = {change.topic.topic_id}
                self._broker.call_at(
                    self._broker.now_ns, partial(self._forget, shard, gone), self.shards.owner(shard)
                )

    def _forget(self, shard: StateShard, topics: set[UUID]) -> None:
        if self.shards.holds(shard) and shard.loaded and topics:
            entries: list[StateEntry] = [(key, None) for key in shard.states if key.topic_id in topics]
            self._write_by_itself(shard, entries)

    # --- What leaders and group coordinators ask

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int, done: Done) -> None:
        """Begin a state at `start_offset` (-1: as the group's share.auto.offset.reset says). If
        there is a state of the same state epoch already, it stays as it is: the request is a
        repetition, whose first answer was lost. A caller that alters offsets uses a new state
        epoch. BrokerError FENCED_STATE_EPOCH if the present state has a later state epoch."""
        shard = self._shard(key)
        _check_start(start_offset)
        kept = shard.states.get(key)
        if kept is not None and 0 <= state_epoch < kept.state.state_epoch:
            raise BrokerError(
                ErrorCode.FENCED_STATE_EPOCH, f"{key} is at state epoch {kept.state.state_epoch}"
            )
        self._check_partition(key)
        if kept is not None and state_epoch == kept.state.state_epoch:
            self._begin(partial(self._log.when_committed, shard), done)
            return
        now_ms = self._broker.wall_ms
        snapshot = 0 if kept is None else kept.state.snapshot_epoch + 1
        leader_epoch = 0 if kept is None else kept.state.leader_epoch
        count = NO_COUNT if start_offset == NO_OFFSET else 0
        state = ShareState(state_epoch, start_offset, snapshot, leader_epoch, count, now_ms, now_ms)
        self._begin(partial(self._log.write, shard, [(key, state)]), done)

    def read(self, key: ShareKey, leader_epoch: int, done: Stateful) -> None:
        """Read a state for its new leader, which fences the one before; `leader_epoch` -1: the
        caller does not lead. BrokerError INVALID_REQUEST if there is no state, FENCED_LEADER_EPOCH
        for an older leader."""
        shard = self._shard(key)
        kept = shard.states.get(key)
        if kept is None:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, "Read operation on uninitialized share partition not allowed."
            )
        self._check_leader(key, kept.state, leader_epoch)
        self._check_partition(key)
        state = kept.state
        begin = partial(self._log.when_committed, shard)
        if leader_epoch not in (-1, state.leader_epoch):
            update = StateUpdate(state.snapshot_epoch, leader_epoch, state.start_offset, state.complete_count)
            begin = partial(self._log.write, shard, [self._record(key, shard, update)])
        self._begin(begin, lambda error: done(error, state))

    def write(self, key: ShareKey, state_epoch: int, update: StateUpdate, done: Done) -> None:
        """Write changes of a share partition's state, for its leader. BrokerError INVALID_REQUEST
        if there is no state, FENCED_LEADER_EPOCH or FENCED_STATE_EPOCH for an older epoch."""
        shard = self._shard(key)
        _check_update(update)
        kept = shard.states.get(key)
        if kept is None:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, "Write operation on uninitialized share partition not allowed."
            )
        self._check_leader(key, kept.state, update.leader_epoch)
        if 0 <= state_epoch < kept.state.state_epoch:
            raise BrokerError(
                ErrorCode.FENCED_STATE_EPOCH,
                "The share coordinator rejected the request because the share-group state epoch did not "
                "match.",
            )
        self._check_partition(key)
        clean = update._replace(
            snapshot_epoch=kept.state.snapshot_epoch, batches=combined(update.batches, update.start_offset)
        )
        self._begin(partial(self._log.write, shard, [self._record(key, shard, clean)]), done)

    def delete(self, key: ShareKey, state_epoch: int, done: Done) -> None:
        """Delete a state of `state_epoch` or an earlier one. It is no error if there is none, or
        one that was begun later: the request is late then, and its state is deleted already."""
        shard = self._shard(key)
        self._check_partition(key)
        kept = shard.states.get(key)
        if kept is not None and self._may_forget(kept.state, state_epoch):
            self._begin(partial(self._log.write, shard, [(key, None)]), done)
        else:
            self._begin(partial(self._log.when_committed, shard), done)

    @hook("share state: a deletion is not older than the state")
    def _may_forget(self, state: ShareState, state_epoch: int) -> bool:
        return state_epoch == ANY_EPOCH or state.state_epoch <= state_epoch

    def summary(self, key: ShareKey, done: Stateful) -> None:
        """Read a state without leading it; if there is none, one without offsets."""
        shard = self._shard(key)
        self._check_partition(key)
        kept = shard.states.get(key)
        state = _NO_STATE if kept is None else kept.state
        self._begin(partial(self._log.when_committed, shard), lambda error: done(error, state))

    def _shard(self, key: ShareKey) -> StateShard:
        if key.partition < 0:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")
        return self.shards.of(str(key))

    def _check_leader(self, key: ShareKey, state: ShareState, leader_epoch: int) -> None:
        if 0 <= leader_epoch < state.leader_epoch:
            raise BrokerError(
                ErrorCode.FENCED_LEADER_EPOCH,
                "The leader epoch in the request is older than the epoch on the broker.",
            )

    def _check_partition(self, key: ShareKey) -> None:
        topic = self._broker.controller.image.topics_by_id.get(key.topic_id)
        if topic is None or key.partition >= len(topic.partitions):
            raise BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
            )

    def _record(self, key: ShareKey, shard: StateShard, update: StateUpdate) -> StateEntry:
        """The record for an update of a state: the update, or a snapshot of the whole state if one
        is due."""
        kept = shard.states[key]
        limit = self._broker.settings["share.coordinator.snapshot.update.records.per.snapshot"]
        if kept.updates < limit:
            return key, update
        state = kept.state.updated(update)
        return key, state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=self._broker.wall_ms)

    def _begin(self, begin: Callable[[Done], None], done: Done) -> None:
        """Call `begin` with a function that calls `done` once: with COORDINATOR_NOT_AVAILABLE if
        `share.coordinator.write.timeout.ms` have passed first. The write may succeed all the same.
        If `begin` raises, `done` is not called."""
        timeout_ms = self._broker.settings["share.coordinator.write.timeout.ms"]
        late_ns = self._broker.now_ns + timeout_ms * 1_000_000
        timer = self._broker.call_at(late_ns, lambda: done(ErrorCode.COORDINATOR_NOT_AVAILABLE))

        def once(error: int) -> None:
            if timer.pending:
                timer.cancel()
                done(error)

        try:
            begin(once)
        except BaseException:
            timer.cancel()
            raise

    # --- What comes round

    def _refresh(self) -> None:
        """Write the snapshots of share partitions again that were not written for long."""
        age_ms = self._setting("cold.partition.snapshot.interval.ms")
        for shard in self.shards.loaded():
            if len(shard.states) < 2:  # one alone holds nobody up
                continue
            entries: list[StateEntry] = []
            for key, kept in shard.states.items():
                if self._broker.wall_ms - kept.state.written_ms >= age_ms:
                    state = kept.state._replace(
                        snapshot_epoch=kept.state.snapshot_epoch + 1, written_ms=self._broker.wall_ms
                    )
                    entries.append((key, state))
            self._write_by_itself(shard, entries)

    def _prune(self) -> None:
        """Delete the records that lie before the snapshots of all share partitions."""
        broker = self._broker
        for shard in self.shards.loaded():
            partition = broker.log_of(SHARE_STATE_TOPIC, shard.partition)
            if isinstance(partition, int):
                continue
            start = min(shard.needed_from(), partition.high_watermark)
            if start > partition.log_start:
                broker.logs.move_start(partition, start)
                broker.purgatory.advanced(partition)
                broker.replication.start_moved(partition)

    def _write_by_itself(self, shard: StateShard, entries: Sequence[StateEntry]) -> None:
        """Write entries that are no part of a request; if they cannot be appended, the regular task
        tries again."""
        for first in range(0, len(entries), _BATCH_ENTRIES):
            try:
                self._log.write(shard, entries[first : first + _BATCH_ENTRIES], lambda _error: None)
            except BrokerError:
                return

    def check(self) -> None:
        """Raise CheckFailed unless redundant state agrees."""
        self.shards.check()
        for shard in self.shards.loaded():
            shard.check()


_BATCH_ENTRIES = 100
"""Entries that are written as one batch, when the coordinator writes by itself."""


def _check_start(offset: int) -> None:
    """Raise BrokerError INVALID_REQUEST unless a state can begin at this offset; -1: not known
    yet."""
    if not NO_OFFSET <= offset <= OFFSET_MAX:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"{offset} is no start offset: it is from {NO_OFFSET} to {OFFSET_MAX}"
        )


def _check_update(update: StateUpdate) -> None:
    """Raise BrokerError INVALID_REQUEST unless an update is valid: once written, every later leader
    would read it."""
    _check_start(update.start_offset)
    if update.complete_count < NO_COUNT:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"{update.complete_count} is no number of complete deliveries"
        )
    for batch in update.batches:
        if not batch.sound:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"offsets {batch.first} to {batch.last} cannot be in state {batch.state} after "
                f"{batch.deliveries} deliveries",
            )


def batches_of(rows: Sequence[tuple[int, int, int, int]]) -> tuple[StateBatch, ...]:
    """State batches from rows of (first offset, last offset, state, deliveries)."""
    return tuple(StateBatch(*row) for row in rows)
