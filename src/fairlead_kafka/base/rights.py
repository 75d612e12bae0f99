"""Errors for missing rights: their messages name the right to ask an administrator for."""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import BrokerError

_WHERE = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "on the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "on the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "on the cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "on the transactional id",
}

_NO_AUTHORIZER = (
    "this cluster has no authorizer, so everyone may do everything: set authorizer.class.name in the configs "
    "of its brokers and "
    "controllers (Apache Kafka's own is org.apache.kafka.metadata.authorizer.StandardAuthorizer)"
)


def broker_error(code: int, what: str, operation: str) -> BrokerError:
    """The BrokerError for a broker's error code, about `what`.

    For a missing right it names the right: `operation`, as Kafka's ACLs name it ("Write"). For
    SECURITY_DISABLED it says what turns authorization on.
    """
    if code == ErrorCode.SECURITY_DISABLED:
        return BrokerError(code, f"{what}; {_NO_AUTHORIZER}")
    if code not in _WHERE:
        return BrokerError(code, what)
    meaning = policy(code).meaning
    said = what if meaning in what else f"{what}: {meaning}"
    return BrokerError(code, f"{said}; the user of this client needs the right to {operation} {_WHERE[code]}")
