"""Requests that only Fairlead's brokers send each other: framed and numbered like Kafka's, with an
opaque body.

Their keys lie far above Kafka's and are not in ApiVersions. In a message `body` is a list of
buffers when it is encoded, and one view into the frame when it was decoded; its content is defined
by the module that sends it.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from fairlead_kafka.wire.message import ApiMessage, Message
from fairlead_kafka.wire.primitives import Buffer

PRIVATE_FIRST = 10_000
_SIZE = struct.Struct(">i")


class PrivateApi(IntEnum):
    """The keys of private requests."""

    REPLICATE = 10_000
    DELETE_SHARE_STATE = 10_001


def encode_body(message: ApiMessage, header: bytes) -> list[Buffer]:
    """The frame of a private request or response; the buffers of its body appear as they are."""
    assert isinstance(message, Message), "private messages have no class of their own"
    body: list[Buffer] = message.body
    size_bytes = len(header) + sum(map(len, body))
    return [_SIZE.pack(size_bytes) + header, *body]


def decode_body(data: memoryview, position: int) -> Message:
    """The message whose body begins at `position` of a frame."""
    return Message(body=data[position:])
