"""CreatePartitions (37): a topic grows to a number of partitions.

Versions 0-3. Every broker serves it. Refused: a number that is not larger than now
(INVALID_PARTITIONS), internal topics (INVALID_TOPIC_EXCEPTION), assignments that are not one per
new partition or name a broker that is not there (INVALID_REPLICA_ASSIGNMENT), a topic that comes
twice in a request (INVALID_REQUEST); from version 3 on what is above the client's
controller_mutation_rate (THROTTLING_QUOTA_EXCEEDED, KIP-599). Needs ALTER on each topic
(TOPIC_AUTHORIZATION_FAILED, whether it is there or not).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import PendingParts, reason, repeated
from fairlead_kafka.broker.api.rights import permitted, refusal
from fairlead_kafka.broker.controller import CreatePartitions
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.quotas.spending import Spending
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import CreatePartitionsRequest, CreatePartitionsResponse

_Row = CreatePartitionsResponse.CreatePartitionsTopicResult

_STRICT_FROM_VERSION = 3


@serves(ApiKey.CREATE_PARTITIONS, versions=(0, 3))
def create_partitions(
    broker: Services, request: Request[CreatePartitionsRequest], session: Requester, reply: Reply
) -> None:
    """Serve CreatePartitions: grow each topic, or say why not."""
    message = request.message
    twice = repeated(topic.name for topic in message.topics)
    by_name = {topic.name: topic for topic in message.topics}
    growable = permitted(
        session, AclOperation.ALTER, AclResourceType.TOPIC, (name for name in by_name if name not in twice)
    )
    outcomes: dict[str, BrokerError | None] = {}
    spending = Spending(broker, session, strict=request.version >= _STRICT_FROM_VERSION)

    def complete() -> None:
        reply(
            CreatePartitionsResponse(
                throttle_time_ms=spending.throttle_ms,
                results=[_row(name, outcomes[name]) for name in by_name],
            )
        )

    answer = PendingParts(complete)
    for name, asked in by_name.items():
        if name in twice:
            outcomes[name] = BrokerError(
                ErrorCode.INVALID_REQUEST, f"{name!r} comes more than once in the request"
            )
            continue
        if name not in growable:
            outcomes[name] = refusal(session, AclOperation.ALTER, AclResourceType.TOPIC, name)
            continue
        assignments = (
            None if asked.assignments is None else [list(one.broker_ids) for one in asked.assignments]
        )
        grow = CreatePartitions(name, asked.count, assignments, message.validate_only)
        spending.decide(grow, answer.into(outcomes, name))
    answer.done()


def _row(name: str, error: BrokerError | None) -> _Row:
    if error is not None:
        return _Row(name=name, error_code=error.code, error_message=reason(error))
    return _Row(name=name, error_code=ErrorCode.NONE, error_message=None)
