"""All logs of one broker: partitions by topic id and number over one set of files."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence

from fairlead.base.codes import ErrorCode
from fairlead.base.config import LONG_MAX
from fairlead.base.errors import BrokerError
from fairlead.base.limits import TAIL_CACHE_MAX_BYTES
from fairlead.broker.files import Files
from fairlead.broker.log.cache import TailCache
from fairlead.broker.log.entry import ENTRY_HEADER_BYTES, EntryHeader, pack_entry
from fairlead.broker.log.index import Location
from fairlead.broker.log.partition import Partition, TopicLimits
from fairlead.broker.log.reader import ReadDone, Reader
from fairlead.broker.log.recovery import CHECKPOINT_NAME, Recovery, RecoveryResult, Starts, encode_checkpoint
from fairlead.broker.log.segments import SegmentFiles
from fairlead.broker.log.writer import Writer, Written
from fairlead.records import BatchHeader, EndMarker, assign, end_marker

_logger = logging.getLogger("fairlead.broker")

Key = tuple[uuid.UUID, int]


class Logs:
    """The shared log and what is known of each partition in it.

    `topic_of` gives (name, limits) of a live topic id, None for one that is gone; `advanced` hears of each partition whose high
    watermark rose. Partitions without a record exist nowhere until they are asked for.
    """

    def __init__(
        self,
        files: Files,
        folder: str,
        topic_of: Callable[[uuid.UUID], tuple[str, TopicLimits] | None],
        advanced: Callable[[Partition], None],
    ) -> None:
        self._files = files
        self._topic_of = topic_of
        self._segments = SegmentFiles(folder)
        self._cache = TailCache(TAIL_CACHE_MAX_BYTES)
        self._writer = Writer(files, self._segments, advanced)
        self._reader = Reader(files, self._cache, self._segments.path)
        self._partitions: dict[Key, Partition] = {}
        self._starts_changed = False
        self._checkpointing = False
        self.file_limit_bytes = 1 << 30
        """`log.segment.bytes`: where the log goes on in a new file."""

    @property
    def error(self) -> OSError | None:
        """The failure that ended all writing, or None."""
        return self._writer.error

    def hosted(self) -> list[Partition]:
        """Every partition that was written to or asked for."""
        return list(self._partitions.values())

    def known(self, topic_id: uuid.UUID, number: int) -> Partition | None:
        """The partition if it was written to or asked for."""
        return self._partitions.get((topic_id, number))

    def partition(self, topic_id: uuid.UUID, number: int) -> Partition:
        """The partition, entered if it is new. KeyError if the topic is gone."""
        partition = self._partitions.get((topic_id, number))
        if partition is None:
            known = self._topic_of(topic_id)
            if known is None:
                raise KeyError(topic_id)
            partition = self._partitions[topic_id, number] = Partition(known[0], topic_id, number, known[1])
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
        """Append one checked batch; its base offset. `when_written` tells when it may be acknowledged.

        `marker` is what a control batch says. Raises BrokerError KAFKA_STORAGE_ERROR once the disk has failed.
        """
        if self._writer.error is not None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"broker's log: {self._writer.error}")
        base_offset = partition.log_end
        limits = partition.limits
        wants_sync = limits.flush_messages != LONG_MAX and partition.needs_sync(header.count)
        if limits.log_append_time:
            stamped = bytearray(batch)
            assign(stamped, base_offset=base_offset, partition_leader_epoch=leader_epoch, log_append_time_ms=wall_ms)
            batch = memoryview(stamped)
            timestamp_ms = wall_ms
        else:
            timestamp_ms = header.max_timestamp_ms if header.max_timestamp_ms >= 0 else wall_ms
        entry = pack_entry(partition.topic_id_bytes, partition.partition, base_offset, leader_epoch, batch)
        end_offset = base_offset + header.last_offset_delta + 1
        file, position = self._writer.append(entry, partition, end_offset, wants_sync, self.file_limit_bytes)
        position += ENTRY_HEADER_BYTES
        partition.record(header, base_offset, leader_epoch, file, position, timestamp_ms)
        if header.producer_id >= 0:
            partition.record_producer(header, base_offset, marker, wall_ms if limits.log_append_time else -1, wall_ms)
        self._cache.add(file, position, entry)
        return base_offset

    def when_written(self, done: Written) -> None:
        """Call `done(True)` once all appended so far is written, and synced where asked; `done(False)` if that failed."""
        self._writer.when_written(done)

    def read(self, locations: Sequence[Location], done: ReadDone) -> None:
        """Fetch batches: done(one buffer per location), perhaps at once; done(None) if a file could not be read."""
        self._reader.read(locations, done)

    def move_start(self, partition: Partition, offset: int) -> None:
        """Raise a partition's log start; files in which nothing is alive any more go."""
        if offset > partition.log_start:
            self._segments.release(partition.move_start(offset))
            self._starts_changed = True

    def forget_topic(self, topic_id: uuid.UUID, partition_count: int) -> list[Partition]:
        """A topic was deleted: forget its partitions; those that were hosted."""
        gone = []
        for number in range(partition_count):
            partition = self._partitions.pop((topic_id, number), None)
            if partition is not None:
                self._segments.release(partition.drop_all())
                gone.append(partition)
        self._starts_changed = self._starts_changed or bool(gone)
        return gone

    def retain(self, wall_ms: int, producer_expiration_ms: int) -> None:
        """Apply retention to every partition, and forget producers that wrote nothing for `producer_expiration_ms`."""
        for partition in self._partitions.values():
            self.move_start(partition, partition.expired_start(wall_ms))
            if len(partition.producers):
                open_ids = partition.transactions.open if partition.transactions is not None else ()
                partition.producers.expire(wall_ms - producer_expiration_ms, open_ids)

    def flush(self) -> None:
        """Begin what this step asked for: writing, saving log starts, deleting dead files. Called at the end of each step."""
        self._writer.flush()
        if self._starts_changed and not self._checkpointing:
            self._checkpoint()

    def close(self, done: Callable[[], None]) -> None:
        """Write and sync everything, then call `done`."""
        self._writer.when_idle(done)

    def _checkpoint(self) -> None:
        """Save the log starts durably; only then delete files, or their end would be forgotten with them."""
        self._starts_changed, self._checkpointing = False, True
        starts: Starts = {key: partition.log_start for key, partition in self._partitions.items() if partition.log_start}
        dead = self._segments.take_dead()

        def saved(_value: object, error: OSError | None) -> None:
            self._checkpointing = False
            if error is not None:
                _logger.warning("%s: log starts could not be saved, deleted records may come back: %s", self._segments.folder, error)
                return
            for number in dead:
                self._files.delete(self._segments.path(number), self._deleted)

        self._files.replace(f"{self._segments.folder}/{CHECKPOINT_NAME}", [encode_checkpoint(starts)], saved)

    def _deleted(self, _value: object, error: OSError | None) -> None:
        if error is not None:
            _logger.warning("a dead log file could not be deleted: %s", error)

    def recover(self, wall_ms: int, done: Callable[[RecoveryResult], None]) -> None:
        """Rebuild everything from the files; `done` says how it went. Nothing may be appended before."""

        def begin(starts: Starts) -> None:
            for (topic_id, number), offset in starts.items():
                if self._topic_of(topic_id) is not None:
                    self.partition(topic_id, number).move_start(offset)

        def batch(entry: EntryHeader, header: BatchHeader, batch: memoryview, file: int, position: int) -> None:
            self._recovered(entry, header, batch, file, position, wall_ms)

        def ended(result: RecoveryResult) -> None:
            # A crash may have come between the end of a file's last batch and the deletion of the file.
            self._starts_changed = result.refused is None and self._segments.any_closed()
            done(result)

        Recovery(self._files, self._segments, begin, batch, ended).start()

    def _recovered(self, entry: EntryHeader, header: BatchHeader, batch: memoryview, file: int, position: int, wall_ms: int) -> None:
        if self._topic_of(entry.topic_id) is None:
            return
        partition = self.partition(entry.topic_id, entry.partition)
        marker = end_marker(batch, header) if header.control else None
        if header.producer_id >= 0 and (marker is not None or not header.control):
            append_time_ms = header.max_timestamp_ms if header.timestamp_type else -1
            partition.record_producer(header, header.base_offset, marker, append_time_ms, wall_ms)
        if header.last_offset < partition.log_start:
            return
        timestamp_ms = header.max_timestamp_ms if header.max_timestamp_ms >= 0 else wall_ms
        partition.record(header, header.base_offset, header.partition_leader_epoch, file, position, timestamp_ms)
        partition.high_watermark = partition.log_end
        self._segments.add_live(file)
