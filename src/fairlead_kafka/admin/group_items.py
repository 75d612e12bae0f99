"""Arguments and results of admin calls on groups (`org.apache.kafka.clients.admin`)."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.ids import Node, TopicPartition


@dataclass(slots=True, frozen=True)
class GroupListing:
    """A group by name. `state` as Kafka names it (Stable, Empty, ...), "" if the broker does not
    tell; `type` likewise (classic, ...)."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(slots=True, frozen=True)
class GroupMember:
    """A member; `assignment` is what it reads, empty unless the group is stable and its members are
    consumers."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]


@dataclass(slots=True, frozen=True)
class GroupDescription:
    """A group and its members. `protocol` is the assignor that it agreed on, "" unless it is
    stable.

    `authorized_operations`: what the user of this client may do with it; None if that was not asked
    for.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: Node | None
    members: tuple[GroupMember, ...]
    authorized_operations: frozenset[AclOperation] | None = None
