"""Requests that are invalid or not served: future versions, cut bodies, impossible lengths."""

from __future__ import annotations

import struct

from fairlead_kafka.lab.transcript.steps import Step, raw
from fairlead_kafka.wire import ApiKey, Message, encode_request
from fairlead_kafka.wire.messages import MetadataRequest

_HEADER = struct.Struct(">hhih")


def frame(data: bytes) -> bytes:
    """The bytes `data` with their size (32 bits) before them."""
    return struct.pack(">i", len(data)) + data


def header(api: int, version: int, client_id: bytes | None = b"transcript", correlation_id: int = 7) -> bytes:
    """A request header of version 1."""
    return _HEADER.pack(api, version, correlation_id, -1 if client_id is None else len(client_id)) + (
        client_id or b""
    )


def whole(api: ApiKey, version: int, **fields: object) -> bytes:
    """A whole request without its size."""
    return b"".join(encode_request(api, version, 7, "transcript", Message(**fields)))[4:]


_METADATA = whole(ApiKey.METADATA, 1, topics=[MetadataRequest.MetadataRequestTopic(name="x")])
_SERVED = (
    (ApiKey.PRODUCE, 2),
    (ApiKey.FETCH, 3),
    (ApiKey.LIST_OFFSETS, 0),
    (ApiKey.METADATA, 99),
    (ApiKey.OFFSET_COMMIT, 1),
    (ApiKey.OFFSET_FETCH, 0),
    (ApiKey.FIND_COORDINATOR, 50),
    (ApiKey.JOIN_GROUP, 50),
    (ApiKey.CREATE_TOPICS, 1),
    (ApiKey.DELETE_TOPICS, 0),
    (ApiKey.DESCRIBE_CONFIGS, 0),
    (ApiKey.INIT_PRODUCER_ID, 50),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, 1),
)

STEPS: list[Step] = [
    raw(
        "a version that is not known is answered in version 0",
        ApiKey.API_VERSIONS,
        frame(header(18, 99) + b"\0"),
    ),
    raw("a version below zero", ApiKey.API_VERSIONS, frame(header(18, -1) + b"\0")),
    *(
        raw(f"version {version}, which nobody serves", api, frame(header(api, version) + bytes(60)))
        for api, version in _SERVED
    ),
    raw("an API that is not there", ApiKey.METADATA, frame(header(999, 0))),
    raw("an API below zero", ApiKey.METADATA, frame(header(-5, 0))),
    raw("an API of controllers", ApiKey.VOTE, frame(header(ApiKey.VOTE, 0) + bytes(20))),
    raw("a header cut short", ApiKey.METADATA, frame(b"\0\3\0\1")),
    raw("a client id longer than its frame", ApiKey.METADATA, frame(_HEADER.pack(3, 1, 7, 400) + b"ab")),
    raw("no bytes at all", ApiKey.METADATA, frame(b"")),
    raw("a size below zero", ApiKey.METADATA, struct.pack(">i", -7) + b"abc"),
    raw("a size above the limit", ApiKey.METADATA, struct.pack(">i", 2**31 - 1) + b"abc"),
    raw("HTTP", ApiKey.METADATA, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    raw("a body cut short", ApiKey.METADATA, frame(_METADATA[:-1])),
    raw("no body", ApiKey.METADATA, frame(header(3, 1))),
    raw("a list that claims too much", ApiKey.METADATA, frame(header(3, 1) + struct.pack(">i", 2**30))),
    raw("a list of negative length", ApiKey.METADATA, frame(header(3, 1) + struct.pack(">i", -5))),
    raw(
        "text that is no UTF-8 cut short",
        ApiKey.METADATA,
        frame(header(3, 1) + struct.pack(">ih", 1, 9) + b"\xff"),
    ),
    raw("text of negative length", ApiKey.METADATA, frame(header(3, 1) + struct.pack(">ih", 1, -1))),
    raw("a flexible body cut short", ApiKey.METADATA, frame(header(3, 9) + b"\0\2")),
    raw("a Produce of nothing but zeros", ApiKey.PRODUCE, frame(header(0, 9) + b"\0\1")),
    raw("a Fetch cut short", ApiKey.FETCH, frame(header(1, 12) + b"\0\0\0")),
    raw("a JoinGroup cut short", ApiKey.JOIN_GROUP, frame(header(11, 5) + struct.pack(">h", 3) + b"abc")),
]
