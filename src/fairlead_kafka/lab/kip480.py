"""KIP-480's table, run again: latency of records by number of partitions, rate and linger.ms, for
the policies round robin, sticky and later ones.

Three brokers, partition i led by broker i modulo 3, replication factor 1 (the KIP's was 3, on
machines of their own), 512-byte values without keys, acks=all. In virtual time the load is the
KIP's: four active topics, and the records of 100 ms submitted at once, which is the throttle of
Trogdor's ProduceBench, with a flush after them or without. On sockets there is one topic, and runs
that do not flush submit records evenly, as kafka-producer-perf-test does, so that all clients can
take part. Latency runs from the call to the acknowledgement. Batch sizes are those of the batches
that the partitions hold in the end; requests and CPU seconds count the warm-up too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlead_kafka.base.json_types import Json, number_at
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.experiment import AS_KAFKA, Row, Status
from fairlead_kafka.lab.faulty_targets import faulty_target
from fairlead_kafka.lab.paced import load_of, make_topics, measure, warm_up
from fairlead_kafka.lab.pacing import Load
from fairlead_kafka.lab.peers.paced import Task
from fairlead_kafka.lab.plotting import Lines, figure
from fairlead_kafka.lab.virtual_load import VirtualTask, virtual_loads

RECORD_SIZE = 512
BROKERS = 3
TOPICS = 4
"""Number of active topics in virtual time; the rate is that of all together."""
THROTTLE_MS = 100
"""Period of Trogdor's throttle (`WorkerUtils.THROTTLE_PERIOD_MS`), at whose end a flushing run
flushes."""
RATES = (1_000, 10_000)
RUNS = ((0, False), (0, True), (1_000, False))
"""Runs of the table: linger.ms, and whether the run flushes.

With a flush every 100 ms a linger of a second is never reached.
"""

POLICIES: Mapping[str, Mapping[str, Json]] = {
    "round_robin": {"partitioner.class": "round_robin", **AS_KAFKA},
    "sticky": {"partitioner.class": "sticky", **AS_KAFKA},
    "late": {"partitioner.class": "late"},
}
"""Our policies: the two that the KIP compares, and today's default."""
PEER_POLICIES: Mapping[str, Mapping[str, Mapping[str, Json]]] = {
    "java": {
        "round_robin": {"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"},
        "adaptive": {},
    },
    "confluent-kafka": {"default": {}},
    "kafka-python": {"default": {}},
    "aiokafka": {"default": {}},
}
"""Java's sticky partitioner is gone since Kafka 4.0; `adaptive` is its default."""


@dataclass(frozen=True)
class Profile:
    """Sizes of the table: its numbers of partitions, and seconds of load and warm-up of each row.
    `bursts`: runs without flushes, too, submit the records of THROTTLE_MS milliseconds together."""

    partitions: tuple[int, ...]
    seconds: float
    warmup_s: float
    bursts: bool = False

    def load(self, rate: int, records: int | None, flush: bool) -> Load:
        """The load of one row."""
        period_ms = THROTTLE_MS if flush or self.bursts else 1
        return load_of(
            records or round(self.seconds * rate),
            rate,
            RECORD_SIZE,
            self.warmup_s,
            period_ms=period_ms,
            flush=flush,
        )


PROFILES = {"quick": Profile((1, 16, 128), 3.0, 2.0), "full": Profile((1, 16, 32, 64, 128), 12.0, 3.0)}
VIRTUAL_PROFILES = {
    "quick": Profile((1, 16, 128), 2.0, 1.0, bursts=True),
    "full": Profile((1, 16, 32, 64, 128), 12.0, 3.0, bursts=True),
}


@dataclass(frozen=True)
class Case:
    """One row to measure: a system, a policy and a load."""

    system: str
    policy: str
    config: Mapping[str, Json]
    partitions: int
    load: Load
    linger_ms: int

    def row(self, **more: Json) -> Row:
        """The row's first columns, and `more`."""
        return {
            "system": self.system,
            "policy": self.policy,
            "partitions": self.partitions,
            "rate": self.load.rate,
            "linger_ms": self.linger_ms,
            "flush": self.load.flush,
            **more,
        }


def cases(
    profile: Profile,
    *,
    systems: Sequence[str],
    policies: Sequence[str],
    partitions: Sequence[int],
    rates: Sequence[int],
    records: int | None,
) -> list[Case]:
    """All rows to be measured: by partitions, rate, run, then system."""
    found = []
    for count in partitions or profile.partitions:
        for rate in rates or RATES:
            for linger_ms, flush in RUNS:
                load = profile.load(rate, records, flush)
                for system in systems:
                    named = (
                        {name: POLICIES[name] for name in policies}
                        if system == "fairlead"
                        else PEER_POLICIES[system]
                    )
                    for policy, config in named.items():
                        found.append(
                            Case(system, policy, {**config, "linger.ms": linger_ms}, count, load, linger_ms)
                        )
    return found


def run(
    status: Status,
    profile: str = "quick",
    clock: str = "real",
    targets: Sequence[str] = ("apache-kafka",),
    peers: Sequence[str] = ("fairlead",),
    policies: Sequence[str] = tuple(POLICIES),
    partitions: Sequence[int] = (),
    rates: Sequence[int] = (),
    records: int | None = None,
    seed: int = 1,
) -> list[Row]:
    """Rows {system, policy, partitions, rate, linger_ms, flush, clock, target, p50_ms, …,
    batch_size_avg_bytes, requests, cpu_s}.

    `clock`: real, virtual (ours alone), or both. `peers` are the systems, ours among them;
    `partitions` and `rates`: those of the profile and the KIP if empty. A row without figures says
    why: `skipped`.
    """
    rows: list[Row] = []
    chosen = {
        "systems": peers,
        "policies": policies,
        "partitions": partitions,
        "rates": rates,
        "records": records,
    }
    if clock != "virtual":
        for name in targets:
            rows += _on_target(status, name, cases(PROFILES[profile], **chosen))  # type: ignore[arg-type]
    if clock != "real":
        chosen["systems"] = ["fairlead"]
        rows += _virtual(status, cases(VIRTUAL_PROFILES[profile], **chosen), seed)  # type: ignore[arg-type]
    return rows


_COLUMNS = (
    "skipped",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "records_per_s",
    "batch_size_avg_bytes",
    "requests",
    "cpu_s",
    "acked",
    "failed",
)


def _on_target(status: Status, name: str, chosen: Sequence[Case]) -> list[Row]:
    status(f"starting {name}")
    rows: list[Row] = []
    try:
        with faulty_target(name, BROKERS, slowable=()) as target:
            if name == "apache-kafka":
                warm_up(target.bootstrap_servers, BROKERS, max(case.load.rate for case in chosen))
            for number, case in enumerate(chosen):
                flushing = ", flushing" if case.load.flush else ""
                status(
                    f"{name}, {case.partitions} partitions, {case.load.rate:,}/s, linger {case.linger_ms} "
                    f"ms{flushing}: "
                    f"{case.system} {case.policy}"
                )
                topic = f"kip480-{number}"
                make_topics(target.bootstrap_servers, [topic], BROKERS, case.partitions)
                task = Task(case.system, target.bootstrap_servers, topic, case.load, dict(case.config))
                rows.append(case.row(clock="real", target=name) | _shown(measure(task, BROKERS)))
    except Unavailable as error:
        rows += [case.row(clock="real", target=name, skipped=str(error)) for case in chosen]
    return rows


def _virtual(status: Status, chosen: Sequence[Case], seed: int) -> list[Row]:
    tasks = [
        VirtualTask(case.load, dict(case.config), BROKERS, case.partitions, seed=seed, topics=TOPICS)
        for case in chosen
    ]
    measured = virtual_loads(tasks, lambda count: status(f"virtual time: {count} of {len(tasks)} runs"))
    return [
        case.row(clock="virtual", target=None, topics=TOPICS) | _shown(figures)
        for case, figures in zip(chosen, measured, strict=True)
    ]


def _shown(figures: Mapping[str, Json]) -> Row:
    return {key: figures[key] for key in _COLUMNS if key in figures}


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw p99 against the number of partitions, a line for each policy, a panel for each rate and
    run."""
    panels = []
    for clock, target, rate, linger_ms, flush in dict.fromkeys(_panel_of(row) for row in rows):
        series: dict[str, tuple[list[float], list[float | None]]] = {}
        for row in rows:
            if _panel_of(row) == (clock, target, rate, linger_ms, flush) and "p99_ms" in row:
                xs, ys = series.setdefault(f"{row['system']}, {row['policy']}", ([], []))
                xs.append(number_at(row, "partitions"))
                ys.append(number_at(row, "p99_ms"))
        title = (
            f"{rate:,}/s, linger {linger_ms} ms{', flushing' if flush else ''}, {target or 'virtual time'}"
        )
        panels.append(Lines(title, series, "partitions", "p99, ms", log_x=True, log_y=True))
    figure(path, panels, "KIP-480: latency by partitions", columns=3)


def _panel_of(row: Row) -> tuple[Json, ...]:
    return (row["clock"], row.get("target"), row["rate"], row["linger_ms"], row["flush"])
