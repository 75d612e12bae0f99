"""All logs of one broker: partitions by topic id and number over one set of files."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from fairlead_kafka.base.checks import same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.limits import TAIL_CACHE_MAX_BYTES
from fairlead_kafka.broker.files import Files
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.log.by_time import Found, first_at, newest
from fairlead_kafka.broker.log.cache import TailCache
from fairlead_kafka.broker.log.checkpoints import Checkpoints
from fairlead_kafka.broker.log.cleaner import Cleaner
from fairlead_kafka.broker.log.entry import (
    ENTRY_HEADER_BYTES,
    EntryHeader,
    NoteKind,
    pack_entry,
    pack_note,
    parse_entry,
)
from fairlead_kafka.broker.log.index import FILE, SIZE, Location
from fairlead_kafka.broker.log.limits import TopicLimits
from fairlead_kafka.broker.log.moving import Mover
from fairlead_kafka.broker.log.partition import Partition
from fairlead_kafka.broker.log.reader import ReadDone, Reader
from fairlead_kafka.broker.log.recovery import Recovery, RecoveryResult
from fairlead_kafka.broker.log.replay import Replay
from fairlead_kafka.broker.log.segments import SegmentFiles
from fairlead_kafka.broker.log.settings import LogSettings
from fairlead_kafka.broker.log.table import PartitionTable
from fairlead_kafka.broker.log.writer import Writer, Written
from fairlead_kafka.records import BatchHeader, EndMarker, assign, end_marker, verify

RETAINED_PER_STEP = 1000
_LOG_APPEND_TIME = 0x08

_logger = GuardedLogger("fairlead_kafka.broker")


class LogHost(Protocol):
    """The parts of a broker that the log uses."""

    wall_ms: int
    """The time of day, in milliseconds since 1970."""

    def call_later(self, milliseconds: float, function: Callable[[], None]) -> object:
        """Run `function` `milliseconds` from now, in a step of its own."""

    def repeat(self, name: str, wait_ms: Callable[[], float], function: Callable[[], object]) -> object:
        """Run `function` again and again, `wait_ms()` milliseconds after its last end, whatever it
        raises. `name` is for the log."""

    def bind(self, function: Callable[..., object], owner: Owner | None = None) -> Callable[..., None]:
        """Bind `function` to `owner`, or to the owner of the work at hand, to be called later in
        its name."""


class Logs:
    """The one log of a broker, which all partitions share, and the state of each partition in it.
    `topic_of` gives (name, limits) of a topic id, None for a deleted one; `written` is called for
    each partition whose `written_end` rose. A partition without a record has no state until it is
    asked for."""

    def __init__(
        self,
        files: Files,
        folder: str,
        topic_of: Callable[[uuid.UUID], tuple[str, TopicLimits] | None],
        written: Callable[[Partition], None],
        host: LogHost,
        settings: LogSettings,
    ) -> None:
        self._files = files
        self._topic_of = topic_of
        self._written = written
        self._host = host
        self._settings = settings
        self._segments = SegmentFiles(folder)
        self.cache = TailCache(TAIL_CACHE_MAX_BYTES)
        """The end of the log, as it was written."""
        self._writer = Writer(files, self._segments, self.cache, written, host.call_later)
        self._reader = Reader(files, self.cache, self._segments.path)
        self._partitions = PartitionTable()
        self.checkpoints = Checkpoints(files, self._segments, self._writer, self._partitions, host.call_later)
        """Summaries of the log, so that a start reads only its end."""
        self._mover = Mover(self._writer, self._segments, self.checkpoints)
        self._cleaner = Cleaner(
            self._partitions,
            self._segments,
            self._reader,
            self._mover,
            self._soon,
            host.bind,
            lambda: host.wall_ms,
        )

    def _soon(self, function: Callable[[], None]) -> None:
        """Call a function in a step of its own."""
        self._host.call_later(0.0, function)

    def configure(self, settings: LogSettings) -> None:
        """Use these settings from now on."""
        self._settings = settings

    @property
    def error(self) -> OSError | None:
        """The failure for which appends are refused at present, or None."""
        return self._writer.error

    @property
    def failures(self) -> int:
        """How many writes and syncs have failed; each cut the logs that it was for."""
        return self._writer.failures

    def hosted(self) -> list[Partition]:
        """Every partition that was written to or asked for."""
        return list(self._partitions)

    def known_of(self, topic_id: uuid.UUID) -> Mapping[int, Partition]:
        """The partitions of a topic that were written to or asked for, by number."""
        return self._partitions.of_topic(topic_id)

    def known(self, topic_id: uuid.UUID, number: int) -> Partition | None:
        """The partition, if it was written to or asked for before; None otherwise."""
        return self._partitions.get(topic_id, number)

    def partition(self, topic_id: uuid.UUID, number: int) -> Partition:
        """The partition, entered if it is new. KeyError if the topic is gone."""
        partition = self._partitions.get(topic_id, number)
        if partition is None:
            known = self._topic_of(topic_id)
            if known is None:
                raise KeyError(topic_id)
            partition = Partition(known[0], topic_id, number, known[1])
            self._partitions.enter(partition)
        return partition

    def append(
        self,
        partition: Partition,
        batch: memoryview,
        header: BatchHeader,
        leader_epoch: int,
        wall_ms: int,
        marker: EndMarker | None = None,
    ) -> int:
        """Append one checked batch as the leader. Returns its base offset; `when_written` calls
        back when it is in the file. `marker` is the content of a control batch. Raises BrokerError
        KAFKA_STORAGE_ERROR while the disk fails."""
        self._check_disk()
        base_offset = partition.log_end
        if partition.limits.log_append_time:
            stamped = bytearray(batch)
            assign(
                stamped,
                base_offset=base_offset,
                partition_leader_epoch=leader_epoch,
                log_append_time_ms=wall_ms,
            )
            batch = memoryview(stamped)
            header = header._replace(
                attributes=header.attributes | _LOG_APPEND_TIME, max_timestamp_ms=wall_ms
            )
        self._append(partition, batch, header, base_offset, leader_epoch, wall_ms, marker)
        return base_offset

    def append_replica(
        self, partition: Partition, batch: memoryview, header: BatchHeader, leader_epoch: int, wall_ms: int
    ) -> None:
        """Append one batch of the leader's log as it is: its base offset, epoch and timestamps are
        in `header`.

        Its offsets may begin behind the end of this log: the leader's compaction removed those
        between. `leader_epoch` is that of the leader it comes from. Raises BrokerError:
        KAFKA_STORAGE_ERROR while the disk fails, CORRUPT_MESSAGE if its CRC is wrong,
        OFFSET_OUT_OF_RANGE if it begins before the end of this log, FENCED_LEADER_EPOCH if it is of
        a later epoch than its leader (KAFKA-18723).
        """
        self._check_disk()
        if header.base_offset < partition.log_end:
            text = (
                f"{partition}: a replica's batch begins at offset {header.base_offset}, but the log ends "
                f"at {partition.log_end}"
            )
            raise BrokerError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        if header.partition_leader_epoch > leader_epoch:
            text = (
                f"{partition}: a leader of epoch {leader_epoch} sent a batch of epoch "
                f"{header.partition_leader_epoch}"
            )
            raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH, text)
        try:
            verify(batch, header)
            marker = end_marker(batch, header) if header.control else None
        except DecodeError as error:
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{partition}: {error}") from None
        batch = batch[header.position : header.stop]
        self._append(
            partition, batch, header, header.base_offset, header.partition_leader_epoch, wall_ms, marker
        )

    def _check_disk(self) -> None:
        if self._writer.error is not None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"broker's log: {self._writer.error}")

    def _append(
        self,
        partition: Partition,
        batch: memoryview,
        header: BatchHeader,
        base_offset: int,
        leader_epoch: int,
        wall_ms: int,
        marker: EndMarker | None,
    ) -> None:
        limits = partition.limits
        wants_sync = limits.syncs_by_count and partition.needs_sync(header.count)
        if limits.syncs_by_time:
            self._writer.sync_within(limits.flush_ms)
        entry = pack_entry(partition.topic_id_bytes, partition.partition, base_offset, leader_epoch, batch)
        end_offset = base_offset + header.last_offset_delta + 1
        file, position = self._writer.append(
            entry, partition, end_offset, wants_sync, self._settings.file_limit_bytes
        )
        location = tuple.__new__(
            Location, (file, position + ENTRY_HEADER_BYTES, header.size_bytes)
        )  # as Location(...), faster
        timestamp_ms = header.max_timestamp_ms if header.max_timestamp_ms >= 0 else wall_ms
        self._about_to_change(partition)
        partition.record(header, base_offset, leader_epoch, location, timestamp_ms, marker, wall_ms)
        self._segments.add_live(file, header.size_bytes)
        self.checkpoints.new_entries += 1

    def when_written(self, done: Written) -> None:
        """Call `done(True)` once all batches appended so far are written, and synced where that is
        asked for; `done(False)` if that failed."""
        self._writer.when_written(self._host.bind(done))

    def read(self, locations: Sequence[Location], done: ReadDone) -> None:
        """Fetch batches: done(one result per location, a batch or an error code), perhaps at
        once."""
        self._reader.read(locations, done)

    def first_at(self, partition: Partition, timestamp_ms: int, end: int, done: Found) -> None:
        """Find the first record at or after a time (`timestamp_ms`, since 1970), among those below
        `end`; `done` is called once, perhaps at once."""
        first_at(partition, timestamp_ms, end, self.read, self._soon, done)

    def newest(self, partition: Partition, end: int, done: Found) -> None:
        """Find the first record of those with the greatest timestamp, among those below `end`;
        `done` is called once, perhaps at once."""
        newest(partition, end, self.read, self._soon, done)

    def move_start(self, partition: Partition, offset: int) -> None:
        """Raise a partition's log start offset; files without live batches are deleted."""
        if offset > partition.log_start:
            self._about_to_change(partition)
            self._release(partition.move_start(offset))
            self._note(partition, NoteKind.start_moved, offset)

    def truncate(self, partition: Partition, end_offset: int) -> None:
        """Truncate a partition: its log ends at `end_offset`, or at the beginning of the batch that
        holds it. In memory that counts at once; a note in the file follows."""
        if end_offset >= partition.log_end:
            return
        if end_offset < partition.high_watermark:
            _logger.error(
                "%s: cut to offset %d, below the high watermark %d: records that were acknowledged are lost, "
                "as an unclean election allows",
                partition,
                end_offset,
                partition.high_watermark,
            )
        self._about_to_change(partition)
        self._release(partition.truncate(end_offset))
        self._writer.truncated(partition, partition.log_end)
        self._note(partition, NoteKind.truncated, partition.log_end)

    def restart(self, partition: Partition, start_offset: int) -> None:
        """Delete all batches of a partition; its log begins and ends at `start_offset`."""
        self._writer.forget(partition)
        self._about_to_change(partition)
        self._release(partition.restart(start_offset))
        self._note(partition, NoteKind.restarted, start_offset)

    def _about_to_change(self, partition: Partition) -> None:
        if self.checkpoints.taking:
            self.checkpoints.take(partition)

    def _note(self, partition: Partition, kind: NoteKind, offset: int) -> None:
        self.checkpoints.new_entries += 1
        self._writer.note(
            pack_note(partition.topic_id_bytes, partition.partition, kind, offset),
            self._settings.file_limit_bytes,
        )

    def _release(self, dropped: list[tuple[int, int]]) -> None:
        if dropped:
            self._segments.release(dropped)
            self.checkpoints.released()

    def forget_topic(self, topic_id: uuid.UUID) -> list[Partition]:
        """Forget the partitions of a topic that was deleted. Returns those that were hosted."""
        gone = self._partitions.forget_topic(topic_id)
        for partition in gone:
            self._release(partition.drop_all())
            self._writer.forget(partition)
        return gone

    def retain(self, wall_ms: int, producer_expiration_ms: int) -> None:
        """Apply retention to every partition, and forget producers that wrote nothing for
        `producer_expiration_ms`.

        RETAINED_PER_STEP partitions at once, the others in steps that follow.
        """
        self._retain(list(self._partitions), wall_ms, producer_expiration_ms)

    def _retain(self, partitions: list[Partition], wall_ms: int, producer_expiration_ms: int) -> None:
        for partition in partitions[:RETAINED_PER_STEP]:
            if not self._partitions.holds(partition):
                continue
            self.move_start(partition, partition.expired_start(wall_ms))
            open_ids = partition.transactions.open if partition.transactions is not None else ()
            partition.producers.expire(wall_ms - producer_expiration_ms, open_ids)
        rest = partitions[RETAINED_PER_STEP:]
        if rest:
            self._host.call_later(0.0, lambda: self._retain(rest, wall_ms, producer_expiration_ms))

    def flush(self) -> None:
        """Begin the work that this step caused: writing, and deleting dead files. Called at the end
        of each step."""
        self._writer.flush()
        self.checkpoints.reclaim()

    def close(self, done: Callable[[], None]) -> None:
        """Write and sync everything, write a checkpoint, then call `done`."""
        self._writer.when_idle(lambda: self.checkpoints.close(done))

    def recover(self, done: Callable[[RecoveryResult], None]) -> None:
        """Rebuild all state from the files; `done` is called with the result. Nothing may be
        appended before."""

        def ended(result: RecoveryResult) -> None:
            if result.refused is None:
                for partition in self._partitions:
                    partition.written_end = partition.log_end
                    self._written(partition)
                self.checkpoints.recovered(result.place, result.entry_count)
                if result.entry_count:
                    self._writer.recovered()
                self._begin_regular_work()
            done(result)

        replay = Replay(self._partition_if_known, self._segments, self._host.wall_ms)
        Recovery(self._files, self._segments, replay.restore, replay.batch, replay.note, ended).start()

    def _partition_if_known(self, topic_id: uuid.UUID, number: int) -> Partition | None:
        try:
            return self.partition(topic_id, number)
        except KeyError:
            return None

    def _begin_regular_work(self) -> None:
        self._host.repeat(
            "checkpoints of the log",
            lambda: self._settings.checkpoint_interval_ms,
            self.checkpoints.write_if_due,
        )
        self._host.repeat(
            "cleaning of the log",
            lambda: self._settings.cleaner_interval_ms,
            lambda: self._cleaner.look(self._settings),
        )

    def check(self) -> None:
        """Raise CheckFailed unless the log's redundant state agrees: see the `check` of each of its
        parts."""
        live_bytes: dict[int, int] = {}
        for partition in self._partitions:
            partition.check()
            self._check_cached(partition)
            for file, size_bytes in zip(
                partition.index.column(FILE).tolist(), partition.index.column(SIZE).tolist(), strict=True
            ):
                live_bytes[file] = live_bytes.get(file, 0) + size_bytes
        for place in self._mover.under_way():
            live_bytes[place.file] = live_bytes.get(place.file, 0) + place.size_bytes
        self._segments.check(live_bytes)
        self._partitions.check()
        self.cache.check()
        self._writer.check(self._partitions)
        self.checkpoints.check()

    def _check_cached(self, partition: Partition) -> None:
        """Raise CheckFailed if the cache has other bytes for a batch of the partition than its
        own."""
        index = partition.index
        for number in range(len(index)):
            location = index.location(number)
            entry = self.cache.entry(location)
            if entry is not None:
                header = EntryHeader(
                    partition.topic_id, partition.partition, index.base_offset(number), location.size_bytes
                )
                found = parse_entry(entry, 0)
                found = found._replace(moved=False) if isinstance(found, EntryHeader) else found
                same(f"{partition}: what the cache has at {location}", found, header)
                same(f"{partition}: its bytes", len(entry), ENTRY_HEADER_BYTES + location.size_bytes)
