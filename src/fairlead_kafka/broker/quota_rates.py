"""Measures use against a quota, and computes throttle times: Kafka's `Rate` over a `SampledStat`,
`TokenBucket`, and `QuotaUtils`.

Times are integers of milliseconds on any clock that does not go back.
"""

from __future__ import annotations

from math import floor

from fairlead_kafka.base.config import INT_MAX

_MS_PER_S = 1_000


class _Sample:
    """Sum of the values recorded in one window."""

    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.value, self.start_ms, self.last_ms = 0.0, now_ms, now_ms


class Rate:
    """A rate per second, over the last `samples` windows of `window_ms` each.

    A window begins with the first value recorded in it. One more window than `samples` is kept: one
    that overlaps the time looked back on counts whole.
    """

    __slots__ = ("_current", "_samples", "_window_ms", "samples")

    def __init__(self, samples: int, window_ms: int) -> None:
        self.samples = samples
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Record `value` more; a negative value undoes the record just before."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def _purge(self, now_ms: int) -> None:
        expired_ms = now_ms - self.samples * self._window_ms
        for sample in self._samples:
            if sample.last_ms <= expired_ms:
                sample.reset(now_ms)

    def per_second(self, now_ms: int) -> float:
        """The rate now, per second."""
        elapsed_ms = self.elapsed_ms(now_ms)
        return sum(sample.value for sample in self._samples) * _MS_PER_S / elapsed_ms

    def elapsed_ms(self, now_ms: int) -> int:
        """Milliseconds over which the rate is measured: since the oldest window began, but at least
        all windows but one, or a client's first moments would look like a flood."""
        self._purge(now_ms)
        elapsed_ms = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        missing = self.samples - 1 - elapsed_ms // self._window_ms
        return max(elapsed_ms + max(missing, 0) * self._window_ms, 1)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Milliseconds without a record until the rate is `limit` again; 0: it is not above it."""
        return throttle_ms(self.per_second(now_ms), limit, self.elapsed_ms(now_ms))


class TokenBucket:
    """A token bucket: `limit` tokens are added each second, up to as many as `samples` windows of
    `window_ms` bring, with which it begins. A single request may spend more tokens than there are;
    their number is then negative until enough were added (KIP-599)."""

    __slots__ = ("_saved_s", "_tokens", "_updated_ms")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._saved_s = samples * window_ms / _MS_PER_S
        self._tokens: float | None = None
        self._updated_ms = 0

    def tokens(self, limit: float, now_ms: int) -> float:
        """The number of tokens at `now_ms`; below 0 the quota is used up."""
        most = self._saved_s * limit
        if self._tokens is None:
            self._tokens = most
        else:
            self._tokens = min(most, self._tokens + limit * (now_ms - self._updated_ms) / _MS_PER_S)
        self._updated_ms = now_ms
        return self._tokens

    def spend(self, value: float, limit: float, now_ms: int) -> None:
        """Take `value` tokens out, whether they are there or not."""
        self._tokens = min(self._saved_s * limit, self.tokens(limit, now_ms) - value)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Milliseconds until the tokens are no longer below 0; 0: they are not."""
        return max(0, rounded_ms(-self.tokens(limit, now_ms) / limit * _MS_PER_S))


def throttle_ms(rate: float, limit: float, elapsed_ms: int) -> int:
    """Milliseconds without further use until `rate` is down to `limit`; 0 if it is not above.

    rate * elapsed / (elapsed + wait) = limit.
    """
    return rounded_ms((rate - limit) / limit * elapsed_ms) if rate > limit else 0


def rounded_ms(value: float) -> int:
    """The nearest integer within int32, halves upward as Java's `Math.round` has it. A limit near
    the largest float makes multiples of it infinite."""
    return floor(max(-INT_MAX, min(value, INT_MAX)) + 0.5)
