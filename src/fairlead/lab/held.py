"""What a topic's partitions hold: records, batches and bytes, counted in the batches themselves as a broker gives them out.

So the figures are the same for every client, whatever it tells of itself: a partition's bytes are those of its batches on the wire and
in the log, headers of 61 bytes included, which is what KIP-794 sets out to spread evenly.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import Any

from fairlead.base.errors import BrokerError, ConnectionFailed
from fairlead.base.ids import NO_LEADER
from fairlead.client import Admin
from fairlead.wire import ApiKey, FrameReader, Message, decode_response, encode_request

FETCH_VERSION = 4
"""The oldest that today's Kafka serves: topics by name, no sessions."""
_FETCH_MAX_BYTES = 8 << 20
_TIMEOUT_S = 30.0
_BATCH = struct.Struct(">qi")
"""Base offset and length of a batch."""
_BATCH_PREFIX_BYTES = _BATCH.size
_LAST_DELTA_POSITION = 23
_COUNT_POSITION = 57


@dataclass
class Held:
    """Of one partition, or summed."""

    leader: int = NO_LEADER
    records: int = 0
    batches: int = 0
    size_bytes: int = 0


def held(bootstrap_servers: str, topic: str) -> list[Held]:
    """What each partition holds, by number; a partition without leader holds nothing that can be counted.

    Raises BrokerError if a leader refuses, ConnectionFailed if it hangs up.
    """
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        nodes = {node.node_id: node for node in admin.describe_cluster().nodes}
        partitions = admin.describe_topics([topic])[topic].partitions
    found = [Held(partition.leader) for partition in partitions]
    for number, partition in enumerate(found):
        node = nodes.get(partition.leader)
        if node is not None:
            with socket.create_connection((node.host, node.port), _TIMEOUT_S) as connection:
                _count(connection, topic, number, partition)
    return found


def by_broker(partitions: list[Held], brokers: int) -> list[Held]:
    """Summed for each of brokers 0 and on."""
    sums = [Held(node_id) for node_id in range(brokers)]
    for partition in partitions:
        if partition.leader != NO_LEADER:
            total = sums[partition.leader]
            total.records += partition.records
            total.batches += partition.batches
            total.size_bytes += partition.size_bytes
    return sums


def _count(connection: socket.socket, topic: str, number: int, total: Held) -> None:
    offset, reader = 0, FrameReader()
    while True:
        answer = _fetch(connection, reader, topic, number, offset)
        records = memoryview(answer.records or b"")
        position = 0
        while position + _BATCH_PREFIX_BYTES <= len(records):
            base_offset, length = _BATCH.unpack_from(records, position)
            end = position + _BATCH_PREFIX_BYTES + length
            if end > len(records):
                break
            total.batches += 1
            total.size_bytes += end - position
            total.records += struct.unpack_from(">i", records, position + _COUNT_POSITION)[0]
            offset = base_offset + struct.unpack_from(">i", records, position + _LAST_DELTA_POSITION)[0] + 1
            position = end
        if position == 0 or offset >= answer.high_watermark:
            return


def _fetch(connection: socket.socket, reader: FrameReader, topic: str, number: int, offset: int) -> Any:
    """The answer's part on the partition."""
    partition = Message(partition=number, fetch_offset=offset, partition_max_bytes=_FETCH_MAX_BYTES)
    request = Message(
        replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=_FETCH_MAX_BYTES, topics=[Message(topic=topic, partitions=[partition])]
    )
    connection.sendall(b"".join(encode_request(ApiKey.FETCH, FETCH_VERSION, 1, "lab", request)))
    frames: list[memoryview] = []
    while not frames:
        data = connection.recv(1 << 18)
        if not data:
            raise ConnectionFailed(f"the leader of {topic}-{number} hung up while its batches were counted")
        frames = reader.feed(data)
    answer = decode_response(ApiKey.FETCH, FETCH_VERSION, frames[0]).responses[0].partitions[0]
    if answer.error_code:
        raise BrokerError(answer.error_code, f"counting the batches of {topic}-{number}")
    return answer
