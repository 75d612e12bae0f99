"""The log-in on one connection: SaslHandshake, then SaslAuthenticate until the log-in is complete
(KIP-43, KIP-152, KIP-368).

The host makes the messages (`effects.Authenticate`), because it keeps the secrets; here is only the
order of the messages.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import AuthenticationFailed
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.wire.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

RENEW_FROM, RENEW_UP_TO = 0.85, 0.95
"""Bounds of the part of a session after which it is renewed, chosen at random as in Kafka's
`SaslClientAuthenticator`."""
TLS_ALERT = b"\x15\x03"
"""How the answer of a TLS listener to what is not TLS begins."""
NO_LOGIN_HINT = (
    " at the first request: does this port want a log-in (security.protocol SASL_PLAINTEXT or SASL_SSL)?"
)
"""Added to the reason if a connection closes at its first request, before any broker has answered:
a listener that wants a log-in does not say so to a client without one."""
MSK_IAM = "AWS_MSK_IAM"
"""Amazon's name in Java's settings; their brokers take the same log-in as OAUTHBEARER."""


def login_mechanism(settings: Settings) -> str | None:
    """The mechanism to log in by, as brokers name it; None: no log-in."""
    if not str(settings.get("security.protocol", "")).startswith("SASL"):
        return None
    mechanism: str = settings["sasl.mechanism"]
    return "OAUTHBEARER" if mechanism == MSK_IAM else mechanism


@dataclass(slots=True, eq=False)
class Login:
    """One log-in on one connection. `mechanism`: as brokers name it."""

    mechanism: str
    peer: str
    renew_ns: int | None = None
    """When the session has to be renewed; None: it does not end."""
    done_ns: int = 0
    """When both ends were satisfied."""

    def due(self, now_ns: int) -> bool:
        """True once the session has to be renewed."""
        return self.renew_ns is not None and self.renew_ns <= now_ns

    def first(self) -> SaslHandshakeRequest:
        """The SaslHandshake request that begins a log-in."""
        return SaslHandshakeRequest(mechanism=self.mechanism)

    @staticmethod
    def next(message: bytes) -> SaslAuthenticateRequest:
        """The SaslAuthenticate request that carries `message`, which the host made."""
        return SaslAuthenticateRequest(auth_bytes=message)

    def accepted(self, response: SaslHandshakeResponse) -> None:
        """Take the answer to `first`; the host makes the first message then. AuthenticationFailed
        if the broker refused the mechanism."""
        code = response.error_code
        if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(response.mechanisms) or "none"
            raise AuthenticationFailed(
                f"{self.peer} has no log-in by {self.mechanism}; it has {offered}: set sasl.mechanism to one "
                "of them"
            )
        if code == ErrorCode.ILLEGAL_SASL_STATE:
            wanted = "set security.protocol to PLAINTEXT or SSL"
            raise AuthenticationFailed(f"{self.peer} asks for no log-in at this port: {wanted}")
        if code != ErrorCode.NONE:
            raise AuthenticationFailed(
                f"{self.peer} refused the log-in by {self.mechanism} (error code {code})"
            )

    def heard(self, response: SaslAuthenticateResponse, now_ns: int, rng: Rng) -> bytes:
        """The challenge in the answer to `next`. AuthenticationFailed if the broker refused."""
        code = response.error_code
        if code != ErrorCode.NONE:
            said = response.error_message or f"error code {code}"
            raise AuthenticationFailed(f"{self.peer} refused the log-in by {self.mechanism}: {said}")
        lifetime_ms = response.session_lifetime_ms
        if lifetime_ms > 0:
            part = RENEW_FROM + (RENEW_UP_TO - RENEW_FROM) * rng.random()
            self.renew_ns = now_ns + int(ms_to_ns(lifetime_ms) * part)
        return bytes(response.auth_bytes)
