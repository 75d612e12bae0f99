"""PushTelemetry (72): a client's metrics, as OpenTelemetry's `MetricsData` (KIP-714).

Version 0. TELEMETRY_TOO_LARGE above `telemetry.max.bytes`, UNSUPPORTED_COMPRESSION_TYPE for a codec
that Kafka has not; the other errors are `broker.telemetry.ClientTelemetry.push`'s. Needs no right.
"""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.k71_get_telemetry_subscriptions import client_of, wanted_of
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.telemetry import Pushed
from fairlead_kafka.records import Compression
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import PushTelemetryRequest, PushTelemetryResponse

_CODECS = frozenset(int(codec) for codec in Compression)


@serves(ApiKey.PUSH_TELEMETRY, versions=(0, 0))
def push_telemetry(
    broker: Services, request: Request[PushTelemetryRequest], session: Requester, reply: Reply
) -> None:
    """Serve PushTelemetry: keep a client's metrics, or answer why not."""
    try:
        _push(broker, request.message, session)
    except BrokerError as error:
        reply(PushTelemetryResponse(throttle_time_ms=0, error_code=error.code))
    else:
        reply(PushTelemetryResponse(throttle_time_ms=0, error_code=ErrorCode.NONE))


def _push(broker: Services, message: PushTelemetryRequest, session: Requester) -> None:
    if message.compression_type not in _CODECS:
        raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "Kafka has no such codec")
    if len(message.metrics) > broker.settings["telemetry.max.bytes"]:
        raise BrokerError(ErrorCode.TELEMETRY_TOO_LARGE, "more than telemetry.max.bytes")
    client = client_of(session)
    codec = Compression(message.compression_type)
    pushed = Pushed(message.client_instance_id, client, broker.wall_ms, codec, bytes(message.metrics))
    wanted = wanted_of(broker, message.client_instance_id, client)
    broker.telemetry.push(pushed, message.subscription_id, wanted, message.terminating)
