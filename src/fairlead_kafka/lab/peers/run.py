"""Runs one client: `python -m fairlead_kafka.lab.peers.run JSON`, JSON being a `Job`; prints one line of JSON."""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path

from fairlead_kafka.lab.bounded import tell_where_on_request
from fairlead_kafka.lab.lines import values_of_size

MODULES = {
    "raw": "fairlead_kafka.lab.peers.raw",
    "fairlead.send": "fairlead_kafka.lab.peers.ours",
    "fairlead.send.callbacks": "fairlead_kafka.lab.peers.ours",
    "fairlead.send.handles": "fairlead_kafka.lab.peers.ours",
    "fairlead.send_table": "fairlead_kafka.lab.peers.ours",
    "confluent-kafka.produce": "fairlead_kafka.lab.peers.confluent",
    "confluent-kafka.produce.callbacks": "fairlead_kafka.lab.peers.confluent",
    "confluent-kafka.produce_batch": "fairlead_kafka.lab.peers.confluent",
    "kafka-python": "fairlead_kafka.lab.peers.pure_python",
    "aiokafka": "fairlead_kafka.lab.peers.pure_python",
}
VALUES = 1_000
"""Different values; they go round."""
KEYS = 3_000
"""Different keys; they go round."""


@dataclass(frozen=True)
class Job:
    """What one client is to produce: `records` of `size` bytes each, with a key of some ten bytes if `keyed`."""

    system: str
    bootstrap_servers: str
    topic: str
    records: int
    size: int
    keyed: bool = False
    compression: str = "none"

    def to_json(self) -> str:
        """As the command line takes it."""
        return json.dumps(asdict(self))

    def values(self, count: int) -> list[bytes]:
        """The values of the first `count` records."""
        return list(islice(cycle(values_of_size(self.size, VALUES)), count))

    def keys(self, count: int) -> list[bytes | None]:
        """The keys of the first `count` records, None for each that has none."""
        return list(islice(cycle(self._keys()), count))

    def pairs(self) -> Iterator[tuple[bytes | None, bytes]]:
        """Key and value of each record; nothing is made or kept while they are taken, so that memory is the client's alone."""
        return islice(zip(cycle(self._keys()), cycle(values_of_size(self.size, VALUES)), strict=False), self.records)

    def _keys(self) -> list[bytes | None]:
        return [b"key-%d" % number for number in range(KEYS)] if self.keyed else [None]


class Stopwatch:
    """Wall and CPU seconds of this process, started once the client is connected and warm."""

    def start(self) -> None:
        """Start counting."""
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    def stop(self) -> None:
        """Stop counting: everything is acknowledged."""
        self.seconds, self.cpu_s = time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s


def value_of(size: int) -> bytes:
    """One value: letters that do not all repeat."""
    state, letters = 1, bytearray()
    for _ in range(size):
        state = (1_103_515_245 * state + 12_345) % 2**31
        letters.append(65 + (state >> 16) % 26)
    return bytes(letters)


def peak_memory_mb() -> int:
    """This process's resident memory at its peak, in 2**20 bytes.

    By Linux's own account: what `getrusage` calls the peak begins with that of the process this one was started from.
    """
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1 << 20 if sys.platform == "darwin" else 1 << 10)


def main(text: str) -> None:
    """Runs the system and prints {"acked", "seconds", "cpu_s", "rss_mb"}."""
    stopwatch, job = Stopwatch(), Job(**json.loads(text))
    produce = getattr(import_module(MODULES[job.system]), job.system.replace(".", "_").replace("-", "_"))
    acked = produce(stopwatch, job)
    print(json.dumps({"acked": acked, "seconds": stopwatch.seconds, "cpu_s": stopwatch.cpu_s, "rss_mb": peak_memory_mb()}))


if __name__ == "__main__":
    tell_where_on_request()
    main(sys.argv[1])
