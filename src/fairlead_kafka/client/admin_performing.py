"""`Performing`: it has the machine of an admin client run the script of a call, with a time-out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

from fairlead_kafka.admin import AdminMachine, AdminScript, Perform, Shut
from fairlead_kafka.admin.metrics import AdminMetrics
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import s_to_ns
from fairlead_kafka.client.hosting import (
    LONGEST_S,
    Host,
    Steps,
    abandon,
    closed,
    connect,
    connect_first,
    forked_away,
    instance_id,
    wait_for,
    wait_until,
)
from fairlead_kafka.client.one_at_a_time import closes
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.runtime import Completion

CLOSE_S = 5.0
"""Seconds that `close` waits for the machine and its host."""

T = TypeVar("T")


class Performing:
    """An admin client's host and settings, and whether the client is closed. All parts of the
    client share one object; any number of threads or tasks may use it."""

    def __init__(self, host: Host[AdminMachine], settings: Settings) -> None:
        self.host = host
        self.settings = settings
        self.closed = False
        self._closes = closes()

    @property
    def client_id(self) -> str:
        """`client.id`."""
        return str(self.settings["client.id"])

    def metrics(self) -> AdminMetrics:
        """Metrics of the machine, by Kafka's names; from any thread."""
        return self.host.machine.metrics(self.host.now_ns())

    def connect(self, timeout_s: float | None) -> Steps[None]:
        """Wait until a broker is reached; see `Admin.connect` for time-out and error."""
        self.check()
        return connect(self.host, self.settings, timeout_s)

    def check(self) -> None:
        """Raise UsageError if the client is closed, or belongs to another process."""
        if self.host.forked:
            raise forked_away("admin client")
        if self.closed:
            raise closed("admin client")

    def instance_id(self, timeout_s: float | None) -> Steps[UUID]:
        """The id under which a client's metrics are pushed (KIP-714); see `client_instance_id` for
        time-out and errors."""
        self.check()
        return instance_id(self.host, self._seconds(timeout_s))

    def close(self) -> Steps[None]:
        """Shut the machine; does nothing if it is closed already. CloseUnderWay while other steps
        of this method are driven."""
        return self._closes.run(self._close())

    def _close(self) -> Steps[None]:
        if self.closed or self.host.forked:
            return
        self.closed = True
        completion: Completion[None] = Completion()
        with suppress(UsageError):  # its machine has crashed: there is nothing left to shut
            self.host.submit(Shut(completion))
            yield from wait_until(completion, CLOSE_S)

    def end(self) -> None:
        """Stop the host, after `close`."""
        self.host.close(CLOSE_S)

    def abandon(self) -> None:
        """End the thread of a client object that was dropped without `close`; `hosting.end_with`
        has this called."""
        if self.closed or self.host.forked:
            return
        self.closed = True
        abandon(self.host, self.end, Shut)

    def _seconds(self, timeout_s: float | None) -> float:
        return min(
            self.settings["default.api.timeout.ms"] / 1000 if timeout_s is None else timeout_s, LONGEST_S
        )

    def timeout_ms(self, timeout_s: float | None) -> int:
        """Milliseconds that a broker may take for a call: `timeout_s` (seconds), but at most
        request.timeout.ms, so that an answer comes before the request is given up."""
        return int(min(self._seconds(timeout_s) * 1000, self.settings["request.timeout.ms"]))

    def perform(
        self,
        what: str,
        items: Iterable[object],
        make: Callable[[Metadata], AdminScript[T]],
        timeout_s: float | None,
        topics: Sequence[str] = (),
    ) -> Steps[T]:
        """The result of the script that `make` returns; `what` and `items` name it in errors.

        `topics` have to be in the metadata while the script runs. Raises TimedOut after `timeout_s`
        seconds, and what the script raises.
        """
        self.check()
        deadline_ns = self.host.now_ns() + s_to_ns(self._seconds(timeout_s))
        yield from connect_first(self.host, self.settings, timeout_s, "default.api.timeout.ms")
        names = [str(item) for item in items]
        named = f"{what} {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}".strip()
        completion: Completion[T] = Completion()
        self.host.submit(Perform(completion, deadline_ns, named, make, topics))
        return (yield from wait_for(completion))


def distinct(call: str, names: Iterable[str]) -> list[str]:
    """The names that `call` is given, as a list. UsageError for a text in place of a list, or for a
    name that comes twice."""
    if isinstance(names, str):
        raise UsageError(f"{call}: expected several names, got the text {names!r}; put it into a list")
    wanted = list(names)
    twice = (
        sorted({name for name in wanted if wanted.count(name) > 1}) if len(set(wanted)) < len(wanted) else []
    )
    if twice:
        raise UsageError(f"{call}: named twice: {', '.join(twice)}")
    return wanted


def topics_of(partitions: Iterable[TopicPartition]) -> list[str]:
    """Topics of the partitions, each once."""
    return list(dict.fromkeys(topic for topic, _ in partitions))
