"""A storm of `kill -9` over the brokers of a cluster under load: is every record that was
acknowledged there in the end, and there once?

Each broker is a process. Topics have three replicas, min.insync.replicas is 2, and every client
produces with acks=all as an idempotent producer, each to a topic of its own, all at the same time:
ours, librdkafka (confluent-kafka), and Kafka's own VerifiableProducer in Java. A broker is killed,
lies dead for a moment, and starts again; mostly the next is killed when all replicas are in sync
again, at times while they are not, and at times two at once. When it is over all topics are read
from the beginning.

Rows `{"system", "security", "kills", "acked", "lost", "duplicated", "unavailable_ms_max"}`: `lost`
counts records that were acknowledged and are not there, `duplicated` those that are there more than
once; `unavailable_ms_max` is the longest time between two acknowledgements.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.json_types import integer_at, json_object, text_at
from fairlead_kafka.client import Admin, Consumer
from fairlead_kafka.lab.apache_kafka import Unavailable, java_command
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.peers.storm import DRAIN_S, Errand
from fairlead_kafka.testing import Cluster
from fairlead_kafka.testing.securing import ADMIN

SECURITIES = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
SYSTEMS = {"fairlead": None, "confluent-kafka": "confluent_kafka", "java": None}
"""System → the module that it needs here; None: none."""
BROKERS = 3
PARTITIONS = 6
RATE = 300
"""Records that each client sends per second."""
DEAD_MAX_S = 0.5
"""Greatest time that a killed broker stays dead, s."""
CALM_MAX_S = 0.5
"""Greatest time before the next kill once all is well, s."""
SYNC_TIMEOUT_S = 60.0
IMPATIENT = 0.2
"""Share of kills that do not wait until all replicas are in sync again."""
DOUBLE = 0.1
"""Share of kills that take a second broker along."""
_JAVA_CONFIG = (
    "enable.idempotence=true\nretries=2147483647\nmax.in.flight.requests.per.connection=5\nlinger.ms=5\n"
)


@dataclass(slots=True)
class _Client:
    system: str
    topic: str
    process: subprocess.Popen[bytes]
    said: Path

    def stop(self) -> None:
        """Have the client finish what is in flight."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.system == "java":
            self.process.terminate()  # it closes its producer then

    def wait(self) -> None:
        """Wait until the client has ended; kill it if it does not."""
        try:
            self.process.wait(DRAIN_S + SYNC_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run(
    status: Status, *, kills: int, systems: Sequence[str], seed: int, security: str = "plaintext"
) -> list[Row]:
    """Run one storm; a row for each client.

    `seed` draws which brokers are killed and when. `security`: the protocol of clients and between
    brokers.
    """
    missing = {system: reason for system in systems if (reason := _missing(system))}
    present = [system for system in systems if system not in missing]
    with tempfile.TemporaryDirectory(prefix="fairlead-storm-") as folder:
        rows = _storm(status, kills, present, random.Random(seed), Path(folder), security) if present else []
    return rows + [{"system": system, "skipped": reason} for system, reason in missing.items()]


def _missing(system: str) -> str | None:
    module = SYSTEMS[system]
    if module is not None and find_spec(module) is None:
        return f"{module} is not installed; pip install 'fairlead-kafka[lab]'"
    if system == "java":
        try:
            java_command("")
        except Unavailable as error:
            return str(error)
    return None


def _storm(
    status: Status, kills: int, systems: Sequence[str], rng: random.Random, folder: Path, security: str
) -> list[Row]:
    config = {
        "min.insync.replicas": 2,
        "default.replication.factor": BROKERS,
        "auto.create.topics.enable": False,
    }
    secured = None if security == "plaintext" else security
    with Cluster(BROKERS, processes=True, config=config, security=secured) as cluster:
        topics = {system: f"storm-{system}" for system in systems}
        for topic in topics.values():
            cluster.create_topic(topic, PARTITIONS, BROKERS)
        settings = cluster.client_settings(None if secured is None else ADMIN)
        clients = [_launch(system, cluster, topic, folder) for system, topic in topics.items()]
        try:
            done = 0
            with Admin(settings) as admin:
                _await_begun(clients)
                while done < kills:
                    done += _strike(cluster, rng, kills - done)
                    if rng.random() >= IMPATIENT:
                        _await_in_sync(admin, topics.values())
                    status(f"{done} of {kills} kills")
                    time.sleep(rng.uniform(0, CALM_MAX_S))
                status("the clients finish")
                for client in clients:
                    client.stop()
                for client in clients:
                    client.wait()
                _await_in_sync(admin, topics.values())
            status("reading back")
            return [_row(client, settings, kills, security) for client in clients]
        finally:
            for client in clients:
                client.process.kill()
                client.process.wait()


def _launch(system: str, cluster: Cluster, topic: str, folder: Path) -> _Client:
    user = ADMIN if cluster.users else None
    if system == "java":
        settings = cluster.client_settings(user, style="java")
        config = folder / "java.properties"
        config.write_text(_JAVA_CONFIG + "".join(f"{key}={value}\n" for key, value in settings.items()))
        command = java_command(
            "org.apache.kafka.tools.VerifiableProducer",
            "--topic", topic, "--bootstrap-server", cluster.bootstrap_servers, "--max-messages", "-1",
            "--throughput", str(RATE),
            "--acks", "-1",
            "--command-config", str(config), heap="128m",
        )  # fmt: skip
    else:
        settings = cluster.client_settings(user, style="fairlead" if system == "fairlead" else "librdkafka")
        config = folder / f"{system}.json"
        config.write_text(json.dumps(settings))
        command = [
            sys.executable,
            "-m",
            "fairlead_kafka.lab.peers.storm",
            Errand(system, str(config), topic, RATE).to_json(),
        ]
    said = folder / f"{system}.txt"
    with said.open("wb") as out, (folder / f"{system}.err").open("wb") as err:
        return _Client(
            system, topic, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err), said
        )


def _strike(cluster: Cluster, rng: random.Random, left: int) -> int:
    """Kill one broker, or two, and start them again. Returns how many."""
    victims = rng.sample(range(BROKERS), 2 if left > 1 and rng.random() < DOUBLE else 1)
    for node_id in victims:
        cluster.broker(node_id).kill()
    time.sleep(rng.uniform(0, DEAD_MAX_S))
    for node_id in victims:
        cluster.broker(node_id).start()
    return len(victims)


def _await_in_sync(admin: Admin, topics: Iterable[str]) -> None:
    """Wait until all replicas of all partitions are in sync.

    FairleadError if that takes too long.
    """
    names, deadline_s = list(topics), time.monotonic() + SYNC_TIMEOUT_S
    while True:
        behind = [
            f"{name}-{number} (in sync: {list(partition.isr)})"
            for name, topic in admin.describe_topics(names).items()
            for number, partition in enumerate(topic.partitions)
            if len(partition.isr) < BROKERS or partition.leader < 0
        ]
        if not behind:
            return
        if time.monotonic() > deadline_s:
            raise FairleadError(f"not in sync again {SYNC_TIMEOUT_S:g} s after a kill: {', '.join(behind)}")
        time.sleep(0.05)


def _await_begun(clients: Sequence[_Client]) -> None:
    """Wait until each client has begun, which its first output shows: its first record has a
    result, or the JVM runs. A client that ended is passed over, and its row says why. FairleadError
    if one takes too long."""
    deadline_s = time.monotonic() + SYNC_TIMEOUT_S
    for client in clients:
        while not client.said.stat().st_size and client.process.poll() is None:
            if time.monotonic() > deadline_s:
                raise FairleadError(
                    f"the {client.system} client did not begin: "
                    f"{client.said.with_suffix('.err').read_text()[-500:]}"
                )
            time.sleep(0.05)


def _row(client: _Client, settings: Mapping[str, object], kills: int, security: str) -> Row:
    text = client.said.read_text()
    acked = java_acknowledged(text) if client.system == "java" else acknowledged(text)
    failed = client.system != "java" and client.process.returncode != 0  # Java's is ended by a signal
    if failed or not acked:
        what = "the client failed" if failed else "nothing was acknowledged"
        why = client.said.with_suffix(".err").read_text().strip()[-500:]
        return {"system": client.system, "skipped": f"{what}: {why or 'it said nothing'}"}
    return {
        "system": client.system,
        "security": security,
        "kills": kills,
        **comparison(acked, _read(settings, client.topic)),
    }


def comparison(acked: Mapping[int, int], held: Iterable[int]) -> Row:
    """Columns {acked, lost, duplicated, unavailable_ms_max} of a row, which compare the
    acknowledged records (number → time, ms since 1970) with the numbers of all records in the
    topic."""
    counts = Counter(held)
    times_ms = sorted(acked.values())
    return {
        "acked": len(acked),
        "lost": sum(number not in counts for number in acked),
        "duplicated": sum(count > 1 for count in counts.values()),
        "unavailable_ms_max": max((after - before for before, after in pairwise(times_ms)), default=0),
    }


def acknowledged(text: str) -> dict[int, int]:
    """Acknowledged records in the output of `peers.storm`: number → time of the acknowledgement, ms
    since 1970.
    """
    lines = [line.split() for line in text.splitlines() if not line.startswith("failed")]
    return {int(number): int(time_ms) for number, time_ms in lines}


def java_acknowledged(text: str) -> dict[int, int]:
    """Acknowledged records in the output of VerifiableProducer, a line of JSON for each event:
    number → time, ms since 1970.
    """
    acked: dict[int, int] = {}
    for line in text.splitlines():
        event = json_object(line) if line.startswith("{") else {}
        if event.get("name") == "producer_send_success":
            acked[int(text_at(event, "value"))] = integer_at(event, "timestamp")
    return acked


def _read(settings: Mapping[str, object], topic: str) -> list[int]:
    """Numbers of all records in the topic."""
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found: list[int] = []
    with Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            values = consumer.poll_table(1.0, columns=["value"]).column("value")
            found += pc.cast(pc.cast(values, "string"), "int64").to_pylist()
    return found
