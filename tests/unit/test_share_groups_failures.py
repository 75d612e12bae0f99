"""Share partitions whose state cannot be taken up, or written: who waits is refused, and the next
request begins another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from unittest.mock import Mock

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.k78_share_fetch import REFUSED_WAIT_MAX_MS
from fairlead_kafka.broker.share_groups import (
    ShareCoordinator,
    SharePartition,
    StateBatch,
    StatePersister,
    Window,
)
from fairlead_kafka.wire import ApiKey, Message
from tests.support.share_group_rig import GROUP, ShareGroupRig

ACCEPT = 1


@pytest.fixture
def rig() -> ShareGroupRig:
    made = ShareGroupRig()
    made.produce(10)
    return made


def test_a_share_partition_whose_start_raises_fails_who_waits_for_it_and_is_begun_again(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, raised = SharePartition._begin, list[int]()

    def raises(share: SharePartition, start: int, batches: Sequence[StateBatch]) -> None:
        if not raised:
            raised.append(start)
            raise ZeroDivisionError("of this test")
        begin(share, start, batches)

    monkeypatch.setattr(SharePartition, "_begin", raises)
    read, asked = ShareCoordinator.read, list[Callable[[], None]]()
    # So that both clients wait for the same read.
    monkeypatch.setattr(
        ShareCoordinator,
        "read",
        lambda own, key, epoch, done: asked.append(lambda: read(own, key, epoch, done)),
    )
    clients = [rig.driver.connect(), rig.driver.connect()]
    for client, member in zip(clients, "mz", strict=True):
        client.send(ApiKey.SHARE_FETCH, 2, **rig.fields(0, member, max_wait_ms=60_000))
    monkeypatch.setattr(ShareCoordinator, "read", read)
    (ask,) = asked
    ask()
    rig.driver.advance(REFUSED_WAIT_MAX_MS)
    assert [client.closed for client in clients] == [False, False]
    codes = {client.arrived[0].responses[0].partitions[0].error_code for client in clients}
    assert (raised, codes) == ([0], {ErrorCode.UNKNOWN_SERVER_ERROR})
    assert (len(rig.partitions), rig.driver.broker.errors) == (0, 1)
    assert rig.fetch(clients[0], 1) == [(0, 9, 1)]


@pytest.mark.parametrize("where", ["begun", "ended"])
def test_a_write_that_raises_fails_who_waits_for_it_and_the_share_partition_is_begun_again(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    rig.produce(10)
    clients = [rig.driver.connect(), rig.driver.connect()]
    for client, member, first in zip(clients, "mz", (0, 10), strict=True):
        assert rig.fetch(client, 0, member, max_records=5) == [(first, first + 9, 1)]
    write, asked = ShareCoordinator.write, list[Callable[[], None]]()
    with monkeypatch.context() as held:
        # So that the second waits behind the write of the first.
        held.setattr(
            ShareCoordinator,
            "write",
            lambda own, key, epoch, update, done: asked.append(lambda: write(own, key, epoch, update, done)),
        )
        for client, member, first in zip(clients, "mz", (0, 10), strict=True):
            acks = rig.ack_fields(1, (first, first + 9, [ACCEPT]), member=member)
            client.send(ApiKey.SHARE_ACKNOWLEDGE, 2, **acks)
        rig.driver.advance(50)
    (ask,) = asked
    with monkeypatch.context() as broken:
        raises = Mock(side_effect=ZeroDivisionError("of this test"))
        if where == "begun":
            broken.setattr(StatePersister, "write", raises)  # of the second, once the first is written
        else:
            broken.setattr(Window, "complete", raises)
        ask()
        rig.driver.advance(1000)
    raises.assert_called_once()
    assert [client.closed for client in clients] == [False, False]
    codes = [client.arrived[-1].responses[0].partitions[0].error_code for client in clients]
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    assert codes == ([ErrorCode.NONE, unknown] if where == "begun" else [unknown, unknown])
    assert (len(rig.partitions), rig.driver.broker.errors) == (0, 1)
    # What is in the share coordinator's log is accepted.
    assert rig.fetch(clients[1], 2, "z") == [(10, 19, 1)]
    assert rig.acknowledge(clients[1], 3, (10, 19, [ACCEPT]), member="z") == ErrorCode.NONE


def test_a_share_partition_of_an_offline_log_is_refused_and_begun_again(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its group reads from the end, which the leader alone knows."""
    latest = Message(name="share.auto.offset.reset", config_operation=0, value="latest")
    resource = Message(resource_type=32, resource_name=GROUP, configs=[latest])
    rig.call(rig.admin, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    replication = type(rig.driver.broker.replication)
    with monkeypatch.context() as offline:
        offline.setattr(replication, "led", lambda _own, _partition: None)
        offline.setattr(replication, "leading", Mock(side_effect=BrokerError(6, "offline")))
        client = rig.driver.connect()
        answer = rig.call(client, ApiKey.SHARE_FETCH, 2, **rig.fields(0))
        row = answer.responses[0].partitions[0]
    assert (row.error_code, rig.driver.broker.errors) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
    assert rig.fetch(client, 1) == []
    rig.produce(1)
    assert rig.fetch(client, 2) == [(10, 10, 1)]


def damaged(rig: ShareGroupRig) -> Callable[[], None]:
    """Have three batches of ten records, the first of them damaged, of which nothing is cached; a
    function that mends it."""
    rig.produce(10)
    rig.produce(10)
    partition = rig.driver.broker.log_of("t", 0)
    rig.driver.broker.logs.cache.rewind(0, 0)
    position = partition.index.location(0).position + 66
    file = rig.driver.disk.files["/data/log/000000000001.log"]

    def flip() -> None:
        file[position] ^= 1

    flip()
    return flip


def test_what_lies_behind_a_damaged_batch_is_delivered_once_it_is_mended(rig: ShareGroupRig) -> None:
    """It was archived after share.delivery.count.limit fetches, and nobody had seen it."""
    mend = damaged(rig)
    client = rig.driver.connect()
    for epoch in range(10):
        answer = rig.call(client, ApiKey.SHARE_FETCH, 2, **rig.fields(epoch))
        (row,) = answer.responses[0].partitions
        assert (row.error_code, row.acquired_records) == (ErrorCode.CORRUPT_MESSAGE, [])
    assert rig.describe() == (0, [(-1, -1)])  # nothing was written
    mend()
    assert rig.fetch(client, 10) == [(0, 29, 1)]
    assert rig.acknowledge(client, 11, (0, 29, [ACCEPT])) == ErrorCode.NONE


def test_a_fetch_that_waits_is_answered_once_when_another_could_not_read(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged(rig)
    logs = rig.driver.broker.logs
    read, reads = logs.read, list[Callable[[], None]]()
    monkeypatch.setattr(logs, "read", lambda *asked: reads.append(lambda: read(*asked)))
    clients = [rig.driver.connect(), rig.driver.connect()]
    for client, member in zip(clients, "mz", strict=True):
        client.send(ApiKey.SHARE_FETCH, 2, **rig.fields(0, member, max_wait_ms=60_000))
        rig.driver.advance(100)
    assert len(reads) == 1  # the other one waits
    for number, client in enumerate(clients):
        assert not client.arrived
        reads[number]()
        rig.driver.advance(1000)
        (row,) = client.arrived[0].responses[0].partitions
        assert (row.error_code, row.acquired_records) == (ErrorCode.CORRUPT_MESSAGE, [])
    assert len(reads) == 2
