"""`kill -9` on a streaming query at every step of an exactly-once write: is each input row there
once, for readers of committed data?

The query reads numbered rows and writes them to a topic. Each run has a step at which its driver is
killed, with all its processes, and every other run a step at which a task is killed before that;
then it is started again from its checkpoint. When enough have died it runs to its end, and the
topic is read with isolation.level=read_committed. Steps come in turn, so that as many kills as
there are steps cover all of them.

Two engines. `spark`: real Spark, from a topic to a topic by `format("fairlead")`; a run costs
Spark's start, some ten seconds. `processes`: an engine of Fairlead's that drives the same task and
driver code in processes of their own (`peers.exactly_once_engine`).

Rows `{"target", "kills", "rows_in", "rows_out", "lost", "duplicated"}`: `kills` counts drivers and
tasks that were killed, `lost` input rows that are not there, `duplicated` those that are there more
than once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin, Consumer, NewTopic, Producer
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.peers.deaths import DIED, WAITING, Death, Spec
from fairlead_kafka.lab.processes import descendants
from fairlead_kafka.lab.targets import target

ENGINES = {
    "spark": "fairlead_kafka.lab.peers.exactly_once_spark",
    "processes": "fairlead_kafka.lab.peers.exactly_once_engine",
}
DRIVER_STEPS = (
    "TASKS_ENDED",
    "TAKEN_OVER",
    "VOTED",
    "DECISION_SENT",
    "DECIDED",
    "ENDED_SOME",
    "ENDED",
    "DONE",
)
"""Steps at which a driver is killed: TASKS_ENDED, then `spark.exactly_once.driver.Step`'s."""
TASK_STEPS = ("OPENED", "WRITTEN", "PREPARED")
"""Steps of `spark.exactly_once.task.TaskStep` at which a task is killed."""
SOURCE, SINK = "numbers", "copies"
SOURCE_PARTITIONS, SINK_PARTITIONS = 4, 3
BATCH_ROWS = 120
BATCHES_A_LIFE = 2
"""Batches in one run at most: a run is killed in its first batch or in its second."""
LIFE_MAX_S = 600.0
FAILURES_MAX = 5
READ_TIMEOUT_S = 120.0


@dataclass
class _Query:
    """A query that is killed and started again, over all its runs."""

    engine: str
    client: dict[str, str]
    folder: Path
    rows: int
    rng: random.Random
    lives: int = 0
    failures: int = 0
    """Failures in a row that no kill caused."""
    killed: Counter[str] = field(default_factory=Counter)

    def live(self, deaths: Sequence[Death], batch_rows: int | None) -> bool:
        """Run the query once, with these kills; True if it ended without being killed.
        FairleadError if it neither ended nor reached a kill in time."""
        self.lives += 1
        spec: Spec = {
            "client": self.client,
            "source": SOURCE,
            "topic": SINK,
            "name": "trial",
            "checkpoint": str(self.folder / "checkpoint"),
            "rows": self.rows,
            "batch_rows": batch_rows,
            "deaths": [death.fields() for death in deaths],
            "seed": self.rng.getrandbits(32),
        }
        said = self.folder / f"life-{self.lives}.txt"
        with said.open("wb") as output:
            command = [sys.executable, "-m", ENGINES[self.engine], json.dumps(spec)]
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            try:
                _await_end(process, [Path(death.folder) / WAITING for death in deaths])
            finally:
                _kill(process)
        for death in deaths:
            if (Path(death.folder) / (DIED if death.alone else WAITING)).exists():
                self.killed[death.step] += 1
        # A query may fail by itself, as Spark does when it waits too long for a worker; it is
        # started again.
        failed = process.returncode not in (0, -signal.SIGKILL)
        self.failures = self.failures + 1 if failed else 0
        if self.failures > FAILURES_MAX:
            raise FairleadError(
                f"the query failed {self.failures} times in a row: {said.read_text(errors='replace')[-2000:]}"
            )
        return process.returncode == 0


def run(status: Status, *, kills: int, targets: Sequence[str], engine: str, seed: int) -> list[Row]:
    """Run a trial on each target; a row for each."""
    rows: list[Row] = []
    for name in targets:
        if engine == "spark" and find_spec("pyspark") is None:
            rows.append(
                {"target": name, "skipped": "pyspark is not installed; pip install 'fairlead-kafka[spark]'"}
            )
            continue
        try:
            with target(name) as servers, tempfile.TemporaryDirectory(prefix="fairlead-once-") as folder:
                rows.append({"target": name, **trial(status, servers, kills, engine, seed, Path(folder))})
        except Unavailable as error:
            rows.append({"target": name, "skipped": str(error)})
    return rows


def trial(status: Status, bootstrap_servers: str, kills: int, engine: str, seed: int, folder: Path) -> Row:
    """Run one query with so many kills, on a cluster that has none of its topics yet. FairleadError
    if the query ended before all kills."""
    client = {"bootstrap.servers": bootstrap_servers}
    rows = BATCH_ROWS * (kills * BATCHES_A_LIFE + 2)
    with Admin(client) as admin:
        admin.create_topics([NewTopic(SOURCE, SOURCE_PARTITIONS), NewTopic(SINK, SINK_PARTITIONS)])
    with Producer(client) as producer:
        texts = pa.array([str(number) for number in range(rows)])
        producer.send_table(SOURCE, pa.table({"key": texts, "value": texts})).result()
    rng = random.Random(seed)
    query = _Query(engine, client, folder, rows, rng)
    while query.killed.total() < kills:
        deaths = _appointments(rng, query, kills - query.killed.total())
        if query.live(deaths, BATCH_ROWS):
            raise FairleadError(f"the query came to its end after {query.killed.total()} of {kills} kills")
        status(f"{bootstrap_servers}: {query.killed.total()} of {kills} kills")
    status(f"{bootstrap_servers}: to the end")
    while not query.live([], None if engine == "spark" else rows):
        status(f"{bootstrap_servers}: to the end, once more")
    status(
        f"{bootstrap_servers}: "
        + ", ".join(f"{step} {count}" for step, count in sorted(query.killed.items()))
    )
    return {"kills": query.killed.total(), **comparison(range(rows), _committed(client))}


def comparison(rows_in: Iterable[int], rows_out: Iterable[int]) -> Row:
    """Columns of a row that compare the numbers written with those read: lost, duplicated.
    FairleadError for numbers that were read and never written."""
    wanted, found = set(rows_in), Counter(rows_out)
    strange = found.keys() - wanted
    if strange:
        raise FairleadError(f"{len(strange)} rows came out that never went in, such as {min(strange)}")
    return {
        "rows_in": len(wanted),
        "rows_out": found.total(),
        "lost": len(wanted - found.keys()),
        "duplicated": sum(count > 1 for count in found.values()),
    }


def _appointments(rng: random.Random, query: _Query, left: int) -> list[Death]:
    """The kills of the query's next run: one of the driver, and before it, in every other run and
    if more than one kill is `left`, one of a task."""
    drawn = [(DRIVER_STEPS[query.lives % len(DRIVER_STEPS)], rng.randrange(BATCHES_A_LIFE), False)]
    if left > 1 and query.lives % 2 == 0:
        drawn.append((TASK_STEPS[query.lives // 2 % len(TASK_STEPS)], rng.randrange(2), True))
    deaths = []
    for step, passed, alone in drawn:
        place = query.folder / f"deaths-{query.lives}" / step
        place.mkdir(parents=True)
        deaths.append(Death(str(place), step, passed, alone))
    return deaths


def _await_end(process: subprocess.Popen[bytes], signs: Sequence[Path]) -> None:
    """Wait until the process has ended, or one of the files is there. FairleadError if that takes
    longer than LIFE_MAX_S seconds."""
    deadline_s = time.monotonic() + LIFE_MAX_S
    while process.poll() is None and not any(sign.exists() for sign in signs):
        if time.monotonic() > deadline_s:
            raise FairleadError(
                f"the query neither ended nor came to where it was to be killed within {LIFE_MAX_S:g} s"
            )
        time.sleep(0.01)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a driver and every process below it: Spark's JVM, its Python workers, tasks, commits."""
    if process.poll() is None:
        for process_id in list(descendants(process.pid)):
            try:
                os.kill(process_id, signal.SIGKILL)
            except ProcessLookupError:
                continue
    process.wait()


def _committed(client: dict[str, str]) -> list[int]:
    """The numbers in the topic, for readers of committed data; waits for transactions that are
    still open."""
    found: list[int] = []
    with Consumer({**client, "isolation.level": "read_committed"}) as consumer, Admin(client) as admin:
        partitions = [TopicPartition(SINK, number) for number in range(SINK_PARTITIONS)]
        ends = admin.list_offsets(dict.fromkeys(partitions, -1))
        for partition, end in ends.items():
            for table in consumer.read_range(
                partition, 0, end.offset if end else 0, columns=["value"], timeout_s=READ_TIMEOUT_S
            ):
                found += pc.cast(pc.cast(table.column("value"), "string"), "int64").to_pylist()
    return found
