"""Varints of the wire at the edges of their lengths."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.wire.primitives import decode_varint, encode_varint


@pytest.mark.parametrize(
    ("value", "size_bytes"),
    [
        (0, 1),
        (2**7 - 1, 1),
        (2**7, 2),
        (2**14 - 1, 2),
        (2**14, 3),
        (2**21 - 1, 3),
        (2**21, 4),
        (2**28 - 1, 4),
        (2**28, 5),
        (2**32 - 1, 5),
    ],
)
def test_a_varint_has_seven_bits_a_byte(value: int, size_bytes: int) -> None:
    encoded = encode_varint(value)
    assert len(encoded) == size_bytes
    assert [byte >> 7 for byte in encoded] == [1] * (size_bytes - 1) + [0]
    assert sum((byte & 127) << 7 * place for place, byte in enumerate(encoded)) == value
    assert decode_varint(b"x" + encoded + b"y", 1) == (value, 1 + size_bytes)


@pytest.mark.parametrize("data", [encode_varint(2**32), b"\x80" * 5 + b"\x01"])
def test_more_than_32_bits_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_varint(data, 0)
