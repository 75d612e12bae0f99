"""`Cluster`: beginning, end, and what survives what. Through real sockets and files, with raw
frames as the client."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.errors import ConfigError, ConnectionFailed, FairleadError, UsageError
from fairlead_kafka.broker import Broker
from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey, Message
from tests.support.waiting import PATIENCE_S
from tests.support.wire_client import Wire, addresses, append, create, read, write


def test_a_cluster_serves_at_once_and_leaves_nothing_behind() -> None:
    with Cluster(brokers=3) as cluster:
        folder = cluster._folder
        assert folder.exists()
        assert write(cluster, "events", b"a") == 0
        assert read(cluster, "events") == [b"a"]
        with Wire(addresses(cluster)[2]) as wire:
            answer = wire.ask(ApiKey.METADATA, 8, topics=[])
        assert [f"{node.host}:{node.port}" for node in answer.brokers] == addresses(cluster)
        assert answer.cluster_id == cluster.cluster_id
    cluster.close()
    assert not folder.exists()
    with pytest.raises(OSError, match="refused"):
        Wire(addresses(cluster)[0])


def test_a_folder_given_is_kept_with_topics_records_id_and_ports(tmp_path: Path) -> None:
    with Cluster(brokers=2, data_dir=tmp_path) as cluster:
        for number in range(3):
            write(cluster, "events", b"%d" % number)
        before = (cluster.cluster_id, cluster.bootstrap_servers)
    with Cluster(brokers=2, data_dir=tmp_path) as cluster:
        assert (cluster.cluster_id, cluster.bootstrap_servers) == before
        assert read(cluster, "events") == [b"0", b"1", b"2"]
        assert write(cluster, "events", b"3") == 3


def test_a_remembered_port_that_is_taken_is_replaced(tmp_path: Path) -> None:
    with Cluster(brokers=1, data_dir=tmp_path) as cluster:
        port = cluster.broker(0).port
    with socket.create_server(("127.0.0.1", port)), Cluster(brokers=1, data_dir=tmp_path) as cluster:
        assert cluster.broker(0).port != port
        assert write(cluster, "events", b"a") == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a port for a server")
@pytest.mark.parametrize("processes", [False, True], ids=["thread", "processes"])
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_nobody_else_is_given_the_ports_of_a_broker_that_is_down(processes: bool, end: str) -> None:
    def can_be_taken() -> bool:
        with socket.socket() as other:
            try:
                other.bind((broker.host, broker.port))
            except OSError:
                return False
        return True

    with Cluster(brokers=1, processes=processes) as cluster:
        broker = cluster.broker(0)
        for _ in range(2):
            getattr(broker, end)()
            assert not can_be_taken()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((broker.host, broker.port))
            broker.start()
            assert write(cluster, "events", b"a") >= 0


def test_brokers_of_a_closed_cluster_keep_no_ports() -> None:
    cluster = Cluster(brokers=2)
    first, second = cluster.brokers
    first.kill()
    cluster.close()
    second.kill()
    for broker in (first, second):
        with socket.socket() as other:
            other.bind((broker.host, broker.port))


def test_a_port_that_was_asked_for_and_is_taken_is_an_error() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ConnectionFailed, match="cannot listen"),
    ):
        Cluster(brokers=1, port=taken.getsockname()[1])


def test_two_clusters_do_not_share_a_folder(tmp_path: Path) -> None:
    with Cluster(brokers=1, data_dir=tmp_path), pytest.raises(UsageError, match="in use by another cluster"):
        Cluster(brokers=1, data_dir=tmp_path)
    Cluster(brokers=1, data_dir=tmp_path).close()


def test_fewer_brokers_than_the_data_needs_are_refused(tmp_path: Path) -> None:
    Cluster(brokers=3, data_dir=tmp_path).close()
    with pytest.raises(ConfigError, match="3 brokers or more"):
        Cluster(brokers=2, data_dir=tmp_path)
    with Cluster(brokers=4, data_dir=tmp_path) as cluster:
        assert len(addresses(cluster)) == 4


def test_wrong_arguments_are_refused_with_what_is_wrong() -> None:
    with pytest.raises(ConfigError, match="brokers"):
        Cluster(brokers=0)
    with pytest.raises(ConfigError, match="port"):
        Cluster(port=70_000)
    with pytest.raises(ConfigError, match=r"host"):
        Cluster(host="0.0.0.0")
    with pytest.raises(ConfigError, match=r"did you mean num\.partitions"):
        Cluster(config={"num.partition": 3})
    with Cluster(brokers=1) as cluster:
        with pytest.raises(UsageError, match="no broker 1"):
            cluster.broker(1)
        with pytest.raises(ConfigError, match="times must be 0 to 86400000 ms"):
            cluster.broker(0).slow(latency_ms=-1)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_broker_that_comes_back_has_its_records_and_its_port(end: str) -> None:
    with Cluster(brokers=2) as cluster:
        write(cluster, "events", b"before")
        leader = create(addresses(cluster), "events")
        broker = cluster.broker(leader)
        port = broker.port
        getattr(broker, end)()
        assert not broker.running
        with Wire(addresses(cluster)[1 - leader]) as wire:
            answer = wire.ask(
                ApiKey.METADATA, 8, topics=[Message(name="events")], allow_auto_topic_creation=True
            )
        assert [node.node_id for node in answer.brokers] == [1 - leader]
        assert answer.controller_id == 1 - leader
        assert answer.topics[0].partitions[0].leader_id == -1
        with pytest.raises(OSError, match="refused"):
            Wire(addresses(cluster)[leader])
        broker.start()
        broker.start()
        assert (broker.running, broker.port) == (True, port)
        assert read(cluster, "events") == [b"before"]
        assert write(cluster, "events", b"after") == 1


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_an_open_connection_ends_with_its_broker(end: str) -> None:
    with Cluster(brokers=1) as cluster, Wire(addresses(cluster)[0]) as wire:
        wire.ask(ApiKey.API_VERSIONS, 0)
        getattr(cluster.broker(0), end)()
        with pytest.raises(ConnectionError):
            wire.ask(ApiKey.API_VERSIONS, 0)


def test_a_broker_that_crashes_is_not_running_and_can_be_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Cluster(brokers=2) as cluster:
        write(cluster, "events", b"before")
        leader = create(addresses(cluster), "events")
        sound = Broker.step

        def step(broker: Broker, now_ns: int, wall_ms: int) -> Any:
            return sound(broker, now_ns, wall_ms) if broker.node_id != leader else 1 / 0

        monkeypatch.setattr(Broker, "step", step)
        with Wire(addresses(cluster)[leader]) as wire, pytest.raises(ConnectionError):
            wire.ask(ApiKey.API_VERSIONS, 0)
        monkeypatch.undo()
        broker = cluster.broker(leader)
        assert not broker.running
        broker.slow()
        broker.start()
        assert read(cluster, "events") == [b"before"]


def test_faults_are_set_and_healed() -> None:
    with Cluster(brokers=1) as cluster:
        broker = cluster.broker(0)
        broker.slow(produce_service_time_ms=1, latency_ms=1)
        write(cluster, "events", b"a")
        broker.slow()
        assert write(cluster, "events", b"b") == 1


def test_flush_messages_reaches_the_disk_before_the_answer(tmp_path: Path) -> None:
    with Cluster(brokers=1, data_dir=tmp_path, config={"log.flush.interval.messages": 1}) as cluster:
        assert [write(cluster, "events", b"a") for _ in range(3)] == [0, 1, 2]


def test_a_damaged_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    with Cluster(brokers=1, data_dir=tmp_path, config={"log.flush.interval.messages": 1}) as cluster:
        for _ in range(4):
            write(cluster, "events", b"a")
        cluster.broker(0).kill()  # after a stop in good order nothing is looked through again
    log = tmp_path / "broker-0" / "log" / "000000000001.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    with pytest.raises(FairleadError, match="damaged at byte"):
        Cluster(brokers=1, data_dir=tmp_path)
    assert log.read_bytes() == data


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_was_acknowledged_before_a_broker_ended_under_load_is_there_afterwards(end: str) -> None:
    with Cluster(brokers=1) as cluster:
        create(addresses(cluster), "events")
        acknowledged: list[int] = []
        enough = threading.Event()

        def produce() -> None:
            try:
                with Wire(addresses(cluster)[0]) as wire:
                    while True:
                        acknowledged.append(append(wire, "events", b"%d" % len(acknowledged)))
                        if len(acknowledged) == 200:
                            enough.set()
            except ConnectionError:
                pass

        producer = threading.Thread(target=produce)
        producer.start()
        assert enough.wait(PATIENCE_S)
        getattr(cluster.broker(0), end)()
        producer.join(PATIENCE_S)
        cluster.broker(0).start()
        values = read(cluster, "events")
        assert len(values) - len(acknowledged) in (0, 1), "at most one was written and not acknowledged"
        assert values == [b"%d" % number for number in range(len(values))]


_CHILD = """
import sys
from fairlead_kafka.testing import Cluster
cluster = Cluster(brokers=2, data_dir=sys.argv[1])
print(cluster.bootstrap_servers, flush=True)
sys.stdin.read()
"""


def test_what_was_acknowledged_survives_kill_9_of_the_process(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        servers = child.stdout.readline().strip().split(",")
        with Wire(servers[create(servers, "events")]) as wire:
            assert [append(wire, "events", b"%d" % number) for number in range(50)] == list(range(50))
            child.send_signal(signal.SIGKILL)
    finally:
        child.kill()
        child.communicate()
    with Cluster(brokers=2, data_dir=tmp_path) as cluster:
        assert read(cluster, "events") == [b"%d" % number for number in range(50)]


_FORGETFUL = """
import os, sys
from fairlead_kafka.testing import Cluster
cluster = Cluster(brokers=1)
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert cluster._folder.exists(), "the child's end took the folder away"
print(cluster._folder)
"""


def test_a_cluster_that_nobody_closes_ends_with_its_process_and_no_forked_child_ends_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORGETFUL],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
    assert not Path(ran.stdout.strip()).exists()
