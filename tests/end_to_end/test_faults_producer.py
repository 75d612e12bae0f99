"""A producer used badly: too little memory, too large records, many threads, callbacks that
misbehave, closed at the wrong moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka.client.handles import Ack
from fairlead_kafka.testing import ApiKey, SeenRequest
from tests.support.cutting_proxy import CuttingProxy
from tests.support.delivery_check import PARTITIONS, Place, check_delivered, enter, read_back
from tests.support.metrics import metric
from tests.support.waiting import PATIENCE_S, until

NOBODY = {"bootstrap.servers": "127.0.0.1:1", "reconnect.backoff.ms": 1000}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with fairlead_kafka.Cluster(brokers=2, config={"num.partitions": PARTITIONS}) as cluster:
        yield cluster.bootstrap_servers


def whole(producer: fairlead_kafka.Producer) -> bool:
    """True if all memory is back and nobody waits."""
    metrics = producer.metrics()["producer-metrics"]
    return (
        metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"] and not metrics["waiting-threads"]
    )


def test_a_table_far_larger_than_the_buffer_goes_through_it(servers: str) -> None:
    table = pa.table(
        {
            "value": [b"%06d" % number for number in range(50_000)],
            "key": [b"k%d" % (number % 9) for number in range(50_000)],
        }
    )
    with fairlead_kafka.Producer({"bootstrap.servers": servers, "buffer.memory": 20_000}) as producer:
        result = producer.send_table("large", table).result(PATIENCE_S).to_pydict()
        assert whole(producer)
    placed: dict[Place, bytes] = {}
    for value, partition, offset in zip(
        table["value"].to_pylist(), result["partition"], result["offset"], strict=True
    ):
        enter(placed, fairlead_kafka.RecordMetadata("large", partition, offset, 0), value)
    check_delivered(placed, read_back(servers, "large", PARTITIONS))


@pytest.mark.parametrize(
    "send",
    [
        lambda producer: producer.send("t", b"x" * 800),
        lambda producer: producer.send_table("t", pa.table({"value": [b"x" * 100] * 20})),
    ],
    ids=["record", "table"],
)
def test_memory_that_does_not_come_back_in_time_is_told(
    send: Callable[[fairlead_kafka.Producer], object],
) -> None:
    with (
        fairlead_kafka.Cluster(brokers=1) as cluster,
        CuttingProxy(cluster.bootstrap_servers, lambda _: None) as proxy,
    ):
        with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as patient:
            patient.send("t", b"first").result(PATIENCE_S)
        config = {"bootstrap.servers": proxy.bootstrap_servers, "buffer.memory": 1_000, "max.block.ms": 100}
        with fairlead_kafka.Producer(config) as producer:
            producer.partitions_for("t", PATIENCE_S)
            proxy.hold(cluster.broker(0).address)
            held = producer.send("t", b"x" * 800)
            with pytest.raises(fairlead_kafka.BufferExhausted, match=r"max\.block\.ms=100"):
                send(producer)
            proxy.release()
            assert held.result(PATIENCE_S).offset == 1
            producer.flush()
            assert whole(producer)


def test_one_row_too_large_fails_the_call_and_sends_nothing(servers: str) -> None:
    with fairlead_kafka.Producer({"bootstrap.servers": servers, "max.request.size": 1_000}) as producer:
        producer.send("rows", b"first").result(PATIENCE_S)
        values = [b"s"] * 500 + [b"l" * 2_000] + [b"s"] * 500
        with pytest.raises(fairlead_kafka.RecordTooLarge, match="row 500"):
            producer.send_table("rows", pa.table({"value": values}))
        with pytest.raises(fairlead_kafka.RecordTooLarge):
            producer.send("rows", b"l" * 2_000)
        producer.flush(PATIENCE_S)
        assert whole(producer)
    assert len(read_back(servers, "rows", PARTITIONS)) == 1


def test_rows_that_the_broker_calls_too_large_fail_alone(servers: str) -> None:
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        admin.create_topics(
            [fairlead_kafka.NewTopic("narrow", partitions=1, configs={"max.message.bytes": "2000"})]
        )
    values = [b"l" * 3_000 if number in (50, 51, 120) else b"%03d" % number * 50 for number in range(200)]
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        result = producer.send_table("narrow", pa.table({"value": values})).result(30, raise_on_error=False)
        assert [row for row, error in enumerate(result["error"].to_pylist()) if error is not None] == [
            50,
            51,
            120,
        ]
        assert whole(producer)
    found = read_back(servers, "narrow", 1)
    assert [found[0, offset][1] for offset in range(197)] == [value for value in values if len(value) < 2_000]


def test_eight_threads_at_once_lose_nothing_and_keep_each_ones_order(servers: str) -> None:
    acks: list[list[tuple[bytes, Ack]]] = [[] for _ in range(8)]
    with fairlead_kafka.Producer(
        {"bootstrap.servers": servers, "buffer.memory": 60_000, "linger.ms": 1}
    ) as producer:

        def send(thread: int) -> None:
            for number in range(1_500):
                value = b"%d-%05d" % (thread, number)
                acks[thread].append((value, producer.send("threads", value, key=b"key-%d" % thread)))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        placed: dict[Place, bytes] = {}
        for value, ack in (pair for mine in acks for pair in mine):
            enter(placed, ack.result(PATIENCE_S), value)
        assert whole(producer)
    assert len(placed) == 8 * 1_500
    check_delivered(placed, read_back(servers, "threads", PARTITIONS))


@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()], ids=lambda error: type(error).__name__
)
def test_a_callback_that_raises_harms_nobody(servers: str, error: BaseException) -> None:
    told: list[int] = []

    def raise_it(metadata: object, _: object) -> None:
        raise error

    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        producer.send("callbacks", b"bad", on_delivery=raise_it)
        producer.send("callbacks", b"good", on_delivery=lambda metadata, _: told.append(1)).result(PATIENCE_S)
        producer.send("callbacks", b"later", on_delivery=lambda metadata, _: told.append(2)).result(
            PATIENCE_S
        )
        producer.flush(PATIENCE_S)
    assert told == [1, 2]


def test_a_callback_may_send_on(servers: str) -> None:
    done = threading.Event()
    with fairlead_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0}) as producer:

        def next_one(metadata: fairlead_kafka.RecordMetadata | None, _: object, left: int = 50) -> None:
            if left:
                producer.send(
                    "chain",
                    b"%d" % left,
                    partition=0,
                    on_delivery=lambda found, error: next_one(found, error, left - 1),
                )
            else:
                done.set()

        producer.send("chain", b"first", partition=0, on_delivery=next_one)
        assert done.wait(PATIENCE_S)
    assert len(read_back(servers, "chain", PARTITIONS)) == 51


@pytest.mark.parametrize("wait", ["flush", "close", "partitions_for"])
def test_a_callback_that_would_wait_for_its_own_thread_is_told_so(servers: str, wait: str) -> None:
    caught: list[Exception] = []

    def wait_inside(metadata: object, _: object) -> None:
        try:
            getattr(producer, wait)(*(["waiting"] if wait == "partitions_for" else []))
        except fairlead_kafka.UsageError as error:
            caught.append(error)

    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        producer.send("waiting", b"x", on_delivery=wait_inside).result(PATIENCE_S)
        producer.flush(PATIENCE_S)
        assert producer.send("waiting", b"y").result(PATIENCE_S).offset >= 0
    assert "within a delivery callback" in str(caught[0])


def test_a_callback_that_finds_no_memory_is_told_at_once() -> None:
    caught: list[Exception] = []

    def send_more(metadata: object, _: object) -> None:
        try:
            producer.send("t", b"x" * 1_500)
        except fairlead_kafka.BufferExhausted as error:
            caught.append(error)

    with (
        fairlead_kafka.Cluster(brokers=2, config={"num.partitions": 2}) as cluster,
        CuttingProxy(cluster.bootstrap_servers, lambda _: None) as proxy,
    ):
        config = {"bootstrap.servers": proxy.bootstrap_servers, "buffer.memory": 2_000, "linger.ms": 0}
        with fairlead_kafka.Producer(config) as producer:
            leaders = [entry.leader for entry in producer.partitions_for("t")]
            for partition in (0, 1):
                producer.send("t", b"first", partition=partition).result(PATIENCE_S)
            proxy.hold(cluster.broker(leaders[1]).address)
            held = producer.send("t", b"x" * 1_000, partition=1)
            producer.send("t", b"y", partition=0, on_delivery=send_more).result(PATIENCE_S)
            until(lambda: caught)
            proxy.release()
            held.result(PATIENCE_S)
            producer.flush(PATIENCE_S)
            assert whole(producer)
    assert len(caught) == 1
    assert "a delivery callback cannot wait" in str(caught[0])


def test_everything_after_close_is_refused_and_closing_again_is_not(servers: str) -> None:
    producer = fairlead_kafka.Producer({"bootstrap.servers": servers})
    ack = producer.send("closed", b"x")
    producer.close()
    producer.close()
    assert ack.result(0).offset >= 0
    late: list[Callable[[], Any]] = [
        lambda: producer.send("closed", b"x"),
        lambda: producer.send_table("closed", pa.table({"value": [b"x"]})),
        lambda: producer.flush(),
        lambda: producer.partitions_for("closed"),
    ]
    for call in late:
        with pytest.raises(fairlead_kafka.UsageError, match="closed"):
            call()
    assert metric(producer, "record-delivered-total") == 1


def test_close_while_other_threads_send_settles_every_record(servers: str) -> None:
    producer = fairlead_kafka.Producer({"bootstrap.servers": servers, "buffer.memory": 50_000})
    acks: list[list[Ack]] = [[] for _ in range(6)]
    enough = threading.Barrier(7)

    def send(thread: int) -> None:
        for number in range(1_000_000):
            if number == 300:
                enough.wait(PATIENCE_S)
            try:
                acks[thread].append(producer.send("storm", b"%d-%d" % (thread, number)))
            except fairlead_kafka.UsageError:
                return

    threads = [threading.Thread(target=send, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    enough.wait(PATIENCE_S)
    producer.close()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    places = {
        (metadata.partition, metadata.offset) for mine in acks for metadata in [ack.result(0) for ack in mine]
    }
    assert whole(producer)
    assert len(places) == sum(map(len, acks)) == len(read_back(servers, "storm", PARTITIONS))


def test_close_while_senders_wait_for_memory_lets_them_go_and_keeps_the_account_right() -> None:
    producer = fairlead_kafka.Producer({**NOBODY, "buffer.memory": 1_000, "max.block.ms": 30_000})
    ack = producer.send("t", b"x" * 800)
    caught: list[Exception] = []

    def send() -> None:
        try:
            producer.send("t", b"x" * 800)
        except fairlead_kafka.UsageError as error:
            caught.append(error)

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: metric(producer, "waiting-threads") == 3)
    producer.close(timeout_s=0)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(caught) == 3
    with pytest.raises(fairlead_kafka.TimedOut, match="closed before"):
        ack.result(0)
    assert whole(producer)


def test_asking_for_a_shared_error_again_and_again_does_not_lengthen_its_traceback() -> None:
    producer = fairlead_kafka.Producer({**NOBODY, "max.block.ms": 50})
    acks = [producer.send("t", b"x") for _ in range(20)]
    for ack in acks:
        with pytest.raises(fairlead_kafka.TimedOut):
            ack.result(PATIENCE_S)  # those not yet told wait, which has frames of its own
    lengths = set()
    for ack in [*acks, *acks]:
        with pytest.raises(fairlead_kafka.TimedOut) as caught:
            ack.result(PATIENCE_S)
        lengths.add(len(caught.traceback))
    producer.close(timeout_s=0)
    assert len(lengths) == 1


def test_small_requests_without_answers_are_no_flood(servers: str) -> None:
    config = {"bootstrap.servers": servers, "acks": "0", "batch.size": 0, "linger.ms": 0}
    with fairlead_kafka.Producer(config) as producer:
        for number in range(6_000):
            producer.send("silent", b"%05d" % number, partition=0)
    with fairlead_kafka.Consumer({"bootstrap.servers": servers, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([fairlead_kafka.TopicPartition("silent", 0)])
        values: list[bytes] = []
        while len(values) < 6_000 and (table := consumer.poll_table(timeout_s=PATIENCE_S)).num_rows:
            values += table["value"].to_pylist()
    assert values == [b"%05d" % number for number in range(6_000)]


def test_a_topic_that_is_made_again_is_written_by_its_new_id() -> None:
    """Produce 13 names topics by id: the old one's is unknown, which is asked about and tried
    again."""
    seen: list[SeenRequest] = []
    with (
        fairlead_kafka.Cluster(brokers=2) as cluster,
        fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer,
    ):
        cluster.create_topic("again", partitions=2)
        cluster.on(ApiKey.PRODUCE).observe(seen)
        assert producer.send("again", b"old", partition=0).result(30).offset == 0
        cluster.delete_topic("again")
        cluster.create_topic("again", partitions=2)
        assert producer.send("again", b"new", partition=0).result(30).offset == 0
    assert {request.version for request in seen} == {13}
