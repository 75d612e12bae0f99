"""SaslHandshake (17): which mechanism a client logs in by, and those there are.

Versions 0-1. After version 1 tokens come in SaslAuthenticate, after version 0 bare (KIP-152). At a
listener without log-ins, after a log-in that does not end, and within a second of the last one, the
answer is ILLEGAL_SASL_STATE. Needs no right. What follows is in `broker.login`.
"""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import SaslHandshakeRequest, SaslHandshakeResponse


@serves(ApiKey.SASL_HANDSHAKE, versions=(0, 1))
def sasl_handshake(
    broker: Services, request: Request[SaslHandshakeRequest], session: Requester, reply: Reply
) -> None:
    """Serve SaslHandshake: begin a log-in, or renew one."""
    if session.login is None:
        reply(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[]))
    else:
        session.login.handshake(request.message.mechanism, request.version, reply)
