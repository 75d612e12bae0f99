"""EndTxn (26): commit or abort; answered once the decision is in the coordinator's log, before the
markers are brought.

Versions 0-5. Below version 2 PRODUCER_FENCED is answered as INVALID_PRODUCER_EPOCH. From version 5
on each transaction has an epoch of its own: the answer has the producer id and epoch of the next
one, and an abort without a transaction raises the epoch all the same (KIP-890). Needs WRITE on the
transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import as_clients_know
from fairlead_kafka.broker.api.rights import demand
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import EndTxnRequest, EndTxnResponse

_BY_EPOCH_FROM_VERSION = 5


@serves(ApiKey.END_TXN, versions=(0, 5))
def end_txn(broker: Services, request: Request[EndTxnRequest], session: Requester, reply: Reply) -> None:
    """Serve EndTxn: commit or abort a transaction; answered when the decision is written."""
    message = request.message

    def answer(error: int, following: ProducerIdentity = NO_PRODUCER) -> None:
        following = NO_PRODUCER if error else following
        reply(
            EndTxnResponse(
                throttle_time_ms=0,
                error_code=as_clients_know(error, request.version >= 2),
                producer_id=following.producer_id,
                producer_epoch=following.epoch,
            )
        )

    producer = ProducerIdentity(message.producer_id, message.producer_epoch)
    by_epoch = request.version >= _BY_EPOCH_FROM_VERSION
    try:
        demand(session, AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, message.transactional_id)
        end = broker.transactions.end_by_epoch if by_epoch else broker.transactions.end
        end(message.transactional_id, producer, message.committed, answer)
    except BrokerError as error:
        answer(error.code)
