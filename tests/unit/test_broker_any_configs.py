"""Whatever value a config, a quota or a feature is given, at every scope and by every API: it is
taken or refused with a name of Kafka's, and broker and controller go on serving."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, cycle, product
from typing import Any, NamedTuple

import pytest

from fairlead_kafka.base.codes import TABLE, ErrorCode
from fairlead_kafka.base.config import ConfigType
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.broker.controller import AlterOperation, UpgradeType
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Driver

VALUES = (
    *(None, "", " 1 ", "-1", "0", "1", "9" * 5_000, str(2**31 - 1), str(2**63 - 1), str(2**63)),
    *("NaN", "inf", "-inf", "1e400", "é²", "a,b", ",", "\x00", "x" * STRING_MAX_BYTES),
)
SET, DELETE, APPEND, SUBTRACT = AlterOperation
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
LONGEST_NAME = "é" * (STRING_MAX_BYTES // 2)
LIMITS = {"max.connections", "max.partitions", "max.broker.partitions"}
"""At 0 nobody is served, or no topic is created, as they ask."""


class Scope(NamedTuple):
    """A resource that has configs, and the scope of its keys."""

    type: int
    name: str
    keys: str


SCOPES = [
    Scope(TOPIC, "t", "topic"),
    Scope(BROKER, "0", "broker"),
    Scope(BROKER, "", "broker"),
    Scope(GROUP, "g", "group"),
    Scope(METRICS, "m", "client-metrics"),
]
NOT_THERE = [
    *(Scope(kind, "t", "topic") for kind in (-128, -1, 0, 1, 8, 127)),
    *(Scope(TOPIC, name, "topic") for name in ("", "é", "nowhere", LONGEST_NAME)),
    *(Scope(BROKER, name, "broker") for name in ("-1", "7", "²", "9" * STRING_MAX_BYTES, LONGEST_NAME)),
    *(Scope(kind, "", "group") for kind in (GROUP, METRICS)),
]


def keys_of(scope: str) -> list[str]:
    """The keys of a scope that can change, one of each other kind, and such as there are not."""
    others = ["", "nonsense", LONGEST_NAME, *BROKER_CONFIGS.unsupported, "listener.name.x.ssl.keystore.type"]
    keys = [key.name for key in BROKER_CONFIGS.scope(scope) if key.dynamic or scope != "broker"]
    return [key for key in [*keys, *others] if key not in LIMITS]


class Served:
    """A broker with topic `t`, asked by one client; every answer is checked."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.client = self.driver.connect()
        self.driver.advance(100)
        self.count = 0
        assert self.create("t") == ErrorCode.NONE

    def ask(self, api_key: ApiKey, version: int, **fields: Any) -> Message:
        """The answer, which comes in a moment."""
        before = len(self.client.arrived)
        self.client.send(api_key, version, **fields)
        for _ in range(10):
            if len(self.client.arrived) > before:
                break
            self.driver.advance(10)
        assert len(self.client.arrived) > before, f"{api_key.name} is not answered: {str(fields)[:500]}"
        return self.client.arrived[-1]

    def code(self, code: int, what: object) -> int:
        """An error code, which must be a name of Kafka's."""
        assert code != ErrorCode.UNKNOWN_SERVER_ERROR, what
        assert code in TABLE, what
        return code

    def create(self, name: str, **configs: str | None) -> int:
        asked = [Message(name=key, value=value) for key, value in configs.items()]
        topic = Message(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=asked)
        answer = self.ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000, validate_only=False)
        return self.code(answer.topics[0].error_code, str(configs)[:200])

    def alter(self, scope: Scope, key: str, operation: AlterOperation, value: str | None) -> int:
        """IncrementalAlterConfigs of one key."""
        config = Message(name=key, config_operation=operation, value=value)
        resource = Message(resource_type=scope.type, resource_name=scope.name, configs=[config])
        answer = self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
        return self.code(answer.responses[0].error_code, (scope, key, operation, value))

    def replace(self, scope: Scope, **configs: str | None) -> int:
        """AlterConfigs."""
        asked = [Message(name=key, value=value) for key, value in configs.items()]
        resource = Message(resource_type=scope.type, resource_name=scope.name, configs=asked)
        answer = self.ask(ApiKey.ALTER_CONFIGS, 2, resources=[resource], validate_only=False)
        return self.code(answer.responses[0].error_code, (scope, str(configs)[:200]))

    def goes_on(self, *scopes: Scope, keys: list[str] | None = None) -> None:
        """Assert that topics are created, and configs described (None: all of them), without a
        failure."""
        for scope in scopes:
            self.count += 1
            version = 1 if self.count % 2 else 4  # their texts have an int16 of bytes, or a varint
            resource = Message(resource_type=scope.type, resource_name=scope.name, configuration_keys=keys)
            answer = self.ask(
                ApiKey.DESCRIBE_CONFIGS,
                version,
                resources=[resource],
                include_synonyms=True,
                include_documentation=False,
            )
            assert answer.results[0].error_code == ErrorCode.NONE, scope
        self.count += 1
        assert self.create(f"topic-{self.count}") == ErrorCode.NONE
        assert (self.driver.broker.errors, self.client.closed) == (0, False)


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.goes_on(*SCOPES)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_any_value_of_any_key_is_set_or_refused(served: Served, scope: Scope) -> None:
    for number, key in enumerate(keys_of(scope.keys)):
        taken = {value for value in VALUES[number % 3 :: 3] if not served.alter(scope, key, SET, value)}
        if taken:
            served.goes_on(scope, keys=[key])
            assert served.alter(scope, key, DELETE, taken.pop()) == ErrorCode.NONE


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_any_value_is_added_to_any_key_and_taken_away_or_refused(served: Served, scope: Scope) -> None:
    """Lists grew past what an answer carries: no DescribeConfigs of the resource was answered any
    more."""
    long = [",".join(f"{first + number}:0" for number in range(4_000)) for first in (0, 4_000)]
    for number, key in enumerate(keys_of(scope.keys)):
        known = BROKER_CONFIGS.keys.get(key)
        some = VALUES[number % 9 :: 9]
        values = (*some, *long) if known is not None and known.type is ConfigType.LIST else some
        for operation in (APPEND, SUBTRACT):
            if ErrorCode.NONE in {served.alter(scope, key, operation, value) for value in values}:
                served.goes_on(scope, keys=[key])
        served.alter(scope, key, DELETE, None)


def test_what_cannot_change_is_refused_whatever_it_is_to_be(served: Served) -> None:
    fixed = [key.name for key in BROKER_CONFIGS.scope("broker") if not key.dynamic]
    for key, scope, value, operation in zip(
        fixed, cycle(SCOPES[1:3]), cycle(VALUES), cycle((SET, APPEND, SUBTRACT)), strict=False
    ):
        assert served.alter(scope, key, operation, value) != ErrorCode.NONE


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_configs_are_replaced_by_any_value_or_refused(served: Served, scope: Scope) -> None:
    for number, key in enumerate(keys_of(scope.keys)):
        codes = {served.replace(scope, **{key: value}) for value in VALUES[number % 6 :: 6]}
        if ErrorCode.NONE in codes:
            served.goes_on(scope, keys=[key])
            assert served.replace(scope) == ErrorCode.NONE


@pytest.mark.parametrize("scope", NOT_THERE, ids=lambda scope: f"{scope.type}:{scope.name[:9]}")
def test_a_resource_that_is_not_there_is_refused(served: Served, scope: Scope) -> None:
    for key, value, operation in zip(
        keys_of(scope.keys)[::4], cycle(VALUES), cycle(AlterOperation), strict=False
    ):
        assert served.alter(scope, key, operation, value) != ErrorCode.NONE
        assert served.replace(scope, **{key: value}) != ErrorCode.NONE


def test_a_topic_is_created_with_any_value_of_any_key_or_refused(served: Served) -> None:
    for number, key in enumerate(keys_of("topic")):
        for value in VALUES[number % 2 :: 2]:
            served.count += 1
            if served.create(name := f"with-{served.count}", **{key: value}) == ErrorCode.NONE:
                served.goes_on(Scope(TOPIC, name, "topic"), keys=[key])


QUOTAS = (
    *("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"),
    *("connection_creation_rate", "", LONGEST_NAME),
)
ENTITIES: list[dict[str, str | None]] = [{"user": name} for name in (None, "", "ANONYMOUS", LONGEST_NAME)]
ENTITIES += [{"ip": address} for address in (None, "", "::1", "127.0.0.1", "9" * 5_000)]
ENTITIES += [
    {"client-id": None},
    {"user": "a", "client-id": "b"},
    {"user": None, "ip": None},
    {"é": None},
    {},
]
RATES = (
    0.0,
    -0.0,
    -1.0,
    5e-324,
    1e-9,
    0.5,
    1.0,
    2.0**31,
    2.0**63,
    2.0**64,
    1.7e308,
    *map(float, ("inf", "nan")),
)


def test_a_quota_of_any_size_is_set_or_refused_and_kept_to(served: Served) -> None:
    entities = [
        [Message(entity_type=kind, entity_name=name) for kind, name in one.items()] for one in ENTITIES
    ]
    for key, rate, remove in product(QUOTAS, RATES, (False, True)):
        entries = [Message(entity=one, ops=[Message(key=key, value=rate, remove=remove)]) for one in entities]
        answer = served.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
        codes = {served.code(row.error_code, (key, rate, row.entity)) for row in answer.entries}
        if ErrorCode.NONE in codes and not remove:
            # It may have to wait for long: all that is asked is that nothing fails.
            topic = Message(name="q", num_partitions=1, replication_factor=1, assignments=[], configs=[])
            fields = {"topics": [topic], "timeout_ms": 5000, "validate_only": False}
            other = served.driver.connect()
            for _ in range(2):
                other.send(ApiKey.CREATE_TOPICS, 7, **fields)
            served.driver.advance(1)
            assert served.driver.broker.errors == 0, (key, rate)
    answer = served.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=[], strict=False)
    assert (answer.error_code, answer.entries) == (ErrorCode.NONE, [])


def test_a_feature_is_set_to_any_level_or_refused(served: Served) -> None:
    names = ("metadata.version", "kraft.version", "transaction.version", "group.version", "nonsense", "")
    levels = (-(2**15), -1, 0, 1, 2, 25, 2**15 - 1)
    types = chain(UpgradeType, (-128, 127))
    for name, level, kind in product((*names, LONGEST_NAME), levels, list(types)):
        update = Message(feature=name, max_version_level=level, upgrade_type=int(kind))
        answer = served.ask(
            ApiKey.UPDATE_FEATURES, 1, timeout_ms=1000, feature_updates=[update], validate_only=False
        )
        served.code(answer.error_code, (name, level, kind))
