"""Records on their way through a share consumer: acquired, returned by a poll, acknowledged.

The client class keeps them, in the caller's thread. Nothing here waits or sends: acknowledgements
are noted in columns and taken from there. What moves from one place to another does so `at_once`,
so that Ctrl-C, which may come at any time, leaves it in one of them. Kafka's counterparts:
`ShareFetch`, `ShareInFlightBatch`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.at_once import at_once
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.share.acknowledging import (
    GAP,
    UNDECIDED,
    AcknowledgeType,
    AckResult,
    Acks,
    Int8,
    offsets_of,
)
from fairlead_kafka.consumer.share.chunk import Decoded, ShareChunk
from fairlead_kafka.records.arrays import Int64


@dataclass(slots=True, eq=False)
class Delivery:
    """The records of one chunk that a poll returns, with the acknowledgement type of each acquired
    offset."""

    chunk: ShareChunk
    offsets: Int64
    """Offsets of the records, ascending."""
    types: Int8
    """A type each, GAP where there is no record, or UNDECIDED."""

    @property
    def left(self) -> int:
        """Number of records without an acknowledgement."""
        return int((self.types == UNDECIDED).sum())

    def find(self, offset: int) -> int:
        """The row of an offset; -1 if this delivery does not have it."""
        row = int(np.searchsorted(self.offsets, offset))
        return row if row < len(self.offsets) and self.offsets[row] == offset else -1

    def decide(self, rows: npt.NDArray[np.intp], types: Int8) -> None:
        """Acknowledge rows by `types`; an acknowledgement that is not sent yet is replaced."""
        self.types[rows] = types

    def decide_rest(self, chosen: AcknowledgeType) -> None:
        """Acknowledge all undecided records by the type `chosen`."""
        self.types[self.types == UNDECIDED] = chosen


def delivery_of(chunk: ShareChunk, decoded: Decoded) -> Delivery:
    """The delivery of a chunk's records. Offsets without a record, and records that do not decode,
    are acknowledged in it."""
    offsets = offsets_of(chunk.acquired)
    types = np.full(len(offsets), GAP, np.int8)
    types[np.searchsorted(offsets, decoded.offsets)] = UNDECIDED
    types[np.searchsorted(offsets, decoded.damaged)] = AcknowledgeType.REJECT
    return Delivery(chunk, offsets, types)


class InFlight:
    """All deliveries of one consumer with records that are undecided, or whose acknowledgements are
    not sent or have no outcome; and what was acquired before that."""

    def __init__(self) -> None:
        self.pending: deque[ShareChunk] = deque()
        """Chunks of which no poll has returned the records."""
        self.renewed: list[Delivery] = []
        """Deliveries whose locks were renewed, to be returned again."""
        self.outcomes: deque[AckResult] = deque()
        """Outcomes of acknowledgements that `complete_first` has not noted."""
        self._deliveries: list[Delivery] = []
        self._unsent: list[Acks] = []
        self._renewing: dict[int, ShareChunk] = {}
        self._incomplete: dict[int, tuple[TopicPartition, int]] = {}
        """Number of acknowledgements → partition, and how many of its offsets have no outcome."""
        self._numbers = 0

    @property
    def undecided(self) -> int:
        """Number of records that are not acknowledged."""
        return sum(delivery.left for delivery in self._deliveries)

    @property
    def renewing(self) -> bool:
        """True if locks are being renewed, or records whose locks were are to be returned again."""
        return bool(self._renewing or self.renewed)

    def incomplete(self) -> list[TopicPartition]:
        """Partitions of which acknowledgements have no outcome yet."""
        return list(dict.fromkeys(partition for partition, _ in self._incomplete.values()))

    def hand_out(self, deliveries: Sequence[Delivery]) -> None:
        """Note that a poll returns the records of `deliveries`, all at once: its last step, after
        which nothing can end it before its caller has the records."""
        chunks = {id(delivery.chunk) for delivery in deliveries}
        returned = {id(delivery) for delivery in deliveries}
        at_once(
            partial(self._deliveries.extend, deliveries),
            partial(setattr, self, "pending", deque(each for each in self.pending if id(each) not in chunks)),
            partial(setattr, self, "renewed", [each for each in self.renewed if id(each) not in returned]),
        )

    def release_pending(self) -> None:
        """Release all records that no poll has returned."""
        released = [
            Delivery(chunk, offsets, np.full(len(offsets), AcknowledgeType.RELEASE, np.int8))
            for chunk in self.pending
            for offsets in (offsets_of(chunk.acquired),)
        ]
        at_once(
            partial(self._deliveries.extend, released),
            partial(setattr, self, "pending", deque()),
        )

    def decide_rest(self, chosen: AcknowledgeType) -> None:
        """Acknowledge all undecided records by the type `chosen`."""
        for delivery in self._deliveries:
            delivery.decide_rest(chosen)

    def acknowledge(self, partition: TopicPartition, offset: int, chosen: AcknowledgeType) -> None:
        """Acknowledge one record. UsageError if it is not in flight."""
        for delivery in self._deliveries:
            if delivery.chunk.partition == partition and (row := delivery.find(offset)) >= 0:
                if delivery.types[row] == GAP:
                    break
                delivery.types[row] = chosen
                return
        raise not_in_flight(partition, offset)

    def rows_of(
        self, partition: TopicPartition, offsets: Int64
    ) -> list[tuple[Delivery, npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
        """Rows of records of one partition: (delivery, its rows, indexes into `offsets`).

        UsageError if one is not in flight.
        """
        found: list[tuple[Delivery, npt.NDArray[np.intp], npt.NDArray[np.intp]]] = []
        missing = np.ones(len(offsets), np.bool_)
        for delivery in self._deliveries:
            if delivery.chunk.partition != partition or not len(delivery.offsets):
                continue
            rows = np.searchsorted(delivery.offsets, offsets)
            rows[rows == len(delivery.offsets)] = 0
            here = (delivery.offsets[rows] == offsets) & (delivery.types[rows] != GAP)
            missing &= ~here
            found.append((delivery, rows[here], np.flatnonzero(here)))
        if missing.any():
            raise not_in_flight(partition, int(offsets[missing][0]))
        return found

    def to_send(self) -> Sequence[Acks]:
        """All acknowledgements that are not `sent`, in the order of their numbers; records that are
        undecided stay."""
        number = self._numbers
        fresh: list[Acks] = []
        kept: list[Delivery] = []
        incomplete: dict[int, tuple[TopicPartition, int]] = {}
        renewing: dict[int, ShareChunk] = {}
        for delivery in self._deliveries:
            chunk, decided = delivery.chunk, delivery.types != UNDECIDED
            if not decided.any():
                kept.append(delivery)
                continue
            number += 1
            offsets, types = delivery.offsets[decided], delivery.types[decided]
            acks = Acks(number, chunk.partition, chunk.topic_id, chunk.node_id, chunk.session, offsets, types)
            fresh.append(acks)
            incomplete[number] = chunk.partition, len(offsets)
            if acks.renews:
                renewing[number] = chunk
            if not decided.all():
                kept.append(Delivery(chunk, delivery.offsets[~decided], delivery.types[~decided]))
        if fresh:
            at_once(
                partial(setattr, self, "_numbers", number),
                partial(setattr, self, "_deliveries", kept),
                partial(setattr, self, "_unsent", [*self._unsent, *fresh]),
                partial(self._incomplete.update, incomplete),
                partial(self._renewing.update, renewing),
            )
        return self._unsent

    def sent(self) -> None:
        """Note that the machine has what `to_send` gave. If Ctrl-C comes before, the machine gets
        that again, and knows it by the numbers."""
        self._unsent = []

    def complete_first(self, outcomes: deque[AckResult]) -> None:
        """Take the first of `outcomes` and note it; records whose locks were renewed are to be
        returned again."""
        acks, error = outcomes[0]
        number = acks.number
        incomplete, renewing, renewed = dict(self._incomplete), dict(self._renewing), list(self.renewed)
        partition, left = incomplete.pop(number, (acks.partition, 0))
        if left > len(acks.offsets):
            incomplete[number] = partition, left - len(acks.offsets)
        chunk = renewing.get(number)
        if chunk is not None:
            if number not in incomplete:
                del renewing[number]
            again = acks.offsets[acks.types == AcknowledgeType.RENEW]
            if error is None and len(again):
                renewed.append(Delivery(chunk, again, np.full(len(again), UNDECIDED, np.int8)))
        at_once(
            outcomes.popleft,
            partial(setattr, self, "_incomplete", incomplete),
            partial(setattr, self, "_renewing", renewing),
            partial(setattr, self, "renewed", renewed),
        )


def not_in_flight(partition: TopicPartition, offset: int) -> UsageError:
    """The error for acknowledging a record that is not in flight."""
    return UsageError(
        f"the record at offset {offset} of {partition} cannot be acknowledged: the last poll did not return "
        "it, or its acknowledgement was sent"
    )


def numbers_of(names: Sequence[object]) -> Int8:
    """Types of acknowledgements by name, in any case. UsageError names one that does not exist."""
    found = np.full(len(names), UNDECIDED, np.int8)
    for row, name in enumerate(names):
        if name is None:
            continue
        try:
            found[row] = AcknowledgeType[str(name).upper()]
        except KeyError:
            known = ", ".join(each.name.lower() for each in AcknowledgeType)
            raise UsageError(f"acknowledge type {name!r} does not exist; there are {known}") from None
    return found
