"""One share partition at its leader: its window of records in flight, written to the share
coordinator and read from it.

    Empty ──first request──▶ Initializing ──state read──▶ Active ──another leader──▶ Fenced
                                  └──could not be read──▶ Failed: the next request makes another one

One write is under way at a time; acknowledgements that come meanwhile are in the next, so that the
coordinator gets writes in order, and one write serves many acknowledgements. An acknowledgement is
answered when its write is committed.

One read is under way at a time as well: sessions that begin and end while the state is read find
the same share partition, and a fenced share partition sends no more requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.guard import Guard
from fairlead_kafka.broker.log import Logs, Partition
from fairlead_kafka.broker.log.by_time import TimedRecord
from fairlead_kafka.broker.replication import Replication
from fairlead_kafka.broker.share_groups.persister import Question, StatePersister
from fairlead_kafka.broker.share_groups.share_state import (
    NO_OFFSET,
    ShareKey,
    ShareState,
    StateUpdate,
    combined,
)
from fairlead_kafka.broker.share_groups.states import (
    PARTITION_TRANSITIONS,
    RecordEvent,
    SharePartitionState,
)
from fairlead_kafka.broker.share_groups.window import (
    NO_DEADLINE_NS,
    Acquired,
    Change,
    Limits,
    StateBatch,
    Wanted,
    Window,
)
from fairlead_kafka.broker.timers import Timer, TimerHost

_logger = GuardedLogger("fairlead_kafka.broker")

Done = Callable[[int], None]
"""done(error code) is called once."""
_BY_DURATION = "by_duration:"


class ShareSettings(NamedTuple):
    """Configs of a share group, as they are now."""

    lock_ms: int
    limits: Limits
    offset_reset: str
    committed: bool
    """`share.isolation.level` is read_committed."""
    renews: bool


class SharePartitionHost(TimerHost, Protocol):
    """The parts of a broker that a share partition uses."""

    wall_ms: int
    guard: Guard
    logs: Logs
    replication: Replication


class _Waiting(NamedTuple):
    """A change that waits to be written."""

    change: Change
    done: Done


class SharePartition:
    """One group's part of a partition that is led here, in one leader epoch.

    `became_available` is called when more records may be acquired, `fenced` when this object is not
    to be used any more.
    """

    def __init__(
        self,
        host: SharePartitionHost,
        persister: StatePersister,
        key: ShareKey,
        partition: Partition,
        leader_epoch: int,
        settings: Callable[[], ShareSettings],
    ) -> None:
        self._host = host
        self._persister = persister
        self.key = key
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.settings = settings
        self.state = SharePartitionState.EMPTY
        self.window = Window(0)
        self.state_epoch = 0
        self.became_available: Callable[[], None] = lambda: None
        self.fenced: Callable[[int], None] = lambda _error: None
        self._initialized: list[Done] = []
        self._reading: Question | None = None
        self._writing: list[_Waiting] = []
        self._releasing: list[StateBatch] = []
        """Records whose locks were over, as they are being written."""
        self._queue: list[_Waiting] = []
        self._released: list[StateBatch] = []
        """Records whose locks are over, to be written with the next change: if that fails, with the
        one after it."""
        self._unused = False
        self._timer: Timer | None = None

    def __str__(self) -> str:
        return f"share partition {self.key.group_id}:{self.partition}"

    @property
    def active(self) -> bool:
        """Whether records of the share partition are delivered."""
        return self.state is SharePartitionState.ACTIVE

    def _enter(self, state: SharePartitionState) -> None:
        if state not in PARTITION_TRANSITIONS[self.state]:
            raise AssertionError(f"{self}: {self.state.value} cannot become {state.value}")
        self.state = state

    # --- Beginning and end

    def initialize(self, done: Done) -> None:
        """Have the state read from the share coordinator, unless it was. `done` is called once
        records are delivered, or with the error code for which they are not."""
        if self.active:
            done(ErrorCode.NONE)
            return
        self._initialized.append(self._host.guard.bind(done))
        if self.state is SharePartitionState.EMPTY:
            self._enter(SharePartitionState.INITIALIZING)
            # In its own name: whichever request came first, all wait for it.
            self._host.guard.call(self, self._begin_reading)

    def _begin_reading(self) -> None:
        self._reading = self._persister.read(self.key, self.leader_epoch, self._read)

    def failed(self, _error: Exception) -> None:
        """Called when reading or writing its state raised: callers that wait are refused, and the
        next request makes another share partition, with the state that was written."""
        writing, self._writing = self._writing, []
        self.fence(ErrorCode.UNKNOWN_SERVER_ERROR)
        for one in writing:
            one.done(ErrorCode.UNKNOWN_SERVER_ERROR)

    @hook("share groups: a new leader takes up the state that there was")
    def _read(self, error: int, state: ShareState | None) -> None:
        if self.state is not SharePartitionState.INITIALIZING:
            return
        if error or state is None:
            self._fail(error or ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self.state_epoch = state.state_epoch
        if state.start_offset != NO_OFFSET:
            self._begin(state.start_offset, state.batches)
            return
        reset = self.settings().offset_reset.lower()
        if reset == "earliest":
            self._begin(self.partition.log_start, ())
        elif reset.startswith(_BY_DURATION):
            since_ms = self._host.wall_ms - duration_ms(reset.removeprefix(_BY_DURATION))
            self._when_end_is_known(lambda end: self._begin_at(since_ms, end))
        else:
            self._when_end_is_known(lambda end: self._begin(end, ()))

    def _when_end_is_known(self, then: Callable[[int], None]) -> None:
        led = self._host.replication.led(self.partition)
        if led is None:
            self._fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif led.end_known:
            then(self.partition.high_watermark)
        else:
            self._fail(ErrorCode.LEADER_NOT_AVAILABLE)

    def _begin_at(self, timestamp_ms: int, end: int) -> None:
        def found(error: int, record: TimedRecord | None) -> None:
            if self.state is not SharePartitionState.INITIALIZING:
                return
            if error:
                self._fail(error)
            else:
                self._begin(end if record is None else record.offset, ())

        self._host.logs.first_at(self.partition, timestamp_ms, end, found)

    def _begin(self, start: int, batches: Sequence[StateBatch]) -> None:
        try:
            self.window = Window(start, batches)
        except BrokerError as error:
            _logger.error("%s: its state cannot be used: %s", self, error)
            self._fail(error.code)
            return
        self.window.move_start(self.partition.log_start)
        self._enter(SharePartitionState.ACTIVE)
        self._answer_waiting(ErrorCode.NONE)
        self._drop_if_unused()

    def _fail(self, error: int) -> None:
        self._enter(SharePartitionState.FAILED)
        self.fence(error)

    def fence(self, error: int) -> None:
        """Stop delivering records: callers that wait get `error`."""
        if self.state is SharePartitionState.FENCED:
            return
        self._enter(SharePartitionState.FENCED)
        if self._timer is not None:
            self._timer.cancel()
        if self._reading is not None:
            self._reading.cancel()
        self.fenced(_client_error(error))
        queue, self._queue = self._queue, []
        self._answer_waiting(_client_error(error))
        for one in queue:
            one.done(_client_error(error))

    def _answer_waiting(self, error: int) -> None:
        waiting, self._initialized = self._initialized, []
        for done in waiting:
            done(error)

    def use(self) -> None:
        """Called when a session fetches from the share partition."""
        self._unused = False

    def drop_when_written(self) -> None:
        """Called when its group has no session here any more: fence this share partition once
        neither a read nor a write of its state is under way, unless `use` is called before. A new
        object for the same leader epoch must not write before these writes have ended, nor read
        beside this one."""
        self._unused = True
        if self.state is SharePartitionState.INITIALIZING:
            self._answer_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._drop_if_unused()

    def _drop_if_unused(self) -> None:
        reading = self.state is SharePartitionState.INITIALIZING
        if self._unused and not reading and not self._writing and not self._queue:
            self.fence(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # --- Records

    def next_fetch_offset(self) -> int:
        """The first offset that may be acquired, at or behind the log start."""
        self.window.move_start(self.partition.log_start)
        return self.window.next_fetch_offset

    @hook("share groups: records are acquired")
    def acquire(self, wanted: Wanted, sought: int, first: int, ends: Sequence[int]) -> list[Acquired]:
        """Acquire records for a member; see `Window.acquire`."""
        acquired = self.window.acquire(wanted, sought, first, ends, self.settings().limits)
        self._watch_locks()
        return acquired

    def not_delivered(self, member: str, unread: Sequence[Acquired]) -> None:
        """Take back records that could not be read for a member; see `Window.not_delivered`. The
        next fetch reads them again: each request that waits is woken at most once, for it is
        answered, also with the error."""
        if self.active:
            self.window.not_delivered(member, unread)
            self.became_available()

    def acknowledge(
        self, member: str, batches: Sequence[tuple[int, int, Sequence[RecordEvent]]], done: Done
    ) -> None:
        """Apply a member's acknowledgements; done(error code) once they are written. BrokerError:
        see `Window.acknowledge`."""
        settings = self.settings()
        if not settings.renews and any(RecordEvent.RENEW in events for _, _, events in batches):
            raise BrokerError(
                ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group."
            )
        renewed_ns = self._host.now_ns + ms_to_ns(settings.lock_ms)
        self._write_later(self.window.acknowledge(member, batches, settings.limits, renewed_ns), done)

    def release(self, member: str, done: Done) -> None:
        """Release the records that a member, which has left, has acquired; done(error code) once
        that is written."""
        if self.active:
            self._write_later(self.window.release(member, self.settings().limits), done)
        else:
            done(ErrorCode.NONE)

    def skip(self, first: int, last: int) -> None:
        """Archive offsets that hold no records for readers; see `Window.skip`."""
        self.window.skip(first, last)

    # --- Writing

    def _write_later(self, change: Change, done: Done) -> None:
        self._watch_locks()
        if not change.batches:
            done(ErrorCode.NONE)
            return
        self._queue.append(_Waiting(change, self._host.guard.bind(done)))
        self._write()

    def _write(self) -> None:
        if self._writing or not (self._queue or self._released) or not self.active:
            return
        self._writing, self._queue = self._queue, []
        self._releasing, self._released = self._released, []
        batches = [*self._releasing, *(batch for one in self._writing for batch in one.change.batches)]
        start = self.window.start
        update = StateUpdate(0, self.leader_epoch, start, self.window.complete_count(), tuple(batches))
        if not self._writing:
            self._writing = [_Waiting(Change(), lambda _error: None)]
        # In its own name: whichever request began it, the write serves others as well.
        self._host.guard.call(self, self._persister.write, self.key, self.state_epoch, update, self._written)

    def _written(self, error: int) -> None:
        fenced = self.state is SharePartitionState.FENCED
        if not fenced:
            self._complete(error)
        # Until here those that wait are known to `failed`.
        writing, self._writing, self._releasing = self._writing, [], []
        for one in writing:
            one.done(_client_error(error))
        if not fenced and self.active:
            self._watch_locks()
            if self._queue or not error:
                self._write()
            self.became_available()
            self._drop_if_unused()

    def _complete(self, error: int) -> None:
        """Note in the window that what is being written is, or is not."""
        for one in self._writing:
            self.window.complete(one.change, not error)
        if error:
            _logger.warning("%s: its state was not written (error %d)", self, error)
            self._released = list(combined([*self._releasing, *self._released], self.window.start))
        if error in _FENCING:
            self.fence(error)

    # --- Locks

    def _watch_locks(self) -> None:
        deadline_ns = self.window.next_deadline_ns
        timer = self._timer
        if deadline_ns == NO_DEADLINE_NS:
            return
        if timer is None or not timer.pending or timer.deadline_ns > deadline_ns:
            if timer is not None:
                timer.cancel()
            self._timer = self._host.call_at(deadline_ns, self._locks_over)

    @hook("share groups: locks may be over")
    def _locks_over(self) -> None:
        if not self.active:
            return
        batches = self.window.expire(self._host.now_ns, self.settings().limits)
        self._watch_locks()
        if batches:
            self._released += batches
            self._write()
            self.became_available()

    def check(self) -> None:
        """Raise CheckFailed unless the window of an active share partition passes its check."""
        if self.active:
            self.window.check()


_FENCING = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    }
)
"""Errors of a write after which another leader, or nobody, has the state."""


def _client_error(error: int) -> int:
    return _CLIENT_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)


_CLIENT_ERRORS: dict[int, int] = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.LEADER_NOT_AVAILABLE: ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Error of reading or writing a state → error sent to members (Kafka's
`SharePartition.fetchPersisterError`); any other is UNKNOWN_SERVER_ERROR."""
_DURATION = re.compile(r"p(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:([\d.]+)s)?)?", re.IGNORECASE)


def duration_ms(text: str) -> int:
    """The milliseconds in a duration of ISO 8601 (PnDTnHnMn.nS)."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise AssertionError(f"{text!r} was taken as a duration")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return int(((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000)
