"""wire: requests and responses to frames of bytes and back. Record batches are opaque here;
`records` owns them.

Theory of operation. Outside this room a request or response is a `Message`: a bag of attributes
named as Kafka's JSON definitions name them, the same for all versions of an API. Callers set and
read fields by name; the fields of a version, the width of lengths and the defaults of missing
fields are decided here.

Schemas are read from a file (`schemas`) that is written out of kio, which generates its classes
from Kafka's own definitions. kio itself is in no program: its classes take long to load; its native
reader allocates by the length an array claims, and nine hostile bytes abort the process; it refuses
error codes younger than itself; its writer makes one call per field. It is the oracle in the tests.
Every schema is compiled on first use, as `dataclasses` and `namedtuple` do it, to one straight-line
Python function (`compile_decoder`, `compile_encoder`; `source` holds the lines). Neighbouring
numbers cost one `struct` call, a nested structure is a loop in place, and nothing is looked up by
reflection at run time. Produce and Fetch need no codec of their own: a partition costs one to two
microseconds either way, and record bytes are never touched. When encoding, record buffers appear as
they are in the list of buffers returned; when decoding, `records` is a view into the frame.

Trust. A decoder compares every length with the rest of the frame before it allocates memory, skips
tags it does not know, insists on consuming the frame to its last byte, and raises `DecodeError`
with the byte offset, and nothing else, for bytes that are not what they should be. Error codes pass
through as numbers. An encoder refuses, with `UsageError` naming the field (`diagnose`), a value
that does not fit and a name that no version has (`lineage`): a mistyped name must not become a
default.

Headers. Flexible versions have request header 2 and response header 1, the others 1 and 0; an
ApiVersions response always has header 0, because its reader does not yet know its broker's versions
(KIP-511). `peek_request` reads what all request headers share, so that a broker can answer even an
unknown version. Private requests (`private`) have header 1 and 0.

A schema is decoded, and its codec compiled, with the first message of its version: one or two
milliseconds.
"""

from fairlead_kafka.wire.api import (
    CLIENT_VERSIONS,
    NEEDED_FIELDS,
    TRANSACTION_VERSION,
    ApiKey,
    ceiling,
    negotiate,
    refuse_lost_fields,
)
from fairlead_kafka.wire.codec import (
    Request,
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    peek_request,
    prepare,
    response_correlation_id,
)
from fairlead_kafka.wire.frames import FrameReader
from fairlead_kafka.wire.message import ApiMessage, Message, RequestMessage
from fairlead_kafka.wire.primitives import Buffer
from fairlead_kafka.wire.private import PRIVATE_FIRST, PrivateApi
from fairlead_kafka.wire.schemas import versions_of

__all__ = [
    "ApiKey",
    "ApiMessage",
    "Buffer",
    "CLIENT_VERSIONS",
    "FrameReader",
    "Message",
    "NEEDED_FIELDS",
    "refuse_lost_fields",
    "PRIVATE_FIRST",
    "PrivateApi",
    "Request",
    "RequestHeader",
    "RequestMessage",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "ceiling",
    "negotiate",
    "TRANSACTION_VERSION",
    "peek_request",
    "prepare",
    "response_correlation_id",
    "versions_of",
]
