"""Sends that Ctrl-C ends, wherever in the client's code it comes."""

from __future__ import annotations

import dis
import gc
import linecache
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka.base.errors import BufferExhausted
from fairlead_kafka.client import tables as _tables  # noqa: F401  # the first table loads it
from fairlead_kafka.runtime import Completion
from tests.support.metrics import memory_is_free, metric
from tests.support.producer_rig import Rig, RigProducer
from tests.support.virtual_hosting import Opening, VirtualHosted

CODE = tuple(f"{Path(fairlead_kafka.__file__).parent / room}/" for room in ("client", "producer"))
RECORD = b"x" * 300


class CtrlC:
    """Raises KeyboardInterrupt at one line of the client's code: the `at`-th that a call comes
    to."""

    def __init__(self, at: int) -> None:
        self.left = at

    def during(self, call: Callable[[], object]) -> bool:
        """Make the call. False if it ended before that line."""
        before = sys.gettrace()
        gc.disable()  # it would end what other tests have dropped
        sys.settrace(self.trace)
        try:
            call()
        except KeyboardInterrupt:
            return True
        except BufferExhausted:
            return self.left <= 0
        finally:
            sys.settrace(before)
            gc.enable()
        return self.left <= 0

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(CODE):
            return None
        if event == "line" and not _leaves_block(frame):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.trace


def _leaves_block(frame: FrameType) -> bool:
    """True where Python comes back to the line of a `with` to leave its block: the last place of
    the block where it looks for signals is passed, and the next is within `__exit__`."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
    return line.startswith("with ") and frame.f_code.co_code[frame.f_lasti] == dis.opmap["LOAD_CONST"]


class Undisturbed(VirtualHosted):
    """A host in virtual time: its machine, which runs while a caller waits, is not interrupted, as
    one on a thread of its own is not."""

    def wait(self, completion: Completion[Any], timeout_s: float | None) -> Any:
        tracing = sys.gettrace()
        sys.settrace(None)
        try:
            return super().wait(completion, timeout_s)
        finally:
            sys.settrace(tracing)


def send_one(producer: RigProducer, name: str) -> None:
    producer.send("t", name.encode())


def send_one_with_headers(producer: RigProducer, name: str) -> None:
    producer.send("t", name.encode(), headers=[("h", b"")], on_delivery=lambda *_: None)


def send_one_large(producer: RigProducer, name: str) -> None:
    producer.send("t", name.encode() + b" " * 300_000)


def send_two_of_which_one_waits(producer: RigProducer, name: str) -> None:
    for number in range(2):
        producer.send("t", b"%s %d " % (name.encode(), number) + b"x" * 1500)


def send_table_that_waits(producer: RigProducer, name: str) -> None:
    rows = [b"%s %d " % (name.encode(), row) + RECORD * 3 for row in range(3)]
    producer.send_table("t", pa.table({"value": pa.array(rows, pa.binary())}))


CASES: list[tuple[Callable[[RigProducer, str], None], int]] = [
    (send_one, 1 << 20),
    (send_one_with_headers, 1 << 20),
    (send_one_large, 1 << 20),
    (send_two_of_which_one_waits, 2500),
    (send_table_that_waits, 2500),
]


@pytest.mark.parametrize(("send", "memory_bytes"), CASES)
def test_an_interrupted_send_keeps_no_memory_and_sends_nothing_twice(
    send: Callable[[RigProducer, str], None], memory_bytes: int
) -> None:
    rig = Rig()
    rig.opener = Opening(rig.host, Undisturbed)
    rig.cluster.create("t", 1)
    producer = rig.producer(buffer_memory=memory_bytes)
    line = 1
    while CtrlC(line).during(partial(send, producer, f"{line}")):
        assert producer.send("t", f"after {line}".encode()).result(5).offset >= 0
        producer.flush(5)
        assert memory_is_free(producer), line
        producer.core.check()
        line += 1
    assert line > 20
    assert producer.close() == {}
    values = Counter(rig.cluster.values("t")[0])
    assert max(values.values()) == 1
    assert {f"after {each}".encode() for each in range(1, line)} <= values.keys()


def test_an_interrupted_send_that_finds_no_room_leaves_the_line() -> None:
    rig = Rig()
    rig.opener = Opening(rig.host, Undisturbed)
    rig.cluster.create("t", 1)
    rig.cluster.on_produce = lambda *_: 19
    producer = rig.producer(buffer_memory=500, max_block_ms=10, delivery_timeout_ms=10**9)
    producer.send("t", RECORD)
    line = 1
    while CtrlC(line).during(lambda: producer.send("t", RECORD)):
        assert metric(producer, "waiting-threads") == 0, line
        producer.core.check()
        line += 1
    assert line > 20
    rig.cluster.on_produce = lambda *_: 0
    producer.flush(5)
    assert memory_is_free(producer)
    assert producer.close() == {}
