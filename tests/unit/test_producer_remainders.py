"""What waits for a slow broker does not keep in memory what was sent beside it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from fairlead_kafka.producer import remainders
from fairlead_kafka.records import columns_from_lists, decode, take_rows
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation import Application, ProduceCluster, SubmittedRecords

CHUNK_RECORDS, VALUE_BYTES = 90, 1000
LOOK_BYTES = 3 * CHUNK_RECORDS * VALUE_BYTES


class Scene:
    """A producer, two quick brokers, and broker 0 that needs a minute for each request; a partition
    on each."""

    def __init__(self) -> None:
        self.host = VirtualHost(latency_ms=0.1)
        self.cluster = ProduceCluster(self.host, 3, keeps_records=True)
        self.cluster.create_topic("t", 3)
        self.cluster.broker(0).slow(60_000)
        config = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "linger.ms": 0,
            "delivery.timeout.ms": 1_000_000,
        }
        config |= {"request.timeout.ms": 900_000, "buffer.memory": 4 << 20}
        self.application = Application(self.host, config, Random(1), self._completed)
        self.places: dict[int, tuple[int, int]] = {}
        self.host.advance(50)

    def _completed(
        self,
        submitted: SubmittedRecords,
        rows: Sequence[int],
        partition: int,
        base_offset: int,
        error: Exception | None,
    ) -> None:
        assert error is None
        for number, row in enumerate(rows):
            assert submitted.serial + row not in self.places
            self.places[submitted.serial + row] = partition, base_offset + number

    def send(self, chunks: int) -> None:
        """Chunks of records for all three partitions in turn; record n has n in its value."""
        for _ in range(chunks):
            first = self.application.records
            values = [b"%d." % number + b"x" * VALUE_BYTES for number in range(first, first + CHUNK_RECORDS)]
            assert (
                self.application.submit("t", values, partitions=[row % 3 for row in range(CHUNK_RECORDS)])
                is not None
            )
            self.host.advance(20)

    def kept_bytes(self) -> int:
        """Of values, in memory for what is not settled."""
        sources = {
            id(each.source): each.source for each in self.application.machine.ledger.open_submissions()
        }
        return sum(source.values.data.nbytes for source in sources.values() if source.values is not None)

    def counted_bytes(self) -> int:
        return self.application.memory.total_bytes - self.application.memory.free_bytes


def test_memory_stays_within_twice_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remainders, "LOOK_BYTES", LOOK_BYTES)
    scene = Scene()
    scene.send(60)
    assert scene.counted_bytes() > 1_500_000
    assert scene.kept_bytes() <= 2 * scene.counted_bytes() + 2 * LOOK_BYTES
    assert scene.kept_bytes() <= 1.2 * scene.counted_bytes() + 2 * LOOK_BYTES, (
        "a third waits, so next to nothing else is kept"
    )


def test_every_record_that_was_moved_arrives_once_where_its_result_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remainders, "LOOK_BYTES", LOOK_BYTES)
    scene = Scene()
    scene.send(20)
    moved = [each for each in scene.application.machine.ledger.open_submissions() if each.moved is not None]
    assert moved
    scene.host.advance(
        400_000
    )  # a request of the slow broker or two are answered: what was moved is settled in parts, and moved again
    scene.send(20)
    scene.cluster.broker(0).slow()
    scene.host.run_until(lambda: len(scene.places) == scene.application.records, 900_000)
    for number, partition in enumerate(scene.cluster.log.topics["t"].partitions):
        decoded = decode(b"".join(batch.data or b"" for batch in partition.batches))
        assert decoded.values is not None
        found = [int((value or b"").split(b".")[0]) for value in decoded.values.to_list()]
        assert found == sorted(found)
        assert all(scene.places[record] == (number, offset) for offset, record in enumerate(found))
    assert scene.counted_bytes() == 0


def test_little_is_left_alone() -> None:
    scene = Scene()
    scene.send(5)
    assert not any(each.moved is not None for each in scene.application.machine.ledger.open_submissions())


def test_rows_are_gathered_with_all_that_belongs_to_them() -> None:
    keys = [b"a", None, b"c", b"dd"]
    values = [b"1", b"", None, b"4444"]
    headers = [[("h", b"x"), ("i", None)], None, [("j", b"y")], []]
    columns = columns_from_lists(keys, values, headers, None)
    columns.timestamps_ms = np.arange(4, dtype=np.int64)
    some = take_rows(columns, np.array([3, 0, 2], np.int64))
    assert some.count == 3
    assert some.keys is not None
    assert some.values is not None
    assert some.headers is not None
    assert some.timestamps_ms is not None
    assert some.keys.to_list() == [b"dd", b"a", b"c"]
    assert some.values.to_list() == [b"4444", b"1", None]
    assert [some.headers.item(row) for row in range(3)] == [[], [("h", b"x"), ("i", None)], [("j", b"y")]]
    assert some.timestamps_ms.tolist() == [3, 0, 2]
    assert some.sizes_bytes().tolist() == columns.sizes_bytes()[[3, 0, 2]].tolist()
