"""Writes across the end of a file that fail: the files that they began are gone before the log goes
on, at whatever point the broker or the power ends."""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import Any

import pytest

from fairlead_kafka.core.effects import FileAppend, FileDelete
from fairlead_kafka.core.events import FileDone
from fairlead_kafka.records import scan
from tests.support.log_rig import FOLDER, TOPIC, LogRig, limits, records

SECOND, THIRD = (f"{FOLDER}/{number:012d}.log" for number in (2, 3))
MEND_MS = 1000


def failed(tags: bytes, at: str) -> LogRig:
    """A log of one record, after as many more as there are tags, two to a file, were lost: their
    write failed at the file `at`, and the disk fails still."""
    rig = LogRig({TOPIC: ("events", limits(flush_messages=1))}, log_segment_bytes="1048576")
    rig.append(records(b"a" * 400_000))

    def watch(_handle: Any, effect: Any) -> None:
        if isinstance(effect, FileAppend) and effect.path == at:
            rig.disk.faults.fail(FOLDER, errno.EIO)

    rig.disk.watch = watch
    told = list[bool]()
    for tag in tags:
        data = records(bytes([tag]) * 400_000)
        rig.logs.append(rig.partition(), memoryview(data), scan(data)[0], 0, rig.wall_ms)
    rig.logs.when_written(told.append)
    rig.run()
    assert told == [False]
    rig.disk.watch = lambda _handle, _effect: None
    return rig


def offsets(rig: LogRig) -> list[tuple[int, int]]:
    """The first and last offset of each batch."""
    index = rig.partition().index
    return [(index.base_offset(number), index.last_offset(number)) for number in range(len(index))]


@pytest.mark.parametrize("cleanly", [True, False])
def test_a_file_that_a_lost_group_began_is_deleted_before_appends_are_taken_again(cleanly: bool) -> None:
    """Else it would be read, after a restart, as what follows the file that goes on."""
    rig = failed(b"xy", SECOND)
    rig.advance(2.5 * MEND_MS)
    rig.disk.faults.heal(FOLDER)
    rig.advance(2 * MEND_MS)
    for tag in (b"p", b"q", b"r"):
        assert rig.append(records(tag)) == [True]
    before = rig.values()
    if cleanly:
        rig.logs.close(lambda: None)
        rig.run()
    rig.crash()
    assert rig.values() == before


def test_no_file_is_cut_before_those_behind_it_are_deleted() -> None:
    """A broker that ends meanwhile finds the lost group whole, and not its end behind a hole."""
    rig = failed(b"xy", SECOND)
    rig.disk.faults.heal(FOLDER)
    carry_out = rig.disk.carry_out

    def carry_but_delete(handle: Any, effect: Any) -> None:
        if isinstance(effect, FileDelete) and effect.path == SECOND:
            failure = OSError(errno.EIO, os.strerror(errno.EIO), SECOND)
            rig._later(0.0, rig._deliver, handle, FileDone(effect.token, None, failure))
        else:
            carry_out(handle, effect)

    rig.disk.carry_out = carry_but_delete  # type: ignore[method-assign]
    rig.advance(1.5 * MEND_MS)
    assert rig.logs.error is not None
    rig.disk.carry_out = carry_out  # type: ignore[method-assign]
    assert rig.crash().refused is None
    assert offsets(rig) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("effects", range(1, 9))
def test_a_power_cut_while_files_of_a_lost_group_are_deleted_leaves_no_hole(effects: int) -> None:
    for kept in (0, 1):
        rig = failed(b"xyzw", THIRD)
        rig.disk.faults.heal(FOLDER)
        rig.disk.sync_ms = 1
        rig.effects_left = effects
        rig.advance(1.5 * MEND_MS)
        assert rig.crash(power=True, kept=partial(min, kept)).refused is None
        assert offsets(rig) == [(number, number) for number in range(len(offsets(rig)))]
        rig.disk.sync_ms = 0
        assert rig.append(records(b"more")) == [True]
