"""An exception is the fault of whom something was done for: the request, the task, the partition;
and of nobody else."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.guard import SHARED, Guard, SharedDamage, Task, shared
from fairlead_kafka.broker.timers import Repeating, Timers
from fairlead_kafka.wire import ApiKey
from tests.support.broker_driver import Driver, batch, fetch, produce, produce_fields


class Blamed:
    """An owner that keeps what it is blamed for."""

    def __init__(self, *, raises: bool = False) -> None:
        self.errors: list[Exception] = []
        self._raises = raises

    def failed(self, error: Exception) -> None:
        self.errors.append(error)
        if self._raises:
            raise RuntimeError("it cannot even fail")


def fail(*_: Any) -> None:
    raise ZeroDivisionError


def test_what_is_left_to_be_called_is_called_in_the_name_of_whoever_left_it() -> None:
    guard, one, other = Guard("broker 0"), Blamed(), Blamed()
    left: list[Any] = []
    guard.call(one, lambda: left.append(guard.bind(lambda: left.append(guard.bind(fail)))))
    guard.call(other, left[0])  # which leaves something more, in the first one's name
    guard.call(other, left[1])
    assert [type(error) for error in one.errors] == [ZeroDivisionError]
    assert other.errors == []
    assert (guard.errors, guard.owner) == (1, None)


def test_an_owner_that_fails_at_failing_is_counted_too() -> None:
    guard = Guard("broker 0")
    guard.call(Blamed(raises=True), fail)
    assert guard.errors == 2


def test_damage_to_what_all_share_passes_through() -> None:
    @shared("the writer of the log")
    def write() -> None:
        fail()

    guard, blamed = Guard("broker 0"), Blamed()
    for depth in (write, lambda: guard.call(blamed, write)):
        with pytest.raises(SharedDamage, match="the writer of the log: ZeroDivisionError") as caught:
            guard.call(blamed, depth)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert (blamed.errors, guard.errors) == ([], 0)


def test_a_refusal_of_something_shared_is_no_damage() -> None:
    @shared("the controller's state")
    def refuse() -> None:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")

    guard, blamed = Guard("broker 0"), Blamed()
    guard.call(blamed, refuse)
    assert len(blamed.errors) == 1


def test_only_what_is_on_the_list_may_end_a_broker() -> None:
    assert len(SHARED) == len(set(SHARED))
    with pytest.raises(AssertionError, match="not in SHARED"):
        shared("something else")


def test_the_same_place_is_logged_once_a_minute_and_counted_always(caplog: pytest.LogCaptureFixture) -> None:
    guard, task = Guard("broker 7"), Task("retention")
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            guard.call(task, fail)
        assert len(caplog.records) == 1
        guard.now_ns = 61 * 10**9
        guard.call(task, fail)
    assert [record.getMessage() for record in caplog.records] == [
        "broker 7 failed in something done for retention: "
    ] * 2
    assert caplog.records[0].exc_info is not None
    assert guard.errors == 4


def test_a_task_comes_round_again_although_it_raised() -> None:
    class Host:
        def __init__(self) -> None:
            self.now_ns, self.timers, self.guard = 0, Timers(), Guard("broker 0")

        def call_at(self, deadline_ns: int, function: Any, owner: Any = None) -> Any:
            return self.timers.call_at(deadline_ns, self.guard.bind(function, owner))

    host, ran = Host(), []

    def work() -> None:
        ran.append(host.now_ns)
        raise ZeroDivisionError

    repeating = Repeating(host, "work", lambda: 10, work)
    for host.now_ns in range(0, 50_000_000, 1_000_000):
        host.timers.run_due(host.now_ns)
    assert [at_ns // 1_000_000 for at_ns in ran] == [10, 20, 30, 40]
    assert host.guard.errors == 4
    repeating.cancel()
    assert host.timers.deadline_ns() is None


def test_a_partition_that_raised_is_offline_and_its_neighbours_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver({"num.partitions": 2})
    driver.controller.create_topic("events", 2)
    client = driver.connect()
    assert produce(client, batch([b"a"])).error_code == 0
    sound = type(driver.broker.replication).written

    def written(replication: Any, partition: Any) -> None:
        if partition.partition == 0:
            raise ZeroDivisionError
        sound(replication, partition)

    monkeypatch.setattr(type(driver.broker.replication), "written", written)
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 0): batch([b"x"])}))
    monkeypatch.undo()
    assert fetch(driver.connect(), 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(driver.connect(), batch([b"b"])).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(driver.connect(), batch([b"c"]), partition=1).error_code == 0
    assert driver.broker.errors == 1
    driver.stop()
    driver.start()  # another life reads what is in the log
    assert produce(driver.connect(), batch([b"d"])).error_code == 0
