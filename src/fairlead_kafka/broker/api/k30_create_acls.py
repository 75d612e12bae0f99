"""CreateAcls (30): have ACLs; one that is there already stays as it is.

Versions 1-3. Every broker serves it and has the controller decide. Needs ALTER on the cluster.
Refused: everything without an authorizer (SECURITY_DISABLED); each ACL for itself
(INVALID_REQUEST): types, operations and permissions that are for filters, or not known; a name that
is empty, or on a resource of type CLUSTER not kafka-cluster; a principal without a colon.
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclBinding, AclOperation, AclPatternType, AclPermission, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import one_each, reason
from fairlead_kafka.broker.api.k29_describe_acls import acls_refusal, known
from fairlead_kafka.broker.controller import CreateAcls
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import CreateAclsRequest, CreateAclsResponse

_Row = CreateAclsResponse.AclCreationResult


@serves(ApiKey.CREATE_ACLS, versions=(1, 3))
def create_acls(
    broker: Services, request: Request[CreateAclsRequest], session: Requester, reply: Reply
) -> None:
    """Serve CreateAcls: create each ACL, or answer why not; one that fails does not stop the
    others."""
    bindings = [_binding(asked) for asked in request.message.creations]

    def decided(errors: list[BrokerError | None] | None, error: BrokerError | None) -> None:
        reply(
            CreateAclsResponse(
                throttle_time_ms=0, results=[_row(one) for one in one_each(errors, error, len(bindings))]
            )
        )

    refused = acls_refusal(session, AclOperation.ALTER)
    if refused is not None:
        decided(None, refused)
    else:
        broker.controller.decide(CreateAcls(bindings), decided)


def _binding(asked: CreateAclsRequest.AclCreation) -> AclBinding:
    return AclBinding(
        known(AclResourceType, asked.resource_type),
        asked.resource_name,
        known(AclPatternType, asked.resource_pattern_type),
        asked.principal,
        asked.host,
        known(AclOperation, asked.operation),
        known(AclPermission, asked.permission_type),
    )


def _row(error: BrokerError | None) -> _Row:
    if error is None:
        return _Row(error_code=ErrorCode.NONE, error_message=None)
    return _Row(error_code=error.code, error_message=reason(error))
