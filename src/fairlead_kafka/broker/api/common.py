"""Helpers that several API handlers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, cut_short
from fairlead_kafka.broker.controller import CreateInternalTopic, TopicImage
from fairlead_kafka.broker.controller.names import check_topic_name
from fairlead_kafka.broker.services import Services

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
NO_ID = UUID(int=0)
"""The UUID of zeros, by which requests and answers say that they have no topic id."""


def reason(error: BrokerError) -> str:
    """The error's text without its name and number, for an answer that has these as a code; at most
    ERROR_TEXT_MAX_LENGTH characters."""
    return cut_short(str(error).partition(": ")[2])


def name_error(topic: str) -> BrokerError | None:
    """The error for a topic name that is not allowed; None: it is allowed."""
    try:
        check_topic_name(topic)
    except BrokerError as error:
        return error
    return None


def repeated(names: Iterable[K]) -> set[K]:
    """The names that come more than once in `names`."""
    return {name for name, count in Counter(names).items() if count > 1}


def distinct(items: Iterable[R]) -> list[R]:
    """The parts of a request without those that say the same as one before: it is answered once,
    for an answer may be ten thousand times as large as the question."""
    return list({repr(item): item for item in items}.values())


def peer_host(peer: str) -> str:
    """A peer's address as Kafka shows it in a group: a slash and the address without its port."""
    return "/" + (peer.rpartition(":")[0] or peer)


def one_each(results: Sequence[R] | None, error: BrokerError | None, count: int) -> Sequence[R | BrokerError]:
    """The outcome of each of the `count` parts of a decision: its result, or, if the whole decision
    failed, `error`."""
    return [error] * count if error is not None else results or ()


def as_clients_know(error: int, knows: bool) -> int:
    """The error code to answer: INVALID_PRODUCER_EPOCH in place of PRODUCER_FENCED, unless the
    client `knows` the latter."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if error == ErrorCode.PRODUCER_FENCED and not knows else error


def have_internal_topic(
    broker: Services, name: str, then: Callable[[TopicImage | None, BrokerError | None], None]
) -> None:
    """Find one of INTERNAL_TOPICS, and create it if it does not exist. Calls then(topic, None) or
    then(None, error)."""
    topic = broker.controller.image.topics.get(name)
    if topic is not None:
        then(topic, None)
    else:
        broker.controller.decide(CreateInternalTopic(name), then)


class PendingParts:
    """Counts the parts of a request that must finish before its answer can be sent.

    The caller that created it calls `done` once, when all parts have begun.
    """

    def __init__(self, complete: Callable[[], None]) -> None:
        self._complete = complete
        self._outstanding = 1

    def begin(self) -> None:
        """Count one more part."""
        self._outstanding += 1

    def into(
        self, outcomes: dict[K, BrokerError | None], key: K
    ) -> Callable[[object, BrokerError | None], None]:
        """Count one more part, a decision; returns the function to call with its result or error.
        The error, or None, is put into `outcomes[key]`."""
        self.begin()

        def decided(_result: object, error: BrokerError | None) -> None:
            outcomes[key] = error
            self.done()

        return decided

    def done(self) -> None:
        """Count one part as finished; with the last one the answer is sent."""
        self._outstanding -= 1
        if not self._outstanding:
            self._complete()
