"""Produces numbered records until it is told to stop: `python -m fairlead_kafka.lab.peers.storm
JSON`, JSON being an `Errand`.

It stops when its standard input ends, waits for records under way, and prints for each record that
was acknowledged a line with its number and the time of the acknowledgement, in ms since 1970. Lines
that begin with `failed` name records that failed, with the reason. The first line is printed as
soon as there is one, for it shows that the client has begun; the others at the end.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead_kafka.base.json_types import JsonObject, json_object

if TYPE_CHECKING:
    from confluent_kafka import Producer

PERIOD_S = 0.01
DRAIN_S = 120.0
"""Seconds that records in flight have to be acknowledged at the end, as long as every producer's
own time limit.
"""


@dataclass(frozen=True)
class Errand:
    """One client's task: `rate` records a second to `topic`, acks=all, idempotent.

    `settings` is a file (JSON) of the configs it needs to reach the cluster, under its own names: a
    password is no argument of a process.
    """

    system: str
    settings: str
    topic: str
    rate: int

    def to_json(self) -> str:
        """The task as JSON, for the command line."""
        return json.dumps(asdict(self))

    def config(self) -> JsonObject:
        """The configs in the file `settings`."""
        return json_object(Path(self.settings).read_text())

    def numbers(self) -> Iterator[range]:
        """Ranges of the numbers of records that are due, one every few milliseconds, until standard
        input ends."""
        begun_s, sent = time.monotonic(), 0
        while not select.select([sys.stdin], [], [], PERIOD_S)[0]:
            due = int((time.monotonic() - begun_s) * self.rate)
            yield range(sent, due)
            sent = due


class Results:
    """Results of records, as the client reported them."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def completed(self, number: int, error: object) -> None:
        """Note that one record was acknowledged, or given up; the first is printed at once."""
        first = not self._lines
        self._lines.append(
            f"{number} {time.time_ns() // 1_000_000}" if error is None else f"failed {number} {error}"
        )
        if first:
            print(self._lines[0], flush=True)

    def print(self) -> None:
        """Print all results but the first."""
        sys.stdout.write("".join(f"{line}\n" for line in self._lines[1:]))
        sys.stdout.flush()


def fairlead(errand: Errand, results: Results) -> None:
    """Send by our producer, with a callback for each record."""
    from fairlead_kafka.client import Producer

    producer = Producer({**errand.config(), "acks": "all"})
    for numbers in errand.numbers():
        for number in numbers:
            producer.send(errand.topic, b"%d" % number, on_delivery=_callback(results, number))
    producer.close(DRAIN_S)


def confluent_kafka(errand: Errand, results: Results) -> None:
    """Send by librdkafka, which serves callbacks while it is polled."""
    from confluent_kafka import Producer

    config = {**errand.config(), "acks": "all", "enable.idempotence": True, "log_level": 0}
    producer = Producer(config)
    for numbers in errand.numbers():
        for number in numbers:
            _produce(producer, errand.topic, number, results)
        producer.poll(0)
    producer.flush(DRAIN_S)


def _produce(producer: Producer, topic: str, number: int, results: Results) -> None:
    while True:
        try:
            producer.produce(
                topic, b"%d" % number, on_delivery=lambda error, _message: results.completed(number, error)
            )
        except BufferError:
            producer.poll(PERIOD_S)  # its queue is full: nobody takes anything for a while
        else:
            return


def _callback(results: Results, number: int) -> Callable[[object, Exception | None], None]:
    return lambda _metadata, error: results.completed(number, error)


SYSTEMS = {"fairlead": fairlead, "confluent-kafka": confluent_kafka}


def main(text: str) -> None:
    """Run the client."""
    errand, results = Errand(**json.loads(text)), Results()
    SYSTEMS[errand.system](errand, results)
    results.print()


if __name__ == "__main__":
    main(sys.argv[1])
