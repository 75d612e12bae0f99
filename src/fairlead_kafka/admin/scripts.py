"""Frame of every admin call about several items.

It asks about all items at once, keeps those that are completed, asks again about the rest, and
fails once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import BrokerError, ItemsFailed, UnsupportedVersion
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.script import Ask, Pause, Steps, ask_all

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
AdminScript: TypeAlias = Steps[T]

_FINAL = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
"""Errors that the table calls retriable, for a producer's sake; an admin who names a topic that is
not there has to know it now."""


class Done(NamedTuple, Generic[T_co]):
    """Outcome of an item that did not fail."""

    result: T_co


class Refused(NamedTuple):
    """Outcome of an item that failed: an error code, never 0, and the broker's message."""

    code: int
    message: str | None = None


Outcome: TypeAlias = Done[T] | Refused
"""Outcome of one item, as an answer has it."""


def outcome_of(code: int, message: str | None, result: T) -> Outcome[T]:
    """The outcome in a row of an answer: `result` if its error code is 0, else Refused."""
    return Refused(code, message) if code else Done(result)


def retriable(code: int) -> bool:
    """True if an admin call should try again by itself."""
    return code not in _FINAL and BrokerError(code).retriable


def per_item(
    what: str,
    items: Mapping[K, V],
    ask: Callable[[dict[K, V]], Sequence[Ask[R]]],
    read: Callable[[R], Iterable[tuple[K, Outcome[T]]]],
) -> AdminScript[dict[K, T]]:
    """A script: {item: result}. `ask` makes the requests about the items still open.

    `read` takes one answer apart. Raises ItemsFailed if any item failed, once all are completed. An
    error after an answer got lost says so: the request without an answer may have been carried out.
    """
    open_items = dict(items)
    results: dict[K, T] = {}
    errors: dict[K, BrokerError] = {}
    lost: Exception | None = None
    while open_items:
        trouble: Exception | None = None
        for answer in (yield from ask_all(ask(open_items))):
            if isinstance(answer, UnsupportedVersion):
                raise answer
            if isinstance(answer, Exception):
                trouble = lost = answer
                continue
            for item, outcome in read(answer):
                if item not in open_items:
                    continue
                if isinstance(outcome, Refused) and retriable(outcome.code):
                    trouble = BrokerError(outcome.code, f"{item}: {outcome.message or 'no reason given'}")
                    continue
                del open_items[item]
                if isinstance(outcome, Refused):
                    note = (
                        f" (an earlier request may have been carried out: {lost})" if lost is not None else ""
                    )
                    errors[item] = BrokerError(
                        outcome.code, f"{outcome.message or BrokerError(outcome.code).policy.meaning}{note}"
                    )
                else:
                    results[item] = outcome.result
        if open_items:
            left_out = BrokerError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer left out {', '.join(map(str, open_items))}"
            )
            yield Pause(trouble or left_out, refresh=True)
    if errors:
        raise ItemsFailed(what, {item: errors[item] for item in items if item in errors}, results)
    return {item: results[item] for item in items}


def about_one(what: str, ask: Ask[R], read: Callable[[R], Outcome[T]]) -> AdminScript[T]:
    """A script: the result of a single request.

    BrokerError, not ItemsFailed, if it fails: there is only one item.
    """
    try:
        outcomes = yield from per_item(
            what, {what: None}, lambda _: [ask], lambda answer: [(what, read(answer))]
        )
    except ItemsFailed as failed:
        raise failed.errors[what] from None
    return outcomes[what]


def explained(code: int, message: str | None, operation: str) -> str | None:
    """A broker's message on an error, or else what its code means. For a missing right it also
    names the right: `operation`, as Kafka's ACLs call it."""
    return message if not code else broker_error(code, message or policy(code).meaning, operation).context
