"""The frame of every admin call: ask about all items at once, keep what is settled, ask again about the rest, fail together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import BrokerError, ItemsFailed, UnsupportedVersion
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.core.script import Answer, Ask, Pause

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
AdminScript: TypeAlias = Generator[Sequence[Ask] | Pause, list[Answer], T]

_FINAL = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
"""Retriable by the table, for a producer's sake; an admin who names a topic that is not there has to hear it now."""


class Settled(NamedTuple):
    """What an answer says of one item."""

    code: int
    message: str | None = None
    result: Any = None


def retriable(code: int) -> bool:
    """True if an admin call should try again by itself."""
    return code not in _FINAL and BrokerError(code).retriable


def per_item(
    what: str,
    items: Mapping[K, Any],
    ask: Callable[[dict[K, Any]], Sequence[Ask]],
    read: Callable[[Any], Iterable[tuple[K, Settled]]],
) -> AdminScript[dict[K, Any]]:
    """A script: {item: result}. `ask` makes the requests about the items still open, `read` takes one answer apart.

    Raises ItemsFailed if any item failed, once all are settled. An error after an answer got lost says so: the request that
    nobody heard of again may have been carried out.
    """
    open_items = dict(items)
    results: dict[K, Any] = {}
    errors: dict[K, BrokerError] = {}
    lost: Exception | None = None
    while open_items:
        trouble: Exception | None = None
        for answer in (yield ask(open_items)):
            if isinstance(answer, UnsupportedVersion):
                raise answer
            if isinstance(answer, Exception):
                trouble = lost = answer
                continue
            for item, settled in read(answer):
                if item not in open_items:
                    continue
                if settled.code and retriable(settled.code):
                    trouble = BrokerError(settled.code, f"{item}: {settled.message or 'no reason given'}")
                    continue
                del open_items[item]
                if settled.code:
                    note = f" (an earlier request may have been carried out: {lost})" if lost is not None else ""
                    errors[item] = BrokerError(settled.code, f"{settled.message or BrokerError(settled.code).policy.meaning}{note}")
                else:
                    results[item] = settled.result
        if open_items:
            left_out = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer left out {', '.join(map(str, open_items))}")
            yield Pause(trouble or left_out, refresh=True)
    if errors:
        raise ItemsFailed(what, {item: errors[item] for item in items if item in errors}, results)
    return {item: results[item] for item in items}


def about_one(what: str, ask: Ask, read: Callable[[Any], Settled]) -> AdminScript[Any]:
    """A script: what a single request gives. BrokerError, not ItemsFailed, if it fails: there is nothing to tell apart."""
    try:
        settled = yield from per_item(what, {what: None}, lambda _: [ask], lambda answer: [(what, read(answer))])
    except ItemsFailed as failed:
        raise failed.errors[what] from None
    return settled[what]


def explained(code: int, message: str | None, operation: str) -> str | None:
    """A broker's words on an error; on a missing right, with its name: `operation`, as Kafka's ACLs have it."""
    return message if not code else broker_error(code, message or policy(code).meaning, operation).context
