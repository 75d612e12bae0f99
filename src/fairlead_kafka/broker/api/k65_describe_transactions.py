"""DescribeTransactions (65): the state of transactional ids that are coordinated here (KIP-664).

Version 0. Needs DESCRIBE on each transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED for it);
topics that the session may not DESCRIBE are left out.
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from fairlead_kafka.broker.api.rights import demand, permitted
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DescribeTransactionsRequest, DescribeTransactionsResponse

_Row = DescribeTransactionsResponse.TransactionState


@serves(ApiKey.DESCRIBE_TRANSACTIONS, versions=(0, 0))
def describe_transactions(
    broker: Services, request: Request[DescribeTransactionsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeTransactions: describe each transactional id that is named."""
    states = [
        _row(broker, session, transactional_id)
        for transactional_id in dict.fromkeys(request.message.transactional_ids)
    ]
    reply(DescribeTransactionsResponse(throttle_time_ms=0, transaction_states=states))


def _row(broker: Services, session: Requester, transactional_id: str) -> _Row:
    row = _Row(
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
        demand(session, AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, transactional_id)
        image = broker.transactions.describe(transactional_id).image
    except BrokerError as error:
        row.error_code = error.code
        return row
    row.transaction_state = image.state.value
    row.transaction_timeout_ms, row.transaction_start_time_ms = image.timeout_ms, image.start_ms
    row.producer_id, row.producer_epoch = image.producer_id, image.epoch
    by_topic: dict[str, list[int]] = {}
    seen = permitted(
        session, AclOperation.DESCRIBE, AclResourceType.TOPIC, (topic for topic, _number in image.partitions)
    )
    for topic, number in sorted(of for of in image.partitions if of[0] in seen):
        by_topic.setdefault(topic, []).append(number)
    row.topics = [
        DescribeTransactionsResponse.TopicData(topic=topic, partitions=numbers)
        for topic, numbers in by_topic.items()
    ]
    return row
