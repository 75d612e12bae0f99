"""AlterClientQuotas (49): quotas of users, client ids and addresses are set and removed (KIP-546).

Versions 0-1. Every broker serves it and has the controller decide; when the answer is sent, the
broker that sends it goes by the new quotas. Per entity all is done or nothing. Refused with
INVALID_REQUEST: entities without a part, with two of one type, of unknown types, with an empty
name, or of an ip beside others; an entity that comes twice in a request, or a quota twice for an
entity; quotas that the entity cannot have; values that are not above 0, too large, or fractions
where whole numbers are due; host names as ip, for a broker looks up none.

Needs ALTER_CONFIGS on the cluster.
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import one_each, reason, repeated
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller import AlterClientQuotas, QuotaAlteration
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse

_Asked = AlterClientQuotasRequest.EntryData
_Row = AlterClientQuotasResponse.EntryData

Entity = tuple[tuple[str, str | None], ...]


@serves(ApiKey.ALTER_CLIENT_QUOTAS, versions=(0, 1))
def alter_client_quotas(
    broker: Services, request: Request[AlterClientQuotasRequest], session: Requester, reply: Reply
) -> None:
    """Serve AlterClientQuotas: alter the quotas of each entity, or answer why not."""
    message = request.message
    asked = [(_entity(entry), entry) for entry in message.entries]
    twice = repeated(frozenset(entity) for entity, _ in asked)
    entities = list({frozenset(entity): entity for entity, _ in asked}.values())
    alterations = {
        entity: _alteration(entity, entry) for entity, entry in asked if frozenset(entity) not in twice
    }

    def decided(results: list[BrokerError | None] | None, error: BrokerError | None) -> None:
        outcomes: dict[Entity, BrokerError | None] = dict(
            zip(alterations, one_each(results, error, len(alterations)), strict=True)
        )
        refusal = BrokerError(ErrorCode.INVALID_REQUEST, "the entity comes more than once in the request")
        rows = [_row(entity, outcomes.get(entity, refusal)) for entity in entities]
        reply(AlterClientQuotasResponse(throttle_time_ms=0, entries=rows))

    refused = cluster_refusal(session, AclOperation.ALTER_CONFIGS)
    if refused is not None:
        reply(
            AlterClientQuotasResponse(
                throttle_time_ms=0, entries=[_row(entity, refused) for entity in entities]
            )
        )
        return
    broker.controller.decide(AlterClientQuotas(list(alterations.values()), message.validate_only), decided)


def _entity(entry: _Asked) -> Entity:
    return tuple((part.entity_type, part.entity_name) for part in entry.entity)


def _alteration(entity: Entity, entry: _Asked) -> QuotaAlteration:
    values = [(operation.key, None if operation.remove else operation.value) for operation in entry.ops]
    return QuotaAlteration(list(entity), values)


def _row(entity: Entity, error: BrokerError | None) -> _Row:
    return _Row(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else reason(error),
        entity=[
            AlterClientQuotasResponse.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
        ],
    )
