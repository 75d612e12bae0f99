"""Ids as long as they may be, and longer: what a record keeps of them fits, and what cannot be
packed leaves nothing behind."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.broker.coordinator.group import member_id_of
from fairlead_kafka.broker.transactions.image import TransactionImage
from fairlead_kafka.broker.transactions.log import Transaction, TransactionLog, TransactionShard
from fairlead_kafka.broker.transactions.states import TransactionState
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Driver

LONG = "x" * (STRING_MAX_BYTES + 1)


@pytest.mark.parametrize("name", ["", "reader", "r" * STRING_MAX_BYTES, "ü" * (STRING_MAX_BYTES // 2)])
def test_a_member_s_id_fits_its_record_however_long_its_client_s_is(name: str) -> None:
    member_id = member_id_of(name, "0123-4567")
    assert len(member_id.encode()) <= STRING_MAX_BYTES
    assert member_id.endswith("-0123-4567")
    assert name.startswith(member_id.removesuffix("-0123-4567"))


def test_a_member_with_the_longest_ids_that_there_are_joins_and_is_written() -> None:
    driver = Driver({"group.initial.rebalance.delay.ms": 0})
    client, longest = driver.connect(), "g" * STRING_MAX_BYTES
    client.ask(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[longest])
    member_id = ""
    protocols = [Message(name="range", metadata=b"")]
    for _ in range(2):
        joined = client.ask(
            ApiKey.JOIN_GROUP,
            9,
            group_id=longest,
            session_timeout_ms=6000,
            rebalance_timeout_ms=6000,
            member_id=member_id,
            group_instance_id="i" * STRING_MAX_BYTES,
            protocol_type="consumer",
            protocols=protocols,
        )
        member_id = joined.member_id
    assert joined.error_code == 0
    assigned = [Message(member_id=member_id, assignment=b"")]
    synced = client.ask(
        ApiKey.SYNC_GROUP,
        5,
        group_id=longest,
        generation_id=joined.generation_id,
        member_id=member_id,
        assignments=assigned,
        protocol_type="consumer",
        protocol_name="range",
        group_instance_id="i" * STRING_MAX_BYTES,
    )
    assert synced.error_code == 0
    driver.advance(60_000)  # its session ends on a timer, which writes the group once more
    described = client.ask(ApiKey.DESCRIBE_GROUPS, 5, groups=[longest])
    assert (described.groups[0].group_state, described.groups[0].members) == ("Empty", [])


def test_a_longer_group_id_ends_its_connection_and_nothing_else() -> None:
    driver = Driver()
    neighbour, client = driver.connect(), driver.connect()
    compact = b"\x81\x80\x02" + LONG.encode()  # 32768 and one, as an unsigned varint
    body = bytes.fromhex("000b 0009 00000001 ffff 00") + compact + bytes(40)
    client.send_bytes(len(body).to_bytes(4, "big") + body)
    assert client.closed
    assert neighbour.ask(ApiKey.LIST_GROUPS, 4).error_code == 0


def test_what_cannot_be_packed_leaves_no_transaction_pending() -> None:
    log, shard = TransactionLog(lambda *_: None, lambda: 2), TransactionShard(0)
    transaction = Transaction(LONG, TransactionImage(1, 0, 1000, TransactionState.EMPTY))
    shard.transactions[LONG] = transaction
    with pytest.raises(Exception, match="format"):
        log.write(shard, transaction, transaction.image, lambda _: None)
    assert transaction.pending is None
    with pytest.raises(Exception, match="format"):
        log.forget(shard, [transaction])
    assert transaction.pending is None


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        ("producer", "transactional.id"),
        ("consumer", "group.id"),
        ("consumer", "group.instance.id"),
        ("admin", "client.id"),
    ],
)
def test_a_config_says_at_once_that_a_name_is_too_long(scope: str, key: str) -> None:
    given = {"bootstrap.servers": "h:1", key: LONG}
    with pytest.raises(
        ConfigError, match=rf"{key}: must be 1 to 32767 bytes of UTF-8, and is 32768, got 'x+…"
    ) as caught:
        CLIENT_CONFIGS.parse(scope, given)
    assert len(str(caught.value)) < 400
    assert CLIENT_CONFIGS.parse(scope, {**given, key: "x" * STRING_MAX_BYTES})[key]
