"""How tables of configs without an effect here are written.

A config of these tables is accepted, checked, kept and listed as in Kafka, and changes nothing
here; `ConfigKey.no_effect` says why. Values that would break a promise if they were ignored are
refused by the key's validator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fairlead_kafka.base.config import ConfigKey, ConfigType, Validator

BROKER = ("broker",)
TOPIC = ("topic",)


def kept(
    name: str,
    kind: ConfigType,
    default: object,
    doc: str,
    check: Validator | None = None,
    *,
    dynamic: str = "",
    unlisted: bool = False,
) -> ConfigKey:
    """A config key of brokers, declared with Kafka's name, type and default. `dynamic`:
    "cluster-wide" or "per-broker" if it can be changed while brokers run, by Kafka's names for
    that."""
    return ConfigKey(
        name,
        kind,
        default,
        doc,
        BROKER,
        check,
        nullable=default is None,
        dynamic=bool(dynamic),
        per_broker=dynamic == "per-broker",
        unlisted=unlisted,
    )


def of_no_effect(reason: str, *keys: ConfigKey) -> tuple[ConfigKey, ...]:
    """The keys, marked as having no effect here, for `reason`, which the documentation gives."""
    return tuple(replace(key, no_effect=reason) for key in keys)


def for_topics(keys: Iterable[ConfigKey]) -> tuple[ConfigKey, ...]:
    """The broker's keys as keys of topics. (All of a topic's configs can be changed while brokers
    run.)"""
    return tuple(replace(key, scopes=TOPIC, dynamic=True) for key in keys)


def never(reason: str) -> Validator:
    """A validator: no value is allowed, only leaving the config out. `reason` is in the error."""

    def check(_value: object) -> str:
        return f"cannot be set: {reason}"

    check.__doc__ = "not to be set"
    return check


def empty_only(reason: str) -> Validator:
    """A validator: only an empty list is allowed. `reason` is in the error."""

    def check(value: object) -> str | None:
        return f"must be empty: {reason}" if value else None

    check.__doc__ = "empty"
    return check


def false_only(reason: str) -> Validator:
    """A validator: only false is allowed. `reason` is in the error."""

    def check(value: object) -> str | None:
        return f"must be false: {reason}" if value else None

    check.__doc__ = "false"
    return check
