"""ApiVersions (18): which APIs this broker serves, in which versions. Derived from the registry.

Versions 0-4. Every other version is answered in version 0 with UNSUPPORTED_VERSION and this API's
own range (KIP-511; `sessions`). From version 3 on the client names its software; a name that does
not fit Kafka's pattern is INVALID_REQUEST. From version 3 on features (KIP-584) are answered: the
levels that this release serves, below version 4 without those that begin at 0 (KIP-1022), and the
cluster's own, by which clients choose the protocol of transactions and of groups. Needs no right.
"""

from __future__ import annotations

import re

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.k71_get_telemetry_subscriptions import telemetry_offered
from fairlead_kafka.broker.controller import FEATURES, ClusterImage, finalized
from fairlead_kafka.broker.dispatch import REGISTRY, serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Kafka's `ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN`."""
_TELEMETRY = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""APIs that are advertised only while the cluster asks for metrics: a client that finds them asks
which metrics are wanted."""
_ZERO_FROM_VERSION = 4
"""Version from which features whose levels begin at 0 are answered: older clients fail at them
(KAFKA-17011)."""


@serves(ApiKey.API_VERSIONS, versions=(0, 4))
def api_versions(
    broker: Services, request: Request[ApiVersionsRequest], session: Requester, reply: Reply
) -> None:
    """Serve ApiVersions: answer with the APIs that are served, their versions, and the features."""
    message = request.message
    error = ErrorCode.NONE
    if request.version >= 3:
        names = (message.client_software_name, message.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in names):
            error = ErrorCode.INVALID_REQUEST
        else:
            session.software = names
    offered = telemetry_offered(broker.controller.image)
    rows = [
        ApiVersionsResponse.ApiVersion(api_key=int(key), min_version=api.advertised_low, max_version=api.high)
        for key, api in sorted(REGISTRY.items())
        if offered or key not in _TELEMETRY
    ]
    if session.login is not None and error == ErrorCode.NONE:
        session.login.versions_sent()
    if error != ErrorCode.NONE:
        reply(ApiVersionsResponse(error_code=error, api_keys=[]))
        return
    answer = ApiVersionsResponse(error_code=error, api_keys=rows)
    _features(answer, broker.controller.image, request.version)
    reply(answer)


def _features(answer: ApiVersionsResponse, image: ClusterImage, version: int) -> None:
    answer.supported_features = [
        ApiVersionsResponse.SupportedFeatureKey(
            name=name, min_version=feature.lowest, max_version=feature.highest
        )
        for name, feature in FEATURES.items()
        if version >= _ZERO_FROM_VERSION or feature.lowest > 0
    ]
    answer.finalized_features_epoch = image.features_epoch
    answer.finalized_features = [
        ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in finalized(image).items()
    ]
