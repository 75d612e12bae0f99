"""DeleteTopics (20): by name, or by id from version 6 on.

Versions 1-6. Every broker serves it. Refused: internal topics (INVALID_TOPIC_EXCEPTION), everything
if delete.topic.enable is false (TOPIC_DELETION_DISABLED), a topic that comes twice in a request or
has both a name and an id (INVALID_REQUEST); from version 5 on what is above the client's
controller_mutation_rate (THROTTLING_QUOTA_EXCEEDED, KIP-599).

Needs DELETE on the cluster, or on each topic. Without it a topic is TOPIC_AUTHORIZATION_FAILED, and
a client that may not DESCRIBE it does not learn from that whether there is one of that name, nor
the name of one given by id. An id that is not there is UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, cut_short
from fairlead_kafka.broker.api.common import NO_ID, one_each, reason, repeated
from fairlead_kafka.broker.api.rights import may_cluster
from fairlead_kafka.broker.controller import DeleteTopics, TopicImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.quotas.spending import Spending
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DeleteTopicsRequest, DeleteTopicsResponse

_Row = DeleteTopicsResponse.DeletableTopicResult

_IDS_FROM_VERSION = 6
_STRICT_FROM_VERSION = 5
Asked = tuple[str | None, UUID]
"""A topic by its name, or by its id."""


@serves(ApiKey.DELETE_TOPICS, versions=(1, 6))
def delete_topics(
    broker: Services, request: Request[DeleteTopicsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DeleteTopics: delete each topic, or say why not."""
    if request.version >= _IDS_FROM_VERSION:
        asked = [(topic.name, topic.topic_id) for topic in request.message.topics]
    else:
        asked = [(name, NO_ID) for name in request.message.topic_names]
    twice = repeated(asked)
    checked = {one: _check(one, one in twice) for one in dict.fromkeys(asked)}
    unfit: dict[Asked, TopicImage | BrokerError] = {
        one: error for one, error in checked.items() if isinstance(error, BrokerError)
    }
    named = {one: topic for one, topic in checked.items() if not isinstance(topic, BrokerError)}
    refused = _refused(broker, session, named)
    wanted = {one: topic for one, topic in named.items() if one not in refused}

    def decided(results: list[TopicImage | BrokerError] | None, error: BrokerError | None) -> None:
        outcomes = unfit | dict(zip(wanted, one_each(results, error, len(wanted)), strict=True))
        rows = [refused[one] if one in refused else _row(one, outcomes[one]) for one in checked]
        reply(DeleteTopicsResponse(throttle_time_ms=spending.throttle_ms, responses=rows))

    spending = Spending(broker, session, strict=request.version >= _STRICT_FROM_VERSION)
    spending.decide(DeleteTopics(list(wanted.values())), decided)


def _refused(broker: Services, session: Requester, named: Iterable[Asked]) -> dict[Asked, _Row]:
    """The rows of topics that the session may not delete, each of which says no more than the
    session may know."""
    if session.authorizer is None or may_cluster(session, AclOperation.DELETE, quiet=True):
        return {}
    image, rows = broker.controller.image, {}
    for asked in named:
        name, topic_id = asked
        topic = image.topics_by_id.get(topic_id) if name is None else image.topics.get(name)
        known = name if topic is None else topic.name
        if known is None:  # no topic has the id
            continue
        seen = session.may(AclOperation.DESCRIBE, AclResourceType.TOPIC, known)
        if not seen or (
            topic is not None and not session.may(AclOperation.DELETE, AclResourceType.TOPIC, known)
        ):
            text = cut_short(f"{session.principal} has no right to DELETE on the topic")
            rows[asked] = _Row(
                name=known if seen else name,
                topic_id=topic_id,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                error_message=text,
            )
    return rows


def _check(asked: Asked, twice: bool) -> str | UUID | BrokerError:
    name, topic_id = asked
    if twice:
        return BrokerError(ErrorCode.INVALID_REQUEST, "the topic comes more than once in the request")
    if (name is None) == (topic_id == NO_ID):
        return BrokerError(ErrorCode.INVALID_REQUEST, "a topic is named by its name or by its id")
    return topic_id if name is None else name


def _row(asked: Asked, outcome: TopicImage | BrokerError) -> _Row:
    name, topic_id = asked
    if isinstance(outcome, BrokerError):
        return _Row(name=name, topic_id=topic_id, error_code=outcome.code, error_message=reason(outcome))
    return _Row(name=outcome.name, topic_id=outcome.topic_id, error_code=ErrorCode.NONE, error_message=None)
