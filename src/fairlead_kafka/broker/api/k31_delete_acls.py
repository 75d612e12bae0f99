"""DeleteAcls (31): the ACLs that fit filters go; the answer says for each filter which did.

Versions 1-3. Every broker serves it and has the controller decide. Needs ALTER on the cluster. An
ACL that fits several filters is answered with each of them. Refused: everything without an
authorizer (SECURITY_DISABLED), filters with something that this release does not know
(INVALID_REQUEST, each for itself).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclBinding, AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import one_each, reason
from fairlead_kafka.broker.api.k29_describe_acls import acls_refusal, filter_of
from fairlead_kafka.broker.controller import DeleteAcls
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DeleteAclsRequest, DeleteAclsResponse

_Result = DeleteAclsResponse.DeleteAclsFilterResult
_Deleted = DeleteAclsResponse.DeleteAclsMatchingAcl


@serves(ApiKey.DELETE_ACLS, versions=(1, 3))
def delete_acls(
    broker: Services, request: Request[DeleteAclsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DeleteAcls: delete the ACLs that match each filter."""
    filters = [filter_of(asked) for asked in request.message.filters]

    def decided(results: list[list[AclBinding] | BrokerError] | None, error: BrokerError | None) -> None:
        reply(
            DeleteAclsResponse(
                throttle_time_ms=0,
                filter_results=[_result(one) for one in one_each(results, error, len(filters))],
            )
        )

    refused = acls_refusal(session, AclOperation.ALTER)
    if refused is not None:
        decided(None, refused)
    else:
        broker.controller.decide(DeleteAcls(filters), decided)


def _result(outcome: list[AclBinding] | BrokerError) -> _Result:
    if isinstance(outcome, BrokerError):
        return _Result(error_code=outcome.code, error_message=reason(outcome), matching_acls=[])
    return _Result(
        error_code=ErrorCode.NONE, error_message=None, matching_acls=[_deleted(acl) for acl in outcome]
    )


def _deleted(acl: AclBinding) -> _Deleted:
    return _Deleted(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=int(acl.resource_type),
        resource_name=acl.resource_name,
        pattern_type=int(acl.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=int(acl.operation),
        permission_type=int(acl.permission),
    )
