"""One assigned partition: its phase and position, and its fetched chunks."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import nan
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.ids import NO_LEADER, NO_LEADER_EPOCH, NO_OFFSET, NO_TOPIC_ID, TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.fetch_session import Asked
from fairlead_kafka.core.group_offsets import Position
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.partition_offsets import leader_problem
from fairlead_kafka.records.layout import HEADER_SIZE_BYTES, LAST_OFFSET_DELTA, LENGTH_PREFIX_BYTES

NO_END = 2**63 - 1
"""An end that no offset reaches."""

assert NO_OFFSET < 0 < NO_END

MISSING_GRACE_MS = 1_000
"""How long a topic must have been missing before a poll that found nothing says so: one just
created may not be known yet."""
RANGE_MISSING_GRACE_MS = 10_000
"""How long a topic must have been missing before a read of a range ends: it was there when its ends
were looked up, and who skips what is lost must not skip what one broker does not know of."""


class Phase(Enum):
    """Phase of an assigned partition."""

    UNPLACED = auto()
    """No position yet; a seek to an end, committed offset or reset policy says how to find it."""
    PLACING = auto()
    """Its leader, or its group's coordinator, was asked for the position."""
    FETCHING = auto()
    """It has a position and is fetched from."""
    CHECKING = auto()
    """Its position was called out of range and must not be reset: its leader was asked what there
    is."""
    FAILED = auto()
    """It has an error that only a seek ends; polls raise it after the data before it."""


class Signal(Enum):
    """Events that change the phase of a partition."""

    SEEK = auto()
    SEEK_END = auto()
    ASK = auto()
    PLACED = auto()
    OUT_OF_RANGE = auto()
    RESET = auto()
    FAIL = auto()


TRANSITIONS: dict[tuple[Phase, Signal], Phase] = {
    **{(phase, Signal.SEEK): Phase.FETCHING for phase in Phase},
    **{(phase, Signal.SEEK_END): Phase.UNPLACED for phase in Phase},
    (Phase.UNPLACED, Signal.ASK): Phase.PLACING,
    (Phase.PLACING, Signal.PLACED): Phase.FETCHING,
    (Phase.PLACING, Signal.RESET): Phase.UNPLACED,
    (Phase.FETCHING, Signal.RESET): Phase.UNPLACED,
    (Phase.FETCHING, Signal.OUT_OF_RANGE): Phase.CHECKING,
    (Phase.CHECKING, Signal.PLACED): Phase.FETCHING,
    **{(phase, Signal.FAIL): Phase.FAILED for phase in Phase},
}


class Chunk(NamedTuple):
    """One partition's part of a fetch answer, for the client class, which decodes it."""

    partition: TopicPartition
    generation: int
    start: int
    end: int
    next_offset: int
    data: memoryview
    node_id: int
    aborted: Sequence[tuple[int, int]] = ()
    """(producer id, first offset) of the aborted transactions in `data`, whose records are left
    out."""
    epoch: int = NO_LEADER_EPOCH
    """The leader epoch of the last record before `start`, as far as it was read."""
    readable_end: int = NO_OFFSET
    """The offset after the last one that could be read when it was fetched."""
    log_start: int = NO_OFFSET
    """The first offset of the log when it was fetched."""

    @property
    def position(self) -> Position:
        """The consumer's position before any record of this chunk is returned."""
        return Position(self.start, self.epoch)

    def position_at(self, offset: int) -> Position:
        """The consumer's position with `offset` as the next record. Its leader epoch is that of the
        last batch that begins before `offset`."""
        return (
            self.position
            if offset <= self.start
            else Position(offset, epoch_before(self.data, offset, self.epoch))
        )


@dataclass(slots=True, eq=False)
class PartitionState:
    """One assigned partition. `generation` grows with each seek, so that data fetched before the
    seek is recognised, and dropped."""

    partition: TopicPartition
    generation: int
    moved: list[PartitionState]
    """List in which it notes that its phase changed, so that its machine need not look at every
    partition in every step."""
    phase: Phase = Phase.UNPLACED
    position: int = NO_OFFSET
    """The next offset to fetch."""
    last_epoch: int = NO_LEADER_EPOCH
    """The leader epoch of the last record fetched, as long as the position follows from it."""
    topic_id: UUID = NO_TOPIC_ID
    """The topic that was read up to the position; NO_TOPIC_ID: none since it was placed."""
    target: int | None = None
    """EARLIEST or LATEST, to look there; None: at a committed offset, else the reset policy."""
    resets: bool = True
    """A position out of range is reset by policy; False: it is an error."""
    reset: bool = False
    """True after the position was out of range: what the group has committed is of no use."""
    end: int = NO_END
    """Do not fetch at or above this offset."""
    paused: bool = False
    error: Exception | None = None
    reported: bool = False
    """A poll has raised `error`: the next one lets records of other partitions go first."""
    readable_end: int = NO_OFFSET
    """The offset after the last one that may be read: the high watermark, with read_committed the
    last stable offset."""
    log_start: int = NO_OFFSET
    """The first offset of the log, from the last answer of a broker."""
    read_replica: int = NO_LEADER
    """The broker that the leader prefers it to be read at; NO_LEADER: the leader itself."""
    replica_until_ns: int = 0
    asked: Asked | None = None
    """Parameters of its last fetch; the fetcher's own."""
    retry_at_ns: int = 0
    failures: int = 0
    missing_since_ns: int | None = None
    """Since when metadata has said that there is no such topic or partition."""

    def gauges(self, position: int) -> dict[str, float]:
        """The partition's present metrics; `position` is the offset of the next record to return,
        NO_OFFSET if it is not known."""
        behind = NO_OFFSET in (position, self.readable_end)
        ahead = NO_OFFSET in (position, self.log_start)
        return {
            "records-lag": nan if behind else max(0, self.readable_end - position),
            "records-lead": nan if ahead else max(0, position - self.log_start),
            "preferred-read-replica": self.read_replica,
        }

    def signal(self, signal: Signal) -> None:
        """Change the phase by `signal`. KeyError, a defect, if `TRANSITIONS` has no row for it."""
        self.phase = TRANSITIONS[self.phase, signal]
        self.moved.append(self)

    def fail(self, error: Exception) -> None:
        """Stop fetching this partition: polls raise `error`, until a seek."""
        self.signal(Signal.FAIL)
        self.error, self.reported = error, False

    def fetchable(self, now_ns: int) -> bool:
        """True if a fetch at `now_ns` (monotonic) may ask for this partition."""
        return (
            self.phase is Phase.FETCHING
            and not self.paused
            and self.position < self.end
            and now_ns >= self.retry_at_ns
        )


def failure_to_report(failed: Iterable[PartitionState], again: bool) -> Exception | None:
    """The error that a poll ends with, noted as reported; None: no error. `again`: also one that
    was reported before.

    An error is reported at once, and again only when the poll's time is up or nothing else can
    come: a caller that goes on after an error would otherwise never see the records of the other
    partitions.
    """
    for state in failed:
        if state.error is not None and (again or not state.reported):
            state.reported = True
            return state.error
    return None


def missing(
    partitions: Mapping[TopicPartition, PartitionState],
    metadata: Metadata,
    now_ns: int,
    grace_ms: int = MISSING_GRACE_MS,
) -> Exception | None:
    """The error for the first of `partitions` that the cluster has not had for `grace_ms`; None if
    it has all."""
    for partition, state in partitions.items():
        since_ns = state.missing_since_ns
        if since_ns is not None and now_ns - since_ns >= ms_to_ns(grace_ms):
            return leader_problem(metadata, partition)
    return None


_PREFIX = struct.Struct(">qi")
_DELTA = struct.Struct(">i")
_EPOCH = struct.Struct(">i")


def epoch_before(data: memoryview, offset: int, otherwise: int) -> int:
    """The leader epoch of the last batch in `data` that begins before `offset`; `otherwise` if none
    does."""
    position, found, size_bytes = 0, otherwise, len(data)
    while position + HEADER_SIZE_BYTES <= size_bytes:
        base_offset, length = _PREFIX.unpack_from(data, position)
        if base_offset >= offset or length <= 0:
            break
        (found,) = _EPOCH.unpack_from(data, position + LENGTH_PREFIX_BYTES)
        position += LENGTH_PREFIX_BYTES + length
    return found


def end_of_batches(data: memoryview, start: int) -> tuple[int, int, int]:
    """Offset after the last whole batch in `data`, that batch's leader epoch, and its end in bytes.

    (`start`, -1, 0) without a whole batch. A walk over offsets and lengths: what is in the batches
    is checked when they are decoded. A broker may cut the last batch short; and the walk ends at a
    batch that begins before the end of the one before it, whose records would be returned again.
    """
    position, last, end, size_bytes = 0, -1, -1, len(data)
    while position + HEADER_SIZE_BYTES <= size_bytes:
        base_offset, length = _PREFIX.unpack_from(data, position)
        after = position + LENGTH_PREFIX_BYTES + length
        if length <= 0 or after > size_bytes or base_offset < end:
            break
        (delta,) = _DELTA.unpack_from(data, position + LAST_OFFSET_DELTA)
        end = int(base_offset) + int(delta) + 1
        last, position = position, after
    if last < 0:
        return start, NO_LEADER_EPOCH, 0
    (epoch,) = _EPOCH.unpack_from(data, last + LENGTH_PREFIX_BYTES)
    return max(start, end), int(epoch), position
