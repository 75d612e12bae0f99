"""Frames come out of a stream whole, however it is cut and whoever reads it: into memory of its
own, or into the reader's room."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.wire import FrameReader
from fairlead_kafka.wire.frames import LONG_FRAME_BYTES

LENGTHS = st.sampled_from(
    [0, 1, 5, 1000, LONG_FRAME_BYTES - 5, LONG_FRAME_BYTES, LONG_FRAME_BYTES + 1, 3 * LONG_FRAME_BYTES]
)


def frame(nth: int, length: int) -> bytes:
    """A frame with a content of its own."""
    content = bytes((nth + each) % 251 for each in range(251)) * (length // 251 + 1)
    return struct.pack(">i", length) + content[:length]


@given(
    st.lists(LENGTHS, max_size=6),
    st.lists(st.tuples(st.integers(1, 2 * LONG_FRAME_BYTES), st.booleans(), st.booleans()), max_size=40),
)
def test_every_frame_is_what_was_sent(lengths: list[int], reads: list[tuple[int, bool, bool]]) -> None:
    """`reads`: how many bytes come, whether the room is asked for before, and whether a host uses
    it then, as it may."""
    stream = memoryview(b"".join(frame(nth, length) for nth, length in enumerate(lengths)))
    reader = FrameReader()
    found: list[bytes] = []
    room: memoryview | None = None
    position = 0
    for size_bytes, asks, uses in [*reads, *[(len(stream), True, True)] * (2 * len(lengths) + 1)]:
        if asks:
            room = reader.room() or room
        if room and uses:
            piece = stream[position : position + min(size_bytes, len(room))]
            room[: len(piece)] = piece
            read, room = room[: len(piece)], room[len(piece) :]
        else:
            read = memoryview(bytes(stream[position : position + size_bytes]))
            room = room[len(read) :] if room else None
        position += len(read)
        found += [bytes(each) for each in reader.feed(read)]
    assert found == [frame(nth, length)[4:] for nth, length in enumerate(lengths)]
    assert reader.held_bytes == 0


def test_the_room_of_a_frame_is_told_once_and_only_for_a_long_one() -> None:
    reader = FrameReader()
    assert reader.room() is None
    reader.feed(frame(0, LONG_FRAME_BYTES)[:4])
    assert reader.room() is not None
    assert reader.room() is None
    short = FrameReader()
    short.feed(frame(0, LONG_FRAME_BYTES)[:10])
    assert short.room() is None
