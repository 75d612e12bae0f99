"""The network half of a client machine, against brokers in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import (
    ConfigError,
    ConnectionFailed,
    DecodeError,
    UnsupportedVersion,
    UsageError,
)
from fairlead_kafka.core import CONTROLLER, Network
from fairlead_kafka.core.connection import (
    CORRELATION_ID_MAX,
    TRANSITIONS,
    Connection,
    InFlight,
    State,
    Trigger,
)
from fairlead_kafka.core.effects import Connect, Resolve
from fairlead_kafka.core.peers import Peers, parse_address
from fairlead_kafka.runtime import Completion, SelectorHost
from fairlead_kafka.wire import ApiKey, Message, encode_response
from tests.support.fake_broker import (
    OFFERED,
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


def test_a_client_finds_the_cluster_by_itself(advance_first: bool) -> None:
    broker = FakeBroker()
    scene = Scene(Client(advance_first), broker, latency_ms=1)
    begun_ms = scene.now_ms()
    scene.host.run_until(lambda: scene.network.metadata.nodes)
    assert [request.api_key for request in broker.requests] == [ApiKey.API_VERSIONS, ApiKey.METADATA]
    assert [request.version for request in broker.requests] == [3, 13]
    assert broker.requests[0].message.client_software_name == "fairlead"
    assert scene.now_ms() - begun_ms == 6, "three round trips: connect, versions, metadata"


def test_nothing_happens_while_there_is_nothing_to_do(advance_first: bool) -> None:
    scene = Scene(Client(advance_first), FakeBroker())
    scene.until_ready()
    scene.host.advance(1000)
    steps = scene.client.steps
    scene.host.advance(20_000)
    assert scene.client.steps == steps, "no polling"


def test_the_bootstrap_connection_becomes_the_brokers() -> None:
    broker = FakeBroker()
    scene = Scene(Client(), broker)
    scene.until_ready()
    assert len(broker.connections) == 1


def test_answers_come_in_order_and_in_flight_is_counted(advance_first: bool) -> None:
    broker = FakeBroker()
    scene = Scene(Client(advance_first), broker, latency_ms=1)
    scene.until_ready()
    scene.send(3)
    scene.host.advance(0)
    assert scene.network.in_flight(0) == 3
    answers = scene.until_answers(3)
    assert [error for _response, error in answers] == [None] * 3
    assert scene.network.in_flight(0) == 0
    ids = [request.correlation_id for request in broker.requests]
    assert ids == sorted(set(ids))


def test_a_full_connection_is_not_ready() -> None:
    scene = Scene(Client(max_in_flight=2), FakeBroker(), latency_ms=1)
    scene.until_ready()
    scene.send(2)
    scene.host.advance(0)
    assert not scene.network.ready(0)
    with pytest.raises(UsageError, match="2 requests in flight"):
        scene.network.send(0, ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done)
    scene.until_answers(2)
    assert scene.network.ready(0)


def test_sending_to_a_node_that_is_not_connected_is_refused() -> None:
    scene = Scene(Client(), FakeBroker())
    with pytest.raises(UsageError, match="broker 5 is not connected"):
        scene.network.send(5, ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done)


def test_negotiation_falls_back_when_the_broker_refuses_version_3() -> None:
    broker = FakeBroker()
    old = {**OFFERED, ApiKey.API_VERSIONS: (0, 1)}
    broker.answers[ApiKey.API_VERSIONS] = lambda request: versions_message(
        old, 35 if request.version > 1 else 0
    )
    scene = Scene(Client(), broker)
    scene.until_ready()
    assert [request.version for request in broker.asked(ApiKey.API_VERSIONS)] == [3, 1]


def test_negotiation_falls_back_to_version_0_when_the_refusal_names_nothing() -> None:
    broker = FakeBroker()
    broker.answers[ApiKey.API_VERSIONS] = lambda request: versions_message(
        {} if request.version else OFFERED, 35 if request.version else 0
    )
    scene = Scene(Client(), broker)
    scene.until_ready()
    assert [request.version for request in broker.asked(ApiKey.API_VERSIONS)] == [3, 0]


def test_versions_are_the_highest_in_common() -> None:
    scene = Scene(Client(), FakeBroker())
    scene.until_ready()
    assert scene.network.version(0, ApiKey.PRODUCE) == 9
    with pytest.raises(UnsupportedVersion, match="CREATE_TOPICS"):
        scene.network.version(0, ApiKey.CREATE_TOPICS)
    with pytest.raises(UsageError):
        scene.network.version(3, ApiKey.PRODUCE)


def test_an_api_that_the_broker_lacks_fails_its_request_alone(advance_first: bool) -> None:
    scene = Scene(Client(advance_first), FakeBroker())
    scene.until_ready()
    scene.do(lambda network: network.send(0, ApiKey.CREATE_TOPICS, Message(topics=[]), scene.client.on_done))
    scene.until_answers()
    assert isinstance(scene.client.errors()[0], UnsupportedVersion)
    assert scene.network.ready(0)


def test_a_request_without_response_is_done_when_written(advance_first: bool) -> None:
    scene = Scene(Client(advance_first), FakeBroker())
    scene.until_ready()
    scene.send(1, expects_response=False)
    assert scene.until_answers() == [(None, None)]
    assert scene.network.in_flight(0) == 0


def test_a_wrong_correlation_id_ends_the_connection() -> None:
    broker = FakeBroker()
    scene = Scene(Client(), broker, latency_ms=1)
    scene.until_ready()
    stray = b"".join(encode_response(ApiKey.LIST_OFFSETS, 7, 999, list_offsets_message()))
    broker.answers[ApiKey.LIST_OFFSETS] = lambda request: stray
    scene.send(2)
    answers = scene.until_answers(2)
    assert isinstance(answers[0][1], DecodeError)
    assert "correlation id 999" in str(answers[0][1])
    assert isinstance(answers[1][1], ConnectionFailed)
    scene.host.run_until(lambda: broker.closed)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\2\0\0",
        b"\0\0\0\4\0\0\0\0",
        b"HTTP/1.1 400 Bad Request",
    ],
    ids=["negative", "huge", "short", "id only", "http"],
)
def test_garbage_ends_the_connection_with_a_decode_error(garbage: bytes) -> None:
    broker = FakeBroker()
    scene = Scene(Client(), broker)
    scene.until_ready()
    broker.answers[ApiKey.LIST_OFFSETS] = lambda request: garbage
    scene.send()
    scene.until_answers()
    assert isinstance(scene.client.errors()[0], DecodeError)
    assert not scene.network.ready(0)


def test_an_answer_to_nothing_ends_the_connection() -> None:
    broker = FakeBroker()
    answer = list_offsets_message()
    broker.answers[ApiKey.LIST_OFFSETS] = lambda request: [
        *(
            bytes(part)
            for part in encode_response(request.api_key, request.version, request.correlation_id, answer)
        ),
        *(
            bytes(part)
            for part in encode_response(request.api_key, request.version, request.correlation_id + 1, answer)
        ),
    ]
    scene = Scene(Client(), broker)
    scene.until_ready()
    scene.send()
    assert scene.until_answers()[0][1] is None
    scene.host.run_until(lambda: not scene.network.ready(0))


def test_garbage_in_negotiation_is_retried_after_a_back_off() -> None:
    broker = FakeBroker()
    broker.answers[ApiKey.API_VERSIONS] = lambda request: (
        b"\0\0\0\1x" if len(broker.requests) == 1 else versions_message()
    )
    scene = Scene(Client(), broker)
    begun_ms = scene.now_ms()
    scene.until_ready()
    assert 40 <= scene.now_ms() - begun_ms <= 60, "reconnect.backoff.ms is 50, a fifth more or less"


def test_a_decode_error_raised_by_a_callback_is_not_the_brokers_fault() -> None:
    scene = Scene(Client(), FakeBroker())
    scene.until_ready()

    def fail(_response: Message | None, _error: Exception | None) -> None:
        raise DecodeError("in the records", 5)

    scene.do(lambda network: network.send(0, ApiKey.LIST_OFFSETS, list_offsets_request(), fail))
    with pytest.raises(DecodeError, match="in the records"):
        scene.host.advance(10)


def test_requests_wait_for_the_node_they_are_for(advance_first: bool) -> None:
    zero, one = FakeBroker("zero", 1), FakeBroker("one", 1)
    nodes = {0: ("zero", 1), 1: ("one", 1)}
    zero.answers[ApiKey.METADATA] = one.answers[ApiKey.METADATA] = lambda request: metadata_message(
        nodes, controller_id=1
    )
    scene = Scene(Client(advance_first, bootstrap_servers="zero:1"), zero, one, latency_ms=1)
    deadline_ns = scene.host.now_ns() + 10**10

    def ask(network: Network) -> None:
        for node_id in (CONTROLLER, 0, 1, None):
            network.request(
                ApiKey.LIST_OFFSETS,
                list_offsets_request(),
                scene.client.on_done,
                node_id=node_id,
                deadline_ns=deadline_ns,
            )

    scene.do(ask)
    assert [error for _response, error in scene.until_answers(4)] == [None] * 4
    assert len(one.asked(ApiKey.LIST_OFFSETS)) == 2
    assert len(zero.asked(ApiKey.LIST_OFFSETS)) == 2


def test_requests_made_inside_callbacks_go_out_in_the_same_step() -> None:
    broker = FakeBroker()
    scene = Scene(Client(), broker)
    scene.until_ready()
    done: list[Any] = []

    def again(_response: Message | None, _error: Exception | None) -> None:
        scene.network.send(
            0,
            ApiKey.LIST_OFFSETS,
            list_offsets_request(),
            lambda response, error: done.append((response, error)),
        )

    scene.do(lambda network: network.send(0, ApiKey.LIST_OFFSETS, list_offsets_request(), again))
    scene.host.run_until(lambda: done, timeout_ms=0)
    assert done[0][1] is None


def test_the_same_machines_work_on_real_sockets() -> None:
    host = SelectorHost("test")
    host.start()
    broker, answered = FakeBroker("127.0.0.1", 0), Completion()
    handle = host.add(broker)
    listening = Completion()
    host.submit(handle, [Resolve(listening)])
    listening.result(10)
    client = Client(bootstrap_servers=f"127.0.0.1:{broker.port}")

    def ask(network: Network) -> None:
        deadline_ns = host.now_ns() + 20_000_000_000
        done = answered.set_result
        network.request(
            ApiKey.LIST_OFFSETS,
            list_offsets_request(),
            lambda *answer: done(answer),
            node_id=0,
            deadline_ns=deadline_ns,
        )

    host.submit(host.add(client), ask)
    response, error = answered.result(20)
    assert error is None
    assert response.topics == []
    host.close()


def test_every_transition_leads_somewhere_and_closed_is_the_end() -> None:
    assert {state for state, _trigger in TRANSITIONS} == set(State) - {State.CLOSED}
    for state in set(State) - {State.CLOSED}:
        for trigger in (Trigger.LOST, Trigger.EXPIRED, Trigger.ENDED):
            assert TRANSITIONS[state, trigger] is State.CLOSED
    with pytest.raises(UsageError, match="negotiated cannot happen while connecting"):
        Connection(1, "a broker", "", 0, 0).fire(Trigger.NEGOTIATED)


def test_correlation_ids_wrap_to_zero() -> None:
    connection = Connection(1, "a broker", "", 0, 0)
    connection._correlation_id = CORRELATION_ID_MAX
    requests = [InFlight(0, ApiKey.LIST_OFFSETS, 7, lambda response, error: None, 0, 0) for _ in range(2)]
    for request in requests:
        connection.encode(request, list_offsets_request())
    assert [request.correlation_id for request in requests] == [CORRELATION_ID_MAX, 0]


@pytest.mark.parametrize(
    ("text", "address"),
    [("localhost:9092", ("localhost", 9092)), (" a.b.c:1 ", ("a.b.c", 1)), ("[::1]:9092", ("::1", 9092))],
)
def test_bootstrap_addresses_are_parsed(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["localhost", ":9092", "a:0", "a:65536", "a:x", "::1:9092", "a:-1", "a:"])
def test_wrong_bootstrap_addresses_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        parse_address(text)


def test_bootstrap_order_comes_from_the_rng() -> None:
    class Rng:
        def random(self) -> float:
            return 0.0

        def randrange(self, stop: int, /) -> int:
            return stop - 1

    peers = Peers(("a:1", "b:1", "c:1", "a:1"), Rng())
    assert [peer.host for peer in peers.bootstrap] == ["c", "b", "a"]


def test_the_first_step_connects() -> None:
    network = Client().network
    assert network.deadline_ns() == 0
    network.advance(5, 0)
    assert network.take_effects() == [Connect(1, "broker", 9092)]
    assert network.take_effects() == []
    assert isinstance(network, Network)
    assert CLIENT_CONFIGS
