"""DeleteShareGroupState (86): the group coordinator has the share coordinator forget the state of
share partitions (KIP-932).

Version 0. One that is not there is no error. Our own group coordinators ask with a state epoch
(`private_delete_share_state`). Needs CLUSTER_ACTION on the cluster (CLUSTER_AUTHORIZATION_FAILED
for every partition).
"""

from __future__ import annotations

from fairlead_kafka.broker.api.share_state_rows import StateApi
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareCoordinator, ShareKey
from fairlead_kafka.broker.share_groups.share_coordinator import ANY_EPOCH, Stateful
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse


@serves(ApiKey.DELETE_SHARE_GROUP_STATE, versions=(0, 0))
def delete_share_group_state(
    broker: Services, request: Request[DeleteShareGroupStateRequest], session: Requester, reply: Reply
) -> None:
    """Serve DeleteShareGroupState: forget the state of each share partition that is named."""
    _API.serve(broker, request.message, session, reply)


def _ask(
    coordinator: ShareCoordinator,
    key: ShareKey,
    _asked: DeleteShareGroupStateRequest.PartitionData,
    done: Stateful,
) -> None:
    coordinator.delete(key, ANY_EPOCH, lambda error: done(error, None))


_API = StateApi(
    DeleteShareGroupStateResponse,
    DeleteShareGroupStateResponse.DeleteStateResult,
    DeleteShareGroupStateResponse.PartitionResult,
    _ask,
)
