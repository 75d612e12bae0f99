"""The power goes before each single effect on the disk, in turn: what is recovered is what was
there after one of the steps.

All partitions share one log, so what is recovered is the state after one step, of everything: not
older than the last step that was synced before its caller was told.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from fairlead_kafka.base.errors import BrokerError
from tests.support.log_rig import TOPIC, LogRig, limits, records

SAFE = TOPIC.__class__(int=8)
PARTITIONS = ((TOPIC, 0), (TOPIC, 1), (SAFE, 0))
EFFECTS_MAX = 400
State = dict[tuple[object, int], tuple[int, int, dict[int, bytes | None]]]
Step = Callable[[LogRig], list[bool] | None]
"""One step of a script; whether it was told to be written (and so synced), None if nobody is
told."""


def rig_for_crashes() -> LogRig:
    topics = {TOPIC: ("events", limits()), SAFE: ("safe", limits(flush_messages=1))}
    return LogRig(topics, log_segment_bytes=1 << 20, log_flush_offset_checkpoint_interval_ms=1000)


def state(rig: LogRig) -> State:
    found: State = {}
    for topic, number in PARTITIONS:
        one = rig.partition(number, topic)
        found[topic, number] = (one.log_start, one.log_end, rig.values(number, topic))
    return found


def put(text: bytes, number: int = 0, epoch: int = 0) -> Step:
    def step(rig: LogRig) -> None:
        rig.append(records(text), number, epoch)

    return step


def put_safely(text: bytes) -> Step:
    return lambda rig: rig.append(records(text), topic=SAFE)


def cut(end_offset: int, number: int = 0) -> Step:
    def step(rig: LogRig) -> None:
        rig.logs.truncate(rig.partition(number), end_offset)
        rig.run()

    return step


def begin_at(offset: int, number: int = 0) -> Step:
    def step(rig: LogRig) -> None:
        rig.logs.move_start(rig.partition(number), offset)
        rig.run()

    return step


def restart(offset: int, number: int = 0) -> Step:
    def step(rig: LogRig) -> None:
        rig.logs.restart(rig.partition(number), offset)
        rig.run()

    return step


def pass_time(rig: LogRig) -> None:
    rig.advance(1001)


def clean(rig: LogRig) -> None:
    rig.advance(15_001)


BIG = b"x" * 400_000
SCRIPTS: dict[str, list[Step]] = {
    "append": [put(b"a"), put_safely(b"b"), put(b"c", 1), put_safely(b"d"), put(b"e")],
    "truncate": [
        put(b"a"),
        put(b"b"),
        put_safely(b"c"),
        cut(1),
        put(b"d", epoch=1),
        put_safely(b"e"),
        cut(0),
        put(b"f", epoch=2),
    ],
    "restart": [
        put(b"a"),
        put_safely(b"b"),
        restart(70),
        put_safely(b"c"),
        put(b"d"),
        restart(5, 1),
        put_safely(b"e"),
    ],
    "checkpoint": [
        put(b"a"),
        pass_time,
        put_safely(b"b"),
        cut(0),
        put(b"c"),
        pass_time,
        put(b"d"),
        pass_time,
        put_safely(b"e"),
    ],
    "files": [
        *(put(BIG) for _ in range(3)),
        put_safely(b"b"),
        begin_at(2),
        *(put(BIG, 1) for _ in range(3)),
        pass_time,
        begin_at(3),
        cut(1, 1),
        put(b"c", 1),
        put_safely(b"d"),
        begin_at(2, 1),
        put_safely(b"e"),
    ],
    "rewrite": [
        put(b"a", 1),
        put_safely(b"b"),
        *(put(BIG) for _ in range(3)),
        begin_at(2),
        clean,
        put(b"c", 1),
        put_safely(b"d"),
        begin_at(1, 1),
        clean,
        put_safely(b"e"),
    ],
}


@cache
def undisturbed(name: str) -> list[State]:
    """The states of a script without a crash: before its first step, and after each."""
    rig = rig_for_crashes()
    states = [state(rig)]
    for step in SCRIPTS[name]:
        step(rig)
        states.append(state(rig))
    return states


def play(name: str, effects: int) -> tuple[LogRig, list[State], int]:
    """Until the power goes: the rig, the states after each step, and the number of the last step
    known to be synced."""
    rig = rig_for_crashes()
    rig.effects_left = effects
    begun = synced = 0
    for number, step in enumerate(SCRIPTS[name]):
        begun = number + 1
        try:
            told = step(rig)
        except BrokerError:
            break
        if told == [True]:
            synced = number + 1
        if rig.effects_left == 0:
            break
    return rig, undisturbed(name)[: begun + 1], synced


@pytest.mark.parametrize("kept", ["nothing", "half", "everything"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_crash_before_any_effect_leaves_the_state_after_a_step(name: str, kept: str) -> None:
    share = {"nothing": 0.0, "half": 0.5, "everything": 1.0}[kept]
    for effects in range(EFFECTS_MAX):
        rig, states, synced = play(name, effects)
        ended = rig.effects_left != 0
        result = rig.crash(power=True, kept=lambda size_bytes: int(size_bytes * share))
        where = f"before effect {effects}"
        assert result.refused is None, where
        found = state(rig)
        assert found in states, where
        last = len(states) - 1 - states[::-1].index(found)
        assert last >= synced, f"{where}: step {synced} was synced, but the log is as after step {last}"
        # Life goes on, and what is recovered once is recovered again.
        rig.append(records(b"more"), topic=SAFE)
        before = state(rig)
        assert rig.crash(power=True).refused is None
        assert state(rig) == before, where
        if ended:
            return
    raise AssertionError(f"the script takes more than {EFFECTS_MAX} effects")
