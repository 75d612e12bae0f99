"""Facts about the records of a world once it is over, from the results that their applications got,
never from a log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from fairlead_kafka.simulation.keyed_sender import COMPACTED, KeyedSender, Wrote
from fairlead_kafka.simulation.reader import Place, Read
from fairlead_kafka.simulation.transactional import Outcome, TransactionalSender

NEVER_NS = 1 << 62


class Visibility(Enum):
    """Whether a record counts for readers with isolation.level=read_committed."""

    COUNTS = "counts"
    ABORTED = "is of an aborted transaction"
    OPEN = "is of a transaction that was committed or aborted"


class Fact(NamedTuple):
    """One record that was acknowledged, at its offset."""

    offset: int
    wrote: Wrote
    visibility: Visibility
    completed_ns: int

    def __str__(self) -> str:
        return (
            f"{self.wrote.key!r}: {self.wrote.value!r} of {self.wrote.timestamp_ms} at {self.offset}, "
            f"which {self.visibility.value}"
        )


class Facts:
    """All facts of a world. `trimmed`: place (topic, number) → the greatest offset before which
    records were asked to be deleted."""

    def __init__(self, senders: Sequence[KeyedSender], trimmed: Mapping[Place, int]) -> None:
        self.trimmed = trimmed
        self.by_place: dict[Place, dict[int, Fact]] = defaultdict(dict)
        self._doubtful: dict[str, dict[bytes, tuple[Wrote, Visibility]]] = defaultdict(dict)
        """Topic → value → a record whose offset nobody was told: it may be in the log or not."""
        self._doubtful_keys: set[tuple[str, bytes]] = set()
        """(topic, key) of records without a known offset that may count."""
        self._doubtful_tombstones: set[tuple[str, bytes, bool]] = set()
        """(topic, key, it may count) of tombstones without a known offset."""
        self.twice: list[str] = []
        for sender in senders:
            self._take(sender)
        self._last: dict[tuple[Place, bytes], int] = {}
        for place, facts in self.by_place.items():
            for fact in facts.values():
                if fact.visibility is not Visibility.ABORTED:
                    self._last[place, fact.wrote.key] = max(
                        fact.offset, self._last.get((place, fact.wrote.key), -1)
                    )

    def at(self, place: Place, offset: int) -> Fact | None:
        """The record that was acknowledged at this offset; None if there is none."""
        return self.by_place[place].get(offset)

    def stays(self, place: Place, fact: Fact) -> bool:
        """True if nothing removes the record from the log: a reader that passes its offset is given
        it.
        """
        if fact.visibility is not Visibility.COUNTS or fact.offset < self.trimmed.get(place, 0):
            return False
        if place[0] != COMPACTED:
            return True
        key = fact.wrote.key
        return (
            fact.wrote.value is not None
            and self._last[place, key] == fact.offset
            and (place[0], key) not in self._doubtful_keys
        )

    def may_be(self, topic: str, read: Read, committed: bool) -> bool:
        """True if `read` can be a record of whose offset nobody was told; `committed`: one that
        counts.
        """
        if read.value is None:
            return any(
                (topic, read.key, counts) in self._doubtful_tombstones
                for counts in ((True,) if committed else (True, False))
            )
        wrote, visibility = self._doubtful[topic].get(read.value, (None, Visibility.ABORTED))
        return wrote == (read.key, read.value, read.timestamp_ms) and not (
            committed and visibility is Visibility.ABORTED
        )

    def _take(self, sender: KeyedSender) -> None:
        visibilities = _visibilities(sender)
        for serial, result in enumerate(sender.results):
            wrote, visibility = sender.wrote[serial], visibilities.get(serial, Visibility.COUNTS)
            if result.acknowledged and result.offset >= 0:
                facts = self.by_place[result.topic, result.partition]
                if result.offset in facts:
                    self.twice.append(
                        f"two records were acknowledged in {result.topic}-{result.partition} "
                        f"at {result.offset}"
                    )
                facts[result.offset] = Fact(result.offset, wrote, visibility, result.completed_ns)
                continue
            if visibility is not Visibility.ABORTED:
                self._doubtful_keys.add((result.topic, wrote.key))
            if wrote.value is None:
                self._doubtful_tombstones.add((result.topic, wrote.key, visibility is not Visibility.ABORTED))
            else:
                self._doubtful[result.topic][wrote.value] = wrote, visibility


def _visibilities(sender: KeyedSender) -> dict[int, Visibility]:
    """The visibility of each record in a transaction, by serial."""
    visibilities: dict[int, Visibility] = {}
    if isinstance(sender, TransactionalSender):
        for transaction in sender.transactions:
            kind = {Outcome.COMMITTED: Visibility.COUNTS, Outcome.ABORTED: Visibility.ABORTED}.get(
                transaction.outcome, Visibility.OPEN
            )
            stop = transaction.stop if transaction.stop >= 0 else len(sender.results)
            visibilities.update(dict.fromkeys(range(transaction.first, stop), kind))
    return visibilities
