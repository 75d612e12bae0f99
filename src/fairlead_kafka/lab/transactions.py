"""Transactions committed per second, latency of a commit and CPU seconds, each transaction with
records for three brokers: Fairlead in comparison with other clients.

Each system is a fresh process that makes one transaction after the other (`peers.committing`), with
the defaults of its client. `cold` is from before the process is made until the first, and the first
hundred, are committed; `warm` is what it does after some seconds. Systems take turns within a
round; a row is the median round. The topic and the transactions' own have three replicas, two of
which have to be in sync.

`protocol` v1 and v2 are KIP-98's and KIP-890's, which brokers offer by the feature
`transaction.version`: a client that does not know v2 uses v1 with both.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlead_kafka.base.json_types import number_or_none, text_at
from fairlead_kafka.client import Admin, NewTopic, UpgradeType
from fairlead_kafka.lab.apache_kafka import Unavailable, jars, java
from fairlead_kafka.lab.experiment import Row, Status, not_installed
from fairlead_kafka.lab.peers import committing
from fairlead_kafka.lab.plotting import Bars, figure
from fairlead_kafka.lab.targets import TARGETS, target
from fairlead_kafka.lab.whole_process import marks_of, run_program

BROKERS = 3
RUN_TIMEOUT_S = 180.0
"""Seconds after which a system is stopped; its row says so."""
LOADS: Mapping[str, int] = {"record": 1, "batch": 1_000}
"""Load → records of 100 bytes for each of the three brokers, in each transaction."""
FEATURE = "transaction.version"
PROTOCOLS: Mapping[str, int] = {"v1": 1, "v2": 2}
"""Protocol → level of the feature."""
PROPERTIES: Mapping[str, object] = {
    "transaction.state.log.replication.factor": BROKERS,
    "transaction.state.log.min.isr": 2,
}
SYSTEMS: Mapping[str, str | None] = {
    "fairlead.send": None,
    "fairlead.send_table": None,
    "confluent-kafka": "confluent_kafka",
    "java": None,
    "kafka-python": "kafka",
    "aiokafka": "aiokafka",
}
"""System → the module it needs."""


@dataclass(frozen=True)
class Profile:
    """Sizes and times of a profile; `transactions` is how many are measured cold."""

    transactions: int
    rounds: int
    warm_after_s: float
    warm_s: float


PROFILES: Mapping[str, Profile] = {"quick": Profile(100, 1, 2.0, 2.0), "full": Profile(100, 3, 5.0, 5.0)}


@dataclass(frozen=True)
class Cell:
    """One measurement of each system."""

    target: str
    bootstrap_servers: str
    protocol: str
    load: str
    profile: Profile


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = TARGETS,
    peers: Sequence[str] = tuple(SYSTEMS),
    protocols: Sequence[str] = tuple(PROTOCOLS),
    loads: Sequence[str] = tuple(LOADS),
    rounds: int | None = None,
) -> list[Row]:
    """Rows {system, target, protocol, load, first_s, cold_s, cold_cpu_s, transactions_per_s,
    p50_ms, p99_ms, cpu_s_per_1000, rss_mb}, what comes after `cold_cpu_s` being warm; or {…,
    skipped}.

    `p50_ms` and `p99_ms` are of the call that commits. CPU and memory are the client's process
    alone.
    """
    chosen = PROFILES[profile]
    rows: list[Row] = []
    for name in targets:
        status(f"starting {name}")
        try:
            with target(name, BROKERS, PROPERTIES) as servers:
                for protocol in protocols:
                    with Admin({"bootstrap.servers": servers}) as admin:
                        _speak(admin, protocol)
                    for load in loads:
                        cell = Cell(name, servers, protocol, load, chosen)
                        rows += _measure(status, cell, rounds or chosen.rounds, peers)
        except Unavailable as error:
            rows += [{"system": system, "target": name, "skipped": str(error)} for system in peers]
    return rows


def _speak(admin: Admin, protocol: str) -> None:
    """Set the cluster's transaction protocol (the level of `transaction.version`) that brokers
    offer."""
    level = PROTOCOLS[protocol]
    before = admin.describe_features().finalized.get(FEATURE, 0)
    if before != level:
        how = UpgradeType.UPGRADE if before < level else UpgradeType.SAFE_DOWNGRADE
        admin.update_features({FEATURE: level}, how)


def _measure(status: Status, cell: Cell, rounds: int, peers: Sequence[str]) -> list[Row]:
    measured: dict[str, list[Row]] = {system: [] for system in peers}
    what: Row = {"target": cell.target, "protocol": cell.protocol, "load": cell.load}
    for number in range(rounds):
        for system in peers:
            status(f"{cell.target}, {cell.protocol}, {cell.load}, round {number + 1} of {rounds}: {system}")
            topic = f"transactions-{cell.protocol}-{cell.load}-{number}-{system}"
            assignments = [[(first + more) % BROKERS for more in range(BROKERS)] for first in range(BROKERS)]
            with Admin({"bootstrap.servers": cell.bootstrap_servers}) as admin:
                admin.create_topics(
                    [NewTopic(topic, assignments=assignments, configs={"min.insync.replicas": 2})]
                )
            measured[system].append({"system": system, **what, **run_system(system, cell, topic)})
            with Admin({"bootstrap.servers": cell.bootstrap_servers}) as admin:
                admin.delete_topics([topic])
    return [sorted(rows, key=_speed)[len(rows) // 2] for rows in measured.values()]


def _speed(row: Row) -> float:
    return number_or_none(row, "transactions_per_s") or 0.0


def run_system(system: str, cell: Cell, topic: str) -> Row:
    """Run one system in a process of its own; the measured part of a row, or {"skipped": why}."""
    missing = not_installed(SYSTEMS[system])
    if missing:
        return {"skipped": missing}
    try:
        command = command_of(system, cell, topic)
    except Unavailable as error:
        return {"skipped": str(error)}
    reported = run_program(command, RUN_TIMEOUT_S)
    return reported if "skipped" in reported else figures(marks_of(reported))


def command_of(system: str, cell: Cell, topic: str) -> list[str]:
    """Command line of the program that commits by a system. Raises Unavailable."""
    profile, records = cell.profile, LOADS[cell.load]
    if system == "java":
        options = ["-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{jars()}/*"]
        source = str(Path(__file__).parent / "peers" / "Committing.java")
        sizes = (BROKERS, records, profile.transactions, profile.warm_after_s, profile.warm_s)
        words = [cell.bootstrap_servers, topic, *map(str, sizes), str(time.monotonic())]
        return [java(), *options, source, *words]
    job = {
        "system": system,
        "bootstrap_servers": cell.bootstrap_servers,
        "topic": topic,
        "partitions": BROKERS,
        "records": records,
        "transactions": profile.transactions,
        "warm_after_s": profile.warm_after_s,
        "warm_s": profile.warm_s,
        "started_s": time.monotonic(),
    }
    return [sys.executable, committing.__file__, json.dumps(job)]


def figures(marks: Mapping[str, float]) -> Row:
    """The measured columns of a row, made of the marks that a program printed."""
    count = marks["warm_transactions"]
    return {
        "first_s": round(marks["first_s"], 3),
        "cold_s": round(marks["cold_s"], 3),
        "cold_cpu_s": round(marks["cold_cpu_s"], 3),
        "transactions_per_s": round(count / marks["warm_s"], 1),
        "p50_ms": round(marks["p50_ms"], 2),
        "p99_ms": round(marks["p99_ms"], 2),
        "cpu_s_per_1000": round(1000 * marks["warm_cpu_s"] / count, 3),
        "rss_mb": marks["rss_mb"],
    }


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw transactions per second and the commit's p99 by system, for each target and load, by
    protocol."""
    panels = []
    for name, load in dict.fromkeys((text_at(row, "target"), text_at(row, "load")) for row in rows):
        shown = [row for row in rows if (row["target"], row["load"]) == (name, load)]
        systems = list(dict.fromkeys(text_at(row, "system") for row in shown))
        for key, unit in (("transactions_per_s", "transactions/s"), ("p99_ms", "p99 of a commit, ms")):
            found = {
                (text_at(row, "system"), text_at(row, "protocol")): number_or_none(row, key) for row in shown
            }
            series = {
                protocol: [found.get((system, protocol)) for system in systems] for protocol in PROTOCOLS
            }
            panels.append(Bars(f"{name}, {load}", systems, series, unit))
    figure(path, panels, title="Transactions with records for three brokers")
