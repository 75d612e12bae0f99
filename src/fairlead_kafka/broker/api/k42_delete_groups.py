"""DeleteGroups (42): groups without members, and their offsets, go.

Versions 0-2. Answered when that is written. Needs DELETE on each group (GROUP_AUTHORIZATION_FAILED
for it). Refused: groups with members (NON_EMPTY_GROUP).
"""

from __future__ import annotations

from functools import partial

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.rights import permitted
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DeleteGroupsRequest, DeleteGroupsResponse


@serves(ApiKey.DELETE_GROUPS, versions=(0, 2))
def delete_groups(
    broker: Services, request: Request[DeleteGroupsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DeleteGroups: delete each group, and answer when the last is gone."""
    group_ids = list(dict.fromkeys(request.message.groups_names))
    deletable = permitted(session, AclOperation.DELETE, AclResourceType.GROUP, group_ids)
    errors: dict[str, int] = {}

    def deleted(group_id: str, error_code: int) -> None:
        errors[group_id] = error_code
        if len(errors) == len(group_ids):
            rows = [
                DeleteGroupsResponse.DeletableGroupResult(group_id=one, error_code=errors[one])
                for one in group_ids
            ]
            reply(DeleteGroupsResponse(throttle_time_ms=0, results=rows))

    if not group_ids:
        reply(DeleteGroupsResponse(throttle_time_ms=0, results=[]))
    for group_id in group_ids:
        if group_id not in deletable:
            deleted(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
            continue
        try:
            broker.coordinator.delete_group(group_id, partial(deleted, group_id))
        except BrokerError as error:
            deleted(group_id, error.code)
