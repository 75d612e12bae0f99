"""Frames from the bytes of a connection, however these were split on the way."""

from __future__ import annotations

import struct

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.limits import FRAME_SIZE_MAX_BYTES, RECEIVE_CHUNK_BYTES

LONG_FRAME_BYTES = RECEIVE_CHUNK_BYTES
"""A frame that lacks so many bytes gets memory of its own to be read into (`FrameReader.room`);
one that comes in a few pieces is joined."""
_SIZE = struct.Struct(">i")
_STRANGERS = (
    (
        b"\x16\x03",
        "a TLS handshake; the peer expects TLS here (security.protocol=SSL) and this is a plaintext "
        "connection",
    ),
    (b"\x15\x03", "a TLS alert; this plaintext connection leads to a TLS listener"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"HTTP", "an HTTP response"),
)


class FrameReader:
    """Cuts a stream of bytes into frames: a signed 32-bit size, then that many bytes.

    A frame that arrives inside one piece is a view into it; one that is spread over several is
    joined once. Memory is taken as bytes arrive, never by the size a peer claims; but `room` sets
    address space apart for one long frame, which becomes memory as it fills.
    """

    def __init__(self, limit_bytes: int = FRAME_SIZE_MAX_BYTES) -> None:
        self.limit_bytes = limit_bytes
        """The longest frame that is taken; may change between two frames."""
        self._pieces: list[bytes] = []  # received, not yet part of a whole frame
        self.held_bytes = 0
        """Bytes received that are not yet part of a whole frame."""
        self._wanted_bytes = 4  # size prefix included; 4 while the size is unknown
        self._long_frame: memoryview | None = None  # the long frame under way, size prefix included
        self._broken: DecodeError | None = None

    def feed(self, data: bytes | bytearray | memoryview) -> list[memoryview]:
        """The frames that `data` completes, without their size prefix.

        Raises `DecodeError` for a negative size or one above the limit, with the position in the
        bytes at hand; the stream is of no use from then on, and every further call raises the same.
        """
        if self._broken is not None:
            raise self._broken
        if self._long_frame is not None:
            return self._fill(self._long_frame, memoryview(data))
        piece = (
            data if type(data) is bytes else bytes(data)
        )  # frames are views: what they view must never change
        held_bytes = self.held_bytes + len(piece)
        if held_bytes < self._wanted_bytes:
            if piece:
                self._pieces.append(piece)
                self.held_bytes = held_bytes
            return []
        if self._pieces:
            self._pieces.append(piece)
            piece = b"".join(self._pieces)
        return self._cut(piece)

    def room(self) -> memoryview | None:
        """Memory for the rest of a long frame that has begun; None if none has, or it was given.

        A caller that reads straight into it saves two copies, and feeds the views of it that were
        filled, in order. Other bytes may be fed as always.
        """
        if self._long_frame is not None or self._wanted_bytes - self.held_bytes < LONG_FRAME_BYTES:
            return None
        import numpy as np  # memory that nobody clears first

        self._long_frame = memoryview(np.empty(self._wanted_bytes, np.uint8))  # type: ignore[arg-type]
        self._long_frame[: self.held_bytes] = b"".join(self._pieces)
        self._pieces = []
        return self._long_frame[self.held_bytes :]

    def _fill(self, frame: memoryview, data: memoryview) -> list[memoryview]:
        filled = min(self.held_bytes + len(data), len(frame))
        count = filled - self.held_bytes
        if data.obj is not frame.obj:
            frame[self.held_bytes : filled] = data[:count]
        self.held_bytes = filled
        if filled < len(frame):
            return []
        self._long_frame, self.held_bytes, self._wanted_bytes = None, 0, 4
        return [frame[4:].toreadonly(), *self.feed(data[count:])]

    def _cut(self, piece: bytes) -> list[memoryview]:
        view = memoryview(piece)
        frames: list[memoryview] = []
        position, end = 0, len(piece)
        self._wanted_bytes = 4
        while end - position >= 4:
            size_bytes: int = _SIZE.unpack_from(piece, position)[0]
            if not 0 <= size_bytes <= self.limit_bytes:
                raise self._refuse(piece, position, size_bytes)
            after = position + 4 + size_bytes
            if after > end:
                self._wanted_bytes = 4 + size_bytes
                break
            frames.append(view[position + 4 : after])
            position = after
        self.held_bytes = end - position
        self._pieces = [piece[position:]] if position < end else []
        return frames

    def _refuse(self, piece: bytes, position: int, size_bytes: int) -> DecodeError:
        for opening, what in _STRANGERS:
            if piece.startswith(opening, position):
                self._broken = DecodeError(f"this is not the Kafka protocol but {what}", position)
                break
        else:
            what = "is negative" if size_bytes < 0 else f"is above the limit of {self.limit_bytes} bytes"
            self._broken = DecodeError(f"a frame's size of {size_bytes} bytes {what}", position)
        self._pieces, self.held_bytes = [], 0
        return self._broken
