"""InitProducerId (22): a producer id for an idempotent producer, or id and epoch for a
transactional one.

Versions 0-5. Without a transactional id each call gives a new id with epoch 0, whatever id the
client had before (as Kafka's `TransactionCoordinator.handleInitProducerId` does). With one, the
producer that had it before is fenced, and a transaction that is open is aborted first
(CONCURRENT_TRANSACTIONS: come again); from version 3 on a producer may say what it has and go on
with the next epoch (KIP-360). Below version 4 PRODUCER_FENCED is answered as
INVALID_PRODUCER_EPOCH. Not served: 6 (two-phase commit, KIP-939).

Needs WRITE on the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED); without one
IDEMPOTENT_WRITE on the cluster, or WRITE on any topic (KIP-679; CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_PRODUCER_ID
from fairlead_kafka.broker.api.common import as_clients_know
from fairlead_kafka.broker.api.rights import may_cluster, may_somewhere
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import InitProducerIdRequest, InitProducerIdResponse

_FENCED_FROM_VERSION = 4


@serves(ApiKey.INIT_PRODUCER_ID, versions=(0, 5))
def init_producer_id(
    broker: Services, request: Request[InitProducerIdRequest], session: Requester, reply: Reply
) -> None:
    """Serve InitProducerId: give a producer id and epoch, or say why not."""
    message = request.message

    def answer(error: int, producer: ProducerIdentity) -> None:
        code = as_clients_know(error, request.version >= _FENCED_FROM_VERSION)
        producer = NO_PRODUCER if error else producer
        reply(
            InitProducerIdResponse(
                throttle_time_ms=0,
                error_code=code,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
            )
        )

    def available(error: BrokerError | None) -> None:
        if error is not None:
            answer(error.code, NO_PRODUCER)
        else:
            answer(ErrorCode.NONE, ProducerIdentity(broker.producer_ids.take(), 0))

    refused = _refused(session, message.transactional_id)
    if refused:
        answer(refused, NO_PRODUCER)
        return
    if message.transactional_id is None:
        broker.producer_ids.when_available(available)
        return
    try:
        expected = _expected(ProducerIdentity(message.producer_id, message.producer_epoch))
        broker.transactions.init_producer_id(
            message.transactional_id, message.transaction_timeout_ms, expected, answer
        )
    except BrokerError as error:
        answer(error.code, NO_PRODUCER)


def _refused(session: Requester, transactional_id: str | None) -> int:
    """The error code for a session that may not have a producer id; 0: it may."""
    if transactional_id is not None:
        allowed = session.may(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, transactional_id)
        return ErrorCode.NONE if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    allowed = may_cluster(session, AclOperation.IDEMPOTENT_WRITE, quiet=True)
    allowed = allowed or may_somewhere(session, AclOperation.WRITE, AclResourceType.TOPIC)
    return ErrorCode.NONE if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _expected(producer: ProducerIdentity) -> ProducerIdentity | None:
    """The producer id and epoch that the request says the producer has; None if it says neither.
    BrokerError INVALID_REQUEST for one without the other."""
    if producer == NO_PRODUCER:
        return None
    if NO_PRODUCER_ID in producer:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "a producer id goes with an epoch")
    return producer
