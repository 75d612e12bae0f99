"""Consumers' metrics: Kafka's names, and numbers that agree with what was read and polled."""

from __future__ import annotations

import math

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import fairlead_kafka
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.consumer.metric_names import GROUPS
from fairlead_kafka.consumer.metrics import PollRecorder, Recorder, read
from fairlead_kafka.core.meters import Sampling
from fairlead_kafka.core.metric_table import labelled, samples
from fairlead_kafka.wire import ApiKey
from tests.support.client_rig import Rig
from tests.support.metrics import lags

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SAMPLING = Sampling(30 * NS_PER_S, 2)


@pytest.fixture
def rig() -> Rig:
    made = Rig()
    made.cluster.topic("t", 2)
    made.cluster.write("t", 0, [b"x" * 100] * 10)
    return made


def reader(rig: Rig, **config: object) -> Consumer:
    made = Consumer(rig.config(auto_offset_reset="earliest", client_id="me", **config), opener=rig.opener)
    made.assign([T0, T1])
    return made


def test_every_name_of_the_table_is_there_and_is_a_number(rig: Rig) -> None:
    with reader(rig) as consumer:
        consumer.poll(1)
        found = consumer.metrics()
    assert list(found) == [group.name for group in GROUPS]
    for group in GROUPS:
        names = [row.name for row in group.rows]
        assert len(names) == len(set(names))
        dictionaries = list(labelled(group, found))
        assert dictionaries
        for labels, values in dictionaries:
            assert len(labels) == len(group.labels)
            assert list(values) == names
            assert all(isinstance(value, int | float) for value in values.values())
    assert len(list(samples(found))) > 100


def test_records_and_lag_are_those_of_what_polls_returned(rig: Rig) -> None:
    with reader(rig) as consumer:
        consumer.poll(1, max_records=4)
        found = consumer.metrics()
        assert found["consumer-fetch-manager-metrics"]["records-consumed-total"] == 4
        assert found["consumer-fetch-manager-topic-metrics"]["t"]["records-consumed-total"] == 4
        assert lags(consumer)[T0] == 6
        assert found["consumer-fetch-manager-partition-metrics"][T0]["records-lead"] == 4
        assert found["consumer-fetch-manager-metrics"]["records-lag-max"] == 6
        assert len(consumer.poll_table(1)) == 6
        found = consumer.metrics()
        assert found["consumer-fetch-manager-metrics"]["records-consumed-total"] == 10
        assert found["consumer-fetch-manager-metrics"]["records-lag-max"] == 6, "the largest of the window"
        assert found["consumer-fetch-manager-metrics"]["records-lead-min"] == 4
        assert found["consumer-fetch-manager-partition-metrics"][T0]["records-lag-avg"] == 3
        assert lags(consumer)[T0] == 0
        assert math.isnan(found["consumer-fetch-manager-partition-metrics"][T1]["records-lag-avg"])
        rig.cluster.write("t", 0, [b"y"])
        rig.host.advance(1_000)
        assert lags(consumer)[T0] == 1, "what was fetched and waits for a poll is behind"


def test_requests_and_bytes_are_those_the_broker_saw(rig: Rig) -> None:
    with reader(rig) as consumer:
        while consumer.poll(0.6):
            pass
        found = consumer.metrics()
        fetches, whole = found["consumer-fetch-manager-metrics"], found["consumer-metrics"]
        assert 0 <= len(rig.cluster.asked(ApiKey.FETCH)) - fetches["fetch-total"] <= 1
        assert 0 < fetches["bytes-consumed-total"] < whole["incoming-byte-total"]
        assert fetches["fetch-size-max"] == fetches["bytes-consumed-total"], "all came in one answer"
        assert whole["connection-creation-total"] == whole["connection-count"] == 1
        assert (
            sum(node["request-total"] for node in found["consumer-node-metrics"].values())
            == (whole["request-total"])
        )
        assert fetches["fetch-latency-max"] >= 400, "a broker with nothing to say holds a fetch back"


def test_time_in_polls_and_between_them(rig: Rig) -> None:
    with reader(rig) as consumer:
        assert consumer.metrics()["consumer-metrics"]["last-poll-seconds-ago"] == -1
        consumer.poll(1)
        rig.host.advance(3_000)
        assert consumer.metrics()["consumer-metrics"]["last-poll-seconds-ago"] == pytest.approx(3, abs=0.1)
        consumer.poll(1)  # nothing comes: a second in the poll
        rig.host.advance(1_000)
        consumer.poll(0)
        found = consumer.metrics()["consumer-metrics"]
        assert found["time-between-poll-max"] == pytest.approx(3_000, abs=100)
        assert found["time-between-poll-avg"] == pytest.approx(2_500, abs=100)
        assert found["poll-idle-ratio-avg"] == pytest.approx(1 / 5, abs=0.05)


def idle(polls: PollRecorder, now_ns: int) -> float:
    metrics = read(Recorder(SAMPLING), polls, now_ns, {}, lambda _: 0, {})
    return metrics["consumer-metrics"]["poll-idle-ratio-avg"]


def test_the_idle_ratio_is_no_number_without_polls_and_falls_while_there_are_none() -> None:
    now = [NS_PER_S]
    polls = PollRecorder(SAMPLING, lambda: now[0])
    assert math.isnan(idle(polls, now[0]))
    for _ in range(4):  # an application that only waits
        began_ns = polls.poll_began()
        now[0] += 2 * NS_PER_S
        polls.poll_ended(began_ns)
    assert idle(polls, now[0]) == 1.0
    assert idle(polls, now[0] + 8 * NS_PER_S) == pytest.approx(1 / 2)
    assert idle(polls, now[0] + 24 * NS_PER_S) == pytest.approx(1 / 4)
    assert idle(polls, now[0] + 59 * NS_PER_S) < 0.15
    assert math.isnan(idle(polls, now[0] + 61 * NS_PER_S)), "no poll in the window"
    polls.poll_began()
    assert idle(polls, now[0] + 600 * NS_PER_S) == 1.0, "it waits in a poll all the while"


def test_a_long_poll_and_the_time_after_it_count_together() -> None:
    now = [NS_PER_S]
    polls = PollRecorder(SAMPLING, lambda: now[0])
    began_ns = polls.poll_began()
    now[0] += 300 * NS_PER_S
    polls.poll_ended(began_ns)
    now[0] += 100 * NS_PER_S
    assert math.isnan(idle(polls, now[0]))
    polls.poll_began()
    assert idle(polls, now[0]) == pytest.approx(3 / 4)


def test_a_partition_that_is_given_up_is_not_told_of(rig: Rig) -> None:
    with reader(rig) as consumer:
        consumer.poll(1)
        consumer.assign([T1])
        found = consumer.metrics()
        assert list(found["consumer-fetch-manager-partition-metrics"]) == [T1]
        assert found["consumer-coordinator-metrics"]["assigned-partitions"] == 1
        assert found["consumer-fetch-manager-metrics"]["records-consumed-total"] == 10
        consumer.assign([])
        assert consumer.metrics()["consumer-fetch-manager-topic-metrics"] == {}


def test_a_rebalance_counts_when_it_ends_and_fails_when_the_membership_is_lost() -> None:
    recorder = Recorder(SAMPLING)
    recorder.tick(NS_PER_S)
    recorder.rebalance_began()
    recorder.tick(3 * NS_PER_S)
    recorder.rebalance_began()  # the same one
    recorder.rebalance_ended()
    recorder.rebalance_ended(failed=True)  # nothing is under way
    totals = recorder.whole.read(recorder.now_ns).totals
    assert [totals[name] for name in ("rebalances", "rebalance_ns", "rebalances_failed")] == (
        [1, 2 * NS_PER_S, 0]
    )
    recorder.rebalance_began()
    recorder.rebalance_ended(failed=True)
    totals = recorder.whole.read(recorder.now_ns).totals
    assert (totals["rebalances"], totals["rebalances_failed"]) == (1, 1)


def test_kinds_of_requests_are_counted_by_themselves() -> None:
    recorder = Recorder(SAMPLING)
    for key in (ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.JOIN_GROUP, ApiKey.METADATA):
        recorder.served(1, key, 7)
    whole = recorder.whole
    totals = whole.read(0).totals
    assert [totals[name] for name in ("heartbeats", "joins", "syncs", "answers")] == [2, 1, 0, 0]
    assert recorder.heartbeat_ns is not None
    recorder.served(1, ApiKey.FETCH, 5)
    assert (whole.answers, whole.latency_max_ns, recorder.nodes[1].answers) == (1, 5, 1)


def test_a_poll_recorder_forgets_what_is_not_assigned() -> None:
    polls = PollRecorder(SAMPLING, lambda: 0)
    polls.topics.of("t", 0)
    polls.keep([])
    assert (polls.topics, polls.partitions) == ({}, {})


def test_the_text_exposition_has_kafkas_names_and_labels(rig: Rig) -> None:
    with reader(rig) as consumer:
        consumer.poll(1)
        registry = CollectorRegistry()
        registry.register(fairlead_kafka.PrometheusCollector(consumer))
        lines = generate_latest(registry).decode().splitlines()
    assert 'kafka_consumer_fetch_manager_records_consumed_total{client_id="me"} 10.0' in lines
    assert (
        'kafka_consumer_fetch_manager_partition_records_lag{client_id="me",partition="0",topic="t"} 0.0'
        in lines
    )
    assert "# TYPE kafka_consumer_coordinator_rebalance_total counter" in lines
