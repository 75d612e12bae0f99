"""Looks at the processes of a soak: a row for each process, and one for the load."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairlead_kafka.base.json_types import integer_at, json_object, number_at, number_or_none
from fairlead_kafka.lab.experiment import Row
from fairlead_kafka.lab.process_usage import folder_mb, memory_row, usage
from fairlead_kafka.lab.soak_client import SoakClient
from fairlead_kafka.runtime import LongRunning, memory_use
from fairlead_kafka.testing import Cluster

SHARES = {"unkeyed": 0.36, "keyed": 0.45, "compacted": 0.15, "transactional": 0.04}
"""Share of the rate, by role of the producing client."""
LOAD, CONTROLLER = "load", "controller"
MINUTE_S = 60.0
FLOOR_LOOKS, FLOOR_SHARE = 3, 1 / 60
"""Memory is the least of so many looks, this share of a row's interval apart, a second of a minute:
what is under way at one of them holds MBs for a moment, and what is kept for good lies below."""
_MEMORY = ("rss_mb", "pss_mb", "private_mb", "blocks", "heap_mb")


@dataclass(slots=True)
class Looks:
    """Takes looks at all processes, each of which gives rows of the report. The rows are kept in a
    file: in two hours they are a MB, which would hide what the controller's process, this one,
    grows by."""

    cluster: Cluster
    clients: Sequence[SoakClient]
    folder: Path
    every_s: float
    """Seconds from one row of a process to the next."""
    last: list[Row] = field(default_factory=list)
    """Rows of the last look."""
    _begun_s: float = field(default_factory=time.monotonic)
    _looked_s: float = field(default_factory=time.monotonic)
    _cpu_s: Mapping[int, float] = field(default_factory=dict)
    """CPU time of each process at the last look, by its id."""
    _memory: LongRunning = field(default_factory=LongRunning)
    """That of this process, where the controller lives as it does in that of `fairlead up`."""

    def begin(self) -> float:
        """Let the time of the rows begin now. Returns now, in seconds of the monotonic clock."""
        self._begun_s = self._looked_s = time.monotonic()
        return self._begun_s

    def look(self) -> None:
        """Add a row for each process, and one for the load."""
        now_s = time.monotonic()
        seconds, minute = now_s - self._looked_s, round((now_s - self._begun_s) / MINUTE_S, 3)
        self._looked_s = now_s
        work = list(self._work(seconds))  # first, as clients give back what is free when asked
        held = self._held()
        before, self._cpu_s = (
            self._cpu_s,
            {integer_at(row, "id"): number_at(row, "cpu_s") for row in held.values() if row},
        )
        for row in held.values():
            if row:
                spent_s = number_at(row, "cpu_s") - before.get(integer_at(row, "id"), 0.0)
                row["cpu_share"] = round(spent_s / seconds, 3)
                del row["id"], row["cpu_s"]
        for broker in self.cluster.brokers:
            held[_name(broker.node_id)]["disk_mb"] = folder_mb(self.folder / _name(broker.node_id))
        held[CONTROLLER]["disk_mb"] = round((self.folder / "metadata.log").stat().st_size / 2**20, 2)
        for role, row in work:
            held.setdefault(role, {}).update(row)
        self.last = [
            {"table": "minutes", "minute": minute, "process": name, **row} for name, row in held.items()
        ]
        with self._spool().open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in self.last)

    def rows(self) -> list[Row]:
        """The rows of all looks, read back."""
        spool = self._spool()
        return [json_object(line) for line in spool.read_text().splitlines()] if spool.exists() else []

    def _spool(self) -> Path:
        return self.folder.with_name("rows.jsonl")

    def _held(self) -> dict[str, Row]:
        """{id, cpu_s, descriptors, threads} and memory of each process by its name; {} of one that
        has ended. Brokers and the controller give back what is free before each look, clients
        before their report."""
        held: dict[str, Row] = {}
        for look in range(FLOOR_LOOKS):
            if look:
                time.sleep(self.every_s * FLOOR_SHARE)
            self._memory.give_back()
            for broker in self.cluster.brokers:
                used = memory_row(broker.memory_use())
                _lower(held, _name(broker.node_id), broker.pid, used)
            _lower(held, CONTROLLER, os.getpid(), memory_row(memory_use()))
            for client in self.clients:
                _lower(held, client.role, client.process.pid, {})
        return held

    def _work(self, seconds: float) -> Iterator[tuple[str, Row]]:
        """Rows of the clients' work in the `seconds` since the last look, by role, and at the end
        one of all that produce together."""
        records_per_s, p99s_ms = 0.0, list[float]()
        for client in self.clients:
            report = client.report()
            rate = integer_at(report, "records") / seconds
            del report["records"]
            yield client.role, {"records_per_s": round(rate, 1), **report}
            if client.role in SHARES:
                records_per_s += rate
                p99_ms = number_or_none(report, "p99_ms")
                p99s_ms += [] if p99_ms is None else [p99_ms]
        yield LOAD, {"records_per_s": round(records_per_s, 1), "p99_ms": max(p99s_ms, default=None)}


def _name(node_id: int) -> str:
    return f"broker-{node_id}"


def _lower(held: dict[str, Row], name: str, process_id: int | None, used: Row) -> None:
    """Look at a process, which says what it has `used`; of its memory the least of all looks
    counts."""
    found = usage(process_id) if process_id is not None else None
    if process_id is None or found is None:
        held.setdefault(name, {})
        return
    row: Row = {
        "id": process_id,
        "rss_mb": found.rss_mb,
        "pss_mb": found.pss_mb,
        "private_mb": found.private_mb,
        "descriptors": found.descriptors,
        "threads": found.threads,
        "cpu_s": found.cpu_s,
        **used,
    }
    for column in _MEMORY:
        before, now = number_or_none(held.get(name, {}), column), number_or_none(row, column)
        if before is not None and now is not None:
            row[column] = min(before, now)
    held[name] = row
