"""The secured transcript: rights are given, every user tries everything, and ACLs, passwords and
log-ins are tried themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fairlead_kafka.base.acls import AclBinding, AclOperation, AclPatternType, AclPermission, AclResourceType
from fairlead_kafka.lab.transcript import acl_steps, login_steps
from fairlead_kafka.lab.transcript.cluster_steps import appears, create, topic
from fairlead_kafka.lab.transcript.group_steps import find
from fairlead_kafka.lab.transcript.holders import ADMIN, HOLDERS, PUBLIC, SECRET, Holder
from fairlead_kafka.lab.transcript.offset_steps import commit
from fairlead_kafka.lab.transcript.secured_cases import Case
from fairlead_kafka.lab.transcript.secured_cluster import CLUSTER, CONFIGS
from fairlead_kafka.lab.transcript.secured_groups import ENDED, GROUPS, TRANSACTIONS, kept_name
from fairlead_kafka.lab.transcript.secured_shares import SHARES
from fairlead_kafka.lab.transcript.secured_topics import DELETED, RECORDS, TOPICS
from fairlead_kafka.lab.transcript.steps import JUST_CHANGED, Step
from fairlead_kafka.lab.transcript.transaction_steps import init

CASES: tuple[Case, ...] = (
    *CLUSTER,
    *TOPICS,
    *RECORDS,
    *CONFIGS,
    *GROUPS,
    *SHARES,
    *TRANSACTIONS,
    *ENDED,
    *DELETED,
)
"""Rows of the matrix; its columns are `Case.users`."""
ASKED: dict[str, Holder] = {user: HOLDERS[user] for case in CASES for user in case.users()}
"""Users that are asked, by name."""
_FOR_ALL = AclBinding(
    AclResourceType.TOPIC,
    PUBLIC,
    AclPatternType.LITERAL,
    "User:*",
    "*",
    AclOperation.DESCRIBE,
    AclPermission.ALLOW,
)


def _as_admin(step: Step) -> Step:
    return replace(step, on=ADMIN, name=f"{step.name}, by {ADMIN}")


def _given() -> Iterator[Step]:
    """Steps that give all users their rights; the broker knows them when it lists them."""
    acls = [_FOR_ALL, *(acl for holder in ASKED.values() for acl in holder.acls())]
    rows = [
        acl_steps.acl(
            one.resource_name,
            one.principal,
            one.resource_type,
            one.pattern_type,
            one.operation,
            one.permission,
            one.host,
        )
        for one in acls
    ]
    yield acl_steps.make("everybody's rights", *rows)
    yield acl_steps.describe("everybody's rights are there", principal=None, rows=len(set(acls)))


def _made() -> Iterator[Step]:
    """Steps that create every user's own topics, groups and ids."""
    names = [SECRET, PUBLIC, *(holder.own() for holder in ASKED.values())]
    yield create("everybody's topics", *(topic(name, 1, retention_ms="-1") for name in names))
    yield appears(*names)
    yield find("of a group", SECRET, versions=(4,))
    yield find("of a transactional id", SECRET, kind=1, versions=(4,))
    yield commit("the secret group's offsets", SECRET, to=SECRET, again_on=JUST_CHANGED)
    yield init("the secret transactional id", SECRET)
    for holder in ASKED.values():
        yield commit(f"offsets of {holder.user}", holder.own(), to=holder.own(), again_on=JUST_CHANGED)
        yield init(f"the transactional id of {holder.user}", holder.own(), kept_name(holder))


STEPS: tuple[Step, ...] = (
    *login_steps.STEPS,
    *map(_as_admin, acl_steps.ACLS),
    *map(_as_admin, acl_steps.PASSWORDS),
    *map(_as_admin, _given()),
    *map(_as_admin, _made()),
    *(step for case in CASES for step in case.steps()),
)
