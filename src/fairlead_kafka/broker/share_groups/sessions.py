"""Share sessions: the partitions that a member of a share group fetches from one broker (KIP-932).

    epoch 0: a new session ──▶ epoch 1, 2, …: changes are named ──▶ epoch -1, or disconnected: end

A session is of a group and a member, and belongs to its connection: when that ends, the session
does, and all records that its member has acquired on this broker are released. There are at most
`group.share.max.share.sessions`; none is removed for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from fairlead_kafka.base.checks import same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.share_groups.leader import SharePartitions
from fairlead_kafka.broker.share_groups.share_state import ShareKey

SESSIONS_MAX: Final = "group.share.max.share.sessions"
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_EPOCH_MAX = 2**31 - 1


class SessionKey(NamedTuple):
    """The key of a share session: its group and member."""

    group_id: str
    member_id: str


class ShareSessionHost(Protocol):
    """The parts of a broker that share sessions use."""

    settings: Settings

    @property
    def share_partitions(self) -> SharePartitions:
        """The share partitions of this broker."""


class Connection(Protocol):
    """The connection that a share session belongs to."""

    def on_close(self, function: Callable[[], None]) -> None:
        """Have `function` called when the connection ends."""

    def forget_on_close(self, function: Callable[[], None]) -> None:
        """Call `function` no more when the connection ends; undoes `on_close`."""


class WaitingShareFetch(Protocol):
    """A ShareFetch request that waits for records of its session's partitions."""

    def complete(self) -> None:
        """Answer with the records that there are."""

    def session_over(self) -> None:
        """Answer without records: the share session has ended."""


class ShareSession:
    """One share session: its partitions, in the order in which records are looked for."""

    def __init__(self, key: SessionKey, connection: Connection) -> None:
        self.key = key
        self.connection = connection
        self.epoch = 1
        """Session epoch that the next request must have."""
        self.partitions: dict[tuple[UUID, int], None] = {}
        self.waiting: WaitingShareFetch | None = None
        """The fetch that waits, if one does."""
        self.ended: Callable[[], None] = lambda: None
        self.over = False
        """Whether it has ended, or another has taken its place: nothing is acquired for it."""

    def share_key(self, topic_id: UUID, partition: int) -> ShareKey:
        """The key of the share partition that the session's group has of a partition."""
        return ShareKey(self.key.group_id, topic_id, partition)

    def advance(self) -> None:
        """Set the epoch that the session's next request must have."""
        self.epoch = self.epoch + 1 if self.epoch < _EPOCH_MAX else 1

    def served_first(self, partition: tuple[UUID, int]) -> None:
        """Note that records of a partition were delivered: the other partitions come first next
        time."""
        if partition in self.partitions:
            del self.partitions[partition]
            self.partitions[partition] = None


class ShareSessions:
    """The share sessions of one broker. Methods raise BrokerError with the code to answer."""

    def __init__(self, host: ShareSessionHost) -> None:
        self._host = host
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_group: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self, key: SessionKey, connection: Connection, partitions: Iterable[tuple[UUID, int]]
    ) -> ShareSession:
        """A new session, which replaces an earlier one with the same key. BrokerError
        SHARE_SESSION_LIMIT_REACHED if there are too many; the earlier one stays then."""
        others = len(self._sessions) - (key in self._sessions)
        if others >= self._host.settings[SESSIONS_MAX]:
            raise BrokerError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED, "The limit of share sessions has been reached."
            )
        self._remove(key)
        session = ShareSession(key, connection)
        session.partitions.update(dict.fromkeys(partitions))
        self._sessions[key] = session
        self._by_group[key.group_id] = self._by_group.get(key.group_id, 0) + 1
        session.ended = lambda: self._connection_ended(session)
        connection.on_close(session.ended)
        return session

    @hook("share sessions: is this the next request")
    def of(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a request at `epoch`; the next request must have the next epoch.
        BrokerError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH."""
        session = self._sessions.get(key)
        if session is None:
            raise BrokerError(ErrorCode.SHARE_SESSION_NOT_FOUND, "The share session was not found.")
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "The share session epoch is invalid.")
        session.advance()
        return session

    def end(self, session: ShareSession, done: Callable[[dict[ShareKey, int]], None]) -> None:
        """End a session: the records that its member has acquired are released; done({key: error
        code}) once that is written."""
        if self._sessions.get(session.key) is not session:
            done({})
            return
        self._remove(session.key)
        group_id, member_id = session.key

        def released(errors: dict[ShareKey, int]) -> None:
            if group_id not in self._by_group:
                self._host.share_partitions.drop_group(group_id)
            done(errors)

        self._host.share_partitions.release(group_id, member_id, released)

    def _connection_ended(self, session: ShareSession) -> None:
        self.end(session, lambda _errors: None)

    def _remove(self, key: SessionKey) -> None:
        session = self._sessions.pop(key, None)
        if session is None:
            return
        session.over = True
        session.connection.forget_on_close(session.ended)
        self._by_group[key.group_id] -= 1
        if not self._by_group[key.group_id]:
            del self._by_group[key.group_id]
        if session.waiting is not None:
            session.waiting.session_over()

    def check(self) -> None:
        """Raise CheckFailed unless the counts of sessions by group are right."""
        counts: dict[str, int] = {}
        for key in self._sessions:
            counts[key.group_id] = counts.get(key.group_id, 0) + 1
        same("share sessions by group", self._by_group, counts)
