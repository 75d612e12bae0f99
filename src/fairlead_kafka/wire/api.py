"""The APIs by number and name, the versions that Fairlead's client supports, and the choice of a
common one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from fairlead_kafka.base.errors import UnsupportedVersion


class ApiKey(IntEnum):
    """Kafka's API keys (`org.apache.kafka.common.protocol.ApiKeys`)."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


CLIENT_VERSIONS: dict[ApiKey, tuple[int, int]] = {
    ApiKey.PRODUCE: (3, 13),
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.METADATA: (4, 13),
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.SASL_HANDSHAKE: (1, 1),  # in version 0 what follows has no request header
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),  # 4 and above: brokers among themselves (KIP-890)
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 5),
    ApiKey.TXN_OFFSET_COMMIT: (3, 5),  # below 3 a group cannot refuse a member that it replaced (KIP-447)
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.CREATE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 5),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (1, 2),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.WRITE_TXN_MARKERS: (1, 1),
    ApiKey.LIST_CONFIG_RESOURCES: (0, 1),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.UPDATE_FEATURES: (0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0),
    ApiKey.PUSH_TELEMETRY: (0, 0),
    ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1),  # 0 was an early access of Kafka 4.0, gone since
    ApiKey.SHARE_GROUP_DESCRIBE: (1, 1),
    ApiKey.SHARE_FETCH: (1, 2),
    ApiKey.SHARE_ACKNOWLEDGE: (1, 2),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (0, 1),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (0, 0),
}
"""Lowest and highest version of each API that our client sends; an API that is not here is not one
the client uses."""


class NeededField(NamedTuple):
    """A field of a request that must not be dropped: its name, the first version that has it, and
    the value of it that asks for nothing."""

    name: str
    version: int
    default: object


NEEDED_FIELDS: dict[int, tuple[NeededField, ...]] = {
    ApiKey.LIST_TRANSACTIONS: (
        NeededField("duration_filter", 1, -1),
        NeededField("transactional_id_pattern", 2, None),
    ),
}
"""Fields that may not be left out where a broker speaks an older version only: its answer would be
to another question. Kafka's message definitions call such fields not ignorable."""


def refuse_lost_fields(api_key: int, version: int, message: object) -> None:
    """Raise `UnsupportedVersion` if `message` says something that `version` of the API has no field
    for (`NEEDED_FIELDS`)."""
    for field in NEEDED_FIELDS.get(api_key, ()):
        if version < field.version and getattr(message, field.name) != field.default:
            raise UnsupportedVersion(
                f"{ApiKey(api_key).name}: {field.name} needs version {field.version}, and the broker speaks "
                f"{version} at most; leave it out, or ask a newer broker"
            )


TRANSACTION_VERSION = "transaction.version"


class FeatureVersion(NamedTuple):
    """The first version of an API that is spoken only where a cluster has finalized a feature at
    `level` or above (KIP-584)."""

    version: int
    feature: str
    level: int


FEATURE_VERSIONS: dict[ApiKey, FeatureVersion] = {
    ApiKey.PRODUCE: FeatureVersion(12, TRANSACTION_VERSION, 2),
    ApiKey.END_TXN: FeatureVersion(5, TRANSACTION_VERSION, 2),
    ApiKey.TXN_OFFSET_COMMIT: FeatureVersion(5, TRANSACTION_VERSION, 2),
}
"""APIs whose newest versions have another meaning: the second protocol of transactions (KIP-890).
Brokers serve them at any level, and a client keeps below them where the level is lower."""


def ceiling(api_key: int, finalized: Mapping[str, int]) -> int | None:
    """The highest version of an API that the cluster's `finalized` levels (feature → level) allow;
    None: all."""
    bound = FEATURE_VERSIONS.get(ApiKey(api_key))
    if bound is None or finalized.get(bound.feature, 0) >= bound.level:
        return None
    return bound.version - 1


def negotiate(api_key: int, offered: Mapping[int, tuple[int, int]], ceiling: int | None = None) -> int:
    """The highest version that both our client and the broker speak, and not above `ceiling`.

    `offered` is what the broker's ApiVersions response says: API key → (lowest, highest).
    Raises `UnsupportedVersion` if there is no such version (KIP-35).
    """
    name = ApiKey(api_key).name
    ours = CLIENT_VERSIONS.get(ApiKey(api_key))
    if ours is None:
        raise UnsupportedVersion(f"this client never sends {name}; it has no entry in CLIENT_VERSIONS")
    theirs = offered.get(api_key)
    if theirs is None:
        raise UnsupportedVersion(
            f"the broker does not serve {name} at all; its ApiVersions response does not list key "
            f"{int(api_key)}"
        )
    lowest = max(ours[0], theirs[0])
    highest = min(ours[1], theirs[1]) if ceiling is None else min(ours[1], theirs[1], ceiling)
    if lowest > highest:
        limit = "" if ceiling is None else f", and the caller needs a version of at most {ceiling}"
        raise UnsupportedVersion(
            f"no version of {name} in common: this client speaks {ours[0]} to {ours[1]}, the broker "
            f"{theirs[0]} to {theirs[1]}{limit}"
        )
    return highest
