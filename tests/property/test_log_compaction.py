"""Compaction against a plain twin that looks at one record after the other; and with the power
going before any effect."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.records import scan
from tests.support.log_rig import TOPIC, LogRig, limits, records

LOOK_MS = 15_000
EFFECTS_MAX = 400
Keyed = tuple[bytes | None, bytes | None]

logging.getLogger("fairlead_kafka.broker").addHandler(logging.NullHandler())

keys = st.sampled_from([None, b"a", b"b", b"c", b"d"])
values = st.sampled_from([None, b"1", b"2", b"3"])
writings = st.lists(st.lists(st.tuples(keys, values), min_size=1, max_size=4), min_size=2, max_size=12)


def new_rig() -> LogRig:
    return LogRig(
        {
            TOPIC: (
                "events",
                limits(cleanup_policy="compact", min_cleanable_dirty_ratio=0, delete_retention_ms=1),
            )
        }
    )


def write(rig: LogRig, batches: list[list[Keyed]]) -> None:
    for pairs in batches:
        rig.append(records(*[value for _, value in pairs], keys=[key for key, _ in pairs]))


class ReferenceLog:
    """What a compacted partition holds, by the rules alone."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, dict[int, Keyed]]] = []
        self.sizes: dict[int, int] = {}
        self.end = 0
        self.passed = 0

    def write(self, batches: list[list[Keyed]]) -> None:
        for pairs in batches:
            self.sizes[self.end] = len(pairs)
            self.batches.append((self.end, {self.end + number: pair for number, pair in enumerate(pairs)}))
            self.end += len(pairs)

    def compact(self) -> None:
        self.batches = [one for one in self.batches if one[1]]
        stop = self.batches[-1][0]
        if not any(base >= self.passed for base, _ in self.batches[:-1]):
            return
        below = {offset: pair for base, kept in self.batches for offset, pair in kept.items() if base < stop}
        newest = {key: offset for offset, (key, _value) in sorted(below.items())}
        for base, kept in self.batches:
            last = base + self.sizes[base] - 1
            for offset, (key, value) in list(kept.items()):
                tombstone_goes = value is None and last < self.passed
                if base < stop and (key is None or newest[key] != offset or tombstone_goes):
                    del kept[offset]
        self.batches = [one for one in self.batches if one[1]]
        self.passed = stop

    def values(self) -> dict[int, bytes | None]:
        return {offset: value for _base, kept in self.batches for offset, (_key, value) in kept.items()}


@settings(max_examples=60)
@given(writings, writings)
def test_what_stays_is_what_the_rules_say(first: list[list[Keyed]], second: list[list[Keyed]]) -> None:
    rig, reference = new_rig(), ReferenceLog()
    for batches in (first, second):
        reference.write(batches)
        write(rig, batches)
        rig.advance(LOOK_MS + 1)
        reference.compact()
        assert rig.values() == reference.values()
        assert rig.partition().log_end == reference.end
    rig.crash()
    assert rig.values() == reference.values()
    headers = scan(rig.data())
    assert [header.base_offset for header in headers] == sorted(header.base_offset for header in headers)


def newest_by_key(rig: LogRig, pairs: list[Keyed]) -> dict[bytes | None, bytes | None]:
    """What a reader of the whole partition knows at the end."""
    return {
        key: value
        for key, value in ((pairs[offset][0], value) for offset, value in sorted(rig.values().items()))
        if value and key
    }


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_crash_before_any_effect_of_compaction_loses_nothing_and_the_next_pass_ends_as_the_first_would(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead_kafka.broker.log.cleaner.PIECE_BYTES", 250)
    batches: list[list[Keyed]] = [
        [(b"%d" % (number % 3), b"%d" % number), (b"x", None)] for number in range(12)
    ]
    pairs = [pair for one in batches for pair in one]

    def prepared() -> LogRig:
        rig = new_rig()
        write(rig, batches)
        done: list[bool] = []
        rig.logs.close(lambda: done.append(True))
        rig.run()
        return rig

    whole = prepared()
    known = newest_by_key(whole, pairs)
    whole.advance(LOOK_MS + 1)
    expected = whole.values()
    assert len(expected) < len(pairs) / 2
    for effects in range(EFFECTS_MAX):
        rig = prepared()
        rig.effects_left = effects
        rig.advance(LOOK_MS + 1)
        ended = rig.effects_left != 0
        where = f"before effect {effects}"
        result = rig.crash(power=True, kept=lambda size_bytes: int(size_bytes * share))
        assert result.refused is None, where
        assert all(pairs[offset][1] == value for offset, value in rig.values().items()), where
        assert newest_by_key(rig, pairs) == known, where
        assert rig.partition().log_end == len(pairs), where
        rig.advance(LOOK_MS + 1)
        assert {key: value for key, value in rig.values().items() if value} == {
            key: value for key, value in expected.items() if value
        }, where
        if ended:
            return
    raise AssertionError(f"compaction takes more than {EFFECTS_MAX} effects")
