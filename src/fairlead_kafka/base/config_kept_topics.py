"""Configs of topics without an effect here: segments, indexes, throttles, tiered storage. Kafka's
keys and defaults (release 4.3)."""

from __future__ import annotations

from fairlead_kafka.base.config import ConfigType, at_least, validates
from fairlead_kafka.base.config_kept import false_only, for_topics, kept, of_no_effect
from fairlead_kafka.base.units import MIB

_T = ConfigType
_DAY_MS = 86_400_000
_HOUR_MS = 3_600_000

_SHARED = "a broker keeps one log for all its partitions"
_CLOSED = (
    "a file is closed when it is full, or little of it is alive; retention and compaction do not wait for it"
)
_THROTTLE = "replication is not throttled: all brokers are on one machine"
_TIERED = "there is no tiered storage"


@validates(tuple)
def _throttled(value: tuple[str, ...]) -> str | None:
    """PARTITION:BROKER, and commas between; or *

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    if list(value) == ["*"]:
        return None
    wrong = [one for one in value if not all(part.strip().isdecimal() for part in _pair(one))]
    return f"must be * or PARTITION:BROKER each; {wrong[0]!r} is not" if wrong else None


def _pair(text: str) -> tuple[str, str]:
    partition, _colon, broker = text.partition(":")
    return partition, broker


TOPIC_KEPT = for_topics(
    (
        *of_no_effect(
            _CLOSED,
            kept("segment.ms", _T.LONG, 7 * _DAY_MS, "Time after which a segment is closed.", at_least(1)),
            kept(
                "segment.jitter.ms",
                _T.LONG,
                0,
                "Time by which that is brought forward at most, by chance.",
                at_least(0),
            ),
        ),
        *of_no_effect(
            _SHARED,
            kept("segment.index.bytes", _T.INT, 10 * MIB, "Size of an index at most.", at_least(4)),
            kept(
                "index.interval.bytes",
                _T.INT,
                4_096,
                "Bytes of records between two entries of an index.",
                at_least(0),
            ),
            kept("preallocate", _T.BOOLEAN, False, "Allocate a segment's file at once."),
            kept(
                "file.delete.delay.ms",
                _T.LONG,
                60_000,
                "How long the file of a deleted segment stays.",
                at_least(0),
            ),
            kept(
                "internal.segment.bytes",
                _T.INT,
                None,
                "Segment size without a lower bound, for tests.",
                unlisted=True,
            ),
        ),
        *of_no_effect(
            _THROTTLE,
            kept(
                "leader.replication.throttled.replicas",
                _T.LIST,
                (),
                "Replicas that their leaders send to at leader.replication.throttled.rate.",
                _throttled,
            ),
            kept(
                "follower.replication.throttled.replicas",
                _T.LIST,
                (),
                "Replicas that follow at follower.replication.throttled.rate.",
                _throttled,
            ),
        ),
        *of_no_effect(
            _TIERED,
            kept(
                "local.retention.bytes",
                _T.LONG,
                -2,
                "Bytes that a partition keeps locally; -2: as retention.bytes.",
                at_least(-2),
            ),
            kept(
                "local.retention.ms",
                _T.LONG,
                -2,
                "How long records are kept locally; -2: as retention.ms.",
                at_least(-2),
            ),
            kept(
                "remote.storage.enable",
                _T.BOOLEAN,
                False,
                "Old segments go to remote storage.",
                false_only(_TIERED),
            ),
            kept("remote.log.copy.disable", _T.BOOLEAN, False, "No more segments go to remote storage."),
            kept(
                "remote.log.delete.on.disable",
                _T.BOOLEAN,
                False,
                "What is in remote storage is deleted when it is disabled.",
            ),
        ),
    )
)

KEPT_COUNTERPARTS: dict[str, tuple[tuple[str, int], ...]] = {
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "follower.replication.throttled.replicas": (),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "internal.segment.bytes": (),
    "leader.replication.throttled.replicas": (),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "preallocate": (("log.preallocate", 1),),
    "remote.log.copy.disable": (),
    "remote.log.delete.on.disable": (),
    "remote.storage.enable": (),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
}
"""Topic key → broker keys, for `config_broker.TOPIC_COUNTERPARTS`; none: it has its default."""
