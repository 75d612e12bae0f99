"""Bytes that are not what they claim to be raise DecodeError, and take no memory to speak of."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.wire import (
    CLIENT_VERSIONS,
    ApiKey,
    FrameReader,
    Message,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    versions_of,
)
from tests.support import wire_oracle as oracle

APIS = sorted(CLIENT_VERSIONS)


def frames(api_key: int, version: int, seed: int) -> tuple[bytes, bytes]:
    """A valid request and a valid response, without their size prefixes."""
    request = oracle.to_message(
        oracle.make(oracle.schema(api_key, version, "request"), oracle.SeededChoice(seed))
    )
    response = oracle.to_message(
        oracle.make(oracle.schema(api_key, version, "response"), oracle.SeededChoice(seed))
    )
    return (
        b"".join(encode_request(api_key, version, 1, "c", request))[4:],
        b"".join(encode_response(api_key, version, 1, response))[4:],
    )


def outcome_is_decode_error_or_message(decode: object, *arguments: object) -> bool:
    """True if it decoded; any exception but DecodeError comes through and fails the test."""
    try:
        decode(*arguments)  # type: ignore[operator]
    except DecodeError as error:
        if not 0 <= error.offset <= len(arguments[-1]):  # type: ignore[arg-type]
            raise AssertionError("the offset lies outside the frame") from error
        return False
    return True


@pytest.mark.parametrize("api_key", APIS)
@given(garbage=st.binary(max_size=120), pick=st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_garbage_raises_nothing_but_decode_error(api_key: ApiKey, garbage: bytes, pick: int) -> None:
    lowest, highest = versions_of(api_key)
    version = lowest + pick % (highest - lowest + 1)
    header = int(api_key).to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    outcome_is_decode_error_or_message(decode_request, memoryview(header + garbage))
    outcome_is_decode_error_or_message(decode_request, memoryview(header + b"\0" + garbage))
    outcome_is_decode_error_or_message(decode_response, api_key, version, memoryview(bytes(4) + garbage))
    outcome_is_decode_error_or_message(decode_response, api_key, version, memoryview(bytes(5) + garbage))


@given(garbage=st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_a_garbled_header_raises_nothing_but_decode_error(garbage: bytes) -> None:
    header = int(ApiKey.METADATA).to_bytes(2, "big") + (12).to_bytes(2, "big") + bytes(4)
    outcome_is_decode_error_or_message(decode_request, memoryview(header + garbage))
    outcome_is_decode_error_or_message(decode_response, ApiKey.METADATA, 12, memoryview(garbage))


@pytest.mark.parametrize("api_key", APIS)
def test_no_truncated_frame_decodes(api_key: ApiKey) -> None:
    for version in versions_of(api_key):
        request, response = map(memoryview, frames(api_key, version, 3))
        for size_bytes in range(0, len(request), 1 + len(request) // 300):
            assert not outcome_is_decode_error_or_message(decode_request, request[:size_bytes])
        for size_bytes in range(0, len(response), 1 + len(response) // 300):
            assert not outcome_is_decode_error_or_message(
                decode_response, api_key, version, response[:size_bytes]
            )


@pytest.mark.parametrize("api_key", APIS)
def test_bytes_after_the_message_are_refused(api_key: ApiKey) -> None:
    for version in versions_of(api_key):
        request, response = frames(api_key, version, 1)
        with pytest.raises(DecodeError, match="1 bytes are left over"):
            decode_request(memoryview(request + b"\0"))
        with pytest.raises(DecodeError, match="1 bytes are left over"):
            decode_response(api_key, version, memoryview(response + b"\0"))


@pytest.mark.parametrize("api_key", APIS)
@given(seed=st.integers(0, 5), where=st.integers(0, 10**6), what=st.binary(min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_a_valid_frame_with_bytes_overwritten_raises_nothing_but_decode_error(
    api_key: ApiKey, seed: int, where: int, what: bytes
) -> None:
    lowest, highest = versions_of(api_key)
    version = lowest + where % (highest - lowest + 1)
    request, response = map(bytearray, frames(api_key, version, seed))
    if len(request) > 12:
        position = 11 + where % (len(request) - 11)
        request[position : position + len(what)] = what
    outcome_is_decode_error_or_message(decode_request, memoryview(bytes(request)))
    position = 4 + where % max(1, len(response) - 4)
    response[position : position + len(what)] = what
    outcome_is_decode_error_or_message(decode_response, api_key, version, memoryview(bytes(response)))


@pytest.mark.parametrize(
    ("api_key", "version", "lie"),
    [
        (ApiKey.METADATA, 1, bytes(4) + b"\x7f\xff\xff\xff"),  # brokers, 2^31-1 of them
        (ApiKey.METADATA, 12, bytes(5) + bytes(4) + b"\xff\xff\xff\xff\x0f"),  # the same, compact, 2^32-1
        (ApiKey.FETCH, 16, bytes(5) + bytes(10) + b"\xff\xff\xff\xff\x07"),
        (ApiKey.PRODUCE, 9, bytes(5) + b"\xff\xff\xff\xff\x07"),
        (ApiKey.CREATE_TOPICS, 7, bytes(5) + bytes(4) + b"\xff\xff\xff\xff\x07"),
    ],
)
def test_a_list_that_claims_billions_of_elements_is_refused_before_memory_is_taken(
    api_key: ApiKey, version: int, lie: bytes
) -> None:
    decode_response(
        api_key, version, memoryview(b"".join(encode_response(api_key, version, 0, Message()))[4:])
    )  # compiled now
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="claims a length of"):
            decode_response(api_key, version, memoryview(lie + bytes(50)))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("api_key", "version", "body", "complaint"),
    [
        (ApiKey.METADATA, 1, b"\xff\xff\xff\xfe", "topics claims a length of -2"),
        (ApiKey.FIND_COORDINATOR, 0, b"\xff\xff", "key claims a length of -1"),
        (ApiKey.FIND_COORDINATOR, 0, b"\0\x05abc", "key claims a length of 5"),
        (ApiKey.FIND_COORDINATOR, 3, b"\0\x00\0\0", "key claims a length of -1"),
        (ApiKey.FIND_COORDINATOR, 3, b"\0\x80\x80\x80\x80\x80\x00", "longer than five bytes"),
        (ApiKey.FIND_COORDINATOR, 3, b"\0\xff\xff\xff\xff\x1f", "does not fit 32 bits"),
        (ApiKey.FIND_COORDINATOR, 3, b"\0\x02k\0\x01\x07\x05abc", "ends 2 bytes after the frame"),
        (ApiKey.FIND_COORDINATOR, 3, b"\x01\x07\x7fabc", "ends 124 bytes after the frame"),
        (ApiKey.FIND_COORDINATOR, 0, b"\0\x02\xc3\x28", "is not UTF-8"),
    ],
)
def test_lengths_that_cannot_be_are_named(api_key: ApiKey, version: int, body: bytes, complaint: str) -> None:
    header = int(api_key).to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    with pytest.raises(DecodeError, match=complaint):
        decode_request(memoryview(header + body))


def test_a_claimed_count_of_tags_is_no_reason_to_take_memory_either() -> None:
    empty = b"".join(encode_response(ApiKey.METADATA, 12, 0, Message()))[4:]
    with pytest.raises(DecodeError):
        decode_response(ApiKey.METADATA, 12, memoryview(empty[:-1] + b"\xff\xff\xff\xff\x0f"))


@given(
    payloads=st.lists(st.binary(max_size=50), max_size=12), cuts=st.lists(st.integers(0, 700), max_size=30)
)
@settings(max_examples=200, deadline=None)
def test_frames_come_out_the_same_however_the_bytes_are_split(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)
    reader = FrameReader(limit_bytes=50)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    frames = [frame for start, stop in itertools.pairwise(edges) for frame in reader.feed(stream[start:stop])]
    assert frames == payloads
    assert reader.held_bytes == 0
