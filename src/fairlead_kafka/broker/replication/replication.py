"""Replication in one broker: partitions that it leads and follows, and the streams between it and
the other brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import (
    BrokerConfigsChanged,
    BrokersChanged,
    Change,
    LeadersChanged,
    PartitionImage,
    PartitionsAdded,
    PartitionsChanged,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from fairlead_kafka.broker.guard import Guard
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.replication.feed import NOT_THIS_STREAM, Feed, FeedHost
from fairlead_kafka.broker.replication.fetcher import Fetcher, FetcherHost, Followed
from fairlead_kafka.broker.replication.in_sync import InSyncHost, InSyncReplicas
from fairlead_kafka.broker.replication.led import Follower, Led, Replicated
from fairlead_kafka.broker.replication.stream import Key, decode_pull, encode_answer, key_of
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.timers import TaskHost
from fairlead_kafka.wire import Message, Request


class ReplicationHost(FeedHost, FetcherHost, InSyncHost, TaskHost, Protocol):
    """The parts of a broker that replication uses."""

    guard: Guard


class Replication:
    """Replicates the partitions of one broker: those that it leads, and those that it follows.
    `advance` is called in each step, after the events."""

    def __init__(self, broker: ReplicationHost) -> None:
        self._broker = broker
        self.awake: dict[Feed, None] = {}
        """Streams to be answered at the end of this step."""
        self._led: dict[Partition, Led] = {}
        """Partitions led here that were ever looked at; one that nobody wrote to costs nothing."""
        self._feeds: dict[int, Feed] = {}
        self._by_session: dict[Requester, Feed] = {}
        self._fetchers: dict[int, Fetcher] = {}
        self._following: dict[Key, int] = {}
        self._stirred: dict[Fetcher, None] = {}
        """Fetchers that have something to tell their leaders."""
        self._in_sync = InSyncReplicas(broker, self)
        self._running = False

    def start(self) -> None:
        """Begin to lead and follow partitions as the controller's image says. Called when the
        broker has joined the cluster."""
        self._running = True
        for topic in self._broker.controller.image.topics.values():
            self._assign_all(topic, range(len(topic.partitions)))
        # Twice within the time that a replica may be behind, as Kafka's `ReplicaManager.startup`.
        self._broker.repeat(
            "looking for replicas that are behind", self._half_the_lag_ms, self._look_for_laggards
        )

    def stop(self) -> None:
        """Stop leading and following. Other brokers learn of it from the controller."""
        self._running = False
        self._led.clear()
        self._feeds.clear()
        self._by_session.clear()
        self._fetchers.clear()
        self._following.clear()
        self.awake.clear()
        self._stirred.clear()

    def advance(self) -> None:
        """Send what this step caused: proposals to the controller, answers to followers, pulls to
        leaders."""
        guard = self._broker.guard
        if self._in_sync.changes:
            guard.call(self._in_sync, self._in_sync.flush)
        awake, self.awake = self.awake, {}
        for feed in awake:
            guard.call(feed, feed.answer)
        stirred, self._stirred = self._stirred, {}
        for fetcher in stirred:
            guard.call(fetcher, fetcher.go_on)

    # --- Leading

    def lead(self, topic: TopicImage, number: int, partition: Partition) -> Led:
        """The `Led` of a partition that the image says is led here, in its present epoch."""
        led = self._led.get(partition)
        if led is not None and led.epoch == topic.partitions[number].leader_epoch:
            return led
        if led is not None:
            self._depose(led, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        key = key_of(partition.topic_id_bytes, number)
        led = self._led[partition] = Led(topic, number, key, partition, self._broker.now_ns)
        for feed in self._feeds.values():
            feed.touched(key, led)
        self.advance_mark(led)
        return led

    def leading(self, partition: Partition) -> Led:
        """The `Led` of a partition led here; BrokerError NOT_LEADER_OR_FOLLOWER if it is not."""
        led = self._led.get(partition)
        if led is None:
            raise BrokerError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition} is not led by broker {self._broker.node_id}"
            )
        return led

    def led(self, partition: Partition) -> Led | None:
        """The `Led` of a partition; None if it is not led here, or was not used yet in this leader
        epoch."""
        return self._led.get(partition)

    def holds(self, led: Led) -> bool:
        """True as long as the partition is led here in the leader epoch of `led`."""
        return self._led.get(led.partition) is led

    def written(self, partition: Partition) -> None:
        """Called when more of a partition is in the log file, so that followers may get it."""
        led = self._led.get(partition)
        if led is None:
            return
        due = len(led.image.isr) == 1  # else it is for the others to say
        for follower in led.followers.values():
            # A leader of late may be writing what a follower has: that one has nothing to catch up.
            if follower.behind_since_ns is None and follower.end < partition.written_end:
                follower.behind_since_ns = self._broker.now_ns
            if follower.feed is not None:
                follower.feed.grown(led)
            due = (
                due or follower.end > partition.high_watermark
            )  # a leader of late may be writing what a follower has
        if due:
            self.advance_mark(led)

    def start_moved(self, partition: Partition) -> None:
        """Called when a partition's log starts later than before: its followers' logs are to start
        there as well."""
        if (led := self._led.get(partition)) is not None:
            self._notify_followers(led)

    def low_watermark(self, led: Led) -> int:
        """The offset below which everything is deleted on all replicas whose broker is alive
        (Kafka's `Partition.lowWatermarkIfLeader`)."""
        image, starts = self._broker.controller.image, [led.partition.log_start]
        others = [
            node_id
            for node_id in led.image.replicas
            if node_id != self._broker.node_id and image.is_alive(node_id)
        ]
        return min([*starts, *(led.followers[one].start if one in led.followers else 0 for one in others)])

    def when_deleted(self, led: Led, offset: int, done: Replicated) -> None:
        """Call done(0) once the low watermark has reached `offset`, perhaps at once; done(error) if
        this broker leads no more. Who does not wait so long takes it out of `led.deleting`."""
        if self.low_watermark(led) >= offset:
            done(ErrorCode.NONE)
        else:
            led.deleting.add(offset, done)

    def starts_moved(self, led: Led) -> None:
        """Called when a follower has deleted the records below the log start that it was sent, or
        is not waited for any more."""
        if led.deleting:
            for done in led.deleting.take(self.low_watermark(led)):
                done(ErrorCode.NONE)

    def follower_moved(self, led: Led, follower: Follower) -> None:
        """Called when a follower has written more, or has met its leader."""
        self.advance_mark(led)
        self._in_sync.consider_joining(led, follower.node_id)

    def may_join(self, node_id: int) -> None:
        """Called when more is known of a broker than before: replicas on it may come into sync."""
        for led in self._led.values():
            if node_id in led.followers:
                self._in_sync.consider_joining(led, node_id)

    def advance_mark(self, led: Led) -> None:
        """Raise the high watermark as far as the replicas allow, and call those that wait for
        it."""
        partition = led.partition
        if partition.high_watermark >= partition.written_end:
            return
        mark = led.reachable_mark(
            self._broker.now_ns, ms_to_ns(self._broker.settings["replica.lag.time.max.ms"])
        )
        if mark <= partition.high_watermark:
            return
        partition.high_watermark = mark
        self._notify_followers(led)
        code = led.replicated_code() if led.waiting else ErrorCode.NONE
        for done in led.waiting.take(mark):
            done(code)
        self._broker.purgatory.advanced(partition)

    def _notify_followers(self, led: Led) -> None:
        for follower in led.followers.values():
            if follower.feed is not None:
                follower.feed.mark_moved(led)

    def _depose(self, led: Led, code: int) -> None:
        """Stop leading a partition in its present leader epoch; those that wait get the error
        `code`."""
        if self._led.get(led.partition) is led:
            del self._led[led.partition]
        for done in [*led.waiting.take_all(), *led.deleting.take_all()]:
            done(code)

    def gone(self, partition: Partition) -> None:
        """Called when the partition's topic was deleted."""
        led = self._led.get(partition)
        if led is not None:
            self._depose(led, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def taken_offline(self, partition: Partition) -> None:
        """Stop leading or following a partition, until the broker is started again."""
        led = self._led.get(partition)
        if led is not None:
            self._depose(led, ErrorCode.KAFKA_STORAGE_ERROR)
        key = key_of(partition.topic_id_bytes, partition.partition)
        leader = self._following.get(key)
        if leader is not None:
            self._leave(key, leader)
        for feed in self._feeds.values():
            feed.forget(key)

    def _half_the_lag_ms(self) -> float:
        return float(self._broker.settings["replica.lag.time.max.ms"] / 2)

    def _look_for_laggards(self) -> None:
        lag_max_ns = ms_to_ns(self._broker.settings["replica.lag.time.max.ms"])
        for led in self._led.values():
            if len(led.image.isr) > 1:
                self._in_sync.consider_leaving(led, lag_max_ns)
            if len(led.image.isr) < len(led.image.replicas):
                for node_id in list(
                    led.followers
                ):  # it may have come up before this image knew of its new life
                    self._in_sync.consider_joining(led, node_id)
        self._advance_all()  # somebody who was catching up may take too long for it

    # --- Streams of followers

    def pull(self, request: Request[Message], session: Requester, reply: Reply) -> None:
        """Serve one request of a follower on its stream."""
        try:
            pull = decode_pull(request.message.body)
        except DecodeError as error:  # anybody may send one: no fault of this broker's
            session.close(f"not a replication stream: {error}")
            return
        feed = self._by_session.get(session)
        if pull is None:
            if feed is not None:
                feed.nudged()
            reply(Message(body=encode_answer(ErrorCode.NONE, 0, (), (), (), ())))
            return
        if not self._running:
            session.close()
            return
        if not pull.written and self._broker.controller.image.is_alive(pull.node_id):
            feed = self._open_feed(session, pull.node_id)
        if feed is None:
            reply(NOT_THIS_STREAM)
        else:
            feed.pulled(pull, reply)

    def _open_feed(self, session: Requester, node_id: int) -> Feed:
        self._end_feed(node_id)
        feed = Feed(self._broker, self, node_id, session)
        self._feeds[node_id] = self._by_session[session] = feed
        session.on_close(feed.connection_ended)
        return feed

    def _end_feed(self, node_id: int) -> None:
        feed = self._feeds.pop(node_id, None)
        if feed is not None:
            # A follower begins another by the same connection, as often as its disk fails.
            feed.session.forget_on_close(feed.connection_ended)
            if self._by_session.get(feed.session) is feed:
                del self._by_session[feed.session]
            feed.end()
            self._advance_all()  # nobody waits for it any more

    def end_feed(self, feed: Feed) -> None:
        """Called when a follower's stream is over; it may begin another."""
        if self._feeds.get(feed.node_id) is feed:
            self._end_feed(feed.node_id)

    def logs_cut(self) -> None:
        """Called when writes failed, and logs were cut where they began. What followers have beyond
        that counts no more, and they begin their streams again."""
        for led in self._led.values():
            for follower in led.followers.values():
                follower.end = min(follower.end, led.partition.log_end)
        for node_id in list(self._feeds):
            self._end_feed(node_id)

    # --- Following the controller

    def changed(self, change: Change) -> None:
        """React to a change of the cluster. (For deleted partitions `gone` is called.)"""
        if not self._running:
            return
        if isinstance(change, TopicCreated):
            self._assign_all(change.topic, range(len(change.topic.partitions)))
        elif isinstance(change, PartitionsAdded):
            self._assign_all(change.topic, range(change.first, len(change.topic.partitions)))
        elif isinstance(change, TopicDeleted):
            self._forget(change.topic)
        elif isinstance(change, LeadersChanged):
            for topic, numbers in change.by_topic():
                self._assign_all(topic, numbers, met_again=True)
        elif isinstance(change, PartitionsChanged):
            for topic, number in change.partitions:
                self._reassign(topic, number)
        elif isinstance(change, TopicConfigsChanged | BrokerConfigsChanged):
            self._advance_all()  # min.insync.replicas may be another
        elif isinstance(change, BrokersChanged):
            self._broker_changed(change.node_id, change.alive)

    def _broker_changed(self, node_id: int, alive: bool) -> None:
        if not alive:
            self._end_feed(node_id)
            for led in list(self._led.values()):
                self.starts_moved(led)
            return
        if node_id in self._fetchers:
            self._stirred[self._fetchers[node_id]] = None
        self.may_join(node_id)  # it may have met its leaders before the image knew of its new life

    def _assign_all(self, topic: TopicImage, numbers: Iterable[int], met_again: bool = False) -> None:
        """Lead or follow partitions that are new, or have a new leader epoch: followers then meet
        their leaders again."""
        raw_id, hosted = topic.topic_id.bytes, self._broker.logs.known_of(topic.topic_id)
        for number in numbers:
            key = key_of(raw_id, number)
            if met_again:
                for feed in self._feeds.values():
                    feed.forget(key)
            self._assign(topic, number, key, hosted.get(number))

    def _assign(self, topic: TopicImage, number: int, key: Key, partition: Partition | None) -> None:
        """Lead a partition, follow it, or neither, as the image says; `partition` is its log here,
        if there is one."""
        image, own_id = topic.partitions[number], self._broker.node_id
        leader = image.leader
        follows = leader != own_id and leader != NO_LEADER and own_id in image.replicas
        before = self._following.get(key)
        if before is not None and not (follows and before == leader):
            self._leave(key, before)
        if partition is not None:
            self._assign_log(topic, number, partition)
        if follows:
            fetcher = self._fetchers.get(leader)
            if fetcher is None:
                fetcher = self._fetchers[leader] = Fetcher(self._broker, leader)
            self._following[key] = leader
            fetcher.follow(Followed(topic, number, key, image.leader_epoch, partition))
            self._stirred[fetcher] = None

    def _assign_log(self, topic: TopicImage, number: int, partition: Partition) -> None:
        """Lead or stop leading a partition that has a log here; empty the log if this broker is no
        replica."""
        image, own_id = topic.partitions[number], self._broker.node_id
        if partition.log_end and own_id not in image.replicas:
            self._broker.logs.restart(partition, 0)  # it was moved elsewhere, and takes no room here any more
        if image.leader == own_id:
            self.lead(topic, number, partition)
            return
        led = self._led.get(partition)
        if led is not None:
            self._depose(led, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _leave(self, key: Key, leader: int) -> None:
        """Stop following a partition at the broker `leader`."""
        del self._following[key]
        self._fetchers[leader].drop(key)
        self._stirred[self._fetchers[leader]] = None

    def _reassign(self, topic: TopicImage, number: int) -> None:
        """React to a change of a partition's replicas, or of those in sync, under the same
        leader."""
        image = topic.partitions[number]
        if image.leader == self._broker.node_id:
            partition = self._broker.logs.known(topic.topic_id, number)
            led = self._led.get(partition) if partition is not None else None
            if led is None and self._left_unseen(image, key_of(topic.topic_id.bytes, number)):
                led = self.lead(topic, number, self._broker.logs.partition(topic.topic_id, number))
            if led is not None:
                self._drop_strangers(led)
                self.advance_mark(led)
                self.starts_moved(led)
            return
        key = key_of(topic.topic_id.bytes, number)
        if (self._broker.node_id in image.replicas) != (key in self._following):
            self._assign(topic, number, key, self._broker.logs.known(topic.topic_id, number))

    def _left_unseen(self, image: PartitionImage, key: Key) -> bool:
        """True if a follower is not in sync of which this leader knows nothing, for the partition
        has no records: to come into sync again it must meet its leader."""
        feeds = (self._feeds.get(node_id) for node_id in image.replicas if node_id not in image.isr)
        return any(feed is not None and feed.unseen(key) for feed in feeds)

    def _drop_strangers(self, led: Led) -> None:
        for node_id in [node_id for node_id in led.followers if node_id not in led.image.replicas]:
            follower = led.followers.pop(node_id)
            if follower.feed is not None:
                follower.feed.forget(led.key)

    def _forget(self, topic: TopicImage) -> None:
        topic_id_bytes = topic.topic_id.bytes
        for number in range(len(topic.partitions)):
            key = key_of(topic_id_bytes, number)
            leader = self._following.get(key)
            if leader is not None:
                self._leave(key, leader)
            for feed in self._feeds.values():
                feed.forget(key)

    def check(self) -> None:
        """Raise CheckFailed unless the state of leading and following agrees with the image and the
        streams: see the `check` of each part."""
        for led in self._led.values():
            led.check(self._broker.now_ns)
        led_by_key = {led.key: led for led in self._led.values()}
        for feed in self._feeds.values():
            feed.check(led_by_key)
        for leader, fetcher in self._fetchers.items():
            fetcher.check([key for key, at in self._following.items() if at == leader])

    def _advance_all(self) -> None:
        for led in list(self._led.values()):
            self.advance_mark(led)
