"""Limits of a partition's log, from its topic's configs."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.base.config import LONG_MAX, Settings
from fairlead_kafka.records import Compression

_PRODUCER, _UNCOMPRESSED = "producer", "uncompressed"
_HAVE_LEVELS = (Compression.gzip, Compression.lz4, Compression.zstd)
_GZIP_DEFAULT = -1


@dataclass(slots=True, init=False)
class TopicLimits:
    """A topic's settings as the log needs them. All partitions of the topic on a broker share one
    object, which is updated in place."""

    max_message_bytes: int
    segment_bytes: int
    flush_messages: int
    flush_ms: int
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    delete: bool
    retention_ms: int
    retention_bytes: int
    compact: bool
    min_cleanable_ratio: float
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    compression: Compression | None
    """Codec of the topic's batches; None: a batch keeps its producer's."""
    compression_level: int | None
    min_insync_replicas: int
    syncs_by_count: bool
    """`flush.messages` asks for syncs."""
    syncs_by_time: bool
    """`flush.ms` asks for syncs."""

    @classmethod
    def of(cls, settings: Settings) -> TopicLimits:
        """The limits that settings of scope "topic" give."""
        limits = cls()
        limits.update(settings)
        return limits

    def update(self, settings: Settings) -> None:
        """Set the limits from changed settings."""
        self.max_message_bytes = settings["max.message.bytes"]
        self.segment_bytes = settings["segment.bytes"]
        self.flush_messages = settings["flush.messages"]
        self.flush_ms = settings["flush.ms"]
        self.syncs_by_count = self.flush_messages != LONG_MAX
        self.syncs_by_time = self.flush_ms != LONG_MAX
        self.log_append_time = settings["message.timestamp.type"] == "LogAppendTime"
        self.timestamp_before_max_ms = settings["message.timestamp.before.max.ms"]
        self.timestamp_after_max_ms = settings["message.timestamp.after.max.ms"]
        self.delete = "delete" in settings["cleanup.policy"]
        self.retention_ms = settings["retention.ms"]
        self.retention_bytes = settings["retention.bytes"]
        self.compact = "compact" in settings["cleanup.policy"]
        self.min_cleanable_ratio = settings["min.cleanable.dirty.ratio"]
        self.delete_retention_ms = settings["delete.retention.ms"]
        self.min_compaction_lag_ms = settings["min.compaction.lag.ms"]
        self.max_compaction_lag_ms = settings["max.compaction.lag.ms"]
        self.compression, self.compression_level = _compression(settings)
        self.min_insync_replicas = settings["min.insync.replicas"]


def _compression(settings: Settings) -> tuple[Compression | None, int | None]:
    name = settings["compression.type"]
    if name == _PRODUCER:
        return None, None
    codec = Compression.none if name == _UNCOMPRESSED else Compression.named(name)
    level = settings.integer(f"compression.{name}.level") if codec in _HAVE_LEVELS else None
    return codec, None if codec is Compression.gzip and level == _GZIP_DEFAULT else level
