"""The bytes of a replication stream there and back, and whatever else may come."""

from __future__ import annotations

import contextlib
import random

import pytest

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.broker.replication.rules import FOLLOW, LogMatch, Step
from fairlead_kafka.broker.replication.stream import (
    Answer,
    Mark,
    Meeting,
    PartitionOutcome,
    Pull,
    decode_answer,
    decode_pull,
    encode_answer,
    encode_nudge,
    encode_pull,
    key_of,
    number_of,
)
from fairlead_kafka.wire import Message, PrivateApi, encode_request
from tests.support.broker_driver import Driver

ONE, OTHER = key_of(bytes(range(16)), 0), key_of(bytes(range(16)), 2**31 - 1)
PULL = Pull(3, 17, 9, 500, 1 << 20, [OTHER], [Meeting(ONE, 4, 2**62, 3), Meeting(OTHER, 0, 0, -1)])
OUTCOMES = [PartitionOutcome(ONE, 0, LogMatch(Step.TRUNCATE, 2, 100)), PartitionOutcome(OTHER, 74, FOLLOW)]
MARKS = [Mark(ONE, 2**62, 5)]


def joined(buffers: object) -> memoryview:
    return memoryview(b"".join(buffers))  # type: ignore[call-overload]


def answer_bytes() -> memoryview:
    return joined(encode_answer(0, 10, OUTCOMES, MARKS, [(ONE, 5), (OTHER, 0)], [b"ab", b"cde"]))


def test_a_key_is_a_topic_and_a_number() -> None:
    assert (len(OTHER), OTHER[:16], number_of(OTHER)) == (20, bytes(range(16)), 2**31 - 1)


def test_a_pull_arrives_as_it_was_sent() -> None:
    assert decode_pull(joined(encode_pull(PULL))) == PULL
    assert decode_pull(joined(encode_pull(PULL._replace(dropped=[], meetings=[])))) == PULL._replace(
        dropped=[], meetings=[]
    )


def test_a_nudge_is_no_pull() -> None:
    assert decode_pull(joined(encode_nudge(3))) is None


def test_an_answer_arrives_as_it_was_sent() -> None:
    answer = decode_answer(answer_bytes())
    assert answer == Answer(0, 10, OUTCOMES, MARKS, [(ONE, memoryview(b"abcde")), (OTHER, memoryview(b""))])


@pytest.mark.parametrize("kind", ["pull", "answer"])
def test_nothing_cut_short_or_too_long_decodes(kind: str) -> None:
    whole, decode = (
        (joined(encode_pull(PULL)), decode_pull) if kind == "pull" else (answer_bytes(), decode_answer)
    )
    for size_bytes in range(len(whole)):
        with pytest.raises(DecodeError):
            decode(whole[:size_bytes])
    with pytest.raises(DecodeError):
        decode(memoryview(bytes(whole) + b"\0"))


@pytest.mark.parametrize("seed", range(20))
def test_garbage_is_one_kind_of_error(seed: int) -> None:
    rng = random.Random(seed)
    for whole, decode in ((joined(encode_pull(PULL)), decode_pull), (answer_bytes(), decode_answer)):
        garbled = bytearray(whole)
        for _ in range(rng.randrange(1, 8)):
            garbled[rng.randrange(len(garbled))] = rng.randrange(256)
        with contextlib.suppress(DecodeError):
            decode(memoryview(garbled))


@pytest.mark.parametrize(
    "body",
    [b"", b"\x07", b"\0" * 36, b"\0" * 29 + b"\xff\xff\xff\xff" + b"\0" * 4, b"\0" * 29 + b"\0\0\0\1" * 2],
)
def test_a_stranger_s_garbage_on_a_stream_closes_its_connection_and_is_no_fault_of_the_broker(
    body: bytes,
) -> None:
    driver = Driver()
    client = driver.connect()
    client.send_bytes(b"".join(encode_request(PrivateApi.REPLICATE, 0, 1, "x", Message(body=[body]))))
    assert client.closed
    assert driver.broker.errors == 0
