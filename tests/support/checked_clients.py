"""Consumers that compare what their client class keeps twice after every call, in rigs of virtual
time."""

from __future__ import annotations

from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.client.consumer_calls import ConsumerCalls
from fairlead_kafka.client.hosting import Steps, T


class CheckedConsumer(Consumer):
    """A consumer whose calls end with the `check()` of its part on the caller's side, also those
    that raise. Its machine checks itself after every step (`checked`)."""

    @property
    def calls(self) -> ConsumerCalls:
        """The parts on the caller's side, whose steps a test may drive itself."""
        return self._calls

    def _run(self, steps: Steps[T]) -> T:
        try:
            return super()._run(steps)
        finally:
            self._calls.check()
