"""Warnings about configs that are allowed, but have no effect or another one than was meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead_kafka.base.config import Settings
from fairlead_kafka.partitioning import (
    CONSISTENT_RANDOM,
    POLICIES,
    Partitioner,
    deprecation,
    is_kafka_class,
)

_ADAPTIVE: Final = "partitioner.adaptive.partitioning.enable"
_TIMEOUT: Final = "partitioner.availability.timeout.ms"
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
_WINDOW: Final = "max.in.flight.requests.adaptive.enable"
_HEED_ADAPTIVE = ("", "null", CONSISTENT_RANDOM)
_CODECS = ("gzip", "lz4", "zstd")


def config_warnings(settings: Settings, partitioner: Partitioner) -> tuple[str, ...]:
    """Warnings, in English, about configs given (`Settings.given`) that have no effect together.

    `partitioner` is the parsed `partitioner.class`. Empty if there is nothing to warn of.
    """
    return (*_about_partitioning(settings, partitioner), *_about_the_rest(settings))


def _about_partitioning(settings: Settings, partitioner: Partitioner) -> Iterator[str]:
    given, asked, policy = settings.given, settings["partitioner.class"], partitioner.policy_name
    instead = deprecation(asked)
    if instead is not None:
        yield f"partitioner.class={asked} is deprecated (KIP-794) and behaves as it always did: {instead}"
    if _ADAPTIVE in given and partitioner.custom is not None:
        yield f"{_ADAPTIVE} concerns only the records for which the custom partitioner.class answers -1"
    elif _ADAPTIVE in given and isinstance(asked, str) and asked.strip() not in _HEED_ADAPTIVE:
        yield f"{_ADAPTIVE} has no effect with partitioner.class={asked}; it is for partitioner.class=null"
    if settings[_TIMEOUT] > 0 and not POLICIES[policy].avoids_unready:
        those = " and ".join(name for name, kind in POLICIES.items() if kind.avoids_unready)
        yield f"{_TIMEOUT}={settings[_TIMEOUT]} has no effect with the policy {policy}; it is for {those}"
    if "partitioner.ignore.keys" in given and is_kafka_class(asked) and partitioner.ignore_keys:
        yield (
            f"partitioner.ignore.keys has no effect with partitioner.class={asked}, which ignores keys anyway"
        )
    for key in ("partitioner.max.skew.bytes", "partitioner.skew.include.keyed"):
        if key in given and policy != "late":
            yield f"{key} has no effect with the policy {policy}; it is for partitioner.class=late"


def _about_the_rest(settings: Settings) -> Iterator[str]:
    given = settings.given
    if settings["batch.size"] == 0 and "linger.ms" in given and settings["linger.ms"] > 0:
        yield (
            f"linger.ms={settings['linger.ms']} only delays records with batch.size=0, which puts each "
            "into a batch of its own"
        )
    for codec in _CODECS:
        key = f"compression.{codec}.level"
        if key in given and settings["compression.type"] != codec:
            yield f"{key} has no effect with compression.type={settings['compression.type']}"
    if settings[_IN_FLIGHT] == 1 and settings[_WINDOW] and _WINDOW in given:
        yield f"{_WINDOW} has nothing to adapt with {_IN_FLIGHT}=1"
    if settings["acks"] == "0" and "retries" in given and settings["retries"] > 0:
        yield (
            f"retries={settings['retries']} has no effect with acks=0: no answer tells that a batch was lost"
        )
    if settings["retries"] == 0 and "retry.backoff.ms" in given:
        yield f"retry.backoff.ms={settings['retry.backoff.ms']} does not apply to records with retries=0"
    if "transaction.timeout.ms" in given and settings["transactional.id"] is None:
        yield (
            f"transaction.timeout.ms={settings['transaction.timeout.ms']} has no effect without "
            "transactional.id"
        )
