"""What the controller and the brokers that follow it outlive: bytes from anybody, timers and
decisions that raise once, a log that cannot be written just then, and what changed meanwhile."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import Node
from fairlead_kafka.broker import Broker, Controller, Faults, SetFaults, StartBroker
from fairlead_kafka.broker.control import ControllerServer
from fairlead_kafka.broker.control.frames import Kind, frame
from fairlead_kafka.broker.controller import (
    AllocateProducerIds,
    AlterBrokerConfigs,
    AlterOperation,
    AlterPartitions,
    BrokerStarted,
    ConfigAlteration,
    DeleteTopics,
)
from fairlead_kafka.broker.controller.brokers import Brokers
from fairlead_kafka.broker.controller.controller import DECIDERS
from fairlead_kafka.broker.controller.leadership import Leadership
from fairlead_kafka.core.effects import Close
from fairlead_kafka.core.events import Accepted, Received
from fairlead_kafka.runtime import Completion, VirtualHost
from fairlead_kafka.wire import ApiKey
from tests.support.broker_driver import batch, produce_fields
from tests.support.remote_cluster import RemoteCluster
from tests.support.virtual_cluster import VirtualCluster

S = 1_000


@pytest.fixture
def cluster() -> Iterator[RemoteCluster]:
    made = RemoteCluster()
    yield made
    made.host.close()


def alive(cluster: RemoteCluster) -> list[int]:
    image = cluster.controller.image
    return [node_id for node_id in sorted(image.brokers) if image.is_alive(node_id)]


def raising_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which raises the first time it is called."""
    left = [RuntimeError("a bug")]

    def called(*arguments: Any) -> Any:
        if left:
            raise left.pop()
        return function(*arguments)

    return called


@pytest.mark.parametrize(
    "content",
    [b"[]", b"1", b"null", b'"x"', b"[" * 200_000, b"\xff", b"{}", b'{"token":"token","node_id":Infinity}',
     b'{"token":"token"}', b'{"token":"token","node_id":"1"}'],
    ids=lambda content: content[:40].decode("latin-1"),
)  # fmt: skip
def test_what_anybody_sends_ends_the_connection_alone(content: bytes) -> None:
    controller = Controller(BROKER_CONFIGS.parse("broker", {}), random.Random(1))
    server = ControllerServer(controller, "token")
    for connection in (-1, -2):
        server.receive(Accepted(connection, 1, "anybody"))
    server.receive(Received(-1, b"".join(frame(Kind.JOIN, content))))
    closed = [effect.connection for effect in server.step(10**9, 0) if isinstance(effect, Close)]
    assert closed == [-1]
    server.receive(Received(-2, b"".join(frame(Kind.JOIN, b'{"token":"token","node_id":1}'))))
    assert not [effect for effect in server.step(2 * 10**9, 0) if isinstance(effect, Close)]


@pytest.mark.parametrize("kind", [Leadership, Brokers])
def test_a_timer_of_the_controller_that_raises_runs_again(cluster: RemoteCluster, kind: type[Any]) -> None:
    """Before a broker dies, so that its partitions have to be given away by it."""
    with patch.object(kind, "tick", raising_once(kind.tick)):
        cluster.controller.create_topic("events", assignments={0: [2, 0, 1]})
        cluster.host.advance(400 * S)
    assert not cluster.serving.ended
    assert cluster.server.guard.errors == 1
    cluster.die(2)
    cluster.host.advance(10 * S)
    assert cluster.controller.image.topics["events"].partitions[0].leader in (0, 1)


def test_a_broker_whose_end_cannot_be_noted_is_fenced_a_little_later(cluster: RemoteCluster) -> None:
    with patch.object(Brokers, "stopped", raising_once(Brokers.stopped)):
        cluster.die(2)
        cluster.host.advance(2 * S)
    assert (cluster.serving.ended, cluster.server.guard.errors, alive(cluster)) == (False, 1, [0, 1])


def test_an_election_that_could_not_be_written_is_made_later_without_any_member() -> None:
    full = False

    def write(_line: bytes) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")

    host = VirtualHost()
    controller = Controller(BROKER_CONFIGS.parse("broker", {}), random.Random(1), write, write)
    server = ControllerServer(controller, "token")
    handle = host.add(server)
    server.wake = lambda: host.wake(handle)
    for node_id in (1, 2):
        controller.broker_started(Node(node_id, "localhost", 9092))
    controller.create_topic("events", assignments={0: [1, 2]})
    host.advance(12 * S)
    full = True
    controller.detach(1)
    full = False
    host.advance(2 * S)
    assert controller.image.topics["events"].partitions[0].leader == 2
    host.close()


def test_a_broker_that_cannot_be_fenced_at_all_keeps_no_other_from_it(cluster: RemoteCluster) -> None:
    sound, ticks = Brokers.stopped, list[int]()

    def stopped(brokers: Brokers, node_id: int) -> None:
        if node_id == 0:
            raise RuntimeError("a bug")
        sound(brokers, node_id)

    def tick(leadership: Leadership, now_ns: int) -> None:
        ticks.append(now_ns)

    with patch.object(Brokers, "stopped", stopped), patch.object(Leadership, "tick", tick):
        cluster.die(0)
        cluster.die(1)
        cluster.host.advance(30 * S)
        assert alive(cluster) == [0, 2]
        assert 25 <= len(ticks) <= 60, "once a second, and with what else happens"


def test_a_broker_whose_link_is_lost_as_it_returns_registers_once_when_it_is_back(
    cluster: RemoteCluster,
) -> None:
    cluster.faults(2, Faults(cut_from_controller=True))
    cluster.host.advance(10 * S)
    cluster.faults(2, Faults())
    cluster.host.run_until(lambda: cluster.views[2]._asked)
    cluster.faults(2, Faults(cut_from_controller=True))
    cluster.faults(2, Faults())
    cluster.host.advance(500)
    assert alive(cluster) == [0, 1, 2]
    epoch = cluster.controller.image.brokers[2].epoch
    cluster.host.advance(20 * S)
    assert cluster.controller.image.brokers[2].epoch == epoch


def test_a_broker_that_returns_is_told_of_deleted_topics_before_all_else(cluster: RemoteCluster) -> None:
    """A change of brokers' configs concerns every topic that a broker knows of."""
    cluster.controller.create_topic("events", assignments={0: [0, 1, 2]})
    cluster.host.advance(100)
    for node_id, broker in cluster.brokers.items():
        assert broker.partitions.topic_of(cluster.views[node_id].image.topics["events"].topic_id)
    cluster.faults(2, Faults(cut_from_controller=True))
    cluster.decided(0, DeleteTopics(["events"]))
    change = ConfigAlteration("message.max.bytes", AlterOperation.SET, "2000000")
    cluster.decided(0, AlterBrokerConfigs("", [change]))
    cluster.faults(2, Faults())
    cluster.host.advance(20 * S)
    assert [handle.ended for handle in cluster.handles.values()] == [False] * 3
    assert alive(cluster) == [0, 1, 2]
    assert cluster.brokers[2].settings["message.max.bytes"] == 2_000_000


def test_a_broker_that_returns_while_the_controllers_disk_is_full_is_let_in_later(
    cluster: RemoteCluster,
) -> None:
    full = False

    def write(_data: bytes) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")

    with (
        patch.object(cluster.controller.journal, "_append", write),
        patch.object(cluster.controller.journal, "_replace", write),
    ):
        cluster.faults(2, Faults(cut_from_controller=True))
        cluster.host.advance(10 * S)
        assert alive(cluster) == [0, 1]
        full = True
        cluster.faults(2, Faults())
        cluster.host.advance(5 * S)
        assert alive(cluster) == [0, 1]
        full = False
        cluster.host.advance(2 * S)
    assert alive(cluster) == [0, 1, 2]


def test_a_request_whose_decision_raises_is_answered_and_the_next_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(DECIDERS, AllocateProducerIds, raising_once(DECIDERS[AllocateProducerIds]))
    cluster = VirtualCluster(1)

    def initialized() -> int:
        fields = {"transactional_id": None, "transaction_timeout_ms": 60_000}
        asked = cluster.ask(0, ApiKey.INIT_PRODUCER_ID, 4, producer_id=-1, producer_epoch=-1, **fields)
        return int(asked.error_code)

    assert initialized() == ErrorCode.UNKNOWN_SERVER_ERROR
    assert initialized() == ErrorCode.NONE
    assert cluster.controller.guard.errors == 1
    cluster.close()


def test_a_start_whose_decision_raises_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DECIDERS, BrokerStarted, raising_once(DECIDERS[BrokerStarted]))
    host = VirtualHost(latency_ms=0)
    controller = Controller(BROKER_CONFIGS.parse("broker", {}), random.Random(7))
    for number, said in enumerate(["the controller failed in BrokerStarted", None]):
        handle = host.add(Broker(0, controller, "/data/0", random.Random(number), port=9092))
        started = Completion[Any]()
        host.submit(handle, StartBroker(started))
        host.run_until(started.done)
        if said is None:
            started.result(0)
        else:
            with pytest.raises(BrokerError, match=said):
                started.result(0)
            host.remove(handle)
    host.close()


@pytest.mark.parametrize("times", [1, 10])
def test_replicas_in_sync_are_proposed_again_if_the_decision_raised(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    proposed = list[int]()
    sound = DECIDERS[AlterPartitions]

    def decide(controller: Controller, decision: AlterPartitions) -> Any:
        proposed.append(len(decision.changes))
        if len(proposed) <= times:
            raise RuntimeError("a bug")
        return sound(controller, decision)

    monkeypatch.setitem(DECIDERS, AlterPartitions, decide)
    cluster = VirtualCluster(3, {"replica.lag.time.max.ms": 2_000})
    cluster.controller.create_topic("events", assignments={0: [0, 1, 2]})
    cluster.host.advance(500)
    for node_id, other in ((0, 2), (2, 0)):
        done = Completion[None]()
        cluster.host.submit(cluster.handles[node_id], SetFaults(Faults(cut_from=frozenset({other})), done))
        cluster.host.run_until(done.done)
    fields = produce_fields({("events", 0): batch([b"v"])}) | {"timeout_ms": 3_600_000}
    asked = cluster.send(0, ApiKey.PRODUCE, 9, **fields)
    cluster.host.advance(10 * S)
    assert cluster.controller.image.topics["events"].partitions[0].isr == (0, 1)
    assert asked.answer is not None
    assert proposed == [1] * (times + 1)
    cluster.close()


def test_a_running_broker_that_is_refused_says_so(
    cluster: RemoteCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.server._token = "another"
    cluster.faults(2, Faults(cut_from_controller=True))
    cluster.host.advance(10 * S)
    cluster.faults(2, Faults())
    cluster.host.advance(10 * S)
    assert (
        "broker 2 is not let in again, and takes no part: the controller does not let broker" in caplog.text
    )
    assert alive(cluster) == [0, 1]


def test_a_decision_that_raises_is_logged_once_a_minute_and_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def decide(_controller: Controller, _decision: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setitem(DECIDERS, AllocateProducerIds, decide)
    cluster = VirtualCluster(1)
    fields = {"transactional_id": None, "transaction_timeout_ms": 60_000}
    for _ in range(4):
        cluster.ask(0, ApiKey.INIT_PRODUCER_ID, 4, producer_id=-1, producer_epoch=-1, **fields)
        cluster.host.advance(35 * S)
    assert caplog.text.count("failed in something done for the decision AllocateProducerIds: a bug") == 2
    assert cluster.brokers[0].errors == 4
    cluster.close()
