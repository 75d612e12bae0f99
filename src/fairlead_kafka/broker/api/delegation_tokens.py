"""Answers to requests about delegation tokens, which are not supported: error codes."""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.principal import ANONYMOUS
from fairlead_kafka.broker.requester import Requester


def refused_token(session: Requester) -> tuple[int, int]:
    """Error code, and value of the time fields in ms, that any request about a delegation token is
    answered with, as in an Apache Kafka without tokens."""
    if session.login is None and session.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0
