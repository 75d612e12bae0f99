"""`Exchange`: what a share consumer's calls and its machine give each other."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from fairlead_kafka.base.at_once import at_once
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.client.hosting import Connecting, Steps, wait_for, wait_until
from fairlead_kafka.consumer.share import GAP, Acknowledge, AckResult, InFlight, Take, Taken
from fairlead_kafka.runtime import Completion


@runtime_checkable
class AcknowledgementCommitCallback(Protocol):
    """Called with the outcome of acknowledgements, in the thread of a later poll, commit or close.

    `offsets`: those of the records, by partition. `error`: None if the broker has them. It must not
    call its consumer. Kafka's counterpart has the same name.
    """

    def __call__(
        self, offsets: Mapping[TopicPartition, Sequence[int]], error: Exception | None, /
    ) -> object: ...


class Exchange:
    """Sends acknowledgements to the machine, and takes chunks and outcomes from it, which it keeps
    in `flight`. What is under way when a call is cancelled, the next one goes on with."""

    def __init__(self, host: Connecting) -> None:
        self._host = host
        self.flight = InFlight()
        self.callback: AcknowledgementCommitCallback | None = None
        self._asked: Completion[Taken] | None = None
        """Question of a poll to the machine, unanswered or not looked at."""
        self._asked_sent = False
        """True once the machine has `_asked` for certain."""
        self._acking: list[Completion[list[AckResult]]] = []
        """Acknowledgements that calls wait for, or waited for until they were cancelled."""

    def take(self, deadline_ns: int, max_records: int, acks_by_ns: int) -> Steps[bool]:
        """Send acknowledgements, and get pending chunks from the machine. False if none came in
        time. Times are ns on the monotonic clock.

        A poll that is cancelled leaves its operation with the machine; the next poll waits for the
        answer to that one first.
        """
        remaining_s = None
        if self._asked is None:
            self._asked_sent = False
            self._asked = Completion()
        if not self._asked_sent:
            # Ctrl-C may come in the middle; the machine knows a question that it gets again.
            acks = self.flight.to_send()
            self._host.submit(Take(self._asked, deadline_ns, max_records, acks, acks_by_ns))
            self._asked_sent = True
            self.flight.sent()
        else:
            self.send(acks_by_ns)
            remaining_s = max(0.0, (deadline_ns - self._host.now_ns()) / NS_PER_S)
        try:
            taken = yield from wait_until(self._asked, remaining_s)
        except Exception:
            self._asked = None
            raise
        if taken is None:
            return False
        self.complete()
        return bool(taken.chunks) or (remaining_s is not None and self._host.now_ns() < deadline_ns)

    def send(self, deadline_ns: int) -> None:
        """Send acknowledgements without waiting; `complete` notes the outcome later. `deadline_ns`
        is on the monotonic clock."""
        acks = self.flight.to_send()
        if acks:
            self._host.submit(Acknowledge(Completion(), None, acks, deadline_ns))
            self.flight.sent()

    def acknowledge(self, deadline_ns: int, acks_by_ns: int) -> Steps[list[AckResult]]:
        """Send acknowledgements, and wait until they and earlier ones are answered. Times are ns on
        the monotonic clock.

        A call that is cancelled leaves its operation with the machine; the next call takes the
        answer.
        """
        completion: Completion[list[AckResult]] = Completion()
        self._acking.append(completion)
        self._host.submit(Acknowledge(completion, deadline_ns, self.flight.to_send(), acks_by_ns))
        self.flight.sent()
        yield from wait_for(completion)
        return self.complete()

    def collect(self) -> None:
        """Keep what the machine has answered: chunks as pending, outcomes to be reported."""
        flight, asked = self.flight, self._asked
        for acking in [each for each in self._acking if each.done()]:
            results = acking.result() if acking.error() is None else []
            at_once(partial(self._acking.remove, acking), partial(flight.outcomes.extend, results))
        if asked is not None and asked.done() and asked.error() is None:
            taken = asked.result()
            at_once(
                partial(flight.pending.extend, taken.chunks),
                partial(flight.outcomes.extend, taken.results),
                partial(setattr, self, "_asked", None),
            )

    def complete(self) -> list[AckResult]:
        """Take the machine's answers, note the outcomes of acknowledgements, and call the callback
        with them. What the callback raised is raised at the end."""
        self.collect()
        return self.report(self.flight.outcomes)

    def report(self, outcomes: deque[AckResult]) -> list[AckResult]:
        """Note `outcomes`, and call the callback with each; what it raised is raised at the end."""
        reported: list[AckResult] = []
        failure: Exception | None = None
        while outcomes:
            result = acks, error = outcomes[0]
            offsets = acks.offsets[acks.types != GAP].tolist()
            if self.callback is not None and offsets and acks.number:
                try:
                    self.callback({acks.partition: offsets}, error)
                except Exception as raised:
                    failure = failure or raised
            self.flight.complete_first(outcomes)
            reported.append(result)
        if failure is not None:
            raise failure
        return reported
