"""What a topic's unbound records leave for brokers that lag (policy `late`): how much waits for them, and how much each takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from fairlead_kafka.producer.late import LateQueue

MOST_PARTS = 2
"""A broker that lags takes no more than so many times its even part of a turn at once: what it is behind by, it makes up in several.
But where the others came to the lead it takes what they wait for (`Reserve.portion_bytes`)."""
FREE_PARTS = 4
"""It may stay behind by what the lead has beyond so many times its even part of a turn, or as many full batches. So under the default
lead all are kept level; far from the lead nobody waits for it, and it takes its part of what waits and no more."""


class Turn(NamedTuple):
    """A broker's last turn at one queue."""

    arrived_bytes: int
    """Of all records that had ever waited there by then."""
    at_ns: int
    interval_ns: int
    """From turn to turn, on average of the last few; 0: there was only one."""
    coming_bytes: int
    """What comes from turn to turn, on average of the last few."""


@dataclass(slots=True)
class _Expected:
    """A broker that lags, and what is known of it in one round. In bytes."""

    coming: float
    """What will come until it is back."""
    part: float
    """Its even part of what comes from turn to turn."""
    share: float
    """Of the partitions in account, its own."""
    behind: float
    """By how much its partitions together have less than as many of the others'."""
    behind_more: float
    """For each byte that the others take."""
    ahead: float
    """By how much they are to have more after its turn."""
    lead: float
    """The lead, of all its partitions."""
    taken: int = 0

    @property
    def portion(self) -> float:
        """What it is to take; less than nothing if it is too far ahead."""
        return min(self.behind + self.ahead, max(MOST_PARTS * self.part, 1.0)) - self.taken


class Reserve:
    """How much of one queue brokers that lag may take in one round, and how much the others.

    The others could take all that comes while it is away; but they may get only so far ahead of it, and then all wait. So it is to
    find its portion when it is back, of the newest records: those wait for its answer anyway, and should not have waited before.

    Its portion is what it is behind the others by, and half of its even part of what comes from turn to turn: then it is ahead of them
    by so much after its turn, and behind by so much before the next. That is as far from the lead as it can be on either side,
    so that it may come late, or early, and nobody waits. Of the portion so much must wait by now as will not come until it is back,
    at the pace of the last few turns. The rest is the others'. What they take makes the portion larger, and is less for it: an
    equation with one unknown, solved in `others_bytes`.

        waits:      | the others' |<-- must wait by now -->|
        will come:                                         |<-- until it is back -->|
        portion:                  |<----------------------------------------------->|

    Sizes are bytes of records before compression, as in the queue; `ratio` is what the account's bytes are of them.
    """

    __slots__ = ("_expected", "_had_turn", "_late", "_now_ns")

    def __init__(
        self, late: LateQueue, free_ns: Mapping[int, int], others: Sequence[int], full_bytes: int, ratio: float, now_ns: int
    ) -> None:
        """`free_ns`: of each broker that lags, when it is expected to have room for a request; `others`: those that they are compared with.

        Partitions of brokers in neither are out of account. `full_bytes`: a full batch.
        """
        account = late.policy.account
        self._late, self._now_ns = late, now_ns
        self._expected: dict[int, _Expected] = {}
        self._had_turn: dict[int, None] = {}
        others_count = others_bytes = 0
        for node_id in others if free_ns else ():
            others_count += account.counted_in(node_id)
            others_bytes += account.bytes_of(node_id)
        if not others_count:
            return
        level_bytes = others_bytes / others_count
        for node_id, at_ns in sorted(free_ns.items(), key=itemgetter(1)):
            count = account.counted_in(node_id)
            if not count:
                continue
            turn, share = self._last_turn(node_id), count / account.counted
            part = share * turn.coming_bytes
            lead = late.policy.lead_bytes / ratio
            spare = lead - FREE_PARTS * max(part, full_bytes)
            self._expected[node_id] = _Expected(
                coming=turn.coming_bytes * max(at_ns - now_ns, 0) / turn.interval_ns if turn.interval_ns else 0.0,
                part=part,
                share=share,
                behind=(count * level_bytes - account.bytes_of(node_id)) / ratio,
                behind_more=count / others_count,
                ahead=min(max(part / 2, part - count * lead), -spare),
                lead=count * lead,
            )

    def others_bytes(self) -> int:
        """What the others may take now; less than the next record if nothing."""
        waiting = self._late.size_bytes
        most, together, for_each_byte = float(waiting), 0.0, 1.0
        for each in self._expected.values():
            portion = each.portion
            if portion + waiting * each.behind_more <= 0:
                continue  # nothing is for it, whatever the others take
            together += portion
            for_each_byte += each.behind_more
            most = min(most, (waiting + each.coming - together) / for_each_byte)
        return int(most)

    def portion_bytes(self, node_id: int) -> int:
        """What is for the broker, which lags and has its turn, once others took what they may; 0 or less: nobody waits for it to take any.

        If they have come to the lead, x is at least as much as lets them take what it leaves of W, all that waits, and of what comes
        until it is back, A, the part that is not its own: from x - behind + lead >= (f / (1 - f)) (W - x + (1 - f) A), f its share.
        """
        each = self._expected.get(node_id)
        if each is None:
            return 0
        needed = each.share * self._late.size_bytes + (1 - each.share) * (each.part + each.behind - each.lead)
        return int(max(each.portion, needed))

    def took(self, node_id: int, size_bytes: int, *, lags: bool) -> None:
        """A batch of so many bytes was cut for the broker."""
        if not lags:
            for each in self._expected.values():
                each.behind += size_bytes * each.behind_more
            return
        self._had_turn[node_id] = None
        if node_id in self._expected:
            self._expected[node_id].taken += size_bytes

    def end_round(self) -> None:
        """The round is over: who lags and took something had a turn."""
        late, now_ns = self._late, self._now_ns
        for node_id in self._had_turn:
            last = self._last_turn(node_id)
            interval_ns = now_ns - last.at_ns if last.at_ns else 0
            if last.interval_ns:
                interval_ns = (interval_ns + last.interval_ns) // 2
            coming_bytes = (late.arrived_bytes - last.arrived_bytes + last.coming_bytes) // 2
            late.turns[node_id] = Turn(late.arrived_bytes, now_ns, interval_ns, coming_bytes)

    def _last_turn(self, node_id: int) -> Turn:
        late = self._late
        return late.turns.get(node_id) or Turn(late.arrived_bytes - late.size_bytes, 0, 0, late.size_bytes)
