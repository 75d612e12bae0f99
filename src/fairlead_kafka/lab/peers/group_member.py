"""A member of a group, which prints what it reads until it is told to leave (`lab rebalance`).

One argument: JSON of `system`, `topic` and client `config`. For each partition that a poll gave
records of, a line: milliseconds since 1970, partition, first and last offset, and the timestamp of
the first of these records. SIGTERM has it close, and so leave; a signal that cannot be caught is a
death.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import fairlead_kafka

POLL_S = 0.1


class Task(NamedTuple):
    """The program's argument: the system to read by, the topic, and the configs."""

    system: str
    topic: str
    config: Mapping[str, str]


class _Leaving(BaseException):
    """Raised when SIGTERM came."""


def _leave(_signal: int, _frame: object) -> None:
    raise _Leaving


def report(rows: Iterable[tuple[int, int, int]]) -> None:
    """Print the lines for records of one poll: (partition, offset, timestamp in ms)."""
    now_ms = time.time_ns() // 1_000_000
    found: dict[int, list[int]] = {}
    for partition, offset, timestamp_ms in rows:
        row = found.setdefault(partition, [offset, offset, timestamp_ms])
        row[1] = offset
    if found:
        lines = (f"{now_ms} {of} {first} {last} {since}\n" for of, (first, last, since) in found.items())
        sys.stdout.write("".join(lines))
        sys.stdout.flush()


def read_ours(task: Task) -> None:
    """Read with our consumer, and report each poll, until SIGTERM."""
    with fairlead_kafka.Consumer(task.config) as consumer:
        consumer.subscribe([task.topic])
        while True:
            records = consumer.poll(POLL_S)
            report((one.partition, one.offset, one.timestamp_ms) for one in records)


def read_confluent(task: Task) -> None:
    """Read with librdkafka's consumer, and report each poll, until SIGTERM."""
    import confluent_kafka

    consumer = confluent_kafka.Consumer(dict(task.config))
    consumer.subscribe([task.topic])
    try:
        while True:
            rows = []
            for message in consumer.consume(500, POLL_S):
                error, partition, offset = message.error(), message.partition(), message.offset()
                if error is not None and error.fatal():
                    raise SystemExit(str(error))
                if error is None and partition is not None and offset is not None:
                    rows.append((partition, offset, message.timestamp()[1]))
            report(rows)
    finally:
        consumer.close()


READERS: Mapping[str, Callable[[Task], None]] = {"fairlead": read_ours, "confluent-kafka": read_confluent}


def main() -> None:
    """Read until SIGTERM."""
    signal.signal(signal.SIGTERM, _leave)
    given = json.loads(sys.argv[1])
    task = Task(given["system"], given["topic"], given["config"])
    try:
        READERS[task.system](task)
    except _Leaving:
        return


if __name__ == "__main__":
    main()
