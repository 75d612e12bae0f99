"""Which brokers took no data for too long: the bookkeeping behind `partitioner.availability.timeout.ms` (KIP-794)."""

from __future__ import annotations


class BrokerAvailability:
    """Per broker, since when it has been holding up batches that were ready for it. Pure: the caller brings the clock.

    The accumulator calls `observe` whenever it looks whether a broker can be sent to: for each broker with a batch that
    is ready, and for each broker that `is_unready` even if nothing is queued for it. The latter differs from Kafka: there an
    idle partition on an unready broker is still chosen, and the data that it thereby gets is what reveals the broker's return.
    Here it is passed over, so that without another look it would be passed over for good.

    Kafka's `RecordAccumulator.updateNodeLatencyStats`: readyTimeMs - drainTimeMs > timeout.
    """

    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._spans: dict[int, tuple[int, int]] = {}

    def observe(self, broker_id: int, *, can_take: bool, now_ns: int) -> None:
        """The broker `can_take` a produce request now (connected, and a request in flight is allowed), or cannot."""
        if self._timeout_ns <= 0:
            return
        if can_take:
            self._spans.pop(broker_id, None)
        else:
            since_ns, _ = self._spans.get(broker_id, (now_ns, now_ns))
            self._spans[broker_id] = (since_ns, now_ns)

    def is_unready(self, broker_id: int) -> bool:
        """True if, by the observations, it took nothing for longer than the timeout; at once False when it can take again."""
        span = self._spans.get(broker_id)
        return span is not None and span[1] - span[0] > self._timeout_ns

    def unready(self) -> list[int]:
        """The ids of all unready brokers, ascending; these are to be observed even if nothing is queued for them."""
        return sorted(broker_id for broker_id in self._spans if self.is_unready(broker_id))

    def forget(self, broker_id: int) -> None:
        """Drop the broker's account: it left the cluster, or all that was ready for it expired before it became unready."""
        self._spans.pop(broker_id, None)
