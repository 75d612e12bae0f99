"""A blocking client of one broker that speaks in frames: what tests of the cluster use where no
client's logic should be in between."""

from __future__ import annotations

import socket
import struct

from fairlead_kafka.records import decode
from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey, Message, decode_response, encode_request
from tests.support.broker_driver import batch, fetch_fields, produce_fields
from tests.support.waiting import PATIENCE_S


class Wire:
    """One connection, one request at a time."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)

    def ask(self, api_key: int, version: int, **fields: object) -> Message:
        """Send a request and wait for its answer; ConnectionError if the connection ends."""
        self._socket.sendall(b"".join(encode_request(api_key, version, 1, "wire", Message(**fields))))
        (size_bytes,) = struct.unpack(">i", self._exactly(4))
        return decode_response(api_key, version, memoryview(self._exactly(size_bytes)))

    def _exactly(self, size_bytes: int) -> bytes:
        data = b""
        while len(data) < size_bytes:
            piece = self._socket.recv(size_bytes - len(data))
            if not piece:
                raise ConnectionError("closed")
            data += piece
        return data

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def addresses(cluster: Cluster) -> list[str]:
    """host:port of each broker, by id."""
    return cluster.bootstrap_servers.split(",")


def create(servers: list[str], topic: str) -> int:
    """Create a topic of one partition by asking for it; its leader."""
    with Wire(servers[0]) as wire:
        answer = wire.ask(ApiKey.METADATA, 8, topics=[Message(name=topic)], allow_auto_topic_creation=True)
    return int(answer.topics[0].partitions[0].leader_id)


def append(wire: Wire, topic: str, value: bytes) -> int:
    """Produce one record to partition 0 on its leader; its offset."""
    answer = wire.ask(ApiKey.PRODUCE, 9, **produce_fields({(topic, 0): batch([value])}))
    row = answer.responses[0].partition_responses[0]
    assert row.error_code == 0, row
    return int(row.base_offset)


def write(cluster: Cluster, topic: str, value: bytes) -> int:
    """Produce one record to partition 0; its offset."""
    with Wire(addresses(cluster)[create(addresses(cluster), topic)]) as wire:
        return append(wire, topic, value)


def read(cluster: Cluster, topic: str) -> list[bytes]:
    """The values of partition 0."""
    leader = create(addresses(cluster), topic)
    with Wire(addresses(cluster)[leader]) as wire:
        fields = fetch_fields({(topic, 0): 0}, partition_max_bytes=50 << 20)
        row = wire.ask(ApiKey.FETCH, 12, **fields).responses[0].partitions[0]
    assert row.error_code == 0, row
    values: list[bytes] = decode(bytes(row.records)).values.to_arrow().to_pylist() if row.records else []
    return values
