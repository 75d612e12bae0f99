"""Compaction, and rewriting of files, of partitions that are truncated meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fairlead_kafka.core.effects import FileRead
from tests.support.log_rig import TOPIC, LogRig, limits, records

LOOK_MS = 15_000
Keyed = tuple[bytes | None, bytes | None]


def keyed(*pairs: Keyed) -> bytes:
    return records(*[value for _key, value in pairs], keys=[key for key, _value in pairs])


def rig_with(**configs: Any) -> LogRig:
    given = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0, **configs}
    return LogRig({TOPIC: ("events", limits(**given))})


@contextmanager
def held_reads(rig: LogRig, *, let_through: int = 0) -> Iterator[list[tuple[Any, FileRead]]]:
    """Let reads, after the first `let_through`, wait until the end of the block."""
    rig.logs.cache.rewind(1, 0)  # as if later records had pushed all of it out of the cache
    held: list[tuple[Any, FileRead]] = []
    carry_out = rig.disk.carry_out
    left = let_through

    def hold(handle: Any, effect: Any) -> None:
        nonlocal left
        if isinstance(effect, FileRead) and not left:
            held.append((handle, effect))
        else:
            left -= isinstance(effect, FileRead)
            carry_out(handle, effect)

    rig.disk.carry_out = hold  # type: ignore[method-assign]
    yield held
    rig.disk.carry_out = carry_out  # type: ignore[method-assign]
    for handle, effect in held:
        carry_out(handle, effect)


def test_a_cut_while_compaction_is_under_way_ends_it() -> None:
    rig = rig_with()
    rig.append(keyed((b"a", b"1")))
    rig.append(keyed((b"a", b"2")))
    rig.append(keyed((b"b", b"3")))
    rig.disk.append_ms = 5
    rig.disk.sync_ms = 5
    rig.advance(LOOK_MS + 2)
    rig.logs.truncate(rig.partition(), 1)
    rig.advance(100)
    assert rig.partition().log_end == 1
    rig.advance(LOOK_MS)
    rig.crash()
    assert rig.values() in ({0: b"1"}, {})


@pytest.mark.parametrize("compacts", [False, True])
def test_a_batch_that_was_cut_while_it_was_read_is_not_put_in_the_place_of_its_successor(
    compacts: bool,
) -> None:
    rig = rig_with() if compacts else LogRig()
    rig.append(records(b"keeps the file"), number=1)
    rig.replicate(records(bytes(1 if compacts else 2_000_000)), 0)
    rig.replicate(keyed((b"a", b"OLD"), (b"b", b"old")), 1)
    rig.replicate(keyed((b"a", b"last")), 3)
    rig.replicate(keyed((b"z", b"end")), 4)
    if not compacts:
        rig.logs.move_start(rig.partition(), 1)  # nearly all of the file is dead
    rig.logs.cache.rewind(1, 0)  # as if later records had pushed it out of the cache
    with held_reads(rig, let_through=1 if compacts else 0) as held:  # the keys are read first
        rig.advance(2 * LOOK_MS + 1)
        assert held
        rig.logs.truncate(rig.partition(), 1)
        rig.replicate(keyed((b"x", b"NEW"), (b"y", b"new")), 1, epoch=1)
        rig.replicate(keyed((b"a", b"last")), 3, epoch=1)
        rig.replicate(keyed((b"z", b"end")), 4, epoch=1)
    rig.advance(1_000)
    for _ in range(2):
        assert (rig.values()[1], rig.values()[2]) == (b"NEW", b"new")
        rig.crash()


@pytest.mark.parametrize("compacts", [False, True])
def test_a_key_that_was_newer_only_in_what_was_cut_stays(compacts: bool) -> None:
    rig = rig_with()
    for offset, (key, value) in enumerate(
        [(b"k", b"k"), (b"f", b"f"), (b"k", b"cut"), (b"g", b"g"), (b"h", b"")]
    ):
        rig.replicate(keyed((key, value)), offset)
    with held_reads(rig, let_through=1 if compacts else 0) as held:
        rig.advance(LOOK_MS + 1)
        assert held
        rig.logs.truncate(rig.partition(), 2)
        for offset, key in enumerate((b"x", b"y", b"z"), start=2):
            rig.replicate(keyed((key, b"new")), offset, epoch=1)
    rig.advance(1_000)
    assert rig.values()[0] == b"k"


def test_a_cut_while_a_pass_is_noted_leaves_what_it_passed_to_the_next() -> None:
    """Else a tombstone that the pass never saw would count as passed, and what it deletes stay."""
    rig = rig_with(delete_retention_ms=1_000)
    for offset, key in enumerate((b"k", b"f", b"g", b"h")):
        rig.replicate(keyed((key, b"old")), offset)
    rig.disk.sync_ms = 50
    rig.advance(LOOK_MS + 20)
    rig.logs.truncate(rig.partition(), 1)
    rig.advance(200)
    assert rig.partition().passes == ()
    rig.replicate(keyed((b"k", None)), 1, epoch=1)
    for offset in range(2, 5):
        rig.replicate(keyed((b"f%d" % offset, b"new")), offset, epoch=1)
    for number in range(4):
        rig.advance(LOOK_MS + 1)
        rig.replicate(keyed((b"z%d" % number, b"new")), rig.partition().log_end, epoch=1)
    assert 0 not in rig.values()
