"""Whatever members do, in whatever order, a group never contradicts itself, and once they behave
they all share one generation."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.coordinator import GroupState
from tests.support.group_rig import GROUP, GroupRig, RigMember

ORDERS = TopicPartition("orders", 0)
REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)
START_OVER = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
ACTIONS = ("join", "join", "sync", "heartbeat", "leave", "forget", "wait", "commit", "old commit")


def start_over(member: RigMember) -> None:
    member.member_id, member.joined, member.synced = "", None, None


def check(rig: GroupRig) -> None:
    """What holds at any moment."""
    rig.coordinator.check()
    group = rig.coordinator.describe(GROUP)
    if group is None:
        return
    assert (group.state is GroupState.EMPTY) == (not group.members)
    if group.members:
        assert group.leader_id in group.members
    if group.state is not GroupState.PREPARING_REBALANCE:
        assert all(member.join_reply is None for member in group.members.values())
    if group.state is not GroupState.COMPLETING_REBALANCE:
        assert all(member.sync_reply is None for member in group.members.values())


def act(rig: GroupRig, member: RigMember, action: str, rng: random.Random) -> None:
    """One thing that a member does, sensible or not."""
    if action == "join":
        if member.joined is not None and member.joined.error_code in START_OVER:
            start_over(member)
        member.join()
    elif action == "leave":
        member.leave()
    elif action == "forget":
        start_over(member)
    elif action == "wait":
        rig.broker.advance(rng.choice([1, 3_000, 11_000, 61_000]))
    elif member.joined is not None and not member.joined.error_code:
        if action == "sync":
            member.sync({member.member_id: b"x"} if member.leads else None)
        elif action == "heartbeat":
            member.heartbeat()
        elif action in ("commit", "old commit"):
            generation = member.generation - (action == "old commit")
            try:
                rig.commit({ORDERS: rng.randrange(100)}, generation, member.member_id)
            except BrokerError as error:
                if error.code not in (*REJOIN, *START_OVER):
                    raise


def behave(member: RigMember) -> None:
    """What a proper client does next."""
    if member.joined is None:
        if not member.waiting:
            member.join()
        return
    if member.joined.error_code:
        if member.joined.error_code in START_OVER:
            start_over(member)
        member.join()
        return
    error = member.heartbeat()
    if error == ErrorCode.NONE and (member.synced is None or member.synced.error_code):
        error = member.sync({member.member_id: b"x"} if member.leads else None) or ErrorCode.NONE
    if error in START_OVER:
        start_over(member)
    if error:
        member.synced = None
        member.join()


@settings(max_examples=60)
@given(
    instance_ids=st.lists(
        st.sampled_from([None, None, "one", "two", "three"]), min_size=1, max_size=4
    ).filter(lambda ids: len([one for one in ids if one]) == len({one for one in ids if one})),
    script=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(ACTIONS)), max_size=40),
    delay_ms=st.sampled_from([0, 0, 3_000]),
    seed=st.integers(0, 1_000),
)
def test_a_group_survives_anything_and_then_settles(
    instance_ids: list[str | None], script: list[tuple[int, str]], delay_ms: int, seed: int
) -> None:
    rig = GroupRig({"group.initial.rebalance.delay.ms": delay_ms})
    members = [
        RigMember(rig, instance_id=instance_id, version=rng_version)
        for instance_id, rng_version in zip(instance_ids, [9, 3, 5, 7], strict=False)
    ]
    rng = random.Random(seed)
    for index, action in script:
        act(rig, members[index % len(members)], action, rng)
        check(rig)
    for _ in range(150):
        for member in members:
            behave(member)
            check(rig)
        rig.broker.advance(1_000)
    group = rig.coordinator.describe(GROUP)
    assert group is not None
    assert group.state is GroupState.STABLE
    assert set(group.members) == {member.member_id for member in members}
    assert {member.generation for member in members} == {group.generation}
