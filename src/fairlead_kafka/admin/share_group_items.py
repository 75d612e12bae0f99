"""Results of admin calls on share groups (`org.apache.kafka.clients.admin`, KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.ids import Node, TopicPartition


@dataclass(slots=True, frozen=True)
class ShareGroupMember:
    """A member of a share group. `assignment`: the partitions that it reads; others may read them
    too. `topics`: those it subscribes to."""

    member_id: str
    client_id: str
    host: str
    rack: str | None
    epoch: int
    topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]


@dataclass(slots=True, frozen=True)
class ShareGroupDescription:
    """A share group and its members; `state` is Stable, Empty or Dead.

    Its epoch grows when members or topics change; `target_assignment_epoch` is the one that its
    assignment was made in, by the brokers' `assignor`. `authorized_operations`: what the user of
    this client may do with it; None if that was not asked for.
    """

    group_id: str
    state: str
    coordinator: Node | None
    members: tuple[ShareGroupMember, ...]
    assignor: str
    epoch: int
    target_assignment_epoch: int
    authorized_operations: frozenset[AclOperation] | None = None


class SharePartitionOffset(NamedTuple):
    """How far a share group is with a partition; Kafka's `SharePartitionOffsetInfo`.

    `start_offset`: the first that is not done with. `lag`: how many records from there on are not
    done with; None: not known. `leader_epoch`: that of the start offset, -1: unknown.
    """

    start_offset: int
    lag: int | None
    leader_epoch: int
