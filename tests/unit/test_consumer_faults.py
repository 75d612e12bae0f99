"""Leaders that move, connections that break, brokers that refuse, versions old and new."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, TimedOut, UnsupportedVersion
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.wire import ApiKey
from tests.support.client_rig import Rig

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def rig() -> Rig:
    made = Rig(nodes=2)
    made.cluster.topic("t", 2)
    for number in range(2):
        made.cluster.write("t", number, [b"%d" % n for n in range(10)])
    return made


def open_consumer(rig: Rig, *partitions: TopicPartition, **configs: Any) -> Consumer:
    made = rig.consumer(**{"auto_offset_reset": "earliest", **configs})
    made.assign(partitions)
    return made


def offsets(reader: Consumer, timeout_s: float = 2.0) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    while records := reader.poll(timeout_s):
        seen += [(record.partition, record.offset) for record in records]
    return sorted(seen)


@pytest.mark.parametrize("hinted", [False, True])
def test_reading_goes_on_at_the_new_leader(rig: Rig, hinted: bool) -> None:
    rig.cluster.tag_leaders = hinted
    with open_consumer(rig, T0) as reader:
        assert offsets(reader) == [(0, n) for n in range(10)]
        rig.cluster.move("t", 0, leader=2)
        rig.cluster.write("t", 0, [b"new"])
        assert offsets(reader) == [(0, 10)]
        fetches = [node_id for node_id, request in rig.cluster.requests if request.api_key == ApiKey.FETCH]
        assert fetches[-1] == 2


@pytest.mark.parametrize("hinted", [False, True])
def test_a_new_leader_that_an_answer_names_is_asked_without_a_pause(rig: Rig, hinted: bool) -> None:
    rig.cluster.tag_leaders = hinted
    with open_consumer(rig, T0, T1) as reader:
        assert len(offsets(reader)) == 20
        rig.cluster.move("t", 0, leader=2)
        rig.cluster.write("t", 0, [b"new"])
        begun_ns = rig.host.now_ns()
        assert [(record.partition, record.offset) for record in reader.poll(5)] == [(0, 10)]
        assert ((rig.host.now_ns() - begun_ns) / 1e6 < 50) == hinted


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    ],
)
@pytest.mark.parametrize("api_key", [ApiKey.FETCH, ApiKey.LIST_OFFSETS])
def test_errors_that_pass_are_waited_out_with_growing_pauses(rig: Rig, code: int, api_key: ApiKey) -> None:
    rig.cluster.errors[api_key, T0] += [code] * 4
    begun_ns = rig.host.now_ns()
    with open_consumer(rig, T0) as reader:
        assert len(reader.poll(10)) == 10
        # 100, 200, 400, 800 ms, each give or take a fifth; some wait for metadata besides.
        assert 1_200 <= (rig.host.now_ns() - begun_ns) / 1e6 <= 2_500


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE, 999])
def test_errors_that_do_not_pass_are_told_at_every_poll_and_end_with_a_seek(rig: Rig, code: int) -> None:
    rig.cluster.errors[ApiKey.FETCH, T0] += [code]
    with open_consumer(rig, T0) as reader:
        for _ in range(2):
            with pytest.raises(BrokerError, match="fetching t-0 at offset 0") as caught:
                reader.poll(1)
            assert caught.value.code == code
        reader.seek(T0, 0)
        assert len(reader.poll(1)) == 10


def test_an_error_that_was_told_lets_other_partitions_go_on_and_is_told_again_when_nothing_comes(
    rig: Rig,
) -> None:
    rig.cluster.errors[ApiKey.FETCH, T0] += [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    read: list[int] = []
    errors = 0
    with open_consumer(rig, T0, T1) as reader:
        for _ in range(4):
            try:
                read += [record.partition for record in reader.poll(1)]
            except BrokerError:
                errors += 1
    assert read == [1] * 10
    assert errors == 3, "told when found, and by the two polls after the other partition's records"


def test_a_failed_partition_that_is_paused_lets_the_others_be_read(rig: Rig) -> None:
    rig.cluster.errors[ApiKey.FETCH, T0] += [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with open_consumer(rig, T0, T1) as reader:
        with pytest.raises(BrokerError):
            offsets(reader)
        reader.pause([T0])
        assert {partition for partition, _ in offsets(reader)} <= {1}


def test_a_connection_that_breaks_is_made_again_and_nothing_is_read_twice(rig: Rig) -> None:
    with open_consumer(rig, T0, T1) as reader:
        assert len(offsets(reader)) == 20
        for node in rig.cluster.nodes:
            node.hang_up()
        rig.cluster.write("t", 0, [b"new"])
        assert offsets(reader) == [(0, 10)]


def test_leaders_that_are_elected_late_are_waited_for(rig: Rig) -> None:
    rig.cluster.no_leader_answers = 3
    with open_consumer(rig, T0) as reader:
        assert len(reader.poll(10)) == 10


@pytest.mark.parametrize("version", [4, 7, 11, 12, 13, 16])
def test_every_version_of_fetch_gives_the_same(rig: Rig, version: int) -> None:
    rig.cluster.versions[ApiKey.FETCH] = (version, version)
    with open_consumer(rig, T0, T1) as reader:
        assert len(offsets(reader)) == 20


def test_a_broker_without_a_common_version_of_fetch_is_told(rig: Rig) -> None:
    rig.cluster.versions[ApiKey.FETCH] = (0, 3)
    with open_consumer(rig, T0) as reader, pytest.raises(UnsupportedVersion, match="FETCH"):
        reader.poll(5)


def test_a_broker_that_cannot_be_reached_is_named_after_the_time_out(rig: Rig) -> None:
    with rig.consumer(bootstrap_servers="nobody:1") as reader:
        with pytest.raises(TimedOut, match="nobody:1"):
            reader.end_offsets([T0], timeout_s=2)
        reader.assign([T0])
        assert reader.poll(1) == []
        with pytest.raises(TimedOut, match=r"position of t-0.*nobody:1"):
            reader.position(T0, timeout_s=1)


def test_a_partition_that_is_not_there_does_not_hold_up_the_others(rig: Rig) -> None:
    with open_consumer(rig, TopicPartition("nowhere", 0), TopicPartition("t", 9), T0) as reader:
        assert len(reader.poll(5)) == 10
