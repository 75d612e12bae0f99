"""The host's part in a log-in: asks the machine's `Authenticator` for each message, on a thread of its own if that may take long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError, FairleadError
from fairlead_kafka.core.effects import Authenticate
from fairlead_kafka.core.events import Authenticated, Event
from fairlead_kafka.runtime.handle import Handle

if TYPE_CHECKING:
    from fairlead_kafka.runtime.transport import Aside, Authenticator

Deliver = Callable[[Handle, Event], None]


class Seat(Protocol):
    """The connection that a log-in is for, as its host has it."""

    host: str
    """Whom it leads to, as was asked for."""
    authenticator: Authenticator | None
    """The log-in under way."""


def authenticate(handle: Handle, link: Seat, effect: Authenticate, deliver: Deliver, aside: Aside) -> None:
    """Answer `effect` by `events.Authenticated`, now or later."""
    if handle.transport is None:
        raise AssertionError(f"{handle} asks for a log-in and was given no transport")
    authenticator = link.authenticator
    if authenticator is None or effect.challenge is None:
        authenticator = link.authenticator = handle.transport.authenticator(link.host)
    answers: list[Authenticated] = []

    def done() -> None:
        if answers[0].message is None:
            link.authenticator = None
        deliver(handle, answers[0])

    if authenticator.blocking:
        aside(lambda: answers.append(_ask(authenticator, effect)), done)
    else:
        answers.append(_ask(authenticator, effect))
        done()


def _ask(authenticator: Authenticator, effect: Authenticate) -> Authenticated:
    try:
        return Authenticated(effect.connection, authenticator.next(effect.challenge))
    except ConfigError as error:
        refusal = AuthenticationFailed(str(error))
        refusal.__cause__ = error
        return Authenticated(effect.connection, None, refusal)
    except FairleadError as error:
        return Authenticated(effect.connection, None, error)
    except Exception as error:  # a library's, or a user's token provider: its caller is told, and the host goes on
        refusal = AuthenticationFailed(f"the log-in failed: {type(error).__name__}: {error}")
        refusal.__cause__ = error
        return Authenticated(effect.connection, None, refusal)


def on_a_thread(post: Callable[[Callable[[], None]], None]) -> Aside:
    """Work aside on a thread of its own each time: log-ins are rare, and one that hangs must not hold up another."""

    def aside(work: Callable[[], None], done: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            finally:
                post(done)

        threading.Thread(target=run, name="fairlead-log-in", daemon=True).start()

    return aside
