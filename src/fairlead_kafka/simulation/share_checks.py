"""Checks of share groups: compare the locks of leaders, and the acknowledgements and answers of
members (`share_ledger`), with the log, once a world is over.

- What was accepted or rejected, and the member was answered so, is never delivered again: not by
  the leader that took it, and not by a later one. A broker that does not know yet that another
  leads may do so, and no acknowledgement to it counts (KIP-932).
- No acknowledgement is taken once the lock is over. One for a record that is done with meanwhile
  has no effect, and no error, as in Kafka.
- A record has one lock at a time. The next begins when the one before is over by the broker's
  clock, was given up by its member, or ended with that member's session.
- Each delivery after an acknowledged release has a greater count, and no count is above
  share.delivery.count.limit.
- In the end each record that readers see was accepted, rejected, or delivered as often as it may
  be. An acknowledgement without an answer may stand.
- Members are given what is in the log, and with read_committed nothing of a transaction that was
  aborted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise

from fairlead_kafka.consumer.share import GAP, AcknowledgeType
from fairlead_kafka.simulation.group_checks import Visible
from fairlead_kafka.simulation.group_ledger import Place
from fairlead_kafka.simulation.share_ledger import FINAL_TYPES, Acquisition, Said, ShareLedger

Records = Mapping[Place, Mapping[int, bytes | None]]
"""Partition → the values of its records, by offset."""


def check_share_group(
    ledger: ShareLedger,
    records: Records,
    visible: Visible,
    starts: Mapping[Place, int],
    durable: Sequence[str],
) -> list[str]:
    """Every violation, as a text, in the answers that a share group's members got. `records`: what
    the log holds in the end, `visible`: those that readers see, `starts`: the offset of each
    partition before which records may have been deleted, `durable`: topics that lost nothing."""
    found: list[str] = []
    for place, offsets in visible.items():
        if place[0] in ledger.topics and place[0] in durable:
            history = History(ledger, place, starts[place], records[place])
            wanted = [offset for offset in offsets if offset >= starts[place]]
            name = f"{place[0]}-{place[1]}"
            found += _again(name, history)
            found += _late(name, ledger.lock_ns, history)
            found += _counts(name, ledger.limit, history)
            found += _locked_twice(name, ledger, history)
            found += _open(name, ledger.limit, wanted, history)
    return [f"share group {ledger.group}: {what}" for what in found]


class History:
    """Deliveries and acknowledgements of the records of one share partition."""

    def __init__(self, ledger: ShareLedger, place: Place, start: int, held: Container[int]) -> None:
        self._start, self._held, self._limit = start, held, ledger.limit
        self.deliveries: dict[int, list[Acquisition]] = defaultdict(list)
        """Offset → its deliveries, in the order of time."""
        self.sayings: dict[int, list[Said]] = defaultdict(list)
        """Offset → what was said of it."""
        self.said = [said for said in ledger.said if said.place == place]
        for one in ledger.acquisitions.get(place, ()):
            for offset in range(one.first, one.last + 1):
                self.deliveries[offset].append(one)
        for said in self.said:
            self.sayings[said.offset].append(said)

    def after(self, one: Acquisition, offset: int) -> list[Acquisition]:
        """Deliveries of a record after one of them, those of a leader that was deposed before left
        out."""
        deliveries = self.deliveries[offset]
        place = next(number for number, other in enumerate(deliveries) if other is one)
        return [
            other
            for number, other in enumerate(deliveries)
            if other.tenure > one.tenure or (other.tenure == one.tenure and number > place)
        ]

    def was_done(self, said: Said) -> bool:
        """True if the record of an acknowledgement was completed before the answer: by members that
        had it later, or because it was deleted or compacted away. Such an acknowledgement has no
        effect, and is no error, as in Kafka."""
        if said.offset < self._start or said.offset not in self._held:
            return True
        later = [said.acquisition, *self.after(said.acquisition, said.offset)]
        exhausted = any(one.deliveries >= self._limit and one.at_ns < said.answered_ns for one in later)
        return exhausted or any(
            other.kind != AcknowledgeType.RENEW
            and other.kind != AcknowledgeType.RELEASE
            and not other.refused
            and other.asked_ns < said.answered_ns
            and any(one is other.acquisition for one in later[1:])
            for other in self.sayings[said.offset]
        )


def _again(name: str, history: History) -> Iterable[str]:
    """Deliveries, as texts, of records that were accepted or rejected before."""
    for said in history.said:
        if not said.acknowledged or said.kind not in FINAL_TYPES:
            continue
        for other in history.after(said.acquisition, said.offset):
            if other.at_ns > said.answered_ns or not history.was_done(said):
                yield f"{name}/{said.offset}: {other}, yet it took the {said}"


def _late(name: str, lock_ns: int, history: History) -> Iterable[str]:
    """Acknowledgements, as texts, that were accepted from members whose lock had ended."""
    for said in history.said:
        if not said.acknowledged or said.kind == GAP:
            continue
        renewed = [
            each.answered_ns + lock_ns
            for each in history.sayings[said.offset]
            if each.acquisition is said.acquisition
            and each.kind == AcknowledgeType.RENEW
            and not each.refused
        ]
        over_ns = max((said.acquisition.until_ns, *renewed))
        if said.asked_ns > over_ns and not history.was_done(said):
            yield f"{name}/{said.offset}: the lock was over at {over_ns / 1e6:.1f} ms, yet it took the {said}"


def _counts(name: str, limit: int, history: History) -> Iterable[str]:
    for offset, deliveries in history.deliveries.items():
        for one in deliveries:
            if one.deliveries > limit:
                yield f"{name}/{offset}: {one}, though {limit} are the limit"
    for said in history.said:
        if said.acknowledged and said.kind == AcknowledgeType.RELEASE:
            for other in history.after(said.acquisition, said.offset):
                if other.deliveries <= said.acquisition.deliveries:
                    yield f"{name}/{said.offset}: {other}, after the {said}"


def _locked_twice(name: str, ledger: ShareLedger, history: History) -> Iterable[str]:
    for offset, deliveries in history.deliveries.items():
        for one, after in pairwise(sorted(deliveries, key=lambda each: (each.tenure, each.at_ns))):
            if one.tenure != after.tenure:
                continue
            said = [each for each in history.sayings.get(offset, ()) if each.acquisition is one]
            if _freed_ns(one, said, ledger.lock_ns) <= after.at_ns:
                continue
            if ledger.was_connected(one, after.at_ns):
                yield f"{name}/{offset}: {after}, while it was locked: {one}"


def _freed_ns(one: Acquisition, said: Sequence[Said], lock_ns: int) -> int:
    """The earliest time, ns, at which the lock of an acquisition may be over."""
    until_ns = one.until_ns
    for each in said:
        if each.acknowledged and each.kind == AcknowledgeType.RENEW and each.asked_ns < until_ns:
            until_ns = max(until_ns, each.asked_ns + lock_ns)
    given_up = (each.asked_ns for each in said if each.kind != AcknowledgeType.RENEW)
    return min((until_ns, *given_up))


def _open(name: str, limit: int, wanted: Sequence[int], history: History) -> Iterable[str]:
    """Records, as texts, that were never accepted or rejected, and were delivered less often than
    `limit`."""
    left = [
        offset
        for offset in wanted
        if not any(each.kind in FINAL_TYPES and not each.refused for each in history.sayings.get(offset, ()))
        and not any(each.deliveries >= limit for each in history.deliveries.get(offset, ()))
    ]
    if left:
        first = left[0]
        counts = [each.deliveries for each in history.deliveries.get(first, ())]
        yield (
            f"{len(left)} records of {name} were never accepted, and are not delivered any more, first "
            f"{first}, with deliveries {counts}"
        )


def check_contents(
    ledger: ShareLedger, contents: Records, visible: Visible, trimmed: Sequence[str], durable: Sequence[str]
) -> list[str]:
    """Records, as texts, that members were given and that are not in the log; `trimmed`: topics of
    which records are deleted."""
    found: list[str] = []
    for given in ledger.given:
        if given.place not in contents or given.place[0] not in durable:
            continue
        offsets = contents[given.place]
        name = f"{given.place[0]}-{given.place[1]}/{given.offset}"
        what = f"process {given.process} was given {given.value!r} at {name}"
        there = given.offset in offsets
        if not there and given.place[0] not in trimmed:
            found.append(f"{what}, which is not there")
        elif there and offsets[given.offset] != given.value:
            found.append(f"{what}, where {offsets[given.offset]!r} is")
        elif there and ledger.committed_only and given.offset not in visible[given.place]:
            found.append(f"{what}, of a transaction that was aborted")
    return [f"share group {ledger.group}: {what}" for what in found]
