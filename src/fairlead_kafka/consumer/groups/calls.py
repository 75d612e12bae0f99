"""Requests of a member to its group's coordinator, as scripts (`core.script`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, UnsupportedVersion
from fairlead_kafka.base.ids import NO_OFFSET, TopicPartition
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.coordinator_lookup import KeyType, find_coordinators
from fairlead_kafka.core.group_offsets import NO_GENERATION, GroupMetadata, OffsetAndMetadata, offset_rows
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.partition_offsets import ISOLATION_LEVELS, READ_COMMITTED
from fairlead_kafka.core.script import Ask, Pause, Steps, ask_one
from fairlead_kafka.wire import ApiKey, RequestMessage
from fairlead_kafka.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

_Fetched = OffsetFetchResponse | OffsetFetchResponse.OffsetFetchResponseGroup


class Reaction(Enum):
    """Reaction to an error code in a coordinator's answer."""

    RETRY = auto()
    REFIND = auto()
    """The coordinator has moved: look it up again."""
    REPORT = auto()
    """The application, or the membership, has to know."""


_REFIND = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}
)
_REPORTED = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    }
)
"""Codes that the membership reacts to, retriable by the table or not."""


def reaction(code: int) -> Reaction:
    """The reaction to `code`."""
    if code in _REFIND:
        return Reaction.REFIND
    return Reaction.RETRY if code not in _REPORTED and policy(code).retriable else Reaction.REPORT


class Coordinator:
    """The node of one group's coordinator, and how it is asked."""

    def __init__(self, metadata: Metadata, group_id: str) -> None:
        self._metadata = metadata
        self.group_id = group_id
        self.node_id: int | None = None
        """Node id of the coordinator; None: to be found."""

    def find(self) -> Steps[int]:
        """The coordinator's node id, looked for until it is found."""
        while self.node_id is None:
            found = (yield from find_coordinators(self._metadata, KeyType.GROUP, [self.group_id]))[
                self.group_id
            ]
            if isinstance(found, int):
                self.node_id = found
                break
            if isinstance(found, BrokerError) and not found.retriable:
                raise found
            yield Pause(found)
        return self.node_id

    def ask(
        self,
        api_key: ApiKey,
        message: Callable[[], RequestMessage[R]],
        codes_of: Callable[[R], Iterable[int]],
        timeout_ms: float | None = None,
        reported: frozenset[int] = frozenset(),
    ) -> Steps[tuple[R, int]]:
        """Ask the coordinator; (answer, code), 0 if there is no error.

        Asked again, of a coordinator looked up again if it moved, while the code is one that
        passes. `reported`: codes that are not waited out, although they might pass. UnsupportedVersion
        from a broker that is too old.
        """
        while True:
            node_id = yield from self.find()
            ask = Ask(api_key, message(), node_id, fails_fast=True, timeout_ms=timeout_ms)
            answer = yield from ask_one(ask)
            if isinstance(answer, UnsupportedVersion):
                raise answer
            if isinstance(answer, Exception):
                self.node_id = None
                yield Pause(answer)
                continue
            code = next((code for code in codes_of(answer) if code), 0)
            found = reaction(code) if code and code not in reported else Reaction.REPORT
            if found is Reaction.REPORT:
                return answer, code
            if found is Reaction.REFIND:
                self.node_id = None
            yield Pause(self.error(api_key, code))

    def error(self, api_key: ApiKey, code: int, advice: str = "") -> BrokerError:
        """The error to raise for `code`."""
        text = f"{api_key.name} for group {self.group_id!r}"
        return (
            BrokerError(code, f"{text}: {advice}")
            if advice
            else broker_error(code, f"{text}: {policy(code).meaning}", "Read")
        )


class CoordinatorCalls(Coordinator):
    """Scripts of a consumer group's requests."""

    def __init__(self, settings: Settings, metadata: Metadata, group_id: str) -> None:
        super().__init__(metadata, group_id)
        self._require_stable = ISOLATION_LEVELS[settings["isolation.level"]] == READ_COMMITTED

    def not_a_member(self) -> BrokerError:
        """The error for a commit of a subscribed consumer that is not in its group."""
        advice = "this consumer is not in the group at present; poll"
        return self.error(ApiKey.OFFSET_COMMIT, ErrorCode.UNKNOWN_MEMBER_ID, advice)

    def moved_on(self, code: int) -> BrokerError:
        """The error for a commit in the name of a membership that is over."""
        return self.error(ApiKey.OFFSET_COMMIT, code, _MOVED_ON)

    def commit(
        self, member: Callable[[], GroupMetadata], offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Steps[None]:
        """Commit offsets, in the name of `member` as it is by then. BrokerError if the group
        refuses them."""
        rows = offset_rows(offsets)

        def message() -> OffsetCommitRequest:
            who = member()
            return OffsetCommitRequest(
                group_id=self.group_id,
                generation_id_or_member_epoch=who.generation_id,
                member_id=who.member_id,
                group_instance_id=who.group_instance_id,
                retention_time_ms=-1,
                topics=rows,
            )

        # A topic that is gone does not come back, and commits behind this one wait for it (as in
        # Java, where it fails them at once).
        reported = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
        while True:
            _, code = yield from self.ask(ApiKey.OFFSET_COMMIT, message, _row_codes, reported=reported)
            if code != ErrorCode.STALE_MEMBER_EPOCH:
                break
            yield Pause(self.error(ApiKey.OFFSET_COMMIT, code))  # a heartbeat will bring the new epoch
        if code:
            raise self.error(ApiKey.OFFSET_COMMIT, code, _COMMIT_ADVICE.get(code, ""))

    def committed(
        self, partitions: Sequence[TopicPartition], member: Callable[[], GroupMetadata | None]
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """The committed offset of each partition, None where there is none.

        `member`: whose epoch the coordinator is to check (KIP-848); None: nobody's.
        """
        topics: dict[str, list[int]] = {}
        for topic, number in partitions:
            topics.setdefault(topic, []).append(number)
        made, row_of_group = (
            OffsetFetchRequest.OffsetFetchRequestTopic,
            OffsetFetchRequest.OffsetFetchRequestTopics,
        )
        rows = [made(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
        rows_of_group = [
            row_of_group(name=name, partition_indexes=numbers) for name, numbers in topics.items()
        ]

        def message() -> OffsetFetchRequest:
            who = member()
            group = OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=self.group_id,
                member_id=None if who is None else who.member_id,
                member_epoch=NO_GENERATION if who is None else who.generation_id,
                topics=rows_of_group,
            )
            return OffsetFetchRequest(
                group_id=self.group_id, topics=rows, groups=[group], require_stable=self._require_stable
            )

        while True:
            answer, code = yield from self.ask(ApiKey.OFFSET_FETCH, message, _fetched_codes)
            if code != ErrorCode.STALE_MEMBER_EPOCH:
                break
            yield Pause(self.error(ApiKey.OFFSET_FETCH, code))
        if code:
            raise self.error(ApiKey.OFFSET_FETCH, code)
        found: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(partitions)
        for listed in _fetched(answer).topics:
            for row in listed.partitions:
                if row.committed_offset != NO_OFFSET:
                    of = TopicPartition(listed.name, row.partition_index)
                    epoch = row.committed_leader_epoch
                    found[of] = OffsetAndMetadata(row.committed_offset, row.metadata or "", epoch)
        return found


_MOVED_ON = (
    "the group has gone on without this consumer, and its partitions may be others'; poll more often, give "
    "fewer records to a poll "
    "(max.poll.records), or raise max.poll.interval.ms"
)
_COMMIT_ADVICE: dict[int, str] = {
    ErrorCode.UNKNOWN_MEMBER_ID: _MOVED_ON,
    ErrorCode.ILLEGAL_GENERATION: _MOVED_ON,
    ErrorCode.GROUP_ID_NOT_FOUND: _MOVED_ON,
    ErrorCode.FENCED_MEMBER_EPOCH: _MOVED_ON,
    ErrorCode.REBALANCE_IN_PROGRESS: "the group is rebalancing; poll, and commit again",
    ErrorCode.FENCED_INSTANCE_ID: "another consumer has taken this one's group.instance.id",
}


def _row_codes(answer: OffsetCommitResponse | _Fetched) -> Iterable[int]:
    """Error codes of partitions, those first that an application has to know."""
    codes = [row.error_code for topic in answer.topics for row in topic.partitions if row.error_code]
    return sorted(codes, key=lambda code: reaction(code) is not Reaction.REPORT)


def _fetched(answer: OffsetFetchResponse) -> _Fetched:
    return answer.groups[0] if answer.groups else answer  # from version 8 on there may be several groups


def _fetched_codes(answer: OffsetFetchResponse) -> Iterable[int]:
    group = _fetched(answer)
    return [group.error_code, *_row_codes(group)]
