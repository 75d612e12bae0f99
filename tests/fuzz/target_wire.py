"""Frames into FrameReader and the decoders: they raise DecodeError, or give a message that is
written and read again the same."""

from __future__ import annotations

from functools import cache

from fairlead_kafka.base.errors import DecodeError, UsageError
from fairlead_kafka.wire import (
    CLIENT_VERSIONS,
    ApiKey,
    FrameReader,
    Message,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    peek_request,
    versions_of,
)
from fairlead_kafka.wire.schemas import REQUEST, RESPONSE, load_schema
from tests.fuzz.messages import Words, garbled, make
from tests.fuzz.tape import Tape

APIS = sorted({*CLIENT_VERSIONS, *(ApiKey(key) for key in (27, 33, 43, 45, 46, 61, 68))})
VARIANTS_MAX = 32
FRAME_LIMIT_BYTES = 1 << 20
WORDS = Words()


@cache
def _structure(api_key: ApiKey, version: int, direction: str):  # type: ignore[no-untyped-def]
    return load_schema(api_key, version, direction).body


def run(tape: Tape) -> int:
    """One message, and up to 32 garbled variants of its frame."""
    api_key = tape.pick(APIS)
    lowest, highest = versions_of(api_key)
    version = lowest + tape.below(highest - lowest + 1)
    direction = REQUEST if tape.chance(128) else RESPONSE
    message = make(_structure(api_key, version, direction), tape, WORDS)
    data = _encode(api_key, version, direction, message)
    if data is None:
        return 1
    assert decodes(api_key, version, direction, data[4:]), "what we wrote does not decode"
    for nth in range(VARIANTS_MAX):
        if tape.ended:
            return nth + 1
        changed = garbled(data, tape)
        if tape.chance(200):  # the frame's size is right, and the lie is further in
            changed = len(changed[4:]).to_bytes(4, "big") + changed[4:]
        for frame in _frames(changed, tape):
            decodes(api_key, version, direction, frame)
    return VARIANTS_MAX + 1


def decodes(api_key: ApiKey, version: int, direction: str, frame: bytes | memoryview) -> bool:
    """Whether a frame decodes. Then it must be written and read again as the same; else the error's
    byte must be in the frame."""
    view = memoryview(frame)
    try:
        if direction == REQUEST:
            header = peek_request(view)
            # A header that names another API or version would only lead to another decoder: it has
            # its own turns.
            header.api_key, header.version = api_key, version
            message = decode_request(view, header).message
        else:
            message = decode_response(api_key, version, view)
    except DecodeError as error:
        if not 0 <= error.offset <= len(view):
            raise AssertionError(
                f"byte {error.offset} lies outside of the frame of {len(view)} bytes"
            ) from error
        return False
    once = _encode(api_key, version, direction, message)
    assert once is not None, "what was decoded cannot be written"
    again = (
        decode_request(memoryview(once)[4:]).message
        if direction == REQUEST
        else decode_response(api_key, version, memoryview(once)[4:])
    )
    assert _encode(api_key, version, direction, again) == once, "what was written again reads otherwise"
    return True


def _encode(api_key: ApiKey, version: int, direction: str, message: Message) -> bytes | None:
    try:
        encoded = (
            encode_request(api_key, version, 7, "f", message)
            if direction == REQUEST
            else encode_response(api_key, version, 7, message)
        )
    except UsageError:
        return None  # text too long for a length of 16 bits, a number outside of its field
    return b"".join(bytes(each) for each in encoded)


def _frames(stream: bytes, tape: Tape) -> list[memoryview]:
    """The frames of a stream, delivered in pieces; the reader holds no more than it was given."""
    reader = FrameReader(FRAME_LIMIT_BYTES)
    frames: list[memoryview] = []
    size = tape.pick((1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1, 7, 64))
    try:
        for start in range(0, min(len(stream), 64 * size), size):
            frames += reader.feed(stream[start : start + size])
            assert reader.held_bytes <= len(stream)
    except DecodeError:
        return frames
    return frames
