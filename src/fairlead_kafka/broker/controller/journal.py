"""The metadata log in use: every change is written to it before it is applied, it is replayed at
the start, and brokers' copies follow it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.base.units import MIB
from fairlead_kafka.broker.controller.fold import MetadataRecord, apply, snapshot_records
from fairlead_kafka.broker.controller.log import decode_log, encode_decision
from fairlead_kafka.broker.controller.older import modern
from fairlead_kafka.broker.controller.view import ClusterView
from fairlead_kafka.broker.guard import shared
from fairlead_kafka.core.machine import Rng

_logger = GuardedLogger("fairlead_kafka.broker")

Append = Callable[[bytes], None]

FOLD_MIN_BYTES = MIB
"""A log shorter than this is not worth folding."""
FOLD_FACTOR = 4
"""A log is folded when it is so many times as long as its last snapshot."""


class Journal:
    """The log by which a view of the cluster is changed: the controller's own.

    `append` writes bytes to the metadata log, in order, before the answer that depends on them is
    sent. `replace` replaces the whole log by a snapshot, atomically; that is done as the log grows,
    so that it is never much longer than a snapshot. Both raise OSError. After a failed write
    (KAFKA_STORAGE_ERROR) the log's end may be torn, and later records would be lost with it: so no
    decision is made until the log was replaced.
    """

    def __init__(self, view: ClusterView, rng: Rng, append: Append | None, replace: Append | None) -> None:
        self.view = view
        self.image = view.image
        self.configs = view.configs
        self._rng = rng
        self.awaited: set[int] = set()
        """Brokers of a log that was replayed, or that are said to be about to start, which have not
        started since."""
        self.last_leaders: dict[UUID, list[int]] = {}
        """Last leader of each partition of a log that was replayed, by topic id: it has what any
        replica has. Kept while brokers are awaited."""
        self._replace = replace
        self._snapshot_bytes = 0
        self._written_bytes = 0
        self._append = append
        self._log_error: OSError | None = None
        self._followers: list[Callable[[bytes], None]] = []

    def replay(self, data: bytes) -> int:
        """Rebuild the image from a metadata log, before any broker starts; returns how many of its
        bytes are valid. The rest is a torn tail. The caller cuts it, or better, replaces the file
        by `snapshot()`, which is also its compaction. No broker is alive afterwards and no
        partition has a leader. DecodeError if the log is damaged before its end."""
        decisions, size_bytes = decode_log(data)
        for record in chain.from_iterable(decisions):
            for each in modern(self.image, record):
                self.view.note(apply(self.image, each))
        self.awaited = set(self.image.brokers)
        for broker in self.image.brokers.values():
            broker.alive = broker.stopping = broker.disk_failed = False
        self.last_leaders = {
            topic.topic_id: [one.leader for one in topic.partitions] for topic in self.image.topics.values()
        }
        for _, _, partition in self.image.partitions():
            if partition.leader != NO_LEADER:
                partition.leader = NO_LEADER
                partition.leader_epoch += 1
                partition.partition_epoch += 1
        return size_bytes

    def snapshot(self) -> bytes:
        """A metadata log that replays to this image and holds nothing else."""
        self.ensure_cluster_id()
        data = b"".join(encode_decision([record]) for record in snapshot_records(self.image))
        self._snapshot_bytes = len(data)
        return data

    def follow(self, follower: Callable[[bytes], None]) -> Callable[[], None]:
        """Have `follower` called with the line of every decision, in order; the function returned
        ends it."""
        self._followers.append(follower)

        def unfollow() -> None:
            if follower in self._followers:
                self._followers.remove(follower)

        return unfollow

    def commit(self, records: Iterable[MetadataRecord]) -> None:
        """Write the records of one decision, apply them, and call the listeners.
        BrokerError(KAFKA_STORAGE_ERROR): the write failed, and nothing was changed."""
        records = list(records)
        if not self.image.cluster_id:
            self.ensure_cluster_id()
            records.insert(0, {"type": "cluster", "cluster_id": self.image.cluster_id})
        line = encode_decision(records)
        self._write(line)
        self._enact(records, line)
        self._written_bytes += len(line)
        if self._replace is not None and self._written_bytes >= max(
            FOLD_MIN_BYTES, FOLD_FACTOR * self._snapshot_bytes
        ):
            self._fold(self._replace)

    def enact_fact(self, records: Sequence[MetadataRecord]) -> None:
        """Apply records that are true although they could not be written: that a broker has ended.
        (After a replay every broker counts as ended.)"""
        if records:
            self._enact(records, encode_decision(records))

    def ensure_cluster_id(self) -> None:
        """Give the cluster an id, before its first decision, if it has none."""
        if not self.image.cluster_id:
            self.image.cluster_id = base64.urlsafe_b64encode(self.new_id().bytes).decode().rstrip("=")

    def new_id(self) -> UUID:
        """A random id that no topic and no cluster has yet."""
        number = 0
        for _ in range(4):
            number = number << 32 | self._rng.randrange(1 << 32)
        return UUID(int=number, version=4)

    def _fold(self, replace: Append) -> None:
        self._written_bytes = 0
        try:
            replace(self.snapshot())
        except OSError as error:
            # The log that is there goes on, and is folded when it has grown as much again.
            _logger.warning(
                "the metadata log could not be folded (%s); it goes on growing until there is room", error
            )

    def _write(self, line: bytes) -> None:
        if self._log_error is not None:
            self._mend()
        try:
            if self._log_error is None and self._append is not None:
                self._append(line)
        except OSError as error:
            self._log_error = error
        if self._log_error is not None:
            then = "restart the cluster" if self._replace is None else "try again"
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the metadata log could not be written ({self._log_error}): make room, and {then}",
            )

    def _mend(self) -> None:
        """Write a snapshot in the place of a log whose end may be torn, if the disk takes it by
        now."""
        if self._replace is not None:
            try:
                self._replace(self.snapshot())
            except OSError as error:
                self._log_error = error
            else:
                self._log_error, self._written_bytes = None, 0

    @shared("the controller's state")
    def _enact(self, records: Sequence[MetadataRecord], line: bytes) -> None:
        for follower in list(self._followers):
            follower(line)
        self.view.apply(records)
