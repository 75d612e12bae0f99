"""A load generator without a client: requests built beforehand are only sent, five in flight.

It shows the broker's limit.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Sequence
from itertools import cycle, islice

from fairlead_kafka.records import Compression, Slice, columns_from_lists, encode
from fairlead_kafka.wire import ApiKey, FrameReader, decode_response, encode_request
from fairlead_kafka.wire.messages import ProduceRequest, ProduceResponse

BATCH_BYTES = 16_384
REQUEST_BYTES = 1_000_000
IN_FLIGHT = 5
PARTITIONS = 12
VERSION = 9


class Raw:
    """One connection, with a thread that reads answers. All batches hold the same records, and are
    full."""

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        compression: str,
        pairs: Sequence[tuple[bytes | None, bytes]],
    ) -> None:
        self._count = max(1, (BATCH_BYTES - 61) // (len(pairs[0][1]) + 10 * (1 + (pairs[0][0] is not None))))
        rows = list(islice(cycle(pairs), self._count))
        keys = None if pairs[0][0] is None else [key for key, _ in rows]
        columns = columns_from_lists(keys, [value for _, value in rows])
        codec = Compression.named(compression)
        batch = encode(
            [Slice(columns, 0, self._count, None)], create_time_ms=1_700_000_000_000, compression=codec
        ).buffer
        self._batches = max(1, min(PARTITIONS, REQUEST_BYTES // len(batch)))
        self._requests = cycle(
            [
                _request(topic, batch, first * self._batches % PARTITIONS, self._batches)
                for first in range(PARTITIONS)
            ]
        )
        self._window = threading.Semaphore(IN_FLIGHT)
        self._over = self._failed = 0
        host, _, port = bootstrap_servers.split(",")[0].rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, count: int) -> None:
        """Send as many full requests as hold `count` records, one at least."""
        for _ in range(max(1, count // (self._count * self._batches))):
            self._window.acquire()
            self._socket.sendall(next(self._requests))

    def complete(self) -> int:
        """Wait for all answers. Returns how many records were acknowledged so far."""
        for _ in range(IN_FLIGHT):
            self._window.acquire()
        self._window.release(IN_FLIGHT)
        return (self._over * self._batches - self._failed) * self._count

    def close(self) -> None:
        """Close the connection, which ends the thread."""
        self._socket.close()

    def _read(self) -> None:
        reader = FrameReader()
        while True:
            try:
                data = self._socket.recv(1 << 18)
            except OSError:
                return
            if not data:
                return
            for frame in reader.feed(data):
                answer = decode_response(ApiKey.PRODUCE, VERSION, frame, ProduceResponse)
                self._failed += sum(
                    one.error_code != 0 for entry in answer.responses for one in entry.partition_responses
                )
                self._over += 1
                self._window.release()


def _request(topic: str, batch: memoryview, first: int, batches: int) -> bytes:
    row = ProduceRequest.PartitionProduceData
    partitions = [row(index=(first + number) % PARTITIONS, records=batch) for number in range(batches)]
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=partitions)]
    message = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=topics)
    frame = b"".join(encode_request(ApiKey.PRODUCE, VERSION, 1, "raw", message))
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    return frame
