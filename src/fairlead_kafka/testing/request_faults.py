"""Faults of single requests: rules with the requests they match, an action, and the number of
times.

    cluster.on(ApiKey.PRODUCE, topic="orders").answer(ErrorCode.NOT_ENOUGH_REPLICAS, times=2)

Rules (`Fault`) are applied to the requests of all brokers before their handlers, in the order in
which rules were made. The first rule that answers, drops or holds a request is the last; rules that
observe or delay pass it on to the next. A rule that names a topic, a partition, a group or a
transactional id is about that part of a request: an error is answered for it alone, and what else
the request asks for is served.

Fetches of a session (KIP-227) do not name all partitions again. They are known here from the
session, so a rule about a topic matches every fetch of it.

Rules may be made and removed on any thread, and are applied on the cluster's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from fairlead_kafka.base.errors import TimedOut, UsageError
from fairlead_kafka.broker.dispatch import Handler
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.testing.error_places import Kind, Layout, Names, Reader, changed, layout, parts, reader
from fairlead_kafka.wire import ApiKey, ApiMessage, PrivateApi, Request
from fairlead_kafka.wire.messages import FetchRequest

WAIT_S = 30.0
"""How long `Fault.wait` waits unless it is told otherwise."""
_FETCH_BY_ID_FROM_VERSION = 13


class SeenRequest(NamedTuple):
    """A request as it came to a broker: what predicates and `observe` are given."""

    api: ApiKey
    version: int
    client_id: str | None
    principal: str
    """`User:alice`; `User:ANONYMOUS` if it did not authenticate."""
    broker: int
    """Id of the broker that it came to."""
    message: ApiMessage
    """The request's fields, by Kafka's names in snake_case; record batches are buffers."""


Predicate = Callable[[SeenRequest], bool]


class Criteria(NamedTuple):
    """Conditions on the requests that a rule meets; a condition that is None is always met."""

    api: ApiKey | None = None
    parts: tuple[tuple[Kind, object], ...] = ()
    client_id: str | None = None
    principal: str | None = None
    broker: int | None = None
    where: Predicate | None = None

    def takes(self, names: Names) -> bool:
        """Whether a part with these names is met."""
        return all(names.get(kind) == value for kind, value in self.parts)

    def __str__(self) -> str:
        given = [("client_id", self.client_id), ("principal", self.principal), ("broker", self.broker)]
        shown = [f"{name}={value!r}" for name, value in (*self.parts, *given) if value is not None]
        shown += ["where=..."] if self.where is not None else []
        return ", ".join(["any request" if self.api is None else self.api.name, *shown])


class Passage(NamedTuple):
    """A request on its way to its handler, as rules see it."""

    seen: SeenRequest
    request: Request[Any]
    broker: Services
    session: Requester
    handler: Handler
    taken: frozenset[tuple[object, object]] = frozenset()
    """Partitions of a fetch that rules have taken: they are served, and their answer is
    replaced."""

    @property
    def shape(self) -> Layout:
        """Layout of the request and its answer: the fields by which rules find topics."""
        return layout(self.seen.api, self.request.version)

    @property
    def reader(self) -> Reader:
        """A reader of the names in the request: topics, groups and other resources."""
        return reader(self.request.message, self.topic_name)

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of the topic with this id; None if there is none."""
        topic = self.broker.controller.image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def asked(self) -> ApiMessage:
        """The request's message with everything that it asks for: a Fetch also has the partitions
        that only its session names."""
        message = self.request.message
        if self.seen.api is not ApiKey.FETCH:
            return message  # type: ignore[no-any-return]
        return _whole_fetch(self, message)

    @property
    def topic_field(self) -> str:
        """The name of the field by which this version of Fetch names topics."""
        return "topic" if self.request.version < _FETCH_BY_ID_FROM_VERSION else "topic_id"

    @property
    def unanswered(self) -> bool:
        """True if the request is a Produce that wants no answer (acks=0)."""
        return self.seen.api is ApiKey.PRODUCE and self.request.message.acks == 0

    def with_message(self, message: ApiMessage) -> Passage:
        """The passage with another request in its place."""
        return self._replace(request=replace(self.request, message=message))

    def serve(self, reply: Reply) -> None:
        """Have the handler serve the request, and answer by `reply`."""
        self.handler(self.broker, self.request, self.session, reply)


def _whole_fetch(passage: Passage, message: FetchRequest) -> ApiMessage:
    field = passage.topic_field
    wants: dict[tuple[object, object], FetchRequest.FetchPartition] = {}
    if message.session_epoch > 0:
        for want in passage.broker.fetch_sessions.wants_of(message.session_id):
            wants[want.topic, want.data.partition] = want.data
    for gone in message.forgotten_topics_data:
        for number in gone.partitions:
            wants.pop((getattr(gone, field), number), None)
    for topic in message.topics:
        for data in topic.partitions:
            wants[getattr(topic, field), data.partition] = data
    topics: dict[object, list[FetchRequest.FetchPartition]] = {}
    for key, data in wants.items():
        if key not in passage.taken:
            topics.setdefault(key[0], []).append(data)
    rows = [
        changed(FetchRequest.FetchTopic(), {field: name, "partitions": found})
        for name, found in topics.items()
    ]
    return changed(message, {"topics": rows})


GoOn = Callable[[Passage, Reply], None]
"""Hands a request to the rules behind, and in the end to its handler."""


class Action(Protocol):
    """Something that a rule does to the requests that it meets."""

    def possible(self, passage: Passage, criteria: Criteria) -> bool:
        """Whether the action can be done to this request; else the request goes on unmet."""

    def act(self, fault: Fault, passage: Passage, reply: Reply, go_on: GoOn) -> None:
        """Carry out the action on a request: answer by `reply`, or pass it on by `go_on`."""

    def removed(self) -> None:
        """Called when the rule is removed: have the requests served that the action holds."""


class Fault:
    """A rule about requests, which holds until `remove`; the end of a `with` block calls that
    too."""

    def __init__(
        self, criteria: Criteria, action: Action, times: int | None, after: int, rules: RequestFaults
    ) -> None:
        self._criteria = criteria
        self._action = action
        self._times, self._after = times, after
        self._rules = rules
        self._changed = threading.Condition()
        self._passed = 0
        self._hits = 0
        self._error: Exception | None = None

    @property
    def hits(self) -> int:
        """The number of requests that the rule has met."""
        return self._hits

    @property
    def active(self) -> bool:
        """True until the rule is removed, or has met `times` requests."""
        return self in self._rules.rules and (self._times is None or self._hits < self._times)

    def wait(self, timeout: float = WAIT_S, hits: int | None = None) -> None:
        """Wait until the rule has met `hits` requests; None: as many as `times` said, or one.

        TimedOut after `timeout` seconds; UsageError if a function that the test gave raised.
        """
        wanted = hits if hits is not None else (self._times or 1)
        with self._changed:
            self._changed.wait_for(lambda: self._hits >= wanted or self._error is not None, timeout)
            if self._error is not None:
                raise UsageError(f"{self}: the function it calls raised {self._error!r}") from self._error
            if self._hits < wanted:
                raise TimedOut(f"{self}: {self._hits} of {wanted} requests came within {timeout:g} s")

    def remove(self) -> None:
        """Have the rule meet nothing more; requests that it holds go on. Idempotent."""
        self._rules.remove(self)
        self._action.removed()

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<fault on {self._criteria}: {self._action}>"

    # --- On the cluster's thread

    def meet(self, passage: Passage) -> bool:
        """Whether the rule acts on a request, which is counted then."""
        try:
            found = self._matches(passage) and self._action.possible(passage, self._criteria)
        except Exception as error:
            self.failed(error)
            raise
        if not found:
            return False
        with self._changed:
            self._passed += 1
            if self._passed <= self._after or (self._times is not None and self._hits >= self._times):
                return False
            self._hits += 1
            self._changed.notify_all()
            return True

    def act(self, passage: Passage, reply: Reply, go_on: GoOn) -> None:
        """Carry out the rule's action on a request. An exception of a function of the test is
        noted, and raised."""
        try:
            self._action.act(self, passage, reply, go_on)
        except Exception as error:
            self.failed(error)
            raise

    def failed(self, error: Exception) -> None:
        """Called when a function of the test raised: `wait` raises UsageError then, and the
        request's connection is closed."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def takes(self, names: Names) -> bool:
        """Whether this rule is about a part of a request (a topic, a partition, a group) with these
        names."""
        return self._criteria.takes(names)

    def _matches(self, passage: Passage) -> bool:
        criteria, seen = self._criteria, passage.seen
        if (
            criteria.api not in (None, seen.api)
            or criteria.client_id not in (None, seen.client_id)
            or criteria.principal not in (None, seen.principal)
            or criteria.broker not in (None, seen.broker)
        ):
            return False
        if criteria.parts and not any(
            map(criteria.takes, parts(passage.shape, passage.asked(), passage.reader))
        ):
            return False
        return criteria.where is None or bool(criteria.where(seen))


class RequestFaults:
    """All rules of a cluster, in the order in which they were made."""

    def __init__(self, call_in_step: Callable[[int, Callable[[], object]], None]) -> None:
        self.rules: tuple[Fault, ...] = ()
        self.call_in_step = call_in_step
        """Calls a function within a step of a broker."""
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> Fault:
        """Add a rule behind all others."""
        with self._lock:
            self.rules = (*self.rules, fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Remove a rule."""
        with self._lock:
            self.rules = tuple(each for each in self.rules if each is not fault)

    def clear(self) -> None:
        """Remove all rules."""
        for fault in self.rules:
            fault.remove()

    # --- On the cluster's thread (`broker.dispatch.Interceptor`)

    @property
    def active(self) -> bool:
        """True if there are any rules."""
        return bool(self.rules)

    def serve(
        self, handler: Handler, broker: Services, request: Request[Any], session: Requester, reply: Reply
    ) -> None:
        """Serve a request of a client, or of another broker in Kafka's protocol, as the rules that
        it meets say; without any, by `handler`."""
        if isinstance(request.api_key, PrivateApi):
            handler(broker, request, session, reply)
            return
        seen = SeenRequest(
            ApiKey(request.api_key),
            request.version,
            request.client_id,
            str(session.principal),
            broker.node_id,
            request.message,
        )
        _meet(self.rules, Passage(seen, request, broker, session, handler), reply)


def _meet(rules: tuple[Fault, ...], passage: Passage, reply: Reply) -> None:
    for index, fault in enumerate(rules):
        if fault.meet(passage):
            fault.act(passage, reply, partial(_meet, rules[index + 1 :]))
            return
    passage.serve(reply)
