"""RenewDelegationToken (39): a longer life for a token (KIP-48).

Versions 1-2. There are no tokens here, as in an Apache Kafka without `delegation.token.secret.key`:
DELEGATION_TOKEN_AUTH_DISABLED, or DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for a client that has not
logged in. Needs no right.
"""

from __future__ import annotations

from fairlead_kafka.broker.api.delegation_tokens import refused_token
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse


@serves(ApiKey.RENEW_DELEGATION_TOKEN, versions=(1, 2))
def renew_delegation_token(
    broker: Services, request: Request[RenewDelegationTokenRequest], session: Requester, reply: Reply
) -> None:
    """Serve RenewDelegationToken with an error: this cluster has no delegation tokens."""
    error, time_ms = refused_token(session)
    reply(RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=time_ms, throttle_time_ms=0))
