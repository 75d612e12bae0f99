"""Cases of topics, configs and brokers that are changed and described."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.wire import ApiKey, Message
from tests.support.rights import (
    GHOST,
    GHOST_ID,
    NAMES,
    NO_ID,
    OPEN,
    SECRET,
    SPARE,
    Fields,
    Ids,
    cases,
    said,
)


def _creation(name: str, **more: Any) -> Message:
    return Message(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[], **more)


def _create(*names: str, validate_only: bool = True) -> Fields:
    return said(topics=[_creation(name) for name in names], timeout_ms=10_000, validate_only=validate_only)


def _deletions(ids: Ids) -> dict[str, Any]:
    by_name = [Message(name=name, topic_id=NO_ID) for name in NAMES]
    by_id = [Message(name=None, topic_id=one) for one in (ids[SPARE], GHOST_ID)]
    return {"topics": by_name + by_id, "timeout_ms": 10_000}


def _resources(more: dict[str, Any], **fields: Any) -> Fields:
    named = [(2, OPEN), (2, SECRET), (2, GHOST), (4, "")]
    return said(
        resources=[Message(resource_type=kind, resource_name=name, **more) for kind, name in named], **fields
    )


_MOVE = [Message(name=OPEN, partitions=[Message(partition_index=0, replicas=None)])]

_QUOTA = Message(
    entity=[Message(entity_type="user", entity_name="anybody")],
    ops=[Message(key="producer_byte_rate", value=1000.0, remove=False)],
)
_LEVEL = Message(feature="transaction.version", max_version_level=0, upgrade_type=2)

CLUSTER = (
    *cases(
        ApiKey.UPDATE_FEATURES,
        2,
        said(timeout_ms=10_000, feature_updates=[_LEVEL], validate_only=True),
        nothing=(),
        other=("ALTER_CONFIGS CLUSTER",),
        cluster=("ALTER CLUSTER",),
    ),
    *cases(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        1,
        said(components=[], strict=False),
        nothing=(),
        other=("DESCRIBE CLUSTER",),
        told=("DESCRIBE_CONFIGS CLUSTER",),
    ),
    *cases(
        ApiKey.ALTER_CLIENT_QUOTAS,
        1,
        said(entries=[_QUOTA], validate_only=True),
        nothing=(),
        other=("ALTER CLUSTER",),
        cluster=("ALTER_CONFIGS CLUSTER",),
    ),
    *cases(
        ApiKey.CREATE_TOPICS,
        7,
        _create("made-2", SECRET),
        nothing=(),
        topic=("CREATE TOPIC made-2",),
        cluster=("CREATE CLUSTER",),
        told=("CREATE TOPIC made-*", "DESCRIBE_CONFIGS TOPIC made-2"),
    ),
    *cases(ApiKey.CREATE_TOPICS, 7, _create("made-2", "made-2"), twice=()),
    *cases(
        ApiKey.DELETE_TOPICS,
        6,
        _deletions,
        nothing=(),
        seen=("DESCRIBE TOPIC *",),
        some=("DESCRIBE TOPIC secret", "DELETE TOPIC ghost"),
    ),
    *cases(
        ApiKey.DELETE_TOPICS,
        5,
        said(topic_names=[SECRET, GHOST], timeout_ms=10_000),
        nothing=(),
        all=("DELETE TOPIC ghost",),
    ),
    *cases(
        ApiKey.CREATE_PARTITIONS,
        3,
        said(
            topics=[Message(name=name, count=2, assignments=None) for name in NAMES],
            timeout_ms=10_000,
            validate_only=True,
        ),
        nothing=(),
        some=("ALTER TOPIC open",),
    ),
    *cases(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        _resources({"configuration_keys": ["retention.ms"]}),
        nothing=(),
        some=("DESCRIBE_CONFIGS TOPIC open",),
        cluster=("DESCRIBE_CONFIGS CLUSTER",),
        altering=("ALTER_CONFIGS TOPIC *", "DESCRIBE TOPIC *"),
    ),
    *cases(
        ApiKey.ALTER_CONFIGS,
        2,
        _resources({"configs": []}, validate_only=True),
        nothing=("DESCRIBE_CONFIGS TOPIC *",),
        some=("ALTER_CONFIGS TOPIC open",),
    ),
    *cases(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        _resources({"configs": []}, validate_only=True),
        nothing=("DESCRIBE_CONFIGS TOPIC *",),
        some=("ALTER_CONFIGS TOPIC open",),
        cluster=("ALTER_CONFIGS CLUSTER",),
    ),
    *cases(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        said(topics=[Message(name=name) for name in NAMES], response_partition_limit=10, cursor=None),
        nothing=("READ TOPIC nobody",),
        some=("DESCRIBE TOPIC open",),
        told=("DESCRIBE TOPIC *", "ALTER_CONFIGS TOPIC secret"),
    ),
    *cases(
        ApiKey.LIST_CONFIG_RESOURCES,
        1,
        said(resource_types=[16]),
        nothing=("DESCRIBE_CONFIGS TOPIC *",),
        may=("DESCRIBE_CONFIGS CLUSTER",),
    ),
    *cases(
        ApiKey.DESCRIBE_QUORUM,
        1,
        said(topics=[Message(topic_name="nothing", partitions=[Message(partition_index=0)])]),
        nothing=("DESCRIBE TOPIC *",),
        may=("DESCRIBE CLUSTER",),
    ),
    *cases(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        said(dirs=[Message(path="/nowhere", topics=[Message(name=OPEN, partitions=[0])])]),
        nothing=("ALTER TOPIC *",),
        may=("ALTER CLUSTER",),
    ),
    *cases(
        ApiKey.CREATE_DELEGATION_TOKEN,
        3,
        said(renewers=[], max_lifetime_ms=-1, owner_principal_type=None, owner_principal_name=None),
        nothing=(),
    ),
    *cases(ApiKey.RENEW_DELEGATION_TOKEN, 2, said(hmac=b"x", renew_period_ms=-1), nothing=()),
    *cases(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, said(hmac=b"x", expiry_time_period_ms=-1), nothing=()),
    *cases(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, said(owners=None), nothing=()),
    *cases(ApiKey.DESCRIBE_LOG_DIRS, 4, said(topics=[]), nothing=("ALL TOPIC *",)),
    *cases(
        ApiKey.ELECT_LEADERS,
        2,
        said(election_type=0, topic_partitions=[Message(topic=OPEN, partitions=[0])], timeout_ms=10_000),
        nothing=("ALL TOPIC *",),
        may=("ALTER CLUSTER",),
    ),
    *cases(
        ApiKey.ELECT_LEADERS,
        0,
        said(topic_partitions=[Message(topic=OPEN, partitions=[0])], timeout_ms=10_000),
        nothing=(),
    ),
    *cases(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        1,
        said(timeout_ms=10_000, topics=_MOVE),
        nothing=("ALTER TOPIC open",),
        may=("ALTER CLUSTER",),
    ),
    *cases(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        said(timeout_ms=10_000, topics=None),
        nothing=("ALL TOPIC *",),
        may=("DESCRIBE CLUSTER",),
    ),
    *cases(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        0,
        said(users=[Message(name=GHOST)]),
        nothing=("CREATE CLUSTER",),
        may=("DESCRIBE CLUSTER",),
    ),
    *cases(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        0,
        said(deletions=[Message(name=GHOST, mechanism=1), Message(name=SECRET, mechanism=2)], upsertions=[]),
        nothing=("DESCRIBE CLUSTER",),
        may=("ALTER CLUSTER",),
    ),
    *cases(
        ApiKey.DESCRIBE_CLUSTER,
        1,
        said(include_cluster_authorized_operations=True, endpoint_type=1),
        nothing=("CREATE CLUSTER",),
        some=("DESCRIBE CLUSTER", "CREATE CLUSTER"),
        all=("ALL CLUSTER",),
        most=("ALL CLUSTER", "DENY ALTER CLUSTER"),
    ),
)
