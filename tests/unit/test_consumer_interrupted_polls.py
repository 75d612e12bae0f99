"""Ctrl-C at every bytecode of a poll: no record is lost, and none is committed that nobody has."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fairlead_kafka.base.errors import DeserializationFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from tests.support.client_rig import Rig
from tests.support.fake_coordinator import GROUP, FakeCoordinator
from tests.support.interrupting import Interrupting

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Seen = list[tuple[int, int]]
"""Partition and offset of each record."""


class Passing:
    """An interceptor that changes nothing."""

    def on_consume(self, records: list[Any]) -> list[Any]:
        return list(records)

    def on_consume_table(self, table: Any) -> Any:
        return table


def deserialized(data: bytes, _context: object) -> str:
    return data.decode()


def poll(reader: Consumer) -> Seen:
    return [(record.partition, record.offset) for record in reader.poll(1)]


def poll_few(reader: Consumer) -> Seen:
    return [(record.partition, record.offset) for record in reader.poll(1, max_records=3)]


def poll_table(reader: Consumer, **more: Any) -> Seen:
    table = reader.poll_table(1, **more)
    return list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def poll_few_rows(reader: Consumer) -> Seen:
    return poll_table(reader, max_records=3)


def iterate(reader: Consumer) -> Seen:
    iterator = iter(reader)
    kept.append(iterator)  # one that is dropped is closed, which would be interrupted, too
    record = next(iterator)
    return [(record.partition, record.offset)]


kept: list[Iterator[Any]] = []


PLAIN: dict[str, Any] = {}
OBJECTS: dict[str, Any] = {"value_deserializer": deserialized, "interceptor_classes": [Passing()]}
AFTER_MAX = 40
"""Bytecodes after positions move, until the application has the records."""


class Reading:
    """A consumer of two partitions, and how far each was handed out."""

    def __init__(self, configs: dict[str, Any]) -> None:
        rig = self.rig = Rig()
        rig.cluster.topic("t", 2)
        self.coordinator = FakeCoordinator(rig.cluster)
        config = rig.config(
            **{"auto_offset_reset": "earliest", "group_id": GROUP, "enable_auto_commit": False, **configs}
        )
        self.reader = Consumer(config, opener=rig.opener)  # one without checks, which would be interrupted
        self.reader.assign([T0, T1])
        self.next = {0: 0, 1: 0}
        self.ends = {0: 0, 1: 0}

    def write(self) -> None:
        """Two records to each partition; what was read before goes."""
        self.rig.cluster.requests.clear()
        for partition in self.ends:
            self.rig.cluster.log("t", partition).batches.clear()
            self.rig.cluster.write("t", partition, [b"x", b"y"])
            self.ends[partition] += 2

    def see(self, seen: Seen) -> None:
        """Check that records come in order, none left out and none twice."""
        for partition, offset in seen:
            assert offset == self.next[partition]
            self.next[partition] += 1

    def committed(self) -> dict[int, int]:
        """What the consumer's positions are, as its commits say."""
        self.reader.commit()
        return {of.partition: self.coordinator.committed.get(of, 0) for of in (T0, T1)}

    def interrupted(self, at: int, call: Callable[[Consumer], Seen]) -> Interrupting:
        """Interrupt a call at one bytecode, and read on to the end of the log."""
        interrupting = Interrupting(at)
        seen = interrupting(lambda: call(self.reader))
        kept.clear()
        if seen is not None:
            self.see(seen)
        positions = self.committed()
        if interrupting.handing and interrupting.raised:
            gone = [(of, offset) for of in positions for offset in range(self.next[of], positions[of])]
            self.see(gone)  # those of this poll, all or none
        assert positions == self.next
        while self.next != self.ends:
            seen = call(self.reader)
            assert seen, f"nothing came after an interrupt at bytecode {at}"
            self.see(seen)
        return interrupting


@pytest.mark.parametrize(
    ("call", "configs"),
    [
        (poll, PLAIN),
        (poll_few, OBJECTS),
        (poll_table, OBJECTS | {"value_deserializer": None}),
        (poll_few_rows, PLAIN),
        (iterate, PLAIN),
    ],
)
def test_an_interrupt_anywhere_in_a_poll_loses_no_record(
    call: Callable[[Consumer], Seen], configs: dict[str, Any]
) -> None:
    reading = Reading(configs)
    after = at = 0
    raised = True
    while raised:  # until a poll is over before that
        at += 1
        reading.write()
        interrupting = reading.interrupted(at, call)
        raised = interrupting.raised
        after += raised and interrupting.handing
    assert at > 400
    assert after <= AFTER_MAX
    reading.reader.close()


@pytest.mark.parametrize("poll", [poll, poll_table])
def test_what_an_interceptor_or_a_deserializer_interrupts_is_given_again(
    poll: Callable[[Consumer], Seen],
) -> None:
    class Impatient(Passing):
        left = 2

        def on_consume(self, records: list[Any]) -> list[Any]:
            self.left -= 1
            if self.left >= 0:
                raise (KeyboardInterrupt, SystemExit)[self.left]
            return records

        on_consume_table = on_consume

    reading = Reading({"interceptor_classes": [Impatient()]})
    reading.write()
    for error in (SystemExit, KeyboardInterrupt):
        with pytest.raises(error):
            poll(reading.reader)
        assert reading.committed() == {0: 0, 1: 0}
    while reading.next != reading.ends:
        reading.see(poll(reading.reader))
    reading.reader.close()


def test_close_commits_nothing_that_an_interrupted_poll_had() -> None:
    def interrupted(_data: bytes, _context: object) -> str:
        raise KeyboardInterrupt

    reading = Reading({"value_deserializer": interrupted, "enable_auto_commit": True})
    reading.write()
    with pytest.raises(KeyboardInterrupt):
        reading.reader.poll(1)
    reading.reader.close()
    assert set(reading.coordinator.committed.values()) <= {0}


def cancelled(reader: Consumer, at: int) -> bool:
    """Cancel a poll at one of its waits, as a task may be; False if it is over before that."""
    steps, host = reader._calls.reading.poll(1, None), reader._calls.host
    with contextlib.suppress(StopIteration):
        wait = next(steps)
        for _ in range(at):
            wait = steps.send(host.wait(wait.completion, wait.timeout_s))
        steps.close()
        return True
    return False


def test_a_poll_cancelled_at_any_wait_loses_nothing_before_a_record_that_does_not_parse() -> None:
    def picky(data: bytes, _context: object) -> bytes:
        if data == b"y":
            raise ValueError("not this one")
        return data

    for at in range(9):
        reading = Reading({"value_deserializer": picky})
        reading.reader.assign([T0])
        reading.write()
        was_cancelled = cancelled(reading.reader, at)
        if not was_cancelled:
            break
        reading.see(poll(reading.reader))
        assert reading.next == {0: 1, 1: 0}
        with pytest.raises(DeserializationFailed, match="offset 1"):
            reading.reader.poll(1)
        reading.reader.close()
    assert at > 0
