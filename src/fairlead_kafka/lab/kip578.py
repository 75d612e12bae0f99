"""KIP-578's appendices, run again: the cost of many partitions, on Fairlead's cluster and on Apache
Kafka, with three brokers on this machine.

    A1  throughput by partitions, three replicas and one. "first touch": the first load that a new
        topic gets, during which Apache Kafka's files grow and epochs are written; "steady": the
        median of further loads on the same topic.
    A2  a topic of very many partitions is created, all brokers are stopped and started, and the
        topic is deleted.
    A3  one broker of three dies of `kill -9`, and comes back (the draft calls it recovery time
        under broker failure; its figures were never published).

Each row is a fresh cluster, the systems taking turns. `create_s`: from the call until every
partition has a leader; `delete_s`: until the metadata has the topic no more; `restart_s`: from the
start of processes (A2: all; A3: the one that died) until every partition is led and every replica
in sync; `failover_s`: from the kill until every partition is led. Memory and files are counted
after the work. A case that Apache Kafka cannot run on this machine is a row with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, FairleadError, TimedOut
from fairlead_kafka.base.json_types import Json, number_at, number_or_none, text_at
from fairlead_kafka.client import Admin, NewPartitions, NewTopic
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.kip578_brokers import BROKERS
from fairlead_kafka.lab.kip578_load import GENERATORS, load
from fairlead_kafka.lab.kip578_targets import HOSTINGS, KipTarget, kip_target, too_many_for_apache_kafka
from fairlead_kafka.lab.plotting import Lines, figure
from fairlead_kafka.lab.targets import TARGETS

EXPERIMENTS = ("A1", "A2", "A3")
TOPIC = "kip578"
CREATED_AT_ONCE = 5_000
"""Partitions in one request at most, where a larger one was refused: Apache Kafka refuses more than
some 10,000 metadata records.
"""
PATIENCE_S = 300.0
COLUMNS = ("mb_per_s", "p99_ms", "create_s", "delete_s", "restart_s", "rss_mb", "files")


@dataclass(frozen=True)
class Profile:
    """Partitions, records and runs to measure. `apache_partitions_max`: the quick profile spares
    Apache Kafka the sizes that take it minutes.

    `records` of a load: of less than a million much is over before Java has compiled itself, which
    takes longer the more partitions there are to go through, and on two cores slows the brokers
    down too.
    """

    replicated: tuple[int, ...]
    single: tuple[int, ...]
    created: tuple[int, ...]
    failed_over: tuple[int, ...]
    records: int
    steady_runs: int
    apache_partitions_max: int | None = None


PROFILES = {
    "quick": Profile((10, 1_000, 5_000, 10_000), (10, 10_000), (5_000, 30_000), (1_000,), 150_000, 1, 5_000),
    "full": Profile(
        (10, 100, 1_000, 5_000, 10_000, 30_000),
        (10, 100, 1_000, 5_000, 10_000, 30_000),
        (1_000, 5_000, 10_000, 30_000),
        (1_000, 10_000, 30_000),
        1_500_000,
        3,
    ),
}


@dataclass(frozen=True)
class Case:
    """One cluster's measurements: of which system, by which experiment, with how many
    partitions."""

    system: str
    experiment: str
    partitions: int
    replication_factor: int = BROKERS

    def row(self, **figures: Json) -> Row:
        """A row with all columns; those that were not measured are None."""
        row: Row = {
            "system": self.system,
            "experiment": self.experiment,
            "partitions": self.partitions,
            "replication_factor": self.replication_factor,
        }
        return row | figures if "skipped" in figures else row | dict.fromkeys(COLUMNS) | figures


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = TARGETS,
    experiments: Sequence[str] = EXPERIMENTS,
    generators: Sequence[str] = GENERATORS,
    partitions: Sequence[int] = (),
    records: int | None = None,
    hosting: str = HOSTINGS[0],
) -> list[Row]:
    """Rows {system, experiment, partitions, replication_factor, mb_per_s, p99_ms, create_s,
    delete_s, restart_s, rss_mb, files}.

    What an experiment does not measure is None. A1 adds `load` ("first touch" or "steady"),
    `generator`, `max_ms`; A3 `failover_s`. `partitions`: only these sizes; `hosting`: of our
    brokers. Systems that cannot: {…, skipped: why}.
    """
    chosen = PROFILES[profile]
    rows: list[Row] = []
    for case in cases(chosen, targets, experiments, partitions):
        status(
            f"{case.experiment}, {case.partitions:,} partitions × {case.replication_factor}: {case.system}"
        )
        why = _cannot(case, profile, chosen)
        if why is not None:
            rows.append(case.row(skipped=why))
            continue
        try:
            with kip_target(case.system, hosting) as target:
                rows += _MEASURED[case.experiment](
                    status, case, target, chosen, records or chosen.records, generators
                )
        except (Unavailable, FairleadError) as error:
            rows.append(case.row(skipped=str(error)))
    return rows


def cases(
    profile: Profile, targets: Sequence[str], experiments: Sequence[str], partitions: Sequence[int] = ()
) -> Iterator[Case]:
    """Every cluster to measure, the systems taking turns."""
    sizes: dict[tuple[str, int], Sequence[int]] = {
        ("A1", BROKERS): profile.replicated,
        ("A1", 1): profile.single,
        ("A2", BROKERS): profile.created,
        ("A3", BROKERS): profile.failed_over,
    }
    for (experiment, factor), usual in sizes.items():
        if experiment in experiments:
            yield from (
                Case(system, experiment, size, factor) for size in partitions or usual for system in targets
            )


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw throughput by partitions (A1), a panel for each load, replication factor and generator;
    then a panel for each figure of A2.
    """
    panels = []
    loads = [row for row in rows if row["experiment"] == "A1"]
    for what in dict.fromkeys((row["replication_factor"], row["generator"], row["load"]) for row in loads):
        shown = [row for row in loads if (row["replication_factor"], row["generator"], row["load"]) == what]
        factor, generator, kind = what
        title = f"A1, {'3-way' if factor == BROKERS else '1-way'}, {generator} producer, {kind}"
        panels.append(Lines(title, _by_system(shown, "mb_per_s"), "partitions", "MB/s", log_x=True))
    created = [row for row in rows if row["experiment"] == "A2"]
    for column in ("create_s", "restart_s", "delete_s", "rss_mb", "files"):
        unit = {"rss_mb": "MiB", "files": "files"}.get(column, "s")
        panels.append(
            Lines(
                f"A2, {column}", _by_system(created, column), "partitions × 3", unit, log_x=True, log_y=True
            )
        )
    figure(path, panels, title="KIP-578: what partitions cost", columns=2)


def _by_system(rows: Sequence[Row], column: str) -> dict[str, tuple[list[float], list[float | None]]]:
    """Partitions and values by system; a value below a millisecond is drawn as one, since the axis
    is logarithmic.
    """
    found: dict[str, tuple[list[float], list[float | None]]] = {}
    for row in rows:
        sizes, values = found.setdefault(text_at(row, "system"), ([], []))
        sizes.append(number_at(row, "partitions"))
        value = number_or_none(row, column)
        values.append(None if value is None else max(value, 0.001))
    return found


def _cannot(case: Case, name: str, profile: Profile) -> str | None:
    if case.system != "apache-kafka":
        return None
    if profile.apache_partitions_max is not None and case.partitions > profile.apache_partitions_max:
        return (
            f"profile {name} tries Apache Kafka up to {profile.apache_partitions_max:,} partitions; "
            "--profile full goes on"
        )
    return too_many_for_apache_kafka(case.partitions * case.replication_factor // BROKERS)


# The experiments


def _throughput(
    status: Status, case: Case, target: KipTarget, profile: Profile, records: int, generators: Sequence[str]
) -> Iterator[Row]:
    for generator in generators:
        topic = f"{TOPIC}-{generator}"
        create_s = _create(target, topic, case)
        status(
            f"A1, {case.partitions:,} partitions × {case.replication_factor}: {generator} on {case.system}"
        )
        first = load(generator, target.bootstrap_servers, topic, records)
        weight = {"rss_mb": target.rss_mb(), "files": target.files()}
        steady = [
            load(generator, target.bootstrap_servers, topic, records) for _ in range(profile.steady_runs)
        ]
        again = {"rss_mb": target.rss_mb(), "files": target.files()}
        delete_s = _delete(target, topic)
        yield case.row(
            **{"load": "first touch", "generator": generator, **first, **weight, "create_s": create_s}
        )
        yield case.row(
            **{"load": "steady", "generator": generator, **_middle(steady), **again, "delete_s": delete_s}
        )


def _creation(
    status: Status, case: Case, target: KipTarget, profile: Profile, records: int, generators: Sequence[str]
) -> Iterator[Row]:
    create_s = _create(target, TOPIC, case)
    weight = {"rss_mb": target.rss_mb(), "files": target.files()}
    target.stop()
    begun_s = time.monotonic()
    target.start()
    restart_s = _until(target, TOPIC, _whole, begun_s)
    yield case.row(create_s=create_s, restart_s=restart_s, delete_s=_delete(target, TOPIC), **weight)


def _failure(
    status: Status, case: Case, target: KipTarget, profile: Profile, records: int, generators: Sequence[str]
) -> Iterator[Row]:
    create_s = _create(target, TOPIC, case)
    load(generators[-1], target.bootstrap_servers, TOPIC, records)
    victim = 0  # Apache Kafka's last broker is its controller too
    begun_s = time.monotonic()
    target.kill(victim)
    failover_s = _until(
        target, TOPIC, lambda partitions: all(each.leader not in (-1, victim) for each in partitions), begun_s
    )
    begun_s = time.monotonic()
    target.revive(victim)
    restart_s = _until(target, TOPIC, _whole, begun_s)
    yield case.row(
        create_s=create_s,
        failover_s=failover_s,
        restart_s=restart_s,
        rss_mb=target.rss_mb(),
        files=target.files(),
    )


_MEASURED: dict[str, Callable[..., Iterator[Row]]] = {"A1": _throughput, "A2": _creation, "A3": _failure}


def _middle(runs: Sequence[Row]) -> Row:
    """The run of median throughput; if a run failed, the first one that did."""
    failed = [run for run in runs if "skipped" in run]
    if failed:
        return failed[0]
    middle = median(number_at(run, "mb_per_s") for run in runs)
    return min(runs, key=lambda run: abs(number_at(run, "mb_per_s") - middle))


def _whole(partitions: Sequence[PartitionMetadata]) -> bool:
    return all(each.leader >= 0 and len(each.isr) == len(each.replicas) for each in partitions)


def _create(target: KipTarget, topic: str, case: Case) -> float:
    """Create a topic, and return the seconds until every partition has a leader.

    Partitions are added in parts if one request is refused.
    """
    with _admin(target) as admin:
        admin.describe_cluster(
            timeout_s=PATIENCE_S
        )  # what it takes to load and connect this client is not the cluster's
        begun_s = time.monotonic()
        try:
            admin.create_topics(
                [NewTopic(topic, case.partitions, case.replication_factor)], timeout_s=PATIENCE_S
            )
        except BrokerError as error:
            if error.code != ErrorCode.POLICY_VIOLATION or case.partitions <= CREATED_AT_ONCE:
                raise
            admin.create_topics(
                [NewTopic(topic, CREATED_AT_ONCE, case.replication_factor)], timeout_s=PATIENCE_S
            )
            for total in range(2 * CREATED_AT_ONCE, case.partitions + CREATED_AT_ONCE, CREATED_AT_ONCE):
                admin.create_partitions(
                    {topic: NewPartitions(min(total, case.partitions))}, timeout_s=PATIENCE_S
                )
    created_s = time.monotonic() - begun_s
    _until(target, topic, _whole, begun_s)
    return round(created_s, 3)


def _delete(target: KipTarget, topic: str) -> float:
    begun_s = time.monotonic()
    with _admin(target) as admin:
        admin.delete_topics([topic], timeout_s=PATIENCE_S)
    return round(time.monotonic() - begun_s, 3)


def _until(
    target: KipTarget, topic: str, reached: Callable[[Sequence[PartitionMetadata]], bool], begun_s: float
) -> float:
    """Seconds since `begun_s` when the topic's partitions satisfy `reached`.

    TimedOut after `PATIENCE_S` seconds.
    """
    with _admin(target) as admin:
        while True:
            try:
                partitions = admin.describe_topics([topic], timeout_s=PATIENCE_S)[topic].partitions
                if reached(partitions):
                    return round(time.monotonic() - begun_s, 3)
            except BrokerError:
                pass  # a broker that has just started may not know the topic yet
            if time.monotonic() - begun_s > PATIENCE_S:
                raise TimedOut(
                    f"the partitions of {topic} were not as they should be within {PATIENCE_S:g} s"
                )
            time.sleep(0.02)


def _admin(target: KipTarget) -> Admin:
    # A broker that does not answer must not hold up the measurement.
    return Admin(
        {
            "bootstrap.servers": target.bootstrap_servers,
            "request.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 100,
        }
    )
