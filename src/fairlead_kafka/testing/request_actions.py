"""Actions of faults on requests: answer an error, delay, drop, hang up, hold, observe."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fairlead_kafka.base.codes import TABLE, ErrorCode, Policy, policy
from fairlead_kafka.broker.requester import Reply
from fairlead_kafka.testing.error_places import Division, Taken, changed, divide, joined
from fairlead_kafka.testing.request_faults import Criteria, Fault, GoOn, Passage, SeenRequest
from fairlead_kafka.wire import ApiKey, ApiMessage

_ABOUT_THE_WHOLE = frozenset(
    {
        *(ErrorCode.NOT_CONTROLLER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.STALE_MEMBER_EPOCH),
        *(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        *(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        *(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        *(ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NON_EMPTY_GROUP),
        *(code for code, row in TABLE.items() if Policy.REFIND in row.policy),
    }
)
"""Errors that speak of a group, a session or the cluster: where an answer has a code for those, it
goes there, and not to partitions."""


class _Plain:
    """An action that is always possible and holds nothing."""

    def possible(self, _passage: Passage, _criteria: Criteria) -> bool:
        return True

    def removed(self) -> None:
        pass


class AnswerError(_Plain):
    """Action that answers an error for the parts of a request that a rule is about; the rest of the
    request is served."""

    def __init__(self, code: int, message: str | None, whole: bool | None) -> None:
        self._code, self._message = code, message
        self._whole = code in _ABOUT_THE_WHOLE if whole is None else whole

    def possible(self, passage: Passage, criteria: Criteria) -> bool:
        """Whether the answer has a place for the error."""
        return self._divided(passage, criteria).errors is not None

    def _divided(self, passage: Passage, criteria: Criteria | Fault) -> Division:
        taken = Taken(criteria.takes, self._code, self._message, self._whole)
        return divide(passage.shape, passage.asked(), taken, passage.reader)

    def act(self, fault: Fault, passage: Passage, reply: Reply, go_on: GoOn) -> None:
        """Answer the error, together with the handler's answer for the rest of the request."""
        division = self._divided(passage, fault)
        errors, shape = division.errors, passage.shape
        assert errors is not None, "it was possible"
        field = passage.topic_field
        if passage.unanswered:
            reply = partial(_hang_up, passage, reply)  # no answer can tell: Kafka hangs up, too
        if division.rest is None and (passage.seen.api is not ApiKey.FETCH or not _rows(errors, field)):
            reply(errors)
        elif passage.seen.api is ApiKey.FETCH:
            # Its session goes on as if all had been read, so nothing is taken out of the request.
            keys = passage.taken | _rows(errors, field)
            message = changed(passage.request.message, {"max_wait_ms": 0})
            then = passage.with_message(message)._replace(taken=keys)
            go_on(then, lambda answer: reply(None if answer is None else _overlaid(answer, errors, field)))
        else:
            assert division.rest is not None, "a request that is answered whole went above"
            go_on(
                passage.with_message(division.rest),
                lambda answer: reply(None if answer is None else joined(shape, answer, errors)),
            )

    def __str__(self) -> str:
        return f"answer {policy(self._code).name}"


def _rows(errors: ApiMessage, topic_field: str) -> frozenset[tuple[object, object]]:
    """The partitions, as (topic, number), in a Fetch's answer `errors`; none if it has an error for
    the whole."""
    return frozenset(
        (getattr(topic, topic_field), row.partition_index)
        for topic in getattr(errors, "responses", None) or ()
        for row in topic.partitions
    )


def _overlaid(answer: ApiMessage, errors: ApiMessage, topic_field: str) -> ApiMessage:
    """The answer to a Fetch, with the rows of `errors` in place of its own rows for the same
    partitions."""
    taken = _rows(errors, topic_field)
    topics = []
    for topic in getattr(answer, "responses", None) or ():
        key = getattr(topic, topic_field)
        kept = [row for row in topic.partitions if (key, row.partition_index) not in taken]
        if kept:
            topics.append(changed(topic, {"partitions": kept}))
    rows: list[ApiMessage] = getattr(errors, "responses")  # noqa: B009  (no class has it)
    return changed(answer, {"responses": [*topics, *rows]})


def _hang_up(passage: Passage, reply: Reply, answer: ApiMessage | None) -> None:
    reply(answer)
    passage.session.close("a fault by request: an error that no answer can tell")


class AnswerWith(_Plain):
    """Action that answers what a function of the test returns; if that is None the request is
    served."""

    def __init__(self, function: Callable[[SeenRequest], ApiMessage | None]) -> None:
        self._function = function

    def act(self, _fault: Fault, passage: Passage, reply: Reply, go_on: GoOn) -> None:
        """Answer what the test's function returns, or have the request served if that is None."""
        answer = self._function(passage.seen)
        if answer is None:
            go_on(passage, reply)
        else:
            reply(answer)

    def __str__(self) -> str:
        return "answer with a function"


class Delay(_Plain):
    """Action that serves a request, and holds its answer back for some milliseconds."""

    def __init__(self, milliseconds: float) -> None:
        self._milliseconds = milliseconds

    def act(self, _fault: Fault, passage: Passage, reply: Reply, go_on: GoOn) -> None:
        """Have the request served, and send its answer later."""
        broker, owner = passage.broker, passage.broker.guard.owner

        def later(answer: ApiMessage | None) -> None:
            broker.call_later(self._milliseconds, partial(reply, answer), owner)

        go_on(passage, later)

    def __str__(self) -> str:
        return f"delay {self._milliseconds:g} ms"


class Lose(_Plain):
    """Action that never answers a request. It can have the request served first, and close the
    connection afterwards."""

    def __init__(self, served: bool, hangs_up: bool) -> None:
        self._served, self._hangs_up = served, hangs_up

    def act(self, _fault: Fault, passage: Passage, reply: Reply, go_on: GoOn) -> None:
        """Drop the request or its answer; a `disconnect` also closes the connection."""
        if self._served:
            go_on(passage, lambda _answer: self._lose(passage, reply))
        else:
            self._lose(passage, reply)

    def _lose(self, passage: Passage, reply: Reply) -> None:
        if self._hangs_up:
            passage.session.close("a fault by request")
        elif passage.unanswered:
            reply(None)

    def __str__(self) -> str:
        what = "disconnect" if self._hangs_up else "drop"
        return f"{what}{' once it is served' if self._served else ''}"


class _Held(NamedTuple):
    broker: int
    go_on: Callable[[], None]


class Hold(_Plain):
    """Action that holds requests, unserved, until the rule is removed."""

    def __init__(self, call_in_step: Callable[[int, Callable[[], object]], None]) -> None:
        self._call_in_step = call_in_step
        self._lock = threading.Lock()
        self._held: dict[Callable[[], None], _Held] = {}
        """Requests that are held, by the function that their connection's end calls."""
        self._open = False

    def act(self, _fault: Fault, passage: Passage, reply: Reply, go_on: GoOn) -> None:
        """Hold a request, and forget it when its connection ends."""
        broker, session = passage.broker, passage.session

        def forget() -> None:
            with self._lock:
                self._held.pop(forget, None)

        def then() -> None:
            session.forget_on_close(forget)
            go_on(passage, reply)

        with self._lock:
            held = not self._open
            if held:
                self._held[forget] = _Held(broker.node_id, broker.guard.bind(then))
        if held:
            session.on_close(forget)
        else:
            go_on(passage, reply)

    def removed(self) -> None:
        """Have the requests served that are held."""
        with self._lock:
            self._open = True
            held, self._held = self._held, {}
        for each in held.values():
            self._call_in_step(each.broker, each.go_on)

    def __str__(self) -> str:
        return "hold"


class Observe(_Plain):
    """Action that notes requests, and has them served."""

    def __init__(self, into: list[SeenRequest]) -> None:
        self._into = into

    def act(self, _fault: Fault, passage: Passage, reply: Reply, go_on: GoOn) -> None:
        """Note the request, and let it go on unchanged."""
        self._into.append(passage.seen)
        go_on(passage, reply)

    def __str__(self) -> str:
        return "observe"
