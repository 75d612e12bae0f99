"""Quotas of consumers, and of time in handlers."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Client, batch, fetch_fields
from tests.support.quota_rig import ANYBODY, Rig, produce


@pytest.fixture
def rig() -> Rig:
    return Rig()


# --- consumer_byte_rate


def fetch(client: Client, offset: int = 0, **limits: Any) -> Message:
    """The whole answer."""
    return client.ask(ApiKey.FETCH, 12, **fetch_fields({("events", 0): offset}, **limits))


def filled(rig: Rig, batches: int = 10) -> None:
    for _ in range(batches):
        assert produce(rig.connect("filler"), 1_000).responses[0].partition_responses[0].error_code == 0


def test_a_consumer_over_its_quota_gets_nothing_but_a_time_to_wait(rig: Rig) -> None:
    filled(rig)
    rig.grant(ANYBODY, consumer_byte_rate=1_000)
    client = rig.connect()
    row = fetch(client).responses[0].partitions[0]
    got_bytes = len(row.records)
    assert 0 < got_bytes <= 10_000, "no more than the longest wait would pay for"
    answer = fetch(client, 5)
    assert (answer.responses, answer.error_code) == ([], 0)
    assert answer.throttle_time_ms > 0
    assert client.held
    client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 5}))
    arrived = len(client.arrived)
    rig.advance(answer.throttle_time_ms)
    assert len(client.arrived) == arrived + 1
    rig.advance(11_000)
    assert fetch(client, 5).responses[0].partitions[0].records, "what was not given was not charged"


def test_a_consumer_reads_at_its_rate(rig: Rig) -> None:
    filled(rig, 60)
    rig.grant(ANYBODY, consumer_byte_rate=2_000)
    client, offset, got_bytes, begun_ns = rig.connect(), 0, 0, rig.driver.now_ns
    one_bytes = len(batch([b"x" * 1_000]))
    while offset < 60:
        answer = fetch(client, offset, max_bytes=3_000)
        for topic in answer.responses:
            records = topic.partitions[0].records
            got_bytes += len(records)
            offset += len(records) // one_bytes
        rig.driver.advance(max(answer.throttle_time_ms, 1))
    seconds = (rig.driver.now_ns - begun_ns) / 1e9
    assert got_bytes / (seconds + 10) <= 2_000 * 1.05, "with what the first ten seconds grant at once"


def test_a_fetch_session_is_not_begun_by_an_answer_without_partitions(rig: Rig) -> None:
    filled(rig)
    rig.grant(ANYBODY, consumer_byte_rate=100)
    client = rig.connect()
    rig.driver.broker.quotas.rate(("consumer_byte_rate", ("ANONYMOUS", None))).record(2_000, 0)
    answer = fetch(client, session_epoch=0)
    assert answer.throttle_time_ms > 0
    assert (answer.session_id, answer.responses) == (0, [])
    assert len(rig.driver.broker.fetch_sessions) == 0


def test_a_fetch_session_goes_on_after_an_answer_without_partitions() -> None:
    rig = Rig()
    filled(rig)
    client = rig.connect()
    first = fetch(client, 0, session_epoch=0, max_bytes=3_000)
    assert first.session_id > 0
    rig.grant(ANYBODY, consumer_byte_rate=1_000)
    rig.driver.broker.quotas.rate(("consumer_byte_rate", ("ANONYMOUS", None))).record(20_000, 0)
    answer = fetch(client, 2, session_id=first.session_id, session_epoch=1)
    assert (answer.session_id, answer.responses, answer.error_code) == (first.session_id, [], 0)
    rig.advance(answer.throttle_time_ms + 11_000)
    fields = fetch_fields({}, session_id=first.session_id, session_epoch=2)
    last = client.ask(ApiKey.FETCH, 12, **fields)
    assert last.responses[0].partitions[0].records, "what it did not get is still news"


def test_a_fetch_that_waits_does_not_wait_for_more_than_it_could_get(rig: Rig) -> None:
    rig.grant(ANYBODY, consumer_byte_rate=300)
    reader = rig.connect()
    reader.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=60_000, min_bytes=1_000_000))
    assert not reader.arrived
    filled(rig, 3)
    assert len(reader.arrived) == 1


# --- request_percentage


class Clock:
    """Each look at it is so many nanoseconds after the one before."""

    def __init__(self, step_ns: int) -> None:
        self.step_ns = step_ns
        self.now_ns = 1

    def __call__(self) -> int:
        self.now_ns += self.step_ns
        return self.now_ns


def test_time_in_handlers_is_measured_by_the_hosts_clock(rig: Rig) -> None:
    rig.driver.broker.handler_clock = Clock(100_000_000)
    rig.grant({"client-id": "busy"}, request_percentage=1.5)
    client, other = rig.connect("busy"), rig.connect("other")
    waits = [client.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms]
    rig.advance(1)
    waits.append(client.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms)
    # 100 ms before the answer are 1 % of ten seconds; with 100 ms after it and the next 100 ms it
    # is 3 %, and double what is granted.
    assert waits[0] == 0
    assert waits[1] == 1_000, "one window at most, as in Kafka"
    assert client.held
    assert other.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms == 0


def test_without_a_clock_nothing_takes_any_time(rig: Rig) -> None:
    rig.grant(ANYBODY, request_percentage=0.000001)
    client = rig.connect()
    for _ in range(50):
        assert client.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms == 0


def test_a_fetch_over_the_time_granted_gets_nothing(rig: Rig) -> None:
    filled(rig)
    rig.driver.broker.handler_clock = Clock(500_000_000)
    rig.grant({"client-id": "busy"}, request_percentage=1)
    client = rig.connect("busy")
    answer = fetch(client)
    assert (answer.throttle_time_ms, answer.responses) == (1_000, [])


def test_a_fetch_in_error_is_charged_for_its_time(rig: Rig) -> None:
    rig.driver.broker.handler_clock = Clock(500_000_000)
    rig.grant({"client-id": "busy"}, request_percentage=1)
    answer = fetch(rig.connect("busy"), session_id=5, session_epoch=7)
    assert answer.error_code
    assert answer.throttle_time_ms == 1_000


def test_what_brokers_ask_each_other_is_charged_to_nobody(rig: Rig) -> None:
    rig.driver.broker.handler_clock = Clock(500_000_000)
    rig.grant(ANYBODY, request_percentage=0.1)
    client = rig.connect("broker-1")
    for _ in range(3):
        client.ask(ApiKey.WRITE_TXN_MARKERS, 1, markers=[])
        assert not client.held
    assert client.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms == 1_000
