"""Topics, configs and the cluster itself: good requests and bad ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead_kafka.lab.transcript.steps import (
    JUST_CHANGED,
    PREFIX,
    UNKNOWN_ID,
    Body,
    Given,
    Seen,
    Step,
    ask,
    given,
    request,
)
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    AlterConfigsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)

_AclCreation = CreateAclsRequest.AclCreation
_Creatable = CreateTopicsRequest.CreatableTopic
_Grown = CreatePartitionsRequest.CreatePartitionsTopic
_Gone = DeleteTopicsRequest.DeleteTopicState
_Topic = MetadataRequest.MetadataRequestTopic
MAIN = PREFIX + "main"
"""A topic of three partitions for the steps here; other modules make their own."""
_TOPIC, _BROKER = 2, 4
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


def topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    assignments: Iterable[tuple[int, Iterable[int]]] = (),
    **configs: str | None,
) -> _Creatable:
    """A topic of a CreateTopics request; configs with `_` for `.`."""
    rows = [
        CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    placed = [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
        for number, brokers in assignments
    ]
    return _Creatable(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=placed,
        configs=rows,
    )


def create(
    name: str, *topics: Given[_Creatable], versions: Iterable[int] = (7,), validate_only: bool = False
) -> Step:
    """A CreateTopics step; a topic may be a function that makes it of `Seen`."""

    def rows(seen: Seen) -> list[_Creatable]:
        return [given(one, seen) for one in topics]

    return ask(
        name, ApiKey.CREATE_TOPICS, versions, topics=rows, timeout_ms=10_000, validate_only=validate_only
    )


def appears(*names: str) -> Step:
    """A Metadata step for topics just created, sent again until the broker knows them."""
    rows = [_Topic(name=name) for name in names]
    return ask(
        f"{', '.join(names)} is there",
        ApiKey.METADATA,
        (13,),
        topics=rows,
        again_on=JUST_CHANGED,
        allow_auto_topic_creation=False,
    )


def _versioned(seen: Seen) -> _Creatable:
    return topic(f"{PREFIX}created-{seen.version}", 2, 1, retention_ms="86400000")


_CREATE = [
    create("one topic for each version", _versioned, versions=range(2, 8)),
    create("the transcript's own", topic(MAIN, 3, cleanup_policy="delete", retention_ms="-1")),
    appears(MAIN),
    create("it is there already", topic(MAIN), versions=(2, 5, 7)),
    create("defaults", topic(PREFIX + "defaults", -1, -1), versions=(4, 7)),
    create("defaults before there were any", topic(PREFIX + "no-defaults", -1, -1), versions=(2, 3)),
    create("validated only", topic(PREFIX + "validated", 5), versions=range(2, 8), validate_only=True),
    create("validated, and it is there", topic(MAIN, 5), validate_only=True),
    create("nothing"),
    create(
        "twice in one request", topic(PREFIX + "twice"), topic(PREFIX + "twice"), topic(PREFIX + "beside")
    ),
    create("no partitions", topic(PREFIX + "none", 0), versions=(2, 7)),
    create("negative partitions", topic(PREFIX + "none", -2)),
    create("replication factor 0", topic(PREFIX + "none", 1, 0)),
    create("replication factor -2", topic(PREFIX + "none", 1, -2)),
    create("more replicas than brokers", topic(PREFIX + "none", 1, 2), versions=(2, 7)),
    create("an empty name", topic("")),
    create("a dot", topic(".")),
    create("two dots", topic("..")),
    create("a slash", topic(PREFIX + "a/b"), versions=(2, 7)),
    create("a space", topic(PREFIX + "a b")),
    create("a letter beyond ASCII", topic(PREFIX + "é")),
    create("249 letters", topic(PREFIX + "x" * (249 - len(PREFIX))), validate_only=True),
    create("250 letters", topic(PREFIX + "x" * (250 - len(PREFIX)))),
    create("for the next", topic(PREFIX + "dot.name")),
    create("a name that collides", topic(PREFIX + "dot_name")),
    create("an unknown config", topic(PREFIX + "config", retention_mss="1")),
    create("a config that is no number", topic(PREFIX + "config", retention_ms="soon"), versions=(2, 7)),
    create("a config out of range", topic(PREFIX + "config", segment_bytes="1")),
    create("a null config", topic(PREFIX + "config", retention_ms=None)),
    create("assigned", topic(PREFIX + "assigned", -1, -1, [(0, [0]), (1, [0])])),
    create("assigned and counted", topic(PREFIX + "assigned-2", 2, 1, [(0, [0]), (1, [0])])),
    create("assigned with a gap", topic(PREFIX + "assigned-3", -1, -1, [(0, [0]), (2, [0])])),
    create("assigned to a stranger", topic(PREFIX + "assigned-4", -1, -1, [(0, [77])])),
    create("assigned to nobody", topic(PREFIX + "assigned-5", -1, -1, [(0, [])])),
    create("assigned twice to one", topic(PREFIX + "assigned-6", -1, -1, [(0, [0, 0])])),
    create("a partition assigned twice", topic(PREFIX + "assigned-7", -1, -1, [(0, [0]), (0, [0])])),
    create("an internal topic", topic("__consumer_offsets"), validate_only=True),
]


def _grow(
    name: str,
    count: int,
    assignments: Iterable[Iterable[int]] | None = None,
    topic_name: str = MAIN,
    versions: Iterable[int] = (3,),
    validate_only: bool | None = None,
) -> Step:
    placed = (
        None
        if assignments is None
        else [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=list(one)) for one in assignments]
    )
    rows = [_Grown(name=topic_name, count=count, assignments=placed)]
    fields: dict[str, Body] = {"topics": rows, "timeout_ms": 10_000}
    if validate_only is not None:
        fields["validate_only"] = validate_only
    return request(name, ApiKey.CREATE_PARTITIONS, versions, fields)


def _grow_by_version(seen: Seen) -> list[_Grown]:
    return [_Grown(name=f"{PREFIX}created-7", count=3 + seen.version, assignments=None)]


_PARTITIONS = [
    ask(
        "one more in each version",
        ApiKey.CREATE_PARTITIONS,
        range(4),
        topics=_grow_by_version,
        timeout_ms=10_000,
        validate_only=False,
    ),
    _grow("validated only", 9, versions=range(4), validate_only=True),
    _grow("as many as there are", 3, versions=(0, 3)),
    _grow("fewer", 1),
    _grow("none", 0),
    _grow("minus one", -1),
    _grow("of a topic that is not there", 5, topic_name=PREFIX + "missing", versions=(0, 3)),
    _grow("of a name that cannot be", 5, topic_name="a/b"),
    _grow("assigned", 4, [[0]], validate_only=True),
    _grow("assigned to too many", 4, [[0], [0]]),
    _grow("assigned to too few", 6, [[0], [0]]),
    _grow("assigned to a stranger", 4, [[77]]),
    _grow("assigned twice to one", 4, [[0, 0]]),
    _grow("assigned to nobody", 4, [[]]),
    ask(
        "twice in one request",
        ApiKey.CREATE_PARTITIONS,
        (3,),
        topics=[_Grown(name=MAIN, count=5, assignments=None), _Grown(name=MAIN, count=6, assignments=None)],
        timeout_ms=10_000,
    ),
]


def _metadata(
    name: str,
    versions: Iterable[int],
    topics: Given[Sequence[_Topic] | None],
    mine: bool = False,
    **more: Body,
) -> Step:
    fields: dict[str, Body] = {"topics": topics, "allow_auto_topic_creation": False, **more}
    return request(name, ApiKey.METADATA, versions, fields, mine=mine)


_METADATA = [
    _metadata("one topic", range(14), [_Topic(name=MAIN)]),
    _metadata("two topics", (9,), [_Topic(name=MAIN), _Topic(name=PREFIX + "assigned")]),
    _metadata("a topic twice", (9,), [_Topic(name=MAIN), _Topic(name=MAIN)]),
    _metadata("all of them", (1, 4, 5, 8, 9, 12, 13), None, mine=True),
    _metadata("all of them, as once asked for", (0,), [], mine=True),
    _metadata("none of them", (1, 9, 13), []),
    _metadata("a topic that is not there", (0, 1, 4, 9, 10, 13), [_Topic(name=PREFIX + "missing")]),
    _metadata("a name that cannot be", (1, 9, 12), [_Topic(name="a/b")]),
    _metadata("an empty name", (9, 12), [_Topic(name="")]),
    _metadata("a name that is too long", (9,), [_Topic(name="x" * 250)]),
    _metadata("by id", (12, 13), lambda seen: [_Topic(name=None, topic_id=seen.id(MAIN))]),
    _metadata("by an id that is not there", (12, 13), [_Topic(name=None, topic_id=UNKNOWN_ID)]),
    _metadata("by id before it could be", (10, 11), lambda seen: [_Topic(name="", topic_id=seen.id(MAIN))]),
    _metadata("neither by name nor by id", (12,), [_Topic(name=None)]),
    _metadata("with operations", (8, 10, 13), [_Topic(name=MAIN)], include_topic_authorized_operations=True),
    _metadata(
        "a missing one with operations",
        (8,),
        [_Topic(name=PREFIX + "missing")],
        include_topic_authorized_operations=True,
    ),
    ask("the cluster", ApiKey.DESCRIBE_CLUSTER, range(3)),
    ask(
        "the cluster with operations",
        ApiKey.DESCRIBE_CLUSTER,
        (0,),
        include_cluster_authorized_operations=True,
    ),
    ask("with fenced brokers", ApiKey.DESCRIBE_CLUSTER, (2,), include_fenced_brokers=True),
    ask("its controllers", ApiKey.DESCRIBE_CLUSTER, (1, 2), endpoint_type=2),
    ask("endpoints of no known kind", ApiKey.DESCRIBE_CLUSTER, (1,), endpoint_type=9),
]


def describe(
    name: str,
    kind: int,
    resource: str,
    keys: list[str] | None,
    versions: Iterable[int] = range(1, 5),
    **more: Body,
) -> Step:
    """A DescribeConfigs step; `keys` None: all."""
    rows = [
        DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=resource, configuration_keys=keys
        )
    ]
    return request(name, ApiKey.DESCRIBE_CONFIGS, versions, {"resources": rows, **more})


def alter(
    name: str,
    resource: str,
    *changes: tuple[str, int, str | None],
    kind: int = _TOPIC,
    versions: Iterable[int] = (1,),
    validate_only: bool = False,
) -> Step:
    """An IncrementalAlterConfigs step; a change is a key, an operation and a value."""
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    rows = [
        IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=kind, resource_name=resource, configs=configs
        )
    ]
    return ask(
        name,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        versions,
        resources=rows,
        validate_only=validate_only,
    )


def _replace(
    name: str,
    resource: str,
    versions: Iterable[int] = (2,),
    kind: int = _TOPIC,
    validate_only: bool = False,
    **configs: str | None,
) -> Step:
    rows = [
        AlterConfigsRequest.AlterableConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    resources = [
        AlterConfigsRequest.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=rows)
    ]
    return ask(name, ApiKey.ALTER_CONFIGS, versions, resources=resources, validate_only=validate_only)


_CHANGED = PREFIX + "created-2"
_CONFIGS = [
    describe("all of a topic", _TOPIC, MAIN, None),
    describe(
        "all of a topic with synonyms",
        _TOPIC,
        MAIN,
        None,
        (4,),
        include_synonyms=True,
        include_documentation=True,
    ),
    describe("two of a topic", _TOPIC, MAIN, ["retention.ms", "cleanup.policy"]),
    describe("what is not there", _TOPIC, MAIN, ["no.such.config"], (4,)),
    describe("none", _TOPIC, MAIN, [], (1, 4)),
    describe("of a topic that is not there", _TOPIC, PREFIX + "missing", None, (1, 4)),
    describe("of a name that cannot be", _TOPIC, "a/b", None, (4,)),
    describe("of an empty name", _TOPIC, "", None, (4,)),
    describe("every one of a broker", _BROKER, "0", None, (4,), include_documentation=True),
    describe("one of a broker", _BROKER, "0", ["log.retention.ms"], include_synonyms=True),
    describe("one of all brokers", _BROKER, "", ["log.retention.ms"], (4,)),
    describe("of a broker that is not there", _BROKER, "77", ["log.retention.ms"], (4,)),
    describe("of a broker that has no number", _BROKER, "zero", ["log.retention.ms"], (4,)),
    describe("of a kind that is not there", 77, "x", None, (4,)),
    alter("set", _CHANGED, ("retention.ms", _SET, "1000000"), versions=(0, 1)),
    alter("validated only", _CHANGED, ("retention.ms", _SET, "5"), validate_only=True),
    alter("append", _CHANGED, ("cleanup.policy", _APPEND, "compact")),
    alter("subtract", _CHANGED, ("cleanup.policy", _SUBTRACT, "delete")),
    alter("delete", _CHANGED, ("retention.ms", _DELETE, None)),
    alter("delete what is not set", _CHANGED, ("max.message.bytes", _DELETE, None)),
    alter("append to what is no list", _CHANGED, ("retention.ms", _APPEND, "1")),
    alter("set to null", _CHANGED, ("retention.ms", _SET, None)),
    alter("set to what is no number", _CHANGED, ("retention.ms", _SET, "soon"), versions=(0, 1)),
    alter("set what is not there", _CHANGED, ("no.such.config", _SET, "1")),
    alter("one key twice", _CHANGED, ("retention.ms", _SET, "1"), ("retention.ms", _SET, "2")),
    alter("one good, one bad", _CHANGED, ("retention.ms", _SET, "1"), ("segment.bytes", _SET, "x")),
    alter("an operation that is none", _CHANGED, ("retention.ms", 9, "1")),
    alter("nothing", _CHANGED),
    alter("of a topic that is not there", PREFIX + "missing", ("retention.ms", _SET, "1")),
    alter("of a kind that is not there", "x", ("a", _SET, "1"), kind=77),
    alter("a broker's", "0", ("log.retention.bytes", _SET, "1000000"), kind=_BROKER, validate_only=True),
    alter("what is kept", _CHANGED, ("segment.ms", _SET, "3600000"), ("preallocate", _SET, "true")),
    alter("what is kept, out of range", _CHANGED, ("segment.ms", _SET, "0")),
    alter("tiered storage", _CHANGED, ("remote.storage.enable", _SET, "true")),
    alter(
        "lags that cross",
        _CHANGED,
        ("min.compaction.lag.ms", _SET, "9"),
        ("max.compaction.lag.ms", _SET, "8"),
    ),
    alter("throttles", _CHANGED, ("leader.replication.throttled.replicas", _SET, "0:0"), validate_only=True),
    alter("throttles that are none", _CHANGED, ("leader.replication.throttled.replicas", _SET, "x")),
    alter("no policy", _CHANGED, ("cleanup.policy", _SET, ""), validate_only=True),
    alter("of a name that cannot be", "a/b", ("retention.ms", _SET, "1")),
    alter("of all topics", "", ("retention.ms", _SET, "1")),
    alter("a broker's, out of range", "0", ("background.threads", _SET, "0"), kind=_BROKER),
    alter("a broker's rate", "0", ("leader.replication.throttled.rate", _SET, "9"), kind=_BROKER),
    alter("one broker's for all", "", ("cordoned.log.dirs", _SET, ""), kind=_BROKER),
    alter("a broker's that is not dynamic", "0", ("broker.rack", _SET, "x"), kind=_BROKER),
    alter("all brokers'", "", ("log.retention.ms", _SET, "3600000"), kind=_BROKER),
    _replace("all replaced", _CHANGED, range(3), retention_ms="86400000", max_message_bytes="2000"),
    _replace("all replaced, validated only", _CHANGED, validate_only=True),
    _replace("a bad value", _CHANGED, retention_ms="soon"),
    _replace("a null value", _CHANGED, retention_ms=None),
    _replace("an unknown key", _CHANGED, no_such="1"),
    _replace("of a name that cannot be", "a/b", retention_ms="1"),
    _replace("of a topic that is not there", PREFIX + "missing", retention_ms="1"),
    describe(
        "what is left",
        _TOPIC,
        _CHANGED,
        ["retention.ms", "max.message.bytes", "cleanup.policy"],
        (4,),
        include_synonyms=True,
    ),
]


def _delete_by_version(seen: Seen) -> list[_Gone]:
    return [_Gone(name=f"{PREFIX}created-{seen.version}")]


_DELETE_TOPICS = [
    ask(
        "by name in each version",
        ApiKey.DELETE_TOPICS,
        range(1, 6),
        topic_names=lambda seen: [f"{PREFIX}created-{seen.version + 1}"],
        timeout_ms=10_000,
    ),
    ask(
        "one that is not there",
        ApiKey.DELETE_TOPICS,
        (1, 5),
        topic_names=[PREFIX + "missing"],
        timeout_ms=10_000,
    ),
    ask("by name", ApiKey.DELETE_TOPICS, (6,), topics=[_Gone(name=PREFIX + "created-7")], timeout_ms=10_000),
    ask(
        "by id",
        ApiKey.DELETE_TOPICS,
        (6,),
        topics=lambda seen: [_Gone(name=None, topic_id=seen.id(PREFIX + "assigned"))],
        timeout_ms=10_000,
    ),
    ask(
        "by an id that is not there",
        ApiKey.DELETE_TOPICS,
        (6,),
        topics=[_Gone(name=None, topic_id=UNKNOWN_ID)],
        timeout_ms=10_000,
    ),
    ask(
        "by a name that is not there",
        ApiKey.DELETE_TOPICS,
        (6,),
        topics=[_Gone(name=PREFIX + "missing")],
        timeout_ms=10_000,
    ),
    ask("by neither", ApiKey.DELETE_TOPICS, (6,), topics=[_Gone(name=None)], timeout_ms=10_000),
    ask(
        "by both",
        ApiKey.DELETE_TOPICS,
        (6,),
        topics=lambda seen: [_Gone(name=MAIN, topic_id=seen.id(MAIN))],
        timeout_ms=10_000,
    ),
    ask("twice", ApiKey.DELETE_TOPICS, (6,), topics=[_Gone(name=MAIN), _Gone(name=MAIN)], timeout_ms=10_000),
    ask("nothing", ApiKey.DELETE_TOPICS, (1, 6), topics=[], topic_names=[], timeout_ms=10_000),
]

_VERSIONS = [
    ask(
        "what is served",
        ApiKey.API_VERSIONS,
        range(5),
        client_software_name="transcript",
        client_software_version="1",
    ),
    ask(
        "a client without a name",
        ApiKey.API_VERSIONS,
        (3, 4),
        client_software_name="",
        client_software_version="1",
    ),
    ask(
        "a client with a strange name",
        ApiKey.API_VERSIONS,
        (3,),
        client_software_name="-a b",
        client_software_version="1",
    ),
    ask(
        "a client with a strange version",
        ApiKey.API_VERSIONS,
        (4,),
        client_software_name="a",
        client_software_version="ö",
    ),
]

_ANY_ACL = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
_ACL = _AclCreation(
    resource_type=2, resource_name=MAIN, principal="User:a", host="*", operation=3, permission_type=3
)
_RIGHTS = [
    request("without an authorizer", ApiKey.DESCRIBE_ACLS, range(1, 4), _ANY_ACL),
    ask(
        "without an authorizer",
        ApiKey.CREATE_ACLS,
        range(1, 4),
        creations=[_ACL, _ACL],
    ),
    ask(
        "without an authorizer",
        ApiKey.DELETE_ACLS,
        range(1, 4),
        filters=[
            DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
            )
        ],
    ),
]

STEPS: list[Step] = [*_VERSIONS, *_CREATE, *_PARTITIONS, *_METADATA, *_CONFIGS, *_RIGHTS]
LAST_STEPS: list[Step] = [
    describe("what that did to all brokers", _BROKER, "", ["log.retention.ms"], (4,), include_synonyms=True),
    alter("all brokers' taken back", "", ("log.retention.ms", _DELETE, None), kind=_BROKER),
    *_DELETE_TOPICS,
]
"""Last steps of the transcript: by then every broker knows the changes of the first steps."""
