"""GetTelemetrySubscriptions (71): which of its metrics a client is to push, and how often
(KIP-714).

Version 0. Advertised by ApiVersions only while there are subscriptions, since every client asks a
broker that has the API. A client without an id gets one. THROTTLING_QUOTA_EXCEEDED if it asks again
before its interval is over. Needs no right.
"""

from __future__ import annotations

from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import ClusterImage
from fairlead_kafka.broker.controller.configs import client_metrics_settings
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.telemetry import COMPRESSIONS, TelemetryClient, Wanted
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse

_UUID_BITS = 128
_VERSION_4 = 4
"""The version of random UUIDs (RFC 9562)."""


def telemetry_offered(image: ClusterImage) -> bool:
    """True if the cluster has a subscription, and so asks clients for metrics."""
    return bool(image.client_metrics)


def client_of(session: Requester) -> TelemetryClient:
    """The client of a connection, with what the connection shows of it (address, software)."""
    name, version = session.software or (None, None)
    return TelemetryClient(session.client_id, name, version, session.host, session.peer.rpartition(":")[2])


def wanted_of(broker: Services, instance_id: UUID, client: TelemetryClient) -> Wanted:
    """The metrics that the cluster's subscriptions want of a client."""
    image = broker.controller.image
    subscriptions = {name: client_metrics_settings(configs) for name, configs in image.client_metrics.items()}
    return broker.telemetry.wanted(subscriptions, instance_id, client)


@serves(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions=(0, 0))
def get_telemetry_subscriptions(
    broker: Services, request: Request[GetTelemetrySubscriptionsRequest], session: Requester, reply: Reply
) -> None:
    """Serve GetTelemetrySubscriptions: answer with the metrics that the cluster wants of a
    client."""
    client = client_of(session)
    instance_id = request.message.client_instance_id
    if not instance_id.int:
        instance_id = UUID(int=broker.rng.randrange(1 << _UUID_BITS), version=_VERSION_4)
    wanted = wanted_of(broker, instance_id, client)
    try:
        broker.telemetry.subscribe(instance_id, client, wanted, broker.wall_ms)
    except BrokerError as error:
        reply(GetTelemetrySubscriptionsResponse(error_code=error.code))
        return
    reply(
        GetTelemetrySubscriptionsResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.NONE,
            client_instance_id=instance_id,
            subscription_id=wanted.subscription_id,
            accepted_compression_types=[int(each) for each in COMPRESSIONS],
            push_interval_ms=wanted.interval_ms,
            telemetry_max_bytes=broker.settings["telemetry.max.bytes"],
            delta_temporality=True,
            requested_metrics=list(wanted.metrics),
        )
    )
