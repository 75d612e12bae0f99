"""What a client says of brokers it cannot talk to: at once, again with back-off, when it is over;
in virtual time."""

from __future__ import annotations

import logging

import pytest

from fairlead_kafka.base.errors import NoBrokerReached, UsageError
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.core import Network
from fairlead_kafka.core.connection import Connection
from fairlead_kafka.core.network import REQUESTS_QUEUED_MAX
from fairlead_kafka.core.reachability import LOGGER, REPEAT_MAX_MS
from fairlead_kafka.wire import ApiKey
from tests.support.fake_broker import Client, FakeBroker, Scene, list_offsets_request

SECOND_MS = 1_000


@pytest.fixture(autouse=True)
def all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=LOGGER.name)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines since the last look."""
    lines = [
        f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == LOGGER.name
    ]
    caplog.clear()
    return lines


def ready_and_then_silent() -> tuple[FakeBroker, Scene]:
    """A client whose broker has answered, and will not any more."""
    broker = FakeBroker()
    scene = Scene(Client(), broker)
    scene.until_ready()
    broker.silent = True
    return broker, scene


def test_a_broker_that_refuses_is_told_of_at_once_and_then_less_and_less_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene(Client(bootstrap_servers="nowhere:9092"))
    scene.host.advance(100)
    assert said(caplog) == [
        "WARNING no connection to nowhere:9092 (connection refused); trying again: check bootstrap.servers"
    ]
    begun_ms, times = scene.now_ms(), []
    while scene.now_ms() < begun_ms + 300 * SECOND_MS:
        scene.host.advance(SECOND_MS)
        times += [scene.now_ms() - begun_ms] * len(said(caplog))
    gaps = [round((after - before) / SECOND_MS) for before, after in zip([0, *times], times, strict=False)]
    assert all(
        abs(gap - wanted) <= 2 for gap, wanted in zip(gaps, [2, 4, 8, 16, 32, 60, 60, 60], strict=False)
    ), gaps
    assert max(gaps) <= REPEAT_MAX_MS / 1000 + 2


def test_it_says_how_long_it_has_lasted_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    broker = FakeBroker()
    scene = Scene(Client(client_id="orders"), broker)
    link = scene.host.link(scene.handle, scene.brokers[0][1])
    link.cut()
    scene.host.advance(4 * SECOND_MS)
    first, again = said(caplog)
    end = "; trying again: check bootstrap.servers"
    assert first == f"WARNING orders: no connection to broker:9092 (no answer so far){end}"
    assert again == f"WARNING orders: no connection to broker:9092 for 3 s (no answer so far){end}"
    link.heal()
    scene.until_ready()
    (over,) = said(caplog)
    assert over.startswith("INFO orders: broker:9092 answers again, after ")


def test_what_accepts_and_does_not_answer_is_told_of_within_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = FakeBroker()
    broker.silent = True
    scene = Scene(Client(), broker)
    scene.host.advance(SECOND_MS)
    assert said(caplog) == [
        "WARNING no connection to broker:9092 (connected, but ApiVersions is not answered: is this a Kafka "
        "broker?); trying again: check bootstrap.servers"
    ]
    assert "ApiVersions is not answered" in scene.network.trouble()


def test_a_request_without_answer_is_told_of_after_five_seconds(caplog: pytest.LogCaptureFixture) -> None:
    _, scene = ready_and_then_silent()
    scene.send(1)
    scene.host.advance(4 * SECOND_MS)
    assert said(caplog) == []
    scene.host.advance(2 * SECOND_MS)
    assert said(caplog) == ["WARNING no answer from broker 0 at broker:9092 (LIST_OFFSETS is not answered)"]
    assert scene.network.trouble() == "broker 0 at broker:9092 is silent (LIST_OFFSETS is not answered)"


def test_a_request_that_the_broker_may_hold_is_given_that_time(caplog: pytest.LogCaptureFixture) -> None:
    _, scene = ready_and_then_silent()
    scene.send(1, timeout_ms=90 * SECOND_MS)  # request.timeout.ms is 30 s
    scene.host.advance(64 * SECOND_MS)
    assert said(caplog) == []
    scene.host.advance(2 * SECOND_MS)
    assert len(said(caplog)) == 1


def test_a_connection_that_was_lost_is_no_warning_until_the_next_attempt_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = FakeBroker()
    scene = Scene(Client(), broker)
    scene.until_ready()
    scene.host.submit(scene.brokers[0][1], broker.hang_up())
    scene.host.run_until(lambda: scene.network.blocked(0))
    assert said(caplog) == [
        'INFO connection_lost client_id=- node=0 address=broker:9092 error="closed by the peer"'
    ]
    scene.host.run_until(lambda: scene.network.ready(0))
    assert said(caplog) == []
    assert scene.network.trouble() == "all brokers that were asked have answered"


def test_brokers_are_named_by_what_is_wrong_with_them() -> None:
    broker = FakeBroker("good", 9092)
    scene = Scene(Client(bootstrap_servers="bad:1,worse:2,good:9092"), broker)
    link = scene.host.link(scene.handle, scene.brokers[0][1])
    link.cut()
    scene.host.advance(3 * SECOND_MS)
    trouble = scene.network.trouble()
    assert trouble.startswith("could not reach any of ")
    assert "good:9092 (no answer so far)" in trouble
    assert (
        "bad:1, worse:2 (connection refused)" in trouble or "worse:2, bad:1 (connection refused)" in trouble
    )


def test_who_waits_for_a_first_connection_is_told_of_it() -> None:
    for first in (False, True):
        scene = Scene(Client(first), FakeBroker())
        told: list[Exception | None] = []
        deadline_ns = scene.host.now_ns() + 5 * NS_PER_S
        scene.do(
            lambda network, told=told, at_ns=deadline_ns: network.await_connection(
                at_ns, lambda _, error: told.append(error)
            )
        )
        scene.host.run_until(lambda told=told: told)
        assert told == [None]
        scene.do(lambda network, told=told: network.await_connection(0, lambda _, error: told.append(error)))
        scene.host.run_until(lambda told=told: len(told) == 2)
        assert told == [None, None]


def test_who_waits_in_vain_is_told_why_at_the_deadline() -> None:
    scene = Scene(Client(bootstrap_servers="nowhere:9092"))
    told: list[Exception | None] = []
    deadline_ns = scene.host.now_ns() + 2 * NS_PER_S
    scene.do(lambda network: network.await_connection(deadline_ns, lambda _, error: told.append(error)))
    scene.host.run_until(lambda: told)
    assert scene.host.now_ns() == deadline_ns
    assert isinstance(told[0], NoBrokerReached)
    assert str(told[0]) == (
        "could not reach any of nowhere:9092 (connection refused); check bootstrap.servers, and that a "
        "broker runs there"
    )


def test_who_waits_is_told_what_is_late_also_if_that_and_the_deadline_are_seen_at_once() -> None:
    broker = FakeBroker()
    broker.silent = True
    scene = Scene(Client(), broker)
    scene.host.advance(700)
    told: list[Exception | None] = []
    now_ns = scene.host.now_ns()
    scene.network.await_connection(now_ns + NS_PER_S // 5, lambda _, error: told.append(error))
    scene.network.advance(now_ns + NS_PER_S, 0)  # the process was held up for so long
    assert "connected, but ApiVersions is not answered: is this a Kafka broker?" in str(told[0])


def test_who_waits_at_a_close_is_told_too() -> None:
    scene = Scene(Client(bootstrap_servers="nowhere:9092"))
    told: list[Exception | None] = []
    scene.do(lambda network: network.await_connection(2**62, lambda _, error: told.append(error)))
    scene.do(lambda network: network.close())
    scene.host.run_until(lambda: told)
    assert isinstance(told[0], UsageError)


def test_a_broker_that_answers_slowly_is_not_called_silent(caplog: pytest.LogCaptureFixture) -> None:
    _, scene = ready_and_then_silent()
    scene.send(4)
    for _ in range(9):  # answers come, each long after its request
        scene.host.advance(3 * SECOND_MS)
        peer = scene.network.peers.by_id[0]
        assert peer.connection is not None
        peer.connection.heard_ns = scene.host.now_ns()
    assert said(caplog) == []


def test_what_comes_back_soon_goes_on_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    broker = FakeBroker()
    scene = Scene(Client(), broker)
    scene.until_ready()
    reachability, peer = scene.network.reachability, scene.network.peers.by_id[0]
    now_ns, lines = scene.host.now_ns(), list[str]()
    for _ in range(60):  # a minute of failing and answering by turns
        now_ns += NS_PER_S
        reachability.failed(peer, "connection refused", now_ns, worked=False)
        reachability.usable(peer, now_ns + NS_PER_S // 2)
        lines += said(caplog)
    assert 8 <= len(lines) <= 14
    assert sum(line.startswith("WARNING") for line in lines) == len(lines) // 2
    now_ns += 70 * NS_PER_S
    reachability.failed(peer, "connection refused", now_ns, worked=False)
    assert len(said(caplog)) == 1


def test_another_connection_to_the_same_address_does_not_end_a_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, scene = ready_and_then_silent()
    scene.send(1)
    scene.host.advance(6 * SECOND_MS)
    assert len(said(caplog)) == 1
    peer = scene.network.peers.by_id[0]
    assert peer.connection is not None
    other = Connection(peer.connection.number + 1, "the same", "", 0, 0)
    scene.network.reachability.answered(peer, scene.host.now_ns(), other)
    assert said(caplog) == []
    scene.network.reachability.answered(peer, scene.host.now_ns(), peer.connection)
    assert len(said(caplog)) == 1


def test_too_many_who_wait_are_refused_and_nobody_else_is_harmed() -> None:
    scene = Scene(Client(bootstrap_servers="nowhere:9092"))
    told: list[Exception | None] = []
    count = REQUESTS_QUEUED_MAX + 1

    def ask(network: Network) -> None:
        for _ in range(count):
            network.await_connection(scene.host.now_ns() + NS_PER_S, lambda _, error: told.append(error))

    scene.do(ask)
    scene.host.run_until(lambda: len(told) == count)
    assert [type(error) for error in told].count(UsageError) == 1
    assert [type(error) for error in told].count(NoBrokerReached) == count - 1


def test_the_two_networks_of_a_machine_say_it_once(caplog: pytest.LogCaptureFixture) -> None:
    client = Client(bootstrap_servers="nowhere:9092")
    beside = Network(client.settings, client.rng, max_in_flight=1, beside=client.network)
    scene = Scene(client)
    scene.host.advance(100)
    peer = beside.peers.bootstrap[0]
    beside.reachability.failed(peer, "connection refused", scene.host.now_ns(), worked=False)
    assert len(said(caplog)) == 1
    assert not beside.reached


def test_a_time_out_names_what_was_wrong(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(Client(bootstrap_servers="nowhere:9092"))
    deadline_ns = scene.host.now_ns() + NS_PER_S
    scene.do(
        lambda network: network.request(
            ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done, deadline_ns=deadline_ns
        )
    )
    scene.until_answers()
    assert (
        str(scene.client.errors()[0])
        == "LIST_OFFSETS: could not reach any of nowhere:9092 (connection refused)"
    )
