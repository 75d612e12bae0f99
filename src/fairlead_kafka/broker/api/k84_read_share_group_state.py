"""ReadShareGroupState (84): the leader of a partition reads the state of a share partition from its
share coordinator, which fences the leader before (KIP-932).

Version 0. A leader epoch before the newest is FENCED_LEADER_EPOCH; a state that was never begun
INVALID_REQUEST. Needs CLUSTER_ACTION on the cluster (CLUSTER_AUTHORIZATION_FAILED for every
partition).
"""

from __future__ import annotations

from functools import partial

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.common import PendingParts
from fairlead_kafka.broker.api.share_state_rows import StateRows
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareCoordinator, ShareKey, ShareState
from fairlead_kafka.broker.share_groups.share_coordinator import Stateful
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ReadShareGroupStateRequest, ReadShareGroupStateResponse

_Row = ReadShareGroupStateResponse.PartitionResult
_Result = ReadShareGroupStateResponse.ReadStateResult
_Batch = ReadShareGroupStateResponse.StateBatch


@serves(ApiKey.READ_SHARE_GROUP_STATE, versions=(0, 0))
def read_share_group_state(
    broker: Services, request: Request[ReadShareGroupStateRequest], session: Requester, reply: Reply
) -> None:
    """Read each state."""
    message = request.message
    answer = ReadShareGroupStateResponse(results=[])
    pending = PendingParts(lambda: reply(answer))
    rows = StateRows(session, pending)
    for topic in message.topics:
        result = _Result(topic_id=topic.topic_id, partitions=[])
        answer.results.append(result)
        for asked in topic.partitions:
            row = _row(asked.partition)
            result.partitions.append(row)
            key = ShareKey(message.group_id, topic.topic_id, asked.partition)
            rows.fill(row, partial(_ask, broker.share_coordinator, key, asked), partial(_fill, row))
    pending.done()


def _row(partition: int) -> _Row:
    return _Row(
        partition=partition,
        error_code=ErrorCode.NONE,
        error_message=None,
        state_epoch=0,
        start_offset=0,
        state_batches=[],
    )


def _fill(row: _Row, state: ShareState) -> None:
    row.state_epoch, row.start_offset = state.state_epoch, state.start_offset
    row.state_batches = [
        _Batch(
            first_offset=one.first,
            last_offset=one.last,
            delivery_state=one.state,
            delivery_count=one.deliveries,
        )
        for one in state.batches
    ]


def _ask(
    coordinator: ShareCoordinator,
    key: ShareKey,
    asked: ReadShareGroupStateRequest.PartitionData,
    done: Stateful,
) -> None:
    coordinator.read(key, asked.leader_epoch, done)
