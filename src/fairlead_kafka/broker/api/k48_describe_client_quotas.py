"""DescribeClientQuotas (48): which quotas there are, as far as a filter lets through (KIP-546).

Versions 0-1. Every broker serves it. A component of the filter asks for entities with a name, with
the default, or with either, of one type; types that it does not mention may be there too, unless it
is strict. So an empty filter is for all. Refused with an error for the whole: a type that comes
twice, an ip beside a user or client-id, a name where there must be none or none where there must be
one (INVALID_REQUEST); a type that is not client-id, ip or user (UNSUPPORTED_VERSION, as in Kafka).

Needs DESCRIBE_CONFIGS on the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason, repeated
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller import QuotaEntity
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.quota_table import CLIENT_ID, IP, USER
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse

_Component = DescribeClientQuotasRequest.ComponentData

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2
"""How a component matches: by its name, the default alone, or any."""


@serves(ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=(0, 1))
def describe_client_quotas(
    broker: Services, request: Request[DescribeClientQuotasRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeClientQuotas: list the quotas that the filter lets through."""
    message = request.message
    error = cluster_refusal(session, AclOperation.DESCRIBE_CONFIGS) or _wrong(message.components)
    if error is not None:
        reply(
            DescribeClientQuotasResponse(
                throttle_time_ms=0, error_code=error.code, error_message=reason(error), entries=None
            )
        )
        return
    rows = [
        DescribeClientQuotasResponse.EntryData(
            entity=[
                DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
                for kind, name in entity
            ],
            values=[
                DescribeClientQuotasResponse.ValueData(key=key, value=value) for key, value in values.items()
            ],
        )
        for entity, values in broker.controller.image.client_quotas.items()
        if _matches(entity, message.components, message.strict)
    ]
    reply(
        DescribeClientQuotasResponse(
            throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, entries=rows
        )
    )


def _wrong(components: Sequence[_Component]) -> BrokerError | None:
    try:
        _check(components)
    except BrokerError as error:
        return error
    return None


def _check(components: Sequence[_Component]) -> None:
    """Raise BrokerError for an invalid filter: INVALID_REQUEST, or UNSUPPORTED_VERSION for an
    unknown type."""
    types = [one.entity_type for one in components]
    if "" in types or repeated(types):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, "a filter names each type of entity once, and none that is empty"
        )
    unknown = sorted({*types} - {CLIENT_ID, IP, USER})
    if unknown:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"there is no entity type {unknown[0]!r}: there are {CLIENT_ID}, {IP} and {USER}",
        )
    for one in components:
        if one.match_type not in (_EXACT, _DEFAULT, _SPECIFIED):
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"match type {one.match_type} is not 0 (exact), 1 (default) or 2 (any)",
            )
        if (one.match is not None) != (one.match_type == _EXACT):
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, "a name goes with match type 0 (exact), and with no other"
            )
    if IP in types and len(types) > 1:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"no entity has an {IP} together with a {USER} or a {CLIENT_ID}"
        )


def _matches(entity: QuotaEntity, components: Sequence[_Component], strict: bool) -> bool:
    names = dict(entity)
    if strict and len(names) != len(components):
        return False
    for one in components:
        if one.entity_type not in names or (
            one.match_type != _SPECIFIED and names[one.entity_type] != one.match
        ):
            return False
    return True
