"""A broker keeps its clients to their quotas: who has used too much is answered at once, and then
left unread for a while (KIP-219)."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.config import INT_MAX
from fairlead_kafka.base.limits import QUOTA_RATES_MAX
from fairlead_kafka.base.principal import USER, Principal
from fairlead_kafka.broker.quotas import quotas as quotas_module
from fairlead_kafka.wire import ApiKey, Message, encode_request
from tests.support.broker_driver import batch, produce_fields
from tests.support.quota_rig import ANYBODY, WINDOWS_MS, Rig, frame_bytes, produce, send_produce


@pytest.fixture
def rig() -> Rig:
    return Rig()


# --- producer_byte_rate, and being still


def test_without_quotas_nothing_is_measured(rig: Rig) -> None:
    assert produce(rig.connect(), 1_000_000).throttle_time_ms == 0
    assert not rig.driver.broker.quotas.enabled
    assert len(rig.driver.broker.quotas) == 0


@pytest.mark.parametrize("version", [3, 5, 6, 12])
def test_who_sends_too_much_is_answered_at_once_and_not_read_for_so_long(rig: Rig, version: int) -> None:
    rig.grant(ANYBODY, producer_byte_rate=1_000)
    client = rig.connect()
    charged = frame_bytes(12_000, version)
    answer = produce(client, 12_000, version)
    wait_ms = charged - 1_000 * WINDOWS_MS // 1_000  # each byte above is a millisecond at 1000 a second
    assert answer.throttle_time_ms == wait_ms
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert client.held
    client.send(ApiKey.METADATA, 1, topics=None)
    rig.advance(wait_ms - 1)
    assert len(client.arrived) == 1, "what had been read is not begun"
    rig.advance(1)
    assert len(client.arrived) == 2
    assert not client.held


def test_as_much_as_is_granted_is_never_throttled_and_more_comes_down_to_it(rig: Rig) -> None:
    rig.grant(ANYBODY, producer_byte_rate=10_000)
    charged = frame_bytes(900)
    client = rig.connect()
    for _ in range(120):
        assert produce(client, 900).throttle_time_ms == 0
        rig.driver.advance(charged / 10_000 * 1_000 * 1.03)
    sent_bytes, begun_ns = 0, rig.driver.now_ns
    while rig.driver.now_ns - begun_ns < 60_000_000_000:
        wait_ms = produce(client, 9_000).throttle_time_ms
        sent_bytes += frame_bytes(9_000)
        rig.driver.advance(max(wait_ms, 20))
    assert sent_bytes / 60 == pytest.approx(10_000, rel=0.1)


def test_others_go_on_meanwhile(rig: Rig) -> None:
    rig.grant({"client-id": None}, producer_byte_rate=1_000)
    first, second = rig.connect("first"), rig.connect("second")
    assert produce(first, 50_000).throttle_time_ms > 0
    assert produce(second, 1_000).throttle_time_ms == 0, "a default is each client's own"
    assert produce(rig.connect("first"), 1).throttle_time_ms > 0, (
        "a client has no more for having two connections"
    )


def test_clients_of_one_user_share_a_users_quota(rig: Rig) -> None:
    rig.grant({"user": "ANONYMOUS"}, producer_byte_rate=1_000)
    assert produce(rig.connect("first"), 50_000).throttle_time_ms > 0
    assert produce(rig.connect("second"), 1).throttle_time_ms > 0
    alice = rig.connect("third")
    rig.session(alice).principal = Principal(USER, "alice")
    assert produce(alice, 50_000).throttle_time_ms == 0
    rig.grant({"user": "alice", "client-id": "third"}, producer_byte_rate=1_000)
    assert produce(alice, 50_000).throttle_time_ms > 0


def test_a_client_that_calls_itself_a_broker_is_a_client(rig: Rig) -> None:
    rig.grant(ANYBODY, producer_byte_rate=1_000)
    assert produce(rig.connect("broker-1"), 50_000).throttle_time_ms > 0


def test_without_an_answer_a_producer_is_throttled_all_the_same(rig: Rig) -> None:
    rig.grant(ANYBODY, producer_byte_rate=1_000)
    client = rig.connect()
    send_produce(client, 12_000, acks=0)
    client.drop_expectation()
    wait_ms = frame_bytes(12_000, acks=0) - WINDOWS_MS
    assert client.held
    client.send(ApiKey.METADATA, 1, topics=None)
    rig.advance(wait_ms - 1)
    assert not client.arrived
    rig.advance(1)
    assert len(client.arrived) == 1


def test_what_is_pipelined_behind_too_much_is_not_begun(rig: Rig) -> None:
    """Produce requests do not wait for the answers of those before them; nor does the wait that
    they cause."""
    rig.driver.disk.hold_syncs = True
    rig.driver.controller.create_topic("synced", 1, configs={"flush.messages": "1"})
    rig.grant(ANYBODY, producer_byte_rate=1_000)
    client = rig.connect()
    fields = produce_fields({("synced", 0): batch([b"x" * 12_000])}, 1)
    frames = [
        b"".join(encode_request(ApiKey.PRODUCE, 9, number, "driver", Message(**fields)))
        for number in range(3)
    ]
    for _ in range(3):
        client.expect(ApiKey.PRODUCE, 9)
    client.send_bytes(b"".join(frames))
    wait_ms = len(frames[0]) - 4 - WINDOWS_MS
    assert not client.arrived, "the disk is slow"
    rig.advance(500)
    rig.driver.disk.hold_syncs = False
    rig.driver.release_syncs()
    (first,) = client.arrived
    assert first.throttle_time_ms == wait_ms - 500, "the client is told what is left of the wait"
    rig.advance(wait_ms - 501)
    assert len(client.arrived) == 1
    rig.advance(1)
    assert len(client.arrived) == 2
    rig.advance(client.arrived[1].throttle_time_ms)
    assert len(client.arrived) == 3


def test_a_wait_that_is_over_before_the_answer_is_none(rig: Rig) -> None:
    rig.driver.disk.hold_syncs = True
    rig.driver.controller.create_topic("synced", 1, configs={"flush.messages": "1"})
    rig.grant(ANYBODY, producer_byte_rate=1_000)
    client = rig.connect()
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("synced", 0): batch([b"x" * 12_000])}, 1))
    rig.advance(5_000)
    assert not client.held
    rig.driver.release_syncs()
    assert [answer.throttle_time_ms for answer in client.arrived] == [0]
    assert not client.held


def test_quotas_follow_their_changes_at_once(rig: Rig) -> None:
    client = rig.connect()
    rig.grant(ANYBODY, producer_byte_rate=1_000_000)
    assert produce(client, 50_000).throttle_time_ms == 0
    rig.grant(ANYBODY, producer_byte_rate=1_000)
    wait_ms = produce(client, 1).throttle_time_ms
    assert wait_ms > 30_000, "what was used before the change counts"
    rig.grant(ANYBODY, producer_byte_rate=None)
    assert not rig.driver.broker.quotas.enabled
    rig.advance(wait_ms)
    assert produce(client, 500_000).throttle_time_ms == 0


def test_a_wait_ends_with_its_connection_and_leaves_nothing_behind(rig: Rig) -> None:
    rig.grant(ANYBODY, producer_byte_rate=1)
    for _ in range(3):
        client = rig.connect()
        assert produce(client, 900_000).throttle_time_ms > 100_000_000
        send_produce(client, 10)
        rig.session(client).close()
        rig.driver.run()
        assert client.closed
    assert not rig.driver.broker.deadlines._due
    rig.advance(1_000)


def test_the_longest_wait_fits_its_field(rig: Rig) -> None:
    rig.grant(ANYBODY, producer_byte_rate=1)
    client = rig.connect()
    rig.driver.broker.quotas.rate(("producer_byte_rate", ("ANONYMOUS", None))).record(1e30, 0)
    assert produce(client, 10).throttle_time_ms == INT_MAX


def test_nothing_grows_while_a_connection_is_still(rig: Rig) -> None:
    rig.grant(ANYBODY, producer_byte_rate=1_000)
    client = rig.connect()
    produce(client, 50_000)
    held_bytes = rig.driver.broker.clients.queued_bytes
    assert client.held
    send_produce(client, 5_000)  # read before the host heard of it
    assert rig.driver.broker.clients.queued_bytes - held_bytes == frame_bytes(5_000)
    assert client.held
    rig.driver.broker.check()


def test_a_connection_that_is_still_is_not_idle() -> None:
    rig = Rig(connections_max_idle_ms=20_000)
    rig.grant(ANYBODY, producer_byte_rate=1_000)
    client, idle = rig.connect(), rig.connect()
    wait_ms = produce(client, 60_000).throttle_time_ms
    rig.advance(wait_ms)
    assert idle.closed
    assert not client.closed
    rig.advance(25_000)
    assert client.closed


def test_a_broker_with_too_much_to_answer_does_not_wait_for_who_is_still() -> None:
    """While it is full one connection at a time may send the rest of its request: not one that is
    not read anyway."""
    rig = Rig(queued_max_request_bytes=100_000)
    rig.grant({"client-id": "slow"}, producer_byte_rate=1_000)
    slow, quick = rig.connect("slow"), rig.connect("quick")
    wait_ms = produce(slow, 20_000).throttle_time_ms
    fields = Message(**produce_fields({("events", 0): batch([b"x" * 80_000])}, 1))
    whole = b"".join(encode_request(ApiKey.PRODUCE, 9, 1, "quick", fields))
    clients = rig.driver.broker.clients
    slow.send_bytes(whole[:60_000])
    quick.expect(ApiKey.PRODUCE, 9)
    quick.send_bytes(whole[:60_000])
    assert clients.full
    assert slow.held
    assert not quick.held
    quick.send_bytes(whole[60_000:])
    assert len(quick.arrived) == 1
    rig.driver.broker.check()
    rig.advance(wait_ms)
    assert not slow.held


def test_a_muted_connection_takes_its_turn_when_it_is_read_again() -> None:
    rig = Rig(queued_max_request_bytes=50_000)
    rig.grant({"client-id": "slow"}, producer_byte_rate=1_000)
    slow = rig.connect("slow")
    wait_ms = produce(slow, 20_000).throttle_time_ms
    fields = Message(**produce_fields({("events", 0): batch([b"x" * 80_000])}, 1))
    whole = b"".join(encode_request(ApiKey.PRODUCE, 9, 1, "slow", fields))
    slow.expect(ApiKey.PRODUCE, 9)
    slow.send_bytes(whole[:60_000])
    assert rig.driver.broker.clients.full
    assert slow.held
    rig.advance(wait_ms)
    assert not slow.held, "it alone keeps the broker full, and may go on"
    slow.send_bytes(whole[60_000:])
    assert len(slow.arrived) == 2


def test_only_so_many_clients_are_measured_and_none_that_has_been_silent(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas_module, "QUOTA_RATES_MAX", 5)
    assert QUOTA_RATES_MAX > 5
    rig.grant({"client-id": None}, producer_byte_rate=1_000_000)
    for number in range(20):
        produce(rig.connect(f"client-{number}"), 10)
        assert len(rig.driver.broker.quotas) <= 5
    rig.advance(11_000)
    produce(rig.connect("newcomer"), 10)
    assert len(rig.driver.broker.quotas) == 1
