"""What connections may cost a broker: in number, in time, and in memory for what was read and for
what is not sent."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.limits import OUTBOUND_MAX_BYTES, REQUEST_ELEMENTS_MAX
from fairlead_kafka.broker import clients as clients_module
from fairlead_kafka.broker import sessions
from fairlead_kafka.broker.clients import overrides
from fairlead_kafka.core import events as ev
from fairlead_kafka.wire import ApiKey, Message, encode_request
from tests.support.broker_driver import Client, Driver, batch, fetch_fields, produce, produce_fields

IDLE_MS = 60_000


def driver_with(**config: Any) -> Driver:
    driver = Driver({name.replace("_", "."): value for name, value in config.items()})
    driver.controller.create_topic("events", 3)
    return driver


@pytest.fixture
def driver() -> Driver:
    return driver_with()


def fill(driver: Driver, partition: int = 0, batches: int = 4) -> None:
    for _ in range(batches):
        assert produce(driver.connect(), batch([b"x" * 900_000]), partition=partition).error_code == 0


def produce_frame(size_bytes: int, client_id: str = "flood") -> bytes:
    message = Message(**produce_fields({("events", 0): batch([b"x" * size_bytes])}, acks=1))
    return b"".join(encode_request(ApiKey.PRODUCE, 9, 1, client_id, message))


# --- Answers that nobody reads


def test_no_request_is_begun_while_a_reader_takes_nothing(driver: Driver) -> None:
    fill(driver)
    reader = driver.connect()
    reader.reads = False
    for _ in range(20):
        reader.send(
            ApiKey.FETCH,
            12,
            **fetch_fields({("events", 0): 0}, max_bytes=2_000_000, partition_max_bytes=2_000_000),
        )
        driver.broker.clients.check()
    one_answer_bytes = 2_000_000
    assert OUTBOUND_MAX_BYTES < reader.untaken_bytes <= OUTBOUND_MAX_BYTES + one_answer_bytes
    assert driver.broker.clients.outbound_bytes == reader.untaken_bytes
    assert produce(driver.connect(), batch([b"others are served"])).error_code == 0
    reader.read_on()
    driver.broker.clients.check()
    assert (len(reader.arrived), driver.broker.clients.outbound_bytes) == (20, 0)


def test_a_reader_who_reads_is_never_waited_for(driver: Driver) -> None:
    fill(driver)
    reader = driver.connect()
    for _ in range(20):
        reader.ask(
            ApiKey.FETCH,
            12,
            **fetch_fields({("events", 0): 0}, max_bytes=2_000_000, partition_max_bytes=2_000_000),
        )


def test_what_readers_leave_lying_makes_answers_of_others_small(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients_module, "OUTBOUND_BROKER_MAX_BYTES", 2_000_000)
    fill(driver)
    wanted = fetch_fields({("events", 0): 0}, max_bytes=50_000_000, partition_max_bytes=50_000_000)
    lazy = driver.connect()
    lazy.reads = False
    lazy.send(ApiKey.FETCH, 12, **wanted)
    other = driver.connect()
    small = other.ask(ApiKey.FETCH, 12, **wanted)
    assert len(small.responses[0].partitions[0].records) < 1_000_000, "one batch, which everybody gets"
    lazy.read_on()
    assert len(other.ask(ApiKey.FETCH, 12, **wanted).responses[0].partitions[0].records) > 1_000_000


def test_a_fetch_gets_no_more_than_the_broker_gives_in_all_partitions_together() -> None:
    driver = driver_with(fetch_max_bytes=1_000_000)
    for partition in range(3):
        fill(driver, partition, 2)
    offsets = {("events", partition): 0 for partition in range(3)}
    answer = driver.connect().ask(
        ApiKey.FETCH, 12, **fetch_fields(offsets, max_bytes=2**31 - 1, partition_max_bytes=2**31 - 1)
    )
    assert sum(len(each.records) for each in answer.responses[0].partitions) < 1_000_000


# --- Requests that were begun


def waiting_writes(driver: Driver) -> None:
    """Every Produce to partition 0 waits for a sync from now on."""
    driver.controller.create_topic("synced", 1, configs={"flush.messages": "1"})
    driver.disk.hold_syncs = True


def test_a_produce_gives_its_frame_back_once_it_is_appended(driver: Driver) -> None:
    waiting_writes(driver)
    client = driver.connect()
    message = Message(**produce_fields({("synced", 0): batch([b"x" * 500_000])}, acks=1))
    frames = [b"".join(encode_request(ApiKey.PRODUCE, 9, number, "flood", message)) for number in range(20)]
    before = [sys.getrefcount(frame) for frame in frames]
    for frame in frames:
        client.expect(ApiKey.PRODUCE, 9)
        client.send_bytes(frame)
        driver.broker.clients.check()
    del frame
    assert not client.arrived
    assert [sys.getrefcount(frame) for frame in frames] == before, "nobody holds them"
    assert 20 * 4096 <= driver.broker.clients.queued_bytes < 200_000
    while len(client.arrived) < 20:
        driver.release_syncs()
    assert driver.broker.clients.queued_bytes == 0


def test_requests_begun_beside_others_are_bounded(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "BEGUN_REQUESTS_MAX_BYTES", 50_000)
    waiting_writes(driver)
    client = driver.connect()
    for _ in range(100):
        client.send(ApiKey.PRODUCE, 9, **produce_fields({("synced", 0): batch([b"x"])}, acks=1))
        driver.broker.clients.check()
    assert len(driver.broker.clients.sessions[client.connection]._outstanding) == 11
    while len(client.arrived) < 100:
        driver.release_syncs()
    driver.broker.clients.check()


# --- What all connections hold together


def test_nothing_more_is_read_while_too_much_is_unanswered_but_of_brokers_and_newcomers() -> None:
    driver = driver_with(queued_max_request_bytes=100_000)
    idle, broker, flood = driver.connect(), driver.connect(), driver.connect()
    idle.ask(ApiKey.API_VERSIONS, 0)
    broker.send_bytes(b"".join(encode_request(ApiKey.API_VERSIONS, 0, 1, "broker-7", Message())))
    flood.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=500))
    flood.send_bytes(produce_frame(120_000))
    newcomer = driver.connect()
    assert (idle.held, flood.held, broker.held, newcomer.held) == (True, True, False, False)
    newcomer.ask(ApiKey.API_VERSIONS, 0)
    assert newcomer.held
    driver.broker.clients.check()
    driver.advance(600)
    assert not any(client.held for client in (idle, flood, broker, newcomer))
    assert driver.broker.clients.queued_bytes == 0


@pytest.mark.parametrize(("listener", "log_in", "name", "exempt"), [
    (1, True, "broker-7", True),
    (1, True, "alice", False),
    (1, False, "broker-7", False),
    (2, False, "broker-7", False),
])  # fmt: skip
def test_who_only_calls_himself_a_broker_is_none(
    listener: int, log_in: bool, name: str, exempt: bool
) -> None:
    """A client id is whatever a client says, and this one would let a stranger pass the bound on
    memory."""
    driver = Driver({
        "listeners": "SASL_PLAINTEXT://127.0.0.1:9092,PLAINTEXT://127.0.0.1:9093",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "queued.max.request.bytes": 100_000,
    })  # fmt: skip
    driver.authenticate = lambda effect: ev.Authenticated(effect.connection, b"", None, "alice")
    flood, client = driver.connect(listener=2), driver.connect(listener=listener)
    asked = [encode_request(ApiKey.API_VERSIONS, 0, 1, name, Message())]
    if log_in:
        asked += [
            encode_request(ApiKey.SASL_HANDSHAKE, 1, 2, name, Message(mechanism="PLAIN")),
            encode_request(ApiKey.SASL_AUTHENTICATE, 2, 3, name, Message(auth_bytes=b"alice")),
        ]
    client.send_bytes(b"".join(b"".join(each) for each in asked))
    flood.send_bytes(produce_frame(120_000)[:110_000])
    assert client.held is not exempt


def test_parts_of_requests_that_pass_the_bound_alone_are_all_completed_in_turn() -> None:
    driver = driver_with(queued_max_request_bytes=100_000)
    rest: dict[Client, bytes] = {}
    for _ in range(4):
        client, frame = driver.connect(), produce_frame(60_000)
        client.send_bytes(frame[:40_000])
        rest[client] = frame[40_000:]
    assert [client.held for client in rest] == [False, True, True, True]
    while rest:
        client = next(client for client in rest if not client.held)
        client.expect(ApiKey.PRODUCE, 9)
        client.send_bytes(rest.pop(client))
        assert client.arrived
        driver.broker.clients.check()


def test_one_who_leaves_in_the_middle_of_a_request_makes_room_for_the_next() -> None:
    driver = driver_with(queued_max_request_bytes=100_000)
    clients = [driver.connect() for _ in range(3)]
    for client in clients:
        client.send_bytes(produce_frame(90_000)[:80_000])
    assert [client.held for client in clients] == [False, True, True]
    driver.broker.receive(ev.Disconnected(clients[0].connection, "closed by the peer"))
    driver.run()
    assert [client.held for client in clients[1:]] == [False, True]


def test_a_request_of_too_many_elements_ends_its_connection_and_is_named(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    many = [Message(name="")] * (REQUEST_ELEMENTS_MAX + 1)
    client = driver.connect()
    client.send(ApiKey.METADATA, 0, topics=many)
    assert client.closed
    assert f"METADATA version 0: topics has {len(many)} elements" in caplog.text
    sound = driver.connect()
    assert len(sound.ask(ApiKey.METADATA, 0, topics=[Message(name="events")] * 1000).topics) >= 1


# --- How many, and for how long


def test_connections_above_the_bound_wait_until_others_end() -> None:
    driver = driver_with(max_connections=2)
    first, _second = driver.connect(), driver.connect()
    assert not driver.accepts
    third = driver.connect()  # was accepted before the listener heard of it
    third.send(ApiKey.API_VERSIONS, 0)
    assert (third.held, third.arrived) == (True, [])
    driver.broker.clients.check()
    driver.broker.receive(ev.Disconnected(first.connection, "closed by the peer"))
    driver.run()
    assert (third.held, len(third.arrived), driver.accepts) == (False, 1, False)
    driver.broker.receive(ev.Disconnected(third.connection, "closed by the peer"))
    driver.run()
    assert driver.accepts
    driver.broker.clients.check()


def test_the_bound_on_connections_may_change_while_the_broker_runs() -> None:
    driver = driver_with(max_connections=1)
    first, second = driver.connect(), driver.connect()
    configure(first, "max.connections", "3")
    assert (second.held, driver.accepts) == (False, True)
    driver.advance(5)
    configure(first, "max.connections", "1")
    assert (first.closed, second.closed, driver.accepts) == (False, True, False), (
        "the one that was used longer ago is closed"
    )
    driver.broker.clients.check()


def test_a_waiting_connection_that_ends_once_it_is_served_makes_room_for_the_next() -> None:
    driver = driver_with(max_connections=1)
    first, second, third = driver.connect(), driver.connect(), driver.connect()
    second.send(ApiKey.METADATA, 0, topics=[Message(name="")] * (REQUEST_ELEMENTS_MAX + 1))
    third.send(ApiKey.API_VERSIONS, 0)
    configure(first, "max.connections", "3")
    assert (second.closed, third.held, len(third.arrived)) == (True, False, 1)
    assert driver.broker.guard.errors == 0
    driver.broker.clients.check()


def test_brokers_with_a_listener_of_their_own_take_the_place_of_clients() -> None:
    driver = driver_with(
        max_connections=2,
        listeners="CLIENTS://127.0.0.1:9092,BROKERS://127.0.0.1:9192",
        listener_security_protocol_map="CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
        inter_broker_listener_name="BROKERS",
    )
    first = driver.connect()
    driver.advance(5)
    second, waiting = driver.connect(), driver.connect()
    assert (second.held, waiting.held, driver.held_listeners) == (False, True, {1})
    brokers = [driver.connect(listener=2)]
    assert (first.closed, second.closed, waiting.held) == (True, False, True)
    brokers += [driver.connect(listener=2) for _ in range(2)]
    assert [each.closed for each in (second, *brokers)] == [True, False, False, False]
    assert (waiting.held, driver.held_listeners) == (True, {1})
    driver.broker.clients.check()
    for each in brokers[:2]:
        driver.broker.receive(ev.Disconnected(each.connection, "closed by the peer"))
    driver.run()
    assert (waiting.held, driver.held_listeners) == (False, {1})
    driver.broker.clients.check()


def test_connections_of_one_address_are_bounded_by_themselves() -> None:
    driver = driver_with(max_connections_per_ip=1, max_connections_per_ip_overrides="10.0.0.2:2")
    opened = [
        driver.connect(address)
        for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2", "10.0.0.3")
    ]
    assert [client.closed for client in opened] == [False, True, False, False, True, False]
    driver.broker.receive(ev.Disconnected(opened[0].connection, "closed by the peer"))
    driver.run()
    assert not driver.connect("10.0.0.1").closed
    driver.broker.clients.check()


def test_overrides_are_of_addresses_and_numbers() -> None:
    assert overrides(("127.0.0.1:20", "::1:3", "[::2]:4")) == {"127.0.0.1": 20, "::1": 3, "::2": 4}
    for wrong in ("localhost:3", "127.0.0.1", "127.0.0.1:many"):
        with pytest.raises(ConfigError):
            BROKER_CONFIGS.parse("broker", {"max.connections.per.ip.overrides": wrong})


def test_an_idle_connection_is_closed_and_none_whose_request_waits() -> None:
    driver = driver_with(connections_max_idle_ms=IDLE_MS)
    idle, busy, waiting = driver.connect(), driver.connect(), driver.connect()
    waiting.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=10 * IDLE_MS))
    for _ in range(3):
        driver.advance(IDLE_MS // 2)
        busy.ask(ApiKey.API_VERSIONS, 0)
    assert (idle.closed, busy.closed, waiting.closed) == (True, False, False)
    driver.advance(IDLE_MS * 1.06)
    assert (busy.closed, waiting.closed) == (True, False)
    driver.advance(8 * IDLE_MS)
    assert len(waiting.arrived) == 1
    driver.advance(IDLE_MS * 1.06)
    assert waiting.closed
    driver.broker.clients.check()


def test_a_reader_who_takes_nothing_is_idle_in_the_end() -> None:
    driver = driver_with(connections_max_idle_ms=IDLE_MS)
    fill(driver)
    lazy = driver.connect()
    lazy.reads = False
    for _ in range(3):
        lazy.send(
            ApiKey.FETCH,
            12,
            **fetch_fields({("events", 0): 0}, max_bytes=2_000_000, partition_max_bytes=2_000_000),
        )
    driver.advance(IDLE_MS * 1.06)
    assert lazy.closed
    assert driver.broker.clients.outbound_bytes == 0
    driver.broker.clients.check()


def configure(client: Client, name: str, value: str) -> None:
    config = Message(name=name, config_operation=0, value=value)
    resource = Message(resource_type=4, resource_name="", configs=[config])
    answer = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    assert answer.responses[0].error_code == 0
    client.driver.run()


@pytest.mark.parametrize("seed", range(30))
def test_what_is_kept_of_connections_is_right_whatever_happens(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "BEGUN_REQUESTS_MAX_BYTES", 30_000)
    monkeypatch.setattr(sessions, "PENDING_REQUESTS_MAX_BYTES", 30_000)
    rng = random.Random(seed)
    driver = driver_with(queued_max_request_bytes=80_000, max_connections=6, connections_max_idle_ms=5_000)
    waiting_writes(driver)
    fill(driver, batches=2)
    opened: list[Client] = []
    fetched = fetch_fields({("events", 0): 0}, max_bytes=2_000_000, partition_max_bytes=2_000_000)
    for _ in range(120):
        opened = [client for client in opened if not client.closed]
        client = rng.choice(opened) if opened and rng.random() < 0.9 else None
        deed = rng.randrange(8)
        if client is None:
            opened.append(driver.connect())
        elif deed == 0:
            client.send(ApiKey.FETCH, 12, **fetched)
        elif deed == 1:
            client.send(
                ApiKey.PRODUCE,
                9,
                **produce_fields({("synced", 0): batch([b"x" * rng.randrange(20_000)])}, acks=1),
            )
        elif deed == 2:
            client.reads = False
        elif deed == 3:
            client.read_on()
        elif deed == 4:
            driver.advance(rng.randrange(2_000))
        elif deed == 5:
            driver.release_syncs()
        elif deed == 6:
            client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 1): 0}, max_wait_ms=300))
        else:
            driver.broker.receive(ev.Disconnected(client.connection, "closed by the peer"))
            driver.run()
            client.closed = True
        driver.broker.clients.check()
    driver.disk.hold_syncs = False
    for client in opened:
        client.read_on()
    driver.release_syncs()
    driver.advance(20_000)
    clients = driver.broker.clients
    clients.check()
    assert (clients.queued_bytes, clients.outbound_bytes, len(clients.sessions), driver.accepts) == (
        0,
        0,
        0,
        True,
    )
