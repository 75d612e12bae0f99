"""What is not Kafka's protocol, on a broker's port: that connection ends, the broker and everyone
else's connections go on."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator

import google_crc32c
import pytest

import fairlead_kafka
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.wire import ApiKey, Message, encode_request
from tests.support.broker_driver import batch, produce_fields
from tests.support.waiting import PATIENCE_S
from tests.support.wire_client import Wire, addresses, create

RNG = random.Random(11)
STRANGERS = {
    "random bytes": b"\x7f" + RNG.randbytes(300),
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS handshake": b"\x16\x03\x01\x02\x00" + RNG.randbytes(100),
    "a frame of 2 GiB": struct.pack(">i", 2**31 - 1) + b"x" * 100,
    "a negative size": struct.pack(">i", -1) + b"x" * 10,
    "an empty frame": struct.pack(">i", 0),
    "a frame too short for a header": struct.pack(">i", 3) + b"abc",
    "an API that there is not": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "a version that there is not": struct.pack(">ihhih", 10, 3, 99, 1, -1),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        yield cluster


@pytest.fixture
def neighbour(cluster: fairlead_kafka.Cluster) -> Iterator[Wire]:
    """A connection in good order, which must work before and after."""
    with Wire(addresses(cluster)[0]) as wire:
        assert wire.ask(ApiKey.API_VERSIONS, 0).error_code == 0
        yield wire
        assert wire.ask(ApiKey.API_VERSIONS, 0).error_code == 0


def connect(cluster: fairlead_kafka.Cluster) -> socket.socket:
    return socket.create_connection((cluster.broker(0).host, cluster.broker(0).port), timeout=PATIENCE_S)


def ended(sock: socket.socket) -> bool:
    """Wait for the broker to hang up; what it says before is let pass."""
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("what", STRANGERS)
def test_strangers_are_hung_up_on_and_nobody_else_notices(
    cluster: fairlead_kafka.Cluster, neighbour: Wire, what: str
) -> None:
    with connect(cluster) as sock:
        sock.sendall(STRANGERS[what])
        assert ended(sock)


def test_half_a_frame_waits_for_its_other_half_and_costs_nobody_anything(
    cluster: fairlead_kafka.Cluster, neighbour: Wire
) -> None:
    frame = b"".join(encode_request(ApiKey.API_VERSIONS, 0, 7, "half", Message()))
    with connect(cluster) as half, connect(cluster) as given_up:
        given_up.sendall(struct.pack(">i", 90 << 20) + b"x" * 1000)
        half.sendall(frame[:9])
        assert neighbour.ask(ApiKey.API_VERSIONS, 0).error_code == 0
        half.sendall(frame[9:])
        assert struct.unpack(">ii", half.makefile("rb").read(8))[1] == 7


def test_valid_requests_with_bytes_changed_never_end_the_broker(
    cluster: fairlead_kafka.Cluster, neighbour: Wire
) -> None:
    create(addresses(cluster), "mutated")
    listed = [Message(name="mutated", partitions=[Message(partition_index=0, timestamp=-1)])]
    committed = [Message(name="mutated", partitions=[Message(partition_index=0, committed_offset=1)])]
    protocols = [Message(name="range", metadata=b"x")]
    requests = [
        encode_request(ApiKey.PRODUCE, 9, 1, "m",
        Message(**produce_fields({("mutated", 0): batch([b"abc"])}))),
        encode_request(ApiKey.METADATA, 12, 1, "m",
        Message(topics=[Message(name="mutated")], allow_auto_topic_creation=False)),
        encode_request(ApiKey.CREATE_TOPICS, 7, 1, "m",
        Message(topics=[Message(name="q", num_partitions=1, replication_factor=1)])),
        encode_request(ApiKey.LIST_OFFSETS, 7, 1, "m", Message(replica_id=-1, topics=listed)),
        encode_request(ApiKey.OFFSET_COMMIT, 8, 1, "m", Message(group_id="g", topics=committed)),
        encode_request(ApiKey.JOIN_GROUP, 9, 1, "m",
        Message(group_id="g", session_timeout_ms=10_000, member_id="", protocol_type="c",
                                                             protocols=protocols)),
    ]  # fmt: skip
    for number in range(600):
        frame = bytearray(b"".join(requests[number % len(requests)]))
        for _ in range(RNG.randrange(1, 4)):
            frame[RNG.randrange(12, len(frame))] = RNG.choice([0, 1, 127, 128, 255, RNG.randrange(256)])
        with connect(cluster) as sock:
            sock.sendall(bytes(frame))
    assert create(addresses(cluster), "afterwards") == 0


def changed(position: int, layout: str, value: int, *, sound: bool = True) -> bytes:
    """A batch of two records with one header field changed; `sound`: with the CRC to match."""
    data = bytearray(batch([b"a", b"b"]))
    struct.pack_into(layout, data, position, value)
    if sound:
        struct.pack_into(">I", data, 17, google_crc32c.value(bytes(data[21:])))
    return bytes(data)


GOOD = bytes(batch([b"a", b"b"]))
CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
MALFORMED = {
    "a wrong CRC": (changed(17, ">I", 1, sound=False), {CORRUPT}),
    "magic 0": (changed(16, ">b", 0), {INVALID}),
    "magic 1": (changed(16, ">b", 1), {INVALID}),
    "magic 3": (changed(16, ">b", 3), {CORRUPT}),
    "more records than there are": (changed(57, ">i", 3), {CORRUPT, INVALID}),
    "no records": (changed(57, ">i", 0), {CORRUPT, INVALID}),
    "2**31 - 1 records": (changed(57, ">i", 2**31 - 1), {CORRUPT, INVALID}),
    "a negative count": (changed(57, ">i", -1), {CORRUPT, INVALID}),
    "a wrong last offset delta": (changed(23, ">i", 5), {CORRUPT, INVALID}),
    "a length beyond the bytes": (changed(8, ">i", 1_000, sound=False), {INVALID}),
    "a negative length": (changed(8, ">i", -1, sound=False), {CORRUPT}),
    "bytes missing": (GOOD[:-3], {INVALID}),
    "half a header": (GOOD[:30], {CORRUPT, INVALID}),
    "no bytes": (b"", {INVALID}),
    "no batch": (None, {INVALID}),
    "two batches": (GOOD + GOOD, {INVALID}),
    "a base offset": (changed(0, ">q", 7), {INVALID}),
    "gzip that is none": (changed(21, ">h", 1), {CORRUPT, INVALID}),
    "a codec that there is not": (changed(21, ">h", 7), {CORRUPT, INVALID}),
    "a control batch": (changed(21, ">h", 0x20), {INVALID}),
    "log append time": (changed(21, ">h", 8), {ErrorCode.INVALID_TIMESTAMP}),
    "a producer without sequence": (changed(43, ">q", 5), {INVALID}),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_malformed_batches_are_answered_with_an_error_and_nothing_is_written(
    cluster: fairlead_kafka.Cluster, neighbour: Wire, what: str
) -> None:
    data, codes = MALFORMED[what]
    create(addresses(cluster), "malformed")
    with Wire(addresses(cluster)[0]) as wire:
        row = (
            wire.ask(ApiKey.PRODUCE, 9, **produce_fields({("malformed", 0): data}))
            .responses[0]
            .partition_responses[0]
        )
        assert row.error_code in codes
        asked = [Message(name="malformed", partitions=[Message(partition_index=0, timestamp=-1)])]
        ends = wire.ask(ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=asked)
    assert ends.topics[0].partitions[0].offset == 0


def test_thousands_of_requests_in_one_piece_are_served(
    cluster: fairlead_kafka.Cluster, neighbour: Wire
) -> None:
    frame = b"".join(encode_request(ApiKey.API_VERSIONS, 0, 1, "many", Message()))
    with connect(cluster) as sock:
        sock.sendall(frame * 3_000)
        answers = sock.makefile("rb")
        answered = 0
        while answered < 3_000 and len(head := answers.read(4)) == 4:
            answers.read(struct.unpack(">i", head)[0])
            answered += 1
    assert answered == 3_000
