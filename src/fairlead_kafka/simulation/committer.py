"""A group member of the simplest kind: it commits ever greater offsets, one request after the
other, and records which were acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.effects import Buffer, Close, Connect, Effect, Write
from fairlead_kafka.core.events import Connected, Disconnected, Event, Received
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.wire import (
    ApiKey,
    ApiMessage,
    FrameReader,
    Message,
    PrivateApi,
    RequestMessage,
    decode_response,
    encode_request,
)
from fairlead_kafka.wire.messages import (
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

FIND_VERSION = 2
COMMIT_VERSION = 7
FETCH_VERSION = 7
GROUP = "committer"
TOPIC = "orders"
PAUSE_MS = 120.0
PATIENCE_MS = 400.0
READ_MS = 5_000.0
UNKNOWN = -1
DEFINITE = (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""Error codes that say for sure whether the commit was taken.

COORDINATOR_NOT_AVAILABLE may come after the writing, when too few replicas were in sync.
"""
Answered: TypeAlias = Callable[[R | None], None]


Alteration = Callable[[bytes], bytes]


class _Asked(NamedTuple):
    api_key: ApiKey | PrivateApi
    version: int
    request: bytes
    answered: Callable[..., None]
    frames: FrameReader


def _decoded(asked: _Asked, frame: Buffer) -> ApiMessage | None:
    try:
        return decode_response(asked.api_key, asked.version, memoryview(frame))
    except DecodeError:
        return None  # treated as no answer


class Asker:
    """A machine that sends each request on a connection of its own. The caller gets the answer, or
    None if the connection was lost."""

    def __init__(self, host: VirtualHost) -> None:
        self._host = host
        self._events: list[Event] = []
        self._effects: list[Effect] = []
        self._asked: dict[int, _Asked] = {}
        self._last = 0
        self._handle = host.add(self)

    def ask(
        self,
        address: str,
        api_key: ApiKey | PrivateApi,
        version: int,
        message: RequestMessage[R] | Message,
        answered: Answered[R],
        altered: Alteration | None = None,
    ) -> None:
        """Send a request to the server at host:port; `altered` changes the encoded request before
        it is sent.
        """
        name, port = address.rsplit(":", 1)
        self._last += 1
        request = b"".join(encode_request(api_key, version, 1, "asker", message))
        self._asked[self._last] = _Asked(
            api_key, version, request if altered is None else altered(request), answered, FrameReader()
        )
        self._effects.append(Connect(self._last, name, int(port)))
        self._host.wake(self._handle)

    def receive(self, event: Event) -> None:
        """Queue an event."""
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on the events that arrived and on what is due; returns the effects for the host.
        `now_ns` is monotonic, `wall_ms` milliseconds since 1970."""
        events, self._events = self._events, []
        for event in events:
            asked = (
                self._asked.get(event.connection)
                if isinstance(event, Connected | Received | Disconnected)
                else None
            )
            if asked is None:
                continue
            if isinstance(event, Connected):
                self._effects.append(Write(event.connection, [asked.request]))
            elif isinstance(event, Received):
                for frame in asked.frames.feed(event.data):
                    del self._asked[event.connection]
                    self._effects.append(Close(event.connection))
                    asked.answered(_decoded(asked, frame))
            else:
                del self._asked[event.connection]  # type: ignore[union-attr]
                asked.answered(None)
        effects, self._effects = self._effects, []
        return effects

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        return None


class Committer:
    """Commits offsets 1, 2, 3 ... for partition 0 of "orders". Every request goes to all brokers;
    the coordinator is the one that accepts it."""

    def __init__(self, host: VirtualHost, script: Script, addresses: Sequence[str], rng: Random) -> None:
        self._host = host
        self._script = script
        self._addresses = addresses
        self._rng = rng
        self._asker = Asker(host)
        self._next = 1
        self._open = 0
        self._finished = False
        self.acknowledged = 0
        """The last offset that a broker acknowledged; 0: none."""
        self._uncertain: set[int] = set()
        """Offsets that may be committed, then or later: not all brokers answered in time, or one
        answered with an error that leaves it open.
        """

    def begin(self) -> None:
        """Commit one offset, and the next one a little later."""
        if self._finished:
            return
        offset, self._next = self._next, self._next + 1
        self._uncertain.add(offset)
        codes: list[int] = []
        if not self.acknowledged:  # the first request makes the broker create the topic
            address, asked = self._rng.choice(self._addresses), FindCoordinatorRequest(key=GROUP, key_type=0)
            self._asker.ask(address, ApiKey.FIND_COORDINATOR, FIND_VERSION, asked, _unheard)
        for address in self._addresses:
            self._asker.ask(
                address,
                ApiKey.OFFSET_COMMIT,
                COMMIT_VERSION,
                _commit(offset),
                lambda answer: self._answered(offset, codes, answer),
            )
        self._script.after(PAUSE_MS * (0.5 + self._rng.random()), self._go_on, codes, self._host.now_ns())

    def finish(self) -> None:
        """Commit no more."""
        self._finished = True

    def _go_on(self, codes: list[int], begun_ns: int) -> None:
        patient = self._host.now_ns() - begun_ns < PATIENCE_MS * 1e6
        if len(codes) < len(self._addresses) and patient:
            self._script.after(20.0, self._go_on, codes, begun_ns)
        else:
            self.begin()

    def _answered(self, offset: int, codes: list[int], answer: OffsetCommitResponse | None) -> None:
        codes.append(UNKNOWN if answer is None else answer.topics[0].partitions[0].error_code)
        if codes[-1] == ErrorCode.NONE:
            self.acknowledged = max(self.acknowledged, offset)
        decided = len(codes) == len(self._addresses) and all(code in DEFINITE for code in codes)
        if decided and offset == self._next - 1:
            self._uncertain.discard(offset)

    def violations(self) -> list[str]:
        """Errors in the group's committed offset at the end, as texts."""
        found = self.committed(GROUP)
        if found is None:
            return [
                f"the committed offset of group {GROUP!r} could not be read within {READ_MS:g} ms, though "
                "all is well"
            ]
        # An attempt without an answer may be taken late, after one that was acknowledged.
        if max(0, found) == self.acknowledged or found in self._uncertain:
            return []
        return [f"group {GROUP!r} has offset {found}, though {self.acknowledged} was acknowledged last"]

    def committed(self, group: str, place: tuple[str, int] = (TOPIC, 0)) -> int | None:
        """The group's committed offset for a partition (topic, number), -1: none.

        None if no coordinator answers within READ_MS.
        """
        begun_ns, found = self._host.now_ns(), list[int]()

        def answered(answer: OffsetFetchResponse | None) -> None:
            if answer is not None and not answer.error_code and not answer.topics[0].partitions[0].error_code:
                found.append(answer.topics[0].partitions[0].committed_offset)

        while not found and self._host.now_ns() - begun_ns < READ_MS * 1e6:
            for address in self._addresses:
                self._asker.ask(address, ApiKey.OFFSET_FETCH, FETCH_VERSION, _fetch(group, place), answered)
            self._host.advance(200.0)
        return found[0] if found else None


def _unheard(_: ApiMessage | None) -> None:
    """Ignore an answer that nothing depends on."""


def _commit(offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
    )
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )


def _fetch(group: str, place: tuple[str, int]) -> OffsetFetchRequest:
    """An OffsetFetch request for stable offsets: while a transaction holds one, the coordinator
    asks the caller to try again.
    """
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=place[0], partition_indexes=[place[1]])
    return OffsetFetchRequest(group_id=group, topics=[topic], require_stable=True)
