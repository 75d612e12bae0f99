"""The records of a share partition that are in flight: from its start offset to the last offset
that was ever acquired, each with its state, its lock and how often it was delivered.

    start ──── available | acquired | acknowledged | archived | ... ──── end

Neighbours with equal state are one `Run`. A change that is to be written (an acknowledgement, a
release) is a `Change`: its records have their new state at once, and no other request may change
them until it is written (`complete`), or has failed and is undone. The window begins with the first
record whose state is not final, and does not end with records that were never delivered, though
acquired (`not_delivered`). It reads no clock: times are arguments, and `next_deadline_ns` is the
next deadline.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.share_groups.states import (
    FINAL,
    TRANSITIONS,
    WRITTEN,
    RecordEvent,
    RecordState,
)

NO_DEADLINE_NS = 2**63 - 1
"""Deadline of a record that is not locked."""
NOBODY = ""
"""Member that a record is with which is not acquired."""
OFFSET_MAX = 2**63 - 2
"""Last offset that a record can have: the one behind it is an int64 too."""
DELIVERIES_MAX = 2**15 - 1
"""Deliveries that are counted: an int16 in requests and in the log."""


class StateBatch(NamedTuple):
    """Offsets `first` to `last` with one delivery state and number of deliveries, as the share
    coordinator keeps them."""

    first: int
    last: int
    state: int
    deliveries: int

    @property
    def sound(self) -> bool:
        """Whether there are such offsets, in a state that is written."""
        return (
            0 <= self.first <= self.last <= OFFSET_MAX
            and self.state in WRITTEN
            and 0 <= self.deliveries <= DELIVERIES_MAX
        )


class Acquired(NamedTuple):
    """Offsets `first` to `last` that a member has acquired, each delivered `deliveries` times, this
    one included."""

    first: int
    last: int
    deliveries: int


class Holding(NamedTuple):
    """State of the records of a run: delivered `deliveries` times, and locked for `member` until
    `deadline_ns` (monotonic)."""

    state: RecordState
    deliveries: int = 0
    member: str = NOBODY
    deadline_ns: int = NO_DEADLINE_NS


@dataclass(slots=True, eq=False)
class Change:
    """New states of records that wait to be written, as `batches`."""

    batches: list[StateBatch] = field(default_factory=list)
    completed: bool = False


@dataclass(slots=True)
class Run:
    """Neighbouring records with the same state. `before` is their state before `change`, which is
    being written."""

    first: int
    last: int
    now: Holding
    change: Change | None = None
    before: Holding | None = None

    @property
    def count(self) -> int:
        """Number of offsets in the run."""
        return self.last - self.first + 1

    @property
    def available(self) -> bool:
        """Whether the records of this run of offsets may be acquired."""
        return self.now.state is RecordState.AVAILABLE and self.change is None

    @property
    def final(self) -> bool:
        """Whether nothing more can happen to the run's records."""
        return self.now.state in FINAL and self.change is None


class Limits(NamedTuple):
    """Bounds of a window by the group's present configs: deliveries of a record, and records in
    flight."""

    deliveries: int
    """`share.delivery.count.limit`."""
    in_flight: int
    """`share.partition.max.record.locks`: offsets between start and end."""


class Wanted(NamedTuple):
    """The limits of a member's request to acquire records: about `max_records`, or, if `strict`, no
    more; acquired batches of about `batch_size` records; locks until `deadline_ns`."""

    member: str
    max_records: int
    batch_size: int
    strict: bool
    deadline_ns: int


class Window:
    """The records in flight of one share partition, with their delivery states."""

    def __init__(self, start: int, batches: Sequence[StateBatch] = ()) -> None:
        """`batches` are those that the share coordinator has, in order; offsets between them have
        no state yet, and are available. BrokerError UNKNOWN_SERVER_ERROR if the batches are no
        valid state."""
        self.start = start
        self._runs: list[Run] = []
        before = -1
        for batch in batches:
            if not batch.sound or batch.first <= before:
                raise BrokerError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"{batch} behind offset {before} is no state of records: set the group's offsets anew",
                )
            before = batch.last
            if batch.last < start:
                continue
            first = max(batch.first, start)
            if first > self.end + 1:
                self._runs.append(Run(self.end + 1, first - 1, Holding(RecordState.AVAILABLE)))
            self._runs.append(Run(first, batch.last, Holding(RecordState(batch.state), batch.deliveries)))
        self._tidy()

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __len__(self) -> int:
        """Number of offsets in flight."""
        return self.end - self.start + 1

    @property
    def end(self) -> int:
        """The last offset in flight; `start` - 1: none."""
        return self._runs[-1].last if self._runs else self.start - 1

    @property
    def next_fetch_offset(self) -> int:
        """The first offset that may be acquired."""
        return next((run.first for run in self._runs if run.available), self.end + 1)

    def may_acquire(self, limits: Limits) -> bool:
        """Whether there is an available record in flight, or room for more in flight."""
        return self.next_fetch_offset <= self.end or len(self) < limits.in_flight

    def fetch_limit(self, limits: Limits) -> int:
        """The offset before which records can be acquired; records from there on need not be
        read."""
        return max(self.end + 1, self.start + limits.in_flight)

    @property
    def next_deadline_ns(self) -> int:
        """Monotonic time, ns, at which the next lock ends; NO_DEADLINE_NS: there is none."""
        return min((run.now.deadline_ns for run in self._runs if run.change is None), default=NO_DEADLINE_NS)

    def complete_count(self, start: int | None = None) -> int:
        """Number of offsets from `start` on in a final state, also by changes that are being
        written (KIP-1226)."""
        low = self.start if start is None else start
        return sum(
            run.last - max(run.first, low) + 1
            for run in self._runs
            if run.now.state in FINAL and run.last >= low
        )

    # --- Acquiring

    def acquire(
        self, wanted: Wanted, sought: int, first: int, ends: Sequence[int], limits: Limits
    ) -> list[Acquired]:
        """Acquire available records from offset `first` on, where the log's next batch at `sought`
        or behind it begins; `ends` are the last offsets of the batches from there on, in order.

        Offsets between `sought` and `first` have no records, and are archived.
        """
        last = ends[-1]
        if sought < first:
            self._skip_before(sought, first)
            self._tidy()  # behind the start it takes no room
        acquired: list[Acquired] = []
        count = self._acquire_again(wanted, first, ends, acquired)
        room = min(wanted.max_records - count, limits.in_flight - len(self))
        fresh = max(first, self.end + 1)
        if room > 0 and fresh <= last:
            stop = min(last, fresh + room - 1)
            if not wanted.strict:
                stop = min(last, _whole(stop, ends))
            holding = Holding(RecordState.ACQUIRED, 1, wanted.member, wanted.deadline_ns)
            self._runs.append(Run(fresh, stop, holding))
            acquired += _cut(fresh, stop, ends, wanted.batch_size)
        self._tidy()
        return acquired

    def _acquire_again(
        self, wanted: Wanted, first: int, ends: Sequence[int], acquired: list[Acquired]
    ) -> int:
        """Acquire available records that were in flight before. Returns their number."""
        count = 0
        for run in self._between(first, min(ends[-1], self.end)):
            if count >= wanted.max_records:
                break
            if not run.available:
                continue
            stop = run.first + wanted.max_records - count - 1
            self._split((stop if wanted.strict else _whole(stop, ends)) + 1)
            run.now = Holding(
                _after(run, RecordEvent.ACQUIRE),
                min(run.now.deliveries + 1, DELIVERIES_MAX),
                wanted.member,
                wanted.deadline_ns,
            )
            acquired.append(Acquired(run.first, run.last, run.now.deliveries))
            count += run.count
        return count

    def _skip_before(self, sought: int, offset: int) -> None:
        """Archive offsets from `sought` to `offset` that are available, or were never in flight:
        the log has no records there."""
        for run in self._between(max(sought, self.start), min(offset - 1, self.end)):
            if run.available:
                run.now = Holding(_after(run, RecordEvent.SKIP), run.now.deliveries)
        if sought <= self.end + 1 < offset:
            self._runs.append(Run(self.end + 1, offset - 1, Holding(RecordState.ARCHIVED)))

    def not_delivered(self, member: str, unread: Sequence[Acquired]) -> None:
        """Take back what a member acquired and did not get, for it could not be read: unless its
        lock is over, it is as it was before. That is no delivery, and nothing is written for it."""
        for one in unread:
            for run in self._between(one.first, one.last):
                if run.change is None and run.now[:3] == (RecordState.ACQUIRED, one.deliveries, member):
                    run.now = Holding(_after(run, RecordEvent.UNREAD), one.deliveries - 1)
        self._tidy()

    # --- Changes that are written

    def acknowledge(
        self,
        member: str,
        batches: Sequence[tuple[int, int, Sequence[RecordEvent]]],
        limits: Limits,
        renewed_ns: int,
    ) -> Change:
        """Apply a member's acknowledgements: (first, last, one event or one for each offset). All
        of them or, with a BrokerError, none.

        Offsets before the start are ignored: it is too late for them. INVALID_RECORD_STATE for a
        record that is not locked for this member, INVALID_REQUEST for one that was never in flight
        or that is named twice. Locks that are renewed end at `renewed_ns`.
        """
        above: int | None = None
        for first, last, _events in batches:
            if above is not None and first <= above:
                raise BrokerError(
                    ErrorCode.INVALID_REQUEST,
                    f"Offset {first} was named before: batches must be in order and must not overlap.",
                )
            self._check_acknowledged(member, first, last)
            above = last
        change = Change()
        for first, last, events in batches:
            for low, high, event in _spans(first, last, events):
                for run in self._between(max(low, self.start), high):
                    if event is RecordEvent.RENEW:
                        run.now = run.now._replace(deadline_ns=renewed_ns)
                    else:
                        self._change(run, change, event, limits)
        self._write(change)
        return change

    def release(self, member: str, limits: Limits) -> Change:
        """Release all records that are locked for a member, which has left."""
        change = Change()
        for run in self._runs:
            if run.now.state is RecordState.ACQUIRED and run.now.member == member and run.change is None:
                self._change(run, change, RecordEvent.RELEASE, limits)
        self._write(change)
        return change

    def complete(self, change: Change, written: bool) -> None:
        """Called when a change was written, or (`written` False) could not be: then its records
        have their former states again."""
        for run in self._runs:
            if run.change is change:
                if not written:
                    assert run.before is not None
                    run.now = run.before
                run.change = run.before = None
        change.completed = True
        self._tidy()

    @hook("share groups: may this member acknowledge")
    def _check_acknowledged(self, member: str, first: int, last: int) -> None:
        if first <= last < self.start:
            return  # its time is up
        if not self._runs or last < first:
            raise BrokerError(
                ErrorCode.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        if last > self.end:
            which = "first" if first > self.end else "last"
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"Batch record not found. The {which} offset in request is past acquired records.",
            )
        for run in self._overlapping(max(first, self.start), last):
            if run.now.state is not RecordState.ACQUIRED or run.change is not None:
                raise BrokerError(
                    ErrorCode.INVALID_RECORD_STATE,
                    "The batch cannot be acknowledged. The batch is not in the acquired state.",
                )
            if run.now.member != member:
                raise BrokerError(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record")

    @hook("share groups: what is said of records is done")
    def _change(self, run: Run, change: Change, event: RecordEvent, limits: Limits) -> None:
        run.before, run.change = run.now, change
        run.now = Holding(self._given_back(run, event, limits), run.now.deliveries)

    def _given_back(self, run: Run, event: RecordEvent, limits: Limits) -> RecordState:
        """The state of a run after an event; records that were delivered as often as allowed do not
        become available again."""
        again = event in (RecordEvent.RELEASE, RecordEvent.LOCK_OVER)
        if again and run.now.deliveries >= limits.deliveries:
            event = RecordEvent.EXHAUST
        return _after(run, event)

    def _write(self, change: Change) -> None:
        """Collect the batches to be written of a change."""
        batches = change.batches
        for run in self._runs:
            if run.change is change:
                _join(batches, StateBatch(run.first, run.last, run.now.state, run.now.deliveries))
        self._tidy()

    # --- Time, and the log

    def expire(self, now_ns: int, limits: Limits) -> list[StateBatch]:
        """Release all records whose lock has ended. Returns the batches to be written for them. The
        release counts whether or not these are written: the member has lost the lock."""
        batches: list[StateBatch] = []
        for run in self._runs:
            if run.change is None and run.now.deadline_ns <= now_ns:
                run.now = Holding(self._given_back(run, RecordEvent.LOCK_OVER, limits), run.now.deliveries)
                _join(batches, StateBatch(run.first, run.last, run.now.state, run.now.deliveries))
        self._tidy()
        return batches

    def skip(self, first: int, last: int) -> None:
        """Archive those of the offsets `first` to `last` that are acquired: they have no records
        for readers (an aborted transaction's)."""
        for run in self._between(max(first, self.start), min(last, self.end)):
            if run.change is None and run.now.state not in FINAL:
                run.now = Holding(_after(run, RecordEvent.SKIP), run.now.deliveries)
        self._tidy()

    def move_start(self, offset: int) -> None:
        """Called when the log begins at `offset` now: earlier records are not in flight any
        more."""
        if offset <= self.start:
            return
        self._split(offset)
        self._runs = [run for run in self._runs if run.first >= offset]
        self.start = offset
        self._tidy()

    # --- Runs

    def _overlapping(self, first: int, last: int) -> Iterator[Run]:
        number = max(0, bisect_right(self._runs, first, key=_first_of) - 1)
        while number < len(self._runs) and self._runs[number].first <= last:
            if self._runs[number].last >= first:
                yield self._runs[number]
            number += 1

    def _between(self, first: int, last: int) -> Iterator[Run]:
        """The runs of exactly these offsets that are in flight; runs are split where `first` and
        `last` lie within one. Runs may be split further during the iteration."""
        first = max(first, self.start)
        if first > last:
            return
        self._split(first)
        self._split(last + 1)
        yield from self._overlapping(first, last)

    def _split(self, offset: int) -> None:
        """Split a run so that one begins at `offset`, if that is in flight."""
        number = bisect_right(self._runs, offset, key=_first_of) - 1
        if number < 0:
            return
        run = self._runs[number]
        if run.first < offset <= run.last:
            self._runs.insert(number + 1, replace(run, first=offset))
            run.last = offset - 1

    def _tidy(self) -> None:
        """Join neighbouring runs with equal states, move the start to the first offset that is not
        final, and forget those at the end that were never delivered."""
        runs: list[Run] = []
        for run in self._runs:
            if not runs and run.final:
                self.start = run.last + 1
            elif runs and _alike(runs[-1], run):
                runs[-1].last = run.last
            else:
                runs.append(run)
        while runs and runs[-1].available and not runs[-1].now.deliveries:
            runs.pop()
        self._runs = runs

    def check(self) -> None:
        """Raise CheckFailed unless runs follow each other from the start on, and their fields fit
        their states."""
        next_offset = self.start
        for number, run in enumerate(self._runs):
            what = f"offsets {run.first} to {run.last}, {run.now.state.name}"
            same(f"{what}: where they begin", run.first, next_offset)
            holds(f"{what}: are none", run.last >= run.first)
            next_offset = run.last + 1
            held = run.now.state is RecordState.ACQUIRED
            holds(f"{what}: with {run.now.member!r}", held == (run.now.member != NOBODY))
            holds(
                f"{what}: locked until {run.now.deadline_ns}", held == (run.now.deadline_ns != NO_DEADLINE_NS)
            )
            holds(f"{what}: change and what was before", (run.change is None) == (run.before is None))
            holds(f"{what}: a change that is settled", run.change is None or not run.change.completed)
            holds(f"{what}: final at the start", number > 0 or not run.final)
            holds(f"{what}: delivered {run.now.deliveries} times", run.now.deliveries > 0 or not held)
            if number:
                holds(f"{what}: like those before", not _alike(self._runs[number - 1], run))


def _first_of(run: Run) -> int:
    return run.first


def _after(run: Run, event: RecordEvent) -> RecordState:
    return TRANSITIONS[run.now.state, event]


def _alike(one: Run, other: Run) -> bool:
    return one.now == other.now and one.change is other.change and one.before == other.before


def _whole(stop: int, ends: Sequence[int]) -> int:
    """The last offset of the batch of the log that holds `stop`; `ends` are the last offsets of all
    batches that were read."""
    number = bisect_left(ends, stop)
    return ends[number] if number < len(ends) else stop


def _spans(first: int, last: int, events: Sequence[RecordEvent]) -> Iterator[tuple[int, int, RecordEvent]]:
    """(first, last, event) of offsets that come one after the other with the same event."""
    if len(events) == 1:
        yield first, last, events[0]
        return
    low = 0
    for index in range(1, len(events) + 1):
        if index == len(events) or events[index] is not events[low]:
            yield first + low, first + index - 1, events[low]
            low = index


def _join(batches: list[StateBatch], batch: StateBatch) -> None:
    """Append a batch to `batches`, joined with the last one if they are neighbours with the same
    state."""
    if batches and batches[-1].last + 1 == batch.first and batches[-1][2:] == batch[2:]:
        batches[-1] = batches[-1]._replace(last=batch.last)
    else:
        batches.append(batch)


def _cut(first: int, last: int, ends: Sequence[int], batch_size: int) -> Iterator[Acquired]:
    """Offsets `first` to `last`, acquired for the first time, in parts of `batch_size` and more,
    each of which ends where a batch of the log ends."""
    low = first
    for end in ends:
        if low <= end < last and end - low + 1 >= batch_size:
            yield Acquired(low, end, 1)
            low = end + 1
    yield Acquired(low, last, 1)
