"""SaslAuthenticate (36): one message of a log-in, and the broker's answer to it.

Versions 0-2; from 1 on the last answer says for how long the log-in counts (KIP-368). Outside of a
log-in the answer is ILLEGAL_SASL_STATE. A refusal is SASL_AUTHENTICATION_FAILED, and the end of the
connection. Needs no right.
"""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.login import LoginState
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import SaslAuthenticateRequest, SaslAuthenticateResponse

_UNASKED = "SaslAuthenticate request received after successful authentication"


@serves(ApiKey.SASL_AUTHENTICATE, versions=(0, 2))
def sasl_authenticate(
    broker: Services, request: Request[SaslAuthenticateRequest], session: Requester, reply: Reply
) -> None:
    """Serve SaslAuthenticate: have the host check a client's token, and answer with the host's
    message."""
    login = session.login
    if login is None or login.state is LoginState.DONE:
        reply(
            SaslAuthenticateResponse(
                error_code=ErrorCode.ILLEGAL_SASL_STATE,
                error_message=_UNASKED,
                auth_bytes=b"",
                session_lifetime_ms=0,
            )
        )
    else:
        login.token(bytes(request.message.auth_bytes), reply)
