"""The tail of the log in memory: what is there is what the file holds, whatever was appended, taken
back or given up."""

from __future__ import annotations

import random

import pytest

from fairlead_kafka.broker.log import cache as cache_module
from fairlead_kafka.broker.log.cache import TailCache
from fairlead_kafka.broker.log.entry import ENTRY_HEADER_BYTES
from fairlead_kafka.broker.log.index import Location


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(cache_module, "COPIED_BYTES", 200)


def batch_at(position: int, entry: bytes) -> Location:
    """Where the batch of an entry lies that was appended to file 1."""
    return Location(1, position + ENTRY_HEADER_BYTES, len(entry) - ENTRY_HEADER_BYTES)


def entry_of(size_bytes: int, letter: bytes) -> bytes:
    return b"h" * ENTRY_HEADER_BYTES + letter * (size_bytes - ENTRY_HEADER_BYTES)


def test_a_batch_is_found_by_where_it_lies() -> None:
    tail = TailCache(10_000)
    first, second = entry_of(300, b"a"), entry_of(400, b"b")
    tail.add(1, 50, first)
    tail.add(1, 350, second)
    tail.check()
    assert tail.get(batch_at(50, first)) == first[ENTRY_HEADER_BYTES:]
    assert tail.entry(batch_at(350, second)) == second
    assert tail.get(batch_at(350, second)) == second[ENTRY_HEADER_BYTES:]
    for missing in (
        Location(2, 50 + ENTRY_HEADER_BYTES, 10),
        Location(1, 10, 10),
        Location(1, 740, 20),
        Location(0, 60, 10),
    ):
        assert tail.get(missing) is None


def test_an_entry_lies_in_one_block_however_large() -> None:
    tail = TailCache(10_000)
    tail.add(1, 0, entry_of(900, b"a"))
    tail.add(1, 900, entry_of(200, b"b"))
    tail.add(1, 1_100, entry_of(5_000, b"c"))
    tail.check()
    assert tail.get(batch_at(900, entry_of(200, b"b"))) == entry_of(200, b"b")[ENTRY_HEADER_BYTES:]
    assert tail.get(batch_at(1_100, entry_of(5_000, b"c"))) == entry_of(5_000, b"c")[ENTRY_HEADER_BYTES:]
    assert tail._size_bytes == 1_000 + 1_000 + 5_000


def test_the_oldest_block_goes_first_and_what_is_too_large_is_not_kept() -> None:
    tail = TailCache(3_000)
    for number in range(10):
        tail.add(1, number * 600, entry_of(600, b"%d" % number))
        tail.check()
    assert [
        number for number in range(10) if tail.get(batch_at(number * 600, entry_of(600, b"x"))) is not None
    ] == [7, 8, 9]
    tail.add(1, 6_000, entry_of(4_000, b"y"))
    assert tail.get(batch_at(6_000, entry_of(4_000, b"y"))) is None
    tail.add(1, 10_000, entry_of(100, b"z"))
    tail.check()
    assert tail.get(batch_at(10_000, entry_of(100, b"z"))) is not None


def test_what_somebody_looks_at_stays_as_it_was() -> None:
    tail = TailCache(2_000)
    entry = entry_of(500, b"a")
    tail.add(1, 0, entry)
    seen = tail.get(batch_at(0, entry))
    tail.rewind(1, 0)
    tail.add(1, 0, entry_of(500, b"b"))
    for number in range(20):
        tail.add(1, 500 * (number + 1), entry_of(500, b"c"))
    assert seen == entry[ENTRY_HEADER_BYTES:]
    assert isinstance(seen, memoryview)
    assert seen.readonly


def test_a_small_batch_is_a_copy_and_keeps_no_block() -> None:
    tail = TailCache(2_000)
    small = entry_of(ENTRY_HEADER_BYTES + 50, b"a")
    tail.add(1, 0, small)
    assert isinstance(tail.get(batch_at(0, small)), bytes)


def test_pages_are_used_again_unless_somebody_looks_at_them() -> None:
    tail = TailCache(2_000)
    kept, position = [], 0
    for number in range(40):
        entry = entry_of(900, b"%c" % (65 + number % 26))
        tail.add(1, position, entry)
        if number % 3 == 0:
            kept.append((tail.get(batch_at(position, entry)), entry[ENTRY_HEADER_BYTES:]))
        position += 900
        tail.check()
    assert all(held == wanted for held, wanted in kept)


def test_any_history_leaves_what_the_file_holds() -> None:
    rng = random.Random(1)
    for _ in range(50):
        tail, files, entries = (
            TailCache(rng.choice([0, 500, 3_000, 20_000])),
            {1: b""},
            dict[tuple[int, int], bytes](),
        )
        file = 1
        for _ in range(rng.randint(1, 200)):
            kind = rng.random()
            if kind < 0.85:
                entry = bytes(rng.choices(range(256), k=ENTRY_HEADER_BYTES + rng.choice([1, 20, 300, 1_500])))
                entries[file, len(files[file])] = entry
                tail.add(file, len(files[file]), entry)
                files[file] += entry
            elif kind < 0.95:
                file += 1
                files[file] = b""
            else:
                back = rng.choice(
                    [place for place in [*entries, (file, len(files[file]))] if place[0] >= file - 1]
                )
                entries = {place: entry for place, entry in entries.items() if place < back}
                for number in [number for number in files if number > back[0]]:
                    del files[number]
                files[back[0]] = files[back[0]][: back[1]]
                file = back[0]
                tail.rewind(*back)
            tail.check()
        found = 0
        for (number, position), entry in entries.items():
            location = Location(number, position + ENTRY_HEADER_BYTES, len(entry) - ENTRY_HEADER_BYTES)
            held = tail.entry(location)
            assert held is None or held == entry
            found += held is not None
        if entries and tail._limit_bytes >= 3_000 and kind < 0.85:
            assert found
