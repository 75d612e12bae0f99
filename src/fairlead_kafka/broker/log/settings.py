"""Settings of a broker's log as a whole, from the broker's configs."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.base.config import Settings
from fairlead_kafka.broker.timers import REPEAT_MIN_MS


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Settings of the log, as opposed to those of topics (`TopicLimits`)."""

    file_limit_bytes: int
    """Size of a file, in bytes, above which the log goes on in a new one."""
    checkpoint_interval_ms: float
    """Time between two checks whether a checkpoint is due."""
    cleaner_enabled: bool
    """True if compaction is on."""
    cleaner_interval_ms: float
    """Time between two looks of the cleaner for work."""
    cleaner_keys_limit_bytes: int
    """Memory for the keys of one pass of compaction."""

    @classmethod
    def of(cls, settings: Settings) -> LogSettings:
        """The log's settings, from a broker's settings (scope "broker")."""
        return cls(
            settings["log.segment.bytes"],
            max(settings["log.flush.offset.checkpoint.interval.ms"], REPEAT_MIN_MS),
            settings["log.cleaner.enable"],
            settings["log.cleaner.backoff.ms"],
            settings["log.cleaner.dedupe.buffer.size"],
        )
