"""What holds for any split of the bytes, any garbage and any order of events."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConnectionFailed, DecodeError
from fairlead_kafka.core import Metadata
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.effects import Close, Connect, Write
from fairlead_kafka.core.events import Connected, Received
from fairlead_kafka.wire import ApiKey, FrameReader, decode_request, encode_response
from tests.support.fake_broker import (
    Client,
    FakeBroker,
    Scene,
    list_offsets_request,
    metadata_message,
    partition_message,
    topic_message,
    versions_message,
)

NODES = {0: ("zero", 1), 1: ("one", 1), 2: ("two", 1)}


@given(chunk_bytes=st.integers(1, 200), latency_ms=st.sampled_from([0.0, 0.3, 7.0]), count=st.integers(1, 5))
@settings(max_examples=30)
def test_any_split_of_the_bytes_gives_the_same_answers(
    chunk_bytes: int, latency_ms: float, count: int
) -> None:
    scene = Scene(Client(), FakeBroker(), chunk_bytes=chunk_bytes, latency_ms=latency_ms)
    scene.until_ready()
    scene.send(count)
    assert [error for _response, error in scene.until_answers(count)] == [None] * count


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=6), st.integers(0, 4))
@settings(max_examples=60)
def test_garbage_gives_answers_or_fails_them_and_never_raises(pieces: list[bytes], good: int) -> None:
    client = Client()
    network = client.network
    network.advance(1, 0)
    assert isinstance(network.take_effects()[0], Connect)
    network.handle(Connected(1), 1, 0)
    _answer_all(client, good_until=2)
    sent = 0
    while sent < good and network.ready(0):
        network.send(0, ApiKey.LIST_OFFSETS, list_offsets_request(), client.on_done)
        sent += 1
    network.take_effects()
    for piece in pieces:
        network.handle(Received(1, piece), 2, 0)
    network.advance(3, 0)
    closed = any(isinstance(effect, Close) for effect in network.take_effects())
    assert all(
        error is None or isinstance(error, DecodeError | ConnectionFailed)
        for _response, error in client.answers
    )
    assert len(client.answers) == sent if closed else len(client.answers) <= sent


def _answer_all(client: Client, good_until: int) -> None:
    """Answer what the network wrote so far: versions, then metadata."""
    reader = FrameReader()
    for _ in range(good_until):
        client.network.advance(1, 0)
        for effect in client.network.take_effects():
            if not isinstance(effect, Write):
                continue
            for frame in reader.feed(b"".join(effect.buffers)):
                request = decode_request(frame)
                message = (
                    versions_message()
                    if request.api_key == ApiKey.API_VERSIONS
                    else metadata_message({0: ("broker", 9092)})
                )
                answer = b"".join(
                    encode_response(request.api_key, request.version, request.correlation_id, message)
                )
                client.network.handle(Received(effect.connection, answer), 1, 0)
    client.network.advance(1, 0)


leaders = st.tuples(st.integers(0, 2), st.integers(0, 6))
answer = st.lists(leaders, min_size=1, max_size=3)


@given(st.lists(st.one_of(answer, st.tuples(st.integers(0, 2), leaders), st.just("error")), max_size=12))
def test_a_leader_epoch_never_goes_back(history: list[object]) -> None:
    metadata = Metadata(CLIENT_CONFIGS.parse("producer", {"bootstrap.servers": "a:1"}), random.Random(0))
    metadata.want("t", 0)
    highest: dict[int, int] = {}
    for entry in history:
        if isinstance(entry, list):
            metadata.begin(0)
            partitions = [
                partition_message(index, leader, epoch) for index, (leader, epoch) in enumerate(entry)
            ]
            metadata.apply(metadata_message(NODES, [topic_message("t", partitions)]), 0)
        elif entry == "error":
            metadata.begin(0)
            metadata.apply(
                metadata_message(NODES, [topic_message("t", [], error_code=ErrorCode.LEADER_NOT_AVAILABLE)]),
                0,
            )
        else:
            index, (leader, epoch) = entry  # type: ignore[misc]
            metadata.saw_leader("t", index, leader, epoch)
        found = metadata.topic("t")
        for partition in found.partitions if found else []:
            assert partition.leader_epoch >= highest.get(partition.partition, -1)
            highest[partition.partition] = partition.leader_epoch


@given(st.floats(0, 10_000), st.floats(0, 100_000), st.integers(0, 200), st.integers())
def test_waits_stay_within_their_limit(first_ms: float, max_ms: float, failures: int, seed: int) -> None:
    wait_ms = Backoff(first_ms, max_ms).wait_ms(failures, random.Random(seed))
    assert 0 <= wait_ms <= max_ms
    assert wait_ms >= min(first_ms, max_ms) * 0.8 * (1 - 1e-9)
