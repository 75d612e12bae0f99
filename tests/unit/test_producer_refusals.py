"""What brokers refuse, and what each record of it is told; and that memory comes back to the byte
whatever happens."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import BatchRefused, BrokerError, BufferExhausted, RecordTooLarge
from fairlead_kafka.wire import Message
from tests.support.metrics import memory_is_free, metric
from tests.support.producer_brokers import BREAK, LOSE_ANSWER
from tests.support.producer_rig import Rig

INVALID_RECORD, INVALID_TIMESTAMP = 87, 32


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=2)
    made.cluster.create("t", 4)
    return made


def refused(index: int, said: str | None = None) -> Message:
    return Message(batch_index=index, batch_index_error_message=said)


def errors_of(acks: list[Any]) -> list[Exception | None]:
    found: list[Exception | None] = []
    for ack in acks:
        try:
            ack.result(0)
            found.append(None)
        except Exception as error:
            found.append(error)
    return found


def test_records_that_a_broker_names_fail_with_its_words_and_the_others_may_be_sent_again(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: INVALID_RECORD
    rig.cluster.record_errors = [refused(1, "no key"), refused(3)]
    producer = rig.producer(linger_ms=50)
    acks = [producer.send("t", b"%d" % number, partition=0) for number in range(5)]
    producer.flush()
    found = errors_of(acks)
    assert [type(error) for error in found] == [
        BatchRefused,
        BrokerError,
        BatchRefused,
        BrokerError,
        BatchRefused,
    ]
    assert "no key" in str(found[1])
    assert "2 other records of its batch" in str(found[0])
    assert memory_is_free(producer)
    assert metric(producer, "record-error-total") == 5
    rig.cluster.on_produce = lambda *_: None
    again = [producer.send("t", b"%d" % number, partition=0) for number in (0, 2, 4)]
    assert [ack.result().offset for ack in again] == [0, 1, 2]


def test_a_single_record_that_is_named_has_the_code_of_its_batch(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: INVALID_TIMESTAMP
    rig.cluster.record_errors = [refused(0, "too old")]
    producer = rig.producer(linger_ms=50)
    acks = [producer.send("t", b"v", partition=0) for _ in range(2)]
    producer.flush()
    first, second = errors_of(acks)
    assert isinstance(first, BrokerError)
    assert (first.code, type(second)) == (INVALID_TIMESTAMP, BatchRefused)


def test_rows_that_a_broker_names_are_found_through_keys_pieces_and_callbacks(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: INVALID_RECORD
    rig.cluster.record_errors = [
        refused(0, "zero"),
        refused(2, "two"),
        refused(77, "there is no such record"),
    ]
    producer = rig.producer(linger_ms=50)
    told: list[tuple[int, type]] = []
    for number in range(2):
        producer.send(
            "t",
            b"r",
            partition=0,
            on_delivery=lambda _, error, number=number: told.append((number, type(error))),
        )
    producer.send_table("t", pa.table({"value": [b"a", b"b"], "partition": pa.array([0, 0], pa.int32())}))
    rows = producer.send_table("t", pa.table({"value": [b"c"], "partition": pa.array([0], pa.int32())}))
    producer.flush()
    rig.host.advance(0)
    assert [(number, kind.__name__) for number, kind in told] == [(0, "BrokerError"), (1, "BatchRefused")]
    assert "may be sent again" in rows.result(raise_on_error=False)["error"].to_pylist()[0]
    assert memory_is_free(producer)


def test_a_record_that_is_too_large_for_the_broker_says_what_to_raise(rig: Rig) -> None:
    rig.cluster.max_message_bytes = 500
    producer = rig.producer()
    ack = producer.send("t", b"x" * 700, partition=1)
    with pytest.raises(
        RecordTooLarge,
        match=r"1 record for t-1: a batch of 7\d\d bytes.*raise max.message.bytes of topic 't'",
    ):
        ack.result()
    assert producer.send("t", b"small", partition=1).result().offset == 0
    assert memory_is_free(producer)


@pytest.mark.parametrize(
    ("configs", "limit"),
    [({"max_request_size": 400}, "max.request.size=400"), ({"buffer_memory": 300}, "buffer.memory=300")],
)
def test_a_record_that_is_too_large_for_the_producer_names_the_one_limit_it_meets(
    rig: Rig, configs: dict[str, int], limit: str
) -> None:
    with pytest.raises(
        RecordTooLarge, match=rf"the record for topic 't' takes up to 52\d bytes; {limit} allows \d+: raise"
    ) as raised:
        rig.producer(**configs).send("t", b"x" * 500)
    assert str(raised.value).count("=") == 1


@pytest.mark.parametrize("seed", range(8))
def test_memory_comes_back_to_the_byte_after_any_mix_of_ends(rig: Rig, seed: int) -> None:
    rng = random.Random(seed)
    faults = [None, None, None, 19, INVALID_RECORD, 6, LOSE_ANSWER, BREAK, 10]
    rig.cluster.on_produce = lambda *_: rng.choice(faults)
    rig.cluster.record_errors = [refused(rng.randrange(3))]
    producer = rig.producer(
        buffer_memory=6_000,
        batch_size=700,
        max_block_ms=20,
        delivery_timeout_ms=2_000,
        request_timeout_ms=500,
        linger_ms=rng.choice([0, 5]),
    )
    acks, tables, refusals = [], [], 0
    for _ in range(60):
        try:
            if rng.random() < 0.2:
                rows = rng.randrange(1, 40)
                partitions = pa.array([rng.choice([None, 0, 3, 11]) for _ in range(rows)], pa.int32())
                tables.append(
                    producer.send_table(
                        "t", pa.table({"value": [b"v" * rng.randrange(300)] * rows, "partition": partitions})
                    )
                )
            else:
                key = rng.choice([None, b"k"])
                acks.append(
                    producer.send(
                        rng.choice(["t", "t", "t", "nowhere"]),
                        b"x" * rng.randrange(900),
                        key=key,
                        headers={"h": b"1"},
                    )
                )
        except BufferExhausted:
            refusals += 1
        rig.host.advance(rng.randrange(4))
    if seed % 2:
        producer.flush()
    producer.close(timeout_s=None if seed % 4 else 0.05)
    assert all(each.done() for each in (*acks, *tables))
    assert memory_is_free(producer)
    found = producer.metrics()["producer-metrics"]
    assert (found["records-open"], found["buffer-exhausted-total"]) == (0, refusals)
