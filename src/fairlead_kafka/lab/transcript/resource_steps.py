"""Topics page by page, resources with configs, the quorum, log directories and delegation
tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fairlead_kafka.lab.transcript.cluster_steps import alter, appears, create, describe, topic
from fairlead_kafka.lab.transcript.steps import JUST_CHANGED, PREFIX, Step, ask
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.messages import (
    AlterReplicaLogDirsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
)

ONE, TWO = PREFIX + "paged-1", PREFIX + "paged-2"
SUBSCRIPTION = PREFIX + "subscription"
_METRICS = 16
_SET, _DELETE = 0, 1


def _paged(
    name: str,
    topics: Iterable[str],
    limit: int,
    cursor: tuple[str, int] | None = None,
    again_on: Iterable[int] = (),
) -> Step:
    rows = [DescribeTopicPartitionsRequest.TopicRequest(name=one) for one in topics]
    where = (
        None
        if cursor is None
        else DescribeTopicPartitionsRequest.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    )
    return ask(
        name,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        (0,),
        topics=rows,
        response_partition_limit=limit,
        cursor=where,
        again_on=again_on,
    )


def quorum(name: str, log: str, number: int) -> Step:
    """A DescribeQuorum step."""
    rows = [
        DescribeQuorumRequest.TopicData(
            topic_name=log, partitions=[DescribeQuorumRequest.PartitionData(partition_index=number)]
        )
    ]
    return ask(name, ApiKey.DESCRIBE_QUORUM, range(3), topics=rows)


def moved(name: str, path: str, of: str, number: int) -> Step:
    """An AlterReplicaLogDirs step of one partition."""
    topics = [AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=of, partitions=[number])]
    rows = [AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=topics)]
    return ask(name, ApiKey.ALTER_REPLICA_LOG_DIRS, (1, 2), dirs=rows)


def listed(name: str, kinds: Iterable[int], versions: Iterable[int] = (1,)) -> Step:
    """A ListConfigResources step."""
    return ask(name, ApiKey.LIST_CONFIG_RESOURCES, versions, resource_types=list(kinds), mine=True)


def _is_listed(answer: Message) -> bool:
    """True if the subscription is listed: a broker learns of a change after it was acknowledged."""
    return any(row.resource_name == SUBSCRIPTION for row in answer.config_resources)


def _has_pattern(answer: Message) -> bool:
    """True if the broker knows the last change to the subscription, its pattern."""
    return any(one.name == "match" and one.value for row in answer.results for one in row.configs)


def _subscribed(name: str, *changes: tuple[str, int, str | None], to: str = SUBSCRIPTION) -> Step:
    return alter(name, to, *changes, kind=_METRICS)


_PAGES = [
    create("topics to be paged through", topic(ONE, 3), topic(TWO, 2)),
    appears(ONE, TWO),
    _paged("one topic", (ONE,), 2000, again_on=JUST_CHANGED),
    _paged("two topics", (TWO, ONE), 2000, again_on=JUST_CHANGED),
    _paged("a page", (ONE, TWO), 2),
    _paged("the next page", (ONE, TWO), 2, (ONE, 2)),
    _paged("the last page", (ONE, TWO), 2, (TWO, 1)),
    _paged("a page that ends with a topic", (ONE, TWO), 3),
    _paged("a page of nothing", (ONE, TWO), 0),
    _paged("a page of less than nothing", (ONE, TWO), -1),
    _paged("a topic that is not there", (PREFIX + "missing",), 10),
    _paged("a name that cannot be", ("a/b",), 10),
    _paged("a topic twice", (ONE, ONE), 10),
    _paged("from beyond the end", (ONE,), 10, (ONE, 9)),
    _paged("from below the beginning", (ONE,), 10, (ONE, -1)),
    _paged("from a topic that is not asked for", (ONE,), 10, (TWO, 0)),
    _paged("from a topic that is not there", (ONE, PREFIX + "missing"), 10, (PREFIX + "missing", 0)),
]
_RESOURCES = [
    listed("clients' metrics, and there are none", (), (0,)),
    listed("topics", (2,)),
    listed("a kind that is not there", (77,)),
    listed("an older kind that is not there", (2, 3)),
    _subscribed(
        "a subscription", ("metrics", _SET, "org.apache.kafka.producer."), ("interval.ms", _SET, "5000")
    ),
    _subscribed("an interval out of range", ("interval.ms", _SET, "99")),
    _subscribed("an interval that is no number", ("interval.ms", _SET, "soon")),
    _subscribed("an unknown key", ("no.such", _SET, "1")),
    _subscribed("a pattern", ("match", _SET, "client_id=transcript.*,client_software_name=fairlead")),
    _subscribed("a pattern of no part", ("match", _SET, "clients=a")),
    _subscribed("a pattern that is none", ("match", _SET, "client_id=[")),
    _subscribed("no name", ("metrics", _SET, "*"), to=""),
    replace(
        describe("a subscription", _METRICS, SUBSCRIPTION, None, (1, 4), include_synonyms=True),
        until=_has_pattern,
    ),
    describe("a subscription that is not there", _METRICS, PREFIX + "missing", None, (4,)),
    describe("a subscription without a name", _METRICS, "", None, (4,)),
    listed("subscriptions", (), (0,)),
    listed("subscriptions by kind", (16,)),
    _subscribed("no more", *((key, _DELETE, None) for key in ("metrics", "interval.ms", "match"))),
    replace(listed("no subscription is left", (), (0,)), until=lambda answer: not _is_listed(answer)),
]
TOKENS = [
    ask(
        "a token",
        ApiKey.CREATE_DELEGATION_TOKEN,
        range(1, 4),
        renewers=[],
        max_lifetime_ms=-1,
        owner_principal_type=None,
        owner_principal_name=None,
    ),
    ask("a longer life", ApiKey.RENEW_DELEGATION_TOKEN, (1, 2), hmac=b"x", renew_period_ms=-1),
    ask("a shorter life", ApiKey.EXPIRE_DELEGATION_TOKEN, (1, 2), hmac=b"x", expiry_time_period_ms=-1),
    ask("all tokens", ApiKey.DESCRIBE_DELEGATION_TOKEN, range(1, 4), owners=None),
]
STEPS: list[Step] = [
    *_PAGES,
    *_RESOURCES,
    quorum("the metadata log", "__cluster_metadata", 0),
    quorum("a partition of it that is not there", "__cluster_metadata", 1),
    quorum("another topic", ONE, 0),
    moved("to a folder that is not there", "/nowhere", ONE, 0),
    moved("to a folder that is not there, and nor is the topic", "/nowhere", PREFIX + "missing", 0),
    *TOKENS,
]
