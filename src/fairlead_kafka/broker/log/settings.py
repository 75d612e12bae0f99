"""What a broker's configs say of its log as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Settings of the log, as opposed to those of topics (`TopicLimits`)."""

    file_limit_bytes: int
    """Where the log goes on in a new file."""
    checkpoint_interval_ms: float
    """How often a checkpoint is thought of."""
    cleaner_enabled: bool
    """Whether anything is compacted."""
    cleaner_interval_ms: float
    """How often the cleaner looks for work."""
    cleaner_keys_limit_bytes: int
    """Memory for the keys of one pass."""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> LogSettings:
        """From settings of scope "broker"."""
        return cls(
            settings["log.segment.bytes"],
            settings["log.flush.offset.checkpoint.interval.ms"],
            settings["log.cleaner.enable"],
            settings["log.cleaner.backoff.ms"],
            settings["log.cleaner.dedupe.buffer.size"],
        )
