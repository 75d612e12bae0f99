"""A cluster under a mixed load for any time: whether memory or other figures rise, and whether all
records are there in the end.

Three brokers as processes. Clients, each in a process of its own (`peers.soak`): one sends records
one by one, one tables with keys, one to a compacted topic, one in transactions of which some are
aborted; one has members join and leave a group, and groups come and go; one creates, fills, reads
and deletes topics; one reads everything. Retention, compaction, checkpoints and new log files are
set so that each happens all the time, and the amount of kept data stays the same. Brokers 1 and 2
are killed in turn (`kill -9`) and started again; broker 0 is never restarted, because leaks only
show in a long-running process.

Rows are those of four tables. `minutes`: for each process and interval {minute, process, rss_mb,
pss_mb, private_mb, blocks, heap_mb, descriptors, threads, cpu_share, disk_mb, records_per_s,
p50_ms, p99_ms}, as far as it has them. `blocks` and `heap_mb` are what is in use
(`runtime.memory_use`): a leak shows there, and not what an allocator keeps; a client's have what
Arrow holds, too (`soak_client.ARROW_IN_HEAP`). All give back what is free before they are looked
at, and clients collect their garbage first. Memory is the least of three looks. Latencies run to
the acknowledgement; of a transaction, to its commit; of the auditor, from a record's timestamp
until it is read; of a topic, from its creation until its records are read back; of the groups, of a
commit. The controller lives in the launcher's process. `load` is the sum of acknowledged records of
all producers. `slopes`: see `soak_figures.slope_rows`. `comparison`, one row: counts of
acknowledged and of read records. `failed`: the reason if the run did not end.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.json_types import (
    Json,
    integer_at,
    integers_at,
    number_at,
    number_or_none,
    object_at,
    text_at,
)
from fairlead_kafka.client import Admin, NewTopic
from fairlead_kafka.lab import plotting
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.peers.soak import (
    AUDITOR,
    COMPACTED,
    KEYED,
    PARTITIONS,
    ROLES,
    TRANSACTIONAL,
    UNKEYED,
)
from fairlead_kafka.lab.soak_client import DRAIN_S, SoakClient, launch
from fairlead_kafka.lab.soak_figures import Tally, differences, slope_rows, throughput_ratio
from fairlead_kafka.lab.soak_looks import LOAD, MINUTE_S, SHARES, Looks
from fairlead_kafka.testing import Cluster

BROKERS = 3
MORTAL = (1, 2)
"""Ids of the brokers that are killed, in turn."""
ROWS_MIN, KILLS_MIN = 20, 5
"""Rows and kills of a soak at least: one that lasts fewer minutes has them at shorter intervals."""
DEAD_S = 1.0
"""Seconds that a killed broker stays dead."""
RETENTION_MS = 60_000
"""Retention of the topics, ms: the auditor must not be further behind than that."""
COMPACTION_LAG_MS = 30_000
"""Age, ms, up to which compacted topics keep every record; then tombstones and markers stay for as
long again."""
SYNC_TIMEOUT_S = 60.0
_CONFIG: Mapping[str, Json] = {
    "default.replication.factor": BROKERS,
    "min.insync.replicas": 2,
    "auto.create.topics.enable": False,
    "log.segment.bytes": 8 * 2**20,
    "log.retention.ms": RETENTION_MS,
    "log.retention.check.interval.ms": 2_000,
    "log.cleaner.backoff.ms": 1_000,
    "log.cleaner.delete.retention.ms": COMPACTION_LAG_MS,
    "log.flush.offset.checkpoint.interval.ms": 10_000,
    "offsets.topic.num.partitions": 6,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 5_000,
    "transaction.state.log.num.partitions": 6,
    "producer.id.expiration.ms": 120_000,
    "leader.imbalance.check.interval.seconds": 10,
}
"""Configs of brokers that clean up all the time.

A group that left is forgotten after a minute, which is the least possible. Markers of transactions
that committed offsets, and tombstones, are forgotten as quickly: by default they stay for a day in
the log of offsets, each a batch, and the index would rise all along.
"""


def run(status: Status, *, minutes: float, rate: int, kills: bool) -> list[Row]:
    """Run one soak.

    `rate`: records a second of all producers together, 0: as many as they can; `kills`: whether
    brokers are killed.
    """
    with tempfile.TemporaryDirectory(prefix="fairlead-soak-") as name:
        folder = Path(name)
        with Cluster(BROKERS, folder / "cluster", config=_CONFIG, processes=True) as cluster:
            _make_topics(cluster.bootstrap_servers)
            clients: list[SoakClient] = []
            looks = Looks(cluster, clients, folder / "cluster", min(MINUTE_S, minutes * MINUTE_S / ROWS_MIN))
            outcome: list[Row] = []
            try:
                for role in (AUDITOR, *(role for role in ROLES if role != AUDITOR)):
                    clients.append(
                        launch(role, cluster.bootstrap_servers, rate * SHARES.get(role, 0.0), folder)
                    )
                    clients[-1].report()
                killed = _soak(status, looks, minutes, kills)
                status("the clients finish, and all is read back")
                outcome = [comparison(_finals(clients), killed, throughput_ratio(looks.rows(), LOAD))]
            except FairleadError as error:
                outcome = [{"table": "failed", "failed": str(error)}]
            finally:
                for client in clients:
                    client.kill()
            rows = looks.rows()
            return [*rows, *slope_rows(rows), *outcome]


def _make_topics(bootstrap_servers: str) -> None:
    lag_ms = str(COMPACTION_LAG_MS)
    compact = {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": lag_ms,
        "delete.retention.ms": lag_ms,
        "min.cleanable.dirty.ratio": "0.2",
    }
    deleted = [NewTopic(name, PARTITIONS, BROKERS) for name in (UNKEYED, KEYED, TRANSACTIONAL)]
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        admin.create_topics([*deleted, NewTopic(COMPACTED, PARTITIONS, BROKERS, configs=compact)])


def _soak(status: Status, looks: Looks, minutes: float, kills: bool) -> int:
    """Run the soak until its `minutes` are over. Returns how many times a broker was killed."""
    _await_all(looks.clients)
    begun_s = looks.begin()
    end_s = begun_s + minutes * MINUTE_S
    kill_every_s = min(MINUTE_S, minutes * MINUTE_S / KILLS_MIN)
    row_s, kill_s, killed = begun_s + looks.every_s, begun_s + kill_every_s, 0
    with Admin({"bootstrap.servers": looks.cluster.bootstrap_servers}) as admin:
        while row_s <= end_s + 0.001:
            time.sleep(max(0.0, row_s - time.monotonic()))
            _check_alive(looks.cluster)
            looks.look()
            load = looks.last[-1]
            status(
                f"minute {load['minute']:.1f} of {minutes:g}: {load['records_per_s']:,.0f} records/s, "
                f"{killed} kills"
            )
            row_s = max(row_s + looks.every_s, time.monotonic())
            if kills and row_s > kill_s and row_s <= end_s:
                _await_in_sync(admin)
                _strike(looks.cluster, MORTAL[killed % len(MORTAL)])
                killed, kill_s = killed + 1, kill_s + kill_every_s
        _await_in_sync(admin)
        if kills and not killed:  # rows took longer than the whole was to last
            _strike(looks.cluster, MORTAL[0])
            killed = 1
            _await_in_sync(admin)
    return killed


def _await_all(clients: Sequence[SoakClient]) -> None:
    """Wait until each client has done something. FairleadError if some did not in DRAIN_S
    seconds."""
    deadline_s, idle = time.monotonic() + DRAIN_S, list(clients)
    while idle:
        if time.monotonic() > deadline_s:
            raise FairleadError(
                f"the {', '.join(client.role for client in idle)} clients did nothing for {DRAIN_S:g} s"
            )
        time.sleep(0.1)
        idle = [client for client in idle if not client.report()["records"]]


def _check_alive(cluster: Cluster) -> None:
    dead = [broker.node_id for broker in cluster.brokers if not broker.running]
    if dead:
        raise FairleadError(f"brokers {dead} ended by themselves")


def _strike(cluster: Cluster, node_id: int) -> None:
    """Kill a broker, and start it again."""
    cluster.broker(node_id).kill()
    time.sleep(DEAD_S)
    cluster.broker(node_id).start()


def _await_in_sync(admin: Admin) -> None:
    """Wait until every replica of the lasting topics is in sync.

    FairleadError if that takes too long.
    """
    deadline_s = time.monotonic() + SYNC_TIMEOUT_S
    while True:
        described = admin.describe_topics([UNKEYED, KEYED, COMPACTED, TRANSACTIONAL])
        behind = [
            f"{name}-{number}"
            for name, topic in described.items()
            for number, one in enumerate(topic.partitions)
            if len(one.isr) < BROKERS
        ]
        if not behind:
            return
        if time.monotonic() > deadline_s:
            raise FairleadError(f"not in sync again {SYNC_TIMEOUT_S:g} s after a kill: {', '.join(behind)}")
        time.sleep(0.1)


def _finals(clients: Sequence[SoakClient]) -> dict[str, Row]:
    """The last line of each client: the auditor ends when all others have."""
    others = [client for client in clients if client.role != AUDITOR]
    for client in others:
        client.stop()
    found = {client.role: client.final() for client in others}
    auditor = next(client for client in clients if client.role == AUDITOR)
    auditor.stop()
    return {**found, AUDITOR: auditor.final()}


def comparison(finals: Mapping[str, Row], kills: int, ratio: float | None) -> Row:
    """Compare the clients' acknowledged records with those that were read.

    `lost`, `duplicated`, `differing`: see `soak_figures.differences`, of the topics that are not
    compacted. `disorder`: numbers read that are not greater than the one before them. `failed`:
    records that were given up (0, or the counts are not exact). `torn`: transactions read in part.
    `aborted_seen`: records read of transactions that were aborted. `compacted_wrong`: keys whose
    newest value is not the one acknowledged last. `topics_wrong`, `offsets_wrong`: topics and
    committed offsets read back otherwise than they were written. `throughput_ratio`: the last part
    to the first, after the warm-up.
    """
    audit = finals[AUDITOR]
    acknowledged, counts = Tally(), Counter[str]()
    for role, final in finals.items():
        counts.update(integers_at(final, "counts"))
        if role in SHARES and role != "compacted":
            reported = Tally.from_json(object_at(final, "tally"))
            acknowledged.counts.update(reported.counts)
            acknowledged.sums.update(reported.sums)
    read = Tally.from_json(
        {place: each for place, each in object_at(audit, "tally").items() if not place.startswith(COMPACTED)}
    )
    newest, held = integers_at(finals["compacted"], "newest"), integers_at(audit, "newest")
    return {
        "table": "comparison",
        "kills": kills,
        "acknowledged": sum(integer_at(finals[role], "records") for role in SHARES),
        **differences(acknowledged, read, counts["failed"]),
        "disorder": integer_at(audit, "disorder") + integer_at(audit, "ends_differ"),
        "failed": counts["failed"],
        "transactions": counts["committed"],
        "torn": integer_at(audit, "transactions_torn")
        + abs(integer_at(audit, "transactions_whole") - counts["committed"]),
        "aborted": counts["aborted"] + counts["aborted_by_faults"],
        "aborted_seen": audit["aborted_seen"],
        "compacted_wrong": sum(
            held.get(key, -1) != newest.get(key, -1) for key in newest.keys() | held.keys()
        ),
        "read_again": audit["read_again"],
        "topics": counts["topics"],
        "topics_wrong": counts["topics_wrong"],
        "groups": counts["groups"],
        "members": counts["members"],
        "offsets_checked": counts["offsets_checked"],
        "offsets_wrong": counts["offsets_wrong"],
        "throughput_ratio": ratio,
    }


WRONG = (
    "lost",
    "duplicated",
    "differing",
    "disorder",
    "torn",
    "aborted_seen",
    "compacted_wrong",
    "topics_wrong",
    "offsets_wrong",
)
"""Columns of the verdict that must be 0."""


def sound(rows: Sequence[Row]) -> bool:
    """True if the soak came to its end and nothing was wrong; slopes are for people to judge."""
    comparisons = [row for row in rows if row.get("table") == "comparison"]
    return bool(comparisons) and not any(row[column] for row in comparisons for column in WRONG)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw memory, descriptors, threads, disk, throughput and latency over time."""
    looked = [row for row in rows if row.get("table") == "minutes"]
    processes = list(dict.fromkeys(text_at(row, "process") for row in looked))
    brokers = [each for each in processes if each.startswith("broker-")]
    clients = [each for each in processes if each not in (*brokers, LOAD)]

    def panel(title: str, names: Sequence[str], column: str, unit: str) -> plotting.Lines:
        series = {}
        for name in names:
            own = [row for row in looked if row["process"] == name]
            series[name] = (
                [number_at(row, "minute") for row in own],
                [number_or_none(row, column) for row in own],
            )
        return plotting.Lines(title, series, "minutes", unit)

    panels = [
        panel("Memory of the brokers", brokers, "rss_mb", "resident, MiB"),
        panel("Memory of the clients and the controller", clients, "rss_mb", "resident, MiB"),
        panel("Descriptors", brokers, "descriptors", "open"),
        panel("Threads", [*brokers, *clients], "threads", "threads"),
        panel("Disk", brokers, "disk_mb", "MiB"),
        panel("Acknowledged", [LOAD], "records_per_s", "records/s"),
        panel("Until it is acknowledged, or read", [*SHARES, "auditor"], "p99_ms", "p99, ms"),
        panel("Processor time", [*brokers, *clients], "cpu_share", "of one core"),
    ]
    plotting.figure(path, panels, "A soak: what a cluster and its clients hold", columns=2)
