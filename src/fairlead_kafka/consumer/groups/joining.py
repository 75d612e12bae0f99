"""Joining a group, or its next generation: JoinGroup, assignment by the leader, SyncGroup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.absent import AbsentTopics
from fairlead_kafka.consumer.groups.assignors import Assignor
from fairlead_kafka.consumer.groups.calls import CoordinatorCalls
from fairlead_kafka.consumer.groups.looking import find_topics
from fairlead_kafka.core.consumer_protocol import (
    PROTOCOL_TYPE,
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fairlead_kafka.core.group_offsets import NO_GENERATION
from fairlead_kafka.core.script import Pause, Steps
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

LOGGER = GuardedLogger("fairlead_kafka.consumer")
_ANSWER_GRACE_MS = 5_000
"""How much longer than all members may take the answer to a JoinGroup is waited for (Kafka's
`JOIN_GROUP_TIMEOUT_LAPSE`)."""
_AT_ONCE = frozenset({ErrorCode.MEMBER_ID_REQUIRED})
_AS_NEWCOMER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID})
_AGAIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})


class Joined(NamedTuple):
    """Result of a join.

    `counts`, if this member is the leader: the number of partitions of each topic that it has
    assigned, None for a missing topic. None if another member leads.
    """

    generation: int
    partitions: tuple[TopicPartition, ...]
    counts: dict[str, int | None] | None


class Joining:
    """The join script, and what it keeps of the member from one join to the next."""

    def __init__(
        self,
        settings: Settings,
        calls: CoordinatorCalls,
        assignors: Sequence[Assignor],
        instance_id: str | None,
    ) -> None:
        self._settings = settings
        self._calls = calls
        self._assignors = assignors
        self._instance_id = instance_id
        self._absent = AbsentTopics(settings["allow.auto.create.topics"])
        self.member_id = ""
        self._had: tuple[TopicPartition, ...] = ()
        self._generation = NO_GENERATION

    def forget(self) -> None:
        """Make the next join that of a new member, which owns nothing."""
        self.member_id = ""
        self._had, self._generation = (), NO_GENERATION

    def join(
        self, topics: Sequence[str], owned: Sequence[TopicPartition], wanted: Callable[[], bool]
    ) -> Steps[Joined | None]:
        """Join the group until an assignment is complete; None once `wanted()` is false.
        BrokerError if the group refuses."""
        rebalance_ms = self._settings["max.poll.interval.ms"]
        while True:
            answer, code = yield from self._calls.ask(
                ApiKey.JOIN_GROUP,
                lambda: self._join_message(topics, owned),
                lambda answer: [answer.error_code],
                rebalance_ms + _ANSWER_GRACE_MS,
            )
            if not wanted():
                return None
            if code:
                yield from self._refused(ApiKey.JOIN_GROUP, code, answer.member_id)
                continue
            self.member_id, generation = answer.member_id, answer.generation_id
            counts: dict[str, int | None] | None = None
            shares: Mapping[str, Sequence[TopicPartition]] = {}
            if answer.leader == answer.member_id:
                assignor = self._chosen(answer.protocol_name)
                members = _subscriptions(answer.members, assignor)
                counts = yield from self._count({topic for each in members.values() for topic in each.topics})
                if not answer.skip_assignment:
                    shares = assignor.assign(
                        {topic: count for topic, count in counts.items() if count}, members
                    )
            synced, code = yield from self._sync(self._sync_message(answer, shares))
            if not wanted():
                return None
            if code:
                yield from self._refused(ApiKey.SYNC_GROUP, code, self.member_id)
                continue
            partitions = decode_assignment(bytes(synced.assignment)).partitions
            self._had, self._generation = partitions, generation
            return Joined(generation, partitions, counts)

    def _sync(self, message: SyncGroupRequest) -> Steps[tuple[SyncGroupResponse, int]]:
        return self._calls.ask(ApiKey.SYNC_GROUP, lambda: message, lambda answer: [answer.error_code])

    def _chosen(self, name: str | None) -> Assignor:
        """The assignor that the coordinator chose for the group, by name. BrokerError for one that
        this member did not offer."""
        for assignor in self._assignors:
            if assignor.name == name:
                return assignor
        problem = (
            f"group {self._calls.group_id!r} is to be shared by {name!r}, which this member did not offer"
        )
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, problem)

    def _refused(self, api_key: ApiKey, code: int, member_id: str) -> Steps[None]:
        """React to the error `code` of an answer: return if another attempt is to be made, else
        raise BrokerError."""
        error = self._calls.error(api_key, code, _ADVICE.get(code, ""))
        if code in _AT_ONCE:
            self.member_id = member_id
        elif code in _AS_NEWCOMER:
            self.forget()
            yield Pause(error, wait_ms=self._settings["retry.backoff.ms"])
        elif code in _AGAIN:
            yield Pause(error, wait_ms=self._settings["retry.backoff.ms"])
        else:
            raise error

    def _count(self, topics: set[str]) -> Steps[dict[str, int | None]]:
        """Number of partitions of each topic; None for a topic that does not exist."""
        found = yield from find_topics(self._absent, sorted(topics))
        return {topic: len(found[topic].partitions) if topic in found else None for topic in sorted(topics)}

    def _join_message(self, topics: Sequence[str], owned: Sequence[TopicPartition]) -> JoinGroupRequest:
        protocols = []
        for assignor in self._assignors:
            user_data = assignor.user_data(self._had, self._generation)
            metadata = encode_subscription(
                Subscription(tuple(topics), user_data, tuple(owned), self._generation)
            )
            protocols.append(JoinGroupRequest.JoinGroupRequestProtocol(name=assignor.name, metadata=metadata))
        return JoinGroupRequest(
            group_id=self._calls.group_id,
            session_timeout_ms=self._settings["session.timeout.ms"],
            rebalance_timeout_ms=self._settings["max.poll.interval.ms"],
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=None,
        )

    def _sync_message(
        self, answer: JoinGroupResponse, shares: Mapping[str, Sequence[TopicPartition]]
    ) -> SyncGroupRequest:
        made = SyncGroupRequest.SyncGroupRequestAssignment
        assignments = [
            made(member_id=member_id, assignment=encode_assignment(Assignment(tuple(share))))
            for member_id, share in shares.items()
        ]
        return SyncGroupRequest(
            group_id=self._calls.group_id,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=answer.protocol_name,
            assignments=assignments,
        )


_ADVICE: dict[int, str] = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "no assignor in common with its other members, or it is not one of consumers; check "
        "partition.assignment.strategy and group.id"
    ),
    ErrorCode.FENCED_INSTANCE_ID: "another consumer has taken this one's group.instance.id; give each its "
    "own",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "it has as many members as the brokers' group.max.size allows",
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "session.timeout.ms is outside of the brokers' group.min.session.timeout.ms and "
        "group.max.session.timeout.ms"
    ),
}


def _subscriptions(
    members: Sequence[JoinGroupResponse.JoinGroupResponseMember], assignor: Assignor
) -> dict[str, Subscription]:
    """Subscriptions of members, in an order that is always the same for the same ones.

    Static members come first, by instance id, then the others by member id. A member whose metadata
    are garbled gets nothing, and the others their shares: what one of them sends is not to stop the
    group. (Kafka's leader fails there, and the next one after it.)
    """
    ordered = sorted(
        members, key=lambda one: (one.group_instance_id is None, one.group_instance_id or one.member_id)
    )
    found: dict[str, Subscription] = {}
    for one in ordered:
        try:
            found[one.member_id] = assignor.understood(decode_subscription(bytes(one.metadata)))
        except DecodeError as error:
            LOGGER.warning(
                "member %s of the group gets no partitions: what it says of its subscription is garbled: %s",
                one.member_id,
                error,
            )
            found[one.member_id] = Subscription(())
    return found
