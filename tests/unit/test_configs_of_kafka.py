"""Our table of broker and topic configs against Apache Kafka 4.3.1's own definitions, recorded in
tests/data/kafka_configs.tsv."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlead_kafka.base.config import ConfigKey
from fairlead_kafka.base.config_broker import BROKER_CONFIGS, TOPIC_COUNTERPARTS, config_text
from fairlead_kafka.base.errors import ConfigError

DATA = Path(__file__).parents[1] / "data" / "kafka_configs.tsv"


class Recorded(NamedTuple):
    """One config as Apache Kafka defines it."""

    scope: str
    name: str
    type: str
    default: str
    allowed: str
    changed: str
    internal: str
    synonyms: str


KAFKAS = [
    Recorded(*line.split("\t"))
    for line in DATA.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
OURS_ALONE = {
    "broker": {
        "allow.everyone.if.no.acl.found",  # of Kafka's authorizer, which has its configs to itself
        "super.users",
        "follower.replication.throttled.rate",  # dynamic only in Kafka: in no definition
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "max.broker.partitions",  # KIP-578, not accepted yet
        "max.partitions",
        "ssl.certificate.location",  # librdkafka's
        "ssl.key.location",
    },
    "topic": set(),
}
OTHER_DEFAULTS = {
    "broker.id": "told by the broker",
    "controller.listener.names": "no controller listens",
    "group.consumer.assignment.interval.ms": "a test should not wait",
    "group.initial.rebalance.delay.ms": "a test should not wait",
    "listener.security.protocol.map": "the order of a map says nothing",
    "listeners": "the launcher chooses ports",
    "log.dir": "told by the broker",
    "node.id": "told by the broker",
    "process.roles": "required in Kafka",
    "queued.max.request.bytes": "what waits is bounded here",
    "replica.fetch.backoff.ms": "brokers are near",
    "sasl.enabled.mechanisms": "GSSAPI is not served",
    "sasl.mechanism.inter.broker.protocol": "GSSAPI is not served",
    "sasl.oauthbearer.expected.audience": "null says the same as empty",
    "ssl.cipher.suites": "null says the same as empty",
    "ssl.keystore.type": "the file tells it",
    "ssl.truststore.type": "the file tells it",
}
"""Key → why our default is another."""
READ_AT_START = re.compile(
    r"listeners|listener\.security\.protocol\.map|sasl\.(enabled\.mechanisms|jaas\.config|mechanism\.inter.*)"
    r"|ssl\.(cipher\.suites|client\.auth|enabled\.protocols|endpoint\..*|key\.password|keystore\..*|protocol|truststore\..*)"
)
"""Configs of log-ins and TLS that brokers read when they start, and Kafka's also while they run."""
NARROWER = {
    "log.cleaner.backoff.ms": "0 would look for work without a pause",
    "alter.config.policy.class.name": "refused",
}


def ours(row: Recorded) -> ConfigKey:
    return next(key for key in BROKER_CONFIGS.scope(row.scope) if key.name == row.name)


@pytest.mark.parametrize("scope", ["broker", "topic"])
def test_every_config_of_kafka_is_known_and_no_other(scope: str) -> None:
    kafkas = {row.name for row in KAFKAS if row.scope == scope}
    assert {key.name for key in BROKER_CONFIGS.scope(scope)} == kafkas | OURS_ALONE[scope]


def test_types_are_kafkas() -> None:
    differing = [
        (row.name, (key.kafka_type or key.type).value, row.type)
        for row in KAFKAS
        if (key := ours(row)) and (key.kafka_type or key.type).value != row.type
    ]
    assert not differing


def test_defaults_are_kafkas_but_those_listed_with_a_reason() -> None:
    def text(key: ConfigKey) -> str:
        said = config_text(key.default)
        return "(null)" if said is None else said

    differing = {row.name for row in KAFKAS if text(ours(row)) != row.default}
    assert differing == set(OTHER_DEFAULTS)


def test_what_can_be_changed_while_a_broker_runs_is_as_in_kafka() -> None:
    def changed(key: ConfigKey) -> str:
        return "read-only" if not key.dynamic else "per-broker" if key.per_broker else "cluster-wide"

    differing = {row.name for row in KAFKAS if row.scope == "broker" and changed(ours(row)) != row.changed}
    assert differing == {name for name in differing if READ_AT_START.fullmatch(name)}
    assert not [key.name for key in BROKER_CONFIGS.scope("topic") if not key.dynamic]


def test_what_is_internal_in_kafka_is_listed_only_where_it_is_set() -> None:
    dynamic_only = {name for name in OURS_ALONE["broker"] if name.endswith(("throttled.rate", "per.second"))}
    for scope in ("broker", "topic"):
        internal = {row.name for row in KAFKAS if row.scope == scope and row.internal}
        hidden = {key.name for key in BROKER_CONFIGS.scope(scope) if key.unlisted}
        assert hidden == internal | (dynamic_only if scope == "broker" else set())


def test_a_topics_config_falls_back_on_what_it_does_in_kafka() -> None:
    for row in KAFKAS:
        if row.scope == "topic":
            names = [name for name, _factor in TOPIC_COUNTERPARTS[row.name]]
            assert names == [name for name in row.synonyms.split(",") if name]


def _taken(key: ConfigKey, value: str) -> bool:
    try:
        key.parse(value)
    except ConfigError:
        return False
    return True


def test_ranges_are_kafkas() -> None:
    """What Kafka's range allows at its ends is allowed here, and what lies beyond is refused."""
    for row in KAFKAS:
        found = re.fullmatch(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\]", row.allowed)
        key = ours(row)
        if not found or key.fixed:
            continue
        low, high = found[1], found[2]
        wrong = [
            value
            for value in (low, *([high] if high else []))
            if not _taken(key, value) and row.name not in NARROWER
        ]
        wrong += [value for value in (_below(low), *([_above(high)] if high else [])) if _taken(key, value)]
        assert not wrong, (row.name, wrong)


def _below(number: str) -> str:
    return str(float(number) - 1) if "." in number else str(int(number) - 1)


def _above(number: str) -> str:
    return str(float(number) + 1) if "." in number else str(int(number) + 1)


def test_allowed_words_are_kafkas() -> None:
    for row in KAFKAS:
        found = re.fullmatch(r"\[([A-Za-z][\w, ]*)\]", row.allowed)
        if not found:
            continue
        words = [word.strip() for word in found[1].split(",")]
        assert [word for word in words if not _taken(ours(row), word)] == [], row.name
        assert not _taken(ours(row), "something-else"), row.name
