"""Metadata of the cluster: brokers, topics, leaders with their epochs; and when to ask again.

**Merge rule.** A partition's entry is replaced unless the new one carries an older leader epoch for
the same topic id (Kafka's `Metadata.updateLatestMetadata`). A new topic id means the topic was
deleted and made again: everything is replaced, epochs included (KIP-516). Epochs outlive an answer
in which the topic had an error, so a stale broker that answers after it cannot bring an old leader
back.

**When to ask.** At the start; when `metadata.max.age.ms` has passed; when asked to
(`request_update`), but not sooner than `retry.backoff.ms` after the last time, doubling while the
answers bring nothing new (KIP-580); at once for the first `want` of a topic, and then for new
topics alone (KIP-526). An answer with a retriable error, or a partition without leader, asks for
another.

**When to bootstrap again.** Metadata that does not come for
`metadata.recovery.rebootstrap.trigger.ms` after it was due, or a broker that answers
REBOOTSTRAP_REQUIRED, makes the client forget all brokers and ask the bootstrap servers again
(KIP-1102), unless `metadata.recovery.strategy` is none.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import ConnectionFailed
from fairlead_kafka.base.ids import NO_LEADER, NO_LEADER_EPOCH, NO_TOPIC_ID, Node
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.event_log import (
    BROKERS_CHANGED,
    LEADER_CHANGED,
    METADATA_FAILED,
    PARTITIONS_CHANGED,
    REBOOTSTRAPPED,
    EventLog,
)
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.wire.messages import MetadataRequest, MetadataResponse

NO_CONTROLLER = -1


@dataclass(slots=True, frozen=True)
class PartitionMetadata:
    """One partition as the metadata has it; `leader` is NO_LEADER while there is none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error_code: int


class TopicMetadata(NamedTuple):
    """One topic; `partitions[i]` is partition i. With an error code other than 0 there are no
    partitions."""

    name: str
    topic_id: uuid.UUID
    error_code: int
    is_internal: bool
    partitions: list[PartitionMetadata]


class Metadata:
    """A client's cache of the cluster's metadata. Machines read it and say which topics they want;
    `Network` sends the requests (`due_ns`, `begin`, `apply`, `failed`)."""

    def __init__(
        self,
        settings: Settings,
        rng: Rng,
        on_need: Callable[[], None] = lambda: None,
        events: EventLog | None = None,
    ) -> None:
        self._on_need = on_need
        self._events = events or EventLog(settings["client.id"], lambda: self._refreshed_ns)
        self.cluster_id: str | None = None
        self.controller_id = NO_CONTROLLER
        self.nodes: dict[int, Node] = {}
        self.version = 0
        """Number that grows with each change of the metadata."""
        self.asked = 0
        """Requests for metadata so far."""
        self.last_error: Exception | None = None
        """Why the last request for metadata failed; None once one succeeded."""
        self._rng = rng
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"])
        self.rebootstraps: bool = settings["metadata.recovery.strategy"] == "rebootstrap"
        """Bootstrap servers are asked again, also when brokers are known (KIP-899)."""
        self._trigger_ns = ms_to_ns(settings["metadata.recovery.rebootstrap.trigger.ms"])
        self._missing_since_ns: int | None = None
        self._max_age_ns = ms_to_ns(settings["metadata.max.age.ms"])
        self._max_idle_ns = (
            ms_to_ns(settings["metadata.max.idle.ms"]) if "metadata.max.idle.ms" in settings else None
        )
        # The producer always allows it and the admin never does, as in Kafka; the consumer has a
        # config, and asks without it first, so that it can say which topics were missing.
        self._auto_create = bool(settings.get("allow.auto.create.topics", "acks" in settings))
        self._looks_first = "allow.auto.create.topics" in settings
        self._topics: dict[str, TopicMetadata] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._epochs: dict[str, tuple[uuid.UUID, dict[int, int]]] = {}
        self._answered: dict[str, int] = {}  # topic → number of the last request whose answer had it
        self._wanted: dict[str, int] = {}  # topic → when it was last used
        self._all = False
        self._new: dict[str, None] = {}  # topics wanted and not yet asked for
        self._stale = True
        self._asking: tuple[str, ...] | None = None  # new topics under way; None: nothing is
        self._asking_full = False
        self._asking_all = False
        self._attempts = 0
        self._not_before_ns = 0
        self._refreshed_ns = 0

    # Reading

    def topic(self, name: str) -> TopicMetadata | None:
        """The metadata of a topic; None: the topic was not asked for, or there is no answer yet."""
        return self._topics.get(name)

    def topics(self) -> list[str]:
        """The names of all topics known, in the order they became known."""
        return list(self._topics)

    def partition(self, topic: str, partition: int) -> PartitionMetadata | None:
        """The metadata of one partition; None if it is not known."""
        found = self._topics.get(topic)
        return (
            found.partitions[partition]
            if found is not None and 0 <= partition < len(found.partitions)
            else None
        )

    def leader(self, topic: str, partition: int) -> int:
        """The node id of the partition's leader, or NO_LEADER."""
        found = self.partition(topic, partition)
        return NO_LEADER if found is None else found.leader

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The partition's leader epoch, or NO_LEADER_EPOCH."""
        found = self.partition(topic, partition)
        return NO_LEADER_EPOCH if found is None else found.leader_epoch

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """The name of the topic with this id, if known."""
        return self._names.get(topic_id)

    def age_ns(self, now_ns: int) -> int | None:
        """Nanoseconds since the last full answer; None: none yet. May be called from any thread."""
        return now_ns - self._refreshed_ns if self._refreshed_ns else None

    # Asking

    def want(self, topic: str, now_ns: int) -> None:
        """Keep `topic` up to date from now on; call it at each use, for `metadata.max.idle.ms`
        counts from the last."""
        if topic not in self._wanted and not (self._all and topic in self._topics):
            self._new[topic] = None
            self._on_need()
        self._wanted[topic] = now_ns

    def forget(self, topic: str) -> None:
        """Stop keeping `topic`, and drop what is known of it unless all topics are wanted."""
        self._wanted.pop(topic, None)
        self._new.pop(topic, None)
        if not self._all:
            self._drop(topic)

    def answered(self, topic: str) -> int:
        """The number of the last request that this topic was answered to; 0: none.

        Greater than `asked` was at some time: the metadata of the topic are not older than that
        moment.
        """
        return self._answered.get(topic, 0)

    def want_all(self) -> None:
        """Keep every topic of the cluster up to date, from a new answer on."""
        if not self._all:
            self._all = True
            self.request_update()

    def request_update(self) -> None:
        """Ask for metadata again, as soon as the back-off allows."""
        if not self._stale:
            self._stale = True
            self._on_need()

    def saw_leader(self, topic: str, partition: int, node_id: int, epoch: int) -> None:
        """Take over a partition's new leader that a broker named in passing (KIP-951). An older
        epoch than the known one is ignored."""
        known = self.partition(topic, partition)
        if known is None or epoch <= known.leader_epoch or node_id < 0:
            return
        if node_id not in self.nodes:
            self.request_update()
            return
        if node_id != known.leader:
            self._events.log(LEADER_CHANGED, topic, partition, node_id, known.leader, epoch)
        self._topics[topic].partitions[partition] = replace(
            known, leader=node_id, leader_epoch=epoch, error_code=ErrorCode.NONE
        )
        self._epochs[topic][1][partition] = epoch
        self.version += 1

    def saw_nodes(self, nodes: Iterable[Node]) -> None:
        """Take over brokers named in passing (`node_endpoints` of Produce and Fetch answers,
        KIP-951); call it before `saw_leader`."""
        for node in nodes:
            if self.nodes.get(node.node_id) != node:
                self.nodes[node.node_id] = node
                self.version += 1
                self._on_need()

    # The conversation with a broker, led by Network

    def due_ns(self) -> int | None:
        """Monotonic time, ns, at which the next request should go out (possibly in the past); None
        while one is under way."""
        if self._asking is not None:
            return None
        if self._new:
            return 0 if self.last_error is None else self._not_before_ns
        if self._stale:
            return self._not_before_ns
        return max(self._refreshed_ns + self._max_age_ns, self._not_before_ns)

    def missing(self, now_ns: int) -> None:
        """Note that metadata is due, and has not come yet."""
        if self._missing_since_ns is None:
            self._missing_since_ns = now_ns

    def rebootstrap_ns(self) -> int | None:
        """Monotonic time, ns, at which the brokers that are known have to be forgotten (KIP-1102);
        None: there is no reason to."""
        if not self.rebootstraps or not self.nodes or self._missing_since_ns is None:
            return None
        return self._missing_since_ns + self._trigger_ns

    def rebootstrap(self, now_ns: int, reason: str) -> None:
        """Forget all brokers: the bootstrap servers are asked when none is known."""
        self._events.log(REBOOTSTRAPPED, reason)
        self.nodes = {}
        self._missing_since_ns = now_ns
        self.version += 1
        self.request_update()

    def begin(self, now_ns: int) -> MetadataRequest:
        """Start a metadata request. Returns the request to send now."""
        self.asked += 1
        full = self._stale or not self._new
        if full:
            self._expire(now_ns)
        names = tuple(self._wanted) if full else tuple(self._new)
        self._asking, self._new = tuple(self._new), {}
        self._asking_full, self._asking_all = full, full and self._all
        self._stale = self._stale and not full
        rows = [MetadataRequest.MetadataRequestTopic(name=name, topic_id=NO_TOPIC_ID) for name in names]
        return MetadataRequest(
            topics=None if self._asking_all else rows,
            allow_auto_topic_creation=self._auto_create
            and (not self._looks_first or any(map(self._missing, names))),
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )

    def _missing(self, name: str) -> bool:
        known = self._topics.get(name)
        return known is not None and known.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def failed(self, now_ns: int, error: Exception) -> None:
        """Note that the metadata request got no usable answer; the same topics are asked for
        again."""
        self.last_error = error
        for name in self._asking or ():
            if name in self._wanted:
                self._new[name] = None
        self._stale = self._stale or self._asking_full
        self._asking = None
        self._wait(now_ns, helped=False)

    def apply(self, response: MetadataResponse, now_ns: int) -> None:
        """Merge a Metadata answer; one with an error, or without brokers, counts as failed."""
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED and self.rebootstraps:
            self.rebootstrap(now_ns, "a broker asked for it")
        if response.error_code != ErrorCode.NONE or not response.brokers:
            meaning = policy(response.error_code).meaning if response.error_code else "it named no brokers"
            self.version += 1
            self._events.log(METADATA_FAILED, meaning)
            self.failed(now_ns, ConnectionFailed(f"a broker could not say who is in its cluster: {meaning}"))
            return
        self.last_error, self._missing_since_ns = None, None
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        nodes = {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        helped, self.nodes = nodes != self.nodes, nodes
        if helped:
            self._events.log(BROKERS_CHANGED, self.cluster_id, self.controller_id, sorted(nodes))
        complete = True
        seen = set()
        for topic in response.topics:
            if topic.name is None or not (self._asking_all or self._all or topic.name in self._wanted):
                continue  # forgotten while the question was under way
            seen.add(topic.name)
            before = self._topics.get(topic.name)
            complete = self._merge(topic.name, topic) and complete
            self._answered[topic.name] = self.asked
            if self._topics[topic.name] != before:
                helped = True
                self._log_change(self._topics[topic.name], before)
        if self._asking_full:
            self._refreshed_ns = now_ns
            for name in [
                name
                for name in self._topics
                if name not in seen and (self._asking_all or name not in self._wanted)
            ]:
                self._drop(name)
        self._asking = None
        self._stale = self._stale or not complete
        self._wait(now_ns, helped)
        self.version += 1

    def _log_change(self, topic: TopicMetadata, before: TopicMetadata | None) -> None:
        """Log what is new of a topic: how many partitions it has, and who leads them."""
        known = [] if before is None else before.partitions
        if before is None or len(known) != len(topic.partitions) or before.topic_id != topic.topic_id:
            error = policy(topic.error_code).name if topic.error_code else None
            self._events.log(PARTITIONS_CHANGED, topic.name, len(topic.partitions), len(known), error)
            return
        for now, then in zip(topic.partitions, known, strict=True):
            if now.leader != then.leader:
                self._events.log(
                    LEADER_CHANGED, topic.name, now.partition, now.leader, then.leader, now.leader_epoch
                )

    def _wait(self, now_ns: int, helped: bool) -> None:
        """Set the earliest time of the next request: after the back-off, which grows with each
        request in a row that did not help."""
        self._attempts = 0 if helped else self._attempts + 1
        self._not_before_ns = now_ns + self._backoff.wait_ns(max(self._attempts - 1, 0), self._rng)

    def _merge(self, name: str, topic: MetadataResponse.MetadataResponseTopic) -> bool:
        """Take one topic of an answer. False if it has to be asked for again."""
        before = self._topics.get(name)
        if topic.error_code != ErrorCode.NONE:
            self._topics[name] = TopicMetadata(name, topic.topic_id, topic.error_code, topic.is_internal, [])
            return not policy(topic.error_code).retriable
        epochs_id, epochs = self._epochs.get(name, (topic.topic_id, {}))
        if epochs_id != topic.topic_id:
            self._names.pop(epochs_id, None)
            before, epochs = None, {}
        self._epochs[name] = (topic.topic_id, epochs)
        # Brokers list every partition, in any order; a number beyond the count is garbage and must
        # not make us take memory for it.
        count = len(topic.partitions)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partitions = [
            PartitionMetadata(index, NO_LEADER, NO_LEADER_EPOCH, (), (), missing) for index in range(count)
        ]
        for entry in topic.partitions:
            if 0 <= entry.partition_index < count:
                partitions[entry.partition_index] = _newer(entry, before, epochs)
        self._topics[name] = TopicMetadata(
            name, topic.topic_id, ErrorCode.NONE, topic.is_internal, partitions
        )
        if topic.topic_id != NO_TOPIC_ID:
            self._names[topic.topic_id] = name
        return not any(
            entry.leader == NO_LEADER or policy(entry.error_code).refreshes_metadata for entry in partitions
        )

    def _expire(self, now_ns: int) -> None:
        """Forget topics that were not used for `metadata.max.idle.ms`."""
        if self._max_idle_ns is None:
            return
        for name in [name for name, used_ns in self._wanted.items() if now_ns - used_ns >= self._max_idle_ns]:
            self.forget(name)

    def _drop(self, name: str) -> None:
        known = self._topics.pop(name, None)
        self._answered.pop(name, None)
        # An error, as of a topic that was deleted, has no id: the last one is kept with the epochs.
        topic_id, _ = self._epochs.pop(name, (NO_TOPIC_ID, {}))
        self._names.pop(topic_id, None)
        if known is not None:
            self.version += 1

    def check(self) -> None:
        """Raise CheckFailed if an id, epochs or a request are kept for a topic that is not kept
        itself."""
        holds("requests are of topics that are known", self._answered.keys() <= self._topics.keys())
        ids = {topic_id for topic_id, _ in self._epochs.values()}
        holds("ids are those of topics that are known", self._names.keys() <= ids)
        holds("epochs are those of topics that are known", self._epochs.keys() <= self._topics.keys())


def _newer(
    entry: MetadataResponse.MetadataResponsePartition, before: TopicMetadata | None, epochs: dict[int, int]
) -> PartitionMetadata:
    """The entry of one partition after the merge; notes its epoch in `epochs`."""
    index, epoch = entry.partition_index, entry.leader_epoch
    last_epoch = epochs.get(index, NO_LEADER_EPOCH)
    if epoch == NO_LEADER_EPOCH:
        epochs.pop(index, None)  # a broker too old for epochs, or an error: nothing to compare with any more
    elif epoch < last_epoch:
        if before is not None and index < len(before.partitions):
            return before.partitions[index]
        return PartitionMetadata(index, NO_LEADER, last_epoch, (), (), ErrorCode.LEADER_NOT_AVAILABLE)
    else:
        epochs[index] = epoch
    leader = entry.leader_id if entry.leader_id >= 0 else NO_LEADER
    return PartitionMetadata(
        index, leader, epoch, tuple(entry.replica_nodes), tuple(entry.isr_nodes), entry.error_code
    )
