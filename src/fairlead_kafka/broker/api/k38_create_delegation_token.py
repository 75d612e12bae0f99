"""CreateDelegationToken (38): a token to log in with (KIP-48).

Versions 1-3. There are no tokens here, as in an Apache Kafka without `delegation.token.secret.key`:
DELEGATION_TOKEN_AUTH_DISABLED, or DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for a client that has not
logged in. Needs no right.
"""

from __future__ import annotations

from fairlead_kafka.broker.api.delegation_tokens import refused_token
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse


@serves(ApiKey.CREATE_DELEGATION_TOKEN, versions=(1, 3))
def create_delegation_token(
    broker: Services, request: Request[CreateDelegationTokenRequest], session: Requester, reply: Reply
) -> None:
    """Serve CreateDelegationToken with an error: this cluster has no delegation tokens."""
    error, time_ms = refused_token(session)
    principal = session.principal
    reply(
        CreateDelegationTokenResponse(
            error_code=error,
            principal_type=principal.type,
            principal_name=principal.name,
            issue_timestamp_ms=time_ms,
            expiry_timestamp_ms=time_ms,
            max_timestamp_ms=time_ms,
            token_id="",
            hmac=b"",
            throttle_time_ms=0,
            token_requester_principal_type=principal.type,
            token_requester_principal_name=principal.name,
        )
    )
