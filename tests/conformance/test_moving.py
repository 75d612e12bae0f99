"""Public examples of other clients, moved, run against the embedded cluster; and the guide's
counts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest

import fairlead_kafka
from tests.support.move_tables import OURS, OURS_ASYNC, PEERS, calls_checked
from tests.support.moves import ORIGINALS, Move, moves, original
from tests.support.waiting import PATIENCE_S, until

ROOT = Path(__file__).parents[2]
MOVES = {move.name: move for move in moves()}
PAGE = (ROOT / "docs" / "tutorials" / "moving.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A cluster with the topics that the examples have, each with two records."""
    with fairlead_kafka.Cluster() as cluster:
        settings = {"bootstrap.servers": cluster.bootstrap_servers}
        names = ("lines", "input", "events", "my_topic", "test", "test-topic")
        with fairlead_kafka.Admin(settings) as admin:
            admin.create_topics([fairlead_kafka.NewTopic(name, partitions=1) for name in names])
        with fairlead_kafka.Producer(settings) as producer:
            for name in ("lines", "input", "test"):
                for number in range(2):
                    producer.send(name, b"value %d" % number, key=b"key")
        yield cluster.bootstrap_servers


class Program:
    """A moved program in a process of its own; what it wrote so far."""

    def __init__(self, move: Move, folder: Path, servers: str, *arguments: str, given: str = "") -> None:
        text = original(move)
        if text is None:
            pytest.skip(f"{move.repository} is not at hand: set {ORIGINALS} to a folder with its clone")
        moved = move.apply(text).replace("localhost:9092", servers).replace("/tmp/", f"{folder}/")
        (folder / "program.py").write_text(moved, encoding="utf-8")
        self._wrote = folder / "wrote"
        (folder / "given").write_text(given, encoding="utf-8")
        with self._wrote.open("w") as wrote, (folder / "given").open() as source:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "program.py", *arguments],
                cwd=folder,
                stdin=source,
                stdout=wrote,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            )

    @property
    def wrote(self) -> str:
        """Its output and errors."""
        return self._wrote.read_text(encoding="utf-8")

    def until_it_wrote(self, *texts: str) -> None:
        """Wait for each text; the program must not end before."""

        def there() -> bool:
            there = all(text in self.wrote for text in texts)
            assert there or self._process.poll() is None, self.wrote
            return there

        try:
            until(there)
        except BaseException:
            self._process.kill()
            raise

    def ended(self, by: signal.Signals | None = None) -> str:
        """Its output once it has ended, by itself or by a signal."""
        if by is not None:
            self._process.send_signal(by)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        return self.wrote


Start = Callable[..., Program]


@pytest.fixture
def start(servers: str, tmp_path: Path) -> Start:
    """Starts a moved program by its name."""
    return lambda name, *arguments, given="": Program(MOVES[name], tmp_path, servers, *arguments, given=given)


def read(servers: str, topic: str) -> list[bytes]:
    settings = {"bootstrap.servers": servers, "isolation.level": "read_committed"}
    partition = fairlead_kafka.TopicPartition(topic, 0)
    with fairlead_kafka.Consumer(settings) as consumer:
        end = consumer.end_offsets([partition])[partition]
        tables = consumer.read_range(partition, 0, end)
        return [value.as_py() for table in tables for value in table["value"]]


def test_confluents_producer(start: Start, servers: str) -> None:
    program = start("confluent-kafka-producer", servers, "typed", given="one\ntwo\n")
    assert program.ended().count("% Message delivered to typed [0] @ ") == 2
    assert read(servers, "typed") == [b"one", b"two"]


def test_confluents_consumer(start: Start, servers: str) -> None:
    program = start("confluent-kafka-consumer", "-T", "100", servers, "readers", "lines")
    program.until_it_wrote("Assignment:", "b'value 0'", "b'value 1'", "KAFKA Stats")
    assert "Aborted by user" in program.ended(signal.SIGINT)


def test_confluents_transactions(start: Start, servers: str) -> None:
    program = start("confluent-kafka-eos_transactions", "-b", servers, "-t", "input", "-o", "encoded")
    assert "Committing final transaction with 2 messages" in program.ended()
    assert read(servers, "encoded") == [b"dmFsdWUgMA==", b"dmFsdWUgMQ=="]


def test_confluents_asyncio(start: Start, servers: str) -> None:
    program = start("confluent-kafka-asyncio_example", servers, "events")
    program.until_it_wrote("Produced to: events [0] @ ", "Consumed: b'testvalue", "Stored offsets")
    ended = program.ended(signal.SIGTERM)
    assert "Closed consumer" in ended
    assert "Closed producer" in ended
    assert "ERROR" not in ended


def test_confluents_context_managers(start: Start, servers: str) -> None:
    ended = start("confluent-kafka-context_manager_example", servers).ended()
    assert ended.count("Consumed message: key=key-") == 5
    assert "created successfully" in ended


def test_aiokafkas_producer_and_consumer(
    start: Start, servers: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    producing = start("aiokafka-simple_produce")
    producing.until_it_wrote("test-topic")
    assert "KeyboardInterrupt" in producing.ended(signal.SIGINT)
    reading = Program(MOVES["aiokafka-simple_consumer"], tmp_path_factory.mktemp("reading"), servers)
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:

        def there() -> bool:
            producer.send("my_topic", b"news").result(timeout_s=PATIENCE_S)
            time.sleep(0.1)
            return "b'news'" in reading.wrote

        until(there)
    reading.ended(signal.SIGINT)


def test_aiokafkas_local_state(start: Start, tmp_path: Path) -> None:
    program = start("aiokafka-local_state_consumer")
    state = tmp_path / "my-partition-state-test-0.json"
    until(lambda: (state.exists() and '"last_offset": 1' in state.read_text()) or "Error" in program.wrote)
    assert '{"last_offset": 1, "counts": {"key": 2}}' in state.read_text(), program.wrote
    program.ended(signal.SIGINT)


def test_aiokafkas_transaction_is_aborted(start: Start, servers: str) -> None:
    assert "ValueError" in start("aiokafka-transactional_produce", given="\n").ended()
    assert b"Super transactional message" not in read(servers, "test-topic")


def test_kafka_pythons_example(start: Start) -> None:
    wrote = start("kafka-python-example").ended()
    assert "value=b'test'" in wrote
    assert "Traceback" not in wrote


def test_the_guide_has_a_row_with_the_counts_of_each_move() -> None:
    shown = {
        (cells[1].strip("`"), *map(int, cells[2:6]))
        for line in PAGE.splitlines()
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 6 and cells[2].isdigit()
    }
    assert shown == {
        (move.path, move.lines, move.kept, move.lines - move.kept, move.written) for move in MOVES.values()
    }


@pytest.mark.parametrize("client", ["confluent-kafka", "aiokafka", "kafka-python"])
def test_calls_in_the_tables_exist_in_the_peer_and_in_fairlead(client: str) -> None:
    section = PAGE.split(f"## From {client}", 1)[1].split("\n## ", 1)[0]
    rows = [row.split(" | ") for row in re.findall(r"(?m)^\| (.*`.*) \|$", section)]
    theirs = sum(calls_checked(row[0], PEERS[client]) for row in rows)
    ours = sum(calls_checked(row[1], OURS_ASYNC if client == "aiokafka" else OURS) for row in rows)
    assert min(theirs, ours) >= 8


def test_consistent_random_puts_keys_where_confluent_kafka_puts_them() -> None:
    keys = [b"customer %d" % number for number in range(100)]
    with fairlead_kafka.Cluster(1) as cluster:
        settings = {"bootstrap.servers": cluster.bootstrap_servers}
        with fairlead_kafka.Admin(settings) as admin:
            admin.create_topics([fairlead_kafka.NewTopic("theirs", 7), fairlead_kafka.NewTopic("ours", 7)])
        producer = confluent_kafka.Producer(settings)
        for key in keys:
            producer.produce("theirs", b"value", key)
        assert not producer.flush(PATIENCE_S)
        with fairlead_kafka.Producer({**settings, "partitioner.class": "consistent_random"}) as producer:
            for key in keys:
                producer.send("ours", b"value", key=key)
        with fairlead_kafka.Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
            both = [
                fairlead_kafka.TopicPartition(topic, one) for topic in ("theirs", "ours") for one in range(7)
            ]
            consumer.assign(both)
            found: list[fairlead_kafka.Record] = []
            until(lambda: len(found) == 200 or found.extend(consumer.poll(timeout_s=1)))
    placed = {
        topic: {record.key: record.partition for record in found if record.topic == topic}
        for topic in ("theirs", "ours")
    }
    assert placed["ours"] == placed["theirs"]
    assert len(set(placed["ours"].values())) == 7
