"""Requests and responses to frames and back: the header rules, and one compiled codec per API,
version and direction."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Generic, TypeVar, overload

from fairlead_kafka.base.errors import DecodeError, UsageError
from fairlead_kafka.base.limits import REQUEST_ELEMENTS_MAX
from fairlead_kafka.wire.api import ApiKey
from fairlead_kafka.wire.compile_decoder import (
    Decode,
    DecodeCounting,
    compile_counting_decoder,
    compile_decoder,
)
from fairlead_kafka.wire.compile_encoder import Encode, compile_encoder
from fairlead_kafka.wire.message import ApiMessage, Message
from fairlead_kafka.wire.primitives import Buffer, decode_varint, skip_tags
from fairlead_kafka.wire.private import PRIVATE_FIRST, PrivateApi, decode_body, encode_body
from fairlead_kafka.wire.schemas import REQUEST, RESPONSE, load_schema

_REQUEST_HEADER = struct.Struct(">hhih")  # key, version, correlation id, length of the client id
_CORRELATION_ID = struct.Struct(">i")
_API_KEYS: dict[int, ApiKey | PrivateApi] = {int(api_key): api_key for api_key in (*ApiKey, *PrivateApi)}


@dataclass(slots=True)
class RequestHeader:
    """The part of a request's header that all versions have; it ends at `size_bytes`.

    `api_key` is an `ApiKey` or `PrivateApi` if the number is known, else an int.
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    size_bytes: int

    @property
    def name(self) -> str:
        """The API's name, or its number if that is not known."""
        return self.api_key.name if isinstance(self.api_key, IntEnum) else f"API key {self.api_key}"


M = TypeVar("M", bound=ApiMessage)


@dataclass(slots=True)
class Request(Generic[M]):
    """A decoded request."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: M
    elements: int = 0
    """Elements of all its arrays together."""


@cache
def _encoder(api_key: int, version: int, direction: str) -> tuple[Encode, int]:
    """The encoder of one message, and the version of its header."""
    if api_key >= PRIVATE_FIRST:
        return encode_body, 0
    schema = load_schema(api_key, version, direction)
    return compile_encoder(schema), schema.header_version


@cache
def _request_decoder(api_key: int, version: int) -> tuple[DecodeCounting, int]:
    """The decoder of a request, and the version of its header."""
    if api_key >= PRIVATE_FIRST:
        return _decode_private_request, 0
    schema = load_schema(api_key, version, REQUEST)
    return compile_counting_decoder(schema, REQUEST_ELEMENTS_MAX), schema.header_version


@cache
def _response_decoder(api_key: int, version: int) -> tuple[Decode, int]:
    """The decoder of a response, and the version of its header."""
    if api_key >= PRIVATE_FIRST:
        return decode_body, 0
    schema = load_schema(api_key, version, RESPONSE)
    return compile_decoder(schema), schema.header_version


def _decode_private_request(data: memoryview, position: int) -> tuple[Message, int]:
    return decode_body(data, position), 0


def prepare(api_key: int, version: int) -> None:
    """Make the codecs of a request and its response now; otherwise that is done when one is first
    needed."""
    for direction in (REQUEST, RESPONSE):
        _encoder(api_key, version, direction)
    _request_decoder(api_key, version)
    _response_decoder(api_key, version)


def forget() -> None:
    """Drop all codecs; each is made again when it is needed. For tests that change how codecs are
    made."""
    _encoder.cache_clear()
    _request_decoder.cache_clear()
    _response_decoder.cache_clear()


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, message: ApiMessage
) -> list[Buffer]:
    """The request as buffers to write one after another, size prefix included; record buffers
    appear as they are.

    Fields that the version lacks are dropped, missing ones get the schema's default. Raises
    `UsageError` for a field name that no version has or a value that does not fit its field,
    `UnsupportedVersion` for a version whose schema is not known. One field moved under another
    name: from Fetch 15 on, a follower's `replica_id` is `replica_state.replica_id` (KIP-903); a
    follower sets both, a consumer neither.
    """
    encode, header_version = _encoder(api_key, version, REQUEST)
    client = b"" if client_id is None else client_id.encode()
    try:
        header = (
            _REQUEST_HEADER.pack(api_key, version, correlation_id, -1 if client_id is None else len(client))
            + client
        )
    except struct.error as error:
        sizes = (
            f"correlation id {correlation_id} must fit int32, the length {len(client)} of the client id int16"
        )
        raise UsageError(f"{sizes}: {error}") from error
    return encode(message, header + b"\0" if header_version == 2 else header)


def encode_response(api_key: int, version: int, correlation_id: int, message: ApiMessage) -> list[Buffer]:
    """The response as buffers, size prefix included; `records` may be a buffer or a list of
    buffers, and is not copied.

    Raises UsageError for a field that no version has or a value that does not fit, and
    UnsupportedVersion for an unknown API or version.
    """
    encode, header_version = _encoder(api_key, version, RESPONSE)
    header = _CORRELATION_ID.pack(correlation_id)
    return encode(message, header + b"\0" if header_version == 1 else header)


def response_correlation_id(frame: memoryview) -> int:
    """The correlation id of a response frame (without its size prefix). Raises `DecodeError` if the
    frame is too short."""
    if len(frame) < 4:
        raise DecodeError(f"a response of {len(frame)} bytes has no room for its correlation id", len(frame))
    correlation_id: int = _CORRELATION_ID.unpack_from(frame)[0]
    return correlation_id


@overload
def decode_response(api_key: int, version: int, frame: memoryview) -> Message: ...
@overload
def decode_response(api_key: int, version: int, frame: memoryview, expected: type[M]) -> M: ...
def decode_response(
    api_key: int, version: int, frame: memoryview, expected: type[ApiMessage] = Message
) -> ApiMessage:
    """The message in a response frame (without its size prefix). Records are memoryviews into the
    frame.

    `expected` is the response's class in `wire.messages`, for type checkers alone: it is not looked
    at. Raises `DecodeError` if the bytes are not such a response, `UnsupportedVersion` if its
    schema is not known.
    """
    decode, header_version = _response_decoder(api_key, version)
    data = memoryview(frame)
    response_correlation_id(data)
    return decode(data, _skip_header_tags(data, 4) if header_version == 1 else 4)


def peek_request(frame: memoryview) -> RequestHeader:
    """The part of a request's header that every version of it has, whether or not the API and
    version are known.

    A broker reads this first, so that it can answer a version it does not serve: for ApiVersions
    with a version 0 body that carries error 35 and the range it does serve (KIP-511). Raises
    `DecodeError`.
    """
    data = memoryview(frame)
    if len(data) < _REQUEST_HEADER.size:
        raise DecodeError(f"a request of {len(data)} bytes has no room for its header", len(data))
    api_key, version, correlation_id, length = _REQUEST_HEADER.unpack_from(data)
    position = _REQUEST_HEADER.size
    client_id = None
    if length != -1:
        end = position + length
        if length < 0 or end > len(data):
            raise DecodeError(f"the client id claims a length of {length}, which cannot be", position)
        try:
            client_id = str(data[position:end], "utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError(f"the client id is not UTF-8: {error.reason}", position) from None
        position = end
    return RequestHeader(_API_KEYS.get(api_key, api_key), version, correlation_id, client_id, position)


@overload
def decode_request(frame: memoryview, header: RequestHeader | None = None) -> Request[Message]: ...
@overload
def decode_request(frame: memoryview, header: RequestHeader, expected: type[M]) -> Request[M]: ...
def decode_request(
    frame: memoryview, header: RequestHeader | None = None, expected: type[ApiMessage] = Message
) -> Request[Any]:
    """The request in a frame (without its size prefix); `header` is what `peek_request` gave, if it
    was asked already. `expected` is as in `decode_response`.

    Records are memoryviews into the frame. Raises `DecodeError` if the bytes are not such a request
    or its arrays have more than `limits.REQUEST_ELEMENTS_MAX` elements, `UnsupportedVersion` if its
    API or version is not known (`peek_request` then tells what to answer, and to whom).
    """
    header = header or peek_request(frame)
    decode, header_version = _request_decoder(header.api_key, header.version)
    data = memoryview(frame)
    position = _skip_header_tags(data, header.size_bytes) if header_version == 2 else header.size_bytes
    message, elements = decode(data, position)
    return Request(header.api_key, header.version, header.correlation_id, header.client_id, message, elements)


def _skip_header_tags(data: memoryview, position: int) -> int:
    try:
        count, position = decode_varint(data, position)
        return skip_tags(data, position, count)
    except IndexError:
        raise DecodeError("the frame ends inside its header", len(data)) from None
