"""`Asking`: submits operations of a consumer's calls to its machine, with a time-out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.units import s_to_ns
from fairlead_kafka.client.hosting import (
    LONGEST_S,
    Host,
    Steps,
    closed,
    connect,
    connect_first,
    forked_away,
    instance_id,
    wait_for,
)
from fairlead_kafka.consumer import ConsumerMachine
from fairlead_kafka.consumer.metrics import PollRecorder
from fairlead_kafka.core.traffic_meter import sampling_of
from fairlead_kafka.runtime import Completion

P = ParamSpec("P")
T = TypeVar("T")


class Asking:
    """A consumer's host and settings, and whether the consumer is being closed, or is closed. All
    parts of a consumer share one object."""

    def __init__(self, host: Host[ConsumerMachine], settings: Settings) -> None:
        self.host = host
        self.settings = settings
        self.closing = False
        """True once `close` was called: no poll begins any more."""
        self.closed = False
        """True once the group is left, and no call is allowed any more."""
        self.default_timeout_s: float = settings["default.api.timeout.ms"] / 1000
        self.submit = host.submit
        self.now_ns = host.now_ns
        self.polls = PollRecorder(sampling_of(settings), host.now_ns)
        """Counters of polls and the records that they return."""

    def check(self) -> None:
        """Raise UsageError if the client is closed, or belongs to another process."""
        if self.host.forked:
            raise forked_away("consumer")
        if self.closed:
            raise closed("consumer")

    def ask(
        self, operation: Callable[Concatenate[Completion[T], P], object], *args: P.args, **kwargs: P.kwargs
    ) -> Steps[T]:
        """Submit `operation(completion, *args, **kwargs)`, and wait for the completion's result.
        Raises what the completion fails with."""
        self.check()
        completion: Completion[T] = Completion()
        self.submit(operation(completion, *args, **kwargs))
        return (yield from wait_for(completion))

    def deadline_ns(self, timeout_s: float | None) -> int:
        """Monotonic time at which a call with this time-out ends, ns; UsageError if closed."""
        self.check()
        return self.now_ns() + s_to_ns(
            min(self.default_timeout_s if timeout_s is None else timeout_s, LONGEST_S)
        )

    def connect(self, timeout_s: float | None) -> Steps[None]:
        """Wait until a broker is reached; see `Consumer.connect` for time-out and error."""
        self.check()
        return connect(self.host, self.settings, timeout_s)

    def instance_id(self, timeout_s: float | None) -> Steps[UUID]:
        """The id under which a client's metrics are pushed (KIP-714); see `client_instance_id` for
        time-out and errors."""
        self.check()
        return instance_id(self.host, self.default_timeout_s if timeout_s is None else timeout_s)

    def connect_first(self, timeout_s: float | None) -> Steps[None]:
        """Wait for the client's first connection, if `timeout_s` is None and no broker was ever
        reached. NoBrokerReached after `bootstrap.connection.timeout.ms`; with a time-out it does
        nothing."""
        return connect_first(self.host, self.settings, timeout_s, "default.api.timeout.ms")
