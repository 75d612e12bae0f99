"""DescribeTransactions (65): the state of transactional ids that are coordinated here (KIP-664).

Version 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from fairlead_kafka.broker.dispatch import Reply, serves
from fairlead_kafka.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead_kafka.broker.machine import Broker
    from fairlead_kafka.broker.sessions import Session


@serves(ApiKey.DESCRIBE_TRANSACTIONS, versions=(0, 0))
def describe_transactions(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Describe each transactional id."""
    states = [_row(broker, transactional_id) for transactional_id in request.message.transactional_ids]
    reply(Message(throttle_time_ms=0, transaction_states=states))


def _row(broker: Broker, transactional_id: str) -> Message:
    row = Message(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        topics=[],
    )
    try:
        image = broker.transactions.describe(transactional_id).image
    except BrokerError as error:
        row.error_code = error.code
        return row
    row.transaction_state = image.state.value
    row.transaction_timeout_ms, row.transaction_start_time_ms = image.timeout_ms, image.start_ms
    row.producer_id, row.producer_epoch = image.producer_id, image.epoch
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(image.partitions):
        by_topic.setdefault(topic, []).append(number)
    row.topics = [Message(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()]
    return row
