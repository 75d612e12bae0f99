"""The consumer's end of a fetch session with one broker (KIP-227, Kafka's `FetchSessionHandler`):
the partitions that the broker knows already.

    FULL ──answer with a session id──▶ INCREMENTAL: each fetch names what changed
    INCREMENTAL ──error, or no answer──▶ FULL, closing the old session

A fetch without a session names every partition and is answered for every one. A consumer of a
single partition gains nothing by a session and does without, so that many short-lived consumers
leave the broker's slots to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import NO_LEADER_EPOCH, TopicPartition

NO_SESSION = 0
FULL_EPOCH, FINAL_EPOCH = 0, -1
PARTITIONS_MIN = 2
"""Fewest partitions for which a session is begun."""
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors that a full fetch puts right."""
_EPOCH_MAX = 2**31 - 1


class Asked(NamedTuple):
    """Fetch parameters of one partition. `generation` is the consumer's own and not sent."""

    topic_id: UUID
    leader_epoch: int
    position: int
    generation: int
    last_epoch: int = NO_LEADER_EPOCH
    """The leader epoch of the last record read, by which a log that was cut is known (KIP-320); it
    changes with the position alone."""


class SessionRequest(NamedTuple):
    """The session's fields of a Fetch request: session id and epoch, and the partitions that are
    named or forgotten."""

    session_id: int
    epoch: int
    named: list[TopicPartition]
    forgotten: list[tuple[TopicPartition, UUID]]


class FetchSession:
    """The fetch session with one broker (KIP-227); one request is under way at a time."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FULL_EPOCH
        self._by_id = False
        self.asked: dict[TopicPartition, Asked] = {}
        """Parameters of all partitions in the last request, whether it named them or not."""

    @property
    def open_id(self) -> int:
        """The session id that the broker gave; NO_SESSION if the broker keeps no session."""
        return self._id

    @property
    def incremental(self) -> bool:
        """True if the last request named changes alone."""
        return self._epoch > FULL_EPOCH

    def begin(self, wanted: dict[TopicPartition, Asked], by_id: bool) -> SessionRequest:
        """The next request, so that the session holds the partitions `wanted`; `by_id`: topics are
        named by their ids."""
        if self._epoch == FULL_EPOCH or by_id != self._by_id:
            epoch = FULL_EPOCH if self._id != NO_SESSION or len(wanted) >= PARTITIONS_MIN else FINAL_EPOCH
            request = SessionRequest(self._id, epoch, list(wanted), [])
            self._epoch = FULL_EPOCH
        else:
            request = SessionRequest(self._id, self._epoch, *self._changes(wanted))
        self._by_id = by_id
        self.asked = wanted
        return request

    def _changes(
        self, wanted: Mapping[TopicPartition, Asked]
    ) -> tuple[list[TopicPartition], list[tuple[TopicPartition, UUID]]]:
        known = self.asked
        pairs = ((partition, known.get(partition), now) for partition, now in wanted.items())
        changed = [pair for pair in pairs if pair[1] is not pair[2]]
        named = [partition for partition, before, now in changed if before is None or before[:3] != now[:3]]
        forgotten = [
            (partition, before.topic_id)
            for partition, before, now in changed
            if before and before.topic_id != now.topic_id
        ]
        if len(known) + sum(before is None for _, before, _ in changed) > len(wanted):
            forgotten += [
                (partition, before.topic_id) for partition, before in known.items() if partition not in wanted
            ]
        return named, forgotten

    def answered(self, session_id: int) -> None:
        """Called when the request was answered without an error; `session_id` is what the answer
        says."""
        if self._epoch == FULL_EPOCH:
            self._id = session_id
            self._epoch = 1 if session_id != NO_SESSION else FULL_EPOCH
        else:
            self._epoch = self._epoch + 1 if self._epoch < _EPOCH_MAX else 1

    def check(self) -> None:
        """Raise CheckFailed if a session that goes on has no id."""
        holds(
            f"fetch session {self._id} is at epoch {self._epoch}",
            self._epoch == FULL_EPOCH or (self._epoch > 0 and self._id > 0),
        )

    def failed(self, code: int = ErrorCode.NONE) -> None:
        """Note that the request got no answer, or an error for all partitions: the next request is
        a full one, and closes the session that the broker may still have."""
        self._epoch = FULL_EPOCH
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id = NO_SESSION
