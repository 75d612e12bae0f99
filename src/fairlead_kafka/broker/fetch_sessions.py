"""Fetch sessions (KIP-227): a consumer names its partitions once, and then only what changes; the
answers do the same.

    epoch 0        a new session: every partition is named, every partition answered
    epoch 1, 2, …  changes are named, changes answered
    epoch -1       the end of the session

A session keeps the last answer about each partition, and the set of partitions that may have
changed: those that were never read to their end, had an error, or advanced since (the session waits
in the purgatory for all others). A fetch looks at these alone, so an idle partition costs nothing,
however many a consumer reads; and one that advances costs a session whose consumer is gone nothing
after the first time.

Sessions belong to no connection, as in Kafka's `FetchManager`. There are
`max.incremental.fetch.session.cache.slots` of them. If all are in use, the one unused for longest
is removed, if that is two minutes or more; else a new consumer gets none (id 0) and names all
partitions in each request. Simpler than Kafka's: no privilege for followers, which use a stream of
their own here, nor for large sessions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final, Protocol
from uuid import UUID

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.purgatory import Purgatory
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.wire.messages import FetchRequest, FetchResponse

SLOTS: Final = "max.incremental.fetch.session.cache.slots"
NO_SESSION = 0
FULL_EPOCH, FINAL_EPOCH = 0, -1
EVICTION_MS = 120_000
"""How long a session is safe from eviction after each use (Kafka's
`MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS`)."""
_ID_MAX = _EPOCH_MAX = 2**31 - 1


class FetchSessionHost(Protocol):
    """The parts of a broker that fetch sessions use."""

    now_ns: int
    settings: Settings
    rng: Rng
    purgatory: Purgatory


class WaitingFetch(Protocol):
    """A fetch request that waits for its session's partitions."""

    owner: Owner | None
    """The request, in whose name it is called."""

    def advanced(self, partition: Partition, want: Wanted) -> None:
        """Called when more may be read for `want`."""

    def complete(self) -> None:
        """Answer with the records that there are."""


class Wanted:
    """One partition of a fetch. `data` is the request's row about it, `topic` the name or id by
    which the request names the topic."""

    __slots__ = ("data", "key", "sent", "topic", "watched")

    def __init__(self, topic: str | UUID, data: FetchRequest.FetchPartition) -> None:
        self.topic = topic
        self.data = data
        self.key = (topic, data.partition)
        self.sent: tuple[int, int] | None = None
        """High watermark and log start as they were answered last."""
        self.watched: Partition | None = None
        """The partition that the session waits for on its behalf."""


def wanted(topics: Iterable[FetchRequest.FetchTopic], by_id: bool) -> Iterator[Wanted]:
    """The partitions in a request's list of topics."""
    for asked in topics:
        topic: str | UUID = asked.topic_id if by_id else asked.topic
        for data in asked.partitions:
            yield Wanted(topic, data)


class FetchSession:
    """The partitions that one consumer fetches, over many requests (KIP-227). A request without a
    session has an object of its own, which is not kept (id 0)."""

    def __init__(self, broker: FetchSessionHost, session_id: int, by_id: bool, message: FetchRequest) -> None:
        self._broker = broker
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = 1
        """Session epoch that the next request must have."""
        self.used_ns = broker.now_ns
        self.waiting: WaitingFetch | None = None
        """The fetch that waits, if one does."""
        self.wants: dict[Hashable, Wanted] = {want.key: want for want in wanted(message.topics, by_id)}
        self.ready: dict[Wanted, None] = dict.fromkeys(self.wants.values())
        """Partitions that may have news, in the order in which they are looked at."""
        self._isolation_level = message.isolation_level
        self._watching: dict[Partition, Wanted] = {}

    def go_on(self, message: FetchRequest) -> None:
        """Apply the changes that the session's next request names."""
        self.used_ns = self._broker.now_ns
        self.epoch = self.epoch + 1 if self.epoch < _EPOCH_MAX else 1
        for topic in message.forgotten_topics_data:
            for number in topic.partitions:
                self._forget((topic.topic_id if self.by_id else topic.topic, number))
        for want in wanted(message.topics, self.by_id):
            known = self.wants.setdefault(want.key, want)
            known.data = want.data
            self.ready[known] = None
        if message.isolation_level != self._isolation_level:
            self._isolation_level = message.isolation_level
            self.ready.update(dict.fromkeys(self.wants.values()))

    def answered(self, want: Wanted, row: FetchResponse.PartitionData, new: bool, exhausted: bool) -> bool:
        """Note that a row is about to be answered. True if it has to be: it has something that was
        not answered before. `new`: it has, whatever its watermarks are; `exhausted`: its partition
        has no more records for now."""
        sent = row.high_watermark, row.log_start_offset
        new = new or sent != want.sent
        want.sent = None if row.error_code else sent
        if self.wants.get(want.key) is want:
            self.ready.pop(want, None)
            if not exhausted:
                self.ready[want] = None  # at the end: who got something lets the others go first
        return new

    def watch(self, want: Wanted, partition: Partition) -> None:
        """Have `advanced` and `lost` called for `partition` from now on."""
        if want.watched is not partition:
            self._unwatch(want)
            want.watched = partition
            self._watching[partition] = want
            self._broker.purgatory.watch(partition, self)

    @property
    def owner(self) -> Owner | None:
        """The request that waits; None: none does."""
        return None if self.waiting is None else self.waiting.owner

    def advanced(self, partition: Partition) -> None:
        """Called when more can be read from `partition`, or its log starts later."""
        want = self._watching.get(partition)
        if want is not None:
            self.ready[want] = None
            if self.waiting is None:
                self._unwatch(want)  # the next fetch looks at it in any case
            else:
                self.waiting.advanced(partition, want)

    def lost(self, partition: Partition) -> None:
        """Note that `partition` was deleted here, or is led elsewhere."""
        want = self._watching.get(partition)
        if want is not None:
            self.ready[want] = None
            self._unwatch(want)
            if self.waiting is not None:
                self.waiting.complete()

    def end(self) -> None:
        """Stop watching partitions: the session has ended."""
        for want in self.wants.values():
            self._unwatch(want)

    def check(self) -> None:
        """Raise CheckFailed unless the partitions watched, or `ready`, are among those that are
        fetched."""
        what = f"fetch session {self.session_id}"
        same(f"{what}: partitions wanted", list(self.wants), [want.key for want in self.wants.values()])
        wants = set(self.wants.values())
        holds(f"{what}: one that is not wanted may have news", wants.issuperset(self.ready))
        same(
            f"{what}: partitions watched",
            self._watching,
            {want.watched: want for want in wants if want.watched is not None},
        )
        if self.session_id != NO_SESSION:
            deaf = [want.key for want in wants if want not in self.ready and want.watched is None]
            holds(f"{what}: news of {deaf} would not be heard", not deaf)

    def watches(self, partition: Partition) -> bool:
        """True if the session is to be informed of changes of `partition`."""
        return partition in self._watching

    def _forget(self, key: Hashable) -> None:
        want = self.wants.pop(key, None)
        if want is not None:
            self.ready.pop(want, None)
            self._unwatch(want)

    def _unwatch(self, want: Wanted) -> None:
        if want.watched is not None:
            self._broker.purgatory.forget(want.watched, self)
            del self._watching[want.watched]
            want.watched = None


class FetchSessions:
    """The fetch sessions of one broker."""

    def __init__(self, broker: FetchSessionHost) -> None:
        self._broker = broker
        self._sessions: dict[int, FetchSession] = {}
        """Sessions by id, the most recently used last."""

    def __len__(self) -> int:
        return len(self._sessions)

    def of(self, message: FetchRequest, by_id: bool) -> FetchSession:
        """The session of a request, after the changes that the request names. Raises BrokerError:
        FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, or FETCH_SESSION_TOPIC_ID_ERROR if
        the session was begun with topic names and the request has ids, or the reverse."""
        if message.session_epoch in (FULL_EPOCH, FINAL_EPOCH):
            self.end(message.session_id)
            session_id = self._free_id() if message.session_epoch == FULL_EPOCH else NO_SESSION
            session = FetchSession(self._broker, session_id, by_id, message)
            if session_id != NO_SESSION:
                self._sessions[session_id] = session
            return session
        known = self._sessions.get(message.session_id)
        if known is None:
            raise BrokerError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {message.session_id}"
            )
        if message.session_epoch != known.epoch:
            text = f"fetch session {known.session_id} is at epoch {known.epoch}, not {message.session_epoch}"
            raise BrokerError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, text)
        if by_id != known.by_id:
            raise BrokerError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, "a fetch session keeps to topic names, or to ids"
            )
        self._sessions[known.session_id] = self._sessions.pop(known.session_id)
        known.go_on(message)
        return known

    def wants_of(self, session_id: int) -> list[Wanted]:
        """The partitions of a session; none if there is no such session."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.wants.values())

    def rights_changed(self) -> None:
        """Called when ACLs changed: the next request of each session looks at all of its
        partitions."""
        for session in self._sessions.values():
            session.ready.update(dict.fromkeys(session.wants.values()))

    def check(self) -> None:
        """Raise CheckFailed unless sessions and the purgatory agree on who waits for what, and no
        other session waits there."""
        same(
            "ids of fetch sessions",
            list(self._sessions),
            [session.session_id for session in self._sessions.values()],
        )
        used_ns = [session.used_ns for session in self._sessions.values()]
        holds("fetch sessions are not in the order of their use", used_ns == sorted(used_ns))
        waiters = self._broker.purgatory.waiters()
        for session in self._sessions.values():
            session.check()
        for partition, found in waiters.items():
            for waiter in found:
                if not isinstance(waiter, FetchSession):
                    continue
                waiter.check()
                holds(f"{partition} has a waiter that does not know it", waiter.watches(partition))
                kept = self._sessions.get(waiter.session_id) is waiter
                holds(
                    f"a fetch session that has ended waits for {partition}",
                    kept or waiter.waiting is not None,
                )
        for session in self._sessions.values():
            for want in session.wants.values():
                if want.watched is not None:
                    holds(
                        f"{want.key} is watched by its session alone",
                        session in waiters.get(want.watched, ()),
                    )

    def _free_id(self) -> int:
        """An id for a new session; NO_SESSION if there is no room."""
        slots = self._broker.settings[SLOTS]
        if len(self._sessions) >= slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or self._broker.now_ns - oldest.used_ns < ms_to_ns(EVICTION_MS):
                return NO_SESSION
            self.end(oldest.session_id)
        while True:
            session_id = 1 + self._broker.rng.randrange(_ID_MAX)
            if session_id not in self._sessions:
                return session_id

    def end(self, session_id: int) -> None:
        """End the session of this id, if there is one."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            try:
                if session.waiting is not None:
                    session.waiting.complete()  # which may watch partitions
            finally:
                session.end()
