"""The log-ins of all connections of a client machine: the `Login` of each, and its messages between
the host and the broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fairlead_kafka.base.errors import AuthenticationFailed, UnsupportedVersion
from fairlead_kafka.core.connection import Connection, OnDone, R, State, Trigger
from fairlead_kafka.core.effects import Authenticate, Effect
from fairlead_kafka.core.events import Authenticated
from fairlead_kafka.core.login import Login
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.wire import ApiKey, RequestMessage
from fairlead_kafka.wire.messages import SaslAuthenticateResponse


class Asker(Protocol):
    """The part of `Connections` that log-ins need."""

    now_ns: int
    effects: list[Effect]

    def ask_now(
        self, connection: Connection, api_key: ApiKey, message: RequestMessage[R], on_done: OnDone[R]
    ) -> None:
        """Send a request that serves the connection itself (versions, log-in), whatever its
        state."""

    def refused(self, connection: Connection, refusal: Exception) -> None:
        """Called when the log-in on a connection failed: `refusal` is why."""

    def authenticated(self, connection: Connection, renew_ns: int | None) -> None:
        """Called when the log-in on a connection is complete. It has to be renewed by `renew_ns`
        (monotonic; None: never)."""


class Logins:
    """Begins the log-ins of connections and carries them on, between the host and the brokers."""

    def __init__(self, asker: Asker, rng: Rng) -> None:
        self._asker = asker
        self._rng = rng

    def begin(self, connection: Connection, mechanism: str) -> None:
        """Log in on a connection whose API versions are known, or again on one that is ready."""
        connection.fire(Trigger.LOGIN)
        login = connection.login = Login(mechanism, connection.peer)
        self._ask(connection, login, ApiKey.SASL_HANDSHAKE, login.first(), login.accepted)

    def host_answered(self, connection: Connection, event: Authenticated) -> None:
        """Take the host's next message of a log-in, or its error; late ones are ignored."""
        login = connection.login
        if login is None or connection.state not in (State.AUTHENTICATING, State.REAUTHENTICATING):
            return

        def heard(response: SaslAuthenticateResponse) -> bytes:
            return login.heard(response, self._asker.now_ns, self._rng)

        if event.error is not None:
            self._asker.refused(connection, event.error)
        elif event.message is not None:
            self._ask(connection, login, ApiKey.SASL_AUTHENTICATE, login.next(event.message), heard)
        else:
            connection.fire(Trigger.AUTHENTICATED)
            login.done_ns = self._asker.now_ns
            self._asker.authenticated(connection, login.renew_ns)

    def _ask(
        self,
        connection: Connection,
        login: Login,
        api_key: ApiKey,
        message: RequestMessage[R],
        heard: Callable[[R], bytes | None],
    ) -> None:
        """Send a request of the log-in. `heard` gets the broker's challenge from the answer, or
        None, which goes to the host."""

        def answered(response: R | None, _error: Exception | None) -> None:
            if response is None or connection.login is not login:
                return
            try:
                challenge = heard(response)
            except AuthenticationFailed as refusal:
                self._asker.refused(connection, refusal)
            else:
                self._asker.effects.append(Authenticate(connection.number, challenge))

        try:
            self._asker.ask_now(connection, api_key, message, answered)
        except UnsupportedVersion as error:
            self._asker.refused(
                connection, AuthenticationFailed(f"{login.peer} cannot take a log-in: {error}")
            )
