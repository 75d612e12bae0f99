"""Requests of a member to its group's coordinator, as scripts (`core.script`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, UnsupportedVersion
from fairlead_kafka.base.ids import NO_OFFSET, NO_TOPIC_ID, TopicPartition
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.coordinator_lookup import KeyType, find_coordinators
from fairlead_kafka.core.group_offsets import (
    LAST_VERSIONS_WITH_NAMES,
    NO_GENERATION,
    GroupMetadata,
    OffsetAndMetadata,
    offset_rows,
)
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

_FetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopic | OffsetFetchResponse.OffsetFetchResponseTopics
_Fetched = OffsetFetchResponse | OffsetFetchResponse.OffsetFetchResponseGroup


class Reaction(Enum):
    """The reaction of a member to an error code in its coordinator's answer."""

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
    """The reaction of a member to the error `code`."""
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
        """The coordinator's node id, found by FindCoordinator, which is repeated until it
        succeeds."""
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
        version_max: Callable[[], int | None] = lambda: None,
    ) -> Steps[tuple[R, int]]:
        """Ask the coordinator; (answer, code), 0 if there is no error.

        The request is repeated while the code is retriable, to a coordinator that is looked up
        again if it moved. `reported`: codes that are not waited out, although they are retriable.
        `version_max`: the highest version that can say what `message` gave. UnsupportedVersion from
        a broker that is too old.
        """
        while True:
            node_id = yield from self.find()
            asked = message()
            ask = Ask(
                api_key,
                asked,
                node_id,
                fails_fast=True,
                timeout_ms=timeout_ms,
                version_max=version_max(),
            )
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
        """The error to raise for `code` in an answer to `api_key`; `advice` is its text instead of
        the code's meaning."""
        text = f"{api_key.name} for group {self.group_id!r}"
        return (
            BrokerError(code, f"{text}: {advice}")
            if advice
            else broker_error(code, f"{text}: {policy(code).meaning}", "Read")
        )


class CoordinatorCalls(Coordinator):
    """Scripts of a consumer group's requests. `read` is the metadata of the topics that the
    consumer reads."""

    def __init__(self, settings: Settings, metadata: Metadata, group_id: str, read: Metadata) -> None:
        super().__init__(metadata, group_id)
        self._read = read
        self._require_stable = ISOLATION_LEVELS[settings["isolation.level"]] == READ_COMMITTED

    def not_a_member(self) -> BrokerError:
        """The error for a commit of a subscribed consumer that is not in its group."""
        advice = "this consumer is not in the group at present; poll"
        return self.error(ApiKey.OFFSET_COMMIT, ErrorCode.UNKNOWN_MEMBER_ID, advice)

    def moved_on(self, code: int) -> BrokerError:
        """The error for a commit by a membership that has ended, since the group went on without
        it."""
        return self.error(ApiKey.OFFSET_COMMIT, code, _MOVED_ON)

    def commit(
        self, member: Callable[[], GroupMetadata], offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Steps[None]:
        """Commit offsets, in the name of `member` as it is by then. BrokerError if the group
        refuses them."""
        named = _NamedTopics(self._read, ApiKey.OFFSET_COMMIT, {of.topic for of in offsets})

        def message() -> OffsetCommitRequest:
            who = member()
            ids = named.look()
            return OffsetCommitRequest(
                group_id=self.group_id,
                generation_id_or_member_epoch=who.generation_id,
                member_id=who.member_id,
                group_instance_id=who.group_instance_id,
                retention_time_ms=-1,
                topics=offset_rows(offsets, ids),
            )

        # A topic that is gone does not come back, and commits behind this one wait for it (as in
        # Java, where it fails them at once).
        reported = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
        while True:
            _, code = yield from self.ask(
                ApiKey.OFFSET_COMMIT,
                message,
                _row_codes,
                reported=reported,
                version_max=named.version_max,
            )
            if code != ErrorCode.STALE_MEMBER_EPOCH:
                break
            yield Pause(self.error(ApiKey.OFFSET_COMMIT, code))  # a heartbeat will bring the new epoch
        if code == ErrorCode.UNKNOWN_TOPIC_ID:
            self._read.request_update()
        if code:
            raise self.error(ApiKey.OFFSET_COMMIT, code, _COMMIT_ADVICE.get(code, ""))

    def committed(
        self, partitions: Sequence[TopicPartition], member: Callable[[], GroupMetadata | None]
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """The committed offset of each partition, None where there is none.

        `member()` gives the member whose epoch the coordinator is to check (KIP-848); None: none is
        checked.
        """
        topics: dict[str, list[int]] = {}
        for topic, number in partitions:
            topics.setdefault(topic, []).append(number)
        made, row_of_group = (
            OffsetFetchRequest.OffsetFetchRequestTopic,
            OffsetFetchRequest.OffsetFetchRequestTopics,
        )
        rows = [made(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
        named = _NamedTopics(self._read, ApiKey.OFFSET_FETCH, topics)

        def message() -> OffsetFetchRequest:
            who = member()
            ids = named.look()
            rows_of_group = [
                row_of_group(name=name, topic_id=ids.get(name, NO_TOPIC_ID), partition_indexes=numbers)
                for name, numbers in topics.items()
            ]
            group = OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=self.group_id,
                member_id=None if who is None else who.member_id,
                member_epoch=NO_GENERATION if who is None else who.generation_id,
                topics=rows_of_group,
            )
            return OffsetFetchRequest(
                group_id=self.group_id, topics=rows, groups=[group], require_stable=self._require_stable
            )

        reported = frozenset({ErrorCode.UNKNOWN_TOPIC_ID})
        while True:
            answer, code = yield from self.ask(
                ApiKey.OFFSET_FETCH,
                message,
                _fetched_codes,
                reported=reported,
                version_max=named.version_max,
            )
            if code not in (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID):
                break
            if code == ErrorCode.UNKNOWN_TOPIC_ID:
                self._read.request_update()  # for the id of the topic that has this name by now
            yield Pause(self.error(ApiKey.OFFSET_FETCH, code))
        if code:
            raise self.error(ApiKey.OFFSET_FETCH, code)
        found: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(partitions)
        for listed in _fetched(answer).topics:
            name = named.name_of(listed)
            for row in listed.partitions:
                if row.committed_offset != NO_OFFSET:
                    of = TopicPartition(name, row.partition_index)
                    epoch = row.committed_leader_epoch
                    found[of] = OffsetAndMetadata(row.committed_offset, row.metadata or "", epoch)
        return found


class _NamedTopics:
    """The topics that a request names: by their ids if the metadata have all of them, so that an
    offset of a deleted topic is not one of a new topic with its name."""

    def __init__(self, metadata: Metadata, api_key: ApiKey, names: Iterable[str]) -> None:
        self._metadata = metadata
        self._api_key = api_key
        self._names = list(names)
        self._ids: dict[str, UUID] = {}

    def look(self) -> dict[str, UUID]:
        """The ids that the metadata have now, by name."""
        topics = (self._metadata.topic(name) for name in self._names)
        self._ids = {
            topic.name: topic.topic_id for topic in topics if topic and topic.topic_id != NO_TOPIC_ID
        }
        return self._ids

    def version_max(self) -> int | None:
        """The highest version of the request that can name all these topics; None: any."""
        return None if len(self._ids) == len(self._names) else LAST_VERSIONS_WITH_NAMES[self._api_key]

    def name_of(self, row: _FetchedTopic) -> str:
        """The name of the topic that `row` of an answer is about; empty if it has another id."""
        if row.name or isinstance(row, OffsetFetchResponse.OffsetFetchResponseTopic):
            return row.name
        return next((name for name, known in self._ids.items() if known == row.topic_id), "")


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
    """Error codes of partitions, those first that are reported to the application."""
    codes = [row.error_code for topic in answer.topics for row in topic.partitions if row.error_code]
    return sorted(codes, key=lambda code: reaction(code) is not Reaction.REPORT)


def _fetched(answer: OffsetFetchResponse) -> _Fetched:
    return answer.groups[0] if answer.groups else answer  # from version 8 on there may be several groups


def _fetched_codes(answer: OffsetFetchResponse) -> Iterable[int]:
    group = _fetched(answer)
    return [group.error_code, *_row_codes(group)]
