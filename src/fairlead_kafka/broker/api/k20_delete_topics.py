"""DeleteTopics (20): by name, or by id from version 6 on.

Versions 1-6. Any broker serves it. Refused: internal topics (INVALID_TOPIC_EXCEPTION), everything if delete.topic.enable is false
(TOPIC_DELETION_DISABLED), a topic that comes twice in a request or has both a name and an id (INVALID_REQUEST).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import NO_ID, reason, repeated
from fairlead_kafka.broker.controller import DeleteTopics
from fairlead_kafka.broker.dispatch import Reply, serves
from fairlead_kafka.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead_kafka.broker.machine import Broker
    from fairlead_kafka.broker.sessions import Session

_IDS_FROM_VERSION = 6


@serves(ApiKey.DELETE_TOPICS, versions=(1, 6))
def delete_topics(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Delete each topic, or say why not."""
    if request.version >= _IDS_FROM_VERSION:
        asked = [(topic.name, topic.topic_id) for topic in request.message.topics]
    else:
        asked = [(name, NO_ID) for name in request.message.topic_names]
    twice = repeated(asked)
    checked = {one: _check(one, one in twice) for one in dict.fromkeys(asked)}
    wanted = {one: topic for one, topic in checked.items() if not isinstance(topic, BrokerError)}

    def decided(results: Any, error: BrokerError | None) -> None:
        deleted = dict(zip(wanted, results or [error] * len(wanted), strict=True))
        reply(Message(throttle_time_ms=0, responses=[_row(one, deleted[one] if one in deleted else checked[one]) for one in checked]))

    broker.controller.decide(DeleteTopics(list(wanted.values())), decided)


def _check(asked: tuple[str | None, UUID], twice: bool) -> str | UUID | BrokerError:
    name, topic_id = asked
    if twice:
        return BrokerError(ErrorCode.INVALID_REQUEST, "the topic comes more than once in the request")
    if (name is None) == (topic_id == NO_ID):
        return BrokerError(ErrorCode.INVALID_REQUEST, "a topic is named by its name or by its id")
    return topic_id if name is None else name


def _row(asked: tuple[str | None, UUID], outcome: Any) -> Message:
    name, topic_id = asked
    if isinstance(outcome, BrokerError):
        return Message(name=name, topic_id=topic_id, error_code=outcome.code, error_message=reason(outcome))
    return Message(name=outcome.name, topic_id=outcome.topic_id, error_code=ErrorCode.NONE, error_message=None)
