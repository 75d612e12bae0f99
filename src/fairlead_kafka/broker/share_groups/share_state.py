"""State of a share partition at its share coordinator, as records of `__share_group_state` in
Kafka's own format (version 0 of each), so that Kafka's tools can read them.

| key | Kafka's name | key's fields after the version | value |
|---|---|---|---|
| 0 | `ShareSnapshot` | group, topic id, partition | `ShareState`, all of it |
| 1 | `ShareUpdate` | group, topic id, partition | `StateUpdate`, what is new since the snapshot |

Keys are not flexible, values are (KIP-482). A snapshot with a null value is a tombstone: it deletes
the state.
"""

from __future__ import annotations

import base64
import heapq
import itertools
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.broker.fields import Reader, Writer
from fairlead_kafka.broker.share_groups.window import StateBatch

NO_OFFSET = -1
"""Start offset that `share.auto.offset.reset` is still to say."""
NO_COUNT = -1
"""Count of complete records that is not known."""
_SNAPSHOT, _UPDATE = 0, 1
_VALUE_VERSION = 0
_COUNT_TAG = 0


class ShareKey(NamedTuple):
    """A share partition: what one group has of one partition."""

    group_id: str
    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        """The name by which FindCoordinator knows it (Kafka's `SharePartitionKey`)."""
        topic = base64.urlsafe_b64encode(self.topic_id.bytes).decode().rstrip("=")
        return f"{self.group_id}:{topic}:{self.partition}"


class ShareState(NamedTuple):
    """State of a share partition. `batches` are in order and do not overlap; times are ms since
    1970."""

    state_epoch: int
    start_offset: int
    snapshot_epoch: int = 0
    leader_epoch: int = 0
    complete_count: int = NO_COUNT
    created_ms: int = 0
    written_ms: int = 0
    batches: tuple[StateBatch, ...] = ()

    def updated(self, update: StateUpdate) -> ShareState:
        """The state after `update`; a number that is -1 there stays as it is. The start offset
        never moves back: an update with a lower one was overtaken by another, and its batches
        before the start, and its complete count, are obsolete."""
        start = max(self.start_offset, update.start_offset)
        epoch = self.leader_epoch if update.leader_epoch < 0 else update.leader_epoch
        overtaken = NO_OFFSET < update.start_offset < start
        return self._replace(
            leader_epoch=epoch,
            start_offset=start,
            complete_count=self.complete_count if overtaken else update.complete_count,
            batches=combined([*self.batches, *update.batches], start),
        )


class StateUpdate(NamedTuple):
    """Changes of a state since its snapshot of `snapshot_epoch`."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int = NO_COUNT
    batches: tuple[StateBatch, ...] = ()


StateEntry = tuple[ShareKey, ShareState | StateUpdate | None]
"""One record; value None: a tombstone."""


def combined(batches: Iterable[StateBatch], start: int) -> tuple[StateBatch, ...]:
    """Batches from `start` on without overlaps, and equal neighbours joined. Where batches overlap,
    the one with more deliveries counts, then the one with the greater state (Kafka's
    `PersisterStateBatchCombiner`)."""
    waiting = sorted(
        batch._replace(first=max(batch.first, start)) for batch in batches if batch.last >= start
    )
    borders = sorted({offset for batch in waiting for offset in (batch.first, batch.last + 1)})
    active: list[tuple[int, int, int]] = []
    found: list[StateBatch] = []
    position = 0
    for low, above in itertools.pairwise(borders):
        while position < len(waiting) and waiting[position].first <= low:
            batch = waiting[position]
            heapq.heappush(active, (-batch.deliveries, -batch.state, batch.last))
            position += 1
        while active and active[0][2] < low:
            heapq.heappop(active)
        if not active:
            continue
        count, state = -active[0][0], -active[0][1]
        if found and found[-1].last + 1 == low and (found[-1].state, found[-1].deliveries) == (state, count):
            found[-1] = found[-1]._replace(last=above - 1)
        else:
            found.append(StateBatch(low, above - 1, state, count))
    return tuple(found)


# --- Questions between brokers


def encode_deletion(key: ShareKey, state_epoch: int) -> bytes:
    """The body of a DeleteShareState: a share partition, and the last state epoch that is to be
    deleted."""
    writer = Writer()
    _write_key(writer, key)
    writer.number(">i", state_epoch)
    return writer.joined()


def decode_deletion(body: bytes) -> tuple[ShareKey, int]:
    """The share partition and the state epoch in a DeleteShareState. DecodeError for garbage."""
    reader = Reader(body, "a deletion of share state")
    key, state_epoch = _read_key(reader), reader.number(">i")
    if reader.left():
        raise reader.error()
    return key, state_epoch


def encode_deleted(error: int) -> bytes:
    """The body of the answer to a DeleteShareState: an error code."""
    return struct.pack(">h", error)


def decode_deleted(body: bytes) -> int:
    """The error code in an answer to a DeleteShareState. DecodeError for garbage."""
    return Reader(body, "an answer to a deletion of share state").number(">h")


# --- Records


def encode_entry(entry: StateEntry) -> tuple[bytes, bytes | None]:
    """Key and value of the record of an entry, in bytes."""
    key, value = entry
    writer = Writer()
    writer.number(">h", _UPDATE if isinstance(value, StateUpdate) else _SNAPSHOT)
    _write_key(writer, key)
    return writer.joined(), None if value is None else _encode(value)


def _write_key(writer: Writer, key: ShareKey) -> None:
    writer.text(key.group_id)
    writer.uuid(key.topic_id)
    writer.number(">i", key.partition)


def _read_key(reader: Reader) -> ShareKey:
    return ShareKey(reader.text(), reader.uuid(), reader.number(">i"))


def _encode(value: ShareState | StateUpdate) -> bytes:
    writer = Writer(compact=True)
    writer.number(">h", _VALUE_VERSION)
    if isinstance(value, ShareState):
        writer.number(
            ">iiiq", value.snapshot_epoch, value.state_epoch, value.leader_epoch, value.start_offset
        )
        writer.number(">qq", value.created_ms, value.written_ms)
    else:
        writer.number(">iiq", value.snapshot_epoch, value.leader_epoch, value.start_offset)
    _write_batches(writer, value.batches)
    count = value.complete_count
    writer.tags({} if count == NO_COUNT else {_COUNT_TAG: struct.pack(">i", count)})
    return writer.joined()


def _write_batches(writer: Writer, batches: Sequence[StateBatch]) -> None:
    writer.count(len(batches))
    for batch in batches:
        writer.number(">qqbh", *batch)
        writer.tags({})


def decode_entry(key_bytes: bytes, value: bytes | None) -> StateEntry | None:
    """The entry of a record; None for a record of another kind. DecodeError for garbage."""
    reader = Reader(key_bytes, "the key of a share partition")
    kind = reader.number(">h")
    if kind not in (_SNAPSHOT, _UPDATE):
        return None
    key = _read_key(reader)
    if reader.left():
        raise reader.error()
    if value is None:
        return key, None
    reader = Reader(value, f"the state of {key}", compact=True)
    reader.version(_VALUE_VERSION)
    return key, _read_snapshot(reader) if kind == _SNAPSHOT else _read_update(reader)


def _read_snapshot(reader: Reader) -> ShareState:
    snapshot_epoch, state_epoch, leader_epoch = (reader.number(">i") for _ in range(3))
    start, created_ms, written_ms = (reader.number(">q") for _ in range(3))
    batches = _read_batches(reader)
    return ShareState(
        state_epoch, start, snapshot_epoch, leader_epoch, _read_count(reader), created_ms, written_ms, batches
    )


def _read_update(reader: Reader) -> StateUpdate:
    snapshot_epoch, leader_epoch = reader.number(">i"), reader.number(">i")
    start = reader.number(">q")
    batches = _read_batches(reader)
    return StateUpdate(snapshot_epoch, leader_epoch, start, _read_count(reader), batches)


def _read_batches(reader: Reader) -> tuple[StateBatch, ...]:
    batches = []
    for _ in range(reader.count()):
        first, last = reader.number(">q"), reader.number(">q")
        batches.append(StateBatch(first, last, reader.number(">b"), reader.number(">h")))
        reader.tags()
    return tuple(batches)


def _read_count(reader: Reader) -> int:
    return reader.tagged(reader.tags(), _COUNT_TAG, ">i", NO_COUNT)
