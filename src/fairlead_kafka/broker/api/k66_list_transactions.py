"""ListTransactions (66): the transactional ids that are coordinated here (KIP-664).

Versions 0-2; by how long the transaction is open from 1 on (KIP-994), by a regular expression that
takes the whole id from 2 on (KIP-1152; RE2's syntax as far as `base.patterns` has it,
INVALID_REGULAR_EXPRESSION). Listed are the ids that the session may DESCRIBE.
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.patterns import PatternError, compile_pattern
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.transactions import Transaction, TransactionState
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ListTransactionsRequest, ListTransactionsResponse

_STATES = {state.value for state in TransactionState}


@serves(ApiKey.LIST_TRANSACTIONS, versions=(0, 2))
def list_transactions(
    broker: Services, request: Request[ListTransactionsRequest], session: Requester, reply: Reply
) -> None:
    """Serve ListTransactions: list the transactional ids that the filters let through."""
    message = request.message
    answer = ListTransactionsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, unknown_state_filters=[], transaction_states=[]
    )
    transactions, loading = broker.transactions.transactions()
    if loading:
        answer.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        reply(answer)
        return
    try:
        pattern = compile_pattern(text) if (text := message.transactional_id_pattern) else None
    except PatternError:
        answer.error_code = ErrorCode.INVALID_REGULAR_EXPRESSION
        reply(answer)
        return
    answer.unknown_state_filters = [name for name in message.state_filters if name not in _STATES]

    producer_ids, states = set(message.producer_id_filters), set(message.state_filters)

    def wanted(one: Transaction) -> bool:
        image = one.image
        return (
            one.pending is not TransactionState.DEAD
            and (not producer_ids or image.producer_id in producer_ids)
            and (not states or image.state.value in states)
            and (message.duration_filter < 0 or broker.wall_ms - image.start_ms > message.duration_filter)
            and (pattern is None or pattern.matches(one.transactional_id))
            and session.may(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, one.transactional_id)
        )

    answer.transaction_states = [
        ListTransactionsResponse.TransactionState(
            transactional_id=one.transactional_id,
            producer_id=one.image.producer_id,
            transaction_state=one.image.state.value,
        )
        for one in transactions
        if wanted(one)
    ]
    reply(answer)
