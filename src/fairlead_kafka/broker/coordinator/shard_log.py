"""Writes changes of offsets and groups as records to `__consumer_offsets`, and applies them to the
shard in memory.

An offset is in memory, and so can be fetched, once its record is committed; never before. Records
of one partition are committed, and their `written` called, in order, so memory is the fold of the
log, both for new records and on replay (`shard.apply` serves both).

The log is kept short as any other with `cleanup.policy=compact` is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.consumer_groups import encode_groups_key, encode_groups_value
from fairlead_kafka.broker.controller import OFFSETS_TOPIC
from fairlead_kafka.broker.coordinator.attendance import AttendanceHost
from fairlead_kafka.broker.coordinator.group import CommittedOffset, Group, GroupWrite
from fairlead_kafka.broker.coordinator.group_records import (
    GroupKey,
    GroupRecord,
    encode_group_key,
    encode_group_value,
)
from fairlead_kafka.broker.coordinator.offset_records import OffsetKey, encode_key, encode_value
from fairlead_kafka.broker.coordinator.shard import Entry, Key, Shard, Value, apply
from fairlead_kafka.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead_kafka.broker.shards import APPEND_ERRORS, CHUNK_MAX_BYTES
from fairlead_kafka.broker.share_groups import SHARE_KEYS, SHARE_VALUES, encode_share_key, encode_share_value
from fairlead_kafka.records import RecordColumns, columns_from_lists

_OFFSET_APPEND_ERRORS: dict[int, int] = APPEND_ERRORS | {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""Error of an append of offsets → error sent to the client (Kafka's
`GroupMetadataManager.storeOffsets`)."""
_GROUP_APPEND_ERRORS: dict[int, int] = APPEND_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS
}
"""Error of an append of a group's assignment → error sent to its members (Kafka's
`GroupMetadataManager.storeGroup`)."""

_CONSUMER_APPEND_ERRORS: dict[int, int] = APPEND_ERRORS
"""Error of an append of a consumer group's records → error sent to its members (Kafka's
`CoordinatorOperationExceptionHelper`)."""

Append = Callable[[str, int, RecordColumns, Callable[[int, int], None], ProducerIdentity], None]
"""append(topic, partition, columns, done, producer) appends records, then calls done(error code,
base offset)."""


class ShardLogHost(AttendanceHost, Protocol):
    """The parts of a broker that writing to shards uses."""

    settings: Settings


class ShardLog:
    """Writes the records of groups to all shards of one broker."""

    def __init__(self, host: ShardLogHost, append: Append, in_doubt: Callable[[Shard], None]) -> None:
        self._host = host
        self._append_columns = append
        self._in_doubt = in_doubt

    def write(
        self,
        shard: Shard,
        entries: Sequence[Entry],
        written: Callable[[dict[Key, int]], None],
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> None:
        """Write entries; then written({key: error code for clients, 0 if it is committed}), exactly
        once.

        With a `producer` they belong to its transaction. Entries that are not committed within
        `offsets.commit.timeout.ms`, for lack of replicas, are reported to have timed out; they may
        be committed all the same, later.
        """
        # Packed before anything is counted or timed: what cannot be packed leaves nothing behind.
        chunks = [(chunk, _columns(chunk)) for chunk in _chunks(entries)]
        written = self._within(entries, written)
        errors: dict[Key, int] = {}
        waiting = len(chunks)
        for key, _ in entries:
            shard.in_flight[key] += 1
            group = shard.groups.get(key.group_id)
            if group is not None:
                group.pending_writes += 1

        def done(chunk: list[Entry], error: int, base_offset: int) -> None:
            nonlocal waiting
            for index, (key, value) in enumerate(chunk):
                errors[key] = _client_error(key, error)
                shard.in_flight[key] -= 1
                if not shard.in_flight[key]:
                    del shard.in_flight[key]
                group = shard.groups.get(key.group_id)
                if group is not None:
                    group.pending_writes -= 1
                if not error:
                    apply(shard, key, value, base_offset + index, producer.producer_id)
            waiting -= 1
            if not waiting:
                written(errors)

        if not chunks:
            written({})
        for chunk, columns in chunks:
            chunk_done = partial(done, chunk)
            self._append_columns(OFFSETS_TOPIC, shard.partition, columns, chunk_done, producer)

    def write_at_once(
        self, shard: Shard, group: Group, entries: Sequence[Entry], written: Callable[[int], None]
    ) -> None:
        """Write entries of a group as one batch; written(error code for clients, 0 if they are
        committed), once. BrokerError if they cannot be appended: then nothing has changed.

        Entries are applied to the shard as soon as they are appended, so that the next request sees
        them. If they fail after that, the shard in memory differs from the log, and is read again.
        """
        columns = _columns(entries)
        write = GroupWrite([written])
        taken, error_code = False, -1

        def take() -> None:
            nonlocal taken
            taken = True
            for key, value in entries:
                apply(shard, key, value, -1)

        def done(error: int, _base_offset: int) -> None:
            nonlocal error_code
            error_code = _CONSUMER_APPEND_ERRORS.get(error, error)
            if not error and not taken:
                take()
            elif error and taken:
                self._in_doubt(shard)
            if write in group.writes:
                group.writes.remove(write)
                self._count(shard, group, entries, -1)
            if taken:
                timer.cancel()
                _report(write, error_code)

        def late() -> None:
            write.late = True
            _report(write, ErrorCode.COORDINATOR_NOT_AVAILABLE)

        deadline_ns = self._host.now_ns + ms_to_ns(self._host.settings["offsets.commit.timeout.ms"])
        timer = self._host.call_at(deadline_ns, late)
        group.writes.append(write)
        self._count(shard, group, entries, 1)
        self._append_columns(OFFSETS_TOPIC, shard.partition, columns, done, NO_PRODUCER)
        if error_code > 0 and not taken:
            timer.cancel()
            raise BrokerError(error_code, f"the log of group {group.group_id} takes nothing just now")
        if not taken:
            take()

    def _count(self, shard: Shard, group: Group, entries: Sequence[Entry], by: int) -> None:
        for key in [key for key, _ in entries if key.group_id == group.group_id]:
            shard.in_flight[key] += by
            group.pending_writes += by
            if not shard.in_flight[key]:
                del shard.in_flight[key]

    @hook("groups: entries are told once they are committed")
    def _within(
        self, entries: Sequence[Entry], written: Callable[[dict[Key, int]], None]
    ) -> Callable[[dict[Key, int]], None]:
        """A function that calls `written` once; if time is up first, it is called with a time-out
        for every key."""
        deadline_ns = self._host.now_ns + ms_to_ns(self._host.settings["offsets.commit.timeout.ms"])
        timer = self._host.call_at(
            deadline_ns,
            lambda: written({key: _client_error(key, ErrorCode.REQUEST_TIMED_OUT) for key, _ in entries}),
        )

        def once(errors: dict[Key, int]) -> None:
            if timer.pending:
                timer.cancel()
                written(errors)

        return once


def when_committed(group: Group, committed: Callable[[int], None]) -> None:
    """Call committed(error code) once all entries written so far of a consumer group are committed:
    at once if they are."""
    if not group.writes:
        committed(ErrorCode.NONE)
    elif group.writes[-1].late:
        committed(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    else:
        group.writes[-1].after.append(committed)


def _report(write: GroupWrite, error: int) -> None:
    waiting, write.after = write.after, []
    for one in waiting:
        one(error)


def _columns(chunk: Sequence[Entry]) -> RecordColumns:
    keys: list[bytes | None] = [_encode_key(key) for key, _ in chunk]
    return columns_from_lists(keys, [_encode(key, value) for key, value in chunk])


def _encode_key(key: Key) -> bytes:
    if isinstance(key, GroupKey):
        return encode_group_key(key)
    if isinstance(key, SHARE_KEYS):
        return encode_share_key(key)
    return encode_key(key) if isinstance(key, OffsetKey) else encode_groups_key(key)


def _client_error(key: Key, error: int) -> int:
    errors = _GROUP_APPEND_ERRORS if isinstance(key, GroupKey) else _OFFSET_APPEND_ERRORS
    return errors.get(error, error)


def _encode(key: Key, value: Value | None) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, GroupRecord):
        return encode_group_value(value)
    if isinstance(value, CommittedOffset):
        return encode_value(value)
    if isinstance(key, SHARE_KEYS):
        return encode_share_value(value)  # type: ignore[arg-type]
    assert not isinstance(key, GroupKey | OffsetKey)
    assert not isinstance(value, SHARE_VALUES)
    return encode_groups_value(key, value)


def tombstones(group: Group, partitions: Iterable[TopicPartition]) -> list[Entry]:
    """Tombstones of a group's offsets of `partitions`, also of those in open transactions."""
    return [
        (OffsetKey(group.group_id, of), None)
        for of in partitions
        if of in group.offsets or group.unstable(of)
    ]


def tombstones_of_gone(shard: Shard, gone: Callable[[str, CommittedOffset], bool]) -> list[Entry]:
    """Tombstones of offsets whose topics were deleted: gone(topic, offset) is true. A partition
    keeps its offsets while one of them, perhaps in a transaction, is of a topic that exists."""
    return [
        entry
        for group in shard.groups.values()
        for of in group.partitions()
        if all(gone(of.topic, one) for one in group.offsets_of(of))
        for entry in tombstones(group, [of])
    ]


def expired(group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """The partitions whose committed offset has expired (KIP-211). Retention counts from the
    commit, or from when the group lost its last member, whichever is later (Kafka counts from the
    latter alone, and so soon forgets what an admin set for a group that was empty for long). While
    the group has members, an offset expires only if none of them may be reading the topic."""
    consuming = group.consumer is not None
    since_ms = 0 if group.members or consuming else group.quiet_since_ms
    past = [
        of
        for of, committed in group.offsets.items()
        if now_ms - max(committed.commit_ms, since_ms) >= retention_ms and not group.unstable(of)
    ]
    if not past or not (group.members or consuming):
        return past
    if not consuming and (group.protocol_name is None or group.protocol_type != "consumer"):
        return []
    reading = group.reading()
    return [of for of in past if not reading(of.topic)]


def group_tombstone(group: Group) -> list[Entry]:
    """The tombstone of the group's own record; none if the log has no such record."""
    return [] if group.record is None else [(GroupKey(group.group_id), None)]


def _chunks(entries: Sequence[Entry]) -> Iterable[list[Entry]]:
    chunk: list[Entry] = []
    size_bytes = 0
    for entry in entries:
        entry_bytes = _size_bytes(*entry)
        if chunk and size_bytes + entry_bytes > CHUNK_MAX_BYTES:
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append(entry)
        size_bytes += entry_bytes
    if chunk:
        yield chunk


def _size_bytes(key: Key, value: Value | None) -> int:
    """An upper bound of the bytes that a record takes."""
    if isinstance(value, GroupRecord):
        texts = sum(len(text or "") for member in value.members for text in member[:4])
        return (
            256
            + 4 * (len(key.group_id) + texts)
            + sum(32 + len(one.metadata) + len(one.assignment) for one in value.members)
        )
    topic = key.partition.topic if isinstance(key, OffsetKey) else ""
    metadata = value.metadata if isinstance(value, CommittedOffset) else ""
    return 64 + 4 * (len(key.group_id) + len(topic) + len(metadata))
