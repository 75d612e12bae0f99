"""A damaged batch in the middle of a log is the matter of its partition: for readers, for replicas,
and in what is logged."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.records import decode
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Client, Driver, batch, fetch_fields, produce, produce_fields
from tests.support.replica_rig import EVENTS, ReplicaRig

FIRST = "/data/log/000000000001.log"
OTHER = TopicPartition("other", 0)


def answered(
    client: Client, offsets: dict[tuple[str, int], int], **limits: Any
) -> dict[str, tuple[int, list[bytes | None]]]:
    """Topic → (error code, values) of a fetch of several partitions."""
    answer = client.ask(ApiKey.FETCH, 11, **fetch_fields(offsets, **limits))
    rows = {response.topic: response.partitions[0] for response in answer.responses}
    return {
        topic: (row.error_code, decode(bytes(row.records)).values.to_list() if row.records else [])
        for topic, row in rows.items()
    }


@pytest.mark.parametrize("place", ["payload", "base offset", "epoch"])
def test_a_fetch_gives_what_lies_before_a_damaged_batch_then_names_it_and_goes_on_with_others(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault 6 of issue 16: the whole read failed, for every partition of the request."""
    driver = Driver()
    for topic in ("bad", "good"):
        driver.controller.create_topic(topic, 1)
    client = driver.connect()
    for value in (b"first", b"second", b"third"):
        for topic in ("bad", "good"):
            assert produce(client, batch([value]), topic=topic).error_code == 0
    logs, partition = driver.broker.logs, driver.broker.log_of("bad", 0)
    logs.cache.rewind(0, 0)
    position = partition.index.location(1).position + {"payload": 66, "base offset": 7, "epoch": 15}[place]
    file = driver.disk.files[FIRST]
    file[position] ^= 1
    all_good = (0, [b"first", b"second", b"third"])
    assert answered(client, {("bad", 0): 0, ("good", 0): 0}) == {"bad": (0, [b"first"]), "good": all_good}
    for _ in range(3):
        assert answered(client, {("bad", 0): 1, ("good", 0): 0}) == {
            "bad": (ErrorCode.CORRUPT_MESSAGE, []),
            "good": all_good,
        }
    assert answered(client, {("bad", 0): 2}) == {"bad": (0, [b"third"])}
    assert caplog.text.count("is damaged") == 1
    file[position] ^= 1
    assert answered(client, {("bad", 0): 1}) == {"bad": (0, [b"second", b"third"])}
    file[position] ^= 1
    answered(client, {("bad", 0): 1})
    assert caplog.text.count("is damaged") == 2, "it was well again meanwhile"


@pytest.fixture
def rig() -> ReplicaRig:
    made = ReplicaRig(config={"replica.lag.time.max.ms": 500, "replica.fetch.backoff.ms": 100})
    made.controller.create_topic(OTHER.topic, assignments={0: [0, 1, 2]})
    made.host.advance(10)
    return made


def put_other(rig: ReplicaRig, value: bytes) -> None:
    answer = rig.ask(
        0, ApiKey.PRODUCE, 9, **(produce_fields({tuple(OTHER): batch([value])}, -1) | {"timeout_ms": 1000})
    )
    assert answer.responses[0].partition_responses[0].error_code == 0


def in_sync(rig: ReplicaRig, of: TopicPartition) -> set[int]:
    image = rig.controller.image.partition(*of)
    assert image is not None
    return set(image.isr)


def file_of(rig: ReplicaRig, node_id: int) -> bytearray:
    return rig.host.disk.files[f"/data/{node_id}/log/000000000001.log"]


def ends_at(rig: ReplicaRig, node_id: int, of: TopicPartition) -> int:
    broker = rig.brokers[node_id]
    return broker.logs.partition(broker.controller.image.topics[of.topic].topic_id, 0).log_end


def test_replication_goes_on_around_a_damaged_batch_and_past_it_once_it_is_restored(
    rig: ReplicaRig, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault 6 of issue 16: the stream began anew for ever, and no partition between the two brokers
    was replicated."""
    rig.kill(2)
    for number in range(4):
        rig.must_put(b"value %d" % number)
        put_other(rig, b"fine")
    rig.until(lambda: rig.sync() == {0, 1})
    leader = rig.brokers[0]
    leader.logs.cache.rewind(0, 0)
    content, position = file_of(rig, 0), rig.replica(0).index.location(2).position + 66
    content[position] ^= 1
    rig.start(2)
    rig.until(lambda: in_sync(rig, OTHER) == {0, 1, 2})
    put_other(rig, b"more")
    assert (ends_at(rig, 2, OTHER), ends_at(rig, 2, EVENTS)) == (5, 2)
    rig.must_put(b"value 4")
    reads: list[object] = []
    rig.host.disk.watch = lambda handle, effect: (
        reads.append(effect) if type(effect).__name__ == "FileRead" else None
    )
    rig.host.advance(2_000)
    assert len(reads) <= 2 * 2_000 / 100, "it is tried again at intervals, not all the time"
    assert (rig.sync(), in_sync(rig, OTHER)) == ({0, 1}, {0, 1, 2})
    assert caplog.text.count("is damaged") == 1
    content[position] ^= 1
    rig.until(rig.level)
    assert rig.batches(0) == rig.batches(2)
    rig.close()


def test_a_batch_that_is_damaged_on_its_way_is_asked_for_again_and_others_go_on(
    rig: ReplicaRig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    follower = rig.brokers[2].logs
    sound, refused = follower.append_replica, [3]

    def append(partition: Any, data: Any, header: Any, leader_epoch: int, wall_ms: int) -> None:
        if partition.topic == EVENTS.topic and refused[0]:
            refused[0] -= 1
            data = bytearray(data)
            data[header.position + 66] ^= 1
            data = memoryview(data)
        sound(partition, data, header, leader_epoch, wall_ms)

    monkeypatch.setattr(follower, "append_replica", append)
    asked = rig.sending(b"one", timeout_ms=5_000)
    rig.host.advance(50)
    for _ in range(3):
        put_other(rig, b"fine")
    assert asked.answer is None, "what the follower refused does not count as written there"
    assert ends_at(rig, 2, EVENTS) == 0
    assert rig.answered(asked).error_code == 0
    rig.until(rig.level)
    assert refused == [0]
    assert caplog.text.count("cannot follow events-0") == 1
    rig.close()


def test_a_topic_with_a_damaged_batch_says_so_to_a_search_by_time() -> None:
    driver = Driver()
    driver.controller.create_topic("events", 1)
    client = driver.connect()
    for stamp in (100, 200):
        assert produce(client, batch([b"x"], timestamps_ms=[stamp])).error_code == 0
    driver.broker.logs.cache.rewind(0, 0)
    driver.disk.files[FIRST][driver.broker.log_of("events", 0).index.location(1).position + 66] ^= 1
    found = []
    for timestamp in (50, 150):
        asked = [Message(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)]
        answer = client.ask(
            ApiKey.LIST_OFFSETS,
            7,
            replica_id=-1,
            isolation_level=0,
            topics=[Message(name="events", partitions=asked)],
        )
        found.append((answer.topics[0].partitions[0].error_code, answer.topics[0].partitions[0].offset))
    assert found == [(0, 0), (ErrorCode.CORRUPT_MESSAGE, -1)]
