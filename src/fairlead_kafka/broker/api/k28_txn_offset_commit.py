"""TxnOffsetCommit (28): how far a group has come, as part of a transaction; the offsets count when
the transaction is committed.

Versions 0-5. Topics that are not there: UNKNOWN_TOPIC_OR_PARTITION. From version 3 on the producer
says for which member it speaks, and a member of an old generation is refused (KIP-447). Below
version 2 COORDINATOR_LOAD_IN_PROGRESS is answered as COORDINATOR_NOT_AVAILABLE (KAFKA-7296), below
4 TRANSACTION_ABORTABLE as INVALID_TXN_STATE. From version 5 on the group's offsets are added to the
transaction by this request, without AddOffsetsToTxn (KIP-890).

Needs WRITE on the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED for every partition),
READ on the group (GROUP_AUTHORIZATION_FAILED likewise) and on each topic
(TOPIC_AUTHORIZATION_FAILED, whether it is there or not).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.api.rights import permitted
from fairlead_kafka.broker.controller import OFFSETS_TOPIC
from fairlead_kafka.broker.coordinator import CommittedOffset
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.transactions.verifier import VERIFICATION, Verified
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_LOADING_FROM_VERSION = 2
_ABORTABLE_FROM_VERSION = 4
_ADDS_FROM_VERSION = 5


@serves(ApiKey.TXN_OFFSET_COMMIT, versions=(0, 5))
def txn_offset_commit(
    broker: Services, request: Request[TxnOffsetCommitRequest], session: Requester, reply: Reply
) -> None:
    """Serve TxnOffsetCommit: commit a group's offsets with a transaction, once the transaction's
    coordinator has confirmed that they are in it."""
    message = request.message
    refused = _refused(session, message)
    readable = permitted(
        session, AclOperation.READ, AclResourceType.TOPIC, (topic.name for topic in message.topics)
    )
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic in message.topics:
        for one in topic.partitions:
            of = TopicPartition(topic.name, one.partition_index)
            if topic.name in readable and broker.controller.image.partition(*of) is not None:
                offsets[of] = CommittedOffset(
                    one.committed_offset,
                    one.committed_leader_epoch,
                    one.committed_metadata or "",
                    broker.wall_ms,
                    topic_id=broker.controller.image.topics[topic.name].topic_id,
                )

    def answer(errors: dict[TopicPartition, int], otherwise: int = ErrorCode.NONE) -> None:
        if otherwise == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and request.version < _LOADING_FROM_VERSION:
            otherwise = ErrorCode.COORDINATOR_NOT_AVAILABLE
        topics = []
        for topic in message.topics:
            rows = []
            missing = (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if topic.name in readable
                else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for one in topic.partitions:
                of = TopicPartition(topic.name, one.partition_index)
                error = refused or (otherwise or errors.get(of, missing) if of in offsets else missing)
                rows.append(
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=error
                    )
                )
            topics.append(
                TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(name=topic.name, partitions=rows)
            )
        reply(TxnOffsetCommitResponse(throttle_time_ms=0, topics=topics))

    producer = ProducerIdentity(message.producer_id, message.producer_epoch)

    def verified(error: int) -> None:
        if error:
            unknown = error == ErrorCode.TRANSACTION_ABORTABLE and request.version < _ABORTABLE_FROM_VERSION
            answer({}, ErrorCode.INVALID_TXN_STATE if unknown else _VERIFY_ERRORS.get(error, error))
            return
        try:
            broker.coordinator.offsets.commit_in_transaction(
                message.group_id,
                message.generation_id,
                message.member_id,
                message.group_instance_id,
                producer,
                offsets,
                answer,
            )
        except BrokerError as refused:
            answer({}, refused.code)

    if offsets and not refused:
        adds = request.version >= _ADDS_FROM_VERSION
        _verify(broker, message.transactional_id, message.group_id, producer, verified, adds)
    else:
        answer({})


def _refused(session: Requester, message: TxnOffsetCommitRequest) -> int:
    """The error code of every partition, for a session that may not commit in this transaction or
    group; 0: it may."""
    if not session.may(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, message.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    may_read = session.may(AclOperation.READ, AclResourceType.GROUP, message.group_id)
    return ErrorCode.NONE if may_read else ErrorCode.GROUP_AUTHORIZATION_FAILED


_VERIFY_ERRORS = {
    int(ErrorCode.NETWORK_EXCEPTION): int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    int(ErrorCode.COORDINATOR_NOT_AVAILABLE): int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    int(ErrorCode.NOT_COORDINATOR): int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    int(ErrorCode.CONCURRENT_TRANSACTIONS): int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
}
"""Error of the transaction's coordinator → error sent to the client: the group is here, so the
client should retry, and not look for another coordinator."""


def _verify(
    broker: Services,
    transactional_id: str,
    group_id: str,
    producer: ProducerIdentity,
    verified: Verified,
    add: bool,
) -> None:
    topic = broker.controller.image.topics.get(OFFSETS_TOPIC)
    number = home_partition(group_id, len(topic.partitions)) if topic is not None else 0
    partition = broker.log_of(OFFSETS_TOPIC, number)
    if (
        isinstance(partition, int)
        or partition.in_transaction(producer.producer_id, producer.epoch)
        or not (add or broker.settings[VERIFICATION])
    ):
        verified(ErrorCode.NONE)  # it is known, or the group's own coordinator says what is wrong
        return
    wanted = [(TopicPartition(OFFSETS_TOPIC, number), verified)]
    broker.verifier.verify(transactional_id, producer, wanted, add)
