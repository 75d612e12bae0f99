"""A cluster with a process for each broker: real `kill -9`, the same faces, and nothing left
behind."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import ConfigError, ConnectionFailed, FairleadError, UsageError
from fairlead_kafka.cli.cluster import _serve
from fairlead_kafka.testing import Cluster
from fairlead_kafka.testing.channel import Channel
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, produce_fields
from tests.support.command_line import start
from tests.support.waiting import PATIENCE_S, until
from tests.support.wire_client import Wire, addresses, create, read, write

CONFIG = {"broker.session.timeout.ms": 3_000, "broker.heartbeat.interval.ms": 200}


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(brokers=3, processes=True, config=CONFIG) as made:
        yield made


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    for broker in shared.brokers:
        broker.start()
        broker.heal()
    await_alive(shared, {0, 1, 2})


def alive(cluster: Cluster, ask: int = 0) -> set[int]:
    """Who lives, as one broker tells its clients."""
    with Wire(addresses(cluster)[ask]) as wire:
        return {broker.node_id for broker in wire.ask(ApiKey.METADATA, 8, topics=[]).brokers}


def await_alive(cluster: Cluster, wanted: set[int]) -> None:
    until(lambda: alive(cluster) == wanted)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def topic_led_by(cluster: Cluster, node_id: int, name: str) -> str:
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "configs": []}
    assigned = [Message(partition_index=0, broker_ids=[node_id])]
    with Wire(addresses(cluster)[0]) as wire:
        answer = wire.ask(
            ApiKey.CREATE_TOPICS,
            5,
            topics=[Message(**topic, assignments=assigned)],
            timeout_ms=1_000,
            validate_only=False,
        )
    assert answer.topics[0].error_code == 0, answer
    await_leader(cluster, name, node_id)
    return name


def await_leader(cluster: Cluster, topic: str, node_id: int) -> None:
    """Wait until every broker has heard that `node_id` leads partition 0."""

    def leader(ask: int) -> int:
        with Wire(addresses(cluster)[ask]) as wire:
            topics = wire.ask(
                ApiKey.METADATA, 8, topics=[Message(name=topic)], allow_auto_topic_creation=False
            ).topics
        return int(topics[0].partitions[0].leader_id) if topics[0].partitions else -1

    until(lambda: [leader(ask) for ask in range(3)] == [node_id] * 3)


def produce(cluster: Cluster, node_id: int, topic: str) -> int:
    """Produce a record to partition 0 on its leader; the error code."""
    with Wire(addresses(cluster)[node_id]) as wire:
        answer = wire.ask(ApiKey.PRODUCE, 9, **produce_fields({(topic, 0): batch([b"a"])}))
    return int(answer.responses[0].partition_responses[0].error_code)


def test_each_broker_is_a_process_and_each_start_another_one(cluster: Cluster) -> None:
    pids = [broker.pid for broker in cluster.brokers]
    assert len({os.getpid(), *pids}) == 4
    cluster.broker(1).kill()
    assert gone(pids[1] or 0)
    assert cluster.broker(1).pid is None
    assert not cluster.broker(1).running
    cluster.broker(1).start()
    assert cluster.broker(1).pid not in (None, pids[1])


def test_memory_in_use_is_that_of_the_broker_s_own_process(cluster: Cluster) -> None:
    found = cluster.broker(2).memory_use()
    assert found is not None
    assert found.blocks > 100_000
    assert found.heap_bytes is None or found.heap_bytes > 2**20
    cluster.broker(2).kill()
    assert cluster.broker(2).memory_use() is None
    cluster.broker(2).start()
    with Cluster() as in_this_process:
        assert in_this_process.broker(0).memory_use() is None


def test_kill_9_from_outside_is_noticed_and_what_was_acknowledged_is_kept(cluster: Cluster) -> None:
    topic = topic_led_by(cluster, 2, "kept")
    write(cluster, topic, b"a")
    broker = cluster.broker(2)
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    await_alive(cluster, {0, 1})
    until(lambda: not broker.running)
    broker.start()
    await_leader(cluster, topic, 2)
    assert read(cluster, topic) == [b"a"]
    assert write(cluster, topic, b"b") == 1


def test_a_broker_that_stops_in_good_order_ends_its_process(cluster: Cluster) -> None:
    topic = topic_led_by(cluster, 1, "stopped")
    write(cluster, topic, b"a")
    pid = cluster.broker(1).pid
    assert pid is not None
    cluster.broker(1).stop()
    assert gone(pid)
    await_alive(cluster, {0, 2})
    cluster.broker(1).start()
    await_leader(cluster, topic, 1)
    assert read(cluster, topic) == [b"a"]


def test_a_full_disk_is_told_and_over_when_it_is_healed(cluster: Cluster) -> None:
    topic = topic_led_by(cluster, 1, "full")
    assert produce(cluster, 1, topic) == 0
    cluster.broker(1).fill_disk()
    assert produce(cluster, 1, topic) == ErrorCode.KAFKA_STORAGE_ERROR
    cluster.broker(1).heal()
    until(lambda: produce(cluster, 1, topic) == 0)


def test_a_broker_cut_off_from_the_controller_is_fenced_until_it_is_healed(cluster: Cluster) -> None:
    cluster.broker(2).cut("controller")
    await_alive(cluster, {0, 1})
    assert cluster.broker(2).running
    cluster.broker(2).heal()
    await_alive(cluster, {0, 1, 2})
    until(lambda: alive(cluster, ask=2) == {0, 1, 2})


def test_a_start_that_fails_says_why(cluster: Cluster) -> None:
    broker = cluster.broker(1)
    broker.kill()
    with (
        socket.create_server((broker.host, broker.port)),
        pytest.raises(ConnectionFailed, match="cannot listen"),
    ):
        broker.start()
    assert not broker.running
    broker.start()
    assert broker.running


def test_a_cut_names_another_broker(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="another broker"):
        cluster.broker(1).cut(from_=1)


def test_a_config_that_cannot_cross_is_refused() -> None:
    with pytest.raises(FairleadError, match=r"num\.partitions"):
        Cluster(brokers=1, processes=True, config={"num.partitions": object()})


def test_brokers_die_with_a_launcher_that_is_killed() -> None:
    program = (
        "from fairlead_kafka import Cluster\nc = Cluster(2, processes=True)\nprint(*(b.pid for b in "
        "c.brokers), flush=True)\ninput()"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with launcher:
        assert launcher.stdout is not None
        pids = [int(pid) for pid in launcher.stdout.readline().split()]
        launcher.kill()
    assert len(pids) == 2
    until(lambda: all(gone(pid) for pid in pids))


def test_fairlead_up_with_processes_ends_clean_on_ctrl_c() -> None:
    with start("up", "--port", "0", "--brokers", "2", "--processes") as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            found = re.search(r"bootstrap.servers=(\S+)", process.stdout.readline())
            pids = [int(pid) for pid in re.findall(r"is (\d+)", process.stdout.readline())]
            assert found is not None
            assert len(pids) == 2
            assert create(found[1].split(","), "events") in (0, 1)
            lines = iter(process.stdout.readline, "")
            os.kill(pids[1], signal.SIGKILL)
            ended = next(line for line in lines if line.startswith("broker 1 has ended"))
            assert ended.endswith(f"To start it again: kill -USR1 {process.pid}\n")
            host, _, port = found[1].split(",")[1].partition(":")
            with socket.create_server((host, int(port))):
                process.send_signal(signal.SIGUSR1)
                assert next(lines).startswith("broker 1 did not start: broker 1 cannot listen on"), (
                    "the others go on"
                )
            process.send_signal(signal.SIGUSR1)
            again = re.match(r"broker 1 is up again, process (\d+)", next(lines))
            assert again is not None
            pids[1] = int(again[1])
            process.send_signal(signal.SIGINT)
            assert (process.wait(PATIENCE_S), process.stderr.read()) == (0, "")
            assert all(gone(pid) for pid in pids)
        finally:
            process.kill()


def test_fairlead_up_says_that_the_controller_has_ended() -> None:
    with Cluster(1, processes=True) as cluster:
        assert cluster.controller_running
        assert cluster._host is not None
        cluster._host.remove(cluster._server)
        with pytest.raises(FairleadError, match="the controller has ended"):
            _serve(cluster, threading.Event(), threading.Event())


def test_a_process_that_cannot_be_made_is_one_brokers_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import errno, os\n"
        "fork, count = os.fork, [0]\n"
        "def failing():\n"
        "    count[0] += 1\n"
        "    if count[0] == 3:\n"
        "        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))\n"
        "    return fork()\n"
        "os.fork = failing\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Cluster(2, processes=True) as cluster:
        cluster.broker(1).kill()
        with pytest.raises(ConnectionFailed, match="could not be started: no process can be made: Resource"):
            cluster.broker(1).start()
        assert [broker.running for broker in cluster.brokers] == [True, False]
        cluster.broker(1).start()
        await_alive(cluster, {0, 1})


def test_the_channel_to_a_process_may_have_any_descriptor() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2_048), hard))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        high = Channel(socket.socket(fileno=fcntl.fcntl(ours.fileno(), fcntl.F_DUPFD_CLOEXEC, 1_500)))
        assert not high.ready(0)
        Channel(theirs).send({"answer": 1})
        assert high.ready(PATIENCE_S)
        assert high.receive() == {"answer": 1}
        high.close()


def test_heartbeats_as_seldom_as_sessions_end_are_refused() -> None:
    config = {"broker.heartbeat.interval.ms": 9_000}
    with pytest.raises(ConfigError, match=r"9000 is not less than broker\.session\.timeout\.ms, 9000"):
        Cluster(1, processes=True, config=config)
