"""Compaction of records that inflate to more than is decoded at once."""

from __future__ import annotations

import pytest

from fairlead_kafka.records import Compression, decoder
from tests.support.log_rig import TOPIC, LogRig, limits, records

LOOK_MS = 15_000
Keyed = tuple[bytes, bytes | None]


def append(rig: LogRig, *pairs: Keyed) -> None:
    data = records(
        *(value for _key, value in pairs), keys=[key for key, _value in pairs], compression=Compression.zstd
    )
    assert rig.append(data) == [True]


@pytest.mark.parametrize("together", [False, True], ids=["several batches", "one batch"])
def test_a_tombstone_behind_large_records_does_not_go_before_what_it_deletes(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = limits(cleanup_policy="compact", min_cleanable_dirty_ratio=0, delete_retention_ms=1_000)
    rig = LogRig({TOPIC: ("events", topic)})
    append(rig, (b"k", b"deleted"))
    large: list[Keyed] = [(b"a", bytes(70_000)), (b"b", bytes(70_000))]
    tombstone: list[Keyed] = [(b"k", None), (b"c", b"c")]
    for pairs in [large + tombstone] if together else [large[:1], large[1:], tombstone]:
        append(rig, *pairs)
    with monkeypatch.context() as patched:
        patched.setattr(decoder, "INFLATED_BATCH_MAX_BYTES", 100_000)
        for _ in range(4):
            append(rig, (b"f", b"f"))
            rig.advance(LOOK_MS + 1)
    assert [offset for offset in rig.values() if offset <= 4] == [1, 2, 4]
