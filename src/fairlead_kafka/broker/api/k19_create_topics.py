"""CreateTopics (19): topics that are there, with their leaders, when the answer is sent.

Versions 2-7. Every broker serves it and has the controller decide. -1 for partitions or replication
factor means the broker's defaults (KIP-464; Kafka takes it in older versions too). Refused with
Kafka's codes: unknown or unsupported configs (INVALID_CONFIG, with the nearest right name), names
that differ in '.' and '_' alone (INVALID_TOPIC_EXCEPTION), a name that comes twice in a request
(INVALID_REQUEST). Partitions are charged to the client's controller_mutation_rate (KIP-599): above
it they are refused from version 6 on (THROTTLING_QUOTA_EXCEEDED), and before that created, and
their client throttled. `timeout_ms` has nothing to bound: nothing is waited for.

Needs CREATE on the cluster, or on each topic (TOPIC_AUTHORIZATION_FAILED, whether it is there or
not). The topic's partitions, replicas and configs are answered to principals with DESCRIBE_CONFIGS
on it; else `topic_config_error_code` is TOPIC_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import NO_ID, one_each, reason, repeated
from fairlead_kafka.broker.api.rights import may_cluster, permitted, refusal
from fairlead_kafka.broker.controller import CreateTopics, NewTopic, TopicImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.quotas.spending import Spending
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import CreateTopicsRequest, CreateTopicsResponse

_Row = CreateTopicsResponse.CreatableTopicResult

_STRICT_FROM_VERSION = 6


@serves(ApiKey.CREATE_TOPICS, versions=(2, 7))
def create_topics(
    broker: Services, request: Request[CreateTopicsRequest], session: Requester, reply: Reply
) -> None:
    """Serve CreateTopics: create each topic, or answer why not; one that fails does not stop the
    others."""
    validate_only = request.message.validate_only
    spending = Spending(broker, session, strict=request.version >= _STRICT_FROM_VERSION)
    twice = repeated(topic.name for topic in request.message.topics)
    refused = _refused(session, {asked.name for asked in request.message.topics} - twice)
    checked = {
        asked.name: refused.get(asked.name) or _check(asked, asked.name in twice)
        for asked in request.message.topics
    }
    wanted = [new for new in checked.values() if isinstance(new, NewTopic)]

    def decided(results: list[TopicImage | BrokerError] | None, error: BrokerError | None) -> None:
        created = {
            new.name: result
            for new, result in zip(wanted, one_each(results, error, len(wanted)), strict=True)
        }
        outcomes = {
            name: one if isinstance(one, BrokerError) else created[name] for name, one in checked.items()
        }
        seen = permitted(session, AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, outcomes, quiet=True)
        rows = [
            _failed(name, one)
            if isinstance(one, BrokerError)
            else _created(broker, one, validate_only, name in seen)
            for name, one in outcomes.items()
        ]
        reply(CreateTopicsResponse(throttle_time_ms=spending.throttle_ms, topics=rows))

    spending.decide(CreateTopics(wanted, validate_only), decided)


def _refused(session: Requester, names: Iterable[str]) -> dict[str, BrokerError]:
    """The topics that the session may not create, each with the error."""
    if may_cluster(session, AclOperation.CREATE, quiet=True):
        return {}
    creatable = permitted(session, AclOperation.CREATE, AclResourceType.TOPIC, names)
    return {
        name: refusal(session, AclOperation.CREATE, AclResourceType.TOPIC, name)
        for name in names
        if name not in creatable
    }


def _check(asked: CreateTopicsRequest.CreatableTopic, twice: bool) -> NewTopic | BrokerError:
    if twice:
        return BrokerError(ErrorCode.INVALID_REQUEST, "the topic comes more than once in the request")
    configs = repeated(config.name for config in asked.configs)
    if configs:
        return BrokerError(
            ErrorCode.INVALID_REQUEST, f"configs named more than once: {', '.join(sorted(map(str, configs)))}"
        )
    if repeated(one.partition_index for one in asked.assignments):
        return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is assigned more than once")
    return NewTopic(
        asked.name,
        asked.num_partitions,
        asked.replication_factor,
        {one.partition_index: list(one.broker_ids) for one in asked.assignments} or None,
        {config.name: config.value for config in asked.configs},
    )


def _created(broker: Services, topic: TopicImage, validate_only: bool, seen: bool) -> _Row:
    topic_id = NO_ID if validate_only else topic.topic_id
    if not seen:
        return _Row(
            name=topic.name,
            topic_id=topic_id,
            error_code=ErrorCode.NONE,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            configs=[],
        )
    configs = [
        CreateTopicsResponse.CreatableTopicConfigs(
            name=config.key.name,
            value=config.value,
            read_only=config.read_only,
            config_source=int(config.source),
            is_sensitive=False,
        )
        for config in broker.controller.configs.describe_topic(topic.configs)
    ]
    return _Row(
        name=topic.name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        topic_config_error_code=ErrorCode.NONE,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=configs,
    )


def _failed(name: str, error: BrokerError) -> _Row:
    return _Row(name=name, topic_id=NO_ID, error_code=error.code, error_message=reason(error), configs=[])
