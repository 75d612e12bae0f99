"""A power cut that takes pages of what was not synced in any order: the log starts, with a prefix
that has all that was synced."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.broker.log import LogSettings
from tests.support.log_rig import FOLDER, TOPIC, LogRig, limits, records

PAGE_BYTES = 256
SAFE = TOPIC.__class__(int=8)
PLACES = ((TOPIC, 0), (TOPIC, 1), (SAFE, 0))

logging.getLogger("fairlead_kafka.broker").addHandler(logging.NullHandler())

writings = st.lists(st.tuples(st.sampled_from(PLACES), st.integers(1, 600)), min_size=1, max_size=12)


def rig_for(small_files: bool) -> LogRig:
    topics = {TOPIC: ("events", limits()), SAFE: ("safe", limits(flush_messages=1))}
    rig = LogRig(topics)
    if small_files:
        rig.logs.configure(LogSettings(1000, 60_000, True, 15_000, 1 << 20))
    return rig


def lose_pages(rig: LogRig, lost: list[bool]) -> None:
    """What was never synced comes back with zeros where a page was not written."""
    number = 0
    for path, content in rig.disk.files.items():
        if path.startswith(FOLDER) and path.endswith(".log"):
            durable = rig.disk._durable_bytes.get(path, 0)
            for page in range(durable // PAGE_BYTES, len(content) // PAGE_BYTES + 1):
                begin, end = max(durable, page * PAGE_BYTES), min(len(content), (page + 1) * PAGE_BYTES)
                if lost[number % len(lost)]:
                    content[begin:end] = bytes(end - begin)
                number += 1


@settings(max_examples=100)
@given(writings, st.lists(st.booleans(), min_size=1, max_size=20), st.booleans(), st.integers(0, 12))
def test_lost_pages_cost_what_was_not_synced_and_nothing_else(
    writes: list[tuple[tuple[object, int], int]], lost: list[bool], small_files: bool, checkpoint_after: int
) -> None:
    rig = rig_for(small_files)
    states: list[dict[object, dict[int, bytes | None]]] = []

    def state() -> dict[object, dict[int, bytes | None]]:
        return {place: rig.values(place[1], place[0]) for place in PLACES}

    synced = 0
    states.append(state())
    for number, ((topic, partition), size_bytes) in enumerate(writes):
        told = rig.append(records(b"%d" % number * size_bytes), partition, topic=topic)  # type: ignore[arg-type]
        assert told == [True]
        states.append(state())
        if topic == SAFE:
            synced = len(states) - 1
        if number == checkpoint_after:
            rig.logs.checkpoints.write_if_due()
            rig.run()
            synced = len(states) - 1
    lose_pages(rig, lost)
    result = rig.crash()
    assert result.refused is None
    found = state()
    assert found in states[synced:], "a state that is not older than what was synced"
    rig.append(records(b"more"), topic=SAFE)
    after = state()
    rig.crash()
    assert state() == after


def test_a_page_that_was_synced_and_is_damaged_all_the_same_is_refused() -> None:
    rig = rig_for(False)
    for number in range(3):
        rig.append(records(b"%d" % number * 300), topic=SAFE)
    rig.append(records(b"unsynced" * 50))
    content = rig.disk.files[f"{FOLDER}/000000000001.log"]
    content[content.index(b"1" * 300) + 5] ^= 1
    before = bytes(content)
    assert "records that were acknowledged are lost" in (rig.crash().refused or "")
    assert content == before


def test_a_hole_in_what_was_never_synced_is_cut_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """`power_order` of the review: a later page kept, an earlier one lost."""
    rig = LogRig()
    for number in range(5):
        rig.append(records(b"v%d" % number * 500))
    content = rig.disk.files[f"{FOLDER}/000000000001.log"]
    content[1000:1500] = bytes(500)
    result = rig.crash()
    assert result.refused is None
    assert result.cut_bytes > 3000
    assert "never known to be synced" in caplog.text
    assert rig.values() == {}
    assert rig.append(records(b"again")) == [True]


def test_bytes_of_a_producer_that_look_like_the_logs_own_do_not_stop_a_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = LogRig({TOPIC: ("events", limits(flush_messages=1))})
    for _ in range(3):
        rig.append(records(b"a"))
    own = bytes(rig.disk.files[f"{FOLDER}/000000000001.log"])
    rig.append(records(own))
    rig.append(records(own * 3))
    content = rig.disk.files[f"{FOLDER}/000000000001.log"]
    del content[-100:]
    rig.disk._durable_bytes[f"{FOLDER}/000000000001.log"] = len(content)
    with caplog.at_level(logging.WARNING):
        assert rig.crash().refused is None
    assert "the last write was cut short" in caplog.text
    assert len(rig.values()) == 4
