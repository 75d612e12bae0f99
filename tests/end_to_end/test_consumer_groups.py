"""Our own consumer as a member of groups: sharing, committing, being late, being named, and being
told what is wrong."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Iterator, Sequence

import pytest

import fairlead_kafka
from fairlead_kafka import AsyncConsumer, BrokerError, ConfigError, Consumer, TopicPartition, UsageError
from fairlead_kafka.testing import Cluster
from tests.support.group_clients import PATIENCE_S, Member, poll_until, wait_assigned

PARTITIONS = 4
PER_PARTITION = 10
STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky"]
_numbers = itertools.count()


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """Four partitions with ten records each."""
    name = f"shared-{next(_numbers)}"
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.create_topics([fairlead_kafka.NewTopic(name, partitions=PARTITIONS)])
    fill(cluster, name)
    return name


def fill(cluster: Cluster, topic: str) -> None:
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for number in range(PER_PARTITION * PARTITIONS):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


@pytest.fixture
def members(cluster: Cluster, topic: str) -> Iterator[list[Member]]:
    """A list of members, closed in the end."""
    found: list[Member] = []
    yield found
    for member in found:
        member.close()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_share_and_take_over_without_losing_or_repeating_a_record(
    cluster: Cluster, topic: str, members: list[Member], strategy: str
) -> None:
    options = {"partition_assignment_strategy": strategy}
    members.append(Member(cluster.bootstrap_servers, topic, [topic], **options))
    wait_assigned(members, PARTITIONS)
    members.append(Member(cluster.bootstrap_servers, topic, [topic], **options))
    wait_assigned(members, PARTITIONS)
    fill(cluster, topic)
    poll_until(
        members, lambda: sum(len(member.records) for member in members) >= 2 * PER_PARTITION * PARTITIONS
    )
    first = members.pop(0)
    first.close()
    wait_assigned(members, PARTITIONS)
    fill(cluster, topic)
    records = first.records + members[0].records
    poll_until(
        members, lambda: len(first.records) + len(members[0].records) >= 3 * PER_PARTITION * PARTITIONS
    )
    records = first.records + members[0].records
    found = sorted((record.partition, record.offset) for record in records)
    assert found == [
        (partition, offset) for partition in range(PARTITIONS) for offset in range(3 * PER_PARTITION)
    ]
    given_up = {"cooperative-sticky": f"-{PARTITIONS // 2}"}.get(strategy, f"-{PARTITIONS}")
    assert first.heard.signs().startswith(f"+{PARTITIONS} {given_up} ")


def test_positions_are_committed_and_read_on_from(cluster: Cluster, topic: str) -> None:
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        got = 0
        while got < 15:
            got += len(consumer.poll(1.0, max_records=5))
        positions = {of: consumer.position(of) for of in consumer.assignment()}
        consumer.commit()
        assert {
            of: one.offset for of, one in consumer.committed(positions).items() if one is not None
        } == positions
        assert sum(positions.values()) == got
    with Consumer(config) as consumer:
        consumer.subscribe([topic])
        while got < PER_PARTITION * PARTITIONS:
            got += len(consumer.poll(1.0))
        assert got == PER_PARTITION * PARTITIONS
        consumer.commit({TopicPartition(topic, 0): 3})
        assert consumer.committed([TopicPartition(topic, 0)])[
            TopicPartition(topic, 0)
        ] == fairlead_kafka.OffsetAndMetadata(3)


def test_what_was_given_is_committed_in_the_background_and_at_the_end(cluster: Cluster, topic: str) -> None:
    member = Member(cluster.bootstrap_servers, topic, [topic], auto_commit_interval_ms=1)
    poll_until([member], lambda: len(member.records) == PER_PARTITION * PARTITIONS)
    everything = [TopicPartition(topic, number) for number in range(PARTITIONS)]

    def committed() -> list[int | None]:
        return [None if one is None else one.offset for one in member.consumer.committed(everything).values()]

    poll_until([member], lambda: committed() == [PER_PARTITION] * PARTITIONS)
    fill(cluster, topic)
    poll_until([member], lambda: len(member.records) == 2 * PER_PARTITION * PARTITIONS)
    member.close()
    with Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic}) as other:
        assert {one and one.offset for one in other.committed(everything).values()} == {2 * PER_PARTITION}


def test_a_consumer_with_partitions_of_its_own_choice_commits_too(cluster: Cluster, topic: str) -> None:
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    of = TopicPartition(topic, 1)
    for first in (0, 6):
        with Consumer(config) as consumer:
            consumer.assign([of])
            records = consumer.poll(PATIENCE_S, max_records=6)
            assert records[0].offset == first
            consumer.commit()


def test_a_pattern_follows_topics_that_come(cluster: Cluster, topic: str, members: list[Member]) -> None:
    members.append(
        Member(cluster.bootstrap_servers, topic, re.compile(f"{topic}.*"), metadata_max_age_ms=200)
    )
    wait_assigned(members, PARTITIONS)
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.create_topics([fairlead_kafka.NewTopic(f"{topic}-more", partitions=1)])
    poll_until(members, lambda: len(members[0].partitions) == PARTITIONS + 1)
    assert members[0].consumer.subscription() == [topic, f"{topic}-more"]


def test_a_topic_that_grows_is_shared_anew(cluster: Cluster, topic: str, members: list[Member]) -> None:
    members.append(Member(cluster.bootstrap_servers, topic, [topic], metadata_max_age_ms=200))
    wait_assigned(members, PARTITIONS)
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.create_partitions({topic: fairlead_kafka.NewPartitions(PARTITIONS + 2)})
    poll_until(members, lambda: len(members[0].partitions) == PARTITIONS + 2)


def test_another_subscription_replaces_the_first_and_none_ends_it(
    cluster: Cluster, topic: str, members: list[Member]
) -> None:
    members.append(
        Member(cluster.bootstrap_servers, topic, [f"{topic}-absent"], allow_auto_create_topics=False)
    )
    member = members[0]
    poll_until(members, lambda: member.heard.signs() == "+0")
    member.consumer.subscribe([topic], member.heard)
    wait_assigned(members, PARTITIONS)
    with pytest.raises(UsageError, match="the group assigns the partitions"):
        member.consumer.assign([TopicPartition(topic, 0)])
    member.consumer.unsubscribe()
    assert member.partitions == []
    assert member.heard.signs() == f"+0 +{PARTITIONS} -{PARTITIONS}"
    member.consumer.assign([TopicPartition(topic, 0)])
    assert member.partitions == [0]


def test_who_does_not_poll_loses_its_partitions_and_hears_of_it(
    cluster: Cluster, topic: str, members: list[Member]
) -> None:
    members.append(
        Member(
            cluster.bootstrap_servers, topic, [topic], max_poll_interval_ms=1_500, enable_auto_commit=False
        )
    )
    idle = members[0]
    wait_assigned(members, PARTITIONS)
    busy = Member(cluster.bootstrap_servers, topic, [topic], enable_auto_commit=False)
    members.append(busy)
    poll_until([busy], lambda: busy.partitions == list(range(PARTITIONS)))
    with pytest.raises(BrokerError, match="poll"):
        idle.consumer.commit({TopicPartition(topic, 0): 1})
    wait_assigned(members, PARTITIONS)
    assert f"lost{PARTITIONS}" in idle.heard.signs()


def test_a_static_member_has_its_partitions_again_and_the_others_notice_nothing(
    cluster: Cluster, topic: str, members: list[Member]
) -> None:
    members.append(Member(cluster.bootstrap_servers, topic, [topic]))
    members.append(Member(cluster.bootstrap_servers, topic, [topic], group_instance_id="two"))
    wait_assigned(members, PARTITIONS)
    before, heard = members[1].partitions, members[0].heard.signs()
    members.pop().close()
    again = Member(cluster.bootstrap_servers, topic, [topic], group_instance_id="two")
    members.append(again)
    poll_until(members, lambda: again.partitions == before)
    assert members[0].heard.signs() == heard


def test_of_two_with_one_instance_id_the_older_is_told(
    cluster: Cluster, topic: str, members: list[Member]
) -> None:
    older = Member(cluster.bootstrap_servers, topic, [topic], group_instance_id="one")
    members.append(older)
    wait_assigned(members, PARTITIONS)
    newer = Member(cluster.bootstrap_servers, topic, [topic], group_instance_id="one")
    members.append(newer)
    poll_until([newer], lambda: newer.partitions == list(range(PARTITIONS)))
    with pytest.raises(BrokerError, match=r"FENCED_INSTANCE_ID.*give each its own"):
        poll_until([older], lambda: False)


def test_a_member_that_cannot_be_taken_in_is_told_why(
    cluster: Cluster, topic: str, members: list[Member]
) -> None:
    members.append(Member(cluster.bootstrap_servers, topic, [topic], partition_assignment_strategy="range"))
    wait_assigned(members, PARTITIONS)
    members.append(Member(cluster.bootstrap_servers, topic, [topic], partition_assignment_strategy="sticky"))
    with pytest.raises(
        BrokerError, match=r"INCONSISTENT_GROUP_PROTOCOL.*check partition\.assignment\.strategy"
    ):
        poll_until(members[1:], lambda: False)


def test_what_a_listener_raises_comes_out_of_the_poll_and_the_change_is_made(
    cluster: Cluster, topic: str
) -> None:
    class Failing(fairlead_kafka.RebalanceListener):
        def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            raise ValueError("no room")

    with Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic}) as consumer:
        consumer.subscribe([topic], Failing())
        with pytest.raises(ValueError, match="no room"):
            consumer.poll(PATIENCE_S)
        assert len(consumer.assignment()) == PARTITIONS


def test_offsets_go_into_a_transaction_with_the_members_name(
    cluster: Cluster, topic: str, members: list[Member]
) -> None:
    options = {
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
    }  # which waits for the transaction to end
    members.append(Member(cluster.bootstrap_servers, topic, [topic], **options))
    member, of = members[0], TopicPartition(topic, 0)
    poll_until(members, lambda: len(member.records) == PER_PARTITION * PARTITIONS)
    with fairlead_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic}
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            {of: fairlead_kafka.OffsetAndMetadata(7)}, member.consumer.group_metadata()
        )
        producer.commit_transaction()
    found = member.consumer.committed([of])[of]
    assert found is not None
    assert found.offset == 7


def test_an_awaiting_consumer_has_coroutines_for_listeners(cluster: Cluster, topic: str) -> None:
    class Listener(fairlead_kafka.RebalanceListener):
        async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            await consumer.commit()
            heard.append(len(partitions))

    heard: list[int] = []

    async def read() -> int:
        await consumer.subscribe([topic], Listener())
        got = 0
        while got < PER_PARTITION * PARTITIONS:
            got += len(await consumer.poll(1.0))
        await consumer.close()
        return got

    async def run() -> int:
        nonlocal consumer
        consumer = AsyncConsumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        return await asyncio.wait_for(read(), PATIENCE_S)

    consumer: AsyncConsumer = None  # type: ignore[assignment]
    assert asyncio.run(run()) == PER_PARTITION * PARTITIONS
    assert heard == [PARTITIONS]
    with Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic}) as other:
        of = TopicPartition(topic, 0)
        assert other.committed([of])[of].offset == PER_PARTITION


def test_a_consumer_without_a_group_says_what_it_lacks(cluster: Cluster) -> None:
    with Consumer({"bootstrap.servers": cluster.bootstrap_servers}) as consumer:
        for call in (
            lambda: consumer.subscribe(["t"]),
            consumer.commit,
            consumer.group_metadata,
            lambda: consumer.committed([]),
        ):
            with pytest.raises(UsageError, match=r"set group\.id"):
                call()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"enable.auto.commit": True}, "needs a group.id"),
        (
            {"group.id": "g", "partition.assignment.strategy": "fair"},
            "fair is unknown; there are range, roundrobin",
        ),
        (
            {"group.id": "g", "heartbeat.interval.ms": 9_000, "session.timeout.ms": 9_000},
            "must be less than session.timeout.ms",
        ),
    ],
)
def test_configs_that_make_no_sense_are_refused_at_once(config: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Consumer({"bootstrap.servers": "127.0.0.1:1", **config})


def test_a_text_is_not_taken_for_topics(cluster: Cluster) -> None:
    with (
        Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"}) as consumer,
        pytest.raises(UsageError, match=r'not .topic.; write \["topic"\] or re.compile\("topic\.\*"\)'),
    ):
        consumer.subscribe("topic")
