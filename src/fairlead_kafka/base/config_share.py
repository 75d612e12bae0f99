"""The share consumer's own configs (KIP-932): Kafka's keys and defaults (release 4.3)."""

from __future__ import annotations

from fairlead_kafka.base.config import ConfigKey, ConfigType, one_of

SHARE_CONSUMER = "share consumer"
"""The scope of a share consumer's configs."""
_T = ConfigType
_SHARE = (SHARE_CONSUMER,)
SHARE_KEYS = (
    ConfigKey(
        "share.acknowledgement.mode",
        _T.STRING,
        "implicit",
        "implicit: the next poll or commit accepts what the last poll gave; explicit: each record is "
        "acknowledged by a call, before the next poll.",
        _SHARE,
        one_of("implicit", "explicit"),
        lower=True,
    ),
    ConfigKey(
        "share.acquire.mode",
        _T.STRING,
        "batch_optimized",
        "batch_optimized: records come as whole batches, which may be more than max.poll.records; "
        "record_limit: never more, and of one broker at a time (KIP-1206).",
        _SHARE,
        one_of("batch_optimized", "record_limit"),
        lower=True,
    ),
)
