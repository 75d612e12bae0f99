"""Helpers to ask what the principal of a session may do; `broker.authorizer` decides it.

Without an authorizer everything is allowed, and each function only tests one attribute.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from fairlead_kafka.base.acls import CLUSTER_NAME, RESOURCE_OPERATIONS, AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.requester import Requester
from fairlead_kafka.broker.services import Services

NO_OPERATIONS = -(2**31)
"""Value of the authorized operations where a request does not ask for them."""
REFUSED_WITH: dict[AclResourceType, int] = {
    AclResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""Resource type → error code for a missing right on it (Kafka's `AclEntry.authorizationError`)."""


_ALL_OPERATIONS = {
    kind: sum(1 << operation for operation in there) for kind, there in RESOURCE_OPERATIONS.items()
}


class _Everything:
    """A container that holds every name."""

    def __contains__(self, _name: object) -> bool:
        return True


_EVERYTHING = _Everything()


def may_cluster(session: Requester, operation: AclOperation, quiet: bool = False) -> bool:
    """Whether the session may do this to the cluster as a whole."""
    return session.may(operation, AclResourceType.CLUSTER, CLUSTER_NAME, quiet)


def may_somewhere(session: Requester, operation: AclOperation, kind: AclResourceType) -> bool:
    """Whether there is any resource of the type on which the session may do this."""
    authorizer = session.authorizer
    return authorizer is None or authorizer.allows_somewhere(session.principal, session.host, operation, kind)


def permitted(
    session: Requester,
    operation: AclOperation,
    kind: AclResourceType,
    names: Iterable[str],
    quiet: bool = False,
) -> Container[str | None]:
    """A container of the names of resources of a type on which the session may do `operation`;
    `quiet`: refusals are not logged."""
    if session.authorizer is None:
        return _EVERYTHING
    return {name for name in set(names) if session.may(operation, kind, name, quiet)}


def operations(session: Requester, kind: AclResourceType, name: str) -> int:
    """All operations that the session may do on a resource, as bits (Kafka's
    `AuthHelper.authorizedOperations`)."""
    if session.authorizer is None:
        return _ALL_OPERATIONS[kind]
    return sum(
        1 << operation
        for operation in RESOURCE_OPERATIONS[kind]
        if session.may(operation, kind, name, quiet=True)
    )


def cluster_operations(session: Requester) -> int:
    """All operations that the session may do on the cluster, as bits; 0 if it may not describe
    it."""
    return (
        operations(session, AclResourceType.CLUSTER, CLUSTER_NAME)
        if may_cluster(session, AclOperation.DESCRIBE)
        else 0
    )


def refusal(session: Requester, operation: AclOperation, kind: AclResourceType, name: str) -> BrokerError:
    """The error for a session that may not do `operation` on a resource, with the code for the
    resource's type."""
    where = (
        "the cluster"
        if kind is AclResourceType.CLUSTER
        else f"the {kind.name.lower().replace('_', ' ')} {name!r}"
    )
    text = f"{session.principal} has no right to {operation.name} on {where}"
    return BrokerError(REFUSED_WITH[kind], text)


def demand(session: Requester, operation: AclOperation, kind: AclResourceType, name: str) -> None:
    """Raise the BrokerError of `refusal` unless the session's user has the right to the operation
    on the resource."""
    if not session.may(operation, kind, name):
        raise refusal(session, operation, kind, name)


def cluster_refusal(session: Requester, operation: AclOperation) -> BrokerError | None:
    """The error for a session without a right on the cluster; None: it has the right."""
    if may_cluster(session, operation):
        return None
    return refusal(session, operation, AclResourceType.CLUSTER, CLUSTER_NAME)


def speaks_for_a_broker(broker: Services, session: Requester) -> bool:
    """True if a session may send the private requests of brokers: it came to the listener by which
    brokers reach each other, and has the right CLUSTER_ACTION. Any other session's connection is
    closed."""
    here = session.listener == broker.links.listener.name
    refused = cluster_refusal(session, AclOperation.CLUSTER_ACTION) if here else "it came to another listener"
    if refused is not None:
        session.close(f"it asked for what brokers ask each other: {refused}")
    return refused is None
