"""What the network half of a client machine does when brokers are late, gone, moved or busy; in
virtual time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fairlead_kafka.base.errors import ConnectionFailed, TimedOut, UsageError
from fairlead_kafka.core import Network
from fairlead_kafka.wire import ApiKey
from tests.support.fake_broker import (
    Client,
    FakeBroker,
    Scene,
    list_offsets_message,
    list_offsets_request,
    metadata_message,
    versions_message,
)


@pytest.fixture(params=[False, True], ids=["advance last", "advance first"])
def advance_first(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_late_answer_ends_the_connection_as_kafka_does(advance_first: bool) -> None:
    broker = FakeBroker()
    scene = Scene(Client(advance_first, request_timeout_ms=700), broker)
    scene.until_ready()
    broker.silent = True
    scene.host.advance(5000)
    started_ms = scene.now_ms()
    scene.send(2)
    answers = scene.until_answers(2)
    assert scene.now_ms() - started_ms == 700
    assert isinstance(answers[0][1], TimedOut)
    assert "no answer to LIST_OFFSETS within 700 ms" in str(answers[0][1])
    assert "broker 0 at broker:9092" in str(answers[0][1])
    assert isinstance(answers[1][1], ConnectionFailed)
    assert scene.network.blocked(0)
    scene.host.run_until(lambda: broker.closed)


def test_a_peer_that_never_says_what_it_speaks_is_told_of_in_the_same_words_early_and_late() -> None:
    broker = FakeBroker()
    broker.silent = True
    scene = Scene(Client(request_timeout_ms=900), broker)
    said = set()
    for _ in range(100):
        scene.host.advance(10)
        said.add(scene.network.trouble())
    for within in ("", " within 900 ms"):
        assert (
            f"could not reach any of broker:9092 (connected, but ApiVersions is not answered{within}: is "
            "this a Kafka broker?)" in said
        )


def test_each_request_may_have_its_own_time_out(advance_first: bool) -> None:
    broker = FakeBroker()
    scene = Scene(Client(advance_first), broker)
    scene.until_ready()
    broker.silent = True
    scene.host.advance(5000)
    started_ms = scene.now_ms()
    scene.send(1)
    scene.send(1, timeout_ms=200)
    scene.until_answers(2)
    assert scene.now_ms() - started_ms == 200
    assert [type(error) for error in scene.client.errors()] == [TimedOut, ConnectionFailed]


def test_a_lost_connection_fails_what_was_under_way_and_asks_for_metadata() -> None:
    broker = FakeBroker()
    scene = Scene(Client(), broker, latency_ms=1)
    scene.until_ready()
    scene.host.advance(1000)
    asked = len(broker.asked(ApiKey.METADATA))
    broker.silent = True
    scene.send(2)
    scene.host.advance(2)
    broker.silent = False
    scene.host.submit(scene.brokers[0][1], broker.hang_up())
    answers = scene.until_answers(2)
    assert {type(error) for _response, error in answers} == {ConnectionFailed}
    assert "closed by the peer" in str(answers[0][1])
    assert scene.network.blocked(0)
    assert not scene.network.ready(0)
    scene.host.run_until(lambda: len(broker.asked(ApiKey.METADATA)) > asked)
    scene.host.run_until(lambda: scene.network.ready(0))


def test_connecting_during_back_off_does_nothing(advance_first: bool) -> None:
    broker = FakeBroker()
    scene = Scene(Client(advance_first), broker)
    scene.until_ready()
    scene.host.submit(scene.brokers[0][1], broker.hang_up())
    scene.host.run_until(lambda: scene.network.blocked(0))
    connections = len(broker.connections)
    scene.do(lambda network: network.connect(0))
    scene.host.advance(1)
    assert len(broker.connections) == connections
    scene.host.run_until(lambda: not scene.network.blocked(0))


def test_an_unreachable_bootstrap_server_is_named_with_the_reason() -> None:
    scene = Scene(Client(bootstrap_servers="nowhere:9092"))
    deadline_ns = scene.host.now_ns() + 5_000_000_000
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
    assert isinstance(scene.client.errors()[0], TimedOut)
    assert scene.host.now_ns() == deadline_ns


def test_a_cluster_that_cannot_be_learned_is_explained_by_the_last_answer() -> None:
    broker = FakeBroker()
    broker.answers[ApiKey.API_VERSIONS] = lambda request: versions_message(
        {ApiKey.METADATA: (0, 1), ApiKey.API_VERSIONS: (0, 3)}
    )
    scene = Scene(Client(), broker)
    scene.host.advance(500)
    assert "no version of METADATA in common" in scene.network.trouble()


def test_bootstrap_servers_are_tried_in_rotation_until_one_answers() -> None:
    broker = FakeBroker("good", 9092)
    scene = Scene(Client(bootstrap_servers="bad:1,worse:2,good:9092"), broker)
    begun_ms = scene.now_ms()
    scene.host.run_until(lambda: scene.network.metadata.nodes)
    assert scene.now_ms() - begun_ms < 60


def test_reconnecting_backs_off_exponentially() -> None:
    scene = Scene(Client(bootstrap_servers="nowhere:9092"))
    attempts_ns: list[int] = []
    for _ in range(2_000):
        scene.host.advance(5)
        tried_ns = scene.network.peers.bootstrap[0].tried_ns
        if tried_ns not in attempts_ns:
            attempts_ns.append(tried_ns)
    waits = [(after - before) / 1e6 for before, after in pairwise(attempts_ns)]
    expected = [50, 100, 200, 400, 800]
    assert all(0.8 * wait <= got <= 1.2 * wait for wait, got in zip(expected, waits[:5], strict=True))
    assert all(800 <= got <= 1000 for got in waits[5:])


def test_an_attempt_without_answer_is_given_up() -> None:
    broker = FakeBroker()
    client = Client(socket_connection_setup_timeout_ms=1000)
    scene = Scene(client, broker)
    scene.host.link(scene.handle, scene.brokers[0][1]).cut()
    scene.host.advance(1300)
    assert "could not reach any of broker:9092 (no connection within" in scene.network.trouble()
    scene.host.link(scene.handle, scene.brokers[0][1]).heal()
    scene.until_ready()


def test_known_brokers_that_are_gone_bring_the_bootstrap_servers_back() -> None:
    seed = FakeBroker("seed", 1)
    seed.answers[ApiKey.METADATA] = lambda request: metadata_message({0: ("gone", 1), 1: ("gone", 2)})
    scene = Scene(Client(bootstrap_servers="seed:1"), seed)
    scene.host.run_until(lambda: 1 in scene.network.metadata.nodes)
    seed.answers[ApiKey.METADATA] = lambda request: metadata_message({5: ("seed", 1)})
    scene.host.submit(scene.brokers[0][1], seed.hang_up())
    scene.do(lambda network: network.metadata.request_update())
    scene.host.run_until(lambda: 5 in scene.network.metadata.nodes)


def test_a_broker_that_moves_gets_a_new_connection() -> None:
    old, new = FakeBroker("old", 1), FakeBroker("new", 1)
    nodes = {0: ("old", 1), 1: ("new", 1)}
    old.answers[ApiKey.METADATA] = new.answers[ApiKey.METADATA] = lambda request: metadata_message(nodes)
    scene = Scene(Client(bootstrap_servers="old:1"), old, new, latency_ms=1)
    scene.until_ready(0)
    scene.host.advance(1000)
    nodes = {0: ("new", 1)}
    old.answers[ApiKey.LIST_OFFSETS] = lambda request: None
    scene.do(lambda network: network.metadata.request_update())
    scene.host.advance(0)
    scene.send()
    assert isinstance(scene.until_answers()[0][1], ConnectionFailed)
    assert "moved" in str(scene.client.errors()[0])
    assert not scene.network.blocked(0)
    scene.do(lambda network: network.connect(0))
    scene.host.run_until(lambda: scene.network.ready(0))
    scene.send()
    assert scene.until_answers(2)[1][1] is None
    assert old.closed
    assert new.asked(ApiKey.LIST_OFFSETS)


def test_a_request_for_a_broker_that_never_appears_times_out() -> None:
    scene = Scene(Client(), FakeBroker())
    deadline_ns = scene.host.now_ns() + 3_000_000_000
    message = list_offsets_request()
    scene.do(
        lambda network: network.request(
            ApiKey.LIST_OFFSETS, message, scene.client.on_done, node_id=9, deadline_ns=deadline_ns
        )
    )
    scene.until_answers()
    assert "LIST_OFFSETS: broker 9 is not known" in str(scene.client.errors()[0])
    assert scene.host.now_ns() == deadline_ns
    assert len(scene.brokers[0][0].asked(ApiKey.METADATA)) < 15, "metadata is asked for with a back-off"


def test_a_request_that_fails_fast_does_not_wait_for_a_broker_that_is_gone(advance_first: bool) -> None:
    nodes = {0: ("broker", 9092), 7: ("nowhere", 9092)}
    broker = FakeBroker()
    broker.answers[ApiKey.METADATA] = lambda request: metadata_message(nodes)
    scene = Scene(Client(advance_first), broker, latency_ms=1)
    scene.until_ready()
    started_ms, deadline_ns = scene.now_ms(), scene.host.now_ns() + 60_000_000_000

    def ask(network: Network) -> None:
        for node_id in (7, 9, 0):  # cannot be reached, is not known, is there
            message, done = list_offsets_request(), scene.client.on_done
            network.request(
                ApiKey.LIST_OFFSETS, message, done, node_id=node_id, deadline_ns=deadline_ns, fails_fast=True
            )

    scene.do(ask)
    outcomes = [type(error) for _response, error in scene.until_answers(3)]
    assert sorted(outcomes, key=str) == sorted([ConnectionFailed, ConnectionFailed, type(None)], key=str)
    assert scene.now_ms() - started_ms < 100
    assert any("could not reach broker 7 at nowhere:9092" in str(error) for error in scene.client.errors())
    scene.host.advance(5000)
    assert len(scene.client.answers) == 3, "each is told once"


def test_a_request_past_its_deadline_leaves_the_connection_alone() -> None:
    broker = FakeBroker()
    scene = Scene(Client(), broker, latency_ms=1)
    scene.until_ready()
    broker.answers[ApiKey.LIST_OFFSETS] = lambda request: None
    deadline_ns = scene.host.now_ns() + 100_000_000
    scene.do(
        lambda network: network.request(
            ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done, deadline_ns=deadline_ns
        )
    )
    scene.until_answers()
    assert str(scene.client.errors()[0]) == "LIST_OFFSETS: no answer in time from broker 0 at broker:9092"
    assert scene.network.ready(0)
    scene.host.advance(60_000)
    assert len(scene.client.answers) == 1, "the late end of it is not heard again"


def test_a_throttled_broker_is_left_alone_as_long_as_it_asks(advance_first: bool) -> None:
    broker = FakeBroker()
    broker.answers[ApiKey.LIST_OFFSETS] = lambda request: list_offsets_message(throttle_ms=500)
    scene = Scene(Client(advance_first), broker)
    scene.until_ready()
    scene.send()
    scene.until_answers()
    assert not scene.network.ready(0)
    assert not scene.network.blocked(0)
    started_ms = scene.now_ms()
    scene.host.run_until(lambda: scene.network.ready(0))
    assert scene.now_ms() - started_ms == 500


def test_an_idle_connection_is_closed_and_made_again_when_wanted() -> None:
    broker = FakeBroker()
    scene = Scene(Client(connections_max_idle_ms=10_000, metadata_max_age_ms=3_600_000), broker)
    scene.until_ready()
    scene.send()
    scene.until_answers()
    scene.host.advance(9_999)
    assert scene.network.ready(0)
    scene.host.advance(1)
    assert not scene.network.ready(0)
    assert not scene.network.blocked(0)
    assert len(broker.asked(ApiKey.METADATA)) == 1, "an idle end is no reason to doubt the metadata"
    scene.until_ready()


def test_closing_fails_everything_once_and_closes_connections() -> None:
    broker = FakeBroker()
    scene = Scene(Client(), broker, latency_ms=1)
    scene.until_ready()

    def operation(network: Network) -> None:
        network.send(0, ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done)
        network.request(
            ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done, node_id=4, deadline_ns=10**18
        )
        network.send(
            0, ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done, expects_response=False
        )
        network.close()
        network.close()

    scene.do(operation)
    scene.host.run_until(lambda: broker.closed)
    assert [type(error) for _response, error in scene.client.answers] == [UsageError] * 3
    assert scene.network.deadline_ns() is None
    with pytest.raises(UsageError, match="closed"):
        scene.network.request(
            ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done, deadline_ns=0
        )
