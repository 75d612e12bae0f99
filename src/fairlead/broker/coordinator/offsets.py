"""Committed offsets: from a request to records in `__consumer_offsets`, and from there to memory.

An offset is in memory, and so can be fetched, once its record is written; never before. Records of one partition are written, and
their `written` called, in order, so memory is the fold of the log, live and on replay (`apply` serves both).

An offset committed in a transaction (KIP-98) is kept aside with its group until the transaction's marker comes: then it counts, unless a
later record has overtaken it, or is dropped. Replay sees the same batches and markers in the same order.

The log of offsets is not compacted as others would be. Instead a shard that has grown to many times its live offsets appends
these once more (a checkpoint), and when that is written, the partition's start moves up to the oldest record that still counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import DecodeError
from fairlead.base.ids import TopicPartition
from fairlead.broker.controller import OFFSETS_TOPIC
from fairlead.broker.coordinator.group import CommittedOffset, Group
from fairlead.broker.coordinator.offset_records import OffsetKey, decode_key, decode_value, encode_key, encode_value
from fairlead.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead.records import BatchHeader, RecordColumns, columns_from_lists, decode, end_marker, scan

CHUNK_MAX_BYTES = 256 * 1024
"""Bytes of keys and values written as one batch: well below any topic's max.message.bytes default."""
CHECKPOINT_MIN_RECORDS = 10_000
CHECKPOINT_GROWTH = 4
"""A shard is written anew when its log holds more than CHECKPOINT_MIN_RECORDS and this many times its live offsets."""

_APPEND_ERRORS: dict[int, int] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""What a client is told when the log of offsets could not be written (Kafka's `GroupMetadataManager.storeOffsets`)."""

Entry = tuple[OffsetKey, CommittedOffset | None]
"""One record: an offset, or None to take it back."""


Append = Callable[[str, int, RecordColumns, Callable[[int, int], None], ProducerIdentity], None]
"""append(topic, partition, columns, done, producer) appends records, then calls done(error code, base offset)."""
RaiseStart = Callable[[int, int], None]
"""raise_start(partition, offset) lets go of what a partition of offsets holds before `offset`."""


@dataclass(slots=True, eq=False)
class Shard:
    """The groups of one partition of `__consumer_offsets` that this broker leads."""

    partition: int
    loaded: bool = False
    groups: dict[str, Group] = field(default_factory=dict)
    log_records: int = 0
    """Records in the partition's log, those that no longer count included."""
    log_end: int = 0
    """The offset after the last record that memory has."""
    checkpoint_at: int = CHECKPOINT_MIN_RECORDS
    """How many records the log may hold before a checkpoint is thought of."""
    checkpointing: bool = False
    in_flight: Counter[OffsetKey] = field(default_factory=Counter)
    """Keys with records appended and not written yet."""
    in_transaction: dict[int, set[str]] = field(default_factory=dict)
    """Producer id → the groups that its open transaction commits offsets of."""

    def live(self) -> list[Entry]:
        """Every offset that counts."""
        return [(OffsetKey(group.group_id, of), one) for group in self.groups.values() for of, one in group.offsets.items()]

    def aside(self) -> list[int]:
        """The positions of all records that wait for the end of a transaction."""
        groups = self.groups.values()
        return [one.position for group in groups for offsets in group.transactional.values() for one in offsets.values()]

    def group(self, group_id: str, wall_ms: int) -> Group:
        """The group, made if it is not there."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, quiet_since_ms=wall_ms)
        return group


class Offsets:
    """Writes offsets of all shards of one broker."""

    def __init__(self, append: Append, raise_start: RaiseStart) -> None:
        self._append_columns = append
        self._raise_start = raise_start

    def write(
        self,
        shard: Shard,
        entries: Sequence[Entry],
        written: Callable[[dict[OffsetKey, int]], None],
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> None:
        """Write entries; then written(key → error code for a client, 0 if it stands), exactly once.

        With a `producer` they belong to its transaction.
        """
        errors: dict[OffsetKey, int] = {}
        chunks = list(_chunks(entries))
        waiting = len(chunks)
        for key, _ in entries:
            shard.in_flight[key] += 1
            group = shard.groups.get(key.group_id)
            if group is not None:
                group.pending_writes += 1

        def done(chunk: list[Entry], error: int, base_offset: int) -> None:
            nonlocal waiting
            for index, (key, committed) in enumerate(chunk):
                errors[key] = _APPEND_ERRORS.get(error, error)
                shard.in_flight[key] -= 1
                if not shard.in_flight[key]:
                    del shard.in_flight[key]
                group = shard.groups.get(key.group_id)
                if group is not None:
                    group.pending_writes -= 1
                if not error:
                    apply(shard, key, committed, base_offset + index, producer.producer_id)
            if not error:
                shard.log_records += len(chunk)
                shard.log_end = base_offset + len(chunk)
            waiting -= 1
            if not waiting:
                written(errors)
                self._checkpoint_if_due(shard)

        if not chunks:
            written({})
        for chunk in chunks:
            self._append(shard, chunk, lambda error, base_offset, chunk=chunk: done(chunk, error, base_offset), producer)  # type: ignore[misc]

    def _append(self, shard: Shard, chunk: list[Entry], done: Callable[[int, int], None], producer: ProducerIdentity) -> None:
        keys: list[bytes | None] = [encode_key(key) for key, _ in chunk]
        values = [None if committed is None else encode_value(committed) for _, committed in chunk]
        self._append_columns(OFFSETS_TOPIC, shard.partition, columns_from_lists(keys, values), done, producer)

    def _checkpoint_if_due(self, shard: Shard) -> None:
        if shard.checkpointing or shard.log_records <= shard.checkpoint_at:
            return
        # What memory has of a key in flight is older than what the log has: written now, it would come after that and win.
        # Likewise one that a transaction is about to replace: the transaction's record would be taken for the older one.
        live = [
            entry
            for entry in shard.live()
            if entry[0] not in shard.in_flight and not shard.groups[entry[0].group_id].unstable(entry[0].partition)
        ]
        shard.checkpoint_at = CHECKPOINT_MIN_RECORDS + CHECKPOINT_GROWTH * len(live)
        if shard.log_records <= shard.checkpoint_at:
            return
        shard.checkpointing = True

        def written(errors: dict[OffsetKey, int]) -> None:
            shard.checkpointing = False
            if any(errors.values()):
                return
            positions = [committed.position for _, committed in shard.live() if committed is not None] + shard.aside()
            shard.log_records = len(positions)
            self._raise_start(shard.partition, min(positions, default=shard.log_end))

        self.write(shard, live, written)


def apply(shard: Shard, key: OffsetKey, committed: CommittedOffset | None, position: int, producer_id: int = -1) -> None:
    """Take the record at offset `position` into memory. Records come in the log's order, live and on replay."""
    group = shard.groups.get(key.group_id)
    if group is None:
        if committed is None:
            return
        group = shard.groups[key.group_id] = Group(key.group_id)
    if committed is None:
        group.offsets.pop(key.partition, None)
        for offsets in group.transactional.values():
            offsets.pop(key.partition, None)
    elif producer_id >= 0:
        group.transactional.setdefault(producer_id, {})[key.partition] = replace(committed, position=position)
        shard.in_transaction.setdefault(producer_id, set()).add(key.group_id)
    else:
        group.offsets[key.partition] = replace(committed, position=position)


def apply_end(shard: Shard, producer_id: int, committed: bool) -> None:
    """A marker came: what the producer's transaction commits counts now, or is dropped."""
    for group_id in shard.in_transaction.pop(producer_id, ()):
        group = shard.groups.get(group_id)
        offsets = group.transactional.pop(producer_id, {}) if group is not None else {}
        for of, one in offsets.items() if committed else ():
            assert group is not None
            current = group.offsets.get(of)
            if current is None or current.position < one.position:
                group.offsets[of] = one


def replay(shard: Shard, batches: bytes, from_offset: int) -> None:
    """Take batches of the log into memory. Records that are not Kafka's committed offsets are passed over: they are not ours."""
    view = memoryview(batches)
    for header, start, stop in _runs(scan(batches)):
        if header.control:
            marker = end_marker(batches, header)
            shard.log_records += 1
            shard.log_end = header.last_offset + 1
            if marker is not None:
                apply_end(shard, header.producer_id, marker.committed)
        else:
            _replay_records(shard, view[start:stop], from_offset, header.producer_id if header.transactional else -1)


def _runs(headers: Sequence[BatchHeader]) -> Iterable[tuple[BatchHeader, int, int]]:
    """(header, start, stop) of each batch that belongs to a transaction, and of each run of others, which are read in one go."""
    first: BatchHeader | None = None
    stop = 0
    for header in headers:
        alone = header.transactional or header.control
        if first is not None and alone:
            yield first, first.position, stop
            first = None
        if alone:
            yield header, header.position, header.stop
        else:
            first = first or header
        stop = header.stop
    if first is not None:
        yield first, first.position, stop


def _replay_records(shard: Shard, batches: memoryview, from_offset: int, producer_id: int) -> None:
    records = decode(batches, from_offset=from_offset, want_headers=False)
    keys = records.keys.to_list() if records.keys is not None else [None] * records.count
    for key_bytes, value, position in zip(keys, records.values.to_list(), records.offsets.tolist(), strict=True):
        shard.log_records += 1
        shard.log_end = position + 1
        try:
            key = None if key_bytes is None else decode_key(key_bytes)
            committed = None if value is None else decode_value(value, position)
        except DecodeError:
            continue
        if key is not None:
            apply(shard, key, committed, position, producer_id)


def tombstones(group: Group, partitions: Iterable[TopicPartition]) -> list[Entry]:
    """The entries that take back a group's offsets of `partitions`, those of open transactions included."""
    return [(OffsetKey(group.group_id, of), None) for of in partitions if of in group.offsets or group.unstable(of)]


def expired(group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    """The partitions whose offset is past retention (KIP-211).

    Counted from the commit, or from when the group lost its last member or was loaded, whichever is later. While it has
    members, an offset expires only if none of them may be reading the topic.
    """
    partitions = []
    for of, committed in group.offsets.items():
        since_ms = committed.commit_ms if group.members else max(committed.commit_ms, group.quiet_since_ms)
        reading = bool(group.members) and (group.protocol_name is None or group.protocol_type != "consumer" or group.subscribes(of.topic))
        if not reading and not group.unstable(of) and now_ms - since_ms >= retention_ms:
            partitions.append(of)
    return partitions


def _chunks(entries: Sequence[Entry]) -> Iterable[list[Entry]]:
    chunk: list[Entry] = []
    size_bytes = 0
    for key, committed in entries:
        entry_bytes = 64 + 4 * (len(key.group_id) + len(key.partition.topic) + (len(committed.metadata) if committed else 0))
        if chunk and size_bytes + entry_bytes > CHUNK_MAX_BYTES:
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append((key, committed))
        size_bytes += entry_bytes
    if chunk:
        yield chunk
