"""The clock of the brokers of an in-process cluster, which tests can move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.runtime import SelectorHost

FARTHEST = timedelta(days=3650)
"""The farthest that `advance` moves at once; timestamps stay far within int64, and years in four
digits."""


@checked("__init__")
class ClusterClock:
    """The brokers' time, which a test moves on instead of waiting:
    `cluster.clock.advance(hours=1)`.

    Everything that brokers do by time comes due at once: retention and compaction, session and
    rebalance time-outs of groups, time-outs of transactions, locks of share groups, expiry of
    offsets and of producer ids, quotas, idle connections, the timestamps of LogAppendTime.

    Not moved: clients' own clocks, which members of groups send heartbeats by, so a live member is
    removed like a dead one, and joins again; the timestamps that producers give; sockets; the
    validity of certificates and tokens. It moves forward only, and stays where it is until the
    cluster is closed.
    """

    def __init__(self, host: SelectorHost) -> None:
        self._host = host

    def now(self) -> datetime:
        """The brokers' time of day, in UTC."""
        return datetime.fromtimestamp(self._host.now_ms() / 1000, UTC)

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """Move the time on, to the millisecond. All brokers have done what came due when it
        returns; what follows from that (a write, an answer of another broker) may come a moment
        later.

        UsageError for a time that is negative or more than ten years.
        """
        step = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
        if not timedelta() <= step <= FARTHEST:
            raise UsageError(f"advance: must be from 0 to {FARTHEST.days} days, got {step}")
        self._host.advance(round(step / timedelta(milliseconds=1)))

    def __repr__(self) -> str:
        return f"<clock of the brokers: {self.now():%Y-%m-%d %H:%M:%S} UTC>"
