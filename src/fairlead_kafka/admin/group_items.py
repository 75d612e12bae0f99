"""Arguments and results of admin calls on groups (`org.apache.kafka.clients.admin`)."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.ids import Node, TopicPartition


@dataclass(slots=True, frozen=True)
class GroupListing:
    """A group by name. `state` as Kafka names it (Stable, Empty, ...), "" if the broker does not
    report it; `type` likewise (classic, ...)."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(slots=True, frozen=True)
class GroupMember:
    """A member of a group. `assignment` has the partitions that it reads; it is empty unless the
    group is stable and its members are consumers.

    Only KIP-848 groups have the member's `epoch`, its `target_assignment`, and whether it speaks
    that protocol (`upgraded`; False: classic, while the group changes over).
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    epoch: int | None = None
    target_assignment: tuple[TopicPartition, ...] | None = None
    upgraded: bool | None = None


@dataclass(slots=True, frozen=True)
class GroupDescription:
    """A group and its members. `protocol` is the assignor that it agreed on, "" unless it is
    stable, or the brokers' that a KIP-848 group has.

    `type`: "classic", or "consumer" (KIP-848). The latter has an epoch, which grows when members or
    topics change, and the epoch that its target assignment was made in.

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
    type: str = "classic"
    epoch: int | None = None
    target_assignment_epoch: int | None = None
