"""CreatePartitions (37): a topic grows to a number of partitions.

Versions 0-3. Any broker serves it. Refused: a number that is not larger than now (INVALID_PARTITIONS), internal topics
(INVALID_TOPIC_EXCEPTION), assignments that are not one per new partition or name a broker that is not there
(INVALID_REPLICA_ASSIGNMENT), a topic that comes twice in a request (INVALID_REQUEST).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.broker.api.common import reason, repeated
from fairlead.broker.dispatch import Reply, serves
from fairlead.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker
    from fairlead.broker.sessions import Session


@serves(ApiKey.CREATE_PARTITIONS, versions=(0, 3))
def create_partitions(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Grow each topic, or say why not."""
    message = request.message
    twice = repeated(topic.name for topic in message.topics)
    by_name = {topic.name: topic for topic in message.topics}
    results = [_grow(broker, topic, topic.name in twice, message.validate_only) for topic in by_name.values()]
    reply(Message(throttle_time_ms=0, results=results))


def _grow(broker: Broker, asked: Any, twice: bool, validate_only: bool) -> Message:
    assignments = None if asked.assignments is None else [list(one.broker_ids) for one in asked.assignments]
    try:
        if twice:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{asked.name!r} comes more than once in the request")
        broker.controller.create_partitions(asked.name, asked.count, assignments, validate_only)
    except BrokerError as error:
        return Message(name=asked.name, error_code=error.code, error_message=reason(error))
    return Message(name=asked.name, error_code=ErrorCode.NONE, error_message=None)
