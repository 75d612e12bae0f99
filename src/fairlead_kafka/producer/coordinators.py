"""Requests to coordinators of transactions and groups: scripts that ask until an answer is clear.

A lost answer says nothing about what was done, so a request is repeated, whatever has become of the
transaction meanwhile: all of these requests may be repeated. After an answer with an error a script
ends if the transaction has failed (`Abandoned`).

Which protocol of transactions is spoken follows from the versions of EndTxn, TxnOffsetCommit and
Produce, which are negotiated by the feature level that the cluster has finalized
(`wire.api.FEATURE_VERSIONS`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import (
    AuthenticationFailed,
    BrokerError,
    FairleadError,
    UnsupportedVersion,
)
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_PRODUCER_ID, Node, TopicPartition
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.coordinator_lookup import KeyType
from fairlead_kafka.core.event_log import PRODUCER_ID_GRANTED
from fairlead_kafka.core.group_offsets import GroupMetadata, OffsetAndMetadata, transaction_offset_rows
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.script import Ask, Pause, Steps, ask_one
from fairlead_kafka.producer.identity import Identity
from fairlead_kafka.producer.reactions import Reaction, busy_wait_ms, gravest
from fairlead_kafka.wire import ApiKey, RequestMessage
from fairlead_kafka.wire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

_BUMPS_SINCE_VERSION = 3
"""The version from which InitProducerId takes the producer's id and epoch and gives the next epoch
(KIP-360, Kafka 2.5)."""
_ENDS_BY_EPOCH = 5
"""The version from which EndTxn gives the next epoch (KIP-890)."""


class Refused(FairleadError):
    """A script ended with an error: `reaction` is what it means, `cause` the error to report."""

    def __init__(self, reaction: Reaction, cause: Exception) -> None:
        super().__init__(str(cause))
        self.reaction = reaction
        self.cause = cause


class Abandoned(FairleadError):
    """A script ended because the transaction that it worked for has failed."""


class Coordinators:
    """Scripts that ask the coordinators of one producer: of its transactional id, and of groups.
    Remembers which nodes these are."""

    def __init__(
        self,
        network: Network,
        identity: Identity,
        transactional_id: str,
        timeout_ms: int,
        backoff_ms: float,
        goes_on: Callable[[], bool],
    ) -> None:
        self._network = network
        self._identity = identity
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._goes_on = goes_on
        """True while the transaction can still be committed."""
        self._nodes: dict[tuple[KeyType, str], int] = {}
        self.problem: Exception | None = None
        """Why the script under way is not done yet."""
        self.can_bump = True
        """The transaction coordinator gives new epochs (Kafka 2.5)."""

    def initialize(self) -> Steps[None]:
        """Get producer id and epoch (InitProducerId). With an id already, a new epoch of it;
        Refused, with reaction FENCED, if another producer took it over."""
        identity = self._identity
        message = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
        )
        answer = yield from self._ask(ApiKey.INIT_PRODUCER_ID, message, _code)
        version = self._coordinators_version(ApiKey.INIT_PRODUCER_ID)
        if version is not None:
            self.can_bump = version >= _BUMPS_SINCE_VERSION
        identity.grant(answer.producer_id, answer.producer_epoch)
        self._network.events.log(
            PRODUCER_ID_GRANTED, self._transactional_id, identity.producer_id, identity.epoch
        )

    def add_partitions(self, partitions: Callable[[], Iterable[TopicPartition]]) -> Steps[None]:
        """Make partitions part of the transaction (AddPartitionsToTxn): those that `partitions`
        returns, which is called for each request."""

        def message() -> AddPartitionsToTxnRequest:
            topics: dict[str, list[int]] = {}
            for topic, partition in partitions():
                topics.setdefault(topic, []).append(partition)
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._transactional_id,
                v3_and_below_producer_id=self._identity.producer_id,
                v3_and_below_producer_epoch=self._identity.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=numbers)
                    for name, numbers in topics.items()
                ],
            )

        yield from self._add(ApiKey.ADD_PARTITIONS_TO_TXN, message, _added_codes)

    def add_offsets(self, group_id: str) -> Steps[None]:
        """Make a group's offsets part of the transaction (AddOffsetsToTxn)."""
        message = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            group_id=group_id,
        )
        yield from self._add(ApiKey.ADD_OFFSETS_TO_TXN, message, _code)

    def commit_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> Steps[None]:
        """Send offsets to the group's coordinator (TxnOffsetCommit), to be committed with the
        transaction (KIP-447)."""
        message = TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            group_id=group.group_id,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=transaction_offset_rows(offsets),
        )
        yield from self._ask(
            ApiKey.TXN_OFFSET_COMMIT, message, _committed_codes, KeyType.GROUP, group.group_id, within=True
        )

    @hook("producer: a transaction is ended")
    def end(self, commit: bool) -> Steps[None]:
        """Commit or abort the transaction (EndTxn). Where each transaction has an epoch of its own,
        the answer is the identity of the next one (KIP-890)."""
        message = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            committed=commit,
        )
        answer = yield from self._ask(ApiKey.END_TXN, message, _code)
        if answer.producer_id != NO_PRODUCER_ID:
            self._identity.grant(answer.producer_id, answer.producer_epoch)

    @property
    def ends_by_epoch(self) -> bool:
        """True if the coordinator that was asked last speaks the second protocol (KIP-890): an end
        gives the next epoch, and an abort is taken whether or not a transaction was begun."""
        version = self._coordinators_version(ApiKey.END_TXN)
        return version is not None and version >= _ENDS_BY_EPOCH

    # Inside

    def _coordinators_version(self, api_key: ApiKey) -> int | None:
        """The version of an API that the coordinator which was asked last serves; None: it is not
        known now."""
        node_id = self._nodes.get((KeyType.TRANSACTION, self._transactional_id))
        return None if node_id is None else self._network.known_version(node_id, api_key)

    def _add(
        self,
        api_key: ApiKey,
        message: RequestMessage[R] | Callable[[], RequestMessage[R]],
        codes_of: Callable[[R], Iterable[int]],
    ) -> Steps[R]:
        """The answer to a request that may begin the transaction. A producer that is fenced by the
        second protocol may only have been too slow: then the coordinator takes its abort, and gives
        it the next epoch; or the answer to the abort fences it."""
        try:
            return (yield from self._ask(api_key, message, codes_of, within=True, until_known=True))
        except Refused as error:
            if error.reaction is Reaction.FENCED and self.ends_by_epoch:
                said = error.cause.context if isinstance(error.cause, BrokerError) else error.cause
                late = "or the transaction took longer than transaction.timeout.ms"
                cause = BrokerError(ErrorCode.PRODUCER_FENCED, f"{said}, {late}")
                raise Refused(Reaction.ABORT, cause) from None
            raise

    def _ask(
        self,
        api_key: ApiKey,
        message: RequestMessage[R] | Callable[[], RequestMessage[R]],
        codes_of: Callable[[R], Iterable[int]],
        key_type: KeyType = KeyType.TRANSACTION,
        key: str | None = None,
        *,
        within: bool = False,
        until_known: bool = False,
    ) -> Steps[R]:
        """The answer of a coordinator, which is asked again while its error code is retriable.
        Refused for another error; Abandoned if the request is `within` a transaction that can no
        longer be committed. `message`: the request, or a function that makes it each time.

        `until_known`: the request is not abandoned while it is not known whether an earlier one was
        carried out. A coordinator that moves may have written what it answers an error to.
        """
        key = self._transactional_id if key is None else key
        busy, in_doubt = 0, False
        while True:
            node_id = self._nodes.get((key_type, key))
            if node_id is None:
                node_id = yield from self._find(key_type, key)
            asked = message() if callable(message) else message
            answer = yield from ask_one(Ask(api_key, asked, node_id, fails_fast=True))
            if isinstance(answer, (UnsupportedVersion, AuthenticationFailed)):
                raise Refused(Reaction.FATAL, answer)
            wait_ms = None
            if isinstance(answer, Exception):
                self._nodes.pop((key_type, key), None)
                self.problem, in_doubt = answer, until_known
            else:
                reaction, code = gravest(api_key, codes_of(answer))
                if reaction is Reaction.DONE:
                    self.problem = None
                    return answer
                self.problem = self._error(api_key, code, key_type, key)
                if reaction is Reaction.REFIND:
                    self._nodes.pop((key_type, key), None)
                elif reaction is not Reaction.RETRY:
                    raise Refused(reaction, self.problem)
                if code == ErrorCode.CONCURRENT_TRANSACTIONS:
                    wait_ms = busy_wait_ms(busy, self._backoff_ms)
                    busy += 1
                else:
                    in_doubt = until_known
                if within and not in_doubt and not self._goes_on():
                    raise Abandoned(str(self.problem))
            yield Pause(self.problem, wait_ms=wait_ms)

    def _find(self, key_type: KeyType, key: str) -> Steps[int]:
        message = FindCoordinatorRequest(key=key, key_type=int(key_type), coordinator_keys=[key])
        while True:
            answer = yield from ask_one(Ask(ApiKey.FIND_COORDINATOR, message))
            if isinstance(answer, (UnsupportedVersion, AuthenticationFailed)):
                raise Refused(Reaction.FATAL, answer)
            if isinstance(answer, Exception):
                self.problem = answer
            else:
                found = (
                    answer.coordinators[0] if answer.coordinators else answer
                )  # from version 4 on it is a list
                reaction, code = gravest(ApiKey.FIND_COORDINATOR, [found.error_code])
                if reaction is Reaction.DONE:
                    return self._found(key_type, key, found)
                self.problem = self._error(ApiKey.FIND_COORDINATOR, code, key_type, key)
                if reaction is not Reaction.RETRY:
                    raise Refused(reaction, self.problem)
            yield Pause(self.problem)

    def _found(
        self,
        key_type: KeyType,
        key: str,
        found: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator,
    ) -> int:
        node_id = found.node_id
        known = self._network.metadata.nodes.get(node_id)
        if known is None or (known.host, known.port) != (found.host, found.port):
            self._network.metadata.saw_nodes([Node(node_id, found.host, found.port)])
        self._nodes[key_type, key] = node_id
        return node_id

    def _error(self, api_key: ApiKey, code: int, key_type: KeyType, key: str) -> BrokerError:
        text = f"{api_key.name} for {key_type.named(key)}: {policy(code).meaning}"
        return broker_error(code, text, "Write" if key_type is KeyType.TRANSACTION else "Read")


def _code(answer: InitProducerIdResponse | AddOffsetsToTxnResponse | EndTxnResponse) -> Iterable[int]:
    return [answer.error_code]


def _added_codes(answer: AddPartitionsToTxnResponse) -> Iterable[int]:
    return [
        row.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    ]


def _committed_codes(answer: TxnOffsetCommitResponse) -> Iterable[int]:
    return [row.error_code for topic in answer.topics for row in topic.partitions]
