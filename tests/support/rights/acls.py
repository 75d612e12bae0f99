"""Cases of ACLs themselves. Among them are none with an ANY or a MATCH, for which Kafka fails the
whole request with -1."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.base.acls import CLUSTER_NAME
from fairlead_kafka.wire import ApiKey, Message
from tests.support.rights import (
    SECRET,
    cases,
    said,
)

_ANY_ACL = {
    "resource_type_filter": 2,
    "resource_name_filter": SECRET,
    "pattern_type_filter": 3,
    "principal_filter": "User:bob",
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def _acl(**changes: Any) -> Message:
    fields = {
        "resource_type": 2,
        "resource_name": SECRET,
        "resource_pattern_type": 3,
        "principal": "User:bob",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return Message(**(fields | changes))


_CREATIONS = [
    _acl(),
    _acl(resource_name=""),
    _acl(resource_type=4),
    _acl(resource_type=4, resource_name=CLUSTER_NAME),
    _acl(operation=12),
    _acl(principal="bob"),
    _acl(principal="User:"),
    _acl(resource_type=99),
    _acl(resource_name=SECRET, resource_pattern_type=4, operation=2),
    _acl(),
]
_PATTERNS = [
    _acl(resource_name="secrets"),
    _acl(resource_name="*", operation=4),
    _acl(resource_name="se", resource_pattern_type=4, host="1.2.3.4", permission_type=2),
]

ACLS = (
    *cases(ApiKey.DESCRIBE_ACLS, 3, said(**_ANY_ACL), nothing=("ALL TOPIC *",)),
    *cases(
        ApiKey.CREATE_ACLS, 3, said(creations=_CREATIONS), nothing=("ALL TOPIC *",), may=("ALTER CLUSTER",)
    ),
    *cases(ApiKey.CREATE_ACLS, 2, said(creations=_PATTERNS), patterns=("ALTER CLUSTER",)),
    *cases(ApiKey.DESCRIBE_ACLS, 3, said(**_ANY_ACL), may=("ALTER CLUSTER",)),
    *cases(
        ApiKey.DESCRIBE_ACLS, 1, said(**_ANY_ACL | {"pattern_type_filter": 2}), fitting=("DESCRIBE CLUSTER",)
    ),
    *cases(
        ApiKey.DESCRIBE_ACLS, 2, said(**_ANY_ACL | {"pattern_type_filter": 1}), of_name=("DESCRIBE CLUSTER",)
    ),
    *cases(
        ApiKey.DESCRIBE_ACLS,
        3,
        said(**_ANY_ACL | {"pattern_type_filter": 1, "resource_name_filter": None, "permission_type": 2}),
        denying=("DESCRIBE CLUSTER",),
    ),
    *cases(ApiKey.DELETE_ACLS, 3, said(filters=[Message(**_ANY_ACL)]), nothing=("DESCRIBE CLUSTER",)),
    *cases(
        ApiKey.DELETE_ACLS,
        3,
        said(
            filters=[
                Message(**_ANY_ACL),
                Message(**_ANY_ACL | {"operation": 3}),
                Message(**_ANY_ACL | {"host_filter": "9.9.9.9"}),
                Message(
                    **_ANY_ACL
                    | {"resource_name_filter": None, "pattern_type_filter": 1, "resource_type_filter": 1}
                ),
            ]
        ),
        may=("ALTER CLUSTER",),
    ),
    *cases(
        ApiKey.DESCRIBE_ACLS,
        3,
        said(**_ANY_ACL | {"pattern_type_filter": 1, "resource_name_filter": None}),
        gone=("DESCRIBE CLUSTER",),
    ),
)
