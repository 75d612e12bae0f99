"""Assignment that is even, and moves as few partitions as it can (KIP-54, KIP-429).

1. Each member keeps what it had, as far as it still subscribes to it and no other member had it in
   a later generation.
2. If all members subscribe to the same, each gets the same number or one more: who has more than
   that gives the rest up.
3. What has no owner goes to the member that has least among those that subscribe to it, partitions
   that few can take first.
4. Where subscriptions differ, single partitions move from a member to one that has two less or
   fewer, until none can.

Kafka's `StickyAssignor` and `CooperativeStickyAssignor`. In the latter, a partition that goes from
one member to another is given to nobody in this round: its old owner has to give it up first.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.consumer_protocol import Subscription

_Shares = dict[str, list[TopicPartition]]


def assign_sticky(counts: Mapping[str, int], members: Mapping[str, Subscription]) -> _Shares:
    """Assign an even share to each member, which keeps as many of the partitions that it had as
    possible. Empty if a coordinator names a leader, and no members."""
    if not members:
        return {}
    shares = _kept(counts, members)
    readers: dict[str, list[str]] = {}
    for member, subscription in members.items():
        for topic in dict.fromkeys(subscription.topics):
            if counts.get(topic):
                readers.setdefault(topic, []).append(member)
    wanted = [TopicPartition(topic, number) for topic in sorted(readers) for number in range(counts[topic])]
    alike = all(len(who) == len(members) for who in readers.values())
    if alike:
        _trim(shares, len(wanted))
    owned = {of for share in shares.values() for of in share}
    _hand_out([of for of in wanted if of not in owned], shares, readers, alike)
    if not alike:
        _even_out(wanted, shares, readers)
    return {member: sorted(share) for member, share in shares.items()}


def assign_cooperatively(counts: Mapping[str, int], members: Mapping[str, Subscription]) -> _Shares:
    """Assign as `assign_sticky` does, without partitions that another member has to give up first.
    Those are assigned in the next rebalance, which follows."""
    had = {of: member for member, share in _kept(counts, members).items() for of in share}
    shares = assign_sticky(counts, members)
    return {member: [of for of in share if had.get(of, member) == member] for member, share in shares.items()}


def _kept(counts: Mapping[str, int], members: Mapping[str, Subscription]) -> _Shares:
    """Partitions that each member had and may keep.

    Of two members that had the same one, the one of the later generation keeps it; of equal ones,
    neither.
    """
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member, subscription in members.items():
        topics = set(subscription.topics)
        for of in subscription.owned:
            if of.topic not in topics or not 0 <= of.partition < counts.get(of.topic, 0):
                continue
            generation = claims[of][0] if of in claims else None
            if generation is None or subscription.generation > generation:
                claims[of] = subscription.generation, member
            elif subscription.generation == generation:
                claims[of] = generation, None
    shares: _Shares = {member: [] for member in members}
    for of, (_, owner) in claims.items():
        if owner is not None:
            shares[owner].append(of)
    return shares


def _trim(shares: _Shares, total: int) -> None:
    """Take partitions from members that have more than `total` divided evenly. If that leaves a
    remainder, so many members may keep one more."""
    each, more = divmod(total, len(shares))
    for share in sorted(shares.values(), key=len, reverse=True):
        bonus = more > 0 and len(share) > each
        more -= bonus
        del share[each + bonus :]


def _hand_out(
    free: list[TopicPartition], shares: _Shares, readers: Mapping[str, list[str]], alike: bool
) -> None:
    if alike:
        order = list(shares)
        line = [(len(shares[member]), place) for place, member in enumerate(order)]
        heapq.heapify(line)
        for of in free:
            count, place = heapq.heappop(line)
            shares[order[place]].append(of)
            heapq.heappush(line, (count + 1, place))
        return
    for of in sorted(free, key=lambda of: len(readers[of.topic])):
        shares[min(readers[of.topic], key=lambda member: len(shares[member]))].append(of)


def _even_out(wanted: list[TopicPartition], shares: _Shares, readers: Mapping[str, list[str]]) -> None:
    """Move single partitions between members until no move makes their shares more even. Each move
    makes the sum of squares of the shares smaller, so the moves come to an end."""
    owners = {of: member for member, share in shares.items() for of in share}
    moved = True
    while moved:
        moved = False
        for of in wanted:
            owner = owners[of]
            least = min(readers[of.topic], key=lambda member: len(shares[member]))
            if len(shares[owner]) - len(shares[least]) > 1:
                shares[owner].remove(of)
                shares[least].append(of)
                owners[of] = least
                moved = True
