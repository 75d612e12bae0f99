"""Groups of the consumer protocol: whatever members do, a partition is with one of them at most,
and in the end with one."""

from __future__ import annotations

import random

import pytest

from tests.support.consumer_group_rig import KipMember, group_of, quiesce
from tests.support.group_rig import GroupRig

SEEDS = range(40)
TOPICS = ["orders", "payments", "later"]


class Storm:
    """Random members over one coordinator; after each act the members' own view is checked."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rig = GroupRig({"group.consumer.assignment.interval.ms": self.rng.choice([0, 1_000])})
        self.members: list[KipMember] = []
        self.gone: list[KipMember] = []
        self.static: list[KipMember] = []
        self.count = 0

    def act(self) -> None:
        rng = self.rng
        kind = rng.randrange(12)
        if not self.members or (kind == 0 and len(self.members) < 7):
            self.join()
        elif kind == 1:
            self.leave(rng.choice(self.members))
        elif kind == 2:  # dies: nobody hears of it until its session ends
            dead = rng.choice(self.members)
            self.members.remove(dead)
            self.gone.append(dead)
        elif kind == 3:
            rng.choice(self.members).subscribe(*rng.sample(TOPICS, rng.randrange(1, 4)))
        elif kind == 4:
            self.grow()
        elif kind == 5:
            self.restart()
        elif kind == 6:
            self.pass_time(rng.choice([100, 1_000, 5_000]))
        else:
            member = rng.choice(self.members)
            member.beat()
            if rng.random() < 0.8:
                member.reconcile()
        self.check()

    def join(self) -> None:
        self.count += 1
        if self.static and self.rng.random() < 0.5:
            old = self.static.pop()
            member = KipMember(self.rig, f"m{self.count}", old.topics or (), old.instance_id)
        else:
            instance_id = f"i{self.count}" if self.rng.random() < 0.4 else None
            topics = self.rng.sample(TOPICS, self.rng.randrange(1, 4))
            assignor = self.rng.choice([None, "uniform", "range"])
            more = {} if assignor is None else {"assignor": assignor}
            member = KipMember(self.rig, f"m{self.count}", topics, instance_id, **more)
        member.beat()
        if member.error == 0:
            self.members.append(member)

    def leave(self, member: KipMember) -> None:
        if member.epoch <= 0:
            return
        self.members.remove(member)
        if member.instance_id is not None and self.rng.random() < 0.5:
            member.leave(-2)
            self.static.append(member)
        else:
            member.leave()

    def grow(self) -> None:
        image = self.rig.controller.image.topics
        if "later" not in image:
            self.rig.controller.create_topic("later", 2)
        elif len(image["orders"].partitions) < 9:
            self.rig.controller.create_partitions("orders", len(image["orders"].partitions) + 1)

    def restart(self) -> None:
        self.rig = self.rig.again()
        for member in [*self.members, *self.gone, *self.static]:
            member.rig = self.rig

    def pass_time(self, milliseconds: float) -> None:
        self.rig.broker.advance(milliseconds)
        for member in self.members:
            member.beat()

    def check(self) -> None:
        self.rig.coordinator.check()
        group = self.rig.coordinator.consumer.consumer_group("group")
        known = {} if group is None else group.members
        owned: dict[object, str] = {}
        for member in self.members:
            present = known.get(member.member_id)
            if present is None or member.epoch <= 0:
                continue  # it is fenced, and hears of that with its next heartbeat
            for one in member.partitions:
                assert one not in owned, f"{one} is with {owned[one]} and {member.member_id}"
                owned[one] = member.member_id

    def end(self) -> None:
        for _ in range(12):
            self.rig.broker.advance(5_000)
            for member in self.members:
                member.beat()
                member.reconcile()
        quiesce(*self.members)
        self.rig.broker.advance(1_100)
        quiesce(*self.members)
        self.check()
        if not self.members:
            return
        group = group_of(self.rig)
        assert group.state.value == "Stable"
        assert set(group.members) == {member.member_id for member in self.members}
        image = self.rig.controller.image.topics
        wanted = {
            (image[name].topic_id, number)
            for member in self.members
            for name in member.topics or ()
            if name in image
            for number in range(len(image[name].partitions))
        }
        owned = [one for member in self.members for one in member.partitions]
        assert sorted(owned) == sorted(wanted)
        before = group.epoch, [member.epoch for member in self.members]
        quiesce(*self.members, rounds=2)
        assert (group.epoch, [member.epoch for member in self.members]) == before, "nothing changed"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partition_is_with_one_member_at_most_and_in_the_end_with_one(seed: int) -> None:
    storm = Storm(seed)
    for _ in range(120):
        storm.act()
    storm.end()
