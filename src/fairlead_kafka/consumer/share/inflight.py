"""Records that a poll has returned and that are not acknowledged yet.

The client class keeps them, in the caller's thread. Nothing here waits or sends: acknowledgements
are noted in columns and taken from there. Kafka's counterparts: `ShareFetch`, `ShareInFlightBatch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.checks import same
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
    """The records of one chunk that a poll returned, with the acknowledgement type of each acquired
    offset."""

    chunk: ShareChunk
    offsets: Int64
    """Offsets of the records, ascending."""
    types: Int8
    """A type each, GAP where there is no record, or UNDECIDED."""
    left: int
    """Number of records without an acknowledgement."""

    def find(self, offset: int) -> int:
        """The row of an offset; -1 if this delivery does not have it."""
        row = int(np.searchsorted(self.offsets, offset))
        return row if row < len(self.offsets) and self.offsets[row] == offset else -1

    def decide(self, rows: npt.NDArray[np.intp], types: Int8) -> None:
        """Acknowledge rows by `types`; an acknowledgement that is not sent yet is replaced."""
        self.left -= int((self.types[rows] == UNDECIDED).sum())
        self.types[rows] = types

    def decide_rest(self, chosen: AcknowledgeType) -> None:
        """Acknowledge all undecided records by the type `chosen`."""
        self.types[self.types == UNDECIDED] = chosen
        self.left = 0


class InFlight:
    """All deliveries of one consumer with records that are undecided, or whose acknowledgements are
    not sent or have no outcome."""

    def __init__(self) -> None:
        self._deliveries: list[Delivery] = []
        self._renewing: dict[int, Delivery] = {}
        self._renewed: list[Delivery] = []
        self._incomplete: dict[int, tuple[TopicPartition, int]] = {}
        """Number of what was sent → its partition, and how many of its offsets have no outcome."""
        self._numbers = 0

    @property
    def undecided(self) -> int:
        """Number of records that are not acknowledged."""
        return sum(delivery.left for delivery in self._deliveries)

    @property
    def renewing(self) -> bool:
        """True if locks are being renewed, or records whose locks were are to be returned again."""
        return bool(self._renewing or self._renewed)

    def incomplete(self) -> list[TopicPartition]:
        """Partitions of which acknowledgements that were sent have no outcome yet."""
        return list(dict.fromkeys(partition for partition, _ in self._incomplete.values()))

    def add(self, chunk: ShareChunk, decoded: Decoded) -> Delivery:
        """Note that the records of a chunk are returned. Offsets without a record, and records that
        do not decode, are acknowledged at once."""
        offsets = offsets_of(chunk.acquired)
        types = np.full(len(offsets), GAP, np.int8)
        found = decoded.offsets
        types[np.searchsorted(offsets, found)] = UNDECIDED
        types[np.searchsorted(offsets, decoded.damaged)] = AcknowledgeType.REJECT
        return self._keep(chunk, offsets, types)

    def _keep(self, chunk: ShareChunk, offsets: Int64, types: Int8) -> Delivery:
        delivery = Delivery(chunk, offsets, types, int((types == UNDECIDED).sum()))
        self._deliveries.append(delivery)
        return delivery

    def release(self, chunks: Iterable[ShareChunk]) -> None:
        """Release all records of some chunks, none of which a poll returned."""
        for chunk in chunks:
            offsets = offsets_of(chunk.acquired)
            self._keep(chunk, offsets, np.full(len(offsets), AcknowledgeType.RELEASE, np.int8))

    def decide_rest(self, chosen: AcknowledgeType) -> None:
        """Acknowledge all undecided records by the type `chosen`."""
        for delivery in self._deliveries:
            delivery.decide_rest(chosen)

    def acknowledge(self, partition: TopicPartition, offset: int, chosen: AcknowledgeType) -> None:
        """Acknowledge one record. UsageError if it is not in flight."""
        for delivery in self._deliveries:
            if delivery.chunk.partition == partition and (row := delivery.find(offset)) >= 0:
                before = delivery.types[row]
                if before == GAP:
                    break
                delivery.left -= before == UNDECIDED
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

    def take_decided(self) -> list[Acks]:
        """Take acknowledgements that are not sent; records that are undecided stay."""
        taken: list[Acks] = []
        kept: list[Delivery] = []
        for delivery in self._deliveries:
            decided = delivery.types != UNDECIDED
            if decided.any():
                taken.append(self._take(delivery, delivery.offsets[decided], delivery.types[decided]))
            if delivery.left:
                delivery.offsets, delivery.types = delivery.offsets[~decided], delivery.types[~decided]
                kept.append(delivery)
        self._deliveries = kept
        return taken

    def _take(self, delivery: Delivery, offsets: Int64, types: Int8) -> Acks:
        self._numbers += 1
        number, chunk = self._numbers, delivery.chunk
        self._incomplete[number] = (chunk.partition, len(offsets))
        if (types == AcknowledgeType.RENEW).any():
            self._renewing[number] = delivery
        return Acks(number, chunk.partition, chunk.topic_id, chunk.node_id, chunk.session, offsets, types)

    def complete(self, results: Iterable[AckResult]) -> None:
        """Note the outcomes of acknowledgements; records whose locks were renewed are to be
        returned again."""
        for acks, error in results:
            partition, left = self._incomplete.pop(acks.number, (acks.partition, 0))
            if left > len(acks.offsets):
                self._incomplete[acks.number] = (partition, left - len(acks.offsets))
            renewing = self._renewing.get(acks.number)
            if renewing is None:
                continue
            if acks.number not in self._incomplete:
                del self._renewing[acks.number]
            again = acks.offsets[acks.types == AcknowledgeType.RENEW]
            if error is None and len(again):
                types = np.full(len(again), UNDECIDED, np.int8)
                self._renewed.append(Delivery(renewing.chunk, again, types, len(again)))

    def take_renewed(self) -> list[Delivery]:
        """Deliveries to return again, whose records are undecided once more."""
        renewed, self._renewed = self._renewed, []
        return [self._keep(each.chunk, each.offsets, each.types) for each in renewed]

    def check(self) -> None:
        """Raise CheckFailed if the count of undecided records of a delivery is wrong."""
        for delivery in self._deliveries:
            same("undecided records", delivery.left, int((delivery.types == UNDECIDED).sum()))


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
