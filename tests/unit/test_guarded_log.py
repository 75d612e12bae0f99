"""What a user's filters and handlers raise does not come out of a line that is logged, nor end a
client."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import pytest

from fairlead_kafka.base import guarded_log
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import FairleadError, NoBrokerReached, UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.broker.guard import Guard
from fairlead_kafka.client import Admin, Consumer, hosting
from fairlead_kafka.core.connections import Connections
from fairlead_kafka.core.network import Network
from fairlead_kafka.producer.transactions import Transactions
from fairlead_kafka.runtime import Completion, VirtualHost
from tests.support.broker_driver import Driver, batch, produce
from tests.support.producer_rig import Rig
from tests.support.virtual_hosting import Opening
from tests.support.waiting import PATIENCE_S

LOGGER = GuardedLogger("fairlead_kafka.of_this_test")


class Raising(logging.Handler):
    """Raises `error` at every line."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error, self.lines = error, 0

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += 1
        raise self.error


class Unspeakable(Exception):
    """Cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.fixture(autouse=True)
def first_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_log, "raised", 0)
    monkeypatch.setattr(guarded_log, "_raised", count(1))


@pytest.fixture
def raising() -> Iterator[Raising]:
    """A handler of all of the package's lines that raises."""
    root, handler = logging.getLogger("fairlead_kafka"), Raising(RuntimeError("the user's own"))
    before = root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)


def test_what_a_handler_raises_is_counted_and_told_once_in_one_line(
    raising: Raising, capsys: pytest.CaptureFixture[str]
) -> None:
    raising.error = ValueError("a\nlong " + "x" * 1_000)
    for _ in range(3):
        LOGGER.warning("a %s", "line")
    assert guarded_log.raised == raising.lines == 3
    (told,) = capsys.readouterr().err.splitlines()
    assert "'fairlead_kafka.of_this_test' raised ValueError: a long xxx" in told
    assert len(told) < guarded_log.SHOWN_MAX + 200


def test_nothing_is_told_if_the_application_wants_no_errors_of_its_log(
    raising: Raising, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    LOGGER.warning("a line")
    assert (guarded_log.raised, capsys.readouterr().err) == (1, "")


@pytest.mark.parametrize("error", [Unspeakable(), SystemExit(1)], ids=["no text", "the end"])
def test_no_error_comes_out_whatever_it_is(raising: Raising, error: BaseException) -> None:
    raising.error = error
    LOGGER.warning("a line")
    assert guarded_log.raised == 1


def test_ctrl_c_comes_out(raising: Raising) -> None:
    raising.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        LOGGER.warning("a line")


def test_a_line_that_is_taken_names_its_caller(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    LOGGER.info("%d lines", 2)
    LOGGER.log(logging.ERROR, "at a level")
    LOGGER.debug("none")
    assert [(record.getMessage(), record.funcName) for record in caplog.records] == [
        ("2 lines", "test_a_line_that_is_taken_names_its_caller"),
        ("at a level", "test_a_line_that_is_taken_names_its_caller"),
    ]
    assert guarded_log.raised == 0


def test_a_producer_delivers_though_the_handler_raises_at_every_line(raising: Raising) -> None:
    rig = Rig()
    rig.cluster.create("t", 1)
    producer = rig.producer()
    assert producer.send("t", b"a").result().offset == 0
    producer.close()
    assert raising.lines == guarded_log.raised > 2


def test_a_broker_goes_on_though_the_handler_raises_at_every_line(raising: Raising) -> None:
    """Also where a line is logged by what all of its clients share: the writer of the log."""
    driver = Driver({"log.message.timestamp.before.max.ms": 2**63 - 1})
    driver.controller.create_topic("events", partitions=1)
    client = driver.connect()
    assert produce(client, batch([b"first"])).base_offset == 0
    driver.disk.fail_appends = True
    assert produce(client, batch([b"a"])).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    driver.disk.fail_appends = False
    driver.advance(1000)
    assert produce(client, batch([b"b"])).base_offset == 1
    assert raising.lines == guarded_log.raised >= 2, "that the disk fails, and that it works again"
    guard = Guard("broker 0")
    guard.call(Blamed(), planted)
    assert guard.errors == 1


class Blamed:
    """An owner that is blamed."""

    def failed(self, error: Exception) -> None:
        """Nothing to do."""


# Handlers that wait


class Waiting(logging.Handler):
    """Calls `wait` at every line, and keeps what that raises."""

    def __init__(self, wait: Callable[[], object]) -> None:
        super().__init__()
        self.wait = wait
        self.refused: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.wait()
        except UsageError as error:
            self.refused.append(error)
            raise


def test_a_handler_that_waits_for_the_client_on_the_clients_thread_is_refused() -> None:
    """It would wait for itself."""
    made: Completion[Admin] = Completion()  # the first line may be logged before we have the client
    handler = Waiting(lambda: made.result(PATIENCE_S).list_topics(timeout_s=30))
    network = logging.getLogger("fairlead_kafka.network")
    network.addHandler(handler)
    try:
        with Admin({"bootstrap.servers": "localhost:1"}) as admin:
            made.set_result(admin)
            with pytest.raises(NoBrokerReached):
                admin.connect(timeout_s=0.5)
    finally:
        network.removeHandler(handler)
    assert [str(error) for error in handler.refused][:1] == [hosting.INSIDE]


# The way down, when closing raises


def planted(*_arguments: object) -> None:
    raise ZeroDivisionError("a defect in closing")


@pytest.fixture
def opener(caplog: pytest.LogCaptureFixture) -> Opening:
    caplog.set_level(logging.CRITICAL + 1, logger="fairlead_kafka")
    return Opening(VirtualHost(raise_errors=False))


def test_a_consumer_whose_parts_cannot_be_closed_tells_who_waits(
    opener: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = Consumer({"bootstrap.servers": "nowhere:9092", "group.id": "g"}, opener=opener)
    consumer.assign([("t", 0)])
    monkeypatch.setattr(Network, "advance", planted)
    monkeypatch.setattr(Network, "close", planted)
    with pytest.raises(ZeroDivisionError, match="a defect"):
        consumer.poll(30)
    consumer.close()


def test_an_admin_client_whose_parts_cannot_be_closed_tells_who_waits(
    opener: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = Admin({"bootstrap.servers": "nowhere:9092"}, opener=opener)
    monkeypatch.setattr(Network, "advance", planted)
    monkeypatch.setattr(Network, "close", planted)
    with pytest.raises(ZeroDivisionError, match="a defect"):
        admin.list_topics(timeout_s=30)
    admin.close()


def test_connections_that_cannot_be_closed_keep_no_question_waiting(
    opener: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    Admin({"bootstrap.servers": "nowhere:9092"}, opener=opener)
    network, told = opener.machine.network, []
    network.await_connection(NS_PER_S, lambda _nothing, error: told.append(error))
    monkeypatch.setattr(Connections, "end_all", planted)
    with pytest.raises(ZeroDivisionError):
        network.close()
    assert [type(error) for error in told] == [UsageError]


@pytest.mark.parametrize("broken", ["network", "transactions"])
def test_a_producer_whose_parts_cannot_be_closed_fails_what_is_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    caplog.set_level(logging.CRITICAL + 1, logger="fairlead_kafka")
    rig = Rig(raise_errors=False)
    rig.cluster.create("t", 1)
    producer = rig.producer()
    owner, name = (Network, "close") if broken == "network" else (Transactions, "close")
    monkeypatch.setattr(owner, name, planted)
    monkeypatch.setattr(Network, "advance", planted)
    ack = producer.send("t", b"a")
    with pytest.raises(FairleadError, match="the producer has ended"):
        ack.result(timeout_s=30)
    with suppress(FairleadError, ZeroDivisionError):
        producer.close()
