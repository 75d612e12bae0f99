"""The brokers that a client connects to, by address: whether each is connected or in back-off, and
which to try next.

Bootstrap servers are peers too, with ids of their own from `BOOTSTRAP_FIRST` downward. Once the
metadata names a broker at the very address of a bootstrap connection, the connection becomes that
broker's: a client of one broker holds one connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import Node
from fairlead_kafka.core.connection import Connection, State
from fairlead_kafka.core.machine import Rng

BOOTSTRAP_FIRST = -1000
"""Node id of the first bootstrap server; further ones count downward."""


@dataclass(slots=True, eq=False)
class Peer:
    """One address, with its connection and its recent failures."""

    node_id: int
    host: str
    port: int
    connection: Connection | None = None
    failures: int = 0
    """Failures in a row since it was last ready: drives the reconnect back-off."""
    slow_setups: int = 0
    """Set-up time-outs in a row: each allows the next attempt more time (KIP-601)."""
    blocked_until_ns: int | None = None
    throttled_until_ns: int | None = None
    """It asked to be left alone until then, for a quota is used up; None: it did not, or the time
    is over."""
    tried_ns: int = -1

    @property
    def address(self) -> str:
        """host:port, as in `bootstrap.servers`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def connected(self) -> bool:
        """True if requests can be sent as far as the connection goes, now or once its session was
        renewed."""
        return self.connection is not None and self.connection.state in (State.READY, State.REAUTHENTICATING)

    @property
    def connectable(self) -> bool:
        """True if an attempt to connect may begin now."""
        return self.connection is None and self.blocked_until_ns is None

    def ready(self, max_in_flight: int) -> bool:
        """True if a request can be sent now."""
        connection = self.connection
        return (
            connection is not None
            and connection.state is State.READY
            and len(connection.in_flight) < max_in_flight
            and self.throttled_until_ns is None
        )

    def __str__(self) -> str:
        return self.address if self.node_id <= BOOTSTRAP_FIRST else f"broker {self.node_id} at {self.address}"


def parse_address(text: str) -> tuple[str, int]:
    """host and port of `host:port` or `[v6]:port`. ConfigError if it is neither."""
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(
            f"bootstrap.servers: {text!r} is not host:port; write an IPv6 address in brackets, [::1]:9092"
        )
    if not colon or not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ConfigError(f"bootstrap.servers: {text!r} is not host:port with a port of 1 to 65535")
    return host, int(port)


class Peers:
    """All peers by node id. Without `rebootstraps` the bootstrap servers are not used any more once
    brokers are known."""

    def __init__(self, bootstrap_servers: Sequence[str], rng: Rng, *, rebootstraps: bool = True) -> None:
        self._rng = rng
        self._rebootstraps = rebootstraps
        self.by_id: dict[int, Peer] = {}
        addresses = [parse_address(text) for text in dict.fromkeys(bootstrap_servers)]
        self.bootstrap: list[Peer] = []
        while addresses:
            host, port = addresses.pop(rng.randrange(len(addresses)))
            peer = Peer(BOOTSTRAP_FIRST - len(self.bootstrap), host, port)
            self.bootstrap.append(peer)
            self.by_id[peer.node_id] = peer
        self.cluster: list[Peer] = []
        """The brokers that the metadata names, by node id."""

    def sync(self, nodes: Mapping[int, Node]) -> list[Peer]:
        """Follow the metadata. Returns the peers that are of no use any more; their connections are
        to be ended."""
        gone: list[Peer] = []
        cluster = []
        for node_id in sorted(nodes):
            node = nodes[node_id]
            peer = self.by_id.get(node_id)
            if peer is None or (peer.host, peer.port) != (node.host, node.port):
                if peer is not None:
                    gone.append(peer)
                peer = self.by_id[node_id] = Peer(node_id, node.host, node.port)
            if peer.connection is None:
                self._adopt(peer)
            cluster.append(peer)
        gone += [self.by_id.pop(peer.node_id) for peer in self.cluster if peer.node_id not in nodes]
        self.cluster = cluster
        return gone

    def _adopt(self, peer: Peer) -> None:
        """Give `peer` the connection of a bootstrap server at the same address, if there is one."""
        for server in self.bootstrap:
            if server.connection is not None and (server.host, server.port) == (peer.host, peer.port):
                peer.connection, server.connection = server.connection, None
                peer.connection.peer = str(peer)
                peer.tried_ns, peer.blocked_until_ns = server.tried_ns, None
                peer.throttled_until_ns, server.throttled_until_ns = server.throttled_until_ns, None
                return

    def least_loaded(self, max_in_flight: int) -> Peer | None:
        """A peer to send to, or to connect to first (`connectable`); None: wait for a connection,
        an answer or a back-off.

        Source: Kafka's `NetworkClient.leastLoadedNode`. The choice: the ready one with the fewest
        requests in flight, else none while one is connecting, else the one tried longest ago.
        Bootstrap servers that are not brokers we know come in once none of those can be tried
        (KIP-899).
        """
        best: Peer | None = None
        best_load = max_in_flight
        bootstrap = self.bootstrap if self._rebootstraps or not self.cluster else []
        for peer in self._shuffled(self.cluster) + bootstrap:
            if (
                peer.ready(max_in_flight)
                and peer.connection is not None
                and len(peer.connection.in_flight) < best_load
            ):
                best, best_load = peer, len(peer.connection.in_flight)
        if best is not None:
            return best
        known = {(peer.host, peer.port) for peer in self.cluster}
        servers = [peer for peer in bootstrap if (peer.host, peer.port) not in known]
        for group in (self.cluster, servers):
            if any(peer.connection is not None and not peer.connected for peer in group):
                return None
            candidates = [peer for peer in group if peer.connectable]
            if candidates:
                return min(candidates, key=lambda peer: peer.tried_ns)
            if any(peer.connected for peer in group):
                return None
        return None

    def _shuffled(self, peers: list[Peer]) -> list[Peer]:
        if len(peers) < 2:
            return peers
        start = self._rng.randrange(len(peers))
        return peers[start:] + peers[:start]

    def tried(self) -> list[Peer]:
        """Peers that were tried to connect to, brokers first; the bootstrap servers if none was."""
        return [peer for peer in (*self.cluster, *self.bootstrap) if peer.tried_ns >= 0] or self.bootstrap
