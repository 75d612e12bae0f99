"""A broker keeps its clients to their quotas: who has used too much is answered at once, and then left unread for a while (KIP-219)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.config import INT_MAX
from fairlead_kafka.base.limits import QUOTA_RATES_MAX
from fairlead_kafka.base.principal import USER, Principal
from fairlead_kafka.broker import clients as clients_module
from fairlead_kafka.broker.quotas import quotas as quotas_module
from fairlead_kafka.core.events import Disconnected
from fairlead_kafka.wire import ApiKey, Message, encode_request
from tests.support.broker_driver import Client, Driver, batch, fetch_fields, produce_fields
from tests.support.quota_calls import Entity, alter_fields, alteration

ANYBODY: Entity = {"user": None}
WINDOWS_MS = 10_000
"""What a rate is measured over at first: all windows but one."""


class Rig:
    """A broker with a topic, and quotas set by an administrator whose own connection is charged as any other."""

    def __init__(self, **config: Any) -> None:
        self.driver = Driver({name.replace("_", "."): value for name, value in config.items()})
        self.driver.controller.create_topic("events", 3)
        self.admin = self.connect("admin")

    def connect(self, client_id: str | None = "driver", address: str = "driver") -> Client:
        client = self.driver.connect(address)
        client.client_id = client_id  # type: ignore[assignment]
        return client

    def session(self, client: Client) -> Any:
        return self.driver.broker.clients.sessions[client.connection]

    def grant(self, entity: Entity, **values: float | None) -> None:
        answer = self.admin.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter_fields(alteration(entity, **values)))
        assert [row.error_code for row in answer.entries] == [0], answer

    def session_lost(self, client: Client) -> None:
        """It leaves by itself."""
        self.driver.broker.receive(Disconnected(client.connection, "gone"))
        self.driver.run()

    def advance(self, milliseconds: float) -> None:
        self.driver.advance(milliseconds)
        self.driver.broker.check()


@pytest.fixture
def rig() -> Rig:
    return Rig()


def frame_bytes(size_bytes: int, version: int = 9, acks: int = 1, client_id: str | None = "driver") -> int:
    """What a Produce request of one value is charged with."""
    fields = produce_fields({("events", 0): batch([b"x" * size_bytes])}, acks)
    return sum(map(len, encode_request(ApiKey.PRODUCE, version, 1, client_id, Message(**fields)))) - 4


def produce(client: Client, size_bytes: int, version: int = 9, acks: int = 1) -> Message:
    """Produce one value; the whole answer."""
    return client.ask(ApiKey.PRODUCE, version, **produce_fields({("events", 0): batch([b"x" * size_bytes])}, acks))


def send_produce(client: Client, size_bytes: int, acks: int = 1) -> None:
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 0): batch([b"x" * size_bytes])}, acks))


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
    assert produce(rig.connect("first"), 1).throttle_time_ms > 0, "a client has no more for having two connections"


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
    """Produce requests do not wait for the answers of those before them; nor does the wait that they cause."""
    rig.driver.disk.hold_syncs = True
    rig.driver.controller.create_topic("synced", 1, configs={"flush.messages": "1"})
    rig.grant(ANYBODY, producer_byte_rate=1_000)
    client = rig.connect()
    fields = produce_fields({("synced", 0): batch([b"x" * 12_000])}, 1)
    frames = [b"".join(encode_request(ApiKey.PRODUCE, 9, number, "driver", Message(**fields))) for number in range(3)]
    client._sent += [(ApiKey.PRODUCE, 9)] * 3
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
    rig.driver.broker.quotas._rate(("producer_byte_rate", ("ANONYMOUS", None))).record(1e30, 0)
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
    """While it is full one connection at a time may send the rest of its request: not one that is not read anyway."""
    rig = Rig(queued_max_request_bytes=100_000)
    rig.grant({"client-id": "slow"}, producer_byte_rate=1_000)
    slow, quick = rig.connect("slow"), rig.connect("quick")
    wait_ms = produce(slow, 20_000).throttle_time_ms
    fields = Message(**produce_fields({("events", 0): batch([b"x" * 80_000])}, 1))
    whole = b"".join(encode_request(ApiKey.PRODUCE, 9, 1, "quick", fields))
    clients = rig.driver.broker.clients
    slow.send_bytes(whole[:60_000])
    quick._sent.append((ApiKey.PRODUCE, 9))
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
    slow._sent.append((ApiKey.PRODUCE, 9))
    slow.send_bytes(whole[:60_000])
    assert rig.driver.broker.clients.full
    assert slow.held
    rig.advance(wait_ms)
    assert not slow.held, "it alone keeps the broker full, and may go on"
    slow.send_bytes(whole[60_000:])
    assert len(slow.arrived) == 2


def test_only_so_many_clients_are_measured_and_none_that_has_been_silent(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas_module, "QUOTA_RATES_MAX", 5)
    assert QUOTA_RATES_MAX > 5
    rig.grant({"client-id": None}, producer_byte_rate=1_000_000)
    for number in range(20):
        produce(rig.connect(f"client-{number}"), 10)
        assert len(rig.driver.broker.quotas) <= 5
    rig.advance(11_000)
    produce(rig.connect("newcomer"), 10)
    assert len(rig.driver.broker.quotas) == 1


# --- consumer_byte_rate


def fetch(client: Client, offset: int = 0, **limits: Any) -> Message:
    """The whole answer."""
    return client.ask(ApiKey.FETCH, 12, **fetch_fields({("events", 0): offset}, **limits))


def filled(rig: Rig, batches: int = 10) -> None:
    for _ in range(batches):
        assert produce(rig.connect("filler"), 1_000).responses[0].partition_responses[0].error_code == 0


def test_a_consumer_over_its_quota_gets_nothing_but_a_time_to_wait(rig: Rig) -> None:
    filled(rig)
    rig.grant(ANYBODY, consumer_byte_rate=1_000)
    client = rig.connect()
    row = fetch(client).responses[0].partitions[0]
    got_bytes = len(row.records)
    assert 0 < got_bytes <= 10_000, "no more than the longest wait would pay for"
    answer = fetch(client, 5)
    assert (answer.responses, answer.error_code) == ([], 0)
    assert answer.throttle_time_ms > 0
    assert client.held
    client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 5}))
    arrived = len(client.arrived)
    rig.advance(answer.throttle_time_ms)
    assert len(client.arrived) == arrived + 1
    rig.advance(11_000)
    assert fetch(client, 5).responses[0].partitions[0].records, "what was not given was not charged"


def test_a_consumer_reads_at_its_rate(rig: Rig) -> None:
    filled(rig, 60)
    rig.grant(ANYBODY, consumer_byte_rate=2_000)
    client, offset, got_bytes, begun_ns = rig.connect(), 0, 0, rig.driver.now_ns
    one_bytes = len(batch([b"x" * 1_000]))
    while offset < 60:
        answer = fetch(client, offset, max_bytes=3_000)
        for topic in answer.responses:
            records = topic.partitions[0].records
            got_bytes += len(records)
            offset += len(records) // one_bytes
        rig.driver.advance(max(answer.throttle_time_ms, 1))
    seconds = (rig.driver.now_ns - begun_ns) / 1e9
    assert got_bytes / (seconds + 10) <= 2_000 * 1.05, "with what the first ten seconds grant at once"


def test_a_fetch_session_is_not_begun_by_an_answer_without_partitions(rig: Rig) -> None:
    filled(rig)
    rig.grant(ANYBODY, consumer_byte_rate=100)
    client = rig.connect()
    rig.driver.broker.quotas._rate(("consumer_byte_rate", ("ANONYMOUS", None))).record(2_000, 0)
    answer = fetch(client, session_epoch=0)
    assert answer.throttle_time_ms > 0
    assert (answer.session_id, answer.responses) == (0, [])
    assert len(rig.driver.broker.fetch_sessions) == 0


def test_a_fetch_session_goes_on_after_an_answer_without_partitions() -> None:
    rig = Rig()
    filled(rig)
    client = rig.connect()
    first = fetch(client, 0, session_epoch=0, max_bytes=3_000)
    assert first.session_id > 0
    rig.grant(ANYBODY, consumer_byte_rate=1_000)
    rig.driver.broker.quotas._rate(("consumer_byte_rate", ("ANONYMOUS", None))).record(20_000, 0)
    answer = fetch(client, 2, session_id=first.session_id, session_epoch=1)
    assert (answer.session_id, answer.responses, answer.error_code) == (first.session_id, [], 0)
    rig.advance(answer.throttle_time_ms + 11_000)
    fields = fetch_fields({}, session_id=first.session_id, session_epoch=2)
    last = client.ask(ApiKey.FETCH, 12, **fields)
    assert last.responses[0].partitions[0].records, "what it did not get is still news"


def test_a_fetch_that_waits_does_not_wait_for_more_than_it_could_get(rig: Rig) -> None:
    rig.grant(ANYBODY, consumer_byte_rate=300)
    reader = rig.connect()
    reader.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=60_000, min_bytes=1_000_000))
    assert not reader.arrived
    filled(rig, 3)
    assert len(reader.arrived) == 1


# --- request_percentage


class Clock:
    """Each look at it is so many nanoseconds after the one before."""

    def __init__(self, step_ns: int) -> None:
        self.step_ns = step_ns
        self.now_ns = 1

    def __call__(self) -> int:
        self.now_ns += self.step_ns
        return self.now_ns


def test_time_in_handlers_is_measured_by_the_hosts_clock(rig: Rig) -> None:
    rig.driver.broker.handler_clock = Clock(100_000_000)
    rig.grant({"client-id": "busy"}, request_percentage=1.5)
    client, other = rig.connect("busy"), rig.connect("other")
    waits = [client.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms]
    rig.advance(1)
    waits.append(client.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms)
    # 100 ms before the answer are 1 % of ten seconds; with 100 ms after it and the next 100 ms it is 3 %, and double what is granted.
    assert waits[0] == 0
    assert waits[1] == 1_000, "one window at most, as in Kafka"
    assert client.held
    assert other.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms == 0


def test_without_a_clock_nothing_takes_any_time(rig: Rig) -> None:
    rig.grant(ANYBODY, request_percentage=0.000001)
    client = rig.connect()
    for _ in range(50):
        assert client.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms == 0


def test_a_fetch_over_the_time_granted_gets_nothing(rig: Rig) -> None:
    filled(rig)
    rig.driver.broker.handler_clock = Clock(500_000_000)
    rig.grant({"client-id": "busy"}, request_percentage=1)
    client = rig.connect("busy")
    answer = fetch(client)
    assert (answer.throttle_time_ms, answer.responses) == (1_000, [])


def test_a_fetch_in_error_is_charged_for_its_time(rig: Rig) -> None:
    rig.driver.broker.handler_clock = Clock(500_000_000)
    rig.grant({"client-id": "busy"}, request_percentage=1)
    answer = fetch(rig.connect("busy"), session_id=5, session_epoch=7)
    assert answer.error_code
    assert answer.throttle_time_ms == 1_000


def test_what_brokers_ask_each_other_is_charged_to_nobody(rig: Rig) -> None:
    rig.driver.broker.handler_clock = Clock(500_000_000)
    rig.grant(ANYBODY, request_percentage=0.1)
    client = rig.connect("broker-1")
    for _ in range(3):
        client.ask(ApiKey.WRITE_TXN_MARKERS, 1, markers=[])
        assert not client.held
    assert client.ask(ApiKey.METADATA, 9, topics=[]).throttle_time_ms == 1_000


# --- controller_mutation_rate


def create(client: Client, name: str, partitions: int, version: int, **fields: Any) -> Message:
    topics = [Message(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])]
    return client.ask(ApiKey.CREATE_TOPICS, version, topics=topics, timeout_ms=1_000, validate_only=False, **fields)


def test_topics_beyond_the_quota_are_refused_until_it_is_paid_off(rig: Rig) -> None:
    rig.grant(ANYBODY, controller_mutation_rate=1)  # 11 saved up
    client = rig.connect()
    first = create(client, "a", 16, 7)
    assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0), "one request may spend more than there is"
    second = create(client, "b", 1, 7)
    assert (second.topics[0].error_code, second.throttle_time_ms) == (89, 5_000)
    assert client.held
    rig.advance(5_000)
    assert create(client, "b", 1, 7).topics[0].error_code == 0
    assert create(client, "c", 1, 7).throttle_time_ms == 1_000


def test_what_is_refused_for_other_reasons_costs_nothing(rig: Rig) -> None:
    rig.grant(ANYBODY, controller_mutation_rate=1)
    client = rig.connect()
    for _ in range(3):
        assert create(client, "events", 100, 7).topics[0].error_code == 36
    assert create(client, "a", 100, 7).topics[0].error_code == 0


def test_older_versions_create_all_of_it_and_are_throttled(rig: Rig) -> None:
    rig.grant(ANYBODY, controller_mutation_rate=1)
    client = rig.connect()
    answer = create(client, "a", 15, 5)
    assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 4_000)
    assert client.held
    rig.advance(4_000)
    answer = create(client, "b", 5, 5)
    assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 5_000)


@pytest.mark.parametrize(("version", "codes", "wait_ms"), [(2, [0, 0], 9_000), (3, [0, 89], 4_000)])
def test_partitions_are_counted_that_a_topic_gets(rig: Rig, version: int, codes: list[int], wait_ms: int) -> None:
    client = rig.connect()
    create(client, "other", 1, 7)
    rig.grant(ANYBODY, controller_mutation_rate=1)
    topics = [Message(name=name, count=count, assignments=None) for name, count in (("events", 18), ("other", 6))]
    answer = client.ask(ApiKey.CREATE_PARTITIONS, version, topics=topics, timeout_ms=1_000, validate_only=False)
    assert [row.error_code for row in answer.results] == codes
    assert answer.throttle_time_ms == wait_ms


@pytest.mark.parametrize(("version", "codes", "wait_ms"), [(4, [0, 0], 4_000), (5, [0, 89], 3_000)])
def test_partitions_are_counted_that_go(rig: Rig, version: int, codes: list[int], wait_ms: int) -> None:
    client = rig.connect()
    create(client, "large", 14, 7)
    create(client, "small", 1, 7)
    rig.grant(ANYBODY, controller_mutation_rate=1)
    answer = client.ask(ApiKey.DELETE_TOPICS, version, topic_names=["large", "small"], timeout_ms=1_000)
    assert [row.error_code for row in answer.responses] == codes
    assert answer.throttle_time_ms == wait_ms


def test_a_topic_is_not_created_on_the_way_beyond_the_quota(rig: Rig) -> None:
    rig.grant(ANYBODY, controller_mutation_rate=1)
    client = rig.connect()
    assert create(client, "a", 16, 7).topics[0].error_code == 0
    asked = {"topics": [Message(name="made")], "allow_auto_topic_creation": True}
    assert client.ask(ApiKey.METADATA, 8, **asked).topics[0].error_code == 3
    rig.advance(5_000)
    assert client.ask(ApiKey.METADATA, 8, **asked).topics[0].error_code == 0


# --- connection_creation_rate


def test_connections_above_the_rate_of_their_address_are_closed_after_a_while(rig: Rig) -> None:
    rig.grant({"ip": "10.0.0.1"}, connection_creation_rate=1)
    for _ in range(10):
        assert not rig.connect(address="10.0.0.1").held
    refused = rig.connect(address="10.0.0.1")
    assert refused.held
    refused.send_bytes(b"whatever it says")
    assert not rig.connect(address="10.0.0.2").held
    rig.advance(999)
    assert not refused.closed
    rig.advance(1)
    assert refused.closed
    rig.advance(10_000)
    assert not rig.connect(address="10.0.0.1").held, "who was refused was not counted"


def test_an_address_without_a_rate_of_its_own_has_the_default(rig: Rig) -> None:
    rig.grant({"ip": None}, connection_creation_rate=1)
    rig.grant({"ip": "10.0.0.1"}, connection_creation_rate=100)
    for _ in range(10):
        rig.connect(address="10.0.0.2")
    assert rig.connect(address="10.0.0.2").held
    for _ in range(50):
        assert not rig.connect(address="10.0.0.1").held
    rig.grant({"ip": None}, connection_creation_rate=None)
    assert not rig.connect(address="10.0.0.2").held


def test_only_so_many_are_kept_waiting_and_none_that_left(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients_module, "DELAYED_CLOSES_MAX", 2)
    rig.grant({"ip": None}, connection_creation_rate=1)
    for _ in range(10):
        rig.connect(address="10.0.0.1")
    waiting = [rig.connect(address="10.0.0.1") for _ in range(3)]
    assert [client.closed for client in waiting] == [False, False, True]
    rig.session_lost(waiting[0])
    assert not rig.connect(address="10.0.0.1").closed
    rig.advance(1_000)
    assert waiting[1].closed
    assert not waiting[0].closed, "it had left by itself"
