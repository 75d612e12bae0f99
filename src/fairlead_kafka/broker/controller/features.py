"""Feature levels of the cluster (KIP-584, KIP-1022): which levels are finalized, and how they
change (Kafka's `FeatureControlManager`).

A level belongs to the whole cluster and is kept in the metadata log. Clients learn it from
ApiVersions, and choose their protocol by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller.decisions import FeatureUpdate, UpgradeType
from fairlead_kafka.broker.controller.fold import features_record
from fairlead_kafka.broker.controller.image import ClusterImage
from fairlead_kafka.broker.controller.journal import Journal

TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"


class Feature(NamedTuple):
    """Levels of a feature: those that this release serves, and the one that a cluster begins
    with."""

    lowest: int
    highest: int
    initial: int


FEATURES: Mapping[str, Feature] = {
    # 1: transactions are written with tagged fields. 2: an epoch for each transaction (KIP-890).
    TRANSACTION_VERSION: Feature(0, 2, 2),
    # 1: groups of the consumer protocol (KIP-848).
    GROUP_VERSION: Feature(0, 1, 1),
    # 1: share groups (KIP-932).
    SHARE_VERSION: Feature(0, 1, 1),
}
"""Feature by Kafka's name → its levels. Level 0: the feature is off."""


def level(image: ClusterImage, name: str) -> int:
    """The finalized level of the feature `name` of `FEATURES`."""
    return image.features.get(name, FEATURES[name].initial)


def finalized(image: ClusterImage) -> dict[str, int]:
    """Every feature that is on, with its level, by name: what ApiVersions reports as finalized."""
    levels = {name: level(image, name) for name in sorted(FEATURES)}
    return {name: each for name, each in levels.items() if each > 0}


class Features:
    """Decides on changes of feature levels."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._image = journal.image

    def update(self, updates: Sequence[FeatureUpdate], validate_only: bool = False) -> None:
        """Change levels, all or none; for a feature that comes twice the last level counts.
        BrokerError INVALID_UPDATE_VERSION names the first level that is not possible."""
        levels: dict[str, int] = {}
        for each in updates:
            _check(each, self._image)
            levels[each.feature] = each.level
        changed = {name: wanted for name, wanted in levels.items() if wanted != level(self._image, name)}
        if changed and not validate_only:
            self._journal.commit([features_record(changed)])


def _check(update: FeatureUpdate, image: ClusterImage) -> None:
    """Raise BrokerError INVALID_UPDATE_VERSION if the feature cannot have this level."""
    wanted, feature, kind = update.level, FEATURES.get(update.feature), update.upgrade_type
    if wanted < 0:
        raise _refused(update, "A feature version cannot be less than 0.")
    if feature is None:
        raise _refused(update, f"This cluster has the features {', '.join(sorted(FEATURES))}.")
    if not feature.lowest <= wanted <= feature.highest:
        raise _refused(update, f"It supports versions {feature.lowest}-{feature.highest}.")
    if kind is UpgradeType.UNKNOWN:
        raise _refused(update, "The controller does not support the given upgrade type.")
    now = level(image, update.feature)
    if wanted < now and kind is UpgradeType.UPGRADE:
        text = "Can't downgrade the version of this feature without setting the upgrade type to either safe"
        raise _refused(update, f"{text} or unsafe downgrade.")
    if wanted > now and kind is not UpgradeType.UPGRADE:
        raise _refused(update, "Can't downgrade to a newer version.")


def _refused(update: FeatureUpdate, why: str) -> BrokerError:
    """The error of the whole request, in Kafka's words, which its tools print."""
    text = f"Invalid update version {update.level} for feature {update.feature}. {why}"
    return BrokerError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"The update failed for all features since the following feature had an error: {text}",
    )
