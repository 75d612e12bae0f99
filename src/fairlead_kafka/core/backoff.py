"""Back-off times before retries: exponential, with jitter from an injected rng (KIP-144, KIP-580,
KIP-601).

Constants are Kafka's: doubling, jitter of a fifth either way
(`CommonClientConfigs.RETRY_BACKOFF_*`, `ClusterConnectionStates`).
"""

from __future__ import annotations

from typing import NamedTuple

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.machine import Rng

MULTIPLIER = 2
JITTER = 0.2


def exponential_ms(first_ms: float, max_ms: float, failures: int) -> float:
    """The wait, in milliseconds and without jitter, after `failures` earlier failures in a row (0:
    the first wait): doubling, never above `max_ms`. ValueError if `failures` is negative.

    As in Kafka's `ExponentialBackoff`, a `first_ms` above `max_ms` does not grow and is cut to
    `max_ms`.
    """
    if failures < 0:
        raise ValueError(f"failures must be 0 or more, got {failures}")
    if first_ms <= 0:
        return 0.0
    # Beyond this many doublings any wait is at its maximum; the bound keeps the power from
    # overflowing.
    return float(min(first_ms * MULTIPLIER ** min(failures, 64), max_ms))


def jittered_ms(wait_ms: float, rng: Rng) -> float:
    """`wait_ms` times a factor drawn evenly from [0.8, 1.2)."""
    return wait_ms * (1 - JITTER + 2 * JITTER * rng.random())


class Backoff(NamedTuple):
    """An exponential back-off, by a pair of configs: `retry.backoff.ms` and `retry.backoff.max.ms`,
    say."""

    first_ms: float
    max_ms: float

    def wait_ms(self, failures: int, rng: Rng) -> float:
        """The wait in milliseconds after `failures` earlier failures in a row, with jitter, never
        above `max_ms`."""
        return min(jittered_ms(exponential_ms(self.first_ms, self.max_ms, failures), rng), float(self.max_ms))

    def wait_ns(self, failures: int, rng: Rng) -> int:
        """The wait in nanoseconds; see `wait_ms`."""
        return ms_to_ns(self.wait_ms(failures, rng))
