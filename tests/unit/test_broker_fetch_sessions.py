"""Fetch sessions (KIP-227): named once, answered by changes, fenced by epochs, bounded in
number."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.outstanding import Outstanding
from fairlead_kafka.core.events import Disconnected
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Client, Driver, batch, fetch_fields, produce

ALL = {("events", number): 0 for number in range(3)}


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.controller.create_topic("events", 3)
    return driver


@pytest.fixture
def client(driver: Driver) -> Client:
    return driver.connect()


def ask(
    client: Client,
    offsets: dict[tuple[str, int], int],
    session_id: int = 0,
    epoch: int = 0,
    version: int = 12,
    **more: Any,
) -> Message:
    fields = fetch_fields(offsets, session_id=session_id, session_epoch=epoch, **more.pop("limits", {}))
    return client.ask(ApiKey.FETCH, version, **{**fields, **more})


def told(answer: Message) -> list[int]:
    """The partitions in an answer."""
    return sorted(row.partition_index for topic in answer.responses for row in topic.partitions)


def begun(client: Client) -> int:
    """A session over all three partitions; its id."""
    answer = ask(client, ALL)
    assert told(answer) == [0, 1, 2]
    return int(answer.session_id)


def test_a_session_keeps_nothing_of_what_it_was_answered(driver: Driver, client: Client) -> None:
    session_id = begun(client)
    fields = fetch_fields({}, session_id=session_id, session_epoch=1, max_wait_ms=500)
    client.send(ApiKey.FETCH, 12, **fields)  # waits, and so watches the partitions
    produce(driver.connect(), batch([b"x" * 100_000]), partition=1)
    assert told(client.arrived[-1]) == [1]
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, Outstanding) and each.buffers]


def test_a_session_is_answered_only_with_what_changed(client: Client) -> None:
    session_id = begun(client)
    assert session_id > 0
    assert told(ask(client, {}, session_id, 1)) == []
    produce(client, batch([b"a"]), partition=1)
    answer = ask(client, {}, session_id, 2)
    assert told(answer) == [1]
    assert len(answer.responses[0].partitions[0].records) > 0
    assert told(ask(client, {("events", 1): 1}, session_id, 3)) == []


def test_records_come_again_until_the_offset_is_moved(client: Client) -> None:
    session_id = begun(client)
    produce(client, batch([b"a"]), partition=1)
    for epoch in (1, 2):
        answer = ask(client, {}, session_id, epoch)
        assert told(answer) == [1]
        assert len(answer.responses[0].partitions[0].records) > 0


def test_a_change_of_the_log_start_is_told_without_records(client: Client) -> None:
    produce(client, batch([b"a", b"b"]), partition=0)
    session_id = int(ask(client, {("events", 0): 2}).session_id)
    assert told(ask(client, {}, session_id, 1)) == []
    rows = [Message(name="events", partitions=[Message(partition_index=0, offset=1)])]
    client.ask(ApiKey.DELETE_RECORDS, 2, topics=rows, timeout_ms=1000)
    (topic,) = ask(client, {}, session_id, 2).responses
    assert topic.partitions[0].log_start_offset == 1
    assert told(ask(client, {}, session_id, 3)) == []


def test_partitions_join_and_leave_a_session(client: Client) -> None:
    session_id = int(ask(client, {("events", 0): 0}).session_id)
    assert told(ask(client, {("events", 2): 0}, session_id, 1)) == [2]
    forgotten = [Message(topic="events", partitions=[2])]
    assert told(ask(client, {}, session_id, 2, forgotten_topics_data=forgotten)) == []
    produce(client, batch([b"a"]), partition=2)
    produce(client, batch([b"a"]), partition=0)
    assert told(ask(client, {}, session_id, 3)) == [0]


def test_a_waiting_fetch_is_woken_by_a_partition_it_did_not_name(driver: Driver, client: Client) -> None:
    session_id = begun(client)
    fields = fetch_fields({}, session_id=session_id, session_epoch=1, max_wait_ms=500)
    client.send(ApiKey.FETCH, 12, **fields)
    before = len(client.arrived)
    produce(driver.connect(), batch([b"a"]), partition=2)
    assert len(client.arrived) == before + 1
    assert told(client.arrived[-1]) == [2]


def test_a_waiting_fetch_without_news_is_answered_with_nothing(driver: Driver, client: Client) -> None:
    session_id = begun(client)
    client.send(ApiKey.FETCH, 12, **fetch_fields({}, session_id=session_id, session_epoch=1, max_wait_ms=500))
    driver.advance(500)
    assert (client.arrived[-1].session_id, client.arrived[-1].responses) == (session_id, [])


def test_the_deletion_of_a_topic_ends_the_wait_and_is_told_until_it_is_forgotten(
    driver: Driver, client: Client
) -> None:
    session_id = begun(client)
    client.send(ApiKey.FETCH, 12, **fetch_fields({}, session_id=session_id, session_epoch=1, max_wait_ms=500))
    driver.connect().ask(ApiKey.DELETE_TOPICS, 5, topic_names=["events"], timeout_ms=1000)
    errors = {row.error_code for row in client.arrived[-1].responses[0].partitions}
    assert errors == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    epoch = 2
    while told(ask(client, {}, session_id, epoch)) != [0, 1, 2]:
        epoch += 1
        assert epoch < 5


def test_a_session_is_fenced_by_its_epoch(client: Client) -> None:
    session_id = begun(client)
    assert ask(client, {}, session_id, 2).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert ask(client, {}, session_id, 1).error_code == 0
    again = ask(client, {}, session_id, 1)
    assert (again.error_code, again.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)


def test_a_session_that_is_not_there_is_said_to_be(client: Client) -> None:
    assert ask(client, ALL, 77, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert ask(client, ALL, 0, 5).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_fetch_ends_the_session_it_names(client: Client, epoch: int) -> None:
    session_id = begun(client)
    assert ask(client, ALL, session_id, epoch).session_id != session_id
    assert ask(client, {}, session_id, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_begun_by_names_does_not_go_on_by_ids(driver: Driver, client: Client) -> None:
    session_id = begun(client)
    answer = ask(client, {}, session_id, 1, version=13)
    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_outlives_its_connection(driver: Driver, client: Client) -> None:
    session_id = begun(client)
    assert ask(driver.connect(), {}, session_id, 1).error_code == 0


def test_without_a_free_slot_there_is_no_session_until_one_was_not_used_for_long() -> None:
    driver = Driver({"max.incremental.fetch.session.cache.slots": 2})
    driver.controller.create_topic("events", 3)
    client = driver.connect()
    first, second = begun(client), begun(client)
    declined = ask(client, ALL)
    assert (declined.error_code, declined.session_id, told(declined)) == (0, 0, [0, 1, 2])
    driver.advance(60_000)
    assert ask(client, {}, first, 1).error_code == 0
    driver.advance(60_000)
    assert ask(client, ALL).session_id > 0
    assert ask(client, {}, first, 2).error_code == 0
    assert ask(client, {}, second, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(driver.broker.fetch_sessions) == 2


def test_what_found_no_room_in_an_answer_comes_with_the_next(client: Client) -> None:
    session_id = begun(client)
    data = batch([b"x" * 100])
    for partition in range(3):
        produce(client, data, partition=partition)
    seen: dict[int, int] = {}
    offsets: dict[tuple[str, int], int] = {}
    for epoch in range(1, 4):
        answer = ask(client, offsets, session_id, epoch, limits={"max_bytes": 1})
        filled = [row for topic in answer.responses for row in topic.partitions if row.records]
        seen.update({row.partition_index: len(row.records) for row in filled})
        offsets = {("events", row.partition_index): 1 for row in filled}
    assert seen == dict.fromkeys(range(3), len(data))


def test_a_session_whose_client_is_gone_keeps_neither_its_connection_nor_deleted_partitions(
    driver: Driver,
) -> None:
    gone = driver.connect()
    begun(gone)
    connection = weakref.ref(driver.broker.clients.sessions[gone.connection])
    driver.broker.receive(Disconnected(gone.connection, "its process was killed"))
    driver.run()
    gc.collect()
    assert connection() is None
    produce(driver.connect(), batch([b"a"]), partition=1)
    watched = sorted(one.partition for one in driver.broker.purgatory.waiters())
    assert watched == [0, 2], "it was called once, and is not any more"
    driver.controller.delete_topic("events")
    driver.advance(60_000)
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, Partition)]
    assert len(driver.broker.purgatory) == 0
    assert len(driver.broker.fetch_sessions) == 1


def test_a_session_that_ends_while_a_fetch_of_it_waits_waits_for_nothing(
    driver: Driver, client: Client
) -> None:
    session_id = begun(client)
    asked = fetch_fields(ALL, session_id=session_id, session_epoch=1, max_wait_ms=60_000)
    client.send(ApiKey.FETCH, 12, **asked)
    assert ask(driver.connect(), ALL, session_id, 0).session_id != session_id
    assert len(client.arrived) == 2, "the fetch that waited is answered"
    driver.broker.check()
    assert all(len(waiters) == 1 for waiters in driver.broker.purgatory.waiters().values())
