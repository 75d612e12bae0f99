"""Committed offsets of the groups of a coordinator: committing them, in a transaction or not,
fetching and deleting them, and deleting those that are past retention or whose topic was
deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_TOPIC_ID, TopicPartition
from fairlead_kafka.broker.consumer_groups import COMMITS_FROM_VERSION, Committer
from fairlead_kafka.broker.controller import TopicImage
from fairlead_kafka.broker.coordinator.consumer_side import ConsumerSide, not_consumer
from fairlead_kafka.broker.coordinator.group import CONSUMER_PROTOCOL, CommittedOffset, Group
from fairlead_kafka.broker.coordinator.offset_records import OffsetKey
from fairlead_kafka.broker.coordinator.rebalance import Rebalancer
from fairlead_kafka.broker.coordinator.shard import Entry, Key, Shard, apply_end
from fairlead_kafka.broker.coordinator.shard_log import (
    ShardLog,
    expired,
    group_tombstone,
    tombstones,
    tombstones_of_gone,
    when_committed,
)
from fairlead_kafka.broker.coordinator.states import COMMIT_ERRORS, GroupState
from fairlead_kafka.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead_kafka.broker.shards import ShardHost, Shards
from fairlead_kafka.broker.timers import Repeating

_MS_PER_MINUTE = 60_000
_ANY_GENERATION = -1
"""The generation of a commit that is not a member's (an assigned consumer, an admin)."""


class OffsetsHost(ShardHost, Protocol):
    """The parts of a broker that committed offsets use."""

    wall_ms: int
    settings: Settings


class GroupOffsets:
    """The committed offsets of one coordinator's groups. Methods raise BrokerError with the code to
    answer."""

    def __init__(
        self,
        broker: OffsetsHost,
        shards: Shards[Shard],
        log: ShardLog,
        rebalancer: Rebalancer,
        consumer: ConsumerSide,
    ) -> None:
        self._broker = broker
        self._shards = shards
        self._log = log
        self._rebalancer = rebalancer
        self._consumer = consumer
        self._retention: Repeating | None = None

    def start(self) -> None:
        """Begin to delete expired offsets from time to time."""
        self._retention = self._broker.repeat("retention of offsets", self._retention_wait_ms, self._expire)

    def stop(self) -> None:
        """End the deletion of expired offsets."""
        if self._retention is not None:
            self._retention.cancel()

    # --- Committing, fetching, deleting

    def commit(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        offsets: Mapping[TopicPartition, CommittedOffset],
        reply: Callable[[dict[TopicPartition, int]], None],
        version: int = COMMITS_FROM_VERSION,
    ) -> None:
        """Serve an OffsetCommit; reply(partition → error code) once the offsets are written.
        Generation -1: the client does not commit as a member. For a member of the consumer protocol
        `generation` is its epoch."""
        shard, group = self._group_to_commit(group_id, generation)
        if group.consumer is not None:
            who = Committer(member_id, instance_id, generation, version)
            self._consumer.check_commit(group.consumer, who, list(offsets))
        else:
            self._check_committer(group, generation, member_id, instance_id)
        self._commit(shard, group, offsets, reply, NO_PRODUCER)

    def commit_in_transaction(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        producer: ProducerIdentity,
        offsets: Mapping[TopicPartition, CommittedOffset],
        reply: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        """Serve a TxnOffsetCommit; reply(partition → error code) once the offsets are written. They
        count when the transaction is committed. A request without a member id (before KIP-447) is
        fenced by the producer's epoch alone."""
        shard, group = self._group_to_commit(group_id, generation)
        if group.consumer is not None:
            who = Committer(member_id, instance_id, generation, None)
            self._consumer.check_commit(group.consumer, who, list(offsets))
        elif generation >= 0 or member_id or instance_id is not None:
            group.member_of(generation, member_id, instance_id)
        self._commit(shard, group, offsets, reply, producer)

    def transaction_ended(self, partition: int, producer_id: int, committed: bool) -> None:
        """Called when the marker of a producer's transaction was written to a partition of offsets
        led here."""
        shard = self._shards.led(partition)
        if shard is None or not shard.loaded:
            return  # reading the log comes by the marker
        apply_end(shard, producer_id, committed)

    def _group_to_commit(self, group_id: str, generation: int) -> tuple[Shard, Group]:
        shard = self._shards.of(group_id)
        if group_id not in shard.groups and generation >= 0:
            raise BrokerError(
                ErrorCode.ILLEGAL_GENERATION, f"there is no group {group_id!r} with a generation {generation}"
            )
        group = shard.group(group_id, self._broker.wall_ms)
        if group.share is not None:
            raise not_consumer(group_id)
        return shard, group

    def _commit(
        self,
        shard: Shard,
        group: Group,
        offsets: Mapping[TopicPartition, CommittedOffset],
        reply: Callable[[dict[TopicPartition, int]], None],
        producer: ProducerIdentity,
    ) -> None:
        limit_bytes = self._broker.settings["offset.metadata.max.bytes"]
        errors = {
            of: ErrorCode.OFFSET_METADATA_TOO_LARGE
            for of, one in offsets.items()
            if len(one.metadata.encode()) > limit_bytes
        }
        entries: list[Entry] = [
            (OffsetKey(group.group_id, of), one) for of, one in offsets.items() if of not in errors
        ]

        def written(by_key: dict[Key, int]) -> None:
            reply(errors | _by_partition(by_key))

        self._log.write(shard, entries, written, producer)

    @hook("groups: may this member commit")
    def _check_committer(
        self, group: Group, generation: int, member_id: str, instance_id: str | None
    ) -> None:
        if generation == _ANY_GENERATION and group.state is GroupState.EMPTY:
            return
        member = group.member_of(generation, member_id, instance_id)
        error = COMMIT_ERRORS[group.state]
        if error:
            raise BrokerError(error, f"group {group.group_id} is {group.state.value}")
        self._rebalancer.touch(group, member)

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Committed offsets of a group by partition, None where there is none; `partitions` None:
        all that have one. An offset of a deleted topic is not one of a new topic with its name."""
        group = self._shards.of(group_id).groups.get(group_id)
        offsets = group.offsets if group is not None else {}
        found = {of: offsets.get(of) for of in (offsets if partitions is None else partitions)}
        gone = {of for of, one in found.items() if one is not None and self._gone(of.topic, one)}
        if partitions is None:
            return {of: one for of, one in found.items() if of not in gone}
        return found | dict.fromkeys(gone)

    def unstable(self, group_id: str) -> frozenset[TopicPartition]:
        """Partitions of which an open transaction commits an offset: clients that require stable
        offsets ask again (KIP-447)."""
        group = self._shards.of(group_id).groups.get(group_id)
        return frozenset(
            of for offsets in (group.transactional.values() if group is not None else ()) for of in offsets
        )

    def delete(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        reply: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        """Serve an OffsetDelete; reply(partition → error code). While the group has members, only
        offsets of topics that none of them reads are deleted. BrokerError NON_EMPTY_GROUP if their
        subscriptions are not known."""
        shard = self._shards.of(group_id)
        group = shard.existing(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if group.share is not None:
            raise not_consumer(group_id)
        if not group.empty and group.listed_protocol_type != CONSUMER_PROTOCOL:
            raise BrokerError(
                ErrorCode.NON_EMPTY_GROUP, f"group {group_id} has members, and does not say what they read"
            )
        reading = group.reading()
        errors = {
            of: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if reading(of.topic) else ErrorCode.NONE
            for of in partitions
        }

        def written(by_key: dict[Key, int]) -> None:
            reply(errors | _by_partition(by_key))

        self._log.write(shard, tombstones(group, [of for of, error in errors.items() if not error]), written)

    # --- Forgetting

    def topic_deleted(self, topic: TopicImage) -> None:
        """Called when a topic was deleted: its offsets are deleted in a later step of this broker,
        for the controller may call within another broker's step, in which this broker's files must
        not be written."""

        def gone(name: str, committed: CommittedOffset) -> bool:
            return name == topic.name and committed.topic_id in (topic.topic_id, NO_TOPIC_ID)

        for shard in self._shards:
            self._broker.call_at(
                self._broker.now_ns, partial(self._forget, shard, gone), self._shards.owner(shard)
            )

    def loaded(self, shard: Shard) -> None:
        """Called when a shard was read from the log: offsets of deleted topics are deleted."""
        self._forget(shard, self._gone)

    def _gone(self, topic: str, committed: CommittedOffset) -> bool:
        """Whether the topic that an offset was committed for is not there any more."""
        image = self._broker.controller.image.topics.get(topic)
        return image is None or committed.topic_id not in (image.topic_id, NO_TOPIC_ID)

    def _forget(self, shard: Shard, gone: Callable[[str, CommittedOffset], bool]) -> None:
        """Delete offsets of deleted topics, or a new topic of the same name would be read from the
        old one's offset."""
        if self._shards.holds(shard) and shard.loaded:
            self._log.write(shard, tombstones_of_gone(shard, gone), lambda _errors: None)

    def _retention_wait_ms(self) -> float:
        return float(self._broker.settings["offsets.retention.check.interval.ms"])

    def _expire(self) -> None:
        """Delete expired offsets, and forget groups without any state."""
        for shard in self._shards.loaded():
            self._broker.guard.call(self._shards.owner(shard), self._expire_in, shard)

    def _expire_in(self, shard: Shard) -> None:
        retention_ms = self._broker.settings["offsets.retention.minutes"] * _MS_PER_MINUTE
        groups = list(shard.groups.values())
        entries = [entry for group in groups for entry in self._past(group, retention_ms)]
        entries = [
            entry for entry in entries if entry[0] not in shard.in_flight
        ]  # a commit under way is news of it

        def forget(group: Group, _error: int) -> None:
            shard.forget(group)

        def written(_errors: dict[Key, int]) -> None:
            for group in groups:
                when_committed(group, partial(forget, group))

        self._log.write(shard, entries, written)

    def _past(self, group: Group, retention_ms: int) -> list[Entry]:
        """Tombstones of a group's expired offsets, and, with the last offset of a group without
        members, of the group itself."""
        past = tombstones(group, expired(group, self._broker.wall_ms, retention_ms))
        nothing_left = len(past) == len(group.partitions()) and not group.pending_writes and not group.pending
        if nothing_left and group.consumer is not None and group.empty:
            with suppress(BrokerError):  # the log takes nothing just now: the next time round
                self._consumer.make_classic(group.consumer)
        return past + (group_tombstone(group) if nothing_left and group.state is GroupState.EMPTY else [])


def _by_partition(errors: Mapping[Key, int]) -> dict[TopicPartition, int]:
    return {key.partition: error for key, error in errors.items() if isinstance(key, OffsetKey)}
