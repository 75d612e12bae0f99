"""DescribeDelegationToken (41): the tokens that there are (KIP-48).

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
from fairlead_kafka.wire.messages import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse


@serves(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions=(1, 3))
def describe_delegation_token(
    broker: Services, request: Request[DescribeDelegationTokenRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeDelegationToken with an error: this cluster has no delegation tokens."""
    reply(
        DescribeDelegationTokenResponse(error_code=refused_token(session)[0], tokens=[], throttle_time_ms=0)
    )
