"""The private protocol between a broker and the controller: frames as in Kafka's protocol (a size,
then bytes), whose first byte is their kind.

| kind | from | content |
|---|---|---|
| join | broker | JSON: {"token", "node_id"} |
| decide | broker | JSON: [number, decision], see `plain` |
| beat | either | nothing: the sender is there |
| image | controller | the metadata log that folds to the image as it is now |
| line | controller | one line of the metadata log |
| answer | controller | JSON: [number, result, error or null] |
| refusal | controller | text: why the broker may not join; the connection ends |

The controller sends an answer after the lines of the decision that it answers, so a broker that
reads an answer has applied them.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from fairlead_kafka.core.effects import Buffer

FRAME_MAX_BYTES = 2**31 - 1
"""Largest frame between a broker that has joined and the controller: as much as a size can say. An
image has no bound of its own, and a broker that could not read it could not start."""


class Kind(IntEnum):
    """Kind of a frame: the first byte after its size."""

    JOIN = 1
    DECIDE = 2
    BEAT = 3
    IMAGE = 4
    LINE = 5
    ANSWER = 6
    REFUSAL = 7


def frame(kind: Kind, content: bytes = b"") -> list[Buffer]:
    """The bytes of one frame."""
    head = struct.pack(">iB", 1 + len(content), kind)
    return [head, content] if content else [head]
