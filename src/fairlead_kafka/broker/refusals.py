"""APIs, versions and options that this cluster does not serve, and why: the other half of
`dispatch.REGISTRY`.

`REFUSED_APIS` and the registry together name every API of Kafka exactly once (a test holds them
against each other), and the documentation prints both. A refused API is not in ApiVersions, and a
request for it ends the connection, as in Kafka. `REFUSED_VERSIONS` are the versions of served APIs
that a current Kafka (4.2) has and this cluster has not. `REFUSED_OPTIONS` are parts of served APIs
that are answered with an error; configs have their own list (`base.config_broker.UNSUPPORTED`).
"""

from __future__ import annotations

from typing import NamedTuple

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.wire import ApiKey

_QUORUM = "the controller is one object, called directly, not a quorum of servers"
_LOG_DIRS = "a broker has one log directory, which the launcher chooses"
_TOKENS = "delegation tokens are not part of this release: clients log in with what they have themselves"

REFUSED_APIS: dict[ApiKey, str] = {
    ApiKey.VOTE: _QUORUM,
    ApiKey.BEGIN_QUORUM_EPOCH: _QUORUM,
    ApiKey.END_QUORUM_EPOCH: _QUORUM,
    ApiKey.ALTER_PARTITION: _QUORUM,
    ApiKey.ENVELOPE: _QUORUM,
    ApiKey.FETCH_SNAPSHOT: _QUORUM,
    ApiKey.BROKER_REGISTRATION: _QUORUM,
    ApiKey.BROKER_HEARTBEAT: _QUORUM,
    ApiKey.UNREGISTER_BROKER: "brokers belong to the launcher, which starts as many as it is told",
    ApiKey.ALLOCATE_PRODUCER_IDS: _QUORUM,
    ApiKey.CONTROLLER_REGISTRATION: _QUORUM,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _LOG_DIRS,
}
"""API → why it is not served."""

KAFKA_VERSIONS: dict[ApiKey, tuple[int, int]] = {
    ApiKey.PRODUCE: (3, 13),
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 5),
    ApiKey.WRITE_TXN_MARKERS: (1, 2),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.CREATE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 5),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKey.UPDATE_FEATURES: (0, 2),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (1, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: (1, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: (1, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (1, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (1, 3),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0),
    ApiKey.PUSH_TELEMETRY: (0, 0),
    ApiKey.LIST_CONFIG_RESOURCES: (0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
    ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1),
    ApiKey.SHARE_GROUP_DESCRIBE: (1, 1),
    ApiKey.SHARE_FETCH: (1, 2),
    ApiKey.SHARE_ACKNOWLEDGE: (1, 2),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (0, 0),
    ApiKey.READ_SHARE_GROUP_STATE: (0, 0),
    ApiKey.WRITE_SHARE_GROUP_STATE: (0, 1),
    ApiKey.DELETE_SHARE_GROUP_STATE: (0, 0),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (0, 1),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (0, 1),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (0, 0),
}
"""Served API → lowest and highest version that a Kafka 4.2 broker serves."""


class RefusedVersions(NamedTuple):
    """Versions `low` to `high` of an API that are not served, although others are, with the
    reason."""

    api_key: ApiKey
    low: int
    high: int
    reason: str


REFUSED_VERSIONS: tuple[RefusedVersions, ...] = (
    RefusedVersions(
        ApiKey.INIT_PRODUCER_ID,
        6,
        6,
        "two-phase commit (KIP-939); brokers of Apache Kafka 4.3.1 do not offer it either",
    ),
)


class RefusedOption(NamedTuple):
    """An option of a served API that is not supported: it is answered with `error_code`, for
    `reason`."""

    api_key: ApiKey
    option: str
    error_code: int
    reason: str


REFUSED_OPTIONS: tuple[RefusedOption, ...] = (
    *(
        RefusedOption(api, "all of it", ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, _TOKENS)
        for api in (
            ApiKey.CREATE_DELEGATION_TOKEN,
            ApiKey.RENEW_DELEGATION_TOKEN,
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
        )
    ),
    RefusedOption(ApiKey.ALTER_REPLICA_LOG_DIRS, "another directory", ErrorCode.LOG_DIR_NOT_FOUND, _LOG_DIRS),
    RefusedOption(
        ApiKey.PRODUCE,
        "internal topics",
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "coordinators keep what they know there",
    ),
    RefusedOption(
        ApiKey.OFFSET_COMMIT,
        "retention_time_ms",
        ErrorCode.INVALID_REQUEST,
        "offsets are kept by offsets.retention.minutes",
    ),
    RefusedOption(
        ApiKey.CREATE_TOPICS, "configs in UNSUPPORTED", ErrorCode.INVALID_CONFIG, "each with its own reason"
    ),
    RefusedOption(
        ApiKey.DELETE_TOPICS,
        "internal topics",
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "groups would lose their offsets",
    ),
    RefusedOption(
        ApiKey.CREATE_PARTITIONS,
        "internal topics",
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "groups would lose their home",
    ),
    RefusedOption(
        ApiKey.DELETE_RECORDS,
        "internal topics",
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "groups would lose their offsets",
    ),
    RefusedOption(
        ApiKey.DESCRIBE_CONFIGS,
        "brokers' loggers",
        ErrorCode.INVALID_REQUEST,
        "loggers are Python's",
    ),
    RefusedOption(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "brokers' loggers",
        ErrorCode.INVALID_REQUEST,
        "loggers are Python's",
    ),
    RefusedOption(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        "broker configs that are not dynamic",
        ErrorCode.INVALID_CONFIG,
        "they are read when a broker starts",
    ),
    RefusedOption(
        ApiKey.LIST_TRANSACTIONS,
        "Unicode classes (\\p{...}) in transactional_id_pattern",
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        "the engine has no tables of Unicode; a class can be written out",
    ),
    RefusedOption(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "Unicode classes (\\\\p{...}) in subscribed_topic_regex",
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        "names of topics are ASCII, so no such class could match one",
    ),
    RefusedOption(
        ApiKey.DESCRIBE_CLUSTER, "endpoint type 2 (controllers)", ErrorCode.MISMATCHED_ENDPOINT_TYPE, _QUORUM
    ),
)
