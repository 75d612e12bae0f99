"""The persister: requests of leaders of share partitions and of group coordinators to the share
coordinator, by a call if it is on this broker, else over a link. Errors that may pass are
retried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import SHARE_STATE_TOPIC, ClusterView, CreateInternalTopic
from fairlead_kafka.broker.guard import Guard
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.broker.links import Links
from fairlead_kafka.broker.share_groups.share_coordinator import Done, Stateful
from fairlead_kafka.broker.share_groups.share_state import (
    ShareKey,
    ShareState,
    StateUpdate,
    decode_deleted,
    encode_deletion,
)
from fairlead_kafka.broker.share_groups.window import StateBatch
from fairlead_kafka.broker.timers import DelayHost, Timer
from fairlead_kafka.wire import ApiKey, Message, PrivateApi, RequestMessage
from fairlead_kafka.wire.messages import (
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
)

RETRY_MS = 100
"""Wait before the share coordinator is asked again."""
GIVE_UP_MS = 15_000
"""How long it is tried to reach the share coordinator: longer than a broker takes to be missed."""
_PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors that can be gone in a moment, so that the coordinator is asked again."""
R = TypeVar("R")


class Coordinator(Protocol):
    """The share coordinator of this broker, as the persister needs it. `done` is called with the
    outcome."""

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int, done: Done) -> None:
        """Begin the state of a share partition at a start offset."""

    def read(self, key: ShareKey, leader_epoch: int, done: Stateful) -> None:
        """Read the state of a share partition, for its new leader."""

    def write(self, key: ShareKey, state_epoch: int, update: StateUpdate, done: Done) -> None:
        """Write changes of a share partition's state."""

    def delete(self, key: ShareKey, state_epoch: int, done: Done) -> None:
        """Forget the state of a share partition, if the state is of this state epoch or an earlier
        one."""

    def summary(self, key: ShareKey, done: Stateful) -> None:
        """Read a summary of the state of a share partition, for requests that only describe it."""


class PersisterHost(DelayHost, Protocol):
    """The parts of a broker that the persister uses."""

    node_id: int
    controller: ClusterView
    links: Links
    guard: Guard

    @property
    def share_coordinator(self) -> Coordinator:
        """The share coordinator of this broker."""


class _Row(Protocol):
    """A share partition's row in an answer of a share coordinator."""

    error_code: int


@dataclass(slots=True, eq=False)
class Question:
    """One request to a share coordinator: `here` asks this broker's, `there` that of another
    broker; both call back with the state."""

    key: ShareKey
    here: Callable[[Stateful], None]
    there: Callable[[int, Stateful], None]
    done: Stateful
    until_ns: int
    cancelled: bool = False
    timer: Timer | None = None
    """When it is asked again."""

    def cancel(self) -> None:
        """Give up the question: it is not asked again, and `done` is not called. The answer to a
        request under way is ignored."""
        self.cancelled = True
        if self.timer is not None:
            self.timer.cancel()


class StatePersister:
    """Asks the share coordinators, wherever they are, for one broker. Each `done` is called once,
    perhaps at once, with COORDINATOR_NOT_AVAILABLE if none could be reached."""

    def __init__(self, host: PersisterHost) -> None:
        self._host = host

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int, done: Done) -> Question:
        """Begin the state of a share partition. The question can be cancelled."""
        partition = InitializeShareGroupStateRequest.PartitionData(
            partition=key.partition, state_epoch=state_epoch, start_offset=start_offset
        )
        topic = InitializeShareGroupStateRequest.InitializeStateData(
            topic_id=key.topic_id, partitions=[partition]
        )
        message = InitializeShareGroupStateRequest(group_id=key.group_id, topics=[topic])
        here = self._host.share_coordinator
        return self._begin(
            key,
            lambda answered: here.initialize(
                key, state_epoch, start_offset, lambda error: answered(error, None)
            ),
            lambda node, answered: self._ask(
                node,
                ApiKey.INITIALIZE_SHARE_GROUP_STATE,
                0,
                message,
                lambda answer: _state_kept(
                    None if answer is None else answer.results[0].partitions[0], answered
                ),
            ),
            lambda error, _state: done(error),
        )

    def read(self, key: ShareKey, leader_epoch: int, done: Stateful) -> Question:
        """Read the state of a share partition as its new leader, which fences the one before.
        Returns the question, which can be cancelled."""
        partition = ReadShareGroupStateRequest.PartitionData(
            partition=key.partition, leader_epoch=leader_epoch
        )
        topic = ReadShareGroupStateRequest.ReadStateData(topic_id=key.topic_id, partitions=[partition])
        message = ReadShareGroupStateRequest(group_id=key.group_id, topics=[topic])
        here = self._host.share_coordinator
        return self._begin(
            key,
            lambda answered: here.read(key, leader_epoch, answered),
            lambda node, answered: self._ask(
                node,
                ApiKey.READ_SHARE_GROUP_STATE,
                0,
                message,
                lambda answer: _state_read(answer, answered),
            ),
            done,
        )

    def write(self, key: ShareKey, state_epoch: int, update: StateUpdate, done: Done) -> None:
        """Write changes of the state of a share partition."""
        batches = [
            WriteShareGroupStateRequest.StateBatch(
                first_offset=one.first,
                last_offset=one.last,
                delivery_state=one.state,
                delivery_count=one.deliveries,
            )
            for one in update.batches
        ]
        partition = WriteShareGroupStateRequest.PartitionData(
            partition=key.partition,
            state_epoch=state_epoch,
            leader_epoch=update.leader_epoch,
            start_offset=update.start_offset,
            state_batches=batches,
            delivery_complete_count=update.complete_count,
        )
        topic = WriteShareGroupStateRequest.WriteStateData(topic_id=key.topic_id, partitions=[partition])
        message = WriteShareGroupStateRequest(group_id=key.group_id, topics=[topic])
        here = self._host.share_coordinator
        self._begin(
            key,
            lambda answered: here.write(key, state_epoch, update, lambda error: answered(error, None)),
            lambda node, answered: self._ask(
                node,
                ApiKey.WRITE_SHARE_GROUP_STATE,
                1,
                message,
                lambda answer: _state_kept(
                    None if answer is None else answer.results[0].partitions[0], answered
                ),
            ),
            lambda error, _state: done(error),
        )

    def delete(self, key: ShareKey, state_epoch: int, done: Done) -> Question:
        """Have the coordinator forget the state of a share partition, if the state is of this state
        epoch or an earlier one: a state that was begun later is not deleted, however late this
        request comes."""
        here = self._host.share_coordinator
        message = Message(body=[encode_deletion(key, state_epoch)])

        def there(node: int, answered: Stateful) -> None:
            def reported(answer: Message | None) -> None:
                answered(_deleted(answer), None)

            self._ask(node, PrivateApi.DELETE_SHARE_STATE, 0, message, reported)

        return self._begin(
            key,
            lambda answered: here.delete(key, state_epoch, lambda error: answered(error, None)),
            there,
            lambda error, _state: done(error),
        )

    def summary(self, key: ShareKey, done: Stateful) -> None:
        """Read the state of a share partition without leading it, for requests that only describe
        it."""
        partition = ReadShareGroupStateSummaryRequest.PartitionData(partition=key.partition, leader_epoch=-1)
        topic = ReadShareGroupStateSummaryRequest.ReadStateSummaryData(
            topic_id=key.topic_id, partitions=[partition]
        )
        message = ReadShareGroupStateSummaryRequest(group_id=key.group_id, topics=[topic])
        here = self._host.share_coordinator
        api_key = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
        self._begin(
            key,
            lambda answered: here.summary(key, answered),
            lambda node, answered: self._ask(
                node, api_key, 1, message, lambda answer: _state_seen(answer, answered)
            ),
            done,
        )

    # --- Asking

    def _begin(
        self,
        key: ShareKey,
        here: Callable[[Stateful], None],
        there: Callable[[int, Stateful], None],
        done: Stateful,
    ) -> Question:
        until_ns = self._host.now_ns + ms_to_ns(GIVE_UP_MS)
        question = Question(key, here, there, self._host.guard.bind(done), until_ns)
        self._try(question)
        return question

    def _try(self, question: Question) -> None:
        image = self._host.controller.image
        topic = image.topics.get(SHARE_STATE_TOPIC)
        if topic is None:
            self._host.controller.decide(
                CreateInternalTopic(SHARE_STATE_TOPIC),
                self._host.guard.bind(
                    lambda made, _error: self._again(
                        question, ErrorCode.COORDINATOR_NOT_AVAILABLE, 0 if made is not None else RETRY_MS
                    )
                ),
            )
            return

        def answered(error: int, state: ShareState | None) -> None:
            if question.cancelled:
                return
            if error in _PASSING:
                self._again(question, error)
            else:
                question.done(error, state)

        leader = topic.partitions[home_partition(str(question.key), len(topic.partitions))].leader
        if leader == self._host.node_id:
            try:
                question.here(answered)
            except BrokerError as error:
                answered(error.code, None)
        elif image.is_alive(leader):
            question.there(leader, answered)
        else:
            self._again(question, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _again(self, question: Question, error: int, wait_ms: int = RETRY_MS) -> None:
        if question.cancelled:
            return
        if self._host.now_ns >= question.until_ns:
            question.done(error, None)
        else:
            question.timer = self._host.call_later(wait_ms, lambda: self._try(question))

    @hook("share state: a question goes to another broker")
    def _ask(
        self,
        node: int,
        api_key: ApiKey | PrivateApi,
        version: int,
        message: RequestMessage[R] | Message,
        answered: Callable[[R | None], None],
    ) -> None:
        """Ask the coordinator on another broker; answered(None) if it did not answer."""
        self._host.links.ask(node, api_key, version, message, lambda response, _error: answered(response))


def _deleted(answer: Message | None) -> int:
    """The error code in an answer to a deletion; COORDINATOR_NOT_AVAILABLE if there is no
    answer."""
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if answer is None else decode_deleted(bytes(answer.body))


def _state_kept(row: _Row | None, answered: Stateful) -> None:
    """Call `answered` with the error code of an answer without a state; COORDINATOR_NOT_AVAILABLE
    if there is no answer."""
    answered(ErrorCode.COORDINATOR_NOT_AVAILABLE if row is None else row.error_code, None)


def _state_read(response: ReadShareGroupStateResponse | None, answered: Stateful) -> None:
    row = None if response is None else response.results[0].partitions[0]
    if row is None or row.error_code:
        _state_kept(row, answered)
        return
    batches = tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in row.state_batches
    )
    answered(ErrorCode.NONE, ShareState(row.state_epoch, row.start_offset, batches=batches))


def _state_seen(response: ReadShareGroupStateSummaryResponse | None, answered: Stateful) -> None:
    row = None if response is None else response.results[0].partitions[0]
    if row is None or row.error_code:
        _state_kept(row, answered)
        return
    count = row.delivery_complete_count
    state = ShareState(row.state_epoch, row.start_offset, leader_epoch=row.leader_epoch, complete_count=count)
    answered(ErrorCode.NONE, state)
