"""KIP-794's series in virtual time, and how far the figures agree with those on sockets."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.kip794_cases import RECORD_SIZE, Case, share_of_broker_0
from fairlead_kafka.lab.paced import load_of
from fairlead_kafka.lab.virtual_load import VirtualTask, virtual_loads

_SAME_RUN = ("system", "policy", "series", "fault", "linger_ms", "rate")


def run_virtual(
    status: Status,
    cases: Sequence[Case],
    faults: Sequence[str],
    brokers: int,
    partitions: int,
    delay_ms: float,
    shape: tuple[float, int],
    seed: int,
) -> list[Row]:
    """A row for each case and fault, in the order of `cases`. `shape`: seconds of warm-up, and
    milliseconds of which the records are submitted together."""
    warmup_s, period_ms = shape
    rows, tasks = [], []
    for fault in faults:
        for case in cases:
            load = load_of(case.records, case.rate, RECORD_SIZE, warmup_s, period_ms=period_ms)
            tasks.append(VirtualTask(load, dict(case.config), brokers, partitions, fault, delay_ms, seed))
            rows.append(
                case.row(fault=fault, clock="virtual", target=None)
                | {"records": load.total, "warmup_records": load.warmup_records}
            )
    status(f"virtual time: {len(tasks)} runs")
    measured = virtual_loads(tasks, lambda count: status(f"virtual time: {count} of {len(tasks)} runs"))
    return [row | figures for row, figures in zip(rows, measured, strict=True)]


def compared(real: Sequence[Row], virtual: Sequence[Row]) -> list[Row]:
    """The virtual rows, each beside the figures of the same run on sockets, if there was one.

    Adds `real_avg_ms`, `real_p99_ms`, `real_share_broker_0` and `share_broker_0` (of all bytes).
    """
    by_run = {tuple(row.get(key) for key in _SAME_RUN): row for row in real if "p99_ms" in row}
    rows = []
    for row in virtual:
        beside = by_run.get(tuple(row.get(key) for key in _SAME_RUN))
        rows.append(row if beside is None else row | _beside(row, beside))
    return rows


def _beside(row: Row, real: Row) -> Row:
    return {
        "real_avg_ms": real["avg_ms"],
        "real_p99_ms": real["p99_ms"],
        "share_broker_0": share_of_broker_0(row),
        "real_share_broker_0": share_of_broker_0(real),
    }
