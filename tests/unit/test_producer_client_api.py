"""The blocking face: memory, flush, close, and what it refuses."""

import threading
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import BufferExhausted, ConfigError, InvalidRecord, TimedOut, UsageError
from fairlead_kafka.client.memory import MemoryPool, Place, take_for
from fairlead_kafka.producer import Flush
from fairlead_kafka.runtime import Completion
from tests.support.metrics import memory_is_free, metric
from tests.support.producer_rig import Rig


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=2)
    made.cluster.create("t", 4)
    return made


def test_wrong_configs_are_refused_all_at_once() -> None:
    from fairlead_kafka.client.producer import Producer

    with pytest.raises(
        ConfigError, match=r"(?s)linger_ms: unknown; did you mean linger.ms.*acks: must be one of"
    ):
        Producer({"bootstrap.servers": "h:1", "linger_ms": 1, "acks": "2"})
    with pytest.raises(ConfigError, match=r"enable.idempotence"):
        Producer({"bootstrap.servers": "h:1", "enable.idempotence": True, "acks": "1"})


def test_a_send_without_room_waits_for_it(rig: Rig) -> None:
    producer = rig.producer(buffer_memory=1000, linger_ms=10_000)
    acks = [producer.send("t", b"x" * 100) for _ in range(30)]
    producer.flush()
    assert all(ack.done() for ack in acks)
    assert metric(producer, "buffer-available-bytes") == 1000


def test_someone_in_line_for_memory_ends_lingering(rig: Rig) -> None:
    producer = rig.producer(buffer_memory=1000, linger_ms=10_000, max_block_ms=5000)
    before = rig.host.now_ns()
    for _ in range(9):
        producer.send("t", b"x" * 100, partition=0)
    assert rig.host.now_ns() - before < 1_000_000_000


def test_without_room_for_max_block_ms_a_send_fails_and_says_why(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: 19
    producer = rig.producer(buffer_memory=1000, max_block_ms=250)
    for _ in range(8):
        producer.send("t", b"x" * 100)
    before = rig.host.now_ns()
    with pytest.raises(
        BufferExhausted,
        match=r"a record of 121 bytes for topic 't' within max.block.ms=250.*of buffer.memory=1000",
    ):
        producer.send("t", b"x" * 100)
    assert rig.host.now_ns() - before == 250_000_000
    rig.cluster.on_produce = lambda *_: None
    producer.flush()
    assert metric(producer, "buffer-available-bytes") == 1000
    assert metric(producer, "waiting-threads") == 0


def test_a_table_larger_than_the_memory_streams_through(rig: Rig) -> None:
    producer = rig.producer(buffer_memory=20_000)
    table = pa.table(
        {
            "value": [b"%04d" % i + b"x" * 96 for i in range(2000)],
            "partition": pa.array([1] * 2000, pa.int32()),
        }
    )
    assert producer.send_table("t", table).result()["offset"].to_pylist() == list(range(2000))
    assert rig.cluster.values("t")[1] == table["value"].to_pylist()
    assert metric(producer, "buffer-available-bytes") == 20_000


def test_a_table_without_room_fails_with_the_rows_before_on_their_way(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: 19
    producer = rig.producer(buffer_memory=8_000, max_block_ms=100)
    with pytest.raises(BufferExhausted, match=r"its first [0-9]+ rows are on their way"):
        producer.send_table("t", pa.table({"value": [b"x" * 100] * 500}))
    rig.cluster.on_produce = lambda *_: None
    producer.flush()
    assert sum(map(len, rig.cluster.values("t"))) > 0
    assert metric(producer, "buffer-available-bytes") == 8_000


def test_an_interrupted_wait_for_memory_leaves_the_line(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlead_kafka.client import hosting

    producer = rig.producer(buffer_memory=500, linger_ms=1000)
    producer.send("t", b"x" * 400)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(hosting.Completion, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            producer.send("t", b"x" * 400)
        with pytest.raises(KeyboardInterrupt):
            producer.flush()
    assert metric(producer, "waiting-threads") == 0
    producer.flush()
    assert metric(producer, "buffer-available-bytes") == 500


def test_memory_is_granted_first_come_first_served() -> None:
    pool, taken = MemoryPool(100), []
    assert take_for("first", 90, pool, taken)
    assert not take_for("big", 80, pool, taken)
    big, small = Place(80), Place(5)
    pool.line_up(big)
    pool.line_up(small)
    pool.release(10)
    assert not big.called.done()
    pool.release(80)
    assert big.called.done()
    assert small.called.done()
    assert not pool.waiting()
    assert take_for("big", 80, big, taken)
    pool.leave(big)
    assert pool.free_bytes == 15
    pool.leave(small)
    assert taken == ["first", "big"]
    assert pool.free_bytes == 20


def test_a_place_given_up_at_the_last_moment_is_given_back() -> None:
    pool = MemoryPool(100)
    assert pool.take(100)
    first, second = Place(60), Place(60)
    pool.line_up(first)
    pool.line_up(second)
    pool.release(100)
    assert first.called.done()
    assert not second.called.done()
    for _ in range(2):
        pool.leave(first)
    assert second.called.done()
    pool.leave(second)
    assert pool.free_bytes == 100
    assert not pool.waiting()


def test_a_place_whose_call_was_cut_short_is_passed_over() -> None:
    pool = MemoryPool(100)
    assert pool.take(100)
    first, second = Place(60), Place(40)
    pool.line_up(first)
    pool.line_up(second)
    first.called.set_result(None)  # Ctrl-C came before it was taken out of line
    pool.release(60)
    assert second.called.done()
    pool.leave(first)
    pool.leave(second)
    assert pool.free_bytes == 60
    assert not pool.waiting()


def test_linger_gathers_records_and_flush_does_not_wait_for_it(rig: Rig) -> None:
    producer = rig.producer(linger_ms=1000)
    producer.send("t", b"1", partition=0)
    rig.host.advance(900)
    producer.send("t", b"2", partition=0)
    assert not rig.cluster.produce_requests
    rig.host.advance(100)
    assert [header.count for _, _, header in rig.cluster.produce_requests[0]] == [2]
    producer.send("t", b"3", partition=0)
    before = rig.host.now_ns()
    producer.flush()
    assert rig.host.now_ns() - before < 100_000_000
    producer.send("t", b"4", partition=0)
    rig.host.advance(900)
    assert len(rig.cluster.produce_requests) == 2


def test_a_full_batch_does_not_linger(rig: Rig) -> None:
    producer = rig.producer(linger_ms=60_000, batch_size=1000)
    acks = [producer.send("t", b"x" * 100, partition=0) for _ in range(20)]
    rig.host.advance(50)
    assert acks[0].done()
    assert not acks[-1].done()


def test_a_request_takes_batches_of_many_partitions_and_topics(rig: Rig) -> None:
    rig.cluster.create("u", 4)
    producer = rig.producer(linger_ms=20)
    for topic in ("t", "u"):
        for partition in (0, 2):
            producer.send(topic, b"v", partition=partition)
    producer.flush()
    assert [
        [(topic, partition) for topic, partition, _ in request] for request in rig.cluster.produce_requests
    ] == [[("t", 0), ("t", 2), ("u", 0), ("u", 2)]]


def test_a_request_stays_below_max_request_size(rig: Rig) -> None:
    producer = rig.producer(linger_ms=20, max_request_size=1500)
    rig.cluster.create("w", 12)
    producer.send_table(
        "w", pa.table({"value": [b"x" * 400] * 12, "partition": pa.array(range(12), pa.int32())})
    ).result()
    assert (
        max(sum(header.size_bytes for _, _, header in request) for request in rig.cluster.produce_requests)
        <= 1500
    )


def test_a_flush_that_is_late_names_what_remains(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: 19
    producer = rig.producer()
    for _ in range(5):
        producer.send("t", b"v")
    with pytest.raises(TimedOut, match=r"flush: 5 records"):
        producer.flush(timeout_s=1)
    rig.cluster.on_produce = lambda *_: None
    producer.flush()


def test_a_flush_covers_failed_records_and_nothing_is_flushed_at_once(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: 87
    producer = rig.producer()
    producer.flush()
    ack = producer.send("t", b"v")
    producer.flush()
    assert ack.done()


def test_a_flush_does_not_wait_for_what_comes_after_it(rig: Rig) -> None:

    producer = rig.producer(linger_ms=0)
    rig.cluster.on_produce = lambda node, topic, partition, header: 19 if partition == 1 else None
    producer.send("t", b"1", partition=0)
    completion = Completion()
    producer.core.host.submit(Flush(completion))
    rig.host.advance(0)
    producer.send("t", b"2", partition=1)
    rig.host.run_until(completion.done, 100)


def test_close_delivers_and_then_refuses(rig: Rig) -> None:
    with rig.producer(linger_ms=1000) as producer:
        ack = producer.send("t", b"v")
    assert ack.result(timeout_s=0).offset == 0
    producer.close()
    for call in (lambda: producer.send("t", b"v"),
    lambda: producer.send_table("t", pa.table({"value": [b"v"]})), producer.flush,
                 lambda: producer.partitions_for("t")):  # fmt: skip
        with pytest.raises(UsageError, match=r"closed"):
            call()


def test_close_gives_up_in_time_and_says_what(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.cluster.on_produce = lambda *_: 19
    producer = rig.producer()
    acks = [producer.send("t", b"v") for _ in range(7)]
    waiting = producer.send("nowhere", b"v")
    producer.close(timeout_s=0.5)
    for ack in (*acks, waiting):
        with pytest.raises(TimedOut, match=r"closed before the records were delivered"):
            ack.result(timeout_s=0)
    assert "1 of topic 'nowhere', 7 of topic 't'" in caplog.text
    assert memory_is_free(producer)


def test_close_fails_those_who_wait_for_memory(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: 19
    producer = rig.producer(buffer_memory=300)
    producer.send("t", b"x" * 250)
    waiting = Place(200)
    producer.core._memory.line_up(waiting)
    producer.close(timeout_s=0)
    with pytest.raises(UsageError, match=r"closed"):
        waiting.called.result(0)


def test_a_machine_that_ends_fails_what_is_open(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: 19
    producer = rig.producer()
    ack = producer.send("t", b"v")
    rig.host.advance(10)
    later = producer.send("t", b"w")
    rig.host.close()
    for each in (ack, later):
        with pytest.raises(UsageError, match=r"has ended"):
            each.result(timeout_s=0)
    with pytest.raises(UsageError):
        producer.send("t", b"v")


def test_a_custom_partitioner_decides_and_its_faults_fail_only_its_records(rig: Rig) -> None:
    def last(topic: str, keys: Any, values: Any, partition_count: int) -> list[int]:
        if any(value == b"bad" for value in values.to_list()):
            raise RuntimeError("no")
        return [partition_count - 1] * len(values)

    producer = rig.producer({"partitioner.class": last})
    assert producer.send("t", b"v", key=b"k").result().partition == 3
    bad = producer.send("t", b"bad")
    producer.flush()
    with pytest.raises(
        InvalidRecord,
        match=r"partitioner failed for 1 record of topic 't': RuntimeError\('no'\) at .*producer_client_api",
    ) as failed:
        bad.result()
    cause = failed.value.__cause__
    assert isinstance(cause, RuntimeError)
    assert cause.__traceback__ is None, "it would keep what its frames hold, and handles keep it"
    assert 'raise RuntimeError("no")' in cause.__notes__[0], "file and line are shown as text"
    assert producer.send("t", b"v").result().partition == 3


def test_thirty_thousand_idle_partitions_are_not_looked_at(rig: Rig) -> None:
    rig.cluster.create("wide", 30_000)
    producer = rig.producer()
    producer.send("wide", b"v", partition=29_999).result()
    topic = rig.machine(producer).accumulator.topics["wide"]
    assert len(topic.used()) == 1
    assert not rig.machine(producer).schedule.active


def test_sends_from_many_threads_all_arrive(rig: Rig) -> None:
    producer = rig.producer(linger_ms=0)
    threads = [
        threading.Thread(
            target=lambda n=n: [producer.send("t", b"%d-%04d" % (n, i), partition=n) for i in range(300)]
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush()
    assert rig.cluster.values("t") == [[b"%d-%04d" % (n, i) for i in range(300)] for n in range(4)]
