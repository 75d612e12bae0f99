"""ReadShareGroupState (84): the leader of a partition reads the state of a share partition from its
share coordinator, which fences the leader before (KIP-932).

Version 0. A leader epoch before the newest is FENCED_LEADER_EPOCH; a state that was never begun
INVALID_REQUEST. Needs CLUSTER_ACTION on the cluster (CLUSTER_AUTHORIZATION_FAILED for every
partition).
"""

from __future__ import annotations

from functools import partial

from fairlead_kafka.broker.api.share_state_rows import StateApi
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareCoordinator, ShareKey, ShareState
from fairlead_kafka.broker.share_groups.share_coordinator import Stateful
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ReadShareGroupStateRequest, ReadShareGroupStateResponse

_Row = ReadShareGroupStateResponse.PartitionResult
_Batch = ReadShareGroupStateResponse.StateBatch


@serves(ApiKey.READ_SHARE_GROUP_STATE, versions=(0, 0))
def read_share_group_state(
    broker: Services, request: Request[ReadShareGroupStateRequest], session: Requester, reply: Reply
) -> None:
    """Serve ReadShareGroupState: answer with the state of each share partition that is named."""
    _API.serve(broker, request.message, session, reply)


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


_API = StateApi(
    ReadShareGroupStateResponse,
    ReadShareGroupStateResponse.ReadStateResult,
    partial(_Row, state_epoch=0, start_offset=0, state_batches=[]),
    _ask,
    _fill,
)
