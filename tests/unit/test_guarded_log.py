"""What a user's filters and handlers raise does not come out of a line that is logged, nor end a client."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import pytest

from fairlead_kafka.base import guarded_log
from fairlead_kafka.base.errors import FairleadError, UsageError
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.client import Admin, Consumer
from fairlead_kafka.core.connections import Connections
from fairlead_kafka.core.network import Network
from fairlead_kafka.producer.transactions import Transactions
from fairlead_kafka.runtime import VirtualHost
from tests.support.producer_rig import Rig
from tests.support.virtual_hosting import Opening

LOGGER = logging.getLogger("fairlead_kafka.of_this_test")


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
        guarded_log.log(LOGGER, logging.WARNING, "a %s", "line")
    assert guarded_log.raised == raising.lines == 3
    (told,) = capsys.readouterr().err.splitlines()
    assert "'fairlead_kafka.of_this_test' raised ValueError: a long xxx" in told
    assert len(told) < guarded_log.SHOWN_MAX + 200


def test_nothing_is_told_if_the_application_wants_no_errors_of_its_log(
    raising: Raising, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    guarded_log.log(LOGGER, logging.WARNING, "a line")
    assert (guarded_log.raised, capsys.readouterr().err) == (1, "")


@pytest.mark.parametrize("error", [Unspeakable(), SystemExit(1)], ids=["no text", "the end"])
def test_no_error_comes_out_whatever_it_is(raising: Raising, error: BaseException) -> None:
    raising.error = error
    guarded_log.log(LOGGER, logging.WARNING, "a line")
    assert guarded_log.raised == 1


def test_ctrl_c_comes_out(raising: Raising) -> None:
    raising.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        guarded_log.log(LOGGER, logging.WARNING, "a line")


def test_a_line_that_is_taken_names_its_caller(caplog: pytest.LogCaptureFixture) -> None:
    guarded_log.log(LOGGER, logging.WARNING, "%d lines", 2)
    assert [(record.getMessage(), record.filename) for record in caplog.records] == [
        ("2 lines", "test_guarded_log.py")
    ]
    assert guarded_log.raised == 0


def test_a_producer_delivers_though_the_handler_raises_at_every_line(raising: Raising) -> None:
    rig = Rig()
    rig.cluster.create("t", 1)
    producer = rig.producer()
    assert producer.send("t", b"a").result().offset == 0
    producer.close()
    assert raising.lines == guarded_log.raised > 2


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
    network, told = opener.machine._network, []
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
