"""InitProducerId (22): a producer id for an idempotent producer.

Versions 0-5. Without a transactional id each call gives a new id with epoch 0, whatever id the client had before (as Kafka's
`TransactionCoordinator.handleInitProducerId` does). Refused: transactional ids (INVALID_REQUEST for an empty one, as Kafka;
otherwise UNSUPPORTED_VERSION: transactions are not part of this release); version 6 (two-phase commit, KIP-939).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from fairlead.broker.dispatch import Reply, serves
from fairlead.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker
    from fairlead.broker.sessions import Session


@serves(ApiKey.INIT_PRODUCER_ID, versions=(0, 5))
def init_producer_id(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Give a new producer id, or say why not."""
    transactional_id = request.message.transactional_id
    if transactional_id is not None:
        reply(_refusal(ErrorCode.INVALID_REQUEST if transactional_id == "" else ErrorCode.UNSUPPORTED_VERSION))
        return
    try:
        producer_id = broker.next_producer_id()
    except BrokerError as error:
        reply(_refusal(error.code))
        return
    reply(Message(throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0))


def _refusal(error_code: int) -> Message:
    return Message(throttle_time_ms=0, error_code=error_code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
