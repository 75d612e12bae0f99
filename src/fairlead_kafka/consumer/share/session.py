"""A share session: the state that one broker keeps for this consumer, and acknowledgements that
wait to be sent to it.

    CLOSED ──a fetch with epoch 0──▶ OPEN: each request has the next epoch
    OPEN ──error, or no answer──▶ CLOSED

A session is a member's at one broker. Its requests are numbered, so there is one under way at a
time. A broker ends it when the connection ends, and releases all records acquired in it; so each
session gets a number in the client, and acknowledgements of an earlier one are not sent. Source:
KIP-932, Kafka's `ShareSessionHandler`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.share.acknowledging import Acks, Place, within
from fairlead_kafka.consumer.share.chunk import ShareChunk

OPENING_EPOCH, FINAL_EPOCH = 0, -1
_EPOCH_MAX = 2**31 - 1


def epoch_after(epoch: int) -> int:
    """The epoch of the request after the one with `epoch`: 1 after the largest, since 0 opens."""
    return 1 if epoch == _EPOCH_MAX else epoch + 1


class Waiting(NamedTuple):
    """Acknowledgements to send until `deadline_ns`, monotonic."""

    acks: Acks
    deadline_ns: int


@dataclass(slots=True, eq=False)
class ShareSession:
    """The share session with one broker (KIP-932): the partitions fetched there, and the
    acknowledgements that wait or are sent."""

    node_id: int
    number: int
    """Number among all sessions of this consumer; one that begins again gets another."""
    epoch: int = OPENING_EPOCH
    """The epoch of the next request; OPENING_EPOCH: there is no session."""
    known: dict[Place, TopicPartition] = field(default_factory=dict)
    """Partitions that the broker has in the session."""
    waiting: list[Waiting] = field(default_factory=list)
    sent: list[Waiting] = field(default_factory=list)
    """Acknowledgements in the request under way."""
    busy: bool = False
    """A request is under way."""
    fetching: bool = False
    """True if the request under way is a ShareFetch."""
    fetch_number: int = 0
    """Number of its last fetch, among those to all brokers."""
    over: bool = False
    """The final request was sent, or is not needed."""
    retry_at_ns: int = 0
    failures: int = 0

    @property
    def opened(self) -> bool:
        """True if the broker has the session, as far as is known."""
        return self.epoch != OPENING_EPOCH

    def send(self) -> list[Acks]:
        """Note that the acknowledgements that wait are being sent now, and return them."""
        self.sent, self.waiting = self.waiting, []
        return [each.acks for each in self.sent]

    def answered(self) -> list[Waiting]:
        """Note that the request was answered, and return what was acknowledged with it."""
        sent, self.sent = self.sent, []
        self.busy = self.fetching = False
        return sent

    def restart(self, number: int) -> list[Waiting]:
        """Begin a new session, of `number`, and return the acknowledgements that the end of the old
        one made void."""
        lost = [*self.sent, *self.waiting]
        self.sent, self.waiting, self.known = [], [], {}
        self.number, self.epoch = number, OPENING_EPOCH
        return lost

    def overtake(self, chunk: ShareChunk) -> list[Acks]:
        """Take back acknowledgements, not sent yet, of records that were acquired again in `chunk`.
        Their locks had ended, and the acknowledgements are not about the new delivery."""
        kept: list[Waiting] = []
        taken: list[Acks] = []
        for each in self.waiting:
            if each.acks.place != chunk.place:
                kept.append(each)
                continue
            again = within(each.acks.offsets, chunk.acquired)
            if again.any():
                taken.append(each.acks.where(again))
            if not again.all():
                kept.append(each._replace(acks=each.acks.where(~again)))
        self.waiting = kept
        return taken

    def check(self) -> None:
        """Raise CheckFailed if anything waits to be sent to a session that is not open."""
        holds(f"acknowledgements under way to idle node {self.node_id}", self.busy or not self.sent)
        holds(f"node {self.node_id} fetches and is idle", self.busy or not self.fetching)
        for each in (*self.waiting, *self.sent):
            holds(f"acknowledgements of session {each.acks.session}", each.acks.session == self.number)
            holds(f"acknowledgements to node {self.node_id} without a session", self.opened)
