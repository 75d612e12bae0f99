"""Latency of a record through a stream, Kafka to Spark to Kafka: from the call that sends it to its
arrival at a consumer.

A record's value begins with the time at which it was submitted. Records go at a steady rate, so
that a stall shows in all that wait; those of the first seconds, while the stream warms up, do not
count.
"""

from __future__ import annotations

import struct
import tempfile
import threading
import time
from collections.abc import Mapping

import numpy as np

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin, Consumer, NewTopic, Producer
from fairlead_kafka.lab.experiment import Row
from fairlead_kafka.lab.spark_systems import JobFailed, SparkSystem

RATE_PER_S = 1_000
PARTITIONS = 2
WARM_UP_S = 5.0
FIRST_RECORD_S = 90.0
"""Seconds that the stream may take until its first record arrives."""
LAST_RECORD_S = 30.0
_TICK_S = 0.01
_STAMP = struct.Struct(">q")


def streaming_latency(
    system: SparkSystem, bootstrap_servers: str, size: int, stream_s: float, options: Mapping[str, str]
) -> Row:
    """The measured columns of a row, of a stream that runs `stream_s` seconds: p50_ms, p95_ms,
    p99_ms, rows_per_s, mb_per_s, batches. Raises JobFailed."""
    source, sink = f"latency-{size}-{system.system}", f"latency-{size}-{system.system}-out"
    with (
        Admin({"bootstrap.servers": bootstrap_servers}) as admin,
        tempfile.TemporaryDirectory(prefix="fairlead-lab-") as checkpoint,
    ):
        admin.create_topics([NewTopic(topic, partitions=PARTITIONS) for topic in (source, sink)])
        try:
            system.ask(
                "stream_begins",
                bootstrap_servers=bootstrap_servers,
                topic=source,
                options=dict(options),
                sink=sink,
                checkpoint=checkpoint,
            )
            arrivals = _Arrivals(bootstrap_servers, sink)
            try:
                sent_ns = _send(bootstrap_servers, source, size, stream_s, arrivals)
                arrivals.wait_for(len(sent_ns), LAST_RECORD_S)
            finally:
                arrivals.close()
                ended = system.ask("stream_ends")
        finally:
            admin.delete_topics([source, sink])
    counted_from_ns = arrivals.first_ns + round(WARM_UP_S * 1e9)
    pairs = np.array([pair for pair in arrivals.pairs if pair[0] >= counted_from_ns], np.int64).reshape(-1, 2)
    if len(arrivals.pairs) < len(sent_ns) or not len(pairs):
        raise JobFailed(
            f"{system.system}, latency: {len(arrivals.pairs)} of {len(sent_ns)} records came through"
        )
    p50_ms, p95_ms, p99_ms = np.percentile((pairs[:, 1] - pairs[:, 0]) / 1e6, [50, 95, 99])
    rows_per_s = len(pairs) / ((pairs[:, 1].max() - pairs[:, 0].min()) / 1e9)
    return {
        "rows_per_s": round(rows_per_s),
        "mb_per_s": round(rows_per_s * size / 1e6, 1),
        "p50_ms": round(p50_ms, 1),
        "p95_ms": round(p95_ms, 1),
        "p99_ms": round(p99_ms, 1),
        "batches": ended["batches"],
    }


def _send(bootstrap_servers: str, topic: str, size: int, stream_s: float, arrivals: _Arrivals) -> list[int]:
    """Send records at a fixed rate until `stream_s` seconds after the warm-up, which begins when
    the first record has come through.

    Returns the time at which each was sent.
    """
    filler = b"x" * max(size - _STAMP.size, 0)
    sent_ns: list[int] = []
    begun_s = time.monotonic()
    with Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0}) as producer:
        while True:
            now_s = time.monotonic()
            if not arrivals.first_ns and now_s - begun_s > FIRST_RECORD_S:
                return sent_ns
            if arrivals.first_ns and now_s > arrivals.first_ns / 1e9 + WARM_UP_S + stream_s:
                return sent_ns
            for _ in range(min(round((now_s - begun_s) * RATE_PER_S) - len(sent_ns), RATE_PER_S)):
                sent_ns.append(time.monotonic_ns())
                producer.send(topic, _STAMP.pack(sent_ns[-1]) + filler)
            time.sleep(_TICK_S)


class _Arrivals:
    """Reads the sink topic on a thread of its own, and notes for each record when it was sent and
    when it came."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.pairs: list[tuple[int, int]] = []
        self.first_ns = 0
        self._consumer = Consumer({"bootstrap.servers": bootstrap_servers})
        self._consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        self._consumer.seek_to_beginning()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, name="fairlead-lab-arrivals", daemon=True)
        self._thread.start()

    def wait_for(self, count: int, timeout_s: float) -> None:
        """Wait until `count` records have come, or the time is up."""
        deadline_s = time.monotonic() + timeout_s
        while len(self.pairs) < count and time.monotonic() < deadline_s:
            time.sleep(_TICK_S)

    def close(self) -> None:
        """Stop reading."""
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._ended.is_set():
            for record in self._consumer.poll(0.2):
                now_ns = time.monotonic_ns()
                self.first_ns = self.first_ns or now_ns
                self.pairs.append((_STAMP.unpack_from(record.value or b"")[0], now_ns))
