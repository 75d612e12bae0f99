"""What a broker lets through: requests built beforehand and only sent, five in flight."""

from __future__ import annotations

import socket
import struct
import threading

import numpy as np
import pyarrow as pa

from fairlead_kafka.lab.peers.run import Job, Stopwatch
from fairlead_kafka.records import Compression, Slice, columns_from_arrow, encode
from fairlead_kafka.wire import ApiKey, FrameReader, Message, decode_response, encode_request

BATCH_BYTES = 16_384
REQUEST_BYTES = 1_000_000
IN_FLIGHT = 5
PARTITIONS = 12
VERSION = 9


def raw(stopwatch: Stopwatch, job: Job) -> int:
    """Sends about `job.records` records in full batches; returns how many were acknowledged."""
    count = max(1, (BATCH_BYTES - 61) // (job.size + 10 * (1 + job.keyed)))
    table = {"key": pa.array(job.keys(count), pa.binary()), "value": pa.array(job.values(count), pa.binary())}
    ((columns, _),) = columns_from_arrow(pa.record_batch(table))
    codec = Compression.named(job.compression)
    batch = encode([Slice(columns, 0, count, None)], create_time_ms=1_700_000_000_000, compression=codec).buffer
    batches = max(1, min(PARTITIONS, REQUEST_BYTES // len(batch)))
    requests = [_request(job.topic, batch, first * batches % PARTITIONS, batches) for first in range(PARTITIONS)]
    wanted = max(1, job.records // (count * batches))
    host, _, port = job.bootstrap_servers.split(",")[0].rpartition(":")
    window, failed = threading.Semaphore(IN_FLIGHT), np.zeros(1, np.int64)
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def read() -> None:
            reader, seen = FrameReader(), 0
            while seen < wanted:
                for frame in reader.feed(connection.recv(1 << 18)):
                    seen += 1
                    answer = decode_response(ApiKey.PRODUCE, VERSION, frame)
                    failed[0] += sum(one.error_code != 0 for entry in answer.responses for one in entry.partition_responses)
                    window.release()

        answers = threading.Thread(target=read)
        stopwatch.start()
        answers.start()
        for number in range(wanted):
            window.acquire()
            connection.sendall(requests[number % len(requests)])
        answers.join()
        stopwatch.stop()
    return (wanted * batches - int(failed[0])) * count


def _request(topic: str, batch: memoryview, first: int, batches: int) -> bytes:
    partitions = [Message(index=(first + number) % PARTITIONS, records=batch) for number in range(batches)]
    message = Message(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=[Message(name=topic, partition_data=partitions)])
    frame = b"".join(encode_request(ApiKey.PRODUCE, VERSION, 1, "raw", message))
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    return frame
