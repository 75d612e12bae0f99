"""Configs of subscriptions to clients' metrics (KIP-714): which metrics which clients push, and how
often. Kafka's keys and defaults (release 4.3)."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.base.config import ConfigKey, ConfigType, at_least, between, validates
from fairlead_kafka.base.patterns import Pattern, PatternError, compile_pattern

_T = ConfigType
_SCOPE = ("client-metrics",)

CLIENT_PARTS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""Parts of what is known of a client, for which `match` may have patterns."""


@validates(tuple)
def _patterns(given: tuple[str, ...]) -> str | None:
    """NAME=PATTERN, and commas between

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    try:
        parse_match(given)
    except ValueError as error:
        return str(error)
    return None


def parse_match(given: Iterable[str]) -> dict[str, Pattern]:
    """The patterns in `given`, each "NAME=PATTERN", by the part of a client that they are matched
    against (KIP-714's `match`). ValueError for an unknown part and for what is no pattern."""
    found = {}
    for entry in given:
        name, equals, pattern = (part.strip() for part in entry.partition("="))
        if not equals or "=" in pattern or not pattern or name not in CLIENT_PARTS:
            raise ValueError(f"Illegal client matching pattern: {entry}; names are {', '.join(CLIENT_PARTS)}")
        try:
            found[name] = compile_pattern(pattern)
        except PatternError as error:
            raise ValueError(f"Illegal client matching pattern: {entry}: {error}") from None
    return found


CLIENT_METRICS_KEYS = (
    ConfigKey(
        "metrics",
        _T.LIST,
        (),
        "Names that metrics begin with that clients push; *: all of them.",
        _SCOPE,
        dynamic=True,
    ),
    ConfigKey(
        "interval.ms",
        _T.INT,
        300_000,
        "How often clients push.",
        _SCOPE,
        between(100, 3_600_000),
        dynamic=True,
    ),
    ConfigKey(
        "match",
        _T.LIST,
        (),
        "Which clients push: patterns for parts of what is known of them; empty: all clients.",
        _SCOPE,
        _patterns,
        dynamic=True,
    ),
    ConfigKey(
        "telemetry.max.bytes",
        _T.INT,
        1_048_576,
        "Size of a push of a client's metrics at most, compressed as it comes.",
        ("broker",),
        at_least(1),
    ),
)
