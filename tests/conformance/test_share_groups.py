"""Our share consumer and admin client, with Java's share consumer in the same group, on Apache
Kafka and on the embedded cluster."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import AcknowledgeType, ConfigChange, ConfigResource, ShareConsumer, ShareRecord
from fairlead_kafka.admin import SharePartitionOffset
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.client import ResourceType
from tests.conformance.conftest import QUICK_SHARES
from tests.support.share_members import Got, ShareMember, ShareMembers
from tests.support.waiting import until

ck = pytest.importorskip("confluent_kafka")
_numbers = itertools.count()


class Share:
    """A share group of its own that reads a topic of its own from the beginning."""

    def __init__(self, java: ShareMembers, servers: str, topic: str, **configs: str) -> None:
        self._java = java
        self.servers, self.topic, self.group = servers, topic, f"share-{next(_numbers)}-{topic}"
        self.place = fairlead_kafka.TopicPartition(topic, 0)
        self.alter(**{"share_auto_offset_reset": "earliest"} | configs)

    def admin(self) -> fairlead_kafka.Admin:
        return fairlead_kafka.Admin({"bootstrap.servers": self.servers})

    def alter(self, **configs: str) -> None:
        """Set configs of the group, with underscores for dots."""
        changes = [ConfigChange.set(key.replace("_", "."), value) for key, value in configs.items()]
        with self.admin() as admin:
            admin.alter_configs({ConfigResource(ResourceType.GROUP, self.group): changes})

    def write(self, *values: bytes, partition: int = 0) -> None:
        with fairlead_kafka.Producer({"bootstrap.servers": self.servers}) as producer:
            for value in values:
                producer.send(self.topic, value, partition=partition)

    def member(self, mode: str = "explicit", **configs: str) -> ShareConsumer:
        settings = {"bootstrap.servers": self.servers, "group.id": self.group}
        settings |= {"share.acknowledgement.mode": mode}
        made = ShareConsumer(settings | {key.replace("_", "."): value for key, value in configs.items()})
        made.subscribe([self.topic])
        return made

    def java(self, mode: str = "explicit", **configs: str) -> ShareMember:
        """A member of Kafka's own client."""
        settings = {"share_acknowledgement_mode": mode, **configs}
        return self._java.member(self.servers, self.group, self.topic, **settings)

    def offset(self) -> SharePartitionOffset | None:
        """How far the group is with partition 0, by the admin client."""
        with self.admin() as admin:
            return admin.list_share_group_offsets([self.group])[self.group].get(self.place)

    def lag(self) -> int | None:
        """How many records are not done with. (The start offset moves later than that.)"""
        found = self.offset()
        return None if found is None else found.lag


@pytest.fixture(scope="module")
def own_cluster(kafka_jars: str) -> Iterator[str]:
    with fairlead_kafka.Cluster(config=QUICK_SHARES) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture(params=["apache_kafka", "own_cluster"])
def made(
    request: pytest.FixtureRequest, new_topic: Callable[..., str], share_members: ShareMembers
) -> Callable[..., Share]:
    """Makes a share group, with configs of its own, that reads a topic of its own."""
    servers = request.getfixturevalue(request.param)

    def make(**configs: str) -> Share:
        return Share(share_members, servers, new_topic(servers, partitions=1), **configs)

    return make


@pytest.fixture
def share(made: Callable[..., Share]) -> Share:
    return made()


def got(member: ShareConsumer, count: int) -> list[ShareRecord]:
    """The records of one poll, as soon as one gives any; there are `count`."""
    found: list[ShareRecord] = []

    def polled() -> bool:
        found.extend(member.poll(0.5))
        return bool(found)

    until(polled)
    assert len(found) == count, found
    return found


def values(member: ShareConsumer, count: int) -> list[bytes]:
    """The values of the next records, of as many polls as that takes; all are accepted."""
    found: list[bytes] = []

    def polled() -> bool:
        for record in member.poll(0.5):
            found.append(record.value)
            member.acknowledge(record)
        return len(found) >= count

    until(polled)
    return found


def offsets(records: Sequence[ShareRecord | Got]) -> list[tuple[int, int]]:
    """Offset and delivery count of each."""
    return [
        (each.offset, each.deliveries if isinstance(each, Got) else each.delivery_count) for each in records
    ]


def assigned(consumer: ShareConsumer) -> float:
    """Partitions that a share consumer reads."""
    return consumer.metrics()["consumer-share-coordinator-metrics"]["assigned-partitions"]


def test_types_of_acknowledgements_and_delivery_counts(share: Share) -> None:
    share.write(b"a", b"b", b"c", b"d")
    with share.member() as member:
        records = got(member, 4)
        assert [record.value for record in records] == [b"a", b"b", b"c", b"d"]
        assert member.acquisition_lock_timeout_ms() == 30_000
        kinds = ("ACCEPT", "RELEASE", "REJECT", "RENEW")
        for record, kind in zip(records, kinds, strict=True):
            member.acknowledge(record, AcknowledgeType[kind])
        (renewed,) = got(member, 1)
        assert (renewed.value, renewed.delivery_count) == (b"d", 1)
        member.acknowledge(renewed)
        (again,) = got(member, 1)
        assert (again.value, again.delivery_count) == (b"b", 2)
        member.acknowledge(again)
        assert member.commit() == {share.place: None}
        assert member.poll(0.2) == []
    until(lambda: share.lag() == 0)


def test_tables_are_acknowledged_by_a_column(share: Share) -> None:
    share.write(*(b"%d" % n for n in range(100)))
    with share.member() as member:
        tables: list[pa.Table] = []

        def polled() -> bool:
            tables.append(member.poll_table(0.5))
            return tables[-1].num_rows > 0

        until(polled)
        table = tables[-1]
        assert table.num_rows == 100
        kinds = ["release" if n % 10 == 0 else "accept" for n in table.column("offset").to_pylist()]
        member.acknowledge_table(table.append_column("acknowledge_type", pa.array(kinds)))
        until(polled)
        again = tables[-1]
        assert again.column("offset").to_pylist() == list(range(0, 100, 10))
        assert set(again.column("delivery_count").to_pylist()) == {2}
        numbers = pa.array([AcknowledgeType.REJECT] * 10, pa.int8())
        member.acknowledge_table(again.append_column("acknowledge_type", numbers))
        assert member.commit() == {share.place: None}
    until(lambda: share.lag() == 0)


def test_closing_releases_for_javas_member_and_javas_closing_for_ours(share: Share) -> None:
    share.write(b"a", b"b")
    with share.java() as java:
        with share.member() as member:
            assert offsets(got(member, 2)) == [(0, 1), (1, 1)]
        seen: list[Got] = []
        until(lambda: seen.extend(java.poll()) or bool(seen))
        assert offsets(seen) == [(0, 2), (1, 2)]
        java.acknowledge(seen[0], "ACCEPT")
    with share.member() as member:
        assert offsets(got(member, 1)) == [(1, 3)]
        member.acknowledge_offset(share.topic, 0, 1, AcknowledgeType.ACCEPT)
        assert member.commit() == {share.place: None}


def test_a_lock_that_ends_passes_the_record_on(made: Callable[..., Share]) -> None:
    share = made(share_record_lock_duration_ms="1000")
    share.write(b"a")
    with share.member() as member, share.java() as java:
        (record,) = got(member, 1)
        share.alter(share_record_lock_duration_ms="30000")  # of the locks from here on: Java's lasts
        seen: list[Got] = []
        until(lambda: seen.extend(java.poll()) or bool(seen))
        assert offsets(seen) == [(0, record.delivery_count + 1)]
        member.acknowledge(record)
        error = member.commit()[share.place]
        assert isinstance(error, fairlead_kafka.BrokerError)
        assert error.code == ErrorCode.INVALID_RECORD_STATE
        java.acknowledge(seen[0], "ACCEPT")
        java.commit()
    until(lambda: share.lag() == 0)


def test_a_renewed_lock_lasts(made: Callable[..., Share]) -> None:
    share = made(share_record_lock_duration_ms="8000")
    with share.member() as member, share.java() as java:
        java.commit()  # it is a member from here on, and has asked for nothing
        share.write(b"a")
        (record,) = got(member, 1)
        for _ in range(9):
            member.acknowledge(record, AcknowledgeType.RENEW)
            (record,) = got(member, 1)
            assert record.delivery_count == 1
            assert java.poll(1000) == []
        member.acknowledge(record)
        assert member.commit() == {share.place: None}


@pytest.mark.parametrize(
    ("level", "read"), [("read_committed", [b"a", b"c"]), ("read_uncommitted", [b"a", b"b", b"c", b"d"])]
)
def test_the_isolation_level_is_the_groups(made: Callable[..., Share], level: str, read: list[bytes]) -> None:
    share = made(share_isolation_level=level)
    config = {"bootstrap.servers": share.servers, "transactional.id": share.topic}
    with fairlead_kafka.Producer(config) as producer, share.member() as member:
        producer.init_transactions()
        for value, ends in (
            (b"a", producer.commit_transaction),
            (b"b", producer.abort_transaction),
            (b"c", producer.commit_transaction),
        ):
            producer.begin_transaction()
            producer.send(share.topic, value, partition=0).result()
            ends()
        producer.begin_transaction()
        producer.send(share.topic, b"d", partition=0).result()
        assert values(member, len(read)) == read
        producer.commit_transaction()
        assert values(member, 1) == [b"d"] if level == "read_committed" else member.poll(0.2) == []
        assert set(member.commit().values()) <= {None}  # the poll has sent most of them
    until(lambda: share.lag() == 0)


def test_a_group_begins_so_long_ago(made: Callable[..., Share]) -> None:
    share = made(share_auto_offset_reset="by_duration:PT1H")
    now_ms = int(time.time() * 1000)
    with fairlead_kafka.Producer({"bootstrap.servers": share.servers}) as producer:
        for minutes in (120, 61, 59, 0):
            at_ms = now_ms - 60_000 * minutes
            producer.send(share.topic, b"%d" % minutes, partition=0, timestamp_ms=at_ms).result()
    with share.member() as member:
        assert values(member, 2) == [b"59", b"0"]
        assert set(member.commit().values()) <= {None}


def test_configs_of_the_group_say_how_long_and_how_often(made: Callable[..., Share]) -> None:
    share = made(share_record_lock_duration_ms="15000", share_delivery_count_limit="2")
    share.write(b"a", b"b")
    with share.member() as member:
        for delivery in (1, 2):
            records = got(member, 2)
            assert offsets(records) == [(0, delivery), (1, delivery)]
            assert member.acquisition_lock_timeout_ms() == 15_000
            for record in records:
                member.acknowledge(record, AcknowledgeType.RELEASE)
            assert member.commit() == {share.place: None}
        assert member.poll(0.3) == []
        share.write(b"c")
        assert offsets(got(member, 1)) == [(2, 1)]


def test_no_more_records_are_in_flight_than_the_group_allows(made: Callable[..., Share]) -> None:
    share = made(share_partition_max_record_locks="100")
    batch = pa.table({"value": [b"x"] * 10, "partition": pa.array([0] * 10, pa.int32())})
    with fairlead_kafka.Producer({"bootstrap.servers": share.servers}) as producer:
        for _ in range(30):
            producer.send_table(share.topic, batch).result()
    config = {"bootstrap.servers": share.servers, "group.id": share.group}
    with share.member() as member, ck.ShareConsumer(config) as theirs:
        assert offsets(got(member, 100)) == [(offset, 1) for offset in range(100)]
        theirs.subscribe([share.topic])
        with share.admin() as admin:

            def both_assigned() -> bool:
                members = admin.describe_share_groups([share.group])[share.group].members
                return len([one for one in members if one.assignment]) == 2

            until(both_assigned)
            assert len(theirs.poll(0.5)) == 0
            change = ConfigChange.set("share.partition.max.record.locks", 130)
            admin.alter_configs({ConfigResource.group(share.group): [change]})
        found: list[int | None] = []

        def polled() -> bool:
            found.extend(message.offset() for message in theirs.poll(0.5))
            return bool(found)

        until(polled)
        assert found == list(range(100, 130))


def test_two_members_share_one_partition_with_javas(share: Share) -> None:
    size, written = 25, 0
    seen: dict[str, list[int]] = {"ours": [], "other": [], "java": []}
    with (
        share.member("implicit", max_poll_records="10") as ours,
        share.member("implicit", max_poll_records="10") as other,
        share.java("implicit", max_poll_records="10") as java,
    ):
        until(lambda: assigned(ours) == assigned(other) == 1)

        def all_read() -> bool:
            seen["ours"] += [record.offset for record in ours.poll(0.1)]
            seen["java"] += [record.offset for record in java.poll(100)]
            seen["other"] += [record.offset for record in other.poll(0.1)]
            return sum(map(len, seen.values())) >= written

        def all_have_some() -> bool:
            nonlocal written
            written += size
            share.write(*(b"%d" % n for n in range(written - size, written)))
            all_read()
            return all(seen.values())

        until(all_have_some)
        until(all_read)
        ours.commit()
        other.commit()
        java.commit()
    every = [offset for offsets in seen.values() for offset in offsets]
    assert sorted(every) == list(range(written)), "each record once, at one of them"
    until(lambda: share.lag() == 0)


def test_librdkafkas_member_shares_a_partition_with_ours(share: Share) -> None:
    size = 20
    written: list[int] = []
    seen: dict[str, list[int]] = {"ours": [], "theirs": []}
    config = {"bootstrap.servers": share.servers, "group.id": share.group, "max.poll.records": 5}
    with share.member("implicit", max_poll_records="5") as ours, ck.ShareConsumer(config) as theirs:
        theirs.subscribe([share.topic])

        def read() -> bool:
            seen["ours"] += [record.offset for record in ours.poll(0.1)]
            messages = theirs.poll(0.1)
            assert all(message.error() is None for message in messages)
            seen["theirs"] += [message.offset() for message in messages]
            return len(seen["ours"]) + len(seen["theirs"]) >= len(written)

        def both_have_some() -> bool:
            written.extend(range(len(written), len(written) + size))
            share.write(*(b"%d" % number for number in written[-size:]))
            read()
            return all(seen.values())

        until(both_have_some)
        until(read)
        ours.commit()
        theirs.commit_sync()
    assert sorted(seen["ours"] + seen["theirs"]) == written, "each record once"
    until(lambda: share.lag() == 0)


def test_record_limit(share: Share) -> None:
    share.write(*(b"%d" % n for n in range(50)))
    with share.member("implicit", share_acquire_mode="record_limit", max_poll_records="7") as member:
        sizes: list[int] = []

        def polled() -> bool:
            sizes.append(len(member.poll(0.5)))
            return sum(sizes) == 50

        until(polled)
        assert max(sizes) == 7


def test_the_admin_client_describes_moves_and_deletes(share: Share) -> None:
    share.write(*(b"%d" % n for n in range(10)))
    with share.admin() as admin:
        with share.member("implicit", client_id="ours") as member:
            got(member, 10)
            member.commit()
            described = admin.describe_share_groups([share.group], include_authorized_operations=True)
            group = described[share.group]
            assert (group.state, group.assignor) == ("Stable", "simple")
            (one,) = group.members
            assert (one.client_id, one.topics, one.assignment) == ("ours", (share.topic,), (share.place,))
            assert group.authorized_operations is not None
            assert admin.list_groups(types=["share"])[share.group].state == "Stable"
            with pytest.raises(fairlead_kafka.ItemsFailed, match="NON_EMPTY_GROUP"):
                admin.alter_share_group_offsets(share.group, {share.place: 3})
        until(lambda: share.lag() == 0)
        assert admin.alter_share_group_offsets(share.group, {share.place: 3}) == {share.place: None}
        assert share.offset() == (3, 7, 0)
        with share.member("implicit") as member:
            assert [record.offset for record in got(member, 7)] == list(range(3, 10))
        assert admin.delete_share_group_offsets(share.group, [share.topic]) == {share.topic: None}
        assert share.offset() is None
        assert admin.delete_groups([share.group]) == {share.group: None}
        with pytest.raises(fairlead_kafka.ItemsFailed):
            admin.describe_share_groups([share.group])


async def _read_all(share: Share) -> list[tuple[int, int]]:
    settings = {"bootstrap.servers": share.servers, "group.id": share.group}
    async with fairlead_kafka.AsyncShareConsumer(settings) as member:
        await member.subscribe([share.topic])
        while not (records := await member.poll(0.5)):
            pass
        assert await member.commit() == {share.place: None}
        table = await member.poll_table(0.2)
        assert table.num_rows == 0
        return offsets(records)


def test_on_an_event_loop(share: Share) -> None:
    import asyncio

    share.write(b"a", b"b")
    assert asyncio.run(asyncio.wait_for(_read_all(share), 60)) == [(0, 1), (1, 1)]
