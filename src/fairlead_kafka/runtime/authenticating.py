"""The host's part in a log-in: it asks an authenticator, on another thread if it may take long."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError, ConnectionFailed, FairleadError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.core.effects import Authenticate
from fairlead_kafka.core.events import Authenticated, Event
from fairlead_kafka.runtime.handle import Handle

if TYPE_CHECKING:
    from fairlead_kafka.runtime.transport import Aside, Authenticator, ServerAuthenticator, ServingTransport

_logger = GuardedLogger("fairlead_kafka.runtime")

NOT_LOOKED_AT = "Authentication failed: the broker could not look at it, and its log says why"
"""The error that an unauthenticated client gets for a fault at this end: it must not learn
addresses of other servers, or Python's messages."""
THREADS_MAX = 32
"""Log-ins on threads at once. Anybody may begin any number of log-ins by tokens while the server of
the keys hangs: each would hold a thread for its 10 s."""
_NO_THREAD = ConnectionFailed("no thread could be started for the log-in")
Deliver = Callable[[Handle, Event], None]


class Seat(Protocol):
    """A connection as its log-in needs it: the peer's host, the listener, and the authenticator in
    use."""

    host: str
    """The host that it leads to, as was asked for."""
    listener: int | None
    """The listener that accepted it; None: it was made here."""
    authenticator: Authenticator | ServerAuthenticator | None
    """The log-in under way."""


def authenticate(handle: Handle, link: Seat, effect: Authenticate, deliver: Deliver, aside: Aside) -> None:
    """Carry out `effect` on a connection, by `events.Authenticated` to `deliver`, now or, if the
    authenticator may block, later: `aside` then runs it on a thread."""
    try:
        authenticator, ask = _asker(handle, link, effect)
    except FairleadError as error:
        deliver(handle, _refused(effect, error))
        return
    answers: list[Authenticated] = []

    def done() -> None:
        answer = answers[0] if answers else _refused(effect, _NO_THREAD)
        if answer.message is None or answer.user is not None:
            link.authenticator = None
        deliver(handle, answer)

    if authenticator.blocking:
        aside(lambda: answers.append(_guarded(effect, ask)), done)
    else:
        answers.append(_guarded(effect, ask))
        done()


def _asker(
    handle: Handle, link: Seat, effect: Authenticate
) -> tuple[Authenticator | ServerAuthenticator, Callable[[], Authenticated]]:
    """The authenticator for the next message of a log-in, and a function that asks it.
    FairleadError if there is no authenticator."""
    transport = handle.transport
    if transport is None:
        raise AssertionError(f"{handle} asks for a log-in and was given no transport")
    number, challenge = effect.connection, effect.challenge
    if effect.mechanism is None:
        client = cast("Authenticator | None", link.authenticator)
        if client is None or challenge is None:
            client = link.authenticator = transport.authenticator(link.host)
        return client, lambda: Authenticated(number, client.next(challenge))
    server = cast("ServerAuthenticator | None", link.authenticator)
    if server is None:
        assert link.listener is not None, "only what was accepted names a mechanism"
        server = link.authenticator = cast("ServingTransport", transport).server_authenticator(
            link.listener, effect.mechanism
        )

    def verify() -> Authenticated:
        answer = server.next(challenge or b"")
        return Authenticated(number, answer.message, None, answer.user, answer.expires_ms)

    return server, verify


def _guarded(effect: Authenticate, ask: Callable[[], Authenticated]) -> Authenticated:
    try:
        return ask()
    except KeyboardInterrupt:  # in a virtual host
        raise
    except BaseException as error:
        # A library's, or a user's token provider, too, which may call sys.exit: its caller is told,
        # and the host goes on.
        return _refused(effect, error)


def _refused(effect: Authenticate, error: BaseException) -> Authenticated:
    """The answer for a failed log-in. A missing setting is as final as the other end's refusal."""
    refusal: Exception
    if effect.mechanism is not None and not isinstance(error, AuthenticationFailed):
        _logger.warning(
            "a log-in by %s could not be looked at: %s: %s",
            effect.mechanism,
            type(error).__name__,
            error,
        )
        refusal = AuthenticationFailed(NOT_LOOKED_AT)
    elif isinstance(error, ConfigError):
        refusal = AuthenticationFailed(str(error))
    elif isinstance(error, FairleadError):
        refusal = error
    else:
        refusal = AuthenticationFailed(f"the log-in failed: {type(error).__name__}: {error}")
    if refusal is not error:
        refusal.__cause__ = error
    return Authenticated(effect.connection, None, refusal)


def on_a_thread(post: Callable[[Callable[[], None]], None]) -> Aside:
    """An `Aside` that runs work on threads, THREADS_MAX at once, so that a log-in that hangs delays
    no other. Work that comes while all are busy waits; a connection has one log-in at most, so no
    more can wait than there are connections. Where no thread can be started, and none runs, `done`
    is called without the work."""
    waiting: deque[tuple[Callable[[], None], Callable[[], None]]] = deque()
    lock = threading.Lock()
    threads = 0

    def run() -> None:
        nonlocal threads
        while True:
            with lock:
                if not waiting:
                    threads -= 1
                    return
                work, done = waiting.popleft()
            try:
                work()
            except BaseException:
                _logger.error("what was done for a log-in raised", exc_info=True)
            finally:
                post(done)

    def aside(work: Callable[[], None], done: Callable[[], None]) -> None:
        nonlocal threads
        with lock:
            waiting.append((work, done))
            if threads >= THREADS_MAX:
                return
            threads += 1
        try:
            threading.Thread(target=run, name="fairlead-log-in", daemon=True).start()
        except RuntimeError as error:  # the system has no room for one
            _logger.error("a log-in is given up: %s", error)
            with lock:
                threads -= 1
                given_up = [] if threads else list(waiting)
                if given_up:
                    waiting.clear()
            for _work, done in given_up:
                post(done)

    return aside
