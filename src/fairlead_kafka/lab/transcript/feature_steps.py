"""Feature levels (KIP-584, KIP-1022): updated, with valid and invalid fields."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.lab.transcript.steps import Step, ask
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import UpdateFeaturesRequest

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_NAME = "transaction.version"


def updated(
    name: str,
    *levels: tuple[str, int, int],
    versions: Iterable[int] = (0, 1, 2),
    validate_only: bool = False,
) -> Step:
    """An UpdateFeatures step: (feature, level, type of upgrade)."""
    rows = [
        UpdateFeaturesRequest.FeatureUpdateKey(
            feature=feature, max_version_level=level, upgrade_type=kind, allow_downgrade=kind != UPGRADE
        )
        for feature, level, kind in levels
    ]
    return ask(
        name,
        ApiKey.UPDATE_FEATURES,
        versions,
        timeout_ms=10_000,
        feature_updates=rows,
        validate_only=validate_only,
    )


STEPS: list[Step] = [
    updated("nothing"),
    updated("lowered without a word", (_NAME, 0, UPGRADE)),
    updated("higher than there is", (_NAME, 99, UPGRADE)),
    updated("below zero", (_NAME, -1, SAFE_DOWNGRADE)),
    updated("of a type that is none", (_NAME, 0, 9), versions=(1, 2)),
    updated("of a feature that is none", ("flying.version", 1, UPGRADE)),
    updated("of a feature without a name", ("", 1, UPGRADE)),
    updated("one wrong of two", (_NAME, 1, UPGRADE), ("flying.version", 1, UPGRADE), versions=(1, 2)),
    updated("lowered, validated only", (_NAME, 0, SAFE_DOWNGRADE), versions=(1, 2), validate_only=True),
    updated("twice in one request", (_NAME, 0, SAFE_DOWNGRADE), (_NAME, 1, SAFE_DOWNGRADE), versions=(2,)),
    updated("lowered", (_NAME, 0, SAFE_DOWNGRADE), versions=(2,)),
    updated("lowered again", (_NAME, 0, SAFE_DOWNGRADE), versions=(2,)),
    updated("raised as if lowered", (_NAME, 1, UNSAFE_DOWNGRADE), versions=(2,)),
    updated("raised by one", (_NAME, 1, UPGRADE), versions=(2,)),
    updated("lowered as version 0 has it", (_NAME, 0, SAFE_DOWNGRADE), versions=(0,)),
    updated("lowered as version 0 has it, again", (_NAME, 0, SAFE_DOWNGRADE), versions=(2,)),
]
"""Steps, in order; the last leaves `transaction.version` at 0."""
