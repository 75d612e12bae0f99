"""A share group of one driven broker, spoken to request by request in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from fairlead_kafka.broker.share_groups import SharePartitions, ShareSessions
from fairlead_kafka.core import events as ev
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Client, Driver, batch, produce_fields

GROUP = "g"
PATIENCE_MS = 20_000
Ack = tuple[int, int, Sequence[int]]
"""First and last offset, and the types."""


class ShareGroupRig:
    """A broker with topic `t` of one partition, and a group that reads it from its beginning."""

    def __init__(self, **config: Any) -> None:
        self.driver = Driver(config)
        self.admin = self.driver.connect()
        self.driver.advance(100)
        topic = Message(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        answer = self.call(
            self.admin, ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000, validate_only=False
        )
        self.topic_id: UUID = answer.topics[0].topic_id
        earliest = Message(name="share.auto.offset.reset", config_operation=0, value="earliest")
        resource = Message(resource_type=32, resource_name=GROUP, configs=[earliest])
        self.call(self.admin, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
        self.join()

    def join(self) -> None:
        """Have the group's state begun, and a member assigned it."""
        self.call(self.admin, ApiKey.FIND_COORDINATOR, 6, key_type=0, coordinator_keys=[GROUP])
        epoch, topics = 0, ["t"]
        for _ in range(20):
            answer = self._heartbeat(epoch, topics)
            if not answer.error_code:
                epoch = answer.member_epoch
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    return
            self.driver.advance(1000)
        raise AssertionError(answer)

    def _heartbeat(self, epoch: int, topics: list[str] | None = None) -> Message:
        return self.call(
            self.admin,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            1,
            group_id=GROUP,
            member_id="m",
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=topics,
        )

    def beat(self, epoch: int, topics: list[str] | None = None) -> tuple[int, list[int] | None]:
        """Epoch and partitions (None: as before) by a heartbeat of the member."""
        answer = self._heartbeat(epoch, topics)
        assert answer.error_code == 0, answer
        told = answer.assignment
        numbers = None if told is None else [n for one in told.topic_partitions for n in one.partitions]
        return answer.member_epoch, numbers

    def leave(self) -> None:
        """Have the group be without members."""
        self.beat(-1)

    @property
    def partitions(self) -> SharePartitions:
        """The share partitions of the broker."""
        part: SharePartitions = self.driver.broker.share_partitions
        return part

    @property
    def sessions(self) -> ShareSessions:
        """The share sessions of the broker."""
        part: ShareSessions = self.driver.broker.share_sessions
        return part

    # --- Requests

    def call(self, client: Client, api_key: int, version: int, **fields: Any) -> Message:
        """Send, and the answer, when it comes."""
        before = len(client.arrived)
        client.send(api_key, version, **fields)
        for _ in range(PATIENCE_MS // 50):
            if len(client.arrived) > before:
                return client.arrived[-1]
            assert not client.closed, "the broker has closed the connection"
            self.driver.advance(50)
        raise AssertionError(f"no answer to {ApiKey(api_key).name}")

    def produce(self, count: int) -> None:
        records = batch([b"%d" % number for number in range(count)])
        answer = self.call(self.admin, ApiKey.PRODUCE, 9, **produce_fields({("t", 0): records}))
        assert answer.responses[0].partition_responses[0].error_code == 0

    def fields(self, epoch: int, member: str = "m", **more: Any) -> dict[str, Any]:
        """Fields of a ShareFetch of partition 0; of a session that goes on, without a change."""
        topics = [self.topic()] if epoch == 0 else []
        return {
            "group_id": GROUP,
            "member_id": member,
            "share_session_epoch": epoch,
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "share_acquire_mode": 0,
            "is_renew_ack": False,
            "topics": topics,
            "forgotten_topics_data": [],
        } | more

    def topic(self, *acks: Ack) -> Message:
        """Partition 0 with acknowledgements, as a topic of either request."""
        rows = [Message(first_offset=a, last_offset=b, acknowledge_types=list(types)) for a, b, types in acks]
        return Message(
            topic_id=self.topic_id, partitions=[Message(partition_index=0, acknowledgement_batches=rows)]
        )

    def fetch(self, client: Client, epoch: int, member: str = "m", **more: Any) -> list[tuple[int, int, int]]:
        """First and last offset, and the deliveries, of what a ShareFetch has acquired."""
        answer = self.call(client, ApiKey.SHARE_FETCH, 2, **self.fields(epoch, member, **more))
        return acquired(answer)

    def ack_fields(self, epoch: int, *acks: Ack, member: str = "m") -> dict[str, Any]:
        """Fields of a ShareAcknowledge."""
        return {
            "group_id": GROUP,
            "member_id": member,
            "share_session_epoch": epoch,
            "is_renew_ack": False,
            "topics": [self.topic(*acks)],
        }

    def acknowledge(self, client: Client, epoch: int, *acks: Ack, member: str = "m") -> int:
        """The error of partition 0 of a ShareAcknowledge."""
        answer = self.call(
            client, ApiKey.SHARE_ACKNOWLEDGE, 2, **self.ack_fields(epoch, *acks, member=member)
        )
        assert answer.error_code == 0, answer
        return int(answer.responses[0].partitions[0].error_code)

    def drop(self, client: Client) -> None:
        """End a connection from its client's side."""
        self.driver.broker.receive(ev.Disconnected(client.connection, None))
        self.driver.run()

    # --- Offsets

    def alter(self, offset: int) -> int:
        """The error of partition 0 of an AlterShareGroupOffsets, or of all of it."""
        topic = Message(topic_name="t", partitions=[Message(partition_index=0, start_offset=offset)])
        answer = self.call(self.admin, ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=GROUP, topics=[topic])
        return int(answer.error_code or answer.responses[0].partitions[0].error_code)

    def describe(self) -> tuple[int, list[tuple[int, int]]]:
        """The group's error, and start and lag of partitions, of a DescribeShareGroupOffsets."""
        asked = [Message(group_id=GROUP, topics=None)]
        (group,) = self.call(self.admin, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=asked).groups
        rows = [(row.start_offset, row.lag) for topic in group.topics for row in topic.partitions]
        return group.error_code, rows


def acquired(answer: Message) -> list[tuple[int, int, int]]:
    """What a ShareFetch's answer hands out."""
    assert answer.error_code == 0, answer
    rows = [row for topic in answer.responses for row in topic.partitions]
    assert all(row.error_code == 0 for row in rows), answer
    return [
        (one.first_offset, one.last_offset, one.delivery_count)
        for row in rows
        for one in row.acquired_records
    ]
