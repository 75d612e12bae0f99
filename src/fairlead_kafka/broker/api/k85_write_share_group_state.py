"""WriteShareGroupState (85): the leader of a partition has the share coordinator keep what is new
of a share partition (KIP-932).

Versions 0-1; how many records are complete from 1 on (KIP-1226). Answered when it is committed. Of
before another leader, FENCED_LEADER_EPOCH; of before the group's offsets were altered,
FENCED_STATE_EPOCH; a state that was never begun, or that records cannot have, is INVALID_REQUEST.
Needs CLUSTER_ACTION on the cluster (CLUSTER_AUTHORIZATION_FAILED for every partition).
"""

from __future__ import annotations

from fairlead_kafka.broker.api.share_state_rows import StateApi
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareCoordinator, ShareKey, StateBatch, StateUpdate
from fairlead_kafka.broker.share_groups.share_coordinator import Stateful
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse


@serves(ApiKey.WRITE_SHARE_GROUP_STATE, versions=(0, 1))
def write_share_group_state(
    broker: Services, request: Request[WriteShareGroupStateRequest], session: Requester, reply: Reply
) -> None:
    """Serve WriteShareGroupState: write the changes of the state of each share partition."""
    _API.serve(broker, request.message, session, reply)


def _update(asked: WriteShareGroupStateRequest.PartitionData) -> StateUpdate:
    batches = tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in asked.state_batches
    )
    return StateUpdate(0, asked.leader_epoch, asked.start_offset, asked.delivery_complete_count, batches)


def _ask(
    coordinator: ShareCoordinator,
    key: ShareKey,
    asked: WriteShareGroupStateRequest.PartitionData,
    done: Stateful,
) -> None:
    coordinator.write(key, asked.state_epoch, _update(asked), lambda error: done(error, None))


_API = StateApi(
    WriteShareGroupStateResponse,
    WriteShareGroupStateResponse.WriteStateResult,
    WriteShareGroupStateResponse.PartitionResult,
    _ask,
)
