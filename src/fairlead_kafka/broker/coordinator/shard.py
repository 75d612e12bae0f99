"""One partition of `__consumer_offsets` in memory: its groups with their offsets, as the fold of
its records (`apply`, `replay`).

An offset committed in a transaction (KIP-98) is kept pending with its group until the transaction's
marker: a commit makes it the committed offset, unless a later record is newer; an abort drops it.
Replay sees the same batches and markers in the same order as they were written.

A group's own record only says where its next coordinator continues: the members in memory are ahead
of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.broker.consumer_groups import (
    ConsumerGroup,
    EpochKey,
    GroupsKey,
    GroupsValue,
    apply_entry,
    decode_groups_key,
    decode_groups_value,
)
from fairlead_kafka.broker.coordinator.group import CommittedOffset, Group
from fairlead_kafka.broker.coordinator.group_records import (
    GroupKey,
    GroupRecord,
    decode_group_key,
    decode_group_value,
)
from fairlead_kafka.broker.coordinator.offset_records import OffsetKey, decode_key, decode_value
from fairlead_kafka.broker.coordinator.states import GroupState
from fairlead_kafka.broker.share_groups import (
    RETIRED,
    SHARE_KEYS,
    SHARE_VALUES,
    ShareEpoch,
    ShareEpochKey,
    ShareGroup,
    ShareGroupKey,
    ShareGroupValue,
    apply_share_entry,
    decode_share_key,
    decode_share_value,
)
from fairlead_kafka.records import BatchHeader, decode, end_marker, scan

Key = OffsetKey | GroupKey | GroupsKey | ShareGroupKey
Value = CommittedOffset | GroupRecord | GroupsValue | ShareGroupValue
Entry = tuple[Key, Value | None]
"""One record of an offset or a group, of any kind; value None: a tombstone."""


@dataclass(slots=True, eq=False)
class Shard:
    """The groups of one partition of `__consumer_offsets` that this broker leads."""

    partition: int
    loaded: bool = False
    groups: dict[str, Group] = field(default_factory=dict)
    in_flight: Counter[Key] = field(default_factory=Counter)
    """Keys with records appended and not written yet."""
    in_transaction: dict[int, set[str]] = field(default_factory=dict)
    """Producer id → the groups that its open transaction commits offsets of."""
    retired_epoch: int = 0
    """The greatest epoch of the share groups that were deleted: the next ones begin with it."""

    def group(self, group_id: str, wall_ms: int) -> Group:
        """The group of this id, made if there is none."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, quiet_since_ms=wall_ms)
        return group

    def existing(self, group_id: str, missing: int) -> Group:
        """The group of this id. BrokerError with the code `missing` if there is none."""
        group = self.groups.get(group_id)
        if group is None:
            raise BrokerError(missing, f"there is no group {group_id!r}")
        return group

    def forget(self, group: Group) -> None:
        """Forget a group without members and offsets; does nothing to any other."""
        if group.forgettable() and self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]
            group.state = GroupState.DEAD

    def check(self) -> None:
        """Raise CheckFailed unless the counts of writes and transactions fit the groups."""
        same("groups by id", list(self.groups), [group.group_id for group in self.groups.values()])
        writes: Counter[str] = Counter()
        for key, count in self.in_flight.items():
            holds(f"{count} writes of {key} are under way", count > 0)
            writes[key.group_id] += count
        by_producer: dict[int, set[str]] = {}
        for group in self.groups.values():
            same(f"group {group.group_id!r}: writes under way", group.pending_writes, writes[group.group_id])
            for producer_id in group.transactional:
                by_producer.setdefault(producer_id, set()).add(group.group_id)
            group.check()
        same("groups with offsets of open transactions", self.in_transaction, by_producer)


def apply(shard: Shard, key: Key, value: Value | None, position: int, producer_id: int = -1) -> None:
    """Apply the record at offset `position` to a shard. Records come in the log's order, live and
    on replay."""
    if isinstance(key, ShareEpochKey) and key == RETIRED:
        assert isinstance(value, ShareEpoch)
        shard.retired_epoch = value.epoch
        return
    group = shard.groups.get(key.group_id)
    if group is None:
        if value is None:
            return
        group = shard.groups[key.group_id] = Group(key.group_id)
    if isinstance(key, GroupKey):
        assert value is None or isinstance(value, GroupRecord)
        if group.consumer is None or value is None:  # else it was under way when the group's kind changed
            group.record, group.record_position = value, position
    elif isinstance(key, SHARE_KEYS):
        _apply_share(group, key, value)
    elif not isinstance(key, OffsetKey):
        _apply_consumer(group, key, value)
    else:
        assert value is None or isinstance(value, CommittedOffset)
        _apply_offset(shard, group, key, value, position, producer_id)


def _apply_share(group: Group, key: ShareGroupKey, value: Value | None) -> None:
    """Apply a record of a share group: the first one turns the group into a share group, the
    tombstone of its epoch turns it back."""
    if group.share is None:
        if value is None:
            return
        group.share = ShareGroup(group.group_id)
    apply_share_entry(group.share, key, value)  # type: ignore[arg-type]
    if isinstance(key, ShareEpochKey) and value is None and not group.share.members:
        group.share = None


def _apply_consumer(group: Group, key: GroupsKey, value: Value | None) -> None:
    """Apply a record of a consumer group: the first one turns the group into a consumer group, the
    tombstone of its epoch turns it back."""
    assert not isinstance(value, CommittedOffset | GroupRecord)
    assert not isinstance(value, SHARE_VALUES)
    if group.consumer is None:
        if value is None:
            return
        group.consumer = ConsumerGroup(group.group_id)
    apply_entry(group.consumer, key, value)
    if isinstance(key, EpochKey) and value is None and not group.consumer.members:
        group.consumer = None


def _apply_offset(
    shard: Shard,
    group: Group,
    key: OffsetKey,
    committed: CommittedOffset | None,
    position: int,
    producer_id: int,
) -> None:
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
    """Apply a transaction marker: offsets in the producer's transaction count from now on, or are
    dropped."""
    for group_id in shard.in_transaction.pop(producer_id, ()):
        group = shard.groups.get(group_id)
        offsets = group.transactional.pop(producer_id, {}) if group is not None else {}
        for of, one in offsets.items() if committed else ():
            assert group is not None
            current = group.offsets.get(of)
            if current is None or current.position < one.position:
                group.offsets[of] = one


def replay(shard: Shard, batches: bytes, from_offset: int) -> None:
    """Apply batches of the log to a shard. Records of unknown form are skipped: no coordinator
    wrote them."""
    view = memoryview(batches)
    for header, start, stop in _runs(scan(batches)):
        if header.control:
            marker = end_marker(batches, header)
            if marker is not None:
                apply_end(shard, header.producer_id, marker.committed)
        else:
            _replay_records(
                shard, view[start:stop], from_offset, header.producer_id if header.transactional else -1
            )


def _runs(headers: Sequence[BatchHeader]) -> Iterable[tuple[BatchHeader, int, int]]:
    """(header, start, stop) of each batch that belongs to a transaction, and of each run of others,
    which are decoded in one call."""
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
    for key_bytes, value, position in zip(
        keys, records.values.to_list(), records.offsets.tolist(), strict=True
    ):
        try:
            entry = None if key_bytes is None else _decode(key_bytes, value, position)
        except DecodeError:
            continue
        if entry is not None:
            apply(shard, *entry, position, producer_id)


def _decode(key_bytes: bytes, value: bytes | None, position: int) -> Entry | None:
    group_key = decode_group_key(key_bytes)
    if group_key is not None:
        return group_key, None if value is None else decode_group_value(value)
    groups_key = decode_groups_key(key_bytes)
    if groups_key is not None:
        return groups_key, None if value is None else decode_groups_value(groups_key, value)
    share_key = decode_share_key(key_bytes)
    if share_key is not None:
        return share_key, None if value is None else decode_share_value(share_key, value)
    key = decode_key(key_bytes)
    return None if key is None else (key, None if value is None else decode_value(value, position))
