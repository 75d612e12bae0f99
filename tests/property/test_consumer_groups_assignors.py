"""The coordinator's assignors: every partition once, balanced, sticky, whatever members and topics
there are."""

from __future__ import annotations

import random
from collections.abc import Mapping
from uuid import UUID

import pytest

from fairlead_kafka.broker.consumer_groups.assignors import ASSIGNORS, Candidate, Target

SEEDS = range(60)


def topic(number: int) -> UUID:
    return UUID(int=number + 1)


def drawn(rng: random.Random, same_subscription: bool) -> tuple[dict[str, Candidate], dict[UUID, int]]:
    counts = {topic(number): rng.randrange(12) for number in range(rng.randrange(1, 6))}
    shared = frozenset(rng.sample(sorted(counts), rng.randrange(len(counts) + 1)))
    members = {}
    for number in range(rng.randrange(1, 9)):
        topics = (
            shared
            if same_subscription
            else frozenset(rng.sample(sorted(counts), rng.randrange(len(counts) + 1)))
        )
        members[f"m{rng.randrange(10**6)}-{number}"] = Candidate(topics, {}, rng.choice([None, f"i{number}"]))
    return members, counts


def moved_on(members: Mapping[str, Candidate], targets: Mapping[str, Target]) -> dict[str, Candidate]:
    return {member_id: one._replace(target=targets[member_id]) for member_id, one in members.items()}


def owners(targets: Mapping[str, Target]) -> dict[tuple[UUID, int], str]:
    found: dict[tuple[UUID, int], str] = {}
    for member_id, target in targets.items():
        for one, numbers in target.items():
            assert numbers, "a topic without partitions"
            for number in numbers:
                assert (one, number) not in found, "two owners"
                found[one, number] = member_id
    return found


def check_shares(
    members: Mapping[str, Candidate], counts: Mapping[UUID, int], targets: Mapping[str, Target]
) -> None:
    found = owners(targets)
    assert set(targets) == set(members)
    wanted = {topic for one in members.values() for topic in one.topics}
    assert set(found) == {(one, number) for one in wanted for number in range(counts[one])}
    assert all(one in members[member_id].topics for (one, _), member_id in found.items())


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_partition_has_one_reader_who_subscribes_to_it(name: str, same: bool, seed: int) -> None:
    rng = random.Random(seed)
    members, counts = drawn(rng, same)
    for _ in range(4):
        targets = ASSIGNORS[name](members, counts)
        check_shares(members, counts, targets)
        shuffled = dict(rng.sample(sorted(members.items()), len(members)))
        assert ASSIGNORS[name](shuffled, counts) == targets
        members = moved_on(members, targets)
        assert ASSIGNORS[name](members, counts) == targets, "nothing changed, and something moved"
        members.pop(rng.choice(sorted(members)))
        members[f"n{rng.randrange(10**6)}"] = Candidate(frozenset(rng.sample(sorted(counts), 1)), {})
        grown = rng.choice(sorted(counts))
        counts[grown] += rng.randrange(3)


def loads(targets: Mapping[str, Target]) -> dict[str, int]:
    return {member_id: sum(map(len, target.values())) for member_id, target in targets.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_balances_members_with_equal_subscriptions_and_moves_no_more_than_it_must(seed: int) -> None:
    rng = random.Random(seed)
    members, counts = drawn(rng, same_subscription=True)
    before = ASSIGNORS["uniform"](members, counts)
    assert max(loads(before).values()) - min(loads(before).values()) <= 1
    members = moved_on(members, before)
    topics = next(iter(members.values())).topics
    members["z-new"] = Candidate(topics, {})
    after = ASSIGNORS["uniform"](members, counts)
    assert max(loads(after).values()) - min(loads(after).values()) <= 1
    earlier, later = owners(before), owners(after)
    moved = [one for one in earlier if earlier[one] != later[one]]
    assert len(moved) == loads(after)["z-new"], "only the newcomer gets something"
    members = moved_on(members, after)
    gone = rng.choice(sorted(members))
    lost = members.pop(gone).target
    last = ASSIGNORS["uniform"](members, counts) if members else {}
    still = owners(last)
    assert len([one for one in later if later[one] != gone and later[one] != still[one]]) == 0
    assert sum(map(len, lost.values())) == len([one for one in later if later[one] == gone])


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_leaves_nothing_to_move_between_members_with_different_subscriptions(seed: int) -> None:
    members, counts = drawn(random.Random(seed), same_subscription=False)
    targets = ASSIGNORS["uniform"](members, counts)
    load = loads(targets)
    for (one, _), member_id in owners(targets).items():
        readers = [other for other in members if one in members[other].topics]
        assert load[member_id] - min(load[other] for other in readers) <= 1


def test_range_gives_topics_of_equal_size_alike_and_static_members_come_first() -> None:
    both = frozenset({topic(0), topic(1)})
    members = {"a": Candidate(both, {}), "b": Candidate(both, {}), "c": Candidate(both, {}, "first")}
    targets = ASSIGNORS["range"](members, {topic(0): 4, topic(1): 4})
    shares = {"c": {0, 1}, "a": {2}, "b": {3}}
    assert targets == {
        member_id: {topic(0): frozenset(share), topic(1): frozenset(share)}
        for member_id, share in shares.items()
    }
