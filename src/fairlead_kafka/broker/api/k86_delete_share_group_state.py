"""DeleteShareGroupState (86): the group coordinator has the share coordinator forget the state of share
partitions (KIP-932).

Version 0. One that is not there is no error. Needs CLUSTER_ACTION on the cluster
(CLUSTER_AUTHORIZATION_FAILED for every partition).
"""

from __future__ import annotations

from functools import partial

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.common import PendingParts
from fairlead_kafka.broker.api.share_state_rows import StateRows
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareCoordinator, ShareKey
from fairlead_kafka.broker.share_groups.share_coordinator import Stateful
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse

_Row = DeleteShareGroupStateResponse.PartitionResult
_Result = DeleteShareGroupStateResponse.DeleteStateResult


@serves(ApiKey.DELETE_SHARE_GROUP_STATE, versions=(0, 0))
def delete_share_group_state(
    broker: Services, request: Request[DeleteShareGroupStateRequest], session: Requester, reply: Reply
) -> None:
    """Forget each state."""
    message = request.message
    answer = DeleteShareGroupStateResponse(results=[])
    pending = PendingParts(lambda: reply(answer))
    rows = StateRows(session, pending)
    for topic in message.topics:
        result = _Result(topic_id=topic.topic_id, partitions=[])
        answer.results.append(result)
        for asked in topic.partitions:
            row = _Row(partition=asked.partition, error_code=ErrorCode.NONE, error_message=None)
            result.partitions.append(row)
            key = ShareKey(message.group_id, topic.topic_id, asked.partition)
            rows.fill(row, partial(_ask, broker.share_coordinator, key))
    pending.done()


def _ask(coordinator: ShareCoordinator, key: ShareKey, done: Stateful) -> None:
    coordinator.delete(key, lambda error: done(error, None))
