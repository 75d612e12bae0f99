"""Outcomes of acknowledgements, from when they are asked for until a client class takes them."""

from __future__ import annotations

from fairlead_kafka.base.checks import same
from fairlead_kafka.consumer.share.acknowledging import AckResult, Acks
from fairlead_kafka.consumer.share.metrics import ShareMeter


class Outcomes:
    """Counts offsets whose outcome is open, and keeps the outcomes that nobody has taken.

    (Their number is bounded: each call of the client class takes all there are.)
    """

    def __init__(self, meter: ShareMeter) -> None:
        self._meter = meter
        self._results: list[AckResult] = []
        self.open = 0
        """Offsets with acknowledgements that have no outcome."""

    def ask(self, acks: Acks) -> None:
        """Count acknowledgements whose outcome is to come."""
        self.open += len(acks.offsets)
        self._meter.acks_asked += len(acks.offsets)

    def complete(self, acks: Acks, error: Exception | None) -> None:
        """Note the outcome of acknowledgements: `error`, or None if the broker has them."""
        count = len(acks.offsets)
        self.open -= count
        if error is not None:
            self._meter.acks_failed += count
        self._results.append(AckResult(acks, error))

    def take(self) -> list[AckResult]:
        """Outcomes since the last call."""
        results, self._results = self._results, []
        return results

    def check(self, kept: int) -> None:
        """Raise CheckFailed unless `kept` offsets, which wait or are under way, are all whose
        outcome is open."""
        same("offsets without an outcome", self.open, kept)
