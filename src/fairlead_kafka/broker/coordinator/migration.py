"""Migration of a classic group to the consumer protocol, and back, while it has members (KIP-848).

Pure functions from one kind of group to the other; `consumer_side` decides when.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.broker.consumer_groups import (
    FIRST_EPOCH,
    About,
    ClassicAbout,
    ConsumerGroup,
    ConsumerMember,
    Current,
    View,
    read_assignment,
    read_subscription,
    written_assignment,
)
from fairlead_kafka.broker.coordinator.group import CONSUMER_PROTOCOL, Group, Member
from fairlead_kafka.broker.coordinator.states import GroupState

UPGRADES = ("upgrade", "bidirectional")
"""Values of `group.consumer.migration.policy` with which a classic group becomes one of the
consumer protocol when a member of that protocol joins it."""
DOWNGRADES = ("downgrade", "bidirectional")
"""Values with which a group becomes classic when its last member of the consumer protocol goes."""


def check_upgrade(group: Group, policy: str, max_size: int) -> None:
    """Raise BrokerError GROUP_ID_NOT_FOUND if the classic group may not be turned into a consumer
    group."""
    why = None
    if policy.lower() not in UPGRADES:
        why = "online upgrade is disabled."
    elif group.protocol_type != CONSUMER_PROTOCOL:
        why = "the group does not use the consumer embedded protocol."
    elif len(group.members) > max_size:
        why = "the group size exceeds the consumer group maximum size."
    if why is not None:
        raise _refused(group, why)


def upgraded(group: Group, view: View) -> ConsumerGroup:
    """The classic group as a consumer group: its epochs are the generation, and each member has the
    partitions that it was assigned. BrokerError GROUP_ID_NOT_FOUND if a member's metadata cannot be
    read. A group that waits for its first rebalance is at generation 0; but no member gets epoch 0,
    which stands for a join."""
    epoch = max(group.generation, FIRST_EPOCH)
    new = ConsumerGroup(group.group_id, epoch=epoch, target_epoch=epoch)
    try:
        for member in group.members.values():
            _upgrade(new, group, member, view)
    except DecodeError:
        raise _refused(group, "the embedded consumer protocol is malformed.") from None
    if group.state is GroupState.STABLE:  # else what members have is nobody's plan: others are due
        names = {name for one in new.members.values() for name in one.about.topics}
        new.metadata_hash = view.metadata_hash(names)
    return new


def _refused(group: Group, why: str) -> BrokerError:
    return BrokerError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {why}",
    )


def _upgrade(new: ConsumerGroup, group: Group, member: Member, view: View) -> None:
    assigned = read_assignment(member.assignment)
    if assigned.user_data:
        raise _refused(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
            "default assignor before re-attempting the upgrade.",
        )
    metadata = member.metadata(group.protocol_name or "") or member.protocols[0][1]
    subscribed = read_subscription(metadata)
    target: dict[UUID, frozenset[int]] = {}
    for name, numbers in assigned.partitions.items():
        topic = view.topics.find(name)
        if topic is not None and numbers:
            target[topic.topic_id] = numbers
    about = About(
        instance_id=member.instance_id,
        rack_id=subscribed.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=subscribed.topics,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicAbout(member.session_timeout_ms, tuple(member.protocols)),
    )
    since = {topic: dict.fromkeys(numbers, new.epoch) for topic, numbers in target.items()}
    current = Current(new.epoch, new.epoch, assigned=since)
    new.targets[member.member_id] = target
    new.put(ConsumerMember(member.member_id, about, current))


def may_downgrade(group: ConsumerGroup, gone: Sequence[ConsumerMember], policy: str, max_size: int) -> bool:
    """True if the group is to become a classic one without the members `gone`: there are others,
    and all speak the classic protocol."""
    ids = {member.member_id for member in gone}
    rest = [member for member in group.members.values() if member.member_id not in ids]
    return (
        bool(rest)
        and policy.lower() in DOWNGRADES
        and not any(member.classic for member in gone)
        and all(member.classic for member in rest)
        and len(rest) <= max_size
    )


def downgraded(group: ConsumerGroup, gone: Sequence[ConsumerMember], view: View) -> Group:
    """The consumer group as a classic one, without `gone`: its generation is the group's epoch,
    each member is assigned its target."""
    new = Group(group.group_id, protocol_type=CONSUMER_PROTOCOL, generation=group.epoch)
    ids = {member.member_id for member in gone}
    for one in (member for member in group.members.values() if member.member_id not in ids):
        classic = one.about.classic
        assert classic is not None
        target = group.targets.get(one.member_id, {})
        new.add(
            Member(
                one.member_id,
                one.about.instance_id,
                one.about.client_id,
                one.about.client_host,
                classic.session_timeout_ms,
                one.about.rebalance_timeout_ms,
                list(classic.protocols),
                written_assignment(target, classic.protocols[0][1], view),
                synced=True,
                new=False,
            )
        )
    new.protocol_name = new.elected_protocol()
    return new
