"""A window of records in flight does what a dictionary of single records does, whatever members
do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.share_groups import Acquired, RecordEvent, RecordState, Wanted, Window
from fairlead_kafka.broker.share_groups.states import FINAL
from fairlead_kafka.broker.share_groups.window import Change, Limits

LIMITS = Limits(deliveries=3, in_flight=12)
BATCH = 4
LOG_END = 40


@dataclass(frozen=True)
class One:
    """One record, as the model keeps it."""

    state: RecordState = RecordState.AVAILABLE
    deliveries: int = 0
    member: str = ""
    deadline: int = 0


class Model:
    """Records one by one; offsets that are in no dictionary were never in flight."""

    def __init__(self) -> None:
        self.records: dict[int, One] = {}
        self.start = 0
        self.pending: dict[int, tuple[object, One]] = {}

    def tidy(self) -> None:
        while (
            self.start in self.records
            and self.start not in self.pending
            and self.records[self.start].state in FINAL
        ):
            del self.records[self.start]
            self.start += 1
        while self.records and max(self.records) not in self.pending:
            if self.records[max(self.records)] != One():
                break
            del self.records[max(self.records)]

    def given_back(self, one: One) -> One:
        state = RecordState.ARCHIVED if one.deliveries >= LIMITS.deliveries else RecordState.AVAILABLE
        return One(state, one.deliveries)

    def after(self, one: One, event: RecordEvent) -> One:
        if event is RecordEvent.RELEASE:
            return self.given_back(one)
        state = RecordState.ACKNOWLEDGED if event is RecordEvent.ACCEPT else RecordState.ARCHIVED
        return One(state, one.deliveries)

    def not_delivered(self, member: str, unread: list[Acquired]) -> None:
        for batch in unread:
            for offset in range(batch.first, batch.last + 1):
                one = self.records.get(offset, One())
                holds = (one.state, one.member, one.deliveries) == (
                    RecordState.ACQUIRED,
                    member,
                    batch.deliveries,
                )
                if holds and offset not in self.pending:
                    self.records[offset] = One(RecordState.AVAILABLE, one.deliveries - 1)

    def allowed(self, member: str, first: int, last: int) -> bool:
        offsets = range(max(first, self.start), last + 1)
        return bool(offsets) and all(
            offset in self.records
            and offset not in self.pending
            and self.records[offset].state is RecordState.ACQUIRED
            and self.records[offset].member == member
            for offset in offsets
        )


EVENTS = st.sampled_from([RecordEvent.ACCEPT, RecordEvent.RELEASE, RecordEvent.REJECT, RecordEvent.SKIP])
STEPS = st.one_of(
    st.tuples(st.just("acquire"), st.sampled_from("ab"), st.integers(1, 9), st.booleans()),
    st.tuples(st.just("acknowledge"), st.sampled_from("ab"), st.integers(0, 20), st.integers(0, 6), EVENTS),
    st.tuples(st.just("complete"), st.booleans()),
    st.tuples(st.just("time"), st.integers(1, 8)),
    st.tuples(st.just("leave"), st.sampled_from("ab")),
    st.tuples(st.just("unread"), st.integers(0, 3)),
)


def same(window: Window, model: Model) -> None:
    """Both have the same records."""
    window.check()
    model.tidy()
    found = {
        offset: One(
            run.now.state, run.now.deliveries, run.now.member, run.now.deadline_ns if run.now.member else 0
        )
        for run in window
        for offset in range(run.first, run.last + 1)
    }
    assert (window.start, found) == (model.start, model.records)
    free = [
        offset
        for offset, one in model.records.items()
        if one.state is RecordState.AVAILABLE and offset not in model.pending
    ]
    assert window.next_fetch_offset == min(free, default=model.start + len(model.records))


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_a_window_is_its_records_one_by_one(steps: list[tuple[object, ...]]) -> None:
    window, model, now = Window(0), Model(), 0
    changes: list[Change] = []
    reading: list[tuple[str, list[Acquired]]] = []
    for step in steps:
        match step:
            case "acquire", str(member), int(most), bool(strict):
                reading.append((member, acquire(window, model, Wanted(member, most, BATCH, strict, now + 5))))
            case "unread", int(number) if number < len(reading):
                member, unread = reading.pop(-1 - number)
                window.not_delivered(member, unread)
                model.not_delivered(member, unread)
            case "acknowledge", str(member), int(ahead), int(more), RecordEvent() as event:
                first = model.start + ahead
                allowed = model.allowed(member, first, first + more)
                try:
                    change = window.acknowledge(member, [(first, first + more, [event])], LIMITS, 0)
                except BrokerError:
                    assert not allowed
                    continue
                assert allowed
                begin(model, change, range(first, first + more + 1), event)
                changes.append(change)
            case "complete", bool(written) if changes:
                change = changes.pop(0)
                window.complete(change, written)
                for offset in [offset for offset, (of, _) in model.pending.items() if of is change]:
                    before = model.pending.pop(offset)[1]
                    if not written:
                        model.records[offset] = before
            case "time", int(passed):
                now += passed
                window.expire(now, LIMITS)
                for offset, one in model.records.items():
                    if one.state is RecordState.ACQUIRED and one.deadline <= now:
                        model.records[offset] = model.given_back(one)
            case "leave", str(member):
                held = [offset for offset, one in model.records.items() if one.member == member]
                change = window.release(member, LIMITS)
                begin(model, change, held, RecordEvent.RELEASE)
                changes.append(change)
        same(window, model)


def begin(model: Model, change: Change, offsets: range | list[int], event: RecordEvent) -> None:
    """Note a change of records that is being written."""
    written = [offset for batch in change.batches for offset in range(batch.first, batch.last + 1)]
    assert written == [offset for offset in offsets if offset in model.records]
    for offset in written:
        model.pending[offset] = (change, model.records[offset])
        model.records[offset] = model.after(model.records[offset], event)


def acquire(window: Window, model: Model, wanted: Wanted) -> list[Acquired]:
    """Acquire from a log of batches of four records."""
    if not window.may_acquire(LIMITS):
        free = [
            one
            for offset, one in model.records.items()
            if one.state is RecordState.AVAILABLE and offset not in model.pending
        ]
        assert not free
        assert len(model.records) >= LIMITS.in_flight
        return []
    sought = window.next_fetch_offset
    ends = [end for end in range(BATCH - 1, LOG_END, BATCH) if end >= sought]
    if not ends:
        return []
    batches = window.acquire(wanted, sought, sought, ends, LIMITS)
    got = [(offset, batch.deliveries) for batch in batches for offset in range(batch.first, batch.last + 1)]
    most = wanted.max_records if wanted.strict else wanted.max_records + BATCH - 1
    assert len(got) <= most
    for offset, deliveries in got:
        before = model.records.get(offset, One())
        assert before.state is RecordState.AVAILABLE
        assert offset not in model.pending
        assert deliveries == before.deliveries + 1
        model.records[offset] = replace(
            before,
            state=RecordState.ACQUIRED,
            deliveries=deliveries,
            member=wanted.member,
            deadline=wanted.deadline_ns,
        )
    assert got, "there was something to acquire"
    assert len(model.records) < LIMITS.in_flight + BATCH
    return batches
