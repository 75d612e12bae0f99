"""KIP-794's test series, run again: latency and spread of records while one broker of three is
slow.

Partition i is led by broker i (modulo the brokers), replication factor 1, 512-byte values, broker 0
answering each Produce `delay_ms` late, one after another on a connection. Series 1 sends 2,048
records a second, series 2 4,096: 1 and 2 MB of 2**20 bytes. Latency runs from the call that submits
a record to its acknowledgement, as kafka-producer-perf-test has it; a load's first seconds are
warm-up and count for the bytes alone. Bytes are those of the batches that a broker's partitions
hold in the end, headers included. All systems run on the same cluster, one after another, each in a
process of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import sample

from fairlead_kafka.base.json_types import Json, number_at, number_or_none
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.faulty_targets import fault, faulty_target
from fairlead_kafka.lab.kip794_cases import (
    DEFAULT_LINGER_MS,
    POLICIES,
    RECORD_SIZE,
    Case,
    cases,
    share_of_broker_0,
)
from fairlead_kafka.lab.kip794_virtual import compared, run_virtual
from fairlead_kafka.lab.paced import MODULES, load_of, make_topics, measure, warm_up
from fairlead_kafka.lab.peers.paced import Task
from fairlead_kafka.lab.plotting import Bars, figure

WARMUP_S = 3.0
_NODE = 0
"""Id of the broker that has the fault."""
PROFILES: Mapping[str, float] = {"quick": 6.0, "full": 20.0}
"""Seconds of measured load per row: 12,288 records in series 1 of the quick profile, 40,960 in that
of the full one."""
AS_QUIET_SHARE = 0.02
"""Runs count as equally undisturbed if the shares of processor time that the host took differ by no
more than this."""
VIRTUAL_SECONDS: Mapping[str, float] = {"quick": 1.0, "full": 20.0}
VIRTUAL_WARMUP_S = 0.6
"""Seconds of warm-up in virtual time: without noise little is enough to tell the policies apart."""
VIRTUAL_PERIOD_MS = 2
"""Period of the load in virtual time, ms: its records are submitted together, as after the pauses
that kafka-producer-perf-test saves.
"""


def run(
    status: Status,
    profile: str = "quick",
    clock: str = "real",
    targets: Sequence[str] = ("apache-kafka",),
    peers: Sequence[str] = tuple(MODULES),
    policies: Sequence[str] = tuple(POLICIES),
    faults: Sequence[str] = ("serial",),
    brokers: int = 3,
    partitions: int = 3,
    delay_ms: float = 20.0,
    rate: int | None = None,
    records: int | None = None,
    lingers_ms: Sequence[int] = (0, DEFAULT_LINGER_MS),
    properties: Mapping[str, Json] | None = None,
    seed: int = 1,
    rounds: int = 1,
) -> list[Row]:
    """Rows {system, policy, series, fault, clock, target, linger_ms, rate, records_per_s, mb_per_s,
    avg_ms, p50_ms, …, bytes_broker_0, …}.

    `clock`: real, virtual (ours alone, in the simulator), or both: then virtual rows also say how
    they compare with the real ones. `peers` are the systems, ours among them. `properties` are
    further configs of ours. A row without figures says why: `skipped`. `rounds`: on sockets, how
    often everything is measured, in random orders if more than once; `chosen_run` chooses the run
    that a row shows.
    """
    rows: list[Row] = []
    if clock != "virtual":
        chosen = cases(PROFILES[profile], rate, records, peers, policies, lingers_ms, properties or {})
        for name in targets:
            rows += _on_target(status, name, chosen, faults, brokers, partitions, delay_ms, rounds)
    if clock != "real":
        # Beside real rows the load is theirs: what grows without bound (sticky) depends on how long
        # it grows.
        alone = clock == "virtual"
        seconds, shape = (
            (VIRTUAL_SECONDS, (VIRTUAL_WARMUP_S, VIRTUAL_PERIOD_MS)) if alone else (PROFILES, (WARMUP_S, 1))
        )
        virtual = cases(seconds[profile], rate, records, ["fairlead"], policies, lingers_ms, properties or {})
        rows += compared(
            rows, run_virtual(status, virtual, faults, brokers, partitions, delay_ms, shape, seed)
        )
    return rows


def _on_target(
    status: Status,
    name: str,
    chosen: Sequence[Case],
    faults: Sequence[str],
    brokers: int,
    partitions: int,
    delay_ms: float,
    rounds: int,
) -> list[Row]:
    status(f"starting {name}")
    rows: list[Row] = []
    try:
        with faulty_target(name, brokers, slowable=(_NODE,)) as target:
            if name == "apache-kafka":
                warm_up(target.bootstrap_servers, brokers, max(case.rate for case in chosen))
            for kind in faults:
                runs = [number for _ in range(rounds) for number in run_order(len(chosen), rounds)]
                topics = [f"kip794-{kind}-{number}" for number in range(len(runs))]
                make_topics(
                    target.bootstrap_servers, topics, brokers, partitions
                )  # before a broker may be dead
                found: dict[int, list[Row]] = {}
                with fault(target, kind, delay_ms, _NODE):
                    for topic, number in zip(topics, runs, strict=True):
                        case = chosen[number]
                        status(
                            f"{name}, {kind}, {case.rate:,}/s, linger {case.linger_ms} ms: {case.system} "
                            f"{case.policy}"
                        )
                        load = load_of(case.records, case.rate, RECORD_SIZE, WARMUP_S)
                        task = Task(case.system, target.bootstrap_servers, topic, load, dict(case.config))
                        found.setdefault(number, []).append(measure(task, brokers))
                rows += [
                    case.row(fault=kind, clock="real", target=name) | chosen_run(found[number])
                    for number, case in enumerate(chosen)
                ]
    except Unavailable as error:
        rows += [
            case.row(fault=kind, clock="real", target=name, skipped=str(error))
            for kind in faults
            for case in chosen
        ]
    return rows


def run_order(count: int, rounds: int) -> list[int]:
    """Order in which a round measures `count` cases: random, but the order of the table if there is
    only one round."""
    return sample(range(count), count) if rounds > 1 else list(range(count))


def chosen_run(runs: Sequence[Row]) -> Row:
    """The run that a row shows: among those that the machine's host disturbed least, the one of
    median average latency.

    Of two such runs it is the better one.
    """
    measured = [row for row in runs if "avg_ms" in row]
    if not measured:
        return runs[0]
    shares = [number_or_none(row, "cpu_stolen_share") or 0.0 for row in measured]
    quiet = [
        row for row, share in zip(measured, shares, strict=True) if share <= min(shares) + AS_QUIET_SHARE
    ]
    return sorted(quiet, key=lambda row: number_at(row, "avg_ms"))[(len(quiet) - 1) // 2]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw p99 and the slow broker's share of the bytes, a pair of panels for each kind of run in
    the rows."""
    panels = []
    for kind in dict.fromkeys(_kind_of(row) for row in rows):
        shown = [row for row in rows if _kind_of(row) == kind and "p99_ms" in row]
        target, fault_kind, series, linger_ms = kind
        title = f"series {series}, linger {linger_ms} ms, {fault_kind}, {target or 'virtual time'}"
        names = [f"{row['system']}, {row['policy']}" for row in shown]
        shares = [100 * share_of_broker_0(row) for row in shown]
        panels.append(
            Bars(f"p99: {title}", names, {"p99": [number_at(row, "p99_ms") for row in shown]}, "ms", log=True)
        )
        panels.append(Bars(f"Bytes on broker 0: {title}", names, {"share": shares}, "% of all bytes"))
    figure(path, panels, "KIP-794: one broker of three is slow", columns=2)


def _kind_of(row: Row) -> tuple[Json, ...]:
    return (row["target"], row["fault"], row["series"], row["linger_ms"])
