"""Produce (0): append one record batch per partition.

Versions 3-13; 0 is advertised as the lowest, or older librdkafka silently stops compressing
(KAFKA-18659), but 0-2 (message formats before batch v2) end the connection as in Kafka 4. From 13
on topics are named by their ids (KIP-516); an id that no topic has is UNKNOWN_TOPIC_ID.

acks: 1 is answered once the batch is written (and synced, where
`flush.messages` asks); -1 once all replicas in sync have it too, which is when the high watermark
has passed it; 0 never, and an error then ends the connection, as it does in Kafka. With acks -1
fewer replicas in sync than `min.insync.replicas` are NOT_ENOUGH_REPLICAS, and nothing is written;
if they are too few only when it is replicated, NOT_ENOUGH_REPLICAS_AFTER_APPEND; past the request's
`timeout_ms`, REQUEST_TIMED_OUT; after a change of leader, NOT_LEADER_OR_FOLLOWER. In all these
cases what was written stays, and may yet be replicated. The broker's checks are in
`broker.produced`. Refused: internal topics (INVALID_TOPIC_EXCEPTION).

The first batch of a transaction in a partition waits until the transaction's coordinator has said
that the partition is in it, or from version 12 on has added it (`transactions.verifier`); below
version 12 the end of the transaction before, CONCURRENT_TRANSACTIONS, and in all versions what the
coordinator cannot say now, is
NOT_ENOUGH_REPLICAS, which every client retries, and a partition that is not in the transaction is
TRANSACTION_ABORTABLE, below version 11 INVALID_TXN_STATE (KIP-890).

Needs WRITE on each topic (TOPIC_AUTHORIZATION_FAILED for it, whether it is there or not), and if
any batch is transactional on the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED for all).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.api.common import PendingParts, reason
from fairlead_kafka.broker.api.rights import permitted, refusal
from fairlead_kafka.broker.controller import INTERNAL_TOPICS, ClusterImage, TopicImage
from fairlead_kafka.broker.conversion import RecordsRefused, convert
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.produced import check_batch
from fairlead_kafka.broker.replication import Led, Replicated
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.transactions.verifier import VERIFICATION, Verified
from fairlead_kafka.records import BatchHeader
from fairlead_kafka.wire import ApiKey, Buffer, Request
from fairlead_kafka.wire.messages import ProduceRequest, ProduceResponse

_Topic = ProduceResponse.TopicProduceResponse
_Row = ProduceResponse.PartitionProduceResponse
_Leader = ProduceResponse.LeaderIdAndEpoch
_Endpoint = ProduceResponse.NodeEndpoint


_ALL_REPLICAS = -1
_ATTRIBUTES_AT, _TRANSACTIONAL = 22, 0x10
"""The lower byte of a batch's attributes, and the bit in it of a transaction."""
_ABORTABLE_FROM_VERSION = 11
_ADDS_FROM_VERSION = 12
"""The version from which a transaction's first batch adds its partition (KIP-890)."""
_BY_ID_FROM_VERSION = 13
"""The version from which topics are named by their ids (KIP-516)."""
_VERIFY_ERRORS: dict[int, int] = dict.fromkeys(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""Error of the transaction coordinator → error sent to the producer (Kafka's
`ReplicaManager.handleProduceAppend`)."""


@serves(ApiKey.PRODUCE, versions=(3, 13), advertised_low=0, pipelined=True)
def produce(broker: Services, request: Request[ProduceRequest], session: Requester, reply: Reply) -> None:
    """Serve Produce: append each partition's batch, and answer once they are as safe as the
    request's acks ask."""
    message = request.message
    refused = _refuse_unnamed(message, session)
    unfit = _refuse_all(message)
    named = _named_topics(broker.controller.image, request)
    writable = permitted(
        session, AclOperation.WRITE, AclResourceType.TOPIC, (each.name for each in named if each.known)
    )
    produced = _Produced(broker, request, session, reply)
    for (name, topic, known), topic_data in zip(named, message.topic_data, strict=True):
        if not known:
            wrong: BrokerError | None = BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        else:
            wrong = refused
            if name not in writable:
                wrong = wrong or refusal(session, AclOperation.WRITE, AclResourceType.TOPIC, name)
            wrong = wrong or unfit or _refuse_topic(name)
        rows = [_append(produced, topic, data, wrong) for data in topic_data.partition_data]
        answered = _Topic(name=name, partition_responses=rows)
        if request.version >= _BY_ID_FROM_VERSION:
            answered.topic_id = topic_data.topic_id
        produced.responses.append(answered)
    if produced.to_verify:
        _verify(produced)
    else:
        session.give_back()
        produced.finish()


class _Named(NamedTuple):
    """A topic of a request: its name, and its image if there is one. `known` False: the request
    names it by an id that no topic has."""

    name: str
    topic: TopicImage | None
    known: bool = True


def _named_topics(image: ClusterImage, request: Request[ProduceRequest]) -> list[_Named]:
    """The topics of a request, in its order."""
    if request.version < _BY_ID_FROM_VERSION:
        return [_Named(each.name, image.topics.get(each.name)) for each in request.message.topic_data]
    found = [image.topics_by_id.get(each.topic_id) for each in request.message.topic_data]
    return [_Named("", None, known=False) if each is None else _Named(each.name, each) for each in found]


class _Unverified(NamedTuple):
    """A checked batch that its coordinator must be asked about, and its row of the answer."""

    partition: Partition
    records: Buffer
    header: BatchHeader
    transactional_id: str
    row: _Row


class _Appended(NamedTuple):
    """A batch that was appended (or, a duplicate, had been before), the offset after it, and its
    row of the answer."""

    led: Led
    header: BatchHeader
    end_offset: int
    row: _Row


class _Produced:
    """One Produce request, from its appends to its answer."""

    def __init__(
        self, broker: Services, request: Request[ProduceRequest], session: Requester, reply: Reply
    ) -> None:
        # Not the message itself: its records would stay in memory until the answer.
        message = request.message
        self.broker = broker
        self.version = request.version
        self.adds = request.version >= _ADDS_FROM_VERSION
        """Partitions are added to a transaction by their first batch."""
        self.transactional_id = message.transactional_id
        self.all_replicas = message.acks == _ALL_REPLICAS
        self._unanswered = message.acks == 0
        self._timeout_ms: int = message.timeout_ms
        self.responses: list[_Topic] = []
        self.to_verify: list[_Unverified] = []
        self.appended: list[_Appended] = []
        self._session = session
        self._reply = reply
        self._outstanding = 0
        self._waiting: list[tuple[Led, int, Replicated]] = []
        self._deadline: int | None = None

    def finish(self) -> None:
        """Answer once all batches that were appended are as safe as the request's acks ask."""
        self.to_verify.clear()
        if self._unanswered:
            self._reply(None)
            if any(row.error_code for response in self.responses for row in response.partition_responses):
                self._session.close(
                    "a Produce request with acks=0 failed, which only the end of the connection can tell its "
                    "client"
                )
        elif self.all_replicas and any(len(one.led.image.replicas) > 1 for one in self.appended):
            self._await_replicas()
        else:
            self.broker.logs.when_written(self._written)

    def _written(self, success: bool) -> None:
        if not success:
            self._fail()
        self._answer()

    def _await_replicas(self) -> None:
        broker = self.broker
        self._outstanding = len(self.appended)
        for one in self.appended:
            one.row.error_code = (
                ErrorCode.REQUEST_TIMED_OUT
            )  # what it is unless something better comes in time
        answer = broker.guard.bind(self._answer)  # in the name of the request, when it is a partition's turn
        for one in self.appended:
            replicated = partial(self._replicated, one.row, answer)
            self._waiting.append((one.led, one.end_offset, replicated))
            one.led.when_replicated(one.end_offset, replicated)
        if self._outstanding:
            self._deadline = broker.deadlines.add(broker.now_ns + ms_to_ns(self._timeout_ms), self._answer)
            broker.logs.when_written(self._failed_unless)

    def _replicated(self, row: _Row, answer: Callable[[], None], code: int) -> None:
        row.error_code = code
        self._outstanding -= 1
        if not self._outstanding:
            answer()

    def _failed_unless(self, success: bool) -> None:
        """Called when the batches are written (`success`) or could not be. In the latter case
        answer with an error: the records are gone, and their offsets will be given to others."""
        if not success and self._outstanding:
            self._fail()
            self._answer()

    def _fail(self) -> None:
        for one in self.appended:
            _comes_again(self, one.led.partition, one.header)
            if one.row.error_code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
                one.row.error_code = ErrorCode.KAFKA_STORAGE_ERROR

    def _answer(self) -> None:
        """Send the answer, once; later events do not change it."""
        broker = self.broker
        if self._deadline is not None:
            broker.deadlines.cancel(self._deadline)
        # What waits holds this request: kept here, it would stay until garbage is collected.
        waiting, self._waiting = self._waiting, []
        if self._outstanding:
            for led, end_offset, replicated in waiting:
                led.waiting.forget(end_offset, replicated)
        leaders: list[int] = []
        for response in self.responses:
            for row in response.partition_responses:
                if row.error_code:
                    row.base_offset = row.log_append_time_ms = row.log_start_offset = -1
                if row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    topic = broker.controller.image.topics.get(response.name)
                    leader, epoch = broker.partitions.leader_hint(topic, row.index)
                    row.current_leader = _Leader(leader_id=leader, leader_epoch=epoch)
                    leaders.append(leader)
        answer = ProduceResponse(responses=self.responses, throttle_time_ms=0)
        if leaders:
            answer.node_endpoints = [
                _Endpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
                for node in broker.partitions.endpoints(leaders, self._session.listener)
            ]
        self._reply(answer)


def _refuse_all(message: ProduceRequest) -> BrokerError | None:
    """The error that every partition of the request gets; None: there is none."""
    if message.acks not in (-1, 0, 1):
        return BrokerError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {message.acks}; it must be -1, 0 or 1")
    return None


def _refuse_unnamed(message: ProduceRequest, session: Requester) -> BrokerError | None:
    """The error that every partition gets if there is a transactional batch, and the session has no
    right to write with its transactional id; else None. The first batch of each partition is looked
    at, as in Kafka. A missing transactional id is an error of its partition alone."""
    name = message.transactional_id
    if session.authorizer is None or name is None:
        return None
    if not any(
        _transactional(data.records)
        for topic_data in message.topic_data
        for data in topic_data.partition_data
    ):
        return None
    if session.may(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, name):
        return None
    return refusal(session, AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, name)


def _transactional(records: Buffer | None) -> bool:
    """Whether an unchecked batch is transactional, by its attributes."""
    return (
        records is not None
        and len(records) > _ATTRIBUTES_AT
        and bool(records[_ATTRIBUTES_AT] & _TRANSACTIONAL)
    )


def _refuse_topic(name: str) -> BrokerError | None:
    """The error for an internal topic, None for any other. Only brokers write to internal topics,
    for their records are a coordinator's state."""
    if name in INTERNAL_TOPICS:
        return BrokerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is internal: brokers alone write to it"
        )
    return None


def _named(header: BatchHeader, transactional_id: str | None) -> str:
    """The transactional id of a transactional batch; BrokerError with Kafka's code if its request
    has none."""
    if transactional_id is None:
        text = (
            f"a transactional batch of producer {header.producer_id} needs a transactional id in its request"
        )
        raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, text)
    return transactional_id


def _append(
    produced: _Produced,
    topic: TopicImage | None,
    data: ProduceRequest.PartitionProduceData,
    refusal: BrokerError | None,
) -> _Row:
    """Append one partition's batch; its row of the answer, which is filled in later if its
    transaction must be verified."""
    number, broker = data.index, produced.broker
    if refusal is not None:
        return _error_row(number, refusal.code, reason(refusal))
    partition = broker.partitions.find(topic, number)
    if isinstance(partition, int):
        if partition == ErrorCode.NOT_LEADER_OR_FOLLOWER and topic is not None:
            _came_early(produced, topic, data)
        return _error_row(number, partition, None)
    row = _error_row(number, ErrorCode.NONE, None)
    header: BatchHeader | None = None
    try:
        records = b"" if data.records is None else data.records  # both are no batch
        header = check_batch(partition, records, produced.version)
        if header.transactional:
            transactional_id = _named(header, produced.transactional_id)
            known = partition.in_transaction(header.producer_id, header.producer_epoch)
            if not known and (produced.adds or broker.settings[VERIFICATION]):
                produced.to_verify.append(_Unverified(partition, records, header, transactional_id, row))
                return row
        _append_checked(produced, partition, records, header, row)
        return row
    except BrokerError as error:
        if header is not None and error.retriable:
            _comes_again(produced, partition, header)
        return _refused(row, error)


def _append_checked(
    produced: _Produced, partition: Partition, records: Buffer, header: BatchHeader, row: _Row
) -> None:
    """Append a batch to a partition led here, and fill in its row."""
    broker = produced.broker
    led = broker.replication.leading(partition)
    if produced.all_replicas:
        led.check_in_sync()
    append_time_ms = -1
    if produced.adds and header.transactional and header.base_sequence:
        # Each transaction begins with sequence 0, so one before is under way: perhaps to the leader
        # that was.
        partition.producers.check_known(header)
    duplicate = partition.check_producer(header) if header.producer_id >= 0 else None
    if duplicate is None:
        records, header = convert(partition, records, header, broker.wall_ms)
        batch = memoryview(records)
        base_offset = broker.logs.append(partition, batch, header, led.epoch, broker.wall_ms)
        end_offset = partition.log_end
        if partition.limits.log_append_time:
            append_time_ms = broker.wall_ms
    else:
        base_offset, append_time_ms = duplicate.base_offset, duplicate.log_append_time_ms
        end_offset = duplicate.last_offset + 1
    row.base_offset, row.log_append_time_ms, row.log_start_offset = (
        base_offset,
        append_time_ms,
        partition.log_start,
    )
    produced.appended.append(_Appended(led, header, end_offset, row))


def _verify(produced: _Produced) -> None:
    """Append each batch whose transaction its coordinator confirms, then finish the request."""
    broker = produced.broker
    parts_pending = PendingParts(produced.finish)
    by_producer: dict[tuple[str, ProducerIdentity], list[tuple[TopicPartition, Verified]]] = {}
    for one in produced.to_verify:
        parts_pending.begin()

        def verified(error: int, one: _Unverified = one) -> None:
            _take_verified(produced, one, error)
            parts_pending.done()

        producer = ProducerIdentity(one.header.producer_id, one.header.producer_epoch)
        of = TopicPartition(one.partition.topic, one.partition.partition)
        by_producer.setdefault((one.transactional_id, producer), []).append((of, verified))
    for (transactional_id, producer), wanted in by_producer.items():
        broker.verifier.verify(transactional_id, producer, wanted, produced.adds)
    parts_pending.done()


def _take_verified(produced: _Produced, one: _Unverified, error: int) -> None:
    if error == ErrorCode.TRANSACTION_ABORTABLE and produced.version < _ABORTABLE_FROM_VERSION:
        error = ErrorCode.INVALID_TXN_STATE
    row = one.row
    if error:
        ending = produced.adds and error == ErrorCode.CONCURRENT_TRANSACTIONS
        row.error_code = error if ending else _VERIFY_ERRORS.get(error, error)
        row.error_message = (
            f"{one.partition} is not known to be in the transaction of producer {one.header.producer_id}"
        )
        if error in _VERIFY_ERRORS:
            _comes_again(produced, one.partition, one.header)
        return
    found = produced.broker.log_of(
        one.partition.topic, one.partition.partition
    )  # it may have gone while the coordinator was asked
    if isinstance(found, int):
        row.error_code = found
        return
    try:
        _append_checked(produced, found, one.records, one.header, row)
    except BrokerError as refused:
        if refused.retriable:
            _comes_again(produced, found, one.header)
        _refused(row, refused)


def _came_early(produced: _Produced, topic: TopicImage, data: ProduceRequest.PartitionProduceData) -> None:
    """Note a batch that came to a follower. Its producer may have learned before the broker that
    this one is to lead; the producer's next batch must not be appended without this one."""
    replica = produced.broker.partitions.find_followed(topic, data.index)
    if isinstance(replica, int):
        return
    try:
        header = check_batch(replica, b"" if data.records is None else data.records, produced.version)
    except BrokerError:
        return
    _comes_again(produced, replica, header)


def _comes_again(produced: _Produced, partition: Partition, header: BatchHeader) -> None:
    """Note a batch that is refused with a retriable error: its producer sends it again, and later
    batches must wait for it."""
    if header.producer_id >= 0:
        partition.producers.refuse(header, produced.broker.wall_ms)


def _refused(row: _Row, error: BrokerError) -> _Row:
    """The row of a batch that was refused with `error`, with the records that were to blame, if
    they are known."""
    row.error_code, row.error_message = error.code, reason(error)
    if isinstance(error, RecordsRefused):
        row.record_errors = [
            ProduceResponse.BatchIndexAndErrorMessage(batch_index=one, batch_index_error_message=error.why)
            for one in error.records
        ]
    return row


def _error_row(number: int, error_code: int, text: str | None) -> _Row:
    return _Row(
        index=number,
        error_code=error_code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        record_errors=[],
        error_message=text,
    )
