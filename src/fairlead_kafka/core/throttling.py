"""The time for which a client is to send nothing after an answer, in ms, by API and version
(KIP-219).

Since KIP-219 a throttling broker answers at once, and the client waits for `throttle_time_ms`.
Before, the broker waited first, so `throttle_time_ms` was a wait in the past.
"""

from __future__ import annotations

from fairlead_kafka.wire import ApiKey, ApiMessage, PrivateApi

CLIENT_WAITS_FROM_VERSION: dict[ApiKey | PrivateApi, int] = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.LIST_GROUPS: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.DELETE_RECORDS: 1,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.ADD_PARTITIONS_TO_TXN: 1,
    ApiKey.ADD_OFFSETS_TO_TXN: 1,
    ApiKey.END_TXN: 1,
    ApiKey.TXN_OFFSET_COMMIT: 1,
    ApiKey.DESCRIBE_ACLS: 1,
    ApiKey.CREATE_ACLS: 1,
    ApiKey.DELETE_ACLS: 1,
    ApiKey.DESCRIBE_CONFIGS: 2,
    ApiKey.ALTER_CONFIGS: 1,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
    ApiKey.CREATE_DELEGATION_TOKEN: 1,
    ApiKey.RENEW_DELEGATION_TOKEN: 1,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 1,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 1,
    ApiKey.CREATE_PARTITIONS: 1,
    ApiKey.DELETE_GROUPS: 1,
}
"""API older than KIP-219 → first version after whose answer the client waits (each response's
`shouldClientThrottle` in Kafka). For other APIs the client always waits."""


def wait_ms(api_key: ApiKey | PrivateApi, version: int, response: ApiMessage) -> int:
    """Milliseconds for which nothing may be sent to the broker that gave this answer. 0: no wait is
    asked for, or it is over."""
    if version < CLIENT_WAITS_FROM_VERSION.get(api_key, 0):
        return 0
    throttle_time_ms: int = getattr(response, "throttle_time_ms", 0)
    return throttle_time_ms
