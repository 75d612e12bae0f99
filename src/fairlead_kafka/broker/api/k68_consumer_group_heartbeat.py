"""ConsumerGroupHeartbeat (68): a member of the consumer protocol joins, stays, sends its
subscription and its partitions, and leaves (KIP-848).

Versions 0-1. Answered when the log has what the answer rests on. Where
`group.coordinator.rebalance.protocols` has no "consumer", or the feature `group.version` is 0,
every request is UNSUPPORTED_VERSION, as in Kafka: clients that wait for a broker with this API
would wait for ever without that. From version 1 on a member brings its own id and may subscribe by
an expression, RE2's as far as `base.patterns` has it (INVALID_REGULAR_EXPRESSION).

Needs READ on the group (GROUP_AUTHORIZATION_FAILED) and DESCRIBE on each topic that is named
(TOPIC_AUTHORIZATION_FAILED). An expression stands for topics that the member may DESCRIBE.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import peer_host, reason
from fairlead_kafka.broker.api.group_requests import HeartbeatAnswers, demand_topics
from fairlead_kafka.broker.api.rights import demand, permitted
from fairlead_kafka.broker.consumer_groups import Heartbeat, HeartbeatResult
from fairlead_kafka.broker.controller.features import GROUP_VERSION, level
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

_ANSWERS = HeartbeatAnswers(
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponse.Assignment,
    ConsumerGroupHeartbeatResponse.TopicPartitions,
    "consumer.heartbeat.interval.ms",
)


@serves(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1))
def consumer_group_heartbeat(
    broker: Services, request: Request[ConsumerGroupHeartbeatRequest], session: Requester, reply: Reply
) -> None:
    """Serve ConsumerGroupHeartbeat: note a member's subscription and state, and answer with the
    partitions that it is to have."""
    message = request.message

    def answer(error: int, result: HeartbeatResult) -> None:
        reply(_ANSWERS.refused(error) if error else _ANSWERS.served(broker, message.group_id, result))

    try:
        check_served(broker)
        demand(session, AclOperation.READ, AclResourceType.GROUP, message.group_id)
        demand_topics(session, message.subscribed_topic_names or ())
        broker.coordinator.consumer.heartbeat(_heartbeat(request, session), request.version, answer)
    except BrokerError as error:
        reply(_ANSWERS.refused(error.code, reason(error)))


def check_served(broker: Services) -> None:
    """Raise BrokerError UNSUPPORTED_VERSION if the consumer protocol of groups (KIP-848) is
    switched off."""
    protocols = broker.settings["group.coordinator.rebalance.protocols"]
    if "consumer" not in protocols or not level(broker.controller.image, GROUP_VERSION):
        raise BrokerError(
            ErrorCode.UNSUPPORTED_VERSION,
            "this cluster does not speak the consumer protocol of groups: set group.protocol=classic in the "
            "consumer's configs",
        )


def _heartbeat(request: Request[ConsumerGroupHeartbeatRequest], session: Requester) -> Heartbeat:
    message = request.message
    owned = message.topic_partitions
    names = message.subscribed_topic_names

    def visible(topics: Iterable[str]) -> Container[str | None]:
        return permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, topics, quiet=True)

    return Heartbeat(
        message.group_id,
        message.member_id,
        message.member_epoch,
        request.client_id or "",
        peer_host(session.peer),
        message.instance_id,
        message.rack_id,
        message.rebalance_timeout_ms,
        None if names is None else frozenset(names),
        message.subscribed_topic_regex,
        message.server_assignor,
        None if owned is None else {one.topic_id: frozenset(one.partitions) for one in owned},
        visible,
    )
