"""Our consumer as a member of groups on Apache Kafka, and of groups that it shares with the stock
clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fairlead_kafka
from tests.support.group_clients import Member, poll_until, wait_assigned

confluent_kafka = pytest.importorskip("confluent_kafka")
kafka = pytest.importorskip("kafka")

NewTopic = Callable[..., str]
PARTITIONS = 4
STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky"]


def fill(servers: str, topic: str) -> None:
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        for number in range(10 * PARTITIONS):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_our_members_share_commit_and_take_over_on_apache_kafka(
    apache_kafka: str, new_topic: NewTopic, strategy: str
) -> None:
    topic = new_topic(apache_kafka, partitions=PARTITIONS)
    fill(apache_kafka, topic)
    options = {"partition_assignment_strategy": strategy}
    members = [Member(apache_kafka, topic, [topic], **options) for _ in range(2)]
    wait_assigned(members, PARTITIONS)
    poll_until(members, lambda: sum(len(member.records) for member in members) == 10 * PARTITIONS)
    with fairlead_kafka.Admin({"bootstrap.servers": apache_kafka}) as admin:
        described = admin.describe_groups([topic])[topic]
        assert (described.state, described.protocol) == ("Stable", strategy)
        assert sorted(of.partition for member in described.members for of in member.assignment) == list(
            range(PARTITIONS)
        )
        members.pop(0).close()
        wait_assigned(members, PARTITIONS)
        members[0].close()
        assert {one.offset for one in admin.list_group_offsets([topic])[topic].values()} == {10}
        assert admin.list_groups(states=["Empty"])[topic].type.lower() == "classic"
        admin.alter_group_offsets(topic, {fairlead_kafka.TopicPartition(topic, 0): 3})
        admin.delete_group_offsets(topic, [fairlead_kafka.TopicPartition(topic, 1)])
        offsets = {of.partition: one.offset for of, one in admin.list_group_offsets([topic])[topic].items()}
        assert offsets == {0: 3, 2: 10, 3: 10}
        admin.delete_groups([topic])
        assert topic not in admin.list_groups()


def test_a_static_member_of_ours_comes_back_on_apache_kafka(apache_kafka: str, new_topic: NewTopic) -> None:
    topic = new_topic(apache_kafka, partitions=PARTITIONS)
    members = [Member(apache_kafka, topic, [topic], group_instance_id=name) for name in ("one", "two")]
    wait_assigned(members, PARTITIONS)
    shares, heard = [member.partitions for member in members], members[1].heard.signs()
    members[0].close()
    members[0] = Member(apache_kafka, topic, [topic], group_instance_id="one")
    poll_until(members, lambda: [member.partitions for member in members] == shares)
    assert members[1].heard.signs() == heard
    for member in members:
        member.close()


class Confluent:
    """A member of another make, with what a `Member` has."""

    def __init__(self, servers: str, group: str, topic: str, strategy: str) -> None:
        config = {
            "bootstrap.servers": servers,
            "group.id": group,
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 30_000,
        }
        self.consumer = confluent_kafka.Consumer(config)
        self.consumer.subscribe([topic])

    def poll(self) -> None:
        self.consumer.poll(0.05)

    @property
    def partitions(self) -> list[int]:
        return sorted(one.partition for one in self.consumer.assignment())

    def close(self) -> None:
        self.consumer.close()


@pytest.fixture
def members() -> Iterator[list[Any]]:
    """A list of members, closed in the end."""
    found: list[Any] = []
    yield found
    for member in found:
        member.close()


def share(members: list[Any]) -> None:
    whole, each = list(range(PARTITIONS)), PARTITIONS // len(members)
    poll_until(
        members,
        lambda: (
            [len(one.partitions) for one in members] == [each] * len(members)
            and sorted(number for one in members for number in one.partitions) == whole
        ),
    )


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize("first", ["ours", "confluent"])
def test_our_members_and_librdkafkas_share_whoever_leads(
    embedded: str, new_topic: NewTopic, members: list[Any], strategy: str, first: str
) -> None:
    topic = new_topic(embedded, partitions=PARTITIONS)

    def ours() -> Member:
        return Member(embedded, topic, [topic], partition_assignment_strategy=strategy)

    def theirs() -> Confluent:
        return Confluent(embedded, topic, topic, strategy)

    makers = [ours, theirs] if first == "ours" else [theirs, ours]
    for make in makers:
        members.append(make())
        share(members)
    members.pop(0).close()
    share(members)
