"""ConsumerGroupHeartbeat (68): the groups of KIP-848, which are refused, in words that reach the
user.

Versions 0-1. Every request is UNSUPPORTED_VERSION, as Kafka answers it where the feature
`group.version` is 0. The API is told in ApiVersions all the same: librdkafka with
`group.protocol=consumer` waits for ever for a broker that has it, without a word, and a refusal
ends that at once with a fatal error. The words of the answer are told by those clients that pass
them on. Needs no right, as in Kafka where that feature is 0.
"""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

_WORDS = (
    "this cluster has groups of the classic protocol alone, not those of KIP-848: set "
    "group.protocol=classic in the consumer's configs"
)


@serves(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1))
def consumer_group_heartbeat(
    broker: Services, request: Request[ConsumerGroupHeartbeatRequest], session: Requester, reply: Reply
) -> None:
    """Refuse, so that the client need not wait."""
    reply(
        ConsumerGroupHeartbeatResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message=_WORDS,
            member_id=request.message.member_id,
            member_epoch=0,
            heartbeat_interval_ms=0,
            assignment=None,
        )
    )
