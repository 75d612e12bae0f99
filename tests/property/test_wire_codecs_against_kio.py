"""Every codec against kio's own writers and readers, byte for byte, in every version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.index import api_key_map

from fairlead_kafka.wire import (
    ApiKey,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    versions_of,
)
from tests.support import wire_oracle as oracle

HOT = [
    (key, version)
    for key in (ApiKey.PRODUCE, ApiKey.FETCH)
    for version in range(versions_of(key)[0], versions_of(key)[1] + 1)
]


def check_request(api_key: int, version: int, entity: object) -> None:
    expected = oracle.to_bytes(entity)
    buffers = encode_request(api_key, version, 77, "client", oracle.to_message(entity))
    frame = b"".join(buffers)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header_bytes = len(frame) - len(expected)
    assert frame[header_bytes:] == expected
    assert oracle.from_bytes(type(entity), frame[header_bytes:]) == (entity, len(expected))
    request = decode_request(memoryview(frame)[4:])
    assert (request.api_key, request.version, request.correlation_id, request.client_id) == (
        api_key,
        version,
        77,
        "client",
    )
    assert request.message == oracle.to_message(entity)


def check_response(api_key: int, version: int, entity: object) -> None:
    expected = oracle.to_bytes(entity)
    buffers = encode_response(api_key, version, -5, oracle.to_message(entity))
    frame = b"".join(buffers)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[len(frame) - len(expected) :] == expected
    assert oracle.from_bytes(type(entity), expected) == (entity, len(expected))
    assert decode_response(api_key, version, memoryview(frame)[4:]) == oracle.to_message(entity)


@pytest.mark.parametrize(("api_key", "version"), HOT)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_produce_and_fetch_requests_are_kios_bytes(api_key: int, version: int, data: st.DataObject) -> None:
    check_request(
        api_key,
        version,
        oracle.make(oracle.schema(api_key, version, "request"), oracle.HypothesisChoice(data)),
    )


@pytest.mark.parametrize(("api_key", "version"), HOT)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_produce_and_fetch_responses_are_kios_bytes(api_key: int, version: int, data: st.DataObject) -> None:
    check_response(
        api_key,
        version,
        oracle.make(oracle.schema(api_key, version, "response"), oracle.HypothesisChoice(data)),
    )


@pytest.mark.parametrize("api_key", sorted(api_key_map))
def test_every_version_of_every_api_has_kios_bytes(api_key: int) -> None:
    lowest, highest = versions_of(api_key)
    for version in range(lowest, highest + 1):
        for seed in range(6):
            check_request(
                api_key,
                version,
                oracle.make(oracle.schema(api_key, version, "request"), oracle.SeededChoice(seed)),
            )
            check_response(
                api_key,
                version,
                oracle.make(oracle.schema(api_key, version, "response"), oracle.SeededChoice(seed)),
            )
