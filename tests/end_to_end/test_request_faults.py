"""Faults by request, with our own clients and by hand: what is answered, lost, held and counted."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairlead_kafka import Admin, BrokerError, Consumer, NewTopic, Producer, TopicPartition
from fairlead_kafka.base.errors import TimedOut, UsageError
from fairlead_kafka.testing import ApiKey, Cluster, ErrorCode, SeenRequest
from fairlead_kafka.wire import Message
from tests.support.broker_driver import batch, fetch_fields, produce_fields
from tests.support.waiting import PATIENCE_S, until
from tests.support.wire_client import Wire, append, read


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(1, config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    assert shared.faults == []


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"\W", "-", request.node.name)
    cluster.create_topic(name, 2)
    return name


def producer(cluster: Cluster, **config: object) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap_servers, "retry.backoff.ms": 1, **config})


def test_errors_are_answered_in_order_and_the_client_sends_again(cluster: Cluster, topic: str) -> None:
    seen: list[SeenRequest] = []
    with (
        cluster.on(ApiKey.PRODUCE, topic=topic).observe(seen),
        cluster.on("produce", topic=topic).answer(ErrorCode.NOT_ENOUGH_REPLICAS, times=2) as first,
        cluster.on(ApiKey.PRODUCE, topic=topic).answer("REQUEST_TIMED_OUT", times=1) as second,
        producer(cluster) as sender,
    ):
        assert sender.send(topic, b"once", partition=0).result(PATIENCE_S).offset == 0
        first.wait(PATIENCE_S)
        assert (first.hits, second.hits) == (2, 1)
        assert not first.active
    assert read(cluster, topic) == [b"once"]
    assert len(seen) == 4
    assert {(each.api, each.principal, each.broker) for each in seen} == {
        (ApiKey.PRODUCE, "User:ANONYMOUS", 0)
    }


def test_only_the_partition_that_is_named_is_refused(cluster: Cluster, topic: str) -> None:
    with (
        cluster.on(ApiKey.PRODUCE, topic=topic, partition=1).answer(
            "TOPIC_AUTHORIZATION_FAILED", message="no"
        ),
        Wire(cluster.broker(0).address) as wire,
    ):
        fields = produce_fields({(topic, 0): batch([b"a"]), (topic, 1): batch([b"b"])})
        (answered,) = wire.ask(ApiKey.PRODUCE, 9, **fields).responses
        rows = {
            row.index: (row.error_code, row.base_offset, row.error_message)
            for row in answered.partition_responses
        }
        assert rows == {
            0: (0, 0, None),
            1: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1, "no"),
        }
    assert read(cluster, topic) == [b"a"]


def test_the_answer_is_lost_and_the_record_is_there_once(cluster: Cluster, topic: str) -> None:
    with (
        cluster.on(ApiKey.PRODUCE, topic=topic).disconnect(times=1, served=True) as fault,
        producer(cluster) as sender,
    ):
        assert sender.send(topic, b"once", partition=0).result(PATIENCE_S).offset == 0
        assert fault.hits == 1
    assert read(cluster, topic) == [b"once"]


def test_without_idempotence_a_lost_answer_makes_a_duplicate(cluster: Cluster, topic: str) -> None:
    config = {"enable.idempotence": False, "acks": "all"}
    with (
        cluster.on(ApiKey.PRODUCE, topic=topic).disconnect(times=1, served=True),
        producer(cluster, **config) as sender,
    ):
        sender.send(topic, b"twice", partition=0).result(PATIENCE_S)
    assert read(cluster, topic) == [b"twice", b"twice"]


def test_a_request_that_is_dropped_is_not_served_and_times_out(cluster: Cluster, topic: str) -> None:
    with (
        cluster.on(ApiKey.PRODUCE, topic=topic).drop(times=1) as fault,
        producer(cluster, **{"request.timeout.ms": 300}) as sender,
    ):
        assert sender.send(topic, b"later", partition=0).result(PATIENCE_S).offset == 0
        assert fault.hits == 1


def test_a_request_is_held_until_the_fault_is_removed(cluster: Cluster, topic: str) -> None:
    with producer(cluster) as sender:
        with cluster.on(ApiKey.PRODUCE, topic=topic).hold() as fault:
            sent = sender.send(topic, b"held", partition=0)
            fault.wait(PATIENCE_S)
            assert read(cluster, topic) == []
            assert not sent.done()
        assert sent.result(PATIENCE_S).offset == 0


def test_a_held_connection_may_end(cluster: Cluster, topic: str) -> None:
    with (
        cluster.on(ApiKey.METADATA, client_id="wire").hold() as fault,
        Wire(cluster.broker(0).address) as wire,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(wire.ask, ApiKey.METADATA, 8, topics=None, allow_auto_topic_creation=False)
        fault.wait(PATIENCE_S)
        wire._socket.shutdown(2)
        with pytest.raises(ConnectionError):
            asked.result(PATIENCE_S)
    assert read(cluster, topic) == []


def test_an_answer_is_late(cluster: Cluster, topic: str) -> None:
    with cluster.on(ApiKey.PRODUCE, topic=topic).delay(150) as fault, producer(cluster) as sender:
        sent = sender.send(topic, b"late", partition=0)
        fault.wait(PATIENCE_S)
        until(lambda: read(cluster, topic) == [b"late"])  # it is served at once
        assert sent.result(PATIENCE_S).offset == 0


def test_an_answer_of_the_test_s_own(cluster: Cluster, topic: str) -> None:
    def one_broker_less(request: SeenRequest) -> Message | None:
        return (
            Message(brokers=[], cluster_id="mine", controller_id=-1, topics=[])
            if request.version == 8
            else None
        )

    with cluster.on(ApiKey.METADATA).answer_with(one_broker_less), Wire(cluster.broker(0).address) as wire:
        mine = wire.ask(ApiKey.METADATA, 8, topics=None, allow_auto_topic_creation=False)
        assert mine.cluster_id == "mine"
        assert wire.ask(ApiKey.METADATA, 9, topics=None).cluster_id == cluster.cluster_id


def test_after_lets_some_pass_and_where_asks_the_test(cluster: Cluster, topic: str) -> None:
    def last(request: SeenRequest) -> bool:
        return b"c" in bytes(request.message.topic_data[0].partition_data[0].records)  # type: ignore[attr-defined]

    on = cluster.on(ApiKey.PRODUCE, topic=topic)
    with (
        on.answer("MESSAGE_TOO_LARGE", after=1, times=1) as second,
        cluster.on(ApiKey.PRODUCE, where=last).answer("INVALID_RECORD") as third,
        Wire(cluster.broker(0).address) as wire,
    ):
        codes = []
        for value in (b"a", b"b", b"c", b"d"):
            answer = wire.ask(ApiKey.PRODUCE, 9, **produce_fields({(topic, 0): batch([value])}))
            codes.append(answer.responses[0].partition_responses[0].error_code)
        assert codes == [0, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, 0]
        assert (second.hits, third.hits) == (1, 1)


def test_a_fetch_session_is_met_though_its_requests_name_nothing(cluster: Cluster, topic: str) -> None:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "earliest"}
    with producer(cluster) as sender, Consumer(config) as reader:
        both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        reader.assign(both)
        for number in (0, 1):
            sender.send(topic, b"before", partition=number).result(PATIENCE_S)
        got: list[tuple[int, bytes | None]] = []

        def poll() -> None:
            got.extend((record.partition, record.value) for record in reader.poll(0.1))

        until(lambda: poll() or len(got) == 2)
        on = cluster.on(ApiKey.FETCH, topic=topic, partition=1)
        with on.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER) as fault:
            fault.wait(PATIENCE_S)
            for number in (0, 1):
                sender.send(topic, b"after", partition=number).result(PATIENCE_S)
            until(lambda: poll() or len(got) == 3)
            fault.wait(PATIENCE_S, hits=fault.hits + 2)
            assert got[2] == (0, b"after")
        until(lambda: poll() or len(got) == 4)
        assert got[3] == (1, b"after")


def test_a_group_s_fault_is_that_group_s(cluster: Cluster, topic: str) -> None:
    with cluster.on(ApiKey.OFFSET_FETCH, group="refused").answer("GROUP_AUTHORIZATION_FAILED"):
        for group, refused in (("refused", True), ("other", False)):
            config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group}
            with Consumer(config) as reader:
                if refused:
                    with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
                        reader.committed([TopicPartition(topic, 0)])
                else:
                    reader.committed([TopicPartition(topic, 0)])


def test_an_admin_s_request_is_refused_by_topic(cluster: Cluster) -> None:
    with (
        Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin,
        cluster.on(ApiKey.CREATE_TOPICS, topic="no").answer("POLICY_VIOLATION", message="not on a Friday"),
    ):
        with pytest.raises(BrokerError, match="not on a Friday"):
            admin.create_topics([NewTopic("no", 1), NewTopic("yes-by-request", 1)])
        until(lambda: cluster.has_topic("yes-by-request"))
        assert not cluster.has_topic("no")


def test_restore_removes_all(cluster: Cluster, topic: str) -> None:
    cluster.on(ApiKey.PRODUCE).answer("UNKNOWN_SERVER_ERROR")
    cluster.on().delay(1)
    assert len(cluster.faults) == 2
    cluster.restore()
    with Wire(cluster.broker(0).address) as wire:
        assert append(wire, topic, b"a") == 0


def test_a_function_that_raises_is_told_by_wait(cluster: Cluster, topic: str) -> None:
    def wrong(request: SeenRequest) -> bool:
        raise KeyError("oops")

    with cluster.on(ApiKey.METADATA, client_id="wire", where=wrong).drop() as fault:
        with Wire(cluster.broker(0).address) as wire, pytest.raises(ConnectionError):
            wire.ask(ApiKey.METADATA, 8, topics=None, allow_auto_topic_creation=False)
        with pytest.raises(UsageError, match=r"METADATA.*KeyError\('oops'\)"):
            fault.wait(PATIENCE_S)


def test_waiting_for_what_does_not_come_says_how_much_came(cluster: Cluster) -> None:
    with (
        cluster.on(ApiKey.PRODUCE, topic="t").drop(times=2) as fault,
        pytest.raises(
            TimedOut, match=r"<fault on PRODUCE, topic='t': drop>: 0 of 2 requests came within 0 s"
        ),
    ):
        fault.wait(0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda c: c.on("PRODUSE"), "on: brokers serve no API 'PRODUSE'; did you mean PRODUCE?"),
        (
            lambda c: c.on(4711),
            "on: brokers serve no API 4711; docs/reference/protocol.md lists those that are served",
        ),
        (
            lambda c: c.on(ApiKey.HEARTBEAT, topic="t"),
            "on: a request of HEARTBEAT names no topic; it names group",
        ),
        (
            lambda c: c.on(ApiKey.API_VERSIONS, group="g"),
            "on: a request of API_VERSIONS names no group; it names nothing of the kind",
        ),
        (lambda c: c.on(broker=3), "there is no broker 3; this cluster has 0 to 0"),
        (
            lambda c: c.on(principal="alice"),
            "on: a principal is written Type:name, such as User:alice, got 'alice'",
        ),
        (lambda c: c.on().answer(0), "answer: NONE is no error; answer_with gives an answer of your own"),
        (
            lambda c: c.on().answer("NOT_ENOUGH_REPLICA"),
            "answer: Kafka has no error 'NOT_ENOUGH_REPLICA'; did you mean NOT_ENOUGH_REPLICAS? "
            "(ErrorCode has them by name)",
        ),
        (lambda c: c.on().drop(times=0), "times: must be 1 or more, or None for every request, got 0"),
        (lambda c: c.on().drop(after=-1), "after: must be 0 or more, got -1"),
        (lambda c: c.on().delay(-1), "delay: must be 0 to 86400000 ms, got -1"),
    ],
)
def test_what_is_wrong_is_said_at_once(
    cluster: Cluster, make: Callable[[Cluster], object], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        make(cluster)
    assert str(caught.value) == said


def test_brokers_in_processes_say_why_not() -> None:
    with Cluster(1, processes=True) as cluster:
        with pytest.raises(UsageError, match="leave processes=True out"):
            cluster.on(ApiKey.PRODUCE)
        with pytest.raises(UsageError, match="leave processes=True out"):
            _ = cluster.clock


def test_faults_survive_a_restart_of_the_broker(cluster: Cluster, topic: str) -> None:
    with cluster.on(ApiKey.PRODUCE, topic=topic).answer("INVALID_RECORD"):
        cluster.broker(0).kill()
        cluster.broker(0).start()
        with Wire(cluster.broker(0).address) as wire:
            answer = wire.ask(ApiKey.PRODUCE, 9, **produce_fields({(topic, 0): batch([b"a"])}))
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD


def test_rules_are_made_and_removed_while_requests_come(cluster: Cluster, topic: str) -> None:
    stop = threading.Event()

    def make() -> None:
        while not stop.is_set():
            with cluster.on(ApiKey.FETCH, topic=topic).delay(0):
                pass

    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(make)
        try:
            with Wire(cluster.broker(0).address) as wire:
                for _ in range(200):
                    assert wire.ask(ApiKey.FETCH, 12, **fetch_fields({(topic, 0): 0})).error_code == 0
        finally:
            stop.set()
        making.result(PATIENCE_S)
