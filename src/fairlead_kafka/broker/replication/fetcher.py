"""The follower's end of a replication stream: one leader broker, all the partitions that are
followed there.

    resting ──a partition to follow──▶ asking ──answer──▶ writing ──written──▶ asking ...
                                         └──refused, or connection lost──▶ pausing ──▶ asking

A partition is first met: the pull has the end of its log and the leader epoch in which it is
followed, and the answer says that it may be followed, or how to truncate it. Until then, and again
once its leader epoch changes, batches that come for it are dropped, and the next pull names it
again, so that its leader does not count them as written. An answer is asked for only when the one
before is written, and synced where the topic asks for it: asking is acknowledging.

Batches that are damaged, or do not fit, only affect their partition: it is dropped, and met again
after `replica.fetch.backoff.ms`; all others continue. A failed disk affects all.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import ClusterView, TopicImage
from fairlead_kafka.broker.links import Done, Lane, Links
from fairlead_kafka.broker.log import Logs, Partition
from fairlead_kafka.broker.purgatory import Purgatory
from fairlead_kafka.broker.replication.rules import UNKNOWN_EPOCH, LogMatch, Step, truncation_point
from fairlead_kafka.broker.replication.stream import (
    Answer,
    Key,
    Mark,
    PartitionOutcome,
    Pull,
    decode_answer,
    encode_nudge,
    encode_pull,
)
from fairlead_kafka.broker.timers import DelayHost
from fairlead_kafka.records import scan
from fairlead_kafka.wire import Message, PrivateApi

_logger = GuardedLogger("fairlead_kafka.broker")

SILENCE_MIN_MS = 1_000
"""Least time, ms, that a leader may be silent beyond its wait, whatever the configs say: it may be
busy."""
MEET_AGAIN_MS = 10
"""Time until a partition that was met too early is met again, ms: brokers in processes of their own
learn of a new leader epoch some milliseconds apart."""


class FetcherHost(DelayHost, Protocol):
    """The parts of a broker that following other brokers uses."""

    node_id: int
    wall_ms: int
    settings: Settings
    controller: ClusterView
    links: Links
    logs: Logs
    purgatory: Purgatory


class FetcherState(Enum):
    """State of a fetcher."""

    RESTING = "resting"
    ASKING = "asking"
    WRITING = "writing"
    PAUSING = "pausing"


class Followed:
    """One partition that is followed, in one leader epoch."""

    __slots__ = ("complaint", "epoch", "key", "number", "partition", "topic")

    def __init__(
        self, topic: TopicImage, number: int, key: Key, epoch: int, partition: Partition | None
    ) -> None:
        self.topic = topic
        self.number = number
        self.key = key
        self.epoch = epoch
        self.partition = partition
        """The partition of the log; None until something is written to it."""
        self.complaint = ""
        """Why the partition could not be followed last."""

    @property
    def is_being_written(self) -> bool:
        """True if the log has batches that are not written yet, or not synced though they are to
        be."""
        return self.partition is not None and self.partition.written_end < self.partition.log_end

    def meeting(self) -> tuple[Key, int, int, int]:
        """The `Meeting` of the partition, as a plain tuple: where its log ends, for its leader to
        compare."""
        partition = self.partition
        if partition is None:
            return self.key, self.epoch, 0, UNKNOWN_EPOCH
        return self.key, self.epoch, partition.log_end, partition.epochs.latest


class Fetcher:
    """The follower's end of one stream: replicates the partitions that one leader broker has."""

    def __init__(self, broker: FetcherHost, leader: int) -> None:
        self._broker = broker
        self._leader = leader
        self.state = FetcherState.RESTING
        self._followed: dict[Key, Followed] = {}
        self._unmet: dict[Key, Followed] = {}
        """Partitions to be met in the next pull."""
        self._meeting: dict[Key, Followed] = {}
        """Met in the pull that is under way."""
        self._dropped: dict[Key, None] = {}
        """Partitions not followed here any more, to be reported to the leader."""
        self._written = 0
        self._later: dict[Key, Followed] = {}
        """Leader and follower do not agree on these: they meet again a little later."""
        self._disagreements = 0
        """Number of consecutive meetings in which leader and follower disagreed on the leader
        epoch."""
        self._nudging = False
        self._complaint = ""
        self._round = 0
        """Counts what is begun, so that answers to what was given up are known."""

    # --- What is followed

    def follow(self, followed: Followed) -> None:
        """Follow a partition from now on, or in another leader epoch than before."""
        key = followed.key
        self._followed[key] = followed
        self._unmet[key] = followed
        self._meeting.pop(key, None)
        self._dropped.pop(key, None)

    def drop(self, key: Key) -> None:
        """Follow a partition no more."""
        if self._followed.pop(key, None) is not None:
            self._unmet.pop(key, None)
            self._meeting.pop(key, None)
            self._dropped[key] = None

    def go_on(self) -> None:
        """Begin to pull; or, if a pull waits at the leader, have it answered now: there is
        something to send."""
        if self.state is FetcherState.RESTING:
            self._ask()
        elif self.state is FetcherState.ASKING and (self._unmet or self._dropped) and not self._nudging:
            self._nudging = True

            def nudged(_response: Message | None, _error: Exception | None) -> None:
                self._nudging = False

            self._send(Message(body=encode_nudge(self._broker.node_id)), nudged)

    def _send(self, message: Message, done: Done[Message]) -> None:
        self._broker.links.ask(
            self._leader, PrivateApi.REPLICATE, 0, message, done, Lane.REPLICATION, self._patience_ms()
        )

    def _patience_ms(self) -> float:
        """Milliseconds that an answer may take. A leader without new records answers after
        replica.fetch.wait.max.ms, which is the stream's heartbeat; silence for much longer means a
        dead connection. A new one is tried while this replica still counts as in sync."""
        settings = self._broker.settings
        silence_ms = min(settings["replica.lag.time.max.ms"] / 2, settings["broker.session.timeout.ms"])
        return float(settings["replica.fetch.wait.max.ms"] + max(SILENCE_MIN_MS, silence_ms))

    # --- Asking

    def _ask(self) -> None:
        if not self._followed and not self._dropped:
            self.state = FetcherState.RESTING
            return
        broker, image = self._broker, self._broker.controller.image
        if not image.is_alive(self._leader):
            self._restart(FetcherState.RESTING)
            return
        if any(followed.is_being_written for followed in self._unmet.values()):
            # What a follower says that it has, counts as had: it may not lose that if a sync fails.
            self._write_first()
            return
        self.state = FetcherState.ASKING
        self._meeting, self._unmet = self._unmet, {}
        dropped, self._dropped = self._dropped, {}
        own = image.brokers.get(broker.node_id)
        pull = Pull(
            broker.node_id,
            -1 if own is None else own.epoch,
            self._written,
            broker.settings["replica.fetch.wait.max.ms"],
            broker.settings["replica.fetch.response.max.bytes"],
            list(dropped),
            [followed.meeting() for followed in self._meeting.values()],
        )
        self._round += 1
        number = self._round

        def done(response: Message | None, error: Exception | None) -> None:
            if number == self._round and self.state is FetcherState.ASKING:
                self._answered(response, error)

        self._send(Message(body=encode_pull(pull)), done)

    def _write_first(self) -> None:
        """Ask once all that is in the log is written."""
        self._round += 1
        self.state = FetcherState.WRITING
        number = self._round

        def written(success: bool) -> None:
            if number != self._round or self.state is not FetcherState.WRITING:
                return
            if success:
                self._ask()
            else:
                self._pause()

        self._broker.logs.when_written(written)

    def _answered(self, response: Message | None, error: Exception | None) -> None:
        if response is None:
            if self._written:
                _logger.info(
                    "broker %d follows broker %d no more for now: %s",
                    self._broker.node_id,
                    self._leader,
                    error,
                )
            self._pause()
            return
        try:
            answer = decode_answer(response.body)
        except DecodeError as wrong:
            self._complain(wrong)
            self._pause()
            return
        if answer.error:
            self._pause()
            return
        self._take(answer)

    def _take(self, answer: Answer) -> None:
        meeting, self._meeting = self._meeting, {}
        if meeting and not any(outcome.error for outcome in answer.outcomes):
            self._disagreements = 0
        for outcome in answer.outcomes:
            followed = self._followed.get(outcome.key)
            if followed is not None and outcome.key not in self._unmet:
                self._on_outcome(followed, outcome)
        for key, batches in answer.runs:
            try:
                self._append(key, batches)
            except (BrokerError, DecodeError) as error:
                if isinstance(error, BrokerError) and error.code == ErrorCode.KAFKA_STORAGE_ERROR:
                    self._complain(error)
                    self._pause()
                    return
                self._set_aside(self._followed[key], error)
        self.state = FetcherState.WRITING
        number = self._round

        def written(success: bool) -> None:
            if number != self._round or self.state is not FetcherState.WRITING:
                return
            if not success:
                self._pause()
                return
            self._written = answer.number
            self._take_marks(answer.marks)
            self._ask()

        if answer.runs:
            self._broker.logs.when_written(written)
        else:
            written(True)

    def _append(self, key: Key, batches: memoryview) -> None:
        followed = self._followed.get(key)
        if followed is None:
            self._dropped[key] = None
            return
        if key in self._unmet:
            return
        partition = followed.partition
        broker = self._broker
        if partition is None:
            partition = followed.partition = broker.logs.partition(followed.topic.topic_id, followed.number)
        append = broker.logs.append_replica
        for header in scan(batches):
            append(partition, batches, header, followed.epoch, broker.wall_ms)

    def _take_marks(self, marks: Sequence[Mark]) -> None:
        for mark in marks:
            followed = self._followed.get(mark.key)
            if followed is None or followed.partition is None or mark.key in self._unmet:
                continue
            partition = followed.partition
            reached = min(mark.high_watermark, partition.written_end)
            if reached > partition.high_watermark:
                partition.high_watermark = reached
                self._broker.purgatory.advanced(partition)
            if partition.log_start < mark.log_start <= partition.high_watermark:
                self._broker.logs.move_start(partition, mark.log_start)

    # --- Meetings

    def _on_outcome(self, followed: Followed, outcome: PartitionOutcome) -> None:
        """Called when the leader answered that a partition cannot be followed as it is: truncate it
        and meet the leader again, or meet it again a little later."""
        if outcome.error:
            self._meet_later(followed)
            return
        partition = followed.partition
        if partition is None:
            partition = followed.partition = self._broker.logs.partition(
                followed.topic.topic_id, followed.number
            )
        self._cut(partition, outcome.log_match)
        self._unmet[followed.key] = followed

    def _cut(self, partition: Partition, log_match: LogMatch) -> None:
        broker = self._broker
        if log_match.step is Step.RESTART:
            text = "%s: broker %d begins again at offset %d, where its leader's log begins"
            _logger.warning(text, partition, broker.node_id, log_match.offset)
            broker.logs.restart(partition, log_match.offset)
            return
        own_epoch, own_end = partition.epoch_end(log_match.epoch)
        offset = truncation_point(log_match, own_epoch, own_end, partition.log_end)
        _logger.info(
            "%s: broker %d cuts its log from offset %d to %d",
            partition,
            broker.node_id,
            partition.log_end,
            offset,
        )
        broker.logs.truncate(partition, offset)

    def _meet_later(self, followed: Followed) -> None:
        """Have a partition meet its leader again a little later: the brokers disagree on its leader
        or leader epoch, and one of them will soon learn of the change."""
        if not self._later:
            wait_ms = min(
                MEET_AGAIN_MS << self._disagreements, self._broker.settings["replica.fetch.backoff.ms"]
            )
            self._disagreements = min(self._disagreements + 1, 16)
            self._broker.call_later(wait_ms, self._meet_again)
        self._later[followed.key] = followed

    def _meet_again(self) -> None:
        later, self._later = self._later, {}
        for key, followed in later.items():
            if self._followed.get(key) is followed:
                self._unmet[key] = followed
        self.go_on()

    # --- Trouble

    def __str__(self) -> str:
        return f"following broker {self._leader}"

    def failed(self, error: Exception) -> None:
        """Called when work for this stream raised: begin again, a little later."""
        self._complain(error)
        self._pause()

    def _set_aside(self, followed: Followed, error: Exception) -> None:
        """Set a partition aside of which not all received batches could be written: that is
        reported to the leader, and the partition is met again later."""
        if str(error) != followed.complaint:
            followed.complaint = str(error)
            text = "broker %d cannot follow %s-%d at broker %d: %s"
            _logger.warning(
                text, self._broker.node_id, followed.topic.name, followed.number, self._leader, error
            )
        key = followed.key
        self._dropped[key] = None

        def again() -> None:
            if self._followed.get(key) is followed:
                self._dropped.pop(key, None)
                self._unmet[key] = followed
                self.go_on()

        self._broker.call_later(self._broker.settings["replica.fetch.backoff.ms"], again)

    def _complain(self, error: Exception) -> None:
        """Log why the leader cannot be followed, once for each reason and not at every try."""
        if str(error) != self._complaint:
            self._complaint = str(error)
            _logger.warning(
                "broker %d cannot follow broker %d: %s", self._broker.node_id, self._leader, error
            )

    def _restart(self, state: FetcherState) -> None:
        self._round += 1
        self.state = state
        self._written = 0
        self._meeting, self._unmet = {}, dict(self._followed)
        self._dropped.clear()

    def _pause(self) -> None:
        self._restart(FetcherState.PAUSING)
        number = self._round

        def again() -> None:
            if number == self._round:
                self._ask()

        self._broker.call_at(
            self._broker.now_ns + ms_to_ns(self._broker.settings["replica.fetch.backoff.ms"]), again
        )

    def check(self, following: Sequence[Key]) -> None:
        """Raise CheckFailed unless the partitions followed are `following`, and those that still
        have to meet the leader are among them."""
        same(
            f"what broker {self._broker.node_id} follows at broker {self._leader}",
            set(self._followed),
            set(following),
        )
        for key, followed in (*self._unmet.items(), *self._meeting.items()):
            holds(
                "what is to be met is followed, or was until now",
                self._followed.get(key, followed) is followed,
            )
        holds("what is to be met is not to be dropped", not (self._unmet.keys() & self._dropped.keys()))
