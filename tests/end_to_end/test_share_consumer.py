"""Share consumers and the command line on the embedded cluster: cancelled polls, threads, clients
that are dropped, several members."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Iterator

import pytest

import fairlead_kafka
from fairlead_kafka import AsyncShareConsumer, ConfigChange, ConfigResource, ShareConsumer, UsageError
from fairlead_kafka.testing import Cluster
from tests.support.command_line import runner
from tests.support.waiting import until

QUICK = {"group.share.heartbeat.interval.ms": 200, "group.share.min.heartbeat.interval.ms": 200}
TOPIC, GROUP = "jobs", "workers"


@pytest.fixture
def servers() -> Iterator[str]:
    """A cluster with ten records in each of two partitions, and a group that begins with the
    first."""
    with Cluster(brokers=2, config=QUICK) as cluster:
        with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic(TOPIC, partitions=2)])
            start = ConfigChange.set("share.auto.offset.reset", "earliest")
            admin.alter_configs({ConfigResource.group(GROUP): [start]})
        with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            for number in range(20):
                producer.send(TOPIC, b"%d" % number, partition=number % 2)
        yield cluster.bootstrap_servers


def settings(servers: str, **configs: str) -> dict[str, str]:
    own = {key.replace("_", "."): value for key, value in configs.items()}
    return {"bootstrap.servers": servers, "group.id": GROUP} | own


def got(member: ShareConsumer, count: int) -> list[tuple[bytes | None, int]]:
    """Values and delivery counts of so many records."""
    found: list[tuple[bytes | None, int]] = []

    def polled() -> bool:
        found.extend((record.value, record.delivery_count) for record in member.poll(0.2))
        return len(found) >= count

    until(polled)
    return found


def test_a_poll_that_is_cancelled_loses_nothing(servers: str) -> None:
    async def run() -> list[bytes]:
        seen: list[bytes] = []
        async with AsyncShareConsumer(settings(servers, max_poll_records="3")) as member:
            await member.subscribe([TOPIC])
            for wait_s in (0.0, 0.001, 0.003, 0.01, 0.03, 0.1) * 3:
                polling = asyncio.ensure_future(member.poll(5))
                await asyncio.sleep(wait_s)
                if not polling.done():
                    polling.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    seen += [record.value or b"" for record in await polling]
            while len(seen) < 20:
                seen += [record.value or b"" for record in await member.poll(1)]
            assert all(error is None for error in (await member.commit()).values())
        return seen

    assert sorted(asyncio.run(asyncio.wait_for(run(), 60))) == sorted(b"%d" % n for n in range(20))


def test_closing_in_another_thread_ends_a_poll(servers: str) -> None:
    member = ShareConsumer(settings(servers))
    member.subscribe([TOPIC])
    got(member, 20)
    assert set(member.commit().values()) == {None}
    closing = threading.Timer(0.3, member.close)
    closing.start()
    with pytest.raises(UsageError, match="closed"):
        member.poll(60)
    closing.join()


def test_a_consumer_that_is_dropped_releases_what_it_had(servers: str) -> None:
    member = ShareConsumer(settings(servers))
    member.subscribe([TOPIC])
    got(member, 1)
    del member
    gc.collect()
    with ShareConsumer(settings(servers)) as other:
        other.subscribe([TOPIC])
        assert {value for value, _ in got(other, 20)} == {b"%d" % n for n in range(20)}


def test_a_member_for_which_a_broker_has_no_session_waits_until_another_ends() -> None:
    config = {**QUICK, "group.share.max.share.sessions": 1}
    with Cluster(brokers=1, config=config) as cluster:
        servers = cluster.bootstrap_servers
        with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic(TOPIC, partitions=1)])
            start = ConfigChange.set("share.auto.offset.reset", "earliest")
            admin.alter_configs({ConfigResource.group(GROUP): [start]})
        with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
            for value in (b"a", b"b"):
                producer.send(TOPIC, value)
        with ShareConsumer(settings(servers)) as member, ShareConsumer(settings(servers)) as other:
            member.subscribe([TOPIC])
            other.subscribe([TOPIC])
            assert len(got(member, 2)) == 2
            assert other.poll(0.5) == []
            member.close()
            assert sorted(got(other, 2)) == [(b"a", 2), (b"b", 2)]


def test_the_command_line_accepts_what_it_prints(
    servers: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = runner(servers, capsys, monkeypatch)
    first = at("consume", TOPIC, "--share", GROUP, "-n", "15")
    assert (first.code, len(first.out.split())) == (0, 15)
    described = at("groups", "describe", GROUP, "--json", "-").rows()
    assert [group["type"] for group in described] == ["share"]
    assert sum(row["lag"] for row in described[0]["partitions"]) == 5
    rest = at("consume", TOPIC, "--share", GROUP, "-n", "5")
    assert sorted(first.out.split() + rest.out.split()) == sorted(str(n) for n in range(20))
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        producer.send(TOPIC, b"last")
    last = at("consume", TOPIC, "--share", GROUP, "--from-beginning", "-n", "1")
    assert (last.code, last.out) == (0, "last\n")
    assert "goes on where it was" in " ".join(last.err.split())
