"""Our own consumers as members of groups: what they heard, and polling several of them until
something holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairlead_kafka import RebalanceListener, Record, TopicPartition
from fairlead_kafka.client.hosting import Host, open_host
from tests.support.checked_clients import CheckedConsumer
from tests.support.waiting import PATIENCE_S


class Heard(RebalanceListener):
    """Notes what it is told, as (sign, partitions)."""

    def __init__(self) -> None:
        self.log: list[tuple[str, list[TopicPartition]]] = []

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.log.append(("+", list(partitions)))

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.log.append(("-", list(partitions)))

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.log.append(("lost", list(partitions)))

    def signs(self) -> str:
        return " ".join(f"{sign}{len(partitions)}" for sign, partitions in self.log)


class Recording:
    """An opener of production that keeps the host it opened: to end its thread, as a crash does."""

    host: Host[Any]

    def __call__(self, machine_factory: Callable[[Any], Any], settings: Any, name: str = "") -> Host[Any]:
        self.host = open_host(machine_factory, settings, name)
        return self.host


CLASSIC = {"heartbeat.interval.ms": 100, "session.timeout.ms": 30_000}
"""Configs of a member of the classic protocol, whose heartbeats are its own matter."""


def member_config(servers: str, group: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Configs of a member of either protocol; `config`: more of them, with _ for each dot."""
    named = {key.replace("_", "."): value for key, value in config.items()}
    common = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
    return common | ({} if named.get("group.protocol") == "consumer" else CLASSIC) | named


class Member:
    """A subscribed consumer, what it has read and what it has heard."""

    def __init__(self, servers: str, group: str, topics: Any = ("t",), **config: Any) -> None:
        self._opener = Recording()
        self.heard = Heard()
        self.records: list[Record] = []
        self.consumer = CheckedConsumer(member_config(servers, group, config), opener=self._opener)
        self.consumer.subscribe(topics, self.heard)

    def poll(self, timeout_s: float = 0.05) -> None:
        self.records += self.consumer.poll(timeout_s)

    @property
    def partitions(self) -> list[int]:
        return sorted(of.partition for of in self.consumer.assignment())

    def close(self) -> None:
        self.consumer.close()

    def kill(self) -> None:
        """Its thread ends, and it tells nobody."""
        self._opener.host.close(5)

    def __str__(self) -> str:
        return f"partitions {self.partitions}, heard {self.heard.signs()}, {len(self.records)} records"


def poll_until(members: Iterable[Any], holds: Callable[[], bool]) -> None:
    """Poll all members in turn until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    members = list(members)
    while not holds():
        assert time.monotonic() < deadline, [str(member) for member in members]
        for member in members:
            member.poll()


def wait_assigned(members: Sequence[Member], partitions: int) -> None:
    """Poll until the members share all partitions evenly."""
    share = partitions // len(members)
    poll_until(members, lambda: all(len(member.partitions) == share for member in members))
    assert sorted(number for member in members for number in member.partitions) == list(range(partitions))
