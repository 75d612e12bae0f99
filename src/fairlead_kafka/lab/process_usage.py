"""Present memory, descriptors, threads and CPU time of a process, from `/proc`, so on Linux alone;
what a process says that it has in use; and a folder's size.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.base.units import MIB
from fairlead_kafka.lab.processes import cpu_s, stat_fields
from fairlead_kafka.runtime import MemoryUse


@dataclass(frozen=True)
class Usage:
    """Memory in 2**20 bytes. `rss_mb`: all resident memory, shared memory too; `pss_mb`: with its
    part of shared memory; `private_mb`: without shared memory. A forked process shares with its
    parent the pages that neither has written to since."""

    rss_mb: float
    pss_mb: float
    private_mb: float
    descriptors: int
    threads: int
    cpu_s: float


def usage(process_id: int) -> Usage | None:
    """Usage of one process; None if it has ended."""
    folder = Path(f"/proc/{process_id}")
    try:
        rollup = (folder / "smaps_rollup").read_text()
        stat = stat_fields(process_id)
        descriptors = len(os.listdir(folder / "fd"))
    except OSError:
        return None
    if not stat:
        return None
    sizes_kb = {words[0]: int(words[1]) for words in map(str.split, rollup.splitlines()[1:])}
    return Usage(
        rss_mb=round(sizes_kb["Rss:"] / 1024, 2),
        pss_mb=round(sizes_kb["Pss:"] / 1024, 2),
        private_mb=round((sizes_kb["Private_Clean:"] + sizes_kb["Private_Dirty:"]) / 1024, 2),
        descriptors=descriptors,
        threads=int(stat[17]),
        cpu_s=cpu_s(process_id),
    )


def memory_row(found: MemoryUse | None) -> JsonObject:
    """{blocks, heap_mb} in use, heaps in 2**20 bytes, as far as it is known; {} of a process that
    did not say."""
    if found is None:
        return {}
    heap_mb = None if found.heap_bytes is None else round(found.heap_bytes / MIB, 3)
    return {"blocks": found.blocks, "heap_mb": heap_mb}


def folder_mb(folder: Path) -> float:
    """Size on disk of the files in a folder and below, in 2**20 bytes; files that are deleted
    meanwhile do not count.
    """
    taken = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                taken += os.stat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                continue
    return round(taken / MIB, 2)
