"""Records produced per second, CPU seconds per million and memory, acks=all, 12 partitions, one
broker: Fairlead in comparison with other clients.

Each system is a fresh process that sends as a program would (`peers.sending`): `cold` is all of it,
from before the process is made until every record is acknowledged, and the part of it from the
first record on; `warm` is what it does after ten seconds. Java is Kafka's own producer perf tool,
whose figures are cold. `raw` sends batches that were built beforehand: the broker's limit, and so
that of any client. Systems take turns within a round, so that noise of the machine affects all
alike; a row is the median round. Values are cut from log lines, so that they compress as text does.
CPU and memory are those of the client's process alone, its interpreter and libraries included; for
Java CPU includes starting the JVM.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import fairlead_kafka.lab.peers.sending as sending
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.json_types import number_or_none, text_at
from fairlead_kafka.base.units import MIB
from fairlead_kafka.client import Admin, NewTopic
from fairlead_kafka.lab.apache_kafka import Unavailable, java_command
from fairlead_kafka.lab.bounded import NotFinished
from fairlead_kafka.lab.experiment import Row, Status, not_installed
from fairlead_kafka.lab.lines import values_of_size
from fairlead_kafka.lab.peers.tls import settings_of
from fairlead_kafka.lab.plotting import Bars, figure
from fairlead_kafka.lab.targets import TARGETS, Place, secured_target
from fairlead_kafka.lab.whole_process import marks_of, run_program, run_whole

PARTITIONS = 12
RUN_TIMEOUT_S = 300.0
"""Seconds after which a system is stopped; its row says so."""
VALUES = 1_000
"""Number of different values, used in turn."""
TABLE_ROWS_MAX, TABLE_BYTES = 100_000, 10_000_000
"""Limits of the tables that are sent, in rows and bytes: they are the application's memory, and
small enough not to stand out.
"""
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
KEYS = ("unkeyed", "keyed")
BUFFER_MB = CLIENT_CONFIGS.parse("producer", {"bootstrap.servers": "x:1"})["buffer.memory"] / MIB

SYSTEMS: dict[str, tuple[str | None, float]] = {
    "raw": (None, 1.0),
    "fairlead.send": (None, 1.0),
    "fairlead.send.callbacks": (None, 1.0),
    "fairlead.send.handles": (None, 1.0),
    "fairlead.send_table": (None, 1.0),
    "fairlead.async": (None, 1.0),
    "confluent-kafka.produce": ("confluent_kafka", 1.0),
    "confluent-kafka.produce.callbacks": ("confluent_kafka", 1.0),
    "confluent-kafka.produce_batch": ("confluent_kafka", 1.0),
    "confluent-kafka.async": ("confluent_kafka", 0.2),
    "java": (None, 1.0),
    "kafka-python": ("kafka", 0.1),
    "aiokafka": ("aiokafka", 0.2),
}
"""System → the module it needs, and its share of the records when it is cold: the slow ones would
take minutes for a figure no better.
"""


@dataclass(frozen=True)
class Profile:
    """Sizes and times of a profile.

    `cells`: record size, keyed or not, compression of each measurement.
    """

    records: int
    rounds: int
    warm_after_s: float
    warm_s: float
    cells: tuple[tuple[int, str, str], ...]


PROFILES: dict[str, Profile] = {
    "quick": Profile(1_000_000, 1, 3.0, 2.0, ((100, "unkeyed", "none"),)),
    "full": Profile(
        1_000_000,
        1,
        10.0,
        5.0,
        (
            *((size, key, "none") for size in (10, 100, 512, 1024) for key in KEYS),
            *((512, "unkeyed", compression) for compression in COMPRESSIONS[1:]),
        ),
    ),
}


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = TARGETS,
    peers: Sequence[str] = tuple(SYSTEMS),
    records: int | None = None,
    record_sizes: Sequence[int] = (),
    keys: Sequence[str] = (),
    compressions: Sequence[str] = (),
    rounds: int | None = None,
    securities: Sequence[str] = ("plaintext",),
) -> list[Row]:
    """Rows {system, target, security, record_size, key, compression, acked, cold_s, first_100000_s,
    cold_records_per_s, cold_cpu_s_per_million, records_per_s, mb_per_s, cpu_s_per_million, rss_mb},
    what has no `cold` in it being warm; or {…, skipped}.

    `acked`: how many records were acknowledged while it was cold, all that it was given. `rss_mb`:
    the client's resident memory at its peak; for clients that have a `buffer.memory`,
    `rss_over_buffer_mb` is what of it is beyond that; both in 2**20 bytes. Sizes, keys ("keyed",
    "unkeyed") and compressions make every combination of those given; of what is not given there is
    what the profile has.
    """
    chosen = PROFILES[profile]
    rows: list[Row] = []
    for name, security in product(targets, securities):
        status(f"starting {name}")
        try:
            with (
                secured_target(name, security) as (plaintext, place),
                TemporaryDirectory(prefix="fairlead-lab-") as folder,
            ):
                for size, key, compression in cells(chosen, record_sizes, keys, compressions):
                    count = records or chosen.records
                    cell = Cell(
                        name,
                        security,
                        plaintext,
                        place,
                        size,
                        key,
                        compression,
                        count,
                        chosen.warm_after_s,
                        chosen.warm_s,
                        folder,
                    )
                    rows += _measure(status, cell, rounds or chosen.rounds, peers)
        except Unavailable as error:
            rows += [
                {"system": system, "target": name, "security": security, "skipped": str(error)}
                for system in peers
            ]
    return rows


def cells(
    profile: Profile,
    record_sizes: Sequence[int] = (),
    keys: Sequence[str] = (),
    compressions: Sequence[str] = (),
) -> list[tuple[int, str, str]]:
    """Cells to measure: the profile's, or every combination of what is given with the profile's
    rest.
    """
    if not record_sizes and not keys and not compressions:
        return list(profile.cells)
    plain = [cell for cell in profile.cells if cell[2] == "none"]
    sizes = record_sizes or list(dict.fromkeys(size for size, _, _ in plain))
    return [
        (size, key, compression)
        for size in sizes
        for key in keys or KEYS[:1]
        for compression in compressions or ("none",)
    ]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw records per second by system, for each target, key and compression a panel, for each
    record size a colour."""
    panels = []
    for cell in dict.fromkeys(
        (row["target"], row.get("security", "plaintext"), row["key"], row["compression"]) for row in rows
    ):
        found = {
            (text_at(row, "system"), row["record_size"]): number_or_none(
                row, "records_per_s" if "records_per_s" in row else "cold_records_per_s"
            )
            for row in rows
            if (row["target"], row.get("security", "plaintext"), row["key"], row["compression"]) == cell
        }
        systems, sizes = (
            list(dict.fromkeys(system for system, _ in found)),
            list(dict.fromkeys(size for _, size in found)),
        )
        series = {f"{size} B": [found.get((system, size)) for system in systems] for size in sizes}
        name, security, key, compression = cell
        title = (
            f"{name}, {security}, {key}, "
            + (f"{sizes[0]} B, " if len(sizes) == 1 else "")
            + f"compression {compression}"
        )
        panels.append(Bars(title, systems, series, "records/s", log=True))
    figure(path, panels, title="Records produced per second, acks=all")


@dataclass(frozen=True)
class Cell:
    """One measurement: slow systems send a share of `records`; files of values are in `folder`."""

    target: str
    security: str
    plaintext: str
    """Plaintext address, for preparing and cleaning up."""
    place: Place
    size: int
    key: str
    compression: str
    records: int
    warm_after_s: float
    warm_s: float
    folder: str

    @property
    def file(self) -> str:
        """Path of the file of values."""
        return str(Path(self.folder) / f"{self.size}-{self.key}")

    def write_file(self) -> None:
        """Write the values, one per line, and as a table: making it in the program would cost
        pandas, where that is installed.
        """
        import pyarrow as pa

        values = values_of_size(self.size, VALUES)
        Path(self.file).write_bytes(b"".join(value + b"\n" for value in values))
        rows = min(TABLE_ROWS_MAX, max(TABLE_BYTES // self.size, 1))
        columns = {"value": pa.array((values * (rows // VALUES + 1))[:rows], pa.binary())}
        if self.key == "keyed":
            columns["key"] = pa.array([b"key-%d" % (row % sending.KEYS) for row in range(rows)], pa.binary())
        table = pa.table(columns)
        with pa.OSFile(self.file + ".arrow", "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)


def _measure(status: Status, cell: Cell, rounds: int, peers: Sequence[str]) -> list[Row]:
    measured: dict[str, list[Row]] = {system: [] for system in peers}
    what: Row = {
        "target": cell.target,
        "security": cell.security,
        "record_size": cell.size,
        "key": cell.key,
        "compression": cell.compression,
    }
    cell.write_file()
    for number in range(rounds):
        for system in peers:
            status(
                f"{cell.target}, {cell.security}, {cell.size} B, {cell.key}, {cell.compression}, round "
                f"{number + 1} of {rounds}: {system}"
            )
            topic = f"throughput-{cell.size}-{cell.key}-{cell.compression}-{number}-{system}"
            with Admin({"bootstrap.servers": cell.plaintext}) as admin:
                admin.create_topics([NewTopic(topic, partitions=PARTITIONS)])
            measured[system].append({"system": system, **what, **run_system(system, cell, topic)})
            # Deleting keeps the disk from filling, and no later system pays for this one's data.
            with Admin({"bootstrap.servers": cell.plaintext}) as admin:
                admin.delete_topics([topic])
    return [sorted(rows, key=_speed)[len(rows) // 2] for rows in measured.values()]


def _speed(row: Row) -> float:
    return number_or_none(row, "records_per_s") or number_or_none(row, "cold_records_per_s") or 0.0


def run_system(system: str, cell: Cell, topic: str) -> Row:
    """Run one system in a process of its own; returns the measured columns of a row, or {"skipped":
    why}."""
    module, share = SYSTEMS[system]
    missing = not_installed(module)
    if missing:
        return {"skipped": missing}
    if system == "java" and cell.key == "keyed":
        return {"skipped": "kafka-producer-perf-test sends no keys"}
    if system == "raw" and cell.place.trust is not None:
        return {"skipped": "it has no TLS: what encrypts is what is measured"}
    records = max(1000, int(cell.records * share))
    if system != "java":
        reported = run_program(command_of(system, cell, topic, records), RUN_TIMEOUT_S)
        return reported if "skipped" in reported else figures(system, marks_of(reported), cell.size)
    try:
        return _java(cell, topic, records)
    except (NotFinished, Unavailable) as error:
        return {"skipped": str(error)}


def command_of(system: str, cell: Cell, topic: str, records: int) -> list[str]:
    """Command line of the program that sends `records` records by a system (`peers.sending`)."""
    job = {
        "system": system,
        "bootstrap_servers": cell.place.bootstrap_servers,
        "secured": settings_of(system, cell.place.trust),
        "topic": topic,
        "records": records,
        "keyed": cell.key == "keyed",
        "compression": cell.compression,
        "file": cell.file,
        "warm_after_s": cell.warm_after_s,
        "warm_s": cell.warm_s,
        "started_s": time.monotonic(),
    }
    return [sys.executable, sending.__file__, json.dumps(job)]


def figures(system: str, marks: Mapping[str, float], size: int) -> Row:
    """The measured columns of a row, made of the marks that a program printed. MB per second are
    10^6 bytes of values, those of memory 2^20."""
    warm_per_s = marks["warm_acked"] / marks["warm_s"]
    row: Row = {
        "acked": marks["cold_acked"],
        "cold_s": round(marks["cold_s"], 3),
        "first_100000_s": round(marks["first_100000_s"], 3) if "first_100000_s" in marks else None,
        "cold_records_per_s": round(marks["cold_acked"] / marks["sending_s"]),
        "cold_cpu_s_per_million": round(marks["cold_cpu_s"] / max(1, marks["cold_acked"]) * 1e6, 3),
        "records_per_s": round(warm_per_s),
        "mb_per_s": round(warm_per_s * size / 1e6, 1),
        "cpu_s_per_million": round(marks["warm_cpu_s"] / max(1, marks["warm_acked"]) * 1e6, 3),
        "rss_mb": marks["rss_mb"],
    }
    if system.startswith("fairlead."):
        row["rss_over_buffer_mb"] = round(marks["rss_mb"] - BUFFER_MB)
    return row


def _java(cell: Cell, topic: str, records: int) -> Row:
    """Run Kafka's own kafka-producer-perf-test. Raises Unavailable, NotFinished."""
    given = {
        "bootstrap.servers": cell.place.bootstrap_servers,
        "acks": "all",
        "compression.type": cell.compression,
    }
    settings = [f"{key}={value}" for key, value in (given | settings_of("java", cell.place.trust)).items()]
    command = java_command(
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic", topic, "--num-records", str(records), "--payload-file", cell.file, "--throughput", "-1",
        "--command-property", *settings,
    )  # fmt: skip
    ran = run_whole(command, RUN_TIMEOUT_S)
    found = re.findall(r"(\d+) records sent, ([\d.]+) records/sec", ran.said)
    if ran.returncode or not found:
        return {"skipped": f"failed: {ran.said.strip()[-200:]}"}
    acked = int(found[-1][0])
    return {
        "acked": acked,
        "cold_s": round(ran.seconds, 3),
        "cold_records_per_s": round(float(found[-1][1])),
        "cold_cpu_s_per_million": round(ran.cpu_s / max(1, acked) * 1e6, 3),
        "rss_mb": ran.rss_mb,
        "rss_over_buffer_mb": round(ran.rss_mb - BUFFER_MB),
    }
