"""Records read per second, from the first line of a program on and once it is warm; CPU, memory;
and latency from send to poll.

Each system is a fresh process that reads a topic as a program would (`peers.reading`): `cold` is
all of it, from before the process is made until every record has come, and the part of it from the
first poll on; `warm` is what it does after ten seconds. Java is Kafka's own consumer perf tool,
whose figures are cold. `raw` fetches and decodes nothing but headers of batches: the broker's
limit. `latency` rows send and poll in one program at a steady rate (`peers.sent_to_polled`).
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import fairlead_kafka.lab.peers.reading as reading
import fairlead_kafka.lab.peers.sent_to_polled as sent_to_polled
from fairlead_kafka.base.json_types import number_or_none, text_at
from fairlead_kafka.client import Admin, NewTopic, Producer
from fairlead_kafka.lab.apache_kafka import Unavailable, java_command
from fairlead_kafka.lab.bounded import NotFinished
from fairlead_kafka.lab.experiment import Row, Status, not_installed
from fairlead_kafka.lab.faulty_targets import faulty_target
from fairlead_kafka.lab.lines import values_of_size
from fairlead_kafka.lab.peers.tls import settings_of
from fairlead_kafka.lab.plotting import Bars, figure
from fairlead_kafka.lab.targets import SECURITIES, TARGETS, Place, secured_target
from fairlead_kafka.lab.whole_process import marks_of, run_program, run_whole

RUN_TIMEOUT_S = 180.0
LATENCY_ROUNDS = 3
FILLED = 50_000
VALUES = 1_000
_MORE = 4
"""A topic holds this part, 1/4, more than a reader reads before it begins again: at the end of a
log fetches wait for more.
"""
SYSTEMS: dict[str, tuple[str | None, float]] = {
    "raw": (None, 1.0),
    "fairlead.poll_table": (None, 1.0),
    "fairlead.poll": (None, 1.0),
    "fairlead.async.poll_table": (None, 1.0),
    "fairlead.async.poll": (None, 1.0),
    "confluent-kafka.consume": ("confluent_kafka", 1.0),
    "confluent-kafka.poll": ("confluent_kafka", 1.0),
    "kafkarrow": ("kafkarrow", 1.0),
    "java": (None, 1.0),
    "aiokafka": ("aiokafka", 1.0),
    "kafka-python": ("kafka", 0.2),
}
"""System → the module that it needs, and its share of the records when it is cold."""
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
HOWS = ("assigned", "group")
ISOLATIONS = ("read_uncommitted", "read_committed")


@dataclass(frozen=True)
class Cell:
    """One thing to measure: what is read, and how.

    `delay_ms` delays each answer by so many milliseconds, as of a far broker; not with TLS.
    """

    record_size: int = 100
    partitions: int = 12
    compression: str = "none"
    how: str = "assigned"
    delay_ms: int = 0
    isolation: str = "read_uncommitted"
    security: str = "plaintext"


@dataclass(frozen=True)
class Profile:
    """Sizes and times of a profile.

    `records` is for records of 100 bytes; larger records are so many fewer that they take no more
    bytes.
    """

    records: int
    warm_after_s: float
    warm_s: float
    cells: tuple[Cell, ...]
    latency_s: float


PLAIN = Cell()
PROFILES: dict[str, Profile] = {
    "quick": Profile(1_000_000, 3.0, 2.0, (PLAIN,), 4.0),
    "full": Profile(
        3_000_000,
        10.0,
        5.0,
        (
            PLAIN,
            *(replace(PLAIN, record_size=size) for size in (10, 512, 1024)),
            *(replace(PLAIN, partitions=partitions) for partitions in (1, 1000)),
            *(replace(PLAIN, compression=compression) for compression in COMPRESSIONS[1:]),
            replace(PLAIN, how="group"),
            replace(PLAIN, delay_ms=20),
            replace(PLAIN, isolation="read_committed"),
        ),
        10.0,
    ),
}


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = TARGETS,
    peers: Sequence[str] = tuple(SYSTEMS),
    records: int | None = None,
    cells: Sequence[Cell] = (),
    latency: bool = True,
) -> list[Row]:
    """Rows {system, target, record_size, partitions, compression, how, delay_ms, isolation,
    security, cold_s, first_100000_s, cold_records_per_s, cold_cpu_s_per_million, records_per_s,
    mb_per_s, cpu_s_per_million, rss_mb}, what has no `cold` in it being warm; or {…, skipped}. Rows
    of latency have {system, target, how: "latency", rate, p50_ms, p99_ms, records}.
    """
    chosen = PROFILES[profile]
    if records is not None:
        chosen = replace(chosen, records=records)
    rows: list[Row] = []
    for name in targets:
        status(f"starting {name}")
        try:
            near = [cell for cell in cells or chosen.cells if not cell.delay_ms]
            security = max((cell.security for cell in near), key=SECURITIES.index, default=SECURITIES[0])
            with secured_target(name, security) as (plaintext, secured):
                for cell in near:
                    place = secured if cell.security != "plaintext" else Place(plaintext)
                    rows += _measure(status, name, plaintext, place, cell, chosen, peers)
                if latency:
                    rows += _latencies(status, name, plaintext, chosen, peers)
            for cell in (cell for cell in cells or chosen.cells if cell.delay_ms):
                with faulty_target(name, brokers=1) as far:
                    far.slow(0, latency_ms=cell.delay_ms)
                    rows += _measure(
                        status, name, far.bootstrap_servers, Place(far.bootstrap_servers), cell, chosen, peers
                    )
        except Unavailable as error:
            rows += [{"system": system, "target": name, "skipped": str(error)} for system in peers]
    return rows


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw records per second by system, cold and warm, a panel for each cell."""
    panels = []
    read = [row for row in rows if row["how"] != "latency"]
    for place in dict.fromkeys((row["target"], *(row[name] for name in asdict(PLAIN))) for row in read):
        found = [row for row in read if (row["target"], *(row[name] for name in asdict(PLAIN))) == place]
        series = {
            each: [number_or_none(row, key) for row in found]
            for each, key in (("cold", "cold_records_per_s"), ("warm", "records_per_s"))
        }
        panels.append(
            Bars(
                ", ".join(map(str, place)),
                [text_at(row, "system") for row in found],
                series,
                "records/s",
                log=True,
            )
        )
    figure(path, panels, title="Records read per second")


def records_of(cell: Cell, records: int) -> int:
    """Number of records that a cell reads: no more bytes than `records` records of 100 bytes."""
    return max(FILLED, int(records * min(1.0, 100 / cell.record_size)) // FILLED * FILLED)


def _measure(
    status: Status,
    name: str,
    bootstrap_servers: str,
    place: Place,
    cell: Cell,
    chosen: Profile,
    peers: Sequence[str],
) -> list[Row]:
    """A row for each system. `bootstrap_servers`: the plaintext address, for preparing; `place`:
    what is read from.
    """
    topic = "consume-" + "-".join(str(value) for value in asdict(cell).values())
    count = records_of(cell, chosen.records)
    status(f"{name}, {topic}: filling")
    _fill(bootstrap_servers, topic, cell, count + count // _MORE)
    rows: list[Row] = []
    for system in peers:
        status(f"{name}, {topic}: {system}")
        rows.append(
            {
                "system": system,
                "target": name,
                **asdict(cell),
                **_once(system, place, topic, cell, count, chosen),
            }
        )
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        admin.delete_topics([topic])
    return rows


def _fill(bootstrap_servers: str, topic: str, cell: Cell, count: int) -> None:
    import pyarrow as pa

    config = {"bootstrap.servers": bootstrap_servers, "compression.type": cell.compression}
    transactional = cell.isolation == "read_committed"
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(topic, partitions=cell.partitions)])
    values = values_of_size(cell.record_size, VALUES)
    table = pa.table({"value": pa.array(values * (FILLED // len(values)), pa.binary())})
    with Producer(config | ({"transactional.id": topic} if transactional else {})) as producer:
        if transactional:
            producer.init_transactions()
        for _ in range(-(-count // FILLED)):
            if transactional:
                with producer.transaction():
                    producer.send_table(topic, table)
            else:
                producer.send_table(topic, table).result()


def _once(system: str, place: Place, topic: str, cell: Cell, count: int, chosen: Profile) -> Row:
    module, share = SYSTEMS[system]
    missing = not_installed(module)
    if missing:
        return {"skipped": missing}
    if system == "raw" and cell.how == "group":
        return {"skipped": "raw is no member of a group"}
    if system == "kafkarrow" and cell.how == "group":
        return {"skipped": "kafkarrow has no groups"}
    if system == "java":
        return _java(place, topic, cell, count)
    count = max(FILLED, int(count * share))
    job = {
        "system": system,
        "bootstrap_servers": place.bootstrap_servers,
        "secured": settings_of(system, place.trust),
        "topic": topic,
        "partitions": cell.partitions,
        "records": count,
        "group": cell.how == "group",
        "isolation": cell.isolation,
        "warm_after_s": chosen.warm_after_s,
        "warm_s": chosen.warm_s,
        "started_s": time.monotonic(),
    }
    reported = run_program([sys.executable, reading.__file__, json.dumps(job)], RUN_TIMEOUT_S)
    return reported if "skipped" in reported else figures(marks_of(reported), cell, count)


def figures(marks: Mapping[str, float], cell: Cell, count: int) -> Row:
    """The measured columns of a row, made of the marks that a program printed."""
    warm_per_s = marks["warm_records"] / marks["warm_s"]
    return {
        "cold_s": round(marks["cold_s"], 3),
        "first_100000_s": round(marks["first_100000_s"], 3) if "first_100000_s" in marks else None,
        "cold_records_per_s": round(count / marks["reading_s"]),
        "cold_cpu_s_per_million": round(marks["cold_cpu_s"] / count * 1e6, 3),
        "records_per_s": round(warm_per_s),
        "mb_per_s": round(warm_per_s * cell.record_size / 1e6, 1),
        "cpu_s_per_million": round(marks["warm_cpu_s"] / max(1, marks["warm_records"]) * 1e6, 3),
        "rss_mb": round(marks["rss_mb"]),
    }


def _java(place: Place, topic: str, cell: Cell, count: int) -> Row:
    """The measured columns for Kafka's own kafka-consumer-perf-test, which always reads as a group;
    its fetch time begins with the assignment."""
    secured = settings_of("java", place.trust)
    settings = (f"isolation.level={cell.isolation}", *(f"{key}={value}" for key, value in secured.items()))
    command = java_command(
        "org.apache.kafka.tools.ConsumerPerformance",
        "--bootstrap-server", place.bootstrap_servers, "--topic", topic, "--num-records", str(count),
        "--timeout", "30000", "--hide-header",
        *(part for setting in settings for part in ("--command-property", setting)),
    )  # fmt: skip
    try:
        ran = run_whole(command, RUN_TIMEOUT_S)
    except (NotFinished, Unavailable) as error:
        return {"skipped": str(error)}
    found = re.findall(r"^\d{4}-[^\n]*$", ran.said, re.MULTILINE)
    if ran.returncode or not found:
        return {"skipped": f"failed: {ran.said.strip()[-200:]}"}
    per_second = float(found[-1].split(", ")[-1])
    return {
        "cold_s": round(ran.seconds, 3),
        "cold_records_per_s": round(per_second),
        "cold_cpu_s_per_million": round(ran.cpu_s / count * 1e6, 3),
        "rss_mb": ran.rss_mb,
    }


def _latencies(
    status: Status, name: str, bootstrap_servers: str, chosen: Profile, peers: Sequence[str]
) -> list[Row]:
    """Rows of latency, the median round of each system, which take turns: a fresh broker is slow
    for the first client.
    """
    found: dict[str, list[Row]] = {system: [] for system in sent_to_polled.PROGRAMS if system in peers}
    for number in range(LATENCY_ROUNDS):
        for system, rows in found.items():
            status(f"{name}, latency from send to poll, round {number + 1} of {LATENCY_ROUNDS}: {system}")
            rows.append(
                _latency(bootstrap_servers, f"consume-latency-{number}-{system}", system, chosen.latency_s)
            )
    reported: Row = {"target": name, "how": "latency", "rate": sent_to_polled.RATE}
    return [
        {"system": system, **reported, **sorted(rows, key=_p50)[len(rows) // 2]}
        for system, rows in found.items()
    ]


def _p50(row: Row) -> float:
    return number_or_none(row, "p50_ms") or 0.0


def _latency(bootstrap_servers: str, topic: str, system: str, seconds: float) -> Row:
    missing = not_installed(SYSTEMS[system][0])
    if missing:
        return {"skipped": missing}
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(topic, partitions=PLAIN.partitions)])
    job = {
        "system": system,
        "bootstrap_servers": bootstrap_servers,
        "topic": topic,
        "partitions": PLAIN.partitions,
        "seconds": seconds,
    }
    return run_program([sys.executable, sent_to_polled.__file__, json.dumps(job)], RUN_TIMEOUT_S)
