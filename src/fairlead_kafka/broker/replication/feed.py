"""The leader's end of a replication stream: one follower broker, all the partitions it follows
here.

    pull ──▶ dropped ──▶ meetings: outcomes ──▶ the last answer is written: ends, high watermarks
                                                    │
         answer ◀── batches not sent yet, high watermarks that moved ◀── at once, or when there
                                                                         are any, or after the wait

The stream is the connection: a new connection begins with nothing met. One answer is on its way at
a time, and the next pull says that it is written, so the only position kept for a partition is the
offset sent up to. Partitions with new batches are kept in order of arrival (`_fresh`), and the
batches are found in the index: an idle partition costs nothing, and one that is far behind is no
special case.

A batch that cannot be read is not sent. Batches before it are, all other partitions continue, and
after `replica.fetch.backoff.ms` it is tried again, as Kafka's followers do with a partition that
they cannot fetch.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple, Protocol
from uuid import UUID

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import ClusterView, PartitionImage, TopicImage
from fairlead_kafka.broker.log import Location, Logs, Partition, ReadBatch, readable
from fairlead_kafka.broker.replication.led import Follower, Led
from fairlead_kafka.broker.replication.rules import FOLLOW, LeaderLog, LogMatch, Step, match_log
from fairlead_kafka.broker.replication.stream import (
    Key,
    Mark,
    Meeting,
    PartitionOutcome,
    Pull,
    encode_answer,
    number_of,
)
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.timers import TimerHost
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import scan
from fairlead_kafka.wire import Message

MARK_DELAY_MS = 5
"""High watermarks that moved wait so long for records to travel with. Nobody who produces waits for
them, only readers from followers."""


LONG_AGO_NS = -(1 << 62)
"""Time since which a replica counts as behind if nobody waits for it."""


NOT_THIS_STREAM = Message(body=encode_answer(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, (), (), (), ()))
"""The answer to a follower that counts on another stream than this one: it begins another."""


class FeedHost(TimerHost, Protocol):
    """The parts of a broker that feeding followers uses."""

    node_id: int
    settings: Settings
    controller: ClusterView
    logs: Logs


class Feeding(Protocol):
    """The partitions led here, and the streams that feed their followers (`replication`)."""

    awake: dict[Feed, None]
    """Streams to be answered at the end of this step."""

    def lead(self, topic: TopicImage, number: int, partition: Partition) -> Led:
        """The `Led` of a partition that the image says is led here."""

    def follower_moved(self, led: Led, follower: Follower) -> None:
        """Called when a follower has written more, or has met its leader."""

    def starts_moved(self, led: Led) -> None:
        """Called when a follower has deleted the records below the log start that it was sent."""

    def may_join(self, node_id: int) -> None:
        """Called when more is known of a broker than before, so that replicas on it may come into
        sync."""

    def end_feed(self, feed: Feed) -> None:
        """Called when a follower's stream has ended; the follower may begin another."""


class _Sent(NamedTuple):
    """One partition's part of an answer. `start` is the follower's log end before it, `end` the one
    after it is written; `whole`: the leader had no more at that time."""

    led: Led
    follower: Follower
    batch_count: int
    start: int
    end: int
    whole: bool


class Feed:
    """The leader's end of one follower's stream, from its first pull to the end of its
    connection, or until the follower begins another on it."""

    def __init__(self, broker: FeedHost, replication: Feeding, node_id: int, session: Requester) -> None:
        self.node_id = node_id
        self.session = session
        """The connection that it came by."""
        self.broker_epoch = -1
        self.met: dict[Key, Follower | None] = {}
        """Every partition that is followed on this stream; None: nothing was ever written to it,
        and nobody has looked at it."""
        self._broker = broker
        self._replication = replication
        self._number = 0
        self._unwritten: list[_Sent] = []
        """The parts of the last answer, which the follower has not confirmed yet."""
        self._unmoved: list[tuple[Led, Follower, int]] = []
        """Log starts that the last answer told, not confirmed yet."""
        self._answered_ns = 0
        self._fresh: dict[Led, None] = {}
        self._aside: dict[Led, None] = {}
        """Partitions with a batch that could not be read, until they are tried again."""
        self._marks: dict[Led, None] = {}
        self._outcomes: list[PartitionOutcome] = []
        self._reply: Reply | None = None
        self._max_bytes = 0
        self._deadline_ns = 0
        self._timer_set = self._mark_timer_set = self._reading = self._ended = False

    # --- What happens in the partitions

    def grown(self, led: Led) -> None:
        """Called when there is more in the log of a partition that this stream's follower
        replicates."""
        if led not in self._aside:
            self._fresh[led] = None
            self.wake()

    def mark_moved(self, led: Led) -> None:
        """Called when high watermark or log start moved, of a partition that this stream's follower
        replicates."""
        self._marks[led] = None
        if self._reply is not None and not self._mark_timer_set:
            self._mark_timer_set = True
            self._broker.call_at(self._broker.now_ns + ms_to_ns(MARK_DELAY_MS), self._marks_due)

    def touched(self, key: Key, led: Led) -> None:
        """Called when a partition without records is looked at for the first time in this leader
        epoch: the follower here has no records of it, as its leader."""
        if self.met.pop(key, self) is None:  # one that was more than this was met in an epoch before
            self._meet(led, key, 0)

    def unseen(self, key: Key) -> bool:
        """True if the follower has met the partition, and nobody has looked at it since."""
        return self.met.get(key, self) is None

    def forget(self, key: Key) -> None:
        """Called when the partition is not led here any more, or in another epoch: the follower
        must meet its leader again."""
        self.met.pop(key, None)

    def wake(self) -> None:
        """Answer the pull that waits, if one does, at the end of this step."""
        if self._reply is not None:
            self._replication.awake[self] = None

    def end(self) -> None:
        """Called when the connection or its broker has ended. What is known of the follower's log
        is kept, as by Kafka's leader. A broker that only seemed to have ended is asked to begin
        another stream."""
        self._ended = True
        reply, self._reply = self._reply, None
        if reply is not None:
            reply(NOT_THIS_STREAM)
        for follower in self.met.values():
            if follower is not None:
                follower.feed = None
        self.met.clear()

    def connection_ended(self) -> None:
        """Called when the connection has ended."""
        self._replication.end_feed(self)

    def __str__(self) -> str:
        return f"the replication stream to broker {self.node_id}"

    def failed(self, _error: Exception) -> None:
        """Called when work for this stream raised: end it, and tell its follower to begin
        another."""
        self._replication.end_feed(self)

    # --- Being asked

    def pulled(self, pull: Pull, reply: Reply) -> None:
        """Serve one pull; it is answered in this step or later."""
        if pull.written != self._number or self._reply is not None or self._reading or self._ended:
            reply(NOT_THIS_STREAM)
            return
        if self.broker_epoch not in (-1, pull.broker_epoch):
            # It lost the controller and was let in again: whatever it follows must be met in its
            # new life, or it never joins again.
            reply(NOT_THIS_STREAM)
            return
        if pull.broker_epoch != self.broker_epoch:
            self._renewed(pull.broker_epoch)
        self._reply, self._max_bytes = reply, pull.max_bytes
        self._deadline_ns = self._broker.now_ns + ms_to_ns(pull.wait_ms)
        for key in pull.dropped:
            self.met.pop(key, None)
        self._take_written({key for key, *_ in pull.meetings} if self._unwritten else ())
        if pull.meetings:
            self._meet_all(pull.meetings)
        if self._outcomes or self._fresh or pull.meetings:
            self.wake()
        else:
            self._wait()

    def _renewed(self, broker_epoch: int) -> None:
        """Called when the follower had counted as ended for some time, but is the same process: it
        uses the same stream."""
        self.broker_epoch = broker_epoch
        for follower in self.met.values():
            if follower is not None:
                follower.broker_epoch = broker_epoch
        self._replication.may_join(self.node_id)

    def nudged(self) -> None:
        """Called when the follower wants its waiting pull answered now, for it has something to
        send in the next."""
        self.wake()

    def _take_written(self, renewed: Container[Key]) -> None:
        """Note that the follower has written the last answer, except for partitions that it meets
        again in this pull (`renewed`): of those it may have written nothing."""
        unwritten, self._unwritten = self._unwritten, []
        for led, follower, _count, _start, end, whole in unwritten:
            if self.met.get(led.key) is not follower or led.key in renewed:
                continue
            follower.end = end
            if end >= led.partition.written_end:
                follower.behind_since_ns = None
            elif whole:
                follower.behind_since_ns = self._answered_ns
            self._replication.follower_moved(led, follower)
        unmoved, self._unmoved = self._unmoved, []
        for led, follower, start in unmoved:
            if self.met.get(led.key) is follower and led.key not in renewed and start <= follower.end:
                follower.start = start
                self._replication.starts_moved(led)

    # --- Meetings

    def _meet_all(self, meetings: Iterable[tuple[Key, int, int, int]]) -> None:
        """Meet the partitions that a pull names. A topic is looked up once for all its partitions,
        for most partitions of a large cluster have no records."""
        met, node_id = self.met, self.node_id
        looked_up: dict[bytes, tuple[TopicImage | None, Mapping[int, Partition]]] = {}
        for key, leader_epoch, log_end, last_epoch in meetings:
            raw_id = key[:16]
            found = looked_up.get(raw_id)
            if found is None:
                found = looked_up[raw_id] = self._look_up(raw_id)
            topic, hosted = found
            met.pop(key, None)
            number = number_of(key)
            if topic is None or not 0 <= number < len(topic.partitions):
                self._outcomes.append(PartitionOutcome(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, FOLLOW))
                continue
            image = topic.partitions[number]
            error = self._misled(image, leader_epoch)
            if error:
                self._outcomes.append(PartitionOutcome(key, error, FOLLOW))
            elif log_end == 0 and number not in hosted and node_id in image.isr:
                met[key] = None
            else:
                self._match_and_meet(topic, number, Meeting(key, leader_epoch, log_end, last_epoch))

    def _look_up(self, raw_id: bytes) -> tuple[TopicImage | None, Mapping[int, Partition]]:
        """The topic of an id in bytes (None: it was deleted), and those of its partitions that have
        a log here."""
        topic_id = UUID(bytes=raw_id)
        return self._broker.controller.image.topics_by_id.get(topic_id), self._broker.logs.known_of(topic_id)

    def _match_and_meet(self, topic: TopicImage, number: int, meeting: Meeting) -> None:
        led = self._replication.lead(topic, number, self._broker.logs.partition(topic.topic_id, number))
        log_match = self._match(led, meeting)
        if log_match.step is Step.FOLLOW:
            self._meet(led, meeting.key, meeting.log_end)
        else:
            self._outcomes.append(PartitionOutcome(meeting.key, ErrorCode.NONE, log_match))

    def _misled(self, image: PartitionImage, claimed_epoch: int) -> int:
        """The error code for a follower that takes this broker for the leader, or for one in
        `claimed_epoch`, if it is not; 0: it is."""
        if claimed_epoch != image.leader_epoch:
            return (
                ErrorCode.FENCED_LEADER_EPOCH
                if claimed_epoch < image.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        if image.leader != self._broker.node_id or self.node_id not in image.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    @hook("replication: where a follower's log parts from its leader's")
    def _match(self, led: Led, meeting: Meeting) -> LogMatch:
        partition = led.partition
        epoch, epoch_end = partition.epochs.end_offset(meeting.last_epoch, led.epoch, partition.log_end)
        index = partition.index
        first = min(index.base_offset(0), partition.log_start) if len(index) else partition.log_start
        return match_log(
            LeaderLog(partition.log_start, first, partition.log_end, epoch, epoch_end),
            meeting.log_end,
            meeting.last_epoch,
        )

    def _meet(self, led: Led, key: Key, log_end: int) -> None:
        partition, before = led.partition, led.followers.get(self.node_id)
        follower = Follower(self.node_id, self.broker_epoch, self, log_end)
        self.met[key] = led.followers[self.node_id] = follower
        if log_end < partition.written_end:
            follower.behind_since_ns = self._behind_since(led, before)
            self._fresh[led] = None
        if partition.high_watermark or partition.log_start:
            self._marks[led] = None
        self._replication.follower_moved(led, follower)

    def _behind_since(self, led: Led, before: Follower | None) -> int:
        """Monotonic time, ns, since when a follower counts as behind that meets its leader (again)
        and has less than it: meeting again and again is not catching up."""
        if self.node_id not in led.image.isr:
            return LONG_AGO_NS
        if before is None:
            return led.since_ns
        return self._broker.now_ns if before.behind_since_ns is None else before.behind_since_ns

    # --- Answering

    def _wait(self) -> None:
        if self._marks:
            self.mark_moved(next(iter(self._marks)))
        if not self._timer_set:
            self._timer_set = True
            self._broker.call_at(self._deadline_ns, self._waited)

    def _waited(self) -> None:
        """Called by the stream's one timer: answer the pull that waits if its time is up, else set
        the timer again."""
        self._timer_set = False
        if self._reply is None or self._ended:
            return
        if self._broker.now_ns >= self._deadline_ns:
            self.wake()
        else:
            self._timer_set = True
            self._broker.call_at(self._deadline_ns, self._waited)

    def _marks_due(self) -> None:
        self._mark_timer_set = False
        if self._marks:
            self.wake()

    def answer(self) -> None:
        """Answer the pull that waits with the batches that there are."""
        if self._reply is None:
            return
        reply, self._reply = self._reply, None
        chosen, locations = self._choose()

        def read(found: list[ReadBatch]) -> None:
            self._reading = False
            if self._ended:
                reply(NOT_THIS_STREAM)
            else:
                self._send(reply, chosen, found)

        self._reading = True
        self._broker.logs.read(locations, read)

    def _choose(self) -> tuple[list[_Sent], list[Location]]:
        """The parts of the next answer, and the locations of their batches."""
        chosen: list[_Sent] = []
        locations: list[Location] = []
        room_bytes = self._max_bytes
        partition_max_bytes: int = self._broker.settings["replica.fetch.max.bytes"]
        for led in list(self._fresh):
            if locations and room_bytes <= 0:
                break
            follower = self.met.get(led.key)
            if follower is None or led.followers.get(self.node_id) is not follower:
                del self._fresh[led]
                continue
            partition, index = led.partition, led.partition.index
            first, stop = index.first_reaching(follower.sent), index.below(partition.written_end)
            found = index.select(
                first, stop, min(room_bytes, partition_max_bytes), at_least_one=not locations
            )
            if first < stop and not found:
                continue  # it does not fit any more: it keeps its place, and comes first next time
            whole = first + len(found) >= stop
            del self._fresh[led]
            if not whole:
                self._fresh[led] = None  # behind those that wait
            if not found:
                if follower.sent < partition.log_start:  # all that was still to come is deleted
                    del self.met[led.key]
                    self._outcomes.append(
                        PartitionOutcome(
                            led.key, ErrorCode.NONE, LogMatch(Step.RESTART, offset=partition.log_start)
                        )
                    )
                continue
            if index.base_offset(first) > follower.sent:
                self._marks[led] = (
                    None  # what was between is gone here, and its log should not begin before that either
                )
            if follower.sent < partition.high_watermark:
                self._marks[led] = None  # its own is no higher than what it had, until it is told again
            start, follower.sent = follower.sent, index.last_offset(first + len(found) - 1) + 1
            chosen.append(_Sent(led, follower, len(found), start, follower.sent, whole))
            locations += found
            room_bytes -= sum(location.size_bytes for location in found)
        return chosen, locations

    def _send(self, reply: Reply, chosen: list[_Sent], found: list[ReadBatch]) -> None:
        runs: list[tuple[Key, int]] = []
        kept: list[Buffer] = []
        position = 0
        for sent in chosen:
            own, error = readable(found[position : position + sent.batch_count])
            position += sent.batch_count
            key = sent.led.key
            if self.met.get(key) is not sent.follower:  # it may have been led away while the disk was read
                continue
            if error:
                sent = self._set_aside(sent, own)
            if own:
                runs.append((key, sum(map(len, own))))
                kept += own
                self._unwritten.append(sent)
        marks = []
        for led in self._marks:
            follower, partition = self.met.get(led.key), led.partition
            if follower is not None:
                marks.append(Mark(led.key, partition.high_watermark, partition.log_start))
                if partition.log_start > follower.start:
                    self._unmoved.append((led, follower, partition.log_start))
        outcomes, self._outcomes = self._outcomes, []
        self._marks.clear()
        self._number += 1
        self._answered_ns = self._broker.now_ns
        reply(Message(body=encode_answer(ErrorCode.NONE, self._number, outcomes, marks, runs, kept)))

    def _set_aside(self, sent: _Sent, own: list[Buffer]) -> _Sent:
        """Set aside, to be tried again later, a partition whose batch behind `own` cannot be read.
        Returns the part of the answer that is sent all the same."""
        led, follower = sent.led, sent.follower
        follower.sent = scan(own[-1])[0].last_offset + 1 if own else sent.start
        self._fresh.pop(led, None)
        self._aside[led] = None
        backoff_ms = self._broker.settings["replica.fetch.backoff.ms"]
        self._broker.call_at(self._broker.now_ns + ms_to_ns(backoff_ms), lambda: self._try_again(led))
        return sent._replace(end=follower.sent, whole=False)

    def _try_again(self, led: Led) -> None:
        self._aside.pop(led, None)
        if not self._ended and self.met.get(led.key) is not None:
            self.grown(led)

    def check(self, led_by_key: Mapping[Key, Led]) -> None:
        """Raise CheckFailed unless each partition of the stream is led here, and queued for sending
        if it has more than was sent."""
        for key, follower in self.met.items():
            if follower is None:
                continue
            led = led_by_key[key]
            same(
                f"{led.partition}: its follower on broker {self.node_id}",
                led.followers.get(self.node_id),
                follower,
            )
            index = led.partition.index
            more = index.first_reaching(follower.sent) < index.below(led.partition.written_end)
            holds(
                f"{led.partition}: what broker {self.node_id} lacks is in line",
                not more or led in self._fresh or led in self._aside,
            )
