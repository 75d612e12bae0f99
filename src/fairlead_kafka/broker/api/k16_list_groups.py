"""ListGroups (16): the groups this broker coordinates.

Versions 0-5; by state from 4 on (KIP-518), by type from 5 on (KIP-848): classic or consumer. Listed
are the groups that the session may DESCRIBE, or all if it may DESCRIBE the cluster.
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.rights import may_cluster
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ListGroupsRequest, ListGroupsResponse


@serves(ApiKey.LIST_GROUPS, versions=(0, 5))
def list_groups(
    broker: Services, request: Request[ListGroupsRequest], session: Requester, reply: Reply
) -> None:
    """Serve ListGroups: list the groups that the filters let through; upper and lower case are
    alike."""
    states = {state.lower() for state in request.message.states_filter}
    types = {kind.lower() for kind in request.message.types_filter}
    sees_all = may_cluster(session, AclOperation.DESCRIBE, quiet=True)
    groups, loading = broker.coordinator.groups()
    rows = [
        ListGroupsResponse.ListedGroup(
            group_id=group.group_id,
            protocol_type=group.listed_protocol_type,
            group_state=group.state_name,
            group_type=group.type_name,
        )
        for group in groups
        if (sees_all or session.may(AclOperation.DESCRIBE, AclResourceType.GROUP, group.group_id, quiet=True))
        and (not states or group.state_name.lower() in states)
        and (not types or group.type_name in types)
    ]
    error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
    reply(ListGroupsResponse(throttle_time_ms=0, error_code=error_code, groups=[] if loading else rows))
