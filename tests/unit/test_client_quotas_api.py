"""AlterClientQuotas and DescribeClientQuotas: what is taken, what is refused, what is found again,
also after a restart."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.broker import Controller
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Client, Driver
from tests.support.quota_calls import Entity, alter_fields, alteration, described, parts

ALICE: Entity = {"user": "alice"}


@pytest.fixture
def client() -> Client:
    return Driver().connect()


@pytest.fixture(params=[0, 1])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def alter(client: Client, *entries: Message, version: int = 1, validate_only: bool = False) -> list[int]:
    answer = client.ask(
        ApiKey.ALTER_CLIENT_QUOTAS, version, **alter_fields(*entries, validate_only=validate_only)
    )
    return [row.error_code for row in answer.entries]


def describe(
    client: Client, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> Message:
    wanted = [Message(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    return client.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, components=wanted, strict=strict)


def everything(client: Client) -> dict[Any, dict[str, float]]:
    return described(describe(client))


def test_quotas_are_set_changed_and_removed(client: Client, version: int) -> None:
    alice = frozenset(ALICE.items())
    assert alter(
        client, alteration(ALICE, producer_byte_rate=1_000, request_percentage=12.5), version=version
    ) == [0]
    assert everything(client) == {alice: {"producer_byte_rate": 1_000.0, "request_percentage": 12.5}}
    assert alter(
        client, alteration(ALICE, producer_byte_rate=2_000, request_percentage=None), version=version
    ) == [0]
    assert everything(client) == {alice: {"producer_byte_rate": 2_000.0}}
    assert alter(
        client, alteration(ALICE, producer_byte_rate=None, consumer_byte_rate=None), version=version
    ) == [0]
    assert everything(client) == {}


def test_every_kind_of_entity_that_there_is(client: Client) -> None:
    entities: list[Entity] = [
        *({"user": user, "client-id": client_id} for user in ("u", None) for client_id in ("c", None)),
        *({"user": user} for user in ("u", None)),
        *({"client-id": client_id} for client_id in ("c", None)),
    ]
    assert alter(client, *(alteration(entity, consumer_byte_rate=5) for entity in entities)) == [0] * 8
    addresses: list[Entity] = [{"ip": None}, {"ip": "10.1.2.3"}, {"ip": "::1"}]
    assert alter(client, *(alteration(entity, connection_creation_rate=5) for entity in addresses)) == [0] * 3
    assert set(everything(client)) == {frozenset(entity.items()) for entity in entities + addresses}


def test_what_is_only_validated_changes_nothing(client: Client) -> None:
    assert alter(
        client,
        alteration(ALICE, producer_byte_rate=1),
        alteration({}, producer_byte_rate=1),
        validate_only=True,
    ) == [0, 42]
    assert everything(client) == {}


@pytest.mark.parametrize(
    ("entity", "values", "said"),
    [
        ({}, {"producer_byte_rate": 1}, "needs a user"),
        ({"group": "g"}, {"producer_byte_rate": 1}, "no entity type 'group'"),
        ({"user": ""}, {"producer_byte_rate": 1}, "empty user"),
        ({"ip": "10.0.0.1", "user": "u"}, {"connection_creation_rate": 1}, "not together"),
        ({"ip": "localhost"}, {"connection_creation_rate": 1}, "no address"),
        (ALICE, {"connection_creation_rate": 1}, "no quota of this entity"),
        ({"ip": None}, {"producer_byte_rate": 1}, "no quota of this entity"),
        (ALICE, {"leader.replication": 1}, "no quota of this entity"),
        (ALICE, {"producer_byte_rate": -0.0}, "greater than 0"),
        (ALICE, {"request_percentage": -3}, "greater than 0"),
        (ALICE, {"request_percentage": float("nan")}, "greater than 0"),
        (ALICE, {"controller_mutation_rate": float("inf")}, "greater than 0"),
        (ALICE, {"consumer_byte_rate": 1.5}, "whole number"),
        (ALICE, {"consumer_byte_rate": 1e30}, "at most"),
        ({"ip": None}, {"connection_creation_rate": 2.0**31}, "at most"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_of_it_done(
    client: Client, entity: Entity, values: dict[str, float], said: str
) -> None:
    good = {} if "ip" in entity else {"request_percentage": 7.0}
    answer = client.ask(
        ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter_fields(alteration(entity, **{**good, **values}))
    )
    (row,) = answer.entries
    assert (row.error_code, row.entity) == (ErrorCode.INVALID_REQUEST, parts(entity))
    assert said in row.error_message
    assert everything(client) == {}


def test_a_fraction_that_is_a_rounding_error_is_none(client: Client) -> None:
    assert alter(client, alteration(ALICE, consumer_byte_rate=1.0000005)) == [0]


def test_one_bad_entity_does_not_stop_the_others(client: Client) -> None:
    assert alter(
        client, alteration({"user": ""}, producer_byte_rate=1), alteration(ALICE, producer_byte_rate=1)
    ) == [42, 0]
    assert len(everything(client)) == 1


def test_what_comes_twice_is_refused(client: Client) -> None:
    assert alter(
        client, alteration(ALICE, producer_byte_rate=1), alteration(ALICE, consumer_byte_rate=1)
    ) == [42]
    both = Message(entity=parts({"user": "u", "client-id": "c"}), ops=[])
    turned = Message(entity=parts({"client-id": "c", "user": "u"}), ops=[])
    assert alter(client, both, turned) == [42]
    doubled = Message(entity=[*parts(ALICE), *parts({"user": "bob"})], ops=[])
    assert alter(client, doubled) == [42]
    ops = [Message(key="producer_byte_rate", value=value, remove=False) for value in (1.0, 2.0)]
    assert alter(client, Message(entity=parts(ALICE), ops=ops)) == [42]
    assert everything(client) == {}


@pytest.fixture
def stocked(client: Client) -> Client:
    entities: list[Entity] = [ALICE, {"user": None}, {"user": "alice", "client-id": None}, {"client-id": "c"}]
    alter(client, *(alteration(entity, producer_byte_rate=1) for entity in entities))
    return client


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, 4),
        ([], True, 0),
        ([("user", 0, "alice")], False, 2),
        ([("user", 0, "alice")], True, 1),
        ([("user", 1, None)], False, 1),
        ([("user", 2, None)], False, 3),
        ([("user", 2, None)], True, 2),
        ([("user", 2, None), ("client-id", 1, None)], True, 1),
        ([("client-id", 2, None)], False, 2),
        ([("user", 0, "bob")], False, 0),
        ([("ip", 2, None)], False, 0),
    ],
)
def test_a_filter_lets_through_what_it_names(
    stocked: Client, components: Any, strict: bool, found: int, version: int
) -> None:
    assert len(described(describe(stocked, *components, strict=strict, version=version))) == found


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("user", 1, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, None), ("ip", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 1, "alice")], ErrorCode.INVALID_REQUEST),
        ([("user", 2, "alice")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("group", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_filter_without_sense_is_refused(stocked: Client, components: Any, code: int, version: int) -> None:
    answer = describe(stocked, *components, version=version)
    assert (answer.error_code, answer.entries) == (code, None)
    assert answer.error_message


def test_quotas_survive_a_replay_of_the_log_and_a_snapshot_of_it() -> None:
    lines: list[bytes] = []
    settings = BROKER_CONFIGS.parse("broker", {})
    driver = Driver(controller=Controller(settings, random.Random(1), lines.append))
    alter(
        driver.connect(),
        alteration({"user": "a", "client-id": None}, producer_byte_rate=3),
        alteration({"ip": None}, connection_creation_rate=4),
    )
    alter(driver.connect(), alteration({"user": "a", "client-id": None}, request_percentage=0.5))
    kept = dict(driver.controller.image.client_quotas)
    assert len(kept) == 2
    for log in (b"".join(lines), driver.controller.snapshot()):
        again = Controller(settings, random.Random(1))
        again.replay(log)
        assert again.image.client_quotas == kept
        broker = Driver(controller=again).broker
        assert broker.quotas.enabled
        assert broker.quotas.limits_connections
