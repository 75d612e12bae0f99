"""Feature levels (KIP-584): told by ApiVersions, changed by UpdateFeatures, kept by the metadata
log."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import FEATURES, ClusterImage, finalized, level
from fairlead_kafka.broker.controller.fold import apply, snapshot_records
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.messages import UpdateFeaturesRequest
from tests.support.api_calls import call, versions
from tests.support.group_rig import GroupRig

NAME = "transaction.version"
HIGHEST = FEATURES[NAME].highest
UPGRADE, SAFE_DOWNGRADE = 1, 2


def told(rig: GroupRig, version: int = 4) -> Message:
    return call(rig, ApiKey.API_VERSIONS, version, client_software_name="test", client_software_version="1")


def update(
    rig: GroupRig, *wanted: tuple[str, int, int], version: int = 2, validate_only: bool = False
) -> Message:
    updates = [
        UpdateFeaturesRequest.FeatureUpdateKey(
            feature=name, max_version_level=to, upgrade_type=kind, allow_downgrade=kind != UPGRADE
        )
        for name, to, kind in wanted
    ]
    return call(
        rig,
        ApiKey.UPDATE_FEATURES,
        version,
        timeout_ms=1000,
        feature_updates=updates,
        validate_only=validate_only,
    )


def test_levels_are_told_to_clients() -> None:
    answer = told(GroupRig())
    supported = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    assert supported == {name: (each.lowest, each.highest) for name, each in FEATURES.items()}
    assert {one.name: one.max_version_level for one in answer.finalized_features} == finalized(ClusterImage())
    assert answer.finalized_features_epoch == 0


def test_older_clients_are_not_told_of_levels_that_begin_at_0() -> None:
    answer = told(GroupRig(), version=3)
    assert NAME not in [one.name for one in answer.supported_features]
    assert NAME in [one.name for one in answer.finalized_features]


@pytest.mark.parametrize("version", versions(ApiKey.UPDATE_FEATURES))
def test_a_level_is_lowered_and_raised(version: int) -> None:
    rig = GroupRig()
    for to, kind, epoch in ((0, SAFE_DOWNGRADE, 1), (HIGHEST, UPGRADE, 2)):
        answer = update(rig, (NAME, to, kind), version=version)
        assert answer.error_code == ErrorCode.NONE
        assert [row.feature for row in answer.results] == ([NAME] if version < 2 else [])
        answer = told(rig)
        assert {one.name: one.max_version_level for one in answer.finalized_features}.get(NAME, 0) == to
        assert answer.finalized_features_epoch == epoch


@pytest.mark.parametrize(
    ("wanted", "error", "text"),
    [
        ((NAME, HIGHEST + 1, UPGRADE), ErrorCode.INVALID_UPDATE_VERSION, "It supports versions 0-"),
        ((NAME, -1, UPGRADE), ErrorCode.INVALID_UPDATE_VERSION, "cannot be less than 0"),
        ((NAME, 0, UPGRADE), ErrorCode.INVALID_UPDATE_VERSION, "safe or unsafe downgrade"),
        ((NAME, 0, 9), ErrorCode.INVALID_UPDATE_VERSION, "the given upgrade type"),
        (("flying.version", 1, UPGRADE), ErrorCode.INVALID_UPDATE_VERSION, "This cluster has the features"),
        (
            ("", 1, UPGRADE),
            ErrorCode.INVALID_UPDATE_VERSION,
            "has the features group.version, share.version, transaction.version",
        ),
    ],
)
def test_a_level_that_cannot_be_says_why(wanted: tuple[str, int, int], error: int, text: str) -> None:
    rig = GroupRig()
    answer = update(rig, wanted)
    assert answer.error_code == error
    assert text in answer.error_message
    assert f"feature {wanted[0]}." in answer.error_message
    assert told(rig).finalized_features_epoch == 0


def test_one_wrong_level_leaves_all_as_they_are() -> None:
    rig = GroupRig()
    answer = update(rig, (NAME, 0, SAFE_DOWNGRADE), ("flying.version", 1, UPGRADE))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert update(rig, (NAME, 0, SAFE_DOWNGRADE), validate_only=True).error_code == ErrorCode.NONE
    assert level(rig.controller.image, NAME) == FEATURES[NAME].initial


def test_levels_are_kept_by_the_metadata_log() -> None:
    rig = GroupRig()
    update(rig, (NAME, 0, SAFE_DOWNGRADE))
    image = ClusterImage()
    for record in snapshot_records(rig.controller.image):
        apply(image, record)
    assert level(image, NAME) == 0
    assert image.features_epoch == 1
