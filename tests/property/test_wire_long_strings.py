"""No string of any message is longer than an int16 can say: both codecs, every API and version,
against kio's bytes."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.index import api_key_map

from fairlead_kafka.base.errors import DecodeError, UsageError
from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.wire import decode_request, decode_response, encode_request, encode_response, versions_of
from fairlead_kafka.wire.schemas import load_schema
from tests.support import wire_oracle as oracle


class _OneString:
    """Chooses lists of one item and nothing null; the string of number `place` is `length` bytes
    long, the others are short."""

    def __init__(self, place: int, length: int) -> None:
        self.left = place
        self.length = length

    def integer(self, low: int, high: int) -> int:
        return 0 if low <= 0 <= high else low

    def one_of(self, options: Any) -> Any:
        if options is oracle.TEXTS:
            self.left -= 1
            return "ü" * (self.length // 2) + "x" * (self.length % 2) if self.left == -1 else "short"
        sizes = type(options[0]) is int
        return 1 if sizes else next(option for option in options if option is not None)

    @property
    def used(self) -> bool:
        return self.left < 0


def _messages(api_key: int, version: int, direction: str, length: int) -> list[Any]:
    """An entity for each string of the message, in which that string is `length` bytes long."""
    found = []
    while True:
        choice = _OneString(len(found), length)
        entity = oracle.make(oracle.schema(api_key, version, direction), choice)
        if not choice.used:
            return found
        found.append(entity)


def _flexible(api_key: int) -> list[tuple[int, str]]:
    lowest, highest = versions_of(api_key)
    return [
        (version, direction)
        for version in range(lowest, highest + 1)
        for direction in ("request", "response")
        if load_schema(api_key, version, direction).body.flexible
    ]


@pytest.mark.parametrize("api_key", sorted(key for key in api_key_map if _flexible(key)))
def test_a_string_longer_than_its_record_could_hold_is_refused_both_ways(api_key: int) -> None:
    for version, direction in _flexible(api_key):
        for entity in _messages(api_key, version, direction, STRING_MAX_BYTES + 1):
            body, message = oracle.to_bytes(entity), oracle.to_message(entity)
            with pytest.raises(UsageError, match="32768 bytes of UTF-8; Kafka carries at most 32767"):
                (encode_request if direction == "request" else _respond)(
                    api_key, version, 1, *_client(direction), message
                )
            if direction == "request":
                frame = b"".join(
                    [api_key.to_bytes(2, "big"), version.to_bytes(2, "big"), bytes(4), b"\xff\xff\0", body]
                )
                with pytest.raises(DecodeError, match="claims a length of 32768"):
                    decode_request(memoryview(frame))
            else:
                header = (
                    bytes(5) if load_schema(api_key, version, direction).header_version == 1 else bytes(4)
                )
                with pytest.raises(DecodeError, match="claims a length of 32768"):
                    decode_response(api_key, version, memoryview(header + body))


def test_the_longest_string_that_there_can_be_passes_both_ways() -> None:
    for entity in _messages(11, 9, "request", STRING_MAX_BYTES):
        message = oracle.to_message(entity)
        frame = b"".join(encode_request(11, 9, 1, "client", message))
        assert decode_request(memoryview(frame)[4:]).message == message


def _client(direction: str) -> tuple[Any, ...]:
    return ("client",) if direction == "request" else ()


def _respond(api_key: int, version: int, correlation_id: int, message: Any) -> Any:
    return encode_response(api_key, version, correlation_id, message)
