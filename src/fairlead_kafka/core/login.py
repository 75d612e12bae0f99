"""The log-in on one connection: SaslHandshake, then SaslAuthenticate until both ends are satisfied (KIP-43, KIP-152, KIP-368).

The host makes the messages (`effects.Authenticate`), for it keeps the secrets; here is only the order in which they go to and fro.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import AuthenticationFailed
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.wire import ApiKey, Message

RENEW_FROM, RENEW_UP_TO = 0.85, 0.95
"""A session is renewed once this part of it is over, by chance: as Kafka's `SaslClientAuthenticator`."""
TLS_ALERT = b"\x15\x03"
"""How the answer of a TLS listener to what is not TLS begins."""
NO_LOGIN_HINT = " at the first request: does this port want a log-in (security.protocol SASL_PLAINTEXT or SASL_SSL)?"
"""Added to the reason if the first broker of all closes the connection like that: it says nothing to who should log in and does not."""
MSK_IAM = "AWS_MSK_IAM"
"""Amazon's name in Java's settings; their brokers take the same log-in as OAUTHBEARER."""


def login_mechanism(settings: Mapping[str, Any]) -> str | None:
    """The mechanism to log in by, as brokers name it; None: no log-in."""
    if not str(settings.get("security.protocol", "")).startswith("SASL"):
        return None
    mechanism: str = settings["sasl.mechanism"]
    return "OAUTHBEARER" if mechanism == MSK_IAM else mechanism


@dataclass(slots=True, eq=False)
class Login:
    """One conversation. `mechanism`: as brokers name it."""

    mechanism: str
    peer: str
    renew_ns: int | None = None
    """When the session has to be renewed; None: it does not end."""
    done_ns: int = 0
    """When both ends were satisfied."""
    _asked: bool = False
    """The broker was told which mechanism is meant."""

    def due(self, now_ns: int) -> bool:
        """True once the session has to be renewed."""
        return self.renew_ns is not None and self.renew_ns <= now_ns

    def first(self) -> tuple[ApiKey, Message]:
        """The request that begins it."""
        return ApiKey.SASL_HANDSHAKE, Message(mechanism=self.mechanism)

    @staticmethod
    def next(message: bytes) -> tuple[ApiKey, Message]:
        """The request that carries what the host made."""
        return ApiKey.SASL_AUTHENTICATE, Message(auth_bytes=message)

    def heard(self, response: Message, now_ns: int, rng: Rng) -> bytes | None:
        """The challenge in an answer; None: begin. AuthenticationFailed if the broker refused."""
        code: int = response.error_code
        if not self._asked:
            if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
                offered = ", ".join(response.mechanisms) or "none"
                raise AuthenticationFailed(
                    f"{self.peer} has no log-in by {self.mechanism}; it has {offered}: set sasl.mechanism to one of them"
                )
            if code == ErrorCode.ILLEGAL_SASL_STATE:
                raise AuthenticationFailed(f"{self.peer} asks for no log-in at this port: set security.protocol to PLAINTEXT or SSL")
            if code != ErrorCode.NONE:
                raise AuthenticationFailed(f"{self.peer} refused the log-in by {self.mechanism} (error code {code})")
            self._asked = True
            return None
        if code != ErrorCode.NONE:
            said = response.error_message or f"error code {code}"
            raise AuthenticationFailed(f"{self.peer} refused the log-in by {self.mechanism}: {said}")
        lifetime_ms: int = getattr(response, "session_lifetime_ms", 0)
        if lifetime_ms > 0:
            part = RENEW_FROM + (RENEW_UP_TO - RENEW_FROM) * rng.random()
            self.renew_ns = now_ns + int(ms_to_ns(lifetime_ms) * part)
        challenge: bytes = bytes(response.auth_bytes)
        return challenge
