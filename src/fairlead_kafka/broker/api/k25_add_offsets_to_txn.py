"""AddOffsetsToTxn (25): a transaction is going to commit a group's offsets: the group's partition
of `__consumer_offsets` is added to it.

Versions 0-4. Below version 2 PRODUCER_FENCED is answered as INVALID_PRODUCER_EPOCH. Needs WRITE on
the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED) and READ on the group
(GROUP_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.api.common import as_clients_know, have_internal_topic
from fairlead_kafka.broker.controller import OFFSETS_TOPIC, TopicImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


@serves(ApiKey.ADD_OFFSETS_TO_TXN, versions=(0, 4))
def add_offsets_to_txn(
    broker: Services, request: Request[AddOffsetsToTxnRequest], session: Requester, reply: Reply
) -> None:
    """Serve AddOffsetsToTxn: add the group's partition of `__consumer_offsets` to a transaction;
    answered when that is written."""
    message = request.message

    def answer(error: int) -> None:
        reply(
            AddOffsetsToTxnResponse(
                throttle_time_ms=0, error_code=as_clients_know(error, request.version >= 2)
            )
        )

    def add(topic: TopicImage | None, _error: BrokerError | None) -> None:
        if topic is None:
            answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        of = TopicPartition(topic.name, home_partition(message.group_id, len(topic.partitions)))
        producer = ProducerIdentity(message.producer_id, message.producer_epoch)
        try:
            broker.transactions.add_partitions(message.transactional_id, producer, [of], answer)
        except BrokerError as error:
            answer(error.code)

    if not session.may(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, message.transactional_id):
        answer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not session.may(AclOperation.READ, AclResourceType.GROUP, message.group_id):
        answer(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    else:
        have_internal_topic(broker, OFFSETS_TOPIC, add)
