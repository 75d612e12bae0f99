"""InitializeShareGroupState (83): the group coordinator has the share coordinator begin the state
of share partitions (KIP-932).

Version 0. Start offset -1: as the group's share.auto.offset.reset has it, once somebody fetches. A
state epoch before that of a state that is there is FENCED_STATE_EPOCH. Needs CLUSTER_ACTION on the
cluster (CLUSTER_AUTHORIZATION_FAILED for every partition).
"""

from __future__ import annotations

from fairlead_kafka.broker.api.share_state_rows import StateApi
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareCoordinator, ShareKey
from fairlead_kafka.broker.share_groups.share_coordinator import Stateful
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import InitializeShareGroupStateRequest, InitializeShareGroupStateResponse


@serves(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=(0, 0))
def initialize_share_group_state(
    broker: Services, request: Request[InitializeShareGroupStateRequest], session: Requester, reply: Reply
) -> None:
    """Serve InitializeShareGroupState: begin the state of each share partition that is named."""
    _API.serve(broker, request.message, session, reply)


def _ask(
    coordinator: ShareCoordinator,
    key: ShareKey,
    asked: InitializeShareGroupStateRequest.PartitionData,
    done: Stateful,
) -> None:
    coordinator.initialize(key, asked.state_epoch, asked.start_offset, lambda error: done(error, None))


_API = StateApi(
    InitializeShareGroupStateResponse,
    InitializeShareGroupStateResponse.InitializeStateResult,
    InitializeShareGroupStateResponse.PartitionResult,
    _ask,
)
