"""All brokers of a cluster move to new ports, and only the bootstrap address leads to them: every
client finds them again (KIP-899, KIP-1102)."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import fairlead_kafka
from fairlead_kafka.testing import Cluster

_CHUNK_BYTES = 65_536


class Door:
    """A port that leads to whatever `target` is when somebody connects; a context manager."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, name="door", daemon=True).start()

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                try:
                    pair = client, socket.create_connection(self.target)
                except OSError:
                    client.close()  # nobody is there just now
                    continue
                self._sockets += pair
                for source, sink in (pair, pair[::-1]):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)


def addresses(cluster: Cluster) -> list[tuple[str, int]]:
    """Where its brokers listen."""
    servers = (server.split(":") for server in cluster.bootstrap_servers.split(","))
    return [(host, int(port)) for host, port in servers]


@contextlib.contextmanager
def silent_at(places: list[tuple[str, int]]) -> Iterator[None]:
    """Somebody else is at these addresses, who takes connections and never answers."""
    with contextlib.ExitStack() as stack:
        for place in places:
            stack.enter_context(socket.create_server(place))
        yield


def test_clients_follow_a_cluster_that_moves_behind_its_bootstrap_address(tmp_path: Path) -> None:
    old = Cluster(2, data_dir=tmp_path)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: old.close())
        door = stack.enter_context(Door(addresses(old)[0]))
        configs = {
            "bootstrap.servers": door.address,
            "metadata.recovery.rebootstrap.trigger.ms": 200,
            "metadata.max.age.ms": 500,
        }
        admin = stack.enter_context(fairlead_kafka.Admin(configs))
        admin.create_topics([fairlead_kafka.NewTopic("t", 2)])
        producer = stack.enter_context(fairlead_kafka.Producer(configs))
        reading = {**configs, "auto.offset.reset": "earliest"}
        consumer = stack.enter_context(fairlead_kafka.Consumer({**reading, "group.id": "g"}))
        sharing = stack.enter_context(fairlead_kafka.ShareConsumer({**configs, "group.id": "s"}))
        earliest = fairlead_kafka.ConfigChange.set("share.auto.offset.reset", "earliest")
        admin.alter_configs({fairlead_kafka.ConfigResource.group("s"): [earliest]})
        consumer.subscribe(["t"])
        sharing.subscribe(["t"])
        producer.send("t", b"before").result()
        assert [record.value for record in consumer.poll(30)] == [b"before"]
        assert [record.value for record in sharing.poll(30)] == [b"before"]
        places = addresses(old)
        old.close()
        with silent_at(places), Cluster(2, data_dir=tmp_path) as new:
            door.target = addresses(new)[1]
            assert not {*addresses(new)} & {*places}
            producer.send("t", b"after").result()
            assert {(node.host, node.port) for node in admin.describe_cluster().nodes} == {*addresses(new)}
            values: list[bytes | None] = []
            while b"after" not in values:
                values += [record.value for record in consumer.poll(1)]
            shared: list[bytes | None] = []
            while b"after" not in shared:
                shared += [record.value for record in sharing.poll(1)]
