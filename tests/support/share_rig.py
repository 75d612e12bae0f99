"""Share consumers of ours against a share group in virtual time."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.share_consumer import ShareConsumer
from fairlead_kafka.consumer.share import ShareRecord
from tests.support.client_rig import Rig
from tests.support.fake_share_group import GROUP, FakeShareGroup

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Sharing(Rig):
    """A fake cluster with a share group that reads topic `t`, ten records in each partition."""

    def __init__(self, nodes: int = 1, partitions: int = 1, lock_ms: int = 30_000) -> None:
        super().__init__(nodes=nodes)
        self.cluster.topic("t", partitions)
        for number in range(partitions):
            self.cluster.write("t", number, [b"%d" % n for n in range(10)])
        self.group = FakeShareGroup(self.cluster, lock_ms)

    def member(self, mode: str = "implicit", topics: Any = ("t",), **configs: Any) -> ShareConsumer:
        configs = {"retry_backoff_ms": 10, "share_acknowledgement_mode": mode} | configs
        made = ShareConsumer(self.config(group_id=GROUP, **configs), opener=self.opener)
        made.subscribe(topics)
        return made

    def polled(self, member: ShareConsumer, count: int) -> list[ShareRecord]:
        """Poll until so many records have come, in implicit mode or at once."""
        seen: list[ShareRecord] = []
        for _ in range(200):
            if len(seen) >= count:
                return seen
            seen += member.poll(0.05)
        raise AssertionError(f"{len(seen)} of {count}; {member.metrics()}")
