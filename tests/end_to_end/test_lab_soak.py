"""`fairlead lab soak` for some seconds: brokers are killed, all that was acknowledged is read back,
and each process has its rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_kafka.base.units import MIB
from fairlead_kafka.lab import soak
from fairlead_kafka.lab.peers.soak import ROLES
from fairlead_kafka.lab.process_usage import folder_mb, usage
from fairlead_kafka.lab.soak_client import ARROW_IN_HEAP, launch
from fairlead_kafka.lab.soak_looks import CONTROLLER, LOAD
from fairlead_kafka.runtime import memory_use
from tests.support.command_line import Run
from tests.support.waiting import until


def test_nothing_is_lost_in_a_short_soak_and_every_process_is_measured(run_at: Run, tmp_path: Path) -> None:
    report, plot = tmp_path / "soak.json", tmp_path / "soak.svg"
    ran = run_at(
        "lab", "soak", "--minutes", "0.1", "--rate", "300", "--json", str(report), "--plot", str(plot)
    )
    rows = json.loads(report.read_text())["rows"]
    assert ran.code == 0, (ran.err, rows[-1])
    verdict = rows[-1]
    assert verdict["table"] == "comparison"
    assert not any(verdict[column] for column in (*soak.WRONG, "failed"))
    # (Within six seconds of a slow machine no group may come and go.)
    assert verdict["offsets_checked"] >= verdict["groups"]
    assert all(verdict[column] > 0 for column in ("kills", "acknowledged", "transactions", "topics"))
    processes = {row["process"] for row in rows if row["table"] == "minutes"}
    assert processes == {"broker-0", "broker-1", "broker-2", CONTROLLER, LOAD, *ROLES}
    assert {row["process"] for row in rows if row["table"] == "slopes"} <= processes - {LOAD}
    assert all(
        row["rss_mb"] >= row["private_mb"] > 0 and row["blocks"] > 0
        for row in rows
        if row.get("process") in {"broker-0", CONTROLLER, *ROLES} and row["table"] == "minutes"
    )
    assert plot.read_text().count("<svg") == 1


def test_a_process_is_measured_while_it_lives() -> None:
    program = (
        "import sys; held = bytearray(50 << 20); held[::4096] = bytes([1]) * len(held[::4096]); "
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = usage(process.pid)
        assert found is not None
        assert found.rss_mb >= found.pss_mb >= found.private_mb >= 50
        assert (found.threads, found.descriptors >= 3, found.cpu_s > 0) == (1, True, True)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        assert usage(process.pid) is None


@pytest.mark.skipif(memory_use().heap_bytes is None, reason="the C library does not count its heap")
def test_what_arrow_holds_counts_as_in_use_in_a_client(tmp_path: Path) -> None:
    program = (
        "import pyarrow as pa; from fairlead_kafka.runtime import memory_use; "
        "before = memory_use().heap_bytes; held = pa.allocate_buffer(1 << 20); "
        "print(memory_use().heap_bytes - before)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **ARROW_IN_HEAP},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(ran.stdout) >= MIB
    client = launch("unkeyed", "127.0.0.1:1", 1.0, tmp_path)
    try:
        environment = Path(f"/proc/{client.process.pid}/environ")
        until(lambda: environment.read_text() != "")  # the kernel shows it a moment after `exec`
        assert {f"{name}={value}" for name, value in ARROW_IN_HEAP.items()} <= set(
            environment.read_text().split("\0")
        )
    finally:
        client.kill()


def test_a_folder_is_measured_with_all_below_it(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(os.urandom(3 << 20))
    assert 3 <= folder_mb(tmp_path) < 3.1
