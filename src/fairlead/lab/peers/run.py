"""Runs one client: `python -m fairlead.lab.peers.run SYSTEM BOOTSTRAP TOPIC RECORDS SIZE COMPRESSION`; prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

MODULES = {
    "raw": "fairlead.lab.peers.raw",
    "fairlead.send": "fairlead.lab.peers.ours",
    "fairlead.send_table": "fairlead.lab.peers.ours",
    "confluent-kafka.produce": "fairlead.lab.peers.confluent",
    "confluent-kafka.produce_batch": "fairlead.lab.peers.confluent",
    "kafka-python": "fairlead.lab.peers.pure_python",
    "aiokafka": "fairlead.lab.peers.pure_python",
}


class Stopwatch:
    """Wall and CPU seconds of this process, started once the client is connected and warm."""

    def start(self) -> None:
        """Start counting."""
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    def stop(self) -> None:
        """Stop counting: everything is acknowledged."""
        self.seconds, self.cpu_s = time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s


def value_of(size: int) -> bytes:
    """The value of every record: letters that do not all repeat, so that compression has something to do but cannot cheat."""
    state, letters = 1, bytearray()
    for _ in range(size):
        state = (1_103_515_245 * state + 12_345) % 2**31
        letters.append(65 + (state >> 16) % 26)
    return bytes(letters)


def main(system: str, bootstrap_servers: str, topic: str, records: str, size: str, compression: str) -> None:
    """Runs the system and prints {"acked", "seconds", "cpu_s"}."""
    stopwatch = Stopwatch()
    produce = getattr(import_module(MODULES[system]), system.replace(".", "_").replace("-", "_"))
    acked = produce(stopwatch, bootstrap_servers, topic, int(records), value_of(int(size)), compression)
    print(json.dumps({"acked": acked, "seconds": stopwatch.seconds, "cpu_s": stopwatch.cpu_s}))


if __name__ == "__main__":
    main(*sys.argv[1:])
