"""FindCoordinator (10): which broker looks after a group, a transactional id or a share partition.

Versions 0-6, several keys at once from 4 on; share partitions (KIP-932) from 6 on, a key being
group:topic id:partition (INVALID_REQUEST if it is not). The topics of committed offsets, of
transactions and of share partitions are created on first use. If the broker at home for a key is
down, COORDINATOR_NOT_AVAILABLE, which clients retry. Needs DESCRIBE on each group or transactional
id (GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED), for share partitions
CLUSTER_ACTION on the cluster (CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

import re

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER, Node
from fairlead_kafka.broker.api.common import have_internal_topic, reason
from fairlead_kafka.broker.api.rights import cluster_refusal, permitted, refusal
from fairlead_kafka.broker.controller import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from fairlead_kafka.broker.coordinator import home_partition
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse

_SEVERAL_FROM_VERSION = 4
_TOPICS = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC, 2: SHARE_STATE_TOPIC}
"""Key type → the topic whose partitions groups, transactional ids, or share partitions, are at home
in."""
_KINDS = {0: AclResourceType.GROUP, 1: AclResourceType.TRANSACTIONAL_ID}
"""Key type → what a right is needed on."""
_SHARE = 2
_SHARE_FROM_VERSION = 6
_SHARE_KEY = re.compile(r"(.*):([A-Za-z0-9_-]{22}):(\d{1,10})", re.DOTALL)
_NOBODY = Node(NO_LEADER, "", -1)


@serves(ApiKey.FIND_COORDINATOR, versions=(0, 6))
def find_coordinator(
    broker: Services, request: Request[FindCoordinatorRequest], session: Requester, reply: Reply
) -> None:
    """Serve FindCoordinator: answer with the broker that coordinates each key."""
    message = request.message
    several = request.version >= _SEVERAL_FROM_VERSION
    keys = list(message.coordinator_keys) if several else [message.key]
    kind = _KINDS.get(message.key_type)
    seen = keys if kind is None else permitted(session, AclOperation.DESCRIBE, kind, keys)
    whole = _whole_refusal(request.version, message.key_type, session)

    def answer(error: BrokerError | None) -> None:
        hidden = {
            key: refusal(session, AclOperation.DESCRIBE, kind, key)
            for key in keys
            if kind is not None and key not in seen
        }
        if whole is not None:
            hidden = dict.fromkeys(keys, whole)
        found = [
            _row(broker, session, message.key_type, key, whole or hidden.get(key), error) for key in keys
        ]
        if several:
            reply(FindCoordinatorResponse(throttle_time_ms=0, coordinators=found))
            return
        (row,) = found
        reply(
            FindCoordinatorResponse(
                throttle_time_ms=0,
                error_code=row.error_code,
                error_message=row.error_message,
                node_id=row.node_id,
                host=row.host,
                port=row.port,
            )
        )

    if whole is None and message.key_type in _TOPICS and any(key in seen for key in keys):
        have_internal_topic(broker, _TOPICS[message.key_type], lambda _topic, error: answer(error))
    else:
        answer(None)


def _whole_refusal(version: int, key_type: int, session: Requester) -> BrokerError | None:
    """The error of every key of a request for share partitions: one in a version without them, or
    of a session without the right. None: no error."""
    if key_type != _SHARE:
        return None
    if version < _SHARE_FROM_VERSION:
        return BrokerError(ErrorCode.INVALID_REQUEST, f"there is no key type {key_type} in version {version}")
    return cluster_refusal(session, AclOperation.CLUSTER_ACTION)


def _row(
    broker: Services,
    session: Requester,
    key_type: int,
    key: str,
    hidden: BrokerError | None,
    missing: BrokerError | None,
) -> FindCoordinatorResponse.Coordinator:
    try:
        if hidden is not None:
            raise hidden
        node, error_code, error_message = _find(broker, session, key_type, key, missing), ErrorCode.NONE, None
    except BrokerError as error:
        node, error_code, error_message = _NOBODY, error.code, reason(error)
    return FindCoordinatorResponse.Coordinator(
        key=key,
        node_id=node.node_id,
        host=node.host,
        port=node.port,
        error_code=error_code,
        error_message=error_message,
    )


def _find(broker: Services, session: Requester, key_type: int, key: str, missing: BrokerError | None) -> Node:
    if key_type not in _TOPICS:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"there is no key type {key_type}")
    if key_type == _SHARE and _SHARE_KEY.fullmatch(key) is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{key!r} is not group:topic id:partition")
    if missing is not None:
        raise BrokerError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"the coordinator's topic cannot be created: {reason(missing)}",
        )
    topic = broker.controller.topic(_TOPICS[key_type])
    leader = topic.partitions[home_partition(key, len(topic.partitions))].leader
    if not broker.controller.image.is_alive(leader):
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the coordinator of {key!r} is down")
    return broker.controller.image.brokers[leader].endpoint(session.listener)
