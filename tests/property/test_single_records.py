"""Single records by machine code and by Python: the same columns, rows, callbacks, counts and
errors, whatever is sent."""

from __future__ import annotations

import gc
import weakref
from threading import Lock, Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.base.errors import FairleadError, UsageError
from fairlead_kafka.base.kernel import MACHINE_CODE
from fairlead_kafka.client import intake as intake_module
from fairlead_kafka.client import single_records
from fairlead_kafka.client.delivery import LOGGER
from fairlead_kafka.client.handles import Ack
from fairlead_kafka.client.intake import CHUNK_MAX_BYTES, Intake
from fairlead_kafka.client.memory import MemoryPool, Place
from fairlead_kafka.client.single_records import (
    NO_ROOM,
    PythonByteCounter,
    PythonRecordBuffer,
    PythonSingleSend,
)
from fairlead_kafka.producer import Submission

pytestmark = pytest.mark.skipif(not MACHINE_CODE, reason="there is no machine code to compare with")

TOTAL_BYTES = 600_000
VALUES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.integers(0, 90_000).map(bytes),
    st.just(bytearray(b"mutable")),
    st.just("text"),
)
KEYS = st.one_of(st.none(), st.binary(max_size=12))
NUMBERS = st.one_of(
    st.none(),
    st.integers(-2, 5),
    st.sampled_from([2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**70)]),
    st.just(True),
)
HEADERS = st.one_of(
    st.none(),
    st.lists(st.tuples(st.text(max_size=3), st.binary(max_size=3)), max_size=2),
    st.just([("a", 1)]),
)
CALLBACKS = st.sampled_from([None, print, repr])
TOPICS = st.sampled_from(["one", "two", "", None])
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "key": KEYS,
        "headers": HEADERS,
        "partition": NUMBERS,
        "timestamp_ms": NUMBERS,
        "on_delivery": CALLBACKS,
    },
)
SENT = st.tuples(st.just("send"), st.tuples(TOPICS, VALUES), OPTIONS)
ODD = st.tuples(
    st.just("send"),
    st.just(()),
    st.sampled_from([{}, {"topic": "one"}, {"value": b"", "topic": "one"}, {"nothing": 1}]),
)
OTHER = st.tuples(st.sampled_from(["take", "release", "line_up", "shut", "admit"]), st.just(()), st.just({}))
STEPS = st.lists(st.one_of(SENT, SENT, SENT, ODD, OTHER), max_size=40)


class Clock:
    """A host's clocks, which stand still."""

    def now_ns(self) -> int:
        return 7

    def now_ms(self) -> int:
        return 1_000


class Side:
    """An intake, and what came of each step."""

    def __init__(self) -> None:
        self.wakes = 0
        self.pool = MemoryPool(TOTAL_BYTES)
        self.intake = Intake(self.pool, 100_000, Ack)
        self.intake.attach(
            Clock(),
            self._woken,
            lambda: None,
            lambda what: None,
            lambda topic, within_s: iter(()),
        )
        self.send = self.intake.offering(lambda size, record: ("no room", size, record))
        self.taken: list[Submission] = []

    def _woken(self) -> None:
        self.wakes += 1

    def step(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        try:
            return getattr(self, f"_{name}")(*arguments, **options)
        except Exception as error:
            return type(error).__name__, str(error).replace("single_send.<locals>.", "")

    def _send(self, *arguments: Any, **options: Any) -> Any:
        sent = self.send(*arguments, **options)
        return (sent.delivery.topic, sent.row) if isinstance(sent, Ack) else sent

    def _take(self) -> Any:
        taken = self.intake.take(True)
        self.taken += taken
        return [as_plain(submission) for submission in taken]

    def _release(self) -> None:
        if self.taken:
            self.pool.release(self.taken.pop(0).reserved_bytes)

    def _line_up(self) -> Any:
        place = Place(TOTAL_BYTES // 2)
        self.pool.line_up(place)
        called = place.called.done()
        self.pool.leave(place)
        return "called" if called else "in line"

    def _shut(self) -> None:
        self.intake.shut("it is shut")

    def _admit(self) -> None:
        self.intake.admit()

    def check(self) -> None:
        self.pool.check(self.intake.held_bytes() + sum(each.reserved_bytes for each in self.taken))


def as_plain(submission: Submission) -> dict[str, Any]:
    columns = submission.columns
    lists = {
        name: None if column is None else column.to_list()
        for name, column in (("key", columns.keys), ("value", columns.values))
    }
    assert columns.timestamps_ms is not None
    return lists | {
        "topic": submission.topic,
        "count": columns.count,
        "headers": None
        if columns.headers is None
        else [columns.headers.item(row) for row in range(columns.count)],
        "nulls": [
            column is not None and column.valid is not None for column in (columns.keys, columns.values)
        ],
        "stamps": columns.timestamps_ms.tolist(),
        "partitions": None if submission.partitions is None else submission.partitions.tolist(),
        "bytes": submission.reserved_bytes,
        "callbacks": list(submission.delivery.callbacks),  # type: ignore[attr-defined]
        "pending": submission.delivery.pending,  # type: ignore[attr-defined]
        "sizes": columns.sizes_bytes().tolist(),
    }


def sides() -> tuple[Side, Side]:
    """One by machine code, one by Python."""
    by_machine_code = Side()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake_module, "SingleSend", PythonSingleSend)
        by_python = Side()
    return by_machine_code, by_python


@given(STEPS)
def test_machine_code_and_python_do_the_same(
    steps: list[tuple[str, tuple[Any, ...], dict[str, Any]]],
) -> None:
    by_machine_code, by_python = sides()
    for step in [*steps, ("take", (), {})]:
        found = by_machine_code.step(*step)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(intake_module, "RecordBuffer", PythonRecordBuffer)
            expected = by_python.step(*step)
        assert found == expected
        assert (by_machine_code.wakes, by_machine_code.pool.free_bytes) == (
            by_python.wakes,
            by_python.pool.free_bytes,
        )
        by_machine_code.check()
        by_python.check()


@given(st.lists(st.tuples(st.booleans(), st.integers(-5, 50))))
def test_bytes_are_counted_alike(steps: list[tuple[bool, int]]) -> None:
    counters = single_records.ByteCounter(), PythonByteCounter()
    for taken, size_bytes in steps:
        found, expected = (
            counter.take(size_bytes) if taken else counter.give(size_bytes) for counter in counters
        )
        assert (found, counters[0].free_bytes) == (expected, counters[1].free_bytes)


def test_a_buffer_whose_columns_were_taken_takes_nothing_more() -> None:
    buffer = single_records.RecordBuffer(None, [], [], CHUNK_MAX_BYTES)
    pool = MemoryPool(15)
    assert buffer.append(b"value", None, -1, -1, None, None, 10, pool) == 0
    assert buffer.append(b"value", None, -1, -1, None, None, 10, pool) == NO_ROOM
    assert pool.free_bytes == 5
    values, *rest = buffer.take_columns()
    assert values is not None
    assert (bytes(values[0]), np.frombuffer(values[1], np.int64).tolist(), values[2], rest) == (
        b"value",
        [0, 5],
        None,
        [None] * 3,
    )
    for again in (buffer.take_columns, lambda: buffer.append(b"", None, -1, -1, None, None, 0, None)):
        with pytest.raises(ValueError, match="were taken"):
            again()
    assert (buffer.count, buffer.size_bytes) == (1, 10)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (1, 2, 3),
        ("text", None, 0, 0, None, None, 0, None),
        (b"", None, "0", 0, None, None, 0, None),
        (b"", *[None] * 6, 1),
    ],
)
def test_a_buffer_refuses_what_is_no_record(arguments: tuple[Any, ...]) -> None:
    buffer = single_records.RecordBuffer(None, [], [], CHUNK_MAX_BYTES)
    with pytest.raises(TypeError):
        buffer.append(*arguments)
    assert buffer.count == 0


def test_what_is_no_part_of_it_is_refused() -> None:
    pool = MemoryPool(1)
    for pool_given, handle in ((object(), Ack), (pool, dict), (pool, Ack(None, 0))):
        with pytest.raises(TypeError):
            single_records.SingleSend(pool_given, (), {}, handle, print, 1, 1, 1)  # type: ignore[arg-type]
    odd = single_records.SingleSend(
        pool, (), {"t": object()}, Ack, lambda *given, **named: (given, named), 100, 100, 0
    )  # type: ignore[dict-item]
    assert odd.send("t", b"", key=None) == (("t", b""), {"key": None})


def test_handles_are_out_of_the_collectors_sight_and_what_they_hold_is_not() -> None:
    side, _ = sides()
    acks = [side.send("one", b"value") for _ in range(10)]
    assert not any(gc.is_tracked(ack) for ack in acks)
    assert acks[0].delivery is acks[9].delivery
    assert not hasattr(acks[0], "__dict__")
    delivery, row = acks[9].delivery, acks[9].row
    assert (row, acks[9].done()) == (9, False)
    assert Ack(delivery, 9).row == 9


def test_a_handle_that_is_no_subclass_may_be_made_too() -> None:
    handle = single_records.Handle("delivery", 3)
    assert (handle.delivery, handle.row, gc.is_tracked(handle)) == ("delivery", 3, False)


class Sender:
    """Keeps its handles, and hears of their records."""

    def __init__(self) -> None:
        self.acks: list[Ack] = []

    def done(self, metadata: object, error: Exception | None) -> None:
        if error is not None:
            raise error

    def asks(self) -> None:
        for ack in self.acks:
            try:
                ack.result()
            except FairleadError as error:
                self.heard = error


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("order", [None, np.array([2, 0, 1], np.int64)])
def test_a_program_that_keeps_its_handles_is_freed_when_their_records_are_settled(
    failed: bool, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOGGER.logger, "disabled", True)  # pytest keeps what is logged, with its tracebacks
    side, _ = sides()
    error = UsageError("lost") if failed else None
    sender = Sender()
    sender.acks += [side.send("one", b"value", on_delivery=sender.done) for _ in range(3)]
    (submission,) = side.intake.take(False)
    _, called = submission.complete(0, 3, order, 0, 5, 7, -1, error)
    assert called is not None
    called[0](*called[1])
    sender.asks()
    assert error is None or sender.heard is not error
    watched = weakref.ref(sender)
    del sender, submission, called, error
    gc.collect()
    assert watched() is None


def test_headers_that_grow_while_a_record_waits_for_room_are_those_of_the_call() -> None:
    side, _ = sides()
    left = side.pool.free_bytes
    side.pool.free_bytes = 0
    given = [("name", b"value")]
    _, size_bytes, record = side.send("one", b"value", headers=given)
    place = Place(size_bytes)
    side.pool.line_up(place)
    side.pool.release(size_bytes)
    side.pool.free_bytes = left - size_bytes
    assert place.called.done()
    given.append(("later", b"more"))
    assert side.send(**record._asdict(), place=place).row == 0
    side.pool.leave(place)
    side.check()
    (submission,) = side.intake.take(False)
    assert submission.columns.headers.item(0) == [("name", b"value")]
    assert submission.reserved_bytes == size_bytes


def test_a_chunk_that_had_no_room_for_its_first_record_is_passed_over_and_the_machine_is_woken() -> None:
    side, _ = sides()
    left, side.pool.free_bytes = side.pool.free_bytes, 0
    assert side.send("one", b"value")[0] == "no room"
    side.pool.free_bytes = left
    assert side.wakes == 1
    assert side.intake.take(True) == []
    assert isinstance(side.send("one", b"value"), Ack)
    assert side.wakes == 2, "nobody comes by himself"


def test_an_intake_that_is_dropped_with_records_in_it_is_collected() -> None:
    side, _ = sides()
    for _ in range(3):
        side.send("one", b"value", on_delivery=lambda metadata, error, kept=side: None)
    watched = weakref.ref(side.intake)
    del side
    gc.collect()
    assert watched() is None


def test_threads_that_send_at_once_lose_no_record_and_no_byte() -> None:
    side, _ = sides()
    sent = 20_000
    taken: list[Submission] = []
    over = Lock()

    def sender(name: bytes) -> None:
        for number in range(sent):
            while not isinstance(side.send("one", b"%s %d" % (name, number)), Ack):
                pass

    def taker() -> None:
        while over.locked() or side.intake.waiting():
            for submission in side.intake.take(True):
                taken.append(submission)
                side.pool.release(submission.reserved_bytes)

    with over:
        senders = [Thread(target=sender, args=(name,)) for name in (b"a", b"b", b"c")]
        last = Thread(target=taker)
        for thread in (*senders, last):
            thread.start()
        for thread in senders:
            thread.join()
    last.join()
    found = [
        item
        for submission in taken
        if submission.columns.values
        for item in submission.columns.values.to_list()
    ]
    for name in (b"a", b"b", b"c"):
        assert [item for item in found if item and item.startswith(name)] == [
            b"%s %d" % (name, number) for number in range(sent)
        ]
    side.pool.check(0)
