"""Share groups (KIP-932): Apache Kafka's own share consumer and tool against our cluster, and the
same against Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import fairlead_kafka
from tests.support.java_tools import JavaTools, formatted
from tests.support.share_members import Got, ShareMembers
from tests.support.waiting import until

NewTopic = Callable[..., str]
CONFIG = {
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.heartbeat.interval.ms": "300",
}
LOCK_S = 30
"""group.share.record.lock.duration.ms, by default; a session lasts for 45 s."""
EXPLICIT = {"share_acknowledgement_mode": "explicit"}

pytestmark = pytest.mark.usefixtures("kafka_jars")


@pytest.fixture(scope="module")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    """An embedded cluster of three brokers whose share groups are quick."""
    with fairlead_kafka.Cluster(brokers=3, config=CONFIG) as made:
        yield made


@pytest.fixture(scope="module")
def servers(cluster: fairlead_kafka.Cluster) -> str:
    """Its `bootstrap.servers`."""
    return cluster.bootstrap_servers


@pytest.fixture
def from_earliest(servers: str, tools: JavaTools) -> Callable[[str], None]:
    """Have a share group begin with the first record."""

    def alter(group: str) -> None:
        config = ("--entity-name", group, "--add-config", "share.auto.offset.reset=earliest")
        tools.run("configs", "--bootstrap-server", servers, "--alter", "--entity-type", "groups", *config)

    return alter


def produce(servers: str, topic: str, *values: str, partition: int = 0) -> None:
    """Produce records to a partition."""
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        for value in values:
            producer.send(topic, value.encode(), partition=partition)
        producer.flush()


def offsets(records: list[Got]) -> list[tuple[int, int]]:
    """(offset, deliveries) of records."""
    return [(one.offset, one.deliveries) for one in records]


def test_implicit_acknowledgement(
    servers: str, new_topic: NewTopic, from_earliest: Callable[[str], None], share_members: ShareMembers
) -> None:
    topic = new_topic(servers, partitions=1)
    from_earliest(topic)
    produce(servers, topic, "0", "1", "2")
    with share_members.member(servers, topic, topic) as member:
        assert offsets(member.poll_until(3)) == [(0, 1), (1, 1), (2, 1)]
        produce(servers, topic, "3")
        assert offsets(member.poll_until(1)) == [(3, 1)]
        assert member.poll() == []
    with share_members.member(servers, topic, topic) as member:
        produce(servers, topic, "4")
        assert offsets(member.poll_until(1)) == [(4, 1)]


def test_each_kind_of_acknowledgement(
    servers: str, new_topic: NewTopic, from_earliest: Callable[[str], None], share_members: ShareMembers
) -> None:
    topic = new_topic(servers, partitions=1)
    from_earliest(topic)
    produce(servers, topic, "0", "1", "2")
    with share_members.member(servers, topic, topic, **EXPLICIT) as member:
        accepted, released, rejected = member.poll_until(3)
        member.acknowledge(accepted, "ACCEPT")
        member.acknowledge(released, "RELEASE")
        member.acknowledge(rejected, "REJECT")
        assert member.commit() == {f"{topic}-0": None}
        for deliveries in (2, 3, 4, 5):
            (again,) = member.poll_until(1)
            assert (again.offset, again.deliveries) == (1, deliveries)
            member.acknowledge(again, "RELEASE")
            member.commit()
        produce(servers, topic, "3")
        assert offsets(member.poll_until(1)) == [(3, 1)], "what was delivered five times is archived"


def test_a_lock_that_is_over_and_a_member_that_dies_give_back(
    cluster: fairlead_kafka.Cluster,
    servers: str,
    new_topic: NewTopic,
    from_earliest: Callable[[str], None],
    share_members: ShareMembers,
) -> None:
    topic = new_topic(servers, partitions=1)
    from_earliest(topic)
    produce(servers, topic, "0", "1")
    with (
        share_members.member(servers, topic, topic, **EXPLICIT) as slow,
        ShareMembers() as apart,
    ):
        other = apart.member(servers, topic, topic, **EXPLICIT)
        late = slow.poll_until(2)
        cluster.clock.advance(seconds=LOCK_S + 1)
        other_got = other.poll_until(2)
        assert offsets(other_got) == [(0, 2), (1, 2)]
        slow.acknowledge(late[0], "ACCEPT")
        slow.acknowledge(late[1], "ACCEPT")
        assert slow.commit() == {f"{topic}-0": "InvalidRecordStateException"}
        apart.kill()
        assert offsets(slow.poll_until(2)) == [(0, 3), (1, 3)]


def test_the_tool_lists_describes_resets_and_deletes(
    servers: str,
    new_topic: NewTopic,
    from_earliest: Callable[[str], None],
    tools: JavaTools,
    share_members: ShareMembers,
) -> None:
    def tool(*arguments: str) -> str:
        return tools.run("share-groups", "--bootstrap-server", servers, *arguments)

    topic = new_topic(servers, partitions=2)
    from_earliest(topic)
    produce(servers, topic, "3", partition=1)
    with share_members.member(servers, topic, topic, **EXPLICIT) as member:
        seen = set[str]()

        def polled() -> bool:
            """True if all were seen; a poll wants what the one before gave to be acknowledged."""
            for record in member.poll():
                member.acknowledge(record, "RELEASE" if record.value == "1" else "ACCEPT")
                seen.add(record.value)
            return len(seen) == wanted

        wanted = 1
        until(polled)
        produce(servers, topic, "0", "1", "2")  # last, for what is released comes again, five times in all
        wanted = 4
        until(polled)
        member.commit()
        members = tool("--describe", "--group", topic, "--members")
        assert f"{topic}:0,1" in members
        assert "Stable" in tool("--describe", "--group", topic, "--state")
    assert topic in tool("--list").split()
    described = rows(tool("--describe", "--group", topic))
    assert [row[-1] for row in described] == ["1", "0"]
    tool("--reset-offsets", "--group", topic, "--topic", topic, "--to-earliest", "--execute")
    described = rows(tool("--describe", "--group", topic))
    assert [row[-2:] for row in described] == [["0", "3"], ["0", "1"]]
    with share_members.member(servers, topic, topic) as member:
        assert len(member.poll_until(4)) == 4
    tool("--delete-offsets", "--group", topic, "--topic", topic)
    assert "has no offset" in tool("--describe", "--group", topic)
    tool("--delete", "--group", topic)
    assert topic not in tool("--list").split()


def rows(told: str) -> list[list[str]]:
    """The rows of a table that the tool prints, by topic and partition."""
    lines = [line.split() for line in told.splitlines()]
    return sorted(line for line in lines if len(line) > 3 and line[0] != "GROUP")


def test_kafkas_formatters_read_our_log_of_share_groups(
    servers: str,
    new_topic: NewTopic,
    from_earliest: Callable[[str], None],
    tools: JavaTools,
    share_members: ShareMembers,
) -> None:
    topic = new_topic(servers, partitions=1)
    from_earliest(topic)
    produce(servers, topic, "0", "1")
    with share_members.member(servers, topic, topic, **EXPLICIT) as member:
        first, second = member.poll_until(2)
        member.acknowledge(first, "ACCEPT")
        member.acknowledge(second, "RELEASE")
        member.commit()
    states = formatted(
        tools,
        servers,
        "__share_group_state",
        "group.share.ShareGroupStateMessageFormatter",
        topic,
        lambda row: row["key"]["data"]["groupId"] == topic,
    )
    assert {row["key"]["type"] for row in states} == {0, 1}
    batches = [batch for row in states for batch in row["value"]["data"].get("stateBatches", ())]
    assert {"firstOffset": 0, "lastOffset": 0, "deliveryState": 2, "deliveryCount": 1} in batches
    assert {"firstOffset": 1, "lastOffset": 1, "deliveryState": 0, "deliveryCount": 1} in batches
