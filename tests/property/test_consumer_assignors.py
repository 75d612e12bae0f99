"""Assignors: everything is read by exactly one member, evenly, and the sticky ones move no more
than they must."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.base.errors import ConfigError, DecodeError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.groups import ASSIGNORS, assignors_named
from fairlead_kafka.consumer.groups.assignors import Assignments
from fairlead_kafka.consumer.groups.joining import _subscriptions
from fairlead_kafka.core.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fairlead_kafka.wire import Message

TOPICS = ("a", "b", "c")
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7))
NAMES = sorted(ASSIGNORS)


def members_of(subscriptions: list[set[str]]) -> dict[str, Subscription]:
    return {f"m{number}": Subscription(tuple(sorted(topics))) for number, topics in enumerate(subscriptions)}


def alike(count: int) -> dict[str, Subscription]:
    return members_of([set(TOPICS)] * count)


def owning(
    members: dict[str, Subscription], shares: Assignments, generation: int = 1
) -> dict[str, Subscription]:
    """The members that there are, with what they have."""
    return {
        name: subscription._replace(
            owned=tuple(shares.get(name, ())), generation=generation if name in shares else -1
        )
        for name, subscription in members.items()
    }


def everything(counts: dict[str, int], members: dict[str, Subscription]) -> list[TopicPartition]:
    wanted = {topic for subscription in members.values() for topic in subscription.topics}
    return [
        TopicPartition(topic, number) for topic in sorted(wanted) for number in range(counts.get(topic, 0))
    ]


@pytest.mark.parametrize("name", NAMES)
@given(counts=COUNTS, subscriptions=st.lists(st.sets(st.sampled_from(TOPICS)), min_size=1, max_size=5))
def test_every_partition_is_given_once_and_to_a_member_that_wants_it(
    name: str, counts: dict[str, int], subscriptions: list[set[str]]
) -> None:
    members = members_of(subscriptions)
    shares = ASSIGNORS[name].assign(counts, members)
    assert set(shares) == set(members)
    assert sorted(of for share in shares.values() for of in share) == everything(counts, members)
    assert all(of.topic in members[name].topics for name, share in shares.items() for of in share)


@pytest.mark.parametrize("name", ["roundrobin", "sticky", "cooperative-sticky"])
@given(counts=COUNTS, count=st.integers(1, 6))
def test_members_that_want_the_same_get_the_same_number_or_one_more(
    name: str, counts: dict[str, int], count: int
) -> None:
    sizes = [len(share) for share in ASSIGNORS[name].assign(counts, alike(count)).values()]
    assert max(sizes) - min(sizes) <= 1


def test_a_range_is_neighbours_topic_by_topic() -> None:
    shares = ASSIGNORS["range"].assign({"a": 3, "b": 3}, alike(2))
    assert shares == {
        "m0": [
            TopicPartition("a", 0),
            TopicPartition("a", 1),
            TopicPartition("b", 0),
            TopicPartition("b", 1),
        ],
        "m1": [TopicPartition("a", 2), TopicPartition("b", 2)],
    }


@given(counts=COUNTS, before=st.integers(1, 5), leaving=st.integers(0, 4))
def test_sticky_members_keep_all_they_have_when_another_leaves(
    counts: dict[str, int], before: int, leaving: int
) -> None:
    first = ASSIGNORS["sticky"].assign(counts, alike(before))
    stay = {name: one for name, one in owning(alike(before), first).items() if name != f"m{leaving % before}"}
    if not stay:
        return
    second = ASSIGNORS["sticky"].assign(counts, stay)
    assert all(set(first[name]) <= set(second[name]) for name in stay)


@given(counts=COUNTS, before=st.integers(1, 5))
def test_a_newcomer_takes_its_share_and_nothing_else_moves(counts: dict[str, int], before: int) -> None:
    first = ASSIGNORS["sticky"].assign(counts, alike(before))
    second = ASSIGNORS["sticky"].assign(counts, owning(alike(before + 1), first))
    assert all(set(second[name]) <= set(first[name]) for name in first)


@given(
    counts=COUNTS,
    subscriptions=st.lists(st.sets(st.sampled_from(TOPICS), min_size=1), min_size=1, max_size=5),
)
def test_a_sticky_assignment_stands_when_nothing_changes(
    counts: dict[str, int], subscriptions: list[set[str]]
) -> None:
    members = members_of(subscriptions)
    first = ASSIGNORS["sticky"].assign(counts, members)
    assert ASSIGNORS["sticky"].assign(counts, owning(members, first)) == first


@given(counts=COUNTS, before=st.integers(1, 4), after=st.integers(1, 6))
def test_cooperation_hands_nothing_over_before_it_was_given_up_and_ends_even(
    counts: dict[str, int], before: int, after: int
) -> None:
    shares = ASSIGNORS["cooperative-sticky"].assign(counts, alike(before))
    members = alike(after)
    for generation in range(1, 4):
        had = {of: name for name, share in shares.items() if name in members for of in share}
        shares = ASSIGNORS["cooperative-sticky"].assign(counts, owning(members, shares, generation))
        assert all(had.get(of, name) == name for name, share in shares.items() for of in share)
    assert sorted(of for share in shares.values() for of in share) == everything(counts, members)
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1


def test_of_two_who_claim_the_same_the_later_generation_counts() -> None:
    of = TopicPartition("a", 0)
    members = {
        "m0": Subscription(("a",), owned=(of,), generation=3),
        "m1": Subscription(("a",), owned=(of,), generation=4),
    }
    assert ASSIGNORS["sticky"].assign({"a": 1}, members) == {"m0": [], "m1": [of]}


def test_an_eager_sticky_member_tells_what_it_had_in_its_user_data() -> None:
    sticky, had = ASSIGNORS["sticky"], (TopicPartition("a", 2), TopicPartition("b", 0))
    told = sticky.understood(Subscription(("a", "b"), sticky.user_data(had, 7)))
    assert (told.owned, told.generation) == (had, 7)
    older = sticky.user_data(had, 7)
    assert older is not None
    assert sticky.understood(Subscription(("a", "b"), older[:-4])).generation == -1, (
        "version 0 has no generation"
    )


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["range", "cooperative-sticky"], ["range", "cooperative-sticky"]),
        (["org.apache.kafka.clients.consumer.RoundRobinAssignor"], ["roundrobin"]),
    ],
)
def test_assignors_go_by_their_names_or_kafkas_classes(names: list[str], found: list[str]) -> None:
    assert [assignor.name for assignor in assignors_named(names)] == found


@pytest.mark.parametrize(
    "names", [["fair"], ["range", "org.apache.kafka.clients.consumer.RangeAssignor"], []]
)
def test_unknown_assignors_are_refused(names: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"partition\.assignment\.strategy"):
        assignors_named(names)


# --- Bytes

PARTITIONS = (
    st.lists(st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 9)), unique=True)
    .map(sorted)
    .map(tuple)
)


@given(
    st.builds(
        Subscription,
        st.lists(st.text()).map(tuple),
        st.none() | st.binary(),
        PARTITIONS,
        st.integers(-1, 9),
        st.none() | st.text(),
    )
)
def test_subscriptions_survive_a_round_trip(subscription: Subscription) -> None:
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(st.builds(Assignment, PARTITIONS, st.none() | st.binary()))
def test_assignments_survive_a_round_trip(assignment: Assignment) -> None:
    assert decode_assignment(encode_assignment(assignment)) == assignment


def test_messages_are_kafkas_to_the_byte() -> None:
    subscription = Subscription(("t",), None, (TopicPartition("t", 1),), 5)
    assert encode_subscription(subscription) == bytes.fromhex(
        "0003 00000001 0001 74 ffffffff 00000001 0001 74 00000001 00000001 00000005 ffff"
    )
    assert decode_subscription(bytes.fromhex("0000 00000001 0001 74 00000000")) == Subscription(("t",), b"")
    assert encode_assignment(Assignment((TopicPartition("t", 1),))) == bytes.fromhex(
        "0003 00000001 0001 74 00000001 00000001 ffffffff"
    )
    assert decode_assignment(b"") == Assignment(())


@given(st.binary(max_size=60))
def test_garbage_raises_one_type_of_error(data: bytes) -> None:
    for decoder in (decode_subscription, decode_assignment):
        try:
            decoder(data)
        except DecodeError:
            continue


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@pytest.mark.parametrize(
    "garbage", [b"", b"\x00", b"\x00\x03\x7f\xff\xff\xff", b"\x00\x00\x00\x00\x00\x01\x00\x05\xff"]
)
def test_a_member_whose_metadata_are_garbled_gets_nothing_and_stops_nobody(
    name: str, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    sound = encode_subscription(Subscription(("a",)))
    rows = [
        Message(member_id=who, group_instance_id=None, metadata=data)
        for who, data in (("m1", sound), ("m2", garbage), ("m3", sound))
    ]
    members = _subscriptions(rows, ASSIGNORS[name])
    shares = ASSIGNORS[name].assign({"a": 4}, members)
    assert {who: len(share) for who, share in shares.items()} == {"m1": 2, "m2": 0, "m3": 2}
    assert "member m2 of the group gets no partitions" in caplog.text


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_garbled_user_data_tell_nothing_of_what_a_member_had(name: str) -> None:
    told = ASSIGNORS[name].understood(Subscription(("a",), b"\x00\x01"))
    assert (told.topics, told.owned, told.generation) == (("a",), (), -1)


@pytest.mark.parametrize("name", NAMES)
def test_nobody_has_anything_where_a_coordinator_names_no_members(name: str) -> None:
    assert not ASSIGNORS[name].assign({"a": 3}, {})
    assert not ASSIGNORS[name].assign({}, {})
