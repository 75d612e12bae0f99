"""A share consumer's membership of its group: heartbeats, and the partitions that they assign.

Part of the machine's step. Kafka's counterparts: `ShareMembershipManager`,
`ShareHeartbeatRequestManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import AuthenticationFailed, BrokerError, FairleadError, UnsupportedVersion
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.absent import AbsentTopics
from fairlead_kafka.consumer.groups.calls import Coordinator
from fairlead_kafka.consumer.groups.looking import find_topics, topic_names
from fairlead_kafka.consumer.groups.reconciling import make_member_id
from fairlead_kafka.consumer.share.acknowledging import Place
from fairlead_kafka.consumer.share.states import BEATING, SHARE_TRANSITIONS, ShareSignal, ShareState
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.connection import NEVER_NS
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.events import ConnectionEvent
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.script import Done, Scripts, Steps, T
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    MetadataResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
_IN_FLIGHT_MAX = 8
_FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
NO_SHARE_GROUPS = (
    "this cluster serves no share groups: Apache Kafka has them since 4.1, where the feature share.version "
    "is 1"
)
_ADVICE: dict[int, str] = {
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group has as many members as group.share.max.size allows",
    ErrorCode.GROUP_ID_NOT_FOUND: "group.id names a group that is no share group; choose another name",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "group.id names a group that is no share group; choose another "
    "name",
}
"""Code → what is wrong in our words; the coordinator's own follow."""


class ShareMembership:
    """A member, or none yet, of the share group `group.id`. `network` is the machine's own, beside
    which the member has one for its coordinator."""

    def __init__(self, settings: Settings, rng: Rng, network: Network) -> None:
        group_id = settings["group.id"]
        assert group_id is not None, "share_settings requires it"
        self.group_id = group_id
        self.member_id = make_member_id(rng)
        """Id of the member, and of its sessions with brokers, until the consumer is closed."""
        self._rack_id: str | None = settings["client.rack"] or None
        self._silence_ns = ms_to_ns(settings["max.poll.interval.ms"])
        self._request_timeout_ns = ms_to_ns(settings["request.timeout.ms"])
        self.network = self._network = Network(settings, rng, max_in_flight=_IN_FLIGHT_MAX, beside=network)
        self._scripts = Scripts(
            self._network, rng, Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"])
        )
        self._coordinator = Coordinator(self._network.metadata, group_id)
        self._absent = AbsentTopics(settings["allow.auto.create.topics"])
        self.state = ShareState.UNSUBSCRIBED
        self.error: Exception | None = None
        """Error that every poll raises, until a new subscription."""
        self.epoch = JOIN_EPOCH
        self.topics: tuple[str, ...] = ()
        """The subscription, in the order given."""
        self.assigned: dict[Place, TopicPartition] = {}
        """Partitions that are read: the part of the assignment whose topics have known names."""
        self.version = 0
        """Number that grows whenever `assigned` changes."""
        self._target: dict[UUID, tuple[int, ...]] = {}
        self._names: dict[UUID, str] = {}
        self._resolving = False
        self._known_topics: tuple[str, ...] | None = None
        """Topics that the coordinator knows of; None: the next heartbeat names all."""
        self._attempt = 0
        """Number of this membership: answers to an older one are ignored."""
        self._beating = False
        self._beat_at_ns = 0
        self._polled_ns = 0
        self.now_ns = 0
        """The time of this step; its owner sets it first."""

    @property
    def subscribed(self) -> bool:
        """True if there is a subscription."""
        return self.state is not ShareState.UNSUBSCRIBED

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to these topics instead of the present ones."""
        self.topics = tuple(dict.fromkeys(topics))
        self._start("looking for topics", find_topics(self._absent, self.topics), self._found)
        if self.state in (ShareState.UNSUBSCRIBED, ShareState.FATAL):
            self.error = None
            self._polled_ns = self.now_ns
            self._signal(ShareSignal.SUBSCRIBE)

    def leave(self, done: Callable[[], None]) -> None:
        """Leave the group, if it is in one. `done()` is called once the coordinator knows, or
        cannot be reached."""
        member = self.state in BEATING
        self._out(ShareSignal.LEAVE)
        self.topics, self.error = (), None
        if member:
            self._bid_farewell(done)
        else:
            done()

    def polled(self) -> None:
        """Note that the application polls."""
        self._polled_ns = self.now_ns
        if self.state is ShareState.STALE:
            self._signal(ShareSignal.POLL)

    # --- The machine's step

    def handle(self, event: ConnectionEvent, now_ns: int, wall_ms: int) -> None:
        """Handle an event of a connection; those of other parts' connections are ignored."""
        self._network.handle(event, now_ns, wall_ms)

    def advance(self, now_ns: int, wall_ms: int) -> None:
        """Work on answers, and send a heartbeat if one is due. `now_ns` is monotonic, `wall_ms`
        milliseconds since 1970."""
        self._network.advance(now_ns, wall_ms)
        self._scripts.advance(now_ns)
        if self.state in BEATING and now_ns >= self._silent_at_ns():
            self._bid_farewell(lambda: None)
            self._out(ShareSignal.SILENT)
        if self._beat_is_due():
            self._beat()

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        times = [self._network.deadline_ns(), self._scripts.deadline_ns()]
        if self.state in BEATING:
            times += [self._silent_at_ns(), None if self._beating else self._beat_at_ns]
        return min((at_ns for at_ns in times if at_ns is not None), default=None)

    def take_refusals(self) -> list[tuple[int | None, AuthenticationFailed]]:
        """Failed log-ins since the last call; see `Network.take_refusals`."""
        return self._network.take_refusals()

    def take_effects(self) -> list[Effect]:
        """Take the effects of this step, which the host carries out."""
        return self._network.take_effects()

    def close(self, error: Exception) -> None:
        """Fail what is under way with `error`, and close the connections."""
        self._scripts.close(error)
        self._network.close()

    def check(self) -> None:
        """Raise CheckFailed unless what is kept of the membership fits its state."""
        state = self.state
        holds(f"epoch {self.epoch} in state {state.name}", (self.epoch > 0) == (state is ShareState.STABLE))
        holds(f"an error in state {state.name}", (self.error is not None) == (state is ShareState.FATAL))
        same("what is read", self.assigned, self._named())

    # --- States

    def _signal(self, signal: ShareSignal) -> None:
        self.state = SHARE_TRANSITIONS[self.state, signal]

    def _out(self, signal: ShareSignal) -> None:
        """End this membership: answers that are under way concern it, and are ignored."""
        self._attempt += 1
        self._beating, self._beat_at_ns = False, 0
        self.epoch, self._known_topics = JOIN_EPOCH, None
        self._assign({})
        self._signal(signal)

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, FairleadError):
            raise error
        self._out(ShareSignal.FAIL)
        self.error = error

    def _silent_at_ns(self) -> int:
        return self._polled_ns + self._silence_ns

    # --- The assignment

    def _assign(self, target: Mapping[UUID, tuple[int, ...]]) -> None:
        self._target = dict(target)
        self._names = {
            topic_id: name for topic_id, name in self._names.items() if self._needs(topic_id, name)
        }
        unnamed = [topic_id for topic_id in target if topic_id not in self._names]
        if unnamed and not self._resolving:
            self._resolving = True
            self._start("looking for topics by id", topic_names(unnamed), self._resolved)
        self._adopt()

    def _needs(self, topic_id: UUID, name: str) -> bool:
        return topic_id in self._target or name in self.topics

    def _named(self) -> dict[Place, TopicPartition]:
        return {
            (topic_id, number): TopicPartition(self._names[topic_id], number)
            for topic_id, numbers in self._target.items()
            if topic_id in self._names
            for number in numbers
        }

    def _adopt(self) -> None:
        named = self._named()
        if named != self.assigned:
            self.assigned = named
            self.version += 1

    def _found(
        self, topics: Mapping[str, MetadataResponse.MetadataResponseTopic] | None, error: Exception | None
    ) -> None:
        self._learn({topic.topic_id: name for name, topic in (topics or {}).items()}, error)

    def _resolved(self, names: Mapping[UUID, str] | None, error: Exception | None) -> None:
        self._resolving = False
        self._learn(names or {}, error)

    def _learn(self, names: Mapping[UUID, str], error: Exception | None) -> None:
        if not self.subscribed:
            return
        if error is not None:
            self._fail(error)
            return
        self._names |= names
        self._assign(self._target)

    # --- Heartbeats

    def _beat_is_due(self) -> bool:
        if self._beating or self.state not in BEATING:
            return False
        return self.now_ns >= self._beat_at_ns or self._known_topics != self.topics

    def _beat(self) -> None:
        self._beating = True
        attempt, topics, whole = self._attempt, self.topics, self._known_topics is None
        sent_ns = self.now_ns
        changed = self._known_topics != topics

        def script() -> Steps[ShareGroupHeartbeatResponse]:
            answer, code = yield from self._coordinator.ask(
                ApiKey.SHARE_GROUP_HEARTBEAT,
                lambda: self._message(self.epoch, topics if changed else None, whole=whole),
                lambda answer: [answer.error_code],
            )
            if code:
                raise self._problem(code, answer.error_message)
            return answer

        def done(answer: ShareGroupHeartbeatResponse | None, error: Exception | None) -> None:
            if attempt != self._attempt:
                return
            self._beating = False
            if answer is not None:
                self._known_topics = topics
                self._heard(answer, sent_ns)
            elif isinstance(error, BrokerError) and self._fences(error.code):
                self._out(ShareSignal.FENCE)
            elif isinstance(error, UnsupportedVersion):
                self._fail(UnsupportedVersion(f"group {self.group_id!r}: {NO_SHARE_GROUPS}"))
            elif error is not None:
                self._fail(error)

        self._start("a heartbeat", script(), done)

    def _heard(self, answer: ShareGroupHeartbeatResponse, sent_ns: int) -> None:
        self.epoch = answer.member_epoch
        self._signal(ShareSignal.JOINED)
        self._beat_at_ns = sent_ns + ms_to_ns(answer.heartbeat_interval_ms)
        if answer.assignment is not None:
            rows = answer.assignment.topic_partitions
            self._assign({row.topic_id: tuple(row.partitions) for row in rows if row.partitions})

    def _message(
        self, epoch: int, topics: Sequence[str] | None, *, whole: bool = False
    ) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            rack_id=self._rack_id if whole else None,
            subscribed_topic_names=None if topics is None else sorted(topics),
        )

    def _fences(self, code: int) -> bool:
        """True if `code` says that the group went on without this member."""
        gone = code == ErrorCode.GROUP_ID_NOT_FOUND and self.epoch != JOIN_EPOCH
        return code in _FENCED or gone

    def _problem(self, code: int, said: str | None) -> FairleadError:
        """The error for `code`, with the coordinator's own words."""
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return UnsupportedVersion(f"group {self.group_id!r}: {NO_SHARE_GROUPS}")
        if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return self._coordinator.error(ApiKey.SHARE_GROUP_HEARTBEAT, code)
        words = "; ".join(filter(None, [_ADVICE.get(code) or policy(code).meaning, said]))
        return self._coordinator.error(ApiKey.SHARE_GROUP_HEARTBEAT, code, words)

    def _bid_farewell(self, done: Callable[[], None]) -> None:
        """Report to the coordinator, if it is known, that this member leaves."""
        node_id = self._coordinator.node_id
        if node_id is None:
            done()
            return
        self._network.request(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            self._message(LEAVE_EPOCH, None),
            lambda _answer, _error: done(),
            node_id=node_id,
            deadline_ns=self.now_ns + self._request_timeout_ns,
            fails_fast=True,
        )

    def _start(self, what: str, script: Steps[T], done: Done[T]) -> None:
        self._scripts.start(f"{what} for group {self.group_id!r}", script, NEVER_NS, done)
