"""One partition of `__share_group_state` in memory: the states of share partitions, as the fold of
its records (`apply`, `replay`), and writing to it."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.controller import SHARE_STATE_TOPIC
from fairlead_kafka.broker.shards import APPEND_ERRORS
from fairlead_kafka.broker.share_groups.share_state import (
    ShareKey,
    ShareState,
    StateEntry,
    decode_entry,
    encode_entry,
)
from fairlead_kafka.records import RecordColumns, columns_from_lists, decode

Written = Callable[[int], None]
"""written(error code for a client, 0 if it stands) is called once the log has committed."""
Append = Callable[[str, int, RecordColumns, Callable[[int, int], None]], None]
"""append(topic, partition, columns, done) appends records, then calls done(error code, base
offset)."""


@dataclass(slots=True)
class Kept:
    """A state in memory: `updates` since its snapshot, which lies at `snapshot_position`; -1: it is
    being written."""

    state: ShareState
    updates: int = 0
    snapshot_position: int = -1


@dataclass(slots=True, eq=False)
class PendingWrite:
    """Records that are being written; each of `after` is called with the error code, once."""

    after: list[Written]


@dataclass(slots=True, eq=False)
class StateShard:
    """The share partitions of one partition of `__share_group_state` that this broker leads."""

    partition: int
    loaded: bool = False
    states: dict[ShareKey, Kept] = field(default_factory=dict)
    writes: deque[PendingWrite] = field(default_factory=deque)
    """Writes under way to the log, in order."""
    end: int = 0
    """The offset behind the last record that was taken into memory."""

    def needed_from(self) -> int:
        """The offset before which no record is needed any more: every state has a snapshot behind
        it."""
        positions = [one.snapshot_position for one in self.states.values()]
        return 0 if -1 in positions or self.writes else min(positions, default=self.end)

    def check(self) -> None:
        """Raise CheckFailed unless all states have an order of their snapshots, and are in it."""
        for key, kept in self.states.items():
            batches = kept.state.batches
            for one, other in itertools.pairwise(batches):
                holds(f"{key}: batches {one} and {other} are in order", one.last < other.first)
            holds(f"{key}: batches begin before {kept.state.start_offset}", _from_start(kept.state))


def _from_start(state: ShareState) -> bool:
    return not state.batches or state.batches[0].first >= state.start_offset


def apply(shard: StateShard, entry: StateEntry, position: int) -> None:
    """Apply a record to a shard; `position` is its offset, -1 while it is being written."""
    key, value = entry
    if value is None:
        shard.states.pop(key, None)
    elif isinstance(value, ShareState):
        shard.states[key] = Kept(value, 0, position)
    else:
        kept = shard.states.get(key)
        if kept is not None:
            kept.state = kept.state.updated(value)
            kept.updates += 1
    shard.end = max(shard.end, position + 1)


def replay(shard: StateShard, batches: bytes, from_offset: int) -> None:
    """Take batches of the log into memory. Records that are not Kafka's are passed over: they are
    not ours."""
    records = decode(batches, from_offset=from_offset, want_headers=False)
    keys = records.keys.to_list() if records.keys is not None else [None] * records.count
    for key_bytes, value, position in zip(
        keys, records.values.to_list(), records.offsets.tolist(), strict=True
    ):
        try:
            entry = None if key_bytes is None else decode_entry(key_bytes, value)
        except DecodeError:
            continue
        if entry is not None:
            apply(shard, entry, position)


class StateLog:
    """Writes to the shards of one broker."""

    def __init__(self, append: Append, in_doubt: Callable[[StateShard], None]) -> None:
        self._append = append
        self._in_doubt = in_doubt

    @hook("share state: entries are told once they are committed")
    def write(self, shard: StateShard, entries: Sequence[StateEntry], written: Written) -> None:
        """Write entries as one batch; written(0) once they are committed, written(error code) if
        they fail. BrokerError if they cannot be appended: then nothing has changed.

        Entries are applied to the shard as soon as they are appended, so that the next request sees
        them. If they fail after that, the shard in memory differs from the log, and is read again.
        """
        encoded = [encode_entry(entry) for entry in entries]
        columns = columns_from_lists([key for key, _ in encoded], [value for _, value in encoded])
        write = PendingWrite([written])
        taken, outcome = False, int(ErrorCode.NONE)

        def take() -> None:
            nonlocal taken
            taken = True
            for entry in entries:
                apply(shard, entry, -1)

        def done(error: int, base_offset: int) -> None:
            nonlocal outcome
            outcome = APPEND_ERRORS.get(error, error)
            if not error and not taken:
                take()
            elif error and taken:
                self._in_doubt(shard)
            if write in shard.writes:
                shard.writes.remove(write)
            if not error:
                _note_positions(shard, entries, base_offset)
            if taken:
                for one in write.after:
                    one(outcome)

        shard.writes.append(write)
        self._append(SHARE_STATE_TOPIC, shard.partition, columns, done)
        if outcome and not taken:
            raise BrokerError(outcome, f"the log of share partition {entries[0][0]} takes nothing just now")
        if not taken:
            take()

    def when_committed(self, shard: StateShard, committed: Written) -> None:
        """Call `committed` once all entries written so far are committed: at once if they are."""
        if shard.writes:
            shard.writes[-1].after.append(committed)
        else:
            committed(ErrorCode.NONE)


def _note_positions(shard: StateShard, entries: Sequence[StateEntry], base_offset: int) -> None:
    """Note the offsets of the snapshots among `entries`, which are committed from `base_offset`
    on."""
    for index, (key, value) in enumerate(entries):
        kept = shard.states.get(key)
        if kept is None or not isinstance(value, ShareState):
            continue
        if kept.snapshot_position < 0 and kept.state.snapshot_epoch == value.snapshot_epoch:
            kept.snapshot_position = base_offset + index
    shard.end = max(shard.end, base_offset + len(entries))
