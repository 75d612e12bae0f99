"""The broker's end of a log-in on one connection (Kafka's `SaslServerAuthenticator`): its states,
and the requests served in each.

The host checks the contents of messages (`effects.Authenticate`), as it has passwords and keys;
here is only their order.

| state | requests served | next state |
|---|---|---|
| VERSIONS | ApiVersions | HANDSHAKE; VERSIONS if its version was not served (KIP-511) |
| VERSIONS, HANDSHAKE | SaslHandshake | TOKENS (version 1), RAW_TOKENS (version 0), or FAILED |
| TOKENS | SaslAuthenticate | TOKENS, DONE or FAILED |
| RAW_TOKENS | frames that are tokens (KIP-43) | RAW_TOKENS, DONE or FAILED |
| DONE | all APIs | RENEWING by SaslHandshake (KIP-368) |
| RENEWING | SaslAuthenticate | RENEWING, DONE or FAILED |
| FAILED | none | |

SaslHandshake fails if the mechanism is not enabled. RENEWING is possible if the log-in ends at all,
at the soonest a second after the last log-in. In FAILED the broker answers with the refusal and
closes the connection after `connection.failed.authentication.delay.ms`.

Any other request closes the connection, as does a request once the session has expired. The refusal
is delayed as long as the closing, so that an attacker cannot try passwords faster on another
connection (`SaslServerAuthenticator.handleAuthenticationFailure`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from typing import Protocol, TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import AuthenticationFailed, cut_short
from fairlead_kafka.base.principal import ANONYMOUS, USER, Principal
from fairlead_kafka.base.units import NS_PER_S, ms_to_ns
from fairlead_kafka.broker.faults import Faults
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.listeners import Listener, listener_settings
from fairlead_kafka.broker.timers import DelayHost
from fairlead_kafka.core.effects import Authenticate, Buffer, Effect
from fairlead_kafka.core.events import Authenticated
from fairlead_kafka.wire import ApiKey, ApiMessage, RequestHeader
from fairlead_kafka.wire.messages import SaslAuthenticateResponse, SaslHandshakeResponse

R = TypeVar("R", bound=ApiMessage)
TokenReply = Callable[[SaslAuthenticateResponse], None]
RENEWALS_APART_NS = NS_PER_S
"""A session is renewed no sooner after the last time (Kafka's
`MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS`)."""
_SIZE = struct.Struct(">i")


class LoginState(Enum):
    """State of a session's log-in (SASL), which decides which requests are served."""

    VERSIONS = "versions"
    HANDSHAKE = "handshake"
    TOKENS = "tokens"
    RAW_TOKENS = "raw tokens"
    DONE = "done"
    RENEWING = "renewing"
    FAILED = "failed"


TAKEN: dict[LoginState, tuple[ApiKey, ...]] = {
    LoginState.VERSIONS: (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE),
    LoginState.HANDSHAKE: (ApiKey.SASL_HANDSHAKE,),
    LoginState.TOKENS: (ApiKey.SASL_AUTHENTICATE,),
    LoginState.RAW_TOKENS: (),
    LoginState.RENEWING: (ApiKey.SASL_AUTHENTICATE,),
    LoginState.FAILED: (),
}
"""APIs taken in each state until the log-in is complete; in DONE all are."""


class LoginHost(DelayHost, Protocol):
    """The parts of a broker that log-ins use."""

    wall_ms: int
    settings: Settings
    faults: Faults

    def emit(self, effect: Effect) -> None:
        """Ask the host for `effect` at the end of this step."""


class LoginSession(Owner, Protocol):
    """The session that logs in, as its log-in needs it."""

    connection: int
    principal: Principal

    @property
    def broker(self) -> LoginHost:
        """The broker of the session."""

    def authenticated(self, principal: Principal) -> None:
        """Called when the log-in is complete: the session's user is `principal`."""

    def write_raw(self, buffers: list[Buffer]) -> None:
        """Write bytes that are no answer to a request of the protocol, and go on."""

    def close(self, reason: str | None = None, drain: bool = False) -> None:
        """End the connection, for `reason`; if `drain`, after its answers were sent."""


class ServerLogin:
    """The log-in of one session, and its renewals."""

    def __init__(self, session: LoginSession, listener: Listener) -> None:
        self.state = LoginState.VERSIONS
        self._session = session
        self._listener = listener
        self._mechanism = ""
        self._refusal = ""
        """Why a renewal is refused, told when its first token comes; empty: it is not."""
        self._reply: TokenReply | None = None
        """Reply to the token that the host looks at; None: it looks at none."""
        self._expires_ns: int | None = None
        self._renewed_ns: int | None = None

    @property
    def raw(self) -> bool:
        """True if the next frame is a token, without a header."""
        return self.state is LoginState.RAW_TOKENS

    @property
    def waits(self) -> bool:
        """True while the host checks a raw token: the next one has to wait."""
        return self.raw and self._reply is not None

    @property
    def failed(self) -> bool:
        """True once the log-in was refused: no more requests are begun."""
        return self.state is LoginState.FAILED

    @property
    def done(self) -> bool:
        """True if the log-in is complete: the principal is known."""
        return self.state in (LoginState.DONE, LoginState.RENEWING)

    def refuses(self, header: RequestHeader) -> str | None:
        """Why a request cannot be served in the present state, in words; None: it can."""
        if self.state is LoginState.DONE:
            if (
                self._expires_ns is not None
                and self._session.broker.now_ns >= self._expires_ns
                and header.api_key != ApiKey.SASL_HANDSHAKE
            ):
                return (
                    "its log-in has expired and was not renewed (connections.max.reauth.ms, or its "
                    "token's end)"
                )
            return None
        if header.api_key in TAKEN[self.state]:
            return None
        return f"it sent {header.name} while its log-in was at {self.state.value}"

    # --- Requests

    def versions_sent(self) -> None:
        """Called when ApiVersions was answered without an error."""
        if self.state is LoginState.VERSIONS:
            self.state = LoginState.HANDSHAKE

    def handshake(self, mechanism: str, version: int, reply: Callable[[SaslHandshakeResponse], None]) -> None:
        """Serve the client's choice of a mechanism (SaslHandshake)."""
        session, enabled = self._session, self._enabled()
        now_ns = session.broker.now_ns
        again = self.state is LoginState.DONE
        if again and (
            self._expires_ns is None
            or (self._renewed_ns is not None and now_ns - self._renewed_ns < RENEWALS_APART_NS)
        ):
            reply(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[]))
            return
        if mechanism not in enabled:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            refusal = SaslHandshakeResponse(error_code=code, mechanisms=list(enabled))
            self._end(
                refusal, reply, f"it wants to log in by {mechanism[:40]!r}, and there is {', '.join(enabled)}"
            )
            return
        self._refusal = ""
        if again:
            self._renewed_ns = now_ns
            if mechanism != self._mechanism:
                self._refusal = (
                    f"SASL mechanism '{mechanism}' requested by client is not supported for "
                    "re-authentication of mechanism "
                )
                self._refusal += f"'{self._mechanism}'"
            self.state = LoginState.RENEWING
        else:
            self._mechanism = mechanism
            self.state = LoginState.TOKENS if version > 0 else LoginState.RAW_TOKENS
        reply(SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=list(enabled)))

    def token(self, token: bytes, reply: TokenReply) -> None:
        """Take a client's next token (SaslAuthenticate), and have the host check it."""
        if self._refusal:
            self._failed(AuthenticationFailed(self._refusal), reply)
            return
        self._reply = reply
        self._session.broker.emit(Authenticate(self._session.connection, token, self._mechanism))

    def raw_token(self, token: bytes) -> None:
        """Take a token in the oldest form (KIP-43): the answer is a bare token, and a refusal ends
        the connection."""

        def answer(message: SaslAuthenticateResponse) -> None:
            if not message.error_code:
                said = bytes(message.auth_bytes)
                self._session.write_raw([_SIZE.pack(len(said)), said])

        self.token(token, answer)

    # --- What the host says

    def token_checked(self, event: Authenticated) -> None:
        """Called when the host has checked a token."""
        reply, self._reply = self._reply, None
        if reply is None:
            return
        if event.error is not None:
            self._failed(event.error, reply)
            return
        if event.user is None:
            reply(_accepted(event, 0))
            return
        session = self._session
        principal = Principal(USER, event.user)
        if self.state is LoginState.RENEWING and principal != session.principal:
            changed = (
                f"Cannot change principals during re-authentication from {session.principal} to {principal}"
            )
            self._failed(AuthenticationFailed(changed), reply)
            return
        lifetime_ms = self._lifetime_ms(event.expires_ms)
        self._expires_ns = session.broker.now_ns + ms_to_ns(lifetime_ms) if lifetime_ms else None
        self.state = LoginState.DONE
        session.authenticated(principal)
        reply(_accepted(event, lifetime_ms))

    def _failed(self, error: Exception, reply: TokenReply) -> None:
        self._session.principal = ANONYMOUS
        said = cut_short(str(error))
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        refusal = SaslAuthenticateResponse(
            error_code=code, error_message=said, auth_bytes=b"", session_lifetime_ms=0
        )
        self._end(refusal, reply, f"its log-in by {self._mechanism} failed: {said}")

    def _end(self, refusal: R, reply: Callable[[R], None], reason: str) -> None:
        """Refuse the log-in after `connection.failed.authentication.delay.ms`, and close the
        connection."""
        self.state = LoginState.FAILED
        session, broker = self._session, self._session.broker

        def end() -> None:
            reply(refusal)
            broker.call_later(
                broker.faults.latency_ms, lambda: session.close(reason, drain=True), session
            )  # behind the answer

        broker.call_later(broker.settings["connection.failed.authentication.delay.ms"], end, session)

    def _enabled(self) -> tuple[str, ...]:
        return listener_settings(self._session.broker.settings, self._listener.name)[
            "sasl.enabled.mechanisms"
        ]

    def _lifetime_ms(self, expires_ms: int | None) -> int:
        """Milliseconds that the log-in is valid: as long as its token, at most
        `connections.max.reauth.ms`; 0: for ever."""
        settings, name = self._session.broker.settings, self._listener.name
        own = f"listener.name.{name.lower()}.{self._mechanism.lower()}.connections.max.reauth.ms"
        most_ms: int = (
            settings.integer(own)
            if own in settings
            else listener_settings(settings, name)["connections.max.reauth.ms"]
        )
        return session_lifetime_ms(most_ms, expires_ms, self._session.broker.wall_ms)


def _accepted(event: Authenticated, lifetime_ms: int) -> SaslAuthenticateResponse:
    """The answer to a token that was not refused."""
    token = event.message or b""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.NONE, error_message=None, auth_bytes=token, session_lifetime_ms=lifetime_ms
    )


def session_lifetime_ms(most_ms: int, expires_ms: int | None, now_ms: int) -> int:
    """The shorter of `most_ms` (0: without end) and the time from `now_ms` to `expires_ms` (None:
    without end), in milliseconds; 0: without end. A token that has expired a short time ago, by
    which clocks may differ, gets a millisecond."""
    left_ms = None if expires_ms is None else max(1, expires_ms - now_ms)
    if left_ms is None:
        return most_ms
    return min(left_ms, most_ms) if most_ms else left_ms
