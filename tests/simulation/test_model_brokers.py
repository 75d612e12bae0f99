"""Model brokers by themselves: Kafka's rules for producers, slowness in two kinds, death, moving
leaders, transactions."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.records import BatchHeader
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation import Application, ProduceCluster, Refusal, SubmittedRecords
from fairlead_kafka.simulation.model_log import NOWHERE, ModelPartition


def header(sequence: int, count: int = 1, producer_id: int = 7, epoch: int = 0) -> BatchHeader:
    return BatchHeader(0, 61 + 10 * count, 0, 0, 0, 0, count - 1, 0, 0, producer_id, epoch, sequence, count)


def checked(partition: ModelPartition, *asked: BatchHeader, forgetful: bool = False) -> list[tuple[int, int]]:
    return [partition.check_sequence(each, forgetful=forgetful) for each in asked]


def test_sequences_are_judged_as_kafka_does() -> None:
    partition = ModelPartition(leader=0)
    for sequence in range(7):
        assert checked(partition, header(sequence)) == [(0, NOWHERE)]
        partition.append(header(sequence), None)
    assert checked(partition, header(2), header(6)) == [(0, 2), (0, 6)], (
        "the last five are remembered with their offsets"
    )
    assert checked(partition, header(1), header(8)) == [(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOWHERE)] * 2
    assert checked(partition, header(0, epoch=1)) == [(0, NOWHERE)]
    assert checked(partition, header(1, epoch=1)) == [(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOWHERE)]
    partition.append(header(0, epoch=1), None)
    assert checked(partition, header(7)) == [(ErrorCode.INVALID_PRODUCER_EPOCH, NOWHERE)]
    assert checked(partition, header(5, producer_id=8)) == [(0, NOWHERE)], (
        "any sequence of a producer that is not known"
    )


def test_forgetful_brokers_answer_as_old_ones() -> None:
    partition = ModelPartition(leader=0)
    assert checked(partition, header(3), forgetful=True) == [(ErrorCode.UNKNOWN_PRODUCER_ID, NOWHERE)]
    for sequence in range(7):
        partition.append(header(sequence), None)
    assert checked(partition, header(0), forgetful=True) == [(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, NOWHERE)]


def test_sequences_wrap() -> None:
    partition = ModelPartition(leader=0)
    partition.append(header(2**31 - 2, 2), None)
    assert checked(partition, header(0), header(1)) == [
        (0, NOWHERE),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOWHERE),
    ]


def test_what_nobody_was_told_of_can_be_taken_back_and_the_rest_not() -> None:
    partition = ModelPartition(leader=0)
    for sequence in range(4):
        partition.append(header(sequence), None)
    partition.high_watermark = 2
    assert partition.truncate() == 2
    assert (partition.end_offset, partition.size_bytes) == (2, 2 * 71)
    assert checked(partition, header(1), header(2)) == [(0, 1), (0, NOWHERE)]


def test_a_marker_refuses_older_epochs() -> None:
    partition = ModelPartition(leader=0)
    partition.append(header(0), None)
    partition.mark(7, 1, committed=False)
    assert checked(partition, header(1)) == [(ErrorCode.INVALID_PRODUCER_EPOCH, NOWHERE)]
    assert checked(partition, header(0, epoch=1), header(1, epoch=1)) == [
        (0, NOWHERE),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOWHERE),
    ]


class Bench:
    """An application and a cluster with a topic of as many partitions as brokers."""

    def __init__(self, brokers: int = 2, **config: Any) -> None:
        self.host = VirtualHost(latency_ms=1)
        self.cluster = ProduceCluster(self.host, brokers, keeps_records=True, rng=random.Random(3))
        self.cluster.create_topic("t", brokers)
        self.completed: list[tuple[int, int, float, Exception | None]] = []
        settings = {"linger.ms": 0, "bootstrap.servers": self.cluster.bootstrap_servers, **config}
        self.application = Application(self.host, settings, random.Random(4), self._completed)
        self.send(0)
        self.send(brokers - 1)
        self.wait(2)
        self.completed.clear()
        self.began_ns = self.host.now_ns()

    def _completed(
        self,
        submitted: SubmittedRecords,
        rows: Any,
        partition: int,
        base_offset: int,
        error: Exception | None,
    ) -> None:
        self.completed += [
            (partition, base_offset + place, self.elapsed_ms(), error) for place in range(len(rows))
        ]

    def elapsed_ms(self) -> float:
        return (self.host.now_ns() - getattr(self, "began_ns", 0)) / 1e6

    def send(self, partition: int, value: bytes = b"value") -> None:
        assert self.application.submit("t", [value], None, [partition]) is not None

    def wait(self, count: int) -> None:
        self.host.run_until(lambda: len(self.completed) >= count, 10_000)


@pytest.mark.parametrize(("fault", "last_ms"), [("serial", 62.0), ("latency", 22.0)])
def test_a_broker_is_slow_one_after_another_or_all_at_once(fault: str, last_ms: float) -> None:
    bench = Bench(**{"max.in.flight.requests.adaptive.enable": False, "batch.size": 0})
    bench.cluster.broker(0).slow(20, fault)
    for _ in range(3):
        bench.send(0)
    bench.wait(3)
    assert [round(elapsed_ms) for _, _, elapsed_ms, _ in bench.completed][-1] == last_ms
    bench.cluster.broker(0).slow()
    bench.send(0)
    bench.wait(4)
    assert bench.completed[-1][2] == pytest.approx(last_ms + 2)


def test_nonsense_faults_are_refused() -> None:
    with pytest.raises(ConfigError, match="one of serial, latency"):
        Bench().cluster.broker(0).slow(1, "sideways")


def test_bytes_are_counted_by_partition() -> None:
    bench = Bench()
    before = bench.cluster.bytes_by_partition("t")
    bench.send(1, b"x" * 100)
    bench.wait(1)
    after = bench.cluster.bytes_by_partition("t")
    assert after[0] == before[0]
    assert 161 < after[1] - before[1] < 180


def test_partitions_of_a_dead_broker_are_led_by_another() -> None:
    bench = Bench()
    bench.cluster.broker(0).kill()
    bench.send(0)
    bench.wait(1)
    assert [(partition, offset, error) for partition, offset, _, error in bench.completed] == [(0, 1, None)]
    assert bench.cluster.log.topics["t"].partitions[0].leader == 1
    assert not bench.cluster.broker(0).running
    bench.cluster.broker(0).start()
    bench.host.advance(10)
    assert bench.cluster.broker(0).running


def test_a_frozen_broker_answers_once_it_thaws() -> None:
    bench = Bench()
    bench.cluster.broker(0).freeze()
    bench.send(0)
    bench.host.advance(500)
    assert not bench.completed
    bench.cluster.broker(0).thaw()
    bench.wait(1)
    assert bench.completed[0][3] is None


def test_a_script_may_refuse_what_was_written_all_the_same() -> None:
    bench = Bench()
    refusals = iter([Refusal(ErrorCode.REQUEST_TIMED_OUT, written=True)])
    bench.cluster.on_produce = lambda *_: next(refusals, None)
    bench.send(0)
    bench.wait(1)
    assert bench.completed[0][1] == 1
    assert bench.cluster.log.topics["t"].partitions[0].end_offset == 2, "the repetition was recognised"
