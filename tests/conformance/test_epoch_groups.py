"""Our consumer in KIP-848 groups on Apache Kafka and on our cluster: alone, and with members of
other makes.

Each record is read once; after a death, what the dead had not committed is read again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka import (
    ConfigChange,
    ConfigResource,
    OffsetAndMetadata,
    SubscriptionPattern,
    TopicPartition,
)
from fairlead_kafka.client import ResourceType
from tests.support.command_line import runner
from tests.support.epoch_members import Java, Librdkafka, Ours, produce, read_by, shared
from tests.support.group_clients import poll_until
from tests.support.transaction_check import read_committed
from tests.support.waiting import until_transactions_are_over

NewTopic = Callable[..., str]
PARTITIONS, EACH = 6, 20
WHOLE = list(itertools.product(range(PARTITIONS), range(EACH)))


@pytest.fixture(params=["apache_kafka", "embedded"])
def servers(request: pytest.FixtureRequest) -> str:
    """`bootstrap.servers` of an Apache Kafka, and of our cluster."""
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def topic(servers: str, new_topic: NewTopic) -> str:
    """A topic that has records, and gives the group its name."""
    name = new_topic(servers, partitions=PARTITIONS)
    produce(servers, name, PARTITIONS, EACH)
    return name


@pytest.fixture
def members() -> Iterator[list[Any]]:
    """A list of members, closed in the end."""
    found: list[Any] = []
    yield found
    for member in found:
        member.close()


def test_members_come_and_go_and_each_record_is_read_once(
    servers: str, topic: str, members: list[Any]
) -> None:
    gone = []
    for _ in range(3):
        members.append(Ours(servers, topic, topic))
        shared(members, PARTITIONS)
        produce(servers, topic, PARTITIONS, EACH)
    while len(members) > 1:
        gone.append(members.pop(0))
        gone[-1].close()
        shared(members, PARTITIONS)
        produce(servers, topic, PARTITIONS, EACH)
    everyone = [*gone, *members]
    poll_until(members, lambda: len(read_by(everyone)) == 6 * EACH * PARTITIONS)
    assert set(read_by(everyone).values()) == {1}
    assert not any(sign == "lost" for member in everyone for sign, _ in member.heard.log)
    kept = everyone[2].heard.log
    assert [sign for sign, partitions in kept if sign == "-" and partitions] == [], (
        "the last to come gave nothing"
    )


def test_three_makes_share_a_group_through_joins_and_leaves(
    servers: str, topic: str, members: list[Any]
) -> None:
    ours, librdkafkas, java = Ours(servers, topic, topic), Librdkafka(servers, topic, topic), None
    members += [ours, librdkafkas]
    shared(members, PARTITIONS)
    # librdkafka may give its application what it does not commit, if partitions go meanwhile.
    poll_until(members, lambda: len(read_by(members)) == len(WHOLE))
    java = Java(servers, topic, topic)
    members.append(java)
    third = PARTITIONS // 3
    poll_until(members, lambda: len(ours.partitions) == len(librdkafkas.partitions) == third)
    produce(servers, topic, PARTITIONS, EACH)
    poll_until(members, lambda: len(read_by(members)) == 2 * len(WHOLE) and bool(java.seen))
    assert set(read_by(members).values()) == {1}
    java.close()
    members.remove(java)
    shared(members, PARTITIONS)
    librdkafkas.close()
    members.remove(librdkafkas)
    shared(members, PARTITIONS)
    produce(servers, topic, PARTITIONS, EACH)
    everyone = [ours, librdkafkas, java]
    poll_until(members, lambda: len(read_by(everyone)) == 3 * len(WHOLE))
    assert set(read_by(everyone).values()) == {1}


@pytest.mark.parametrize("make", [Ours, Java])
def test_after_a_death_only_what_was_not_committed_is_read_again(
    servers: str, topic: str, members: list[Any], make: type
) -> None:
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        resource = ConfigResource(ResourceType.GROUP, topic)
        admin.alter_configs({resource: [ConfigChange.set("consumer.session.timeout.ms", "4000")]})
    dead = make(servers, topic, topic, auto_commit_interval_ms=100)
    poll_until([dead], lambda: len(read_by([dead])) == len(WHOLE))
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        poll_until(
            [dead],
            lambda: (
                sum(one.offset for one in admin.list_group_offsets([topic])[topic].values()) == len(WHOLE)
            ),
        )
    members.append(Ours(servers, topic, topic))
    poll_until([dead, *members], lambda: len(members[0].partitions) == PARTITIONS // 2)
    dead.kill()
    produce(servers, topic, PARTITIONS, EACH)
    shared(members, PARTITIONS)
    poll_until(members, lambda: len(read_by([dead, *members])) == 2 * len(WHOLE))
    again = [place for place, times in read_by([dead, *members]).items() if times > 1]
    assert all(offset >= EACH for _, offset in again), again


def test_a_static_member_has_its_partitions_back_and_nobody_else_hears_of_it(
    servers: str, topic: str, members: list[Any]
) -> None:
    members += [Ours(servers, topic, topic, group_instance_id=name) for name in ("one", "two")]
    shared(members, PARTITIONS)
    shares, heard = [member.partitions for member in members], members[1].heard.signs()
    members[0].close()
    members[0] = Ours(servers, topic, topic, group_instance_id="one")
    poll_until(members, lambda: [member.partitions for member in members] == shares)
    assert members[1].heard.signs() == heard
    same_id = Ours(servers, topic, topic, group_instance_id="one")
    with pytest.raises(fairlead_kafka.BrokerError, match="UNRELEASED_INSTANCE_ID"):
        poll_until([same_id], lambda: False)
    same_id.close()
    assert members[1].heard.signs() == heard


CLASSIC = {"group_protocol": "classic"}


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_live_group_is_rolled_to_the_new_protocol_and_back(
    servers: str, topic: str, members: list[Any], strategy: str
) -> None:
    """With Kafka's own consumer among ours. (librdkafka 2.16 does not commit when it leaves a group
    that is changing over, and tells the application of a join that is under way as an error.)"""
    assignors = {"range": "RangeAssignor", "cooperative-sticky": "CooperativeStickyAssignor"}
    java_name = f"org.apache.kafka.clients.consumer.{assignors[strategy]}"
    classic = CLASSIC | {"heartbeat_interval_ms": 100}
    rolls: list[Callable[[], Any]] = [
        lambda: Ours(servers, topic, topic),
        lambda: Ours(servers, topic, topic),
        lambda: Java(servers, topic, topic),
        lambda: Ours(servers, topic, topic, **classic, partition_assignment_strategy=strategy),
        lambda: Ours(servers, topic, topic, **classic, partition_assignment_strategy=strategy),
        lambda: Java(servers, topic, topic, **classic, partition_assignment_strategy=java_name),
    ]
    gone: list[Any] = []
    members += [made() for made in rolls[3:]]
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        shared_by(admin, topic, members)
        for number, made in enumerate(rolls):
            gone.append(members.pop(0))
            gone[-1].close()
            members.append(made())
            described = shared_by(admin, topic, members)
            produce(servers, topic, PARTITIONS, EACH)
            assert described.type == ("consumer" if number < 5 else "classic")
            if described.type == "consumer":
                upgraded = sum(bool(one.upgraded) for one in described.members)
                assert upgraded == (number + 1 if number < 3 else 5 - number)
    everyone = [*gone, *members]
    poll_until(members, lambda: len(read_by(everyone)) == 7 * len(WHOLE))
    again = {place for place, times in read_by(everyone).items() if times > 1}
    if strategy == "cooperative-sticky":
        # Kafka's own commits as a rebalance begins, and reads on until its end; what it reads then
        # of a partition that goes is not committed. Only an eager member stops (onJoinPrepare of
        # ConsumerCoordinator).
        again.difference_update(gone[2].seen)
    assert not again


def shared_by(admin: fairlead_kafka.Admin, group: str, members: list[Any]) -> Any:
    """Poll until the coordinator has shared all partitions among so many members, which read them;
    the description of the group."""
    each = PARTITIONS // len(members)
    found: list[Any] = [None]

    def evenly() -> bool:
        if group not in admin.list_groups():
            return False
        found[0] = admin.describe_groups([group])[group]
        shares = [member.assignment for member in found[0].members]
        wanted = [sorted(of.partition for of in share) for share in shares]
        return (
            found[0].state == "Stable"
            and [len(share) for share in shares] == [each] * len(members)
            and all(member.partitions in wanted for member in members if isinstance(member, Ours))
        )

    poll_until(members, evenly)
    return found[0]


def test_offsets_in_transactions_are_those_of_the_member_that_read(
    servers: str, topic: str, new_topic: NewTopic, members: list[Any]
) -> None:
    """Read, write, commit in a transaction, while members come: the copy has each record once."""
    copy = new_topic(servers, partitions=1)
    config = {"enable_auto_commit": False, "isolation_level": "read_committed", "max_poll_records": 10}
    members += [Ours(servers, topic, topic, **config) for _ in range(2)]
    producers = [
        fairlead_kafka.Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-{number}"})
        for number in range(3)
    ]
    for producer in producers:
        producer.init_transactions()

    def copied(member: Ours, producer: fairlead_kafka.Producer) -> int:
        records = member.consumer.poll(0.05)
        if not records:
            return 0
        producer.begin_transaction()
        for record in records:
            producer.send(copy, b"%d/%d" % (record.partition, record.offset))
        offsets = {
            TopicPartition(topic, record.partition): OffsetAndMetadata(record.offset + 1)
            for record in records
        }
        try:
            producer.send_offsets_to_transaction(offsets, member.consumer.group_metadata())
            producer.commit_transaction()
        except fairlead_kafka.FairleadError:
            producer.abort_transaction()
            for of, one in member.consumer.committed(list(offsets)).items():
                member.consumer.seek(of, 0 if one is None else one.offset)
            return 0
        return len(records)

    total = 0
    while total < len(WHOLE):
        for member, producer in zip(members, producers, strict=False):
            total += copied(member, producer)
        if total > len(WHOLE) // 4 and len(members) == 2:
            members.append(Ours(servers, topic, topic, **config))
    shared(members, PARTITIONS)
    generations = {member.consumer.group_metadata().generation_id for member in members}
    assert min(generations) > 0
    for producer in producers:
        producer.close()
    values = read_committed(servers, copy, 1)
    assert sorted(values) == sorted(b"%d/%d" % place for place in WHOLE)


def test_a_commit_of_another_epoch_is_refused_to_a_transaction(
    servers: str, topic: str, members: list[Any]
) -> None:
    members.append(Ours(servers, topic, topic, enable_auto_commit=False))
    shared(members, PARTITIONS)
    config = {"bootstrap.servers": servers, "transactional.id": topic}
    with fairlead_kafka.Producer(config) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        stale = members[0].consumer.group_metadata()._replace(generation_id=0)
        with pytest.raises(fairlead_kafka.FairleadError):
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(1)}, stale)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            {TopicPartition(topic, 0): OffsetAndMetadata(7)}, members[0].consumer.group_metadata()
        )
        producer.commit_transaction()
    until_transactions_are_over(servers)
    found = members[0].consumer.committed([TopicPartition(topic, 0)])
    assert found[TopicPartition(topic, 0)].offset == 7


def test_patterns_are_matched_by_brokers_and_new_topics_come(
    servers: str, topic: str, members: list[Any]
) -> None:
    members.append(Ours(servers, topic, SubscriptionPattern(f"{topic}(-.*)?")))
    shared(members, PARTITIONS)
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        admin.create_topics([fairlead_kafka.NewTopic(f"{topic}-later", partitions=1)])
    consumer = members[0].consumer
    consumer.subscribe(SubscriptionPattern(f"{topic}-l.*"), members[0].heard)
    poll_until(members, lambda: consumer.subscription() == [f"{topic}-later"])
    consumer.subscribe([topic], members[0].heard)
    shared(members, PARTITIONS)
    assert consumer.subscription() == [topic]
    assert not any(sign == "lost" for sign, _ in members[0].heard.log)


def test_an_async_consumer_reads_with_the_protocol(servers: str, topic: str) -> None:
    async def read() -> int:
        config = {
            "bootstrap.servers": servers,
            "group.id": topic,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
        count = 0
        async with fairlead_kafka.AsyncConsumer(config) as consumer:
            await consumer.subscribe([topic])
            async for _ in consumer:
                count += 1
                if count == len(WHOLE):
                    break
        return count

    assert asyncio.run(read()) == len(WHOLE)
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        offsets = admin.list_group_offsets([topic])[topic]
        assert {one.offset for one in offsets.values()} == {EACH}
        assert admin.list_groups()[topic].state == "Empty"


def test_the_command_line_reads_with_the_protocol_and_shows_its_groups(
    servers: str,
    topic: str,
    members: list[Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = runner(servers, capsys, monkeypatch)
    options = ("-g", topic, "-X", "group.protocol=consumer", "--from-beginning", "--until-end")
    assert len(run("consume", topic, *options).out.splitlines()) == len(WHOLE)
    members.append(Ours(servers, topic, topic, group_remote_assignor="range"))
    shared(members, PARTITIONS)
    described = run("groups", "describe", topic, "--members")
    epoch = members[0].consumer.group_metadata().generation_id
    assert f"{topic}: Stable (consumer), range, epoch {epoch}, assigned in {epoch}" in described.out
    group = json.loads(run("groups", "describe", topic, "--json", "-").out)
    (member,) = group["members"]
    assert (group["type"], group["epoch"], member["epoch"]) == ("consumer", epoch, epoch)
    assert member["assignment"] == member["target_assignment"] == {topic: list(range(PARTITIONS))}
    assert members[0].seen == []
    (listed,) = [one for one in run("groups", "list", "--json").rows() if one["group"] == topic]
    assert listed["type"].lower() == "consumer"
