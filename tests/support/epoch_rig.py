"""Consumers of ours in a KIP-848 group, against a scripted coordinator in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.wire import ApiKey, Message
from tests.support.client_rig import Rig
from tests.support.fake_coordinator import GROUP, FakeCoordinator
from tests.support.group_clients import Heard

HEARTBEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


class Coordinated(Rig):
    """A fake cluster of two with a scripted coordinator, and consumers in its group."""

    def __init__(self) -> None:
        super().__init__(nodes=2)
        self.cluster.topic("t", 3)
        for number in range(3):
            self.cluster.write("t", number, [b"%d" % n for n in range(10)])
        self.coordinator = FakeCoordinator(self.cluster)
        self.heard = Heard()

    def member(self, topics: Any = ("t",), **configs: Any) -> Consumer:
        configs = {"auto_offset_reset": "earliest", "retry_backoff_ms": 10} | configs
        made = self.consumer(group_id=GROUP, group_protocol="consumer", **configs)
        made.subscribe(topics, self.heard)
        return made

    def polled(self, member: Consumer, until: Callable[[], bool]) -> list[tuple[int, int]]:
        """Poll until something holds; (partition, offset) of what came."""
        seen = []
        for _ in range(500):
            if until():
                return seen
            seen += [(record.partition, record.offset) for record in member.poll(0.05)]
        raise AssertionError(f"{self.heard.signs()}, {self.coordinator.beats()[-3:]}")

    def converge(self, member: Consumer, **target: list[int]) -> list[tuple[int, int]]:
        """Assign, and poll until the coordinator has heard that the member reads this."""
        self.coordinator.assign(**target)
        wanted = sorted(TopicPartition(topic, number) for topic in target for number in target[topic])
        return self.polled(
            member,
            lambda: self.coordinator.owned == wanted and sorted(member.assignment()) == wanted,
        )

    def rest(self, member: Consumer) -> list[tuple[int, int]]:
        """All that comes until nothing comes."""
        seen: list[tuple[int, int]] = []
        while records := member.poll(0.6):
            seen += [(record.partition, record.offset) for record in records]
        return seen


def whole(beat: Message) -> bool:
    """True if a heartbeat says all that there is to say."""
    return beat.rebalance_timeout_ms != -1 and beat.topic_partitions is not None
