"""DescribeAcls (29): the ACLs that fit a filter, by what they are on.

Versions 1-3. Needs DESCRIBE on the cluster. Refused: everything without an authorizer
(SECURITY_DISABLED), filters with something that this release does not know (INVALID_REQUEST; Kafka
finds none, or hangs up).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from fairlead_kafka.base.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller import check_filter, matches
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DeleteAclsRequest, DescribeAclsRequest, DescribeAclsResponse

Known = TypeVar("Known", bound=IntEnum)


@serves(ApiKey.DESCRIBE_ACLS, versions=(1, 3))
def describe_acls(
    broker: Services, request: Request[DescribeAclsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeAcls: answer with the ACLs that match the filter."""
    wanted = filter_of(request.message)
    error = acls_refusal(session, AclOperation.DESCRIBE) or check_filter(wanted)
    if error is not None:
        reply(
            DescribeAclsResponse(
                throttle_time_ms=0, error_code=error.code, error_message=reason(error), resources=[]
            )
        )
        return
    by_pattern: dict[tuple[AclResourceType, str, AclPatternType], list[AclBinding]] = {}
    for acl in broker.controller.image.acls:
        if matches(wanted, acl):
            by_pattern.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(acl)
    resources = [
        DescribeAclsResponse.DescribeAclsResource(
            resource_type=int(kind),
            resource_name=name,
            pattern_type=int(pattern_type),
            acls=[_row(acl) for acl in acls],
        )
        for (kind, name, pattern_type), acls in by_pattern.items()
    ]
    reply(
        DescribeAclsResponse(
            throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, resources=resources
        )
    )


def _row(acl: AclBinding) -> DescribeAclsResponse.AclDescription:
    return DescribeAclsResponse.AclDescription(
        principal=acl.principal,
        host=acl.host,
        operation=int(acl.operation),
        permission_type=int(acl.permission),
    )


def acls_refusal(session: Requester, operation: AclOperation) -> BrokerError | None:
    """Why a request for ACLs, which needs `operation` on the cluster, is refused as a whole; None:
    it is not."""
    error = cluster_refusal(session, operation)
    if error is None and session.authorizer is None:
        error = BrokerError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    return error


def filter_of(asked: DescribeAclsRequest | DeleteAclsRequest.DeleteAclsFilter) -> AclFilter:
    """The filter in a DescribeAcls or DeleteAcls request."""
    return AclFilter(
        known(AclResourceType, asked.resource_type_filter),
        asked.resource_name_filter,
        known(AclPatternType, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        known(AclOperation, asked.operation),
        known(AclPermission, asked.permission_type),
    )


def known(kind: type[Known], number: int) -> Known:
    """The value of `kind` with this number; UNKNOWN (0) if there is none."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)
