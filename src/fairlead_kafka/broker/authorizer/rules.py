"""Rules of ACLs as pure functions: the operations that a single ACL covers, and how hosts are
written."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from fairlead_kafka.base.acls import WILDCARD, AclOperation, AclPermission

EVERYONE = "User:*"
"""The principal of an ACL that is for all."""
_ALLOWED_WITH: dict[AclOperation, frozenset[AclOperation]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""Operation → operations that imply it when an ACL allows them (Kafka's
`StandardAuthorizerData.IMPLIES_DESCRIBE`)."""


def covers(operation: AclOperation, permission: AclPermission, asked: AclOperation) -> bool:
    """Whether an ACL about `operation` covers the operation `asked`. A denial implies no other."""
    if operation in (asked, AclOperation.ALL):
        return True
    return permission is AclPermission.ALLOW and operation in _ALLOWED_WITH.get(asked, ())


def host_of(peer: str) -> str:
    """The host in `address:port`, as `plain_host` spells it."""
    return plain_host(peer.rpartition(":")[0] or peer)


def plain_host(host: str) -> str:
    """An address in the one spelling in which it is compared; a text that is no address stays as it
    is. IPv6 is short ("::1" for Java's "0:0:0:0:0:0:0:1") and without a zone; IPv4 within it is
    IPv4, as in Java's `InetAddress`."""
    if host == WILDCARD:
        return host
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return host
    within = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address if within is None else within)
