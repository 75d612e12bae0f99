"""What the producer does when brokers fail it: retries, order, sequence numbers, splits and
time-outs."""

import itertools
from typing import Any

import pytest

from fairlead_kafka.base.errors import BrokerError, RecordTooLarge, TimedOut
from tests.support.metrics import memory_is_free, metric
from tests.support.producer_brokers import BREAK, IGNORE, IGNORE_WRITTEN, LOSE_ANSWER, Fault
from tests.support.producer_rig import Rig

(
    CORRUPT,
    NOT_LEADER,
    TIMED_OUT,
    TOO_LARGE,
    NOT_ENOUGH_REPLICAS,
    OUT_OF_ORDER,
    DUPLICATE,
    UNKNOWN_PRODUCER,
    INVALID_RECORD,
) = (
    2,
    6,
    7,
    10,
    19,
    45,
    46,
    59,
    87,
)


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=2)
    made.cluster.create("t", 2)
    return made


def script(rig: Rig, *faults: Fault) -> None:
    """The faults of the first batches, in order of arrival."""
    left = iter(faults)
    rig.cluster.on_produce = lambda *_: next(left, None)


def send(producer: Any, count: int, partition: int = 0, start: int = 0) -> list[Any]:
    return [producer.send("t", b"%06d" % i, partition=partition) for i in range(start, start + count)]


def small(rig: Rig, **more: Any) -> Any:
    """A producer whose batches hold 10 of `send`'s records."""
    return rig.producer(batch_size=61 + 10 * 14, batch_max_size=0, **more)


def in_order(rig: Rig, count: int, partition: int = 0) -> bool:
    return rig.cluster.values("t")[partition] == [b"%06d" % i for i in range(count)]


@pytest.mark.parametrize("fault", [CORRUPT, NOT_LEADER, TIMED_OUT, NOT_ENOUGH_REPLICAS, LOSE_ANSWER, BREAK])
@pytest.mark.parametrize("which", [0, 2, 6])
def test_a_failed_batch_is_sent_again_and_order_holds(rig: Rig, fault: Fault, which: int) -> None:
    producer = small(rig, linger_ms=0)
    script(rig, *[None] * which, fault)
    acks = send(producer, 100)
    producer.flush()
    assert in_order(rig, 100)
    assert [ack.result().offset for ack in acks] == list(range(100))
    metrics = producer.metrics()["producer-metrics"]
    assert metrics["record-retry-total"] >= 1
    assert metrics["epoch-bump-total"] == 0
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]


def test_no_more_than_the_window_is_in_flight(rig: Rig) -> None:
    rig.cluster.brokers[0].service_ms = 10
    producer = small(rig, max_in_flight_requests_per_connection=3)
    send(producer, 100)
    rig.host.advance(16)
    assert rig.machine(producer).network.in_flight(0) == 3
    producer.flush()
    assert in_order(rig, 100)


def test_one_in_flight_mutes_the_partition_and_keeps_order_without_idempotence(rig: Rig) -> None:
    rig.cluster.brokers[0].service_ms = 3
    producer = small(rig, max_in_flight_requests_per_connection=1, enable_idempotence=False)
    script(rig, None, CORRUPT, TIMED_OUT)
    send(producer, 100)
    producer.flush()
    assert in_order(rig, 100)
    assert {header.producer_id for header in rig.cluster.topics["t"][0].headers} == {-1}


def test_a_lost_answer_does_not_write_twice(rig: Rig) -> None:
    producer = small(rig)
    script(rig, LOSE_ANSWER)
    acks = send(producer, 10)
    assert acks[9].result().offset == 9
    assert in_order(rig, 10)


def test_a_duplicate_is_a_success_without_offset(rig: Rig) -> None:
    producer = small(rig)
    script(rig, DUPLICATE)
    assert send(producer, 10)[0].result().offset == -1
    assert metric(producer, "record-error-total") == 0


def test_sequences_are_contiguous_per_partition(rig: Rig) -> None:
    producer = small(rig)
    send(producer, 95)
    send(producer, 57, partition=1)
    producer.flush()
    for partition in rig.cluster.topics["t"]:
        expected = 0
        for header in partition.headers:
            assert header.base_sequence == expected
            expected += header.count


def test_sequences_wrap(rig: Rig) -> None:
    producer = small(rig, linger_ms=0)
    send(producer, 1)
    producer.flush()
    sequences = rig.machine(producer).accumulator.topics["t"].queue(0).sequences
    sequences.next_sequence, sequences.last_acknowledged = 2**31 - 5, 2**31 - 6
    rig.cluster.topics["t"][0].producers.clear()
    send(producer, 30, start=1)
    producer.flush()
    assert [header.base_sequence for header in rig.cluster.topics["t"][0].headers[1:]] == [2**31 - 5, 5, 15]
    assert in_order(rig, 31)


def test_a_record_that_can_never_be_written_fails_and_the_rest_goes_on_under_a_new_epoch(rig: Rig) -> None:
    rig.cluster.brokers[0].service_ms = 2
    producer = small(rig)
    script(rig, None, INVALID_RECORD)
    acks = send(producer, 60)
    producer.flush()
    for ack in acks[10:20]:
        with pytest.raises(BrokerError, match=r"INVALID_RECORD"):
            ack.result()
    assert rig.cluster.values("t")[0] == [b"%06d" % i for i in range(60) if not 10 <= i < 20]
    epochs = [header.producer_epoch for header in rig.cluster.topics["t"][0].headers]
    assert epochs == sorted(epochs)
    assert metric(producer, "epoch-bump-total") == 1


def test_a_broker_that_lost_the_sequence_gets_a_new_epoch_and_every_record_once(rig: Rig) -> None:
    producer = small(rig)
    send(producer, 20)
    producer.flush()
    rig.cluster.topics["t"][0].producers = {1001: (0, [(500, 509, 0)])}
    acks = send(producer, 40, start=20)
    producer.flush()
    assert [ack.result().offset for ack in acks] == list(range(20, 60))
    assert in_order(rig, 60)
    assert metric(producer, "epoch-bump-total") == 1


@pytest.mark.parametrize(("log_start", "bumps"), [(-1, 0), (0, 1)])
def test_a_producer_the_broker_forgot_is_retried(rig: Rig, log_start: int, bumps: int) -> None:
    rig.cluster.log_start_offset = log_start
    producer = small(rig)
    script(rig, UNKNOWN_PRODUCER)
    send(producer, 30)
    producer.flush()
    assert in_order(rig, 30)
    assert metric(producer, "epoch-bump-total") == bumps


def test_an_epoch_bump_leaves_the_batches_of_other_partitions_as_they_are(rig: Rig) -> None:
    producer = small(rig)
    rig.cluster.on_produce = lambda node, topic, partition, header: (
        INVALID_RECORD if partition == 0 and header.base_sequence == 10 else None
    )
    rig.cluster.brokers[0].service_ms = rig.cluster.brokers[1].service_ms = 2
    send(producer, 60, partition=1)
    send(producer, 60)
    producer.flush()
    assert in_order(rig, 60, partition=1)
    sequences = [
        (header.producer_epoch, header.base_sequence) for header in rig.cluster.topics["t"][1].headers
    ]
    assert sequences == sorted(sequences)


def test_the_last_epoch_asks_for_a_new_producer_id(rig: Rig) -> None:
    rig.cluster.first_epoch = 32767
    producer = small(rig)
    script(rig, None, INVALID_RECORD)
    send(producer, 10)
    producer.flush()
    rig.cluster.first_epoch = 0
    send(producer, 10, start=10)
    producer.flush()
    send(producer, 10, start=20)
    producer.flush()
    ids = [(header.producer_id, header.producer_epoch) for header in rig.cluster.topics["t"][0].headers]
    assert ids == [(1001, 32767), (1002, 0)]


def test_a_producer_id_is_asked_for_until_it_is_granted(rig: Rig) -> None:
    codes = itertools.chain([15, 14, 15], itertools.repeat(0))
    rig.cluster.on_init = lambda: next(codes)
    ack = send(small(rig), 1)[0]
    assert ack.result(timeout_s=10).offset == 0


def test_a_refused_producer_id_fails_everything_now_and_later(rig: Rig) -> None:
    rig.cluster.on_init = lambda: 31
    producer = small(rig)
    ack = send(producer, 1)[0]
    with pytest.raises(BrokerError, match=r"CLUSTER_AUTHORIZATION_FAILED"):
        ack.result(timeout_s=5)
    with pytest.raises(BrokerError, match=r"CLUSTER_AUTHORIZATION_FAILED"):
        send(producer, 1)[0].result(timeout_s=5)
    assert memory_is_free(producer)


def test_retries_end_after_their_number(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: NOT_ENOUGH_REPLICAS
    producer = small(rig, retries=2)
    with pytest.raises(BrokerError, match=r"NOT_ENOUGH_REPLICAS"):
        send(producer, 1)[0].result(timeout_s=20)
    assert len(rig.cluster.produce_requests) == 3


def test_retries_end_at_the_delivery_timeout_with_the_reason(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: NOT_ENOUGH_REPLICAS
    producer = small(rig, delivery_timeout_ms=3000, request_timeout_ms=1000)
    ack = send(producer, 1)[0]
    rig.host.advance(2990)
    assert not ack.done()
    rig.host.advance(20)
    with pytest.raises(
        TimedOut, match=r"t-0 were not delivered within delivery.timeout.ms=3000.*NOT_ENOUGH_REPLICAS"
    ):
        ack.result(timeout_s=0)


def test_a_request_that_is_unanswered_at_the_delivery_timeout_does_not_hide_what_a_broker_said_before(
    rig: Rig,
) -> None:
    answers = iter([NOT_ENOUGH_REPLICAS])
    rig.cluster.on_produce = lambda *_: next(answers, IGNORE)
    producer = small(rig, delivery_timeout_ms=3000, request_timeout_ms=2990)
    ack = send(producer, 1)[0]
    with pytest.raises(TimedOut, match=r"NOT_ENOUGH_REPLICAS.*; another request .* still unanswered"):
        ack.result(timeout_s=5)


def test_what_expired_and_was_never_written_is_followed_by_a_new_epoch(rig: Rig) -> None:
    state = {"fault": IGNORE}
    rig.cluster.on_produce = lambda *_: state["fault"]
    producer = small(rig, delivery_timeout_ms=1500, request_timeout_ms=1000)
    first = send(producer, 10)[0]
    with pytest.raises(TimedOut):
        first.result(timeout_s=5)
    state["fault"] = None
    later = send(producer, 10, start=10)
    assert later[9].result(timeout_s=10).offset == 9
    assert [header.base_sequence for header in rig.cluster.topics["t"][0].headers] == [0]
    assert metric(producer, "epoch-bump-total") == 1


def test_what_expired_and_was_written_all_the_same_is_not_written_again(rig: Rig) -> None:
    state = {"fault": IGNORE_WRITTEN}
    rig.cluster.on_produce = lambda *_: state["fault"]
    producer = small(rig, delivery_timeout_ms=1500, request_timeout_ms=1400, linger_ms=0)
    first = send(producer, 10)[0]
    with pytest.raises(TimedOut):
        first.result(timeout_s=5)
    state["fault"] = None
    later = send(producer, 10, start=10)
    assert later[9].result(timeout_s=10).offset == 19
    assert in_order(rig, 20)


def test_a_late_answer_after_expiry_settles_the_sequence(rig: Rig) -> None:
    rig.cluster.brokers[0].service_ms = 1300
    found_ns = rig.host.now_ns() + 600_000_000
    rig.cluster.on_metadata = lambda topic: 5 if rig.host.now_ns() < found_ns else 0
    producer = small(rig, delivery_timeout_ms=1600, request_timeout_ms=1590, linger_ms=0)
    first = send(producer, 10)[0]
    rig.host.advance(1400)
    assert rig.cluster.produce_requests
    rig.cluster.brokers[0].service_ms = 0
    with pytest.raises(TimedOut, match=r"still unanswered"):
        first.result(timeout_s=5)
    assert send(producer, 10, start=10)[9].result(timeout_s=10).offset == 19
    assert in_order(rig, 20)
    assert metric(producer, "epoch-bump-total") == 0


def test_a_batch_that_is_too_large_is_split_until_it_fits(rig: Rig) -> None:
    rig.cluster.max_message_bytes = 61 + 3 * 15
    producer = small(rig)
    acks = send(producer, 50)
    producer.flush()
    assert [ack.result().offset for ack in acks] == list(range(50))
    assert in_order(rig, 50)
    assert metric(producer, "batch-split-total") >= 5
    sequences = [header.base_sequence for header in rig.cluster.topics["t"][0].headers]
    assert sequences == sorted(sequences)


def test_a_single_record_that_is_too_large_for_the_broker_fails_alone(rig: Rig) -> None:
    rig.cluster.max_message_bytes = 300
    producer = rig.producer()
    acks = [producer.send("t", value, partition=0) for value in (b"a", b"x" * 400, b"b")]
    assert acks[0].result().offset == 0
    with pytest.raises(RecordTooLarge, match=r"max.message.bytes"):
        acks[1].result()
    assert acks[2].result().offset == 1


def test_a_batch_that_compressed_worse_than_estimated_is_split(rig: Rig) -> None:
    producer = rig.producer(compression_type="lz4", batch_size=2000, linger_ms=50)
    for _ in range(30):
        producer.send("t", b"0" * 500, partition=0)
    producer.flush()
    topic = rig.machine(producer).accumulator.topics["t"]
    assert topic.compression_ratio < 1
    rig.cluster.max_message_bytes = 1500
    noise = bytes(range(256)) * 2
    acks = [producer.send("t", bytes(byte ^ i for byte in noise), partition=0) for i in range(8)]
    producer.flush()
    assert all(ack.result().offset >= 30 for ack in acks)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_arrives(rig: Rig, codec: str) -> None:
    producer = rig.producer(compression_type=codec)
    send(producer, 200)
    producer.flush()
    assert in_order(rig, 200)
    assert {header.compression.name for header in rig.cluster.topics["t"][0].headers} == {codec}


def test_a_leader_that_moved_is_followed(rig: Rig) -> None:
    producer = small(rig)
    send(producer, 10)
    producer.flush()
    rig.cluster.move("t", 0, 1)
    acks = send(producer, 50, start=10)
    producer.flush()
    assert in_order(rig, 60)
    assert acks[-1].result().offset == 59


def test_a_partition_without_leader_waits_for_one(rig: Rig) -> None:
    producer = small(rig)
    send(producer, 1)
    producer.flush()
    rig.cluster.move("t", 0, -1)
    ack = send(producer, 1, start=1)[0]
    rig.host.advance(2000)
    assert not ack.done()
    rig.cluster.move("t", 0, 1)
    assert ack.result(timeout_s=10).offset == 1


def test_acks_zero_counts_what_was_sent_as_delivered(rig: Rig) -> None:
    producer = small(rig, acks=0)
    acks = send(producer, 25)
    producer.flush()
    assert [ack.result().offset for ack in acks] == [-1] * 25
    rig.host.advance(1)
    assert in_order(rig, 25)


def test_acks_one_is_not_idempotent(rig: Rig) -> None:
    producer = small(rig, acks=1)
    assert send(producer, 5)[4].result().offset == 4
    assert rig.cluster.topics["t"][0].headers[0].producer_id == -1


def test_one_slow_broker_does_not_hold_up_the_other(rig: Rig) -> None:
    rig.cluster.brokers[0].service_ms = 5_000
    producer = small(rig)
    slow, fast = send(producer, 50), send(producer, 50, partition=1)
    rig.host.advance(100)
    assert all(ack.done() for ack in fast)
    assert not slow[-1].done()


def test_answers_in_a_different_version_are_understood(rig: Rig) -> None:
    from fairlead_kafka.wire import ApiKey

    rig.cluster.versions[ApiKey.PRODUCE] = (3, 13)
    producer = small(rig)
    assert send(producer, 15)[14].result().offset == 14
