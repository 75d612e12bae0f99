"""What clients outlive: more requests than may wait, replicas that are not there, look-ups that
nobody waits for any more, sys.exit in code that is given to them, threads that cannot be started,
and a machine that has crashed."""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka import ProducerInterceptor
from fairlead_kafka.admin.machine import Perform
from fairlead_kafka.base.errors import AuthenticationFailed, InvalidRecord, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core import network
from fairlead_kafka.core.effects import Authenticate
from fairlead_kafka.core.events import Authenticated
from fairlead_kafka.core.pushing import GetInstanceId
from fairlead_kafka.core.script import Ask, Steps, ask_all
from fairlead_kafka.runtime import Completion, authenticating, resolver
from fairlead_kafka.runtime.authenticating import on_a_thread
from fairlead_kafka.wire import ApiKey, Message, Request
from fairlead_kafka.wire.messages import MetadataRequest
from tests.support.client_rig import Rig
from tests.support.producer_rig import Rig as ProducerRig

T0 = TopicPartition("t", 0)


@pytest.fixture
def rig() -> Rig:
    made = Rig(nodes=2)
    made.cluster.topic("t", 1)
    made.cluster.write("t", 0, [b"a", b"b"])
    return made


@pytest.fixture
def producing() -> ProducerRig:
    made = ProducerRig(brokers=1)
    made.cluster.create("t", 2)
    return made


def refuse_once(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """The next thread that `module` starts is one too many for the system."""

    class Refused(threading.Thread):
        def start(self) -> None:
            monkeypatch.undo()
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module.threading, "Thread", Refused)


@pytest.mark.parametrize("above", [0, 1])
def test_a_call_that_takes_more_requests_than_may_wait_is_refused_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, above: int
) -> None:
    """As a call that names 10,001 groups, each of which has its coordinator looked for."""
    monkeypatch.setattr(network, "REQUESTS_QUEUED_MAX", 100)
    asks = [Ask(ApiKey.METADATA, MetadataRequest(topics=[])) for _ in range(100 + above)]

    def script() -> Steps[int]:
        return len((yield from ask_all(asks)))

    with rig.admin() as admin:
        done = Completion[int]()
        operation = Perform(done, rig.host.now_ns() + 600 * 10**9, "asking", lambda _metadata: script())
        rig.host.submit(admin._calls.host.handle, operation)  # type: ignore[attr-defined]
        rig.host.run_until(done.done, 600_000)
        if above:
            with pytest.raises(UsageError, match="takes 101 requests at once, and 100 more may wait: name"):
                done.result(0)
            assert not rig.cluster.asked(ApiKey.METADATA), "nothing was sent for it"
        else:
            assert done.result(0) == len(asks)
        assert list(admin.list_topics()) == ["t"]


def redirect(node: Any, replica: int) -> None:
    """Have a leader name this replica in its first 20 answers."""
    fetch, left = node._fetch, list(range(20))

    def redirected(request: Request) -> Message:
        answer = fetch(request)
        if left:
            left.pop()
            for topic in answer.responses:
                for row in topic.partitions:
                    row.preferred_read_replica, row.records = replica, None
        return answer

    node.answers[ApiKey.FETCH] = redirected


def read_from_the_leader_without_haste(rig: Rig) -> None:
    """Read both records of a partition, whose replica is given up after some tries."""
    with rig.consumer(client_rack="r1", auto_offset_reset="earliest", fetch_max_wait_ms=0) as consumer:
        consumer.assign([T0])
        began_ns = rig.host.now_ns()
        while not (records := consumer.poll(1.0)):
            assert rig.host.now_ns() - began_ns < 60 * 10**9
        assert [record.value for record in records] == [b"a", b"b"]
        assert rig.host.now_ns() - began_ns > 19 * 50 * 10**6, "a back-off each"


@pytest.mark.parametrize("code", [78, 56])
def test_a_replica_that_answers_with_errors_is_left_to_its_leader_without_haste(rig: Rig, code: int) -> None:
    leader, replica = rig.cluster.nodes
    other = replica._fetch

    def failing(request: Request) -> Message:
        answer = other(request)
        for topic in answer.responses:
            for row in topic.partitions:
                row.error_code, row.records = code, None
        return answer

    redirect(leader, replica.node_id)
    replica.answers[ApiKey.FETCH] = failing
    read_from_the_leader_without_haste(rig)


@pytest.mark.parametrize("known", [False, True], ids=["unknown", "unreachable"])
def test_a_replica_that_cannot_be_read_is_left_to_its_leader_without_haste(rig: Rig, known: bool) -> None:
    node = rig.cluster.nodes[0]
    metadata = node._metadata

    def with_another(request: Request) -> Message:
        answer = metadata(request)
        answer.brokers.append(Message(node_id=7, host="127.0.0.1", port=1, rack=None))
        return answer

    redirect(node, 7)
    if known:
        node.answers[ApiKey.METADATA] = with_another
    read_from_the_leader_without_haste(rig)


def test_positions_of_what_is_not_assigned_any_more_are_looked_up_no_longer(rig: Rig) -> None:
    with rig.consumer(auto_offset_reset="earliest", allow_auto_create_topics=False) as consumer:
        for number in range(20):
            consumer.assign([TopicPartition(f"nowhere-{number}", 0)])
            consumer.poll(0.1)
        consumer.assign([T0])
        assert len(consumer.poll(1)) == 2
        rig.host.advance(1_000)
        assert not rig.opener.machine._scripts._runs
        asked = len(rig.cluster.asked(ApiKey.METADATA))
        consumer.poll(60)
        assert len(rig.cluster.asked(ApiKey.METADATA)) <= asked + 1


def test_a_pattern_of_bytes_is_refused_at_once(rig: Rig) -> None:
    with rig.consumer(group_id="g") as consumer:
        with pytest.raises(UsageError, match="names of topics are text"):
            consumer.subscribe(re.compile(b"t"))  # type: ignore[arg-type]
        consumer.assign([T0])


class _Exits(ProducerInterceptor):
    def on_acknowledgement_table(self, topic: str, results: Any) -> None:
        raise SystemExit(1)


def test_sys_exit_in_an_interceptor_leaves_the_producer(producing: ProducerRig) -> None:
    with producing.producer({"interceptor.classes": [_Exits()]}) as producer:
        for _ in range(2):
            assert producer.send_table("t", pa.table({"value": [b"v"]})).result(10) is not None


def test_sys_exit_in_a_partitioner_fails_its_records_alone(producing: ProducerRig) -> None:
    def exits(*_arguments: Any) -> None:
        raise SystemExit(1)

    with producing.producer({"partitioner.class": exits}) as producer:
        with pytest.raises(InvalidRecord, match="the partitioner failed"):
            producer.send("t", b"v", key=b"k").result(10)
        assert producer.send("t", b"v", partition=1).result(10).partition == 1


def test_sys_exit_in_a_callback_of_a_result_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def exits(_done: object) -> None:
        raise SystemExit(1)

    completion = Completion[int]()
    completion.add_done_callback(exits)
    completion.set_result(1)
    assert completion.result(0) == 1
    assert "a callback of a finished operation raised" in caplog.text


def test_a_log_in_is_answered_whatever_its_provider_raises_or_if_there_is_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Provider:
        blocking = True

        def next(self, _challenge: bytes | None) -> bytes | None:
            raise SystemExit("the helper gave up")

    class Transport:
        def authenticator(self, _host: str) -> Provider:
            return Provider()

    delivered = list[Authenticated]()
    arrived = threading.Semaphore(0)

    def post(done: Any) -> None:
        done()
        arrived.release()

    handle: Any = SimpleNamespace(transport=Transport(), host="h", listener=None, authenticator=None)
    aside = on_a_thread(post)
    for _ in range(2):
        authenticating.authenticate(
            handle, handle, Authenticate(1, None), lambda _handle, event: delivered.append(event), aside
        )
        assert arrived.acquire(timeout=10)
        refuse_once(monkeypatch, authenticating)
    raised, refused = (event.error for event in delivered)
    assert isinstance(raised, AuthenticationFailed)
    assert "SystemExit: the helper gave up" in str(raised)
    assert "no thread could be started" in str(refused)
    aside(arrived.release, lambda: None)
    assert arrived.acquire(timeout=10), "the next one has a thread"


def test_a_name_is_looked_up_again_after_there_was_no_thread_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[str]()
    arrived = threading.Event()
    names = resolver.Resolver(lambda done: (done(), arrived.set()))
    refuse_once(monkeypatch, resolver)
    names.resolve("nowhere.invalid", 1, lambda _addresses, reason: found.append(reason))
    names.resolve("nowhere.invalid", 1, lambda _addresses, reason: found.append(reason))
    assert arrived.wait(60)
    assert found[0] == "name not resolved: can't start new thread"
    assert found[1].startswith("name not resolved: ")


def test_a_producer_whose_machine_has_crashed_is_closed_as_often_as_one_likes(producing: ProducerRig) -> None:
    producer = producing.producer()
    producing.machine(producer).step = lambda *_: 1 / 0
    producer.send("t", b"v")
    with pytest.raises(ZeroDivisionError):
        producing.host.advance(100)
    with pytest.raises(UsageError, match="failed earlier"):
        producer.close(timeout_s=5)
    began = time.monotonic()
    producer.close(timeout_s=60)
    assert time.monotonic() - began < 30


def test_an_admin_client_whose_machine_has_crashed_is_closed(rig: Rig) -> None:
    admin = rig.admin()
    admin._calls.host.machine.step = lambda *_: 1 / 0  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        admin.list_topics(timeout_s=1)
    admin.close()


def test_close_may_wait_for_ever(producing: ProducerRig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    until_ns = producing.host.now_ns() + 5 * 10**9
    producing.cluster.on_produce = lambda *_: 19 if producing.host.now_ns() < until_ns else 0
    producer = producing.producer()
    ack = producer.send("t", b"v")
    assert producer.close(timeout_s=math.inf) == {}
    assert ack.result(0).partition == 0
    assert "for as long as it takes" in caplog.text


def test_who_asks_for_the_clients_id_is_answered_if_the_machine_crashes(producing: ProducerRig) -> None:
    machine = producing.machine(producing.producer())
    asked = Completion[Any]()
    machine._operating.append(GetInstanceId(asked, 2**62))
    answered = [effect.completion for effect in machine.crashed(RuntimeError("a bug"))]
    assert asked in answered
