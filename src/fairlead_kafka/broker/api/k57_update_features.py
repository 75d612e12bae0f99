"""UpdateFeatures (57): feature levels of the cluster are raised or lowered (KIP-584).

Versions 0-2. Every broker serves it and has the controller decide; all levels change, or none. A
level that is not served, or that would fall without the request asking for a downgrade, is
INVALID_UPDATE_VERSION for the whole request; up to version 1 an answer without error has a row for
each feature. Needs ALTER on the cluster (CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller import FeatureUpdate, UpdateFeatures, UpgradeType
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

_Row = UpdateFeaturesResponse.UpdatableFeatureResult
_TYPES_FROM_VERSION, _NO_ROWS_FROM_VERSION = 1, 2


@serves(ApiKey.UPDATE_FEATURES, versions=(0, 2))
def update_features(
    broker: Services, request: Request[UpdateFeaturesRequest], session: Requester, reply: Reply
) -> None:
    """Serve UpdateFeatures: have the controller change feature levels."""
    message, version = request.message, request.version
    updates = [_update(one, version) for one in message.feature_updates]

    def decided(_result: None, error: BrokerError | None) -> None:
        done = error is None and version < _NO_ROWS_FROM_VERSION
        reply(
            UpdateFeaturesResponse(
                throttle_time_ms=0,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else reason(error),
                results=[_Row(feature=each.feature, error_code=ErrorCode.NONE) for each in updates if done],
            )
        )

    refused = cluster_refusal(session, AclOperation.ALTER)
    if refused is not None:
        decided(None, refused)
    else:
        broker.controller.decide(UpdateFeatures(updates, message.validate_only), decided)


def _update(one: UpdateFeaturesRequest.FeatureUpdateKey, version: int) -> FeatureUpdate:
    if version >= _TYPES_FROM_VERSION:
        known = one.upgrade_type in set(UpgradeType)
        return FeatureUpdate(
            one.feature,
            one.max_version_level,
            UpgradeType(one.upgrade_type) if known else UpgradeType.UNKNOWN,
        )
    downgrade = UpgradeType.SAFE_DOWNGRADE if one.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(one.feature, one.max_version_level, downgrade)
