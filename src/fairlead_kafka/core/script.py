"""Scripts: a sequence of requests, retries included, written from top to bottom and run inside a
machine's step.

A script is a generator. It yields a list of `Ask` and is sent the list of answers, a response or an
exception each, in the same order; `ask_one` and `ask_all` do so, and know what type of response
goes with a request. Or it yields a `Pause` and goes on after it. What it returns, or raises, is the
outcome. It has no clock: the deadline is the runner's, and a script that is late is closed
(GeneratorExit).

    while True:
        answer = yield from ask_one(Ask(ApiKey.DELETE_TOPICS, message, CONTROLLER))
        if not isinstance(answer, Exception) and answer.error_code == 0:
            return answer
        yield Pause(problem_of(answer))

Scripts are for calls of a few requests (admin calls, a consumer's look-ups), not for sending or
fetching records.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeAlias, TypeVar, cast

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import AuthenticationFailed, BrokerError, TimedOut, UsageError
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.connection import NEVER_NS, OnDone, R
from fairlead_kafka.core.event_log import REQUEST_RETRIED
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.wire import ApiKey, ApiMessage, RequestMessage

_MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
R_co = TypeVar("R_co", bound=ApiMessage, covariant=True)
T = TypeVar("T")


class Ask(NamedTuple, Generic[R_co]):
    """One request; `node_id` None: whichever node is least busy, `core.network.CONTROLLER`: the
    controller.

    With `fails_fast` the answer is a ConnectionFailed if the node is gone or cannot be connected
    to: for a node that may have been replaced. `timeout_ms`: how long the answer may take, None:
    `request.timeout.ms`. `version_max`: the highest version that can say what the message has to,
    None: any.
    """

    api_key: ApiKey
    message: RequestMessage[R_co]
    node_id: int | None = None
    fails_fast: bool = False
    timeout_ms: float | None = None
    version_max: int | None = None


class Pause(NamedTuple):
    """Go on with the script later. `problem` is the caller's error if the time runs out meanwhile.

    With `until_metadata`, as soon as newer metadata is here (asked for at once); otherwise after a
    back-off, and with `refresh` not before newer metadata is here either, for an error that newer
    metadata may end. `wait_ms` (milliseconds) instead of the back-off: for an error that is known
    to pass soon.
    """

    problem: Exception
    until_metadata: bool = False
    refresh: bool = False
    wait_ms: float | None = None


_FINAL = (UsageError, AuthenticationFailed)
"""Errors that end a script, since asking again would bring the same. AuthenticationFailed does not
end one without a deadline, which nobody waits for: it goes on once a log-in works again."""

Answer: TypeAlias = ApiMessage | Exception
Steps: TypeAlias = Generator[Sequence[Ask[ApiMessage]] | Pause, list[Answer], T]
"""A script, or a part of one for `yield from`, that returns a `T`."""
Done: TypeAlias = Callable[[T | None, Exception | None], None]
"""Called at the end of a script that returns a `T`: with its result, or with None and an error."""


def ask_all(asks: Sequence[Ask[R]]) -> Steps[list[R | Exception]]:
    """The answers to `asks`, in their order: responses, or the exceptions that requests failed
    with. `yield from` this in a script."""
    answers = yield asks
    # The answer to a request is its response, which type checkers cannot see: a generator is sent
    # one type of value.
    return cast("list[R | Exception]", answers)


def ask_one(ask: Ask[R]) -> Steps[R | Exception]:
    """The answer to one `Ask`: the response, or the exception that the request failed with."""
    return (yield from ask_all([ask]))[0]


@dataclass(slots=True, eq=False)
class _Run:
    what: str
    script: Steps[object]
    deadline_ns: int
    end: Callable[[object, Exception | None], None]
    answers: list[Answer | None] = field(default_factory=list)
    unanswered: int = 0
    resume_ns: int | None = None
    metadata_version: int | None = None
    pauses: int = 0
    problem: Exception | None = None
    finished: bool = False
    line: str | None = None


class Scripts:
    """All scripts of one machine. `start` may be called at any time; `advance` does the work, once
    per step, after the network's."""

    def __init__(self, network: Network, rng: Rng, backoff: Backoff) -> None:
        self._network = network
        self._rng = rng
        self._backoff = backoff
        self._runs: list[_Run] = []
        self._ready: list[_Run] = []

    def start(
        self, what: str, script: Steps[T], deadline_ns: int, done: Done[T], line: str | None = None
    ) -> None:
        """Run `script` until `deadline_ns`; `done(value, error)` is called once, inside a later
        `advance`.

        `what` names the work in errors. When time runs out the error is `TimedOut` with the last
        problem in it, or that problem itself if it was a topic or partition that does not exist.
        Scripts of one `line` run one after the other, in the order of their start; their time
        counts while they wait, too.
        """

        def end(value: object, error: Exception | None) -> None:
            done(cast("T | None", value), error)  # what `script` returned

        run = _Run(what, script, deadline_ns, end, line=line)
        first = self._first_of(line) is None
        self._runs.append(run)
        if first:
            self._ready.append(run)

    def advance(self, now_ns: int) -> None:
        """Go on with every script that can."""
        version = self._network.metadata.version
        for run in self._runs:
            rested = run.resume_ns is None or now_ns >= run.resume_ns
            fresh = run.metadata_version is None or version != run.metadata_version
            if (run.resume_ns is not None or run.metadata_version is not None) and rested and fresh:
                run.resume_ns = run.metadata_version = None
                run.answers = []
                self._ready.append(run)
        while self._ready:
            ready, self._ready = self._ready, []
            for run in ready:
                self._continue(run, now_ns)
        for run in self._runs:
            if not run.finished and now_ns >= run.deadline_ns:
                run.script.close()
                self._finish(run, None, self._late(run))
        self._runs = [run for run in self._runs if not run.finished]

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, of the next `advance` if nothing arrives; None: no script is under
        way."""
        if self._ready:
            return 0
        version = self._network.metadata.version
        times = [run.deadline_ns for run in self._runs]
        # One that waits for metadata besides is looked at when they come.
        times += [
            run.resume_ns
            for run in self._runs
            if run.resume_ns is not None and run.metadata_version != version
        ]
        return min(times, default=None)

    def refuse(self, error: AuthenticationFailed) -> None:
        """Note that brokers do not accept this client: the next `advance` fails the scripts that
        have a deadline and await no answer.

        Scripts with unanswered requests get the error as their answer.
        """
        for run in self._runs:
            if (
                run.deadline_ns < NEVER_NS
                and run.unanswered == 0
                and not run.finished
                and run not in self._ready
            ):
                run.resume_ns = run.metadata_version = None
                run.answers = [error]
                self._ready.append(run)

    def close(self, error: Exception) -> None:
        """Fail everything under way with `error`."""
        for run in self._runs:
            if not run.finished:
                run.script.close()
                self._finish(run, None, error)
        self._runs.clear()
        self._ready.clear()

    def _continue(self, run: _Run, now_ns: int) -> None:
        if run.finished:
            return
        final = _FINAL if run.deadline_ns < NEVER_NS else UsageError
        hopeless = next((answer for answer in run.answers if isinstance(answer, final)), None)
        if hopeless is not None:
            run.script.close()
            self._finish(run, None, hopeless)
            return
        try:
            answers = [answer for answer in run.answers if answer is not None]
            step = run.script.send(answers) if answers else next(run.script)
        except StopIteration as stop:
            self._finish(run, stop.value, None)
        except Exception as error:  # a defect, or an argument of no use, ends this script and nobody else's
            self._finish(run, None, error)
        else:
            if isinstance(step, Pause):
                self._pause(run, step, now_ns)
            else:
                self._ask(run, step)

    def _ask(self, run: _Run, asks: Sequence[Ask[ApiMessage]]) -> None:
        room = self._network.request_room
        if len(asks) > room:  # before any is sent: nothing was asked for a call that fails so
            run.script.close()
            text = f"{run.what} takes {len(asks)} requests at once, and {room} more may wait: name fewer"
            self._finish(run, None, UsageError(text))
            return
        run.answers = [None] * len(asks)
        run.unanswered = len(asks)
        for index, ask in enumerate(asks):
            self._network.request(
                ask.api_key,
                ask.message,
                self._on_answer(run, run.answers, index),
                node_id=ask.node_id,
                deadline_ns=run.deadline_ns,
                fails_fast=ask.fails_fast,
                timeout_ms=ask.timeout_ms,
                version_max=ask.version_max,
            )

    def _on_answer(self, run: _Run, answers: list[Answer | None], index: int) -> OnDone[ApiMessage]:
        def on_answer(response: ApiMessage | None, error: Exception | None) -> None:
            answers[index] = response if error is None else error
            run.problem = error or run.problem
            run.unanswered -= 1
            if run.unanswered == 0 and not run.finished:
                self._ready.append(run)

        return on_answer

    def _pause(self, run: _Run, pause: Pause, now_ns: int) -> None:
        run.problem = pause.problem
        self._network.events.log(REQUEST_RETRIED, run.what, pause.problem)
        if pause.wait_ms is not None:
            run.resume_ns = now_ns + ms_to_ns(pause.wait_ms)
        elif not pause.until_metadata:
            run.resume_ns = now_ns + self._backoff.wait_ns(run.pauses, self._rng)
            run.pauses += 1
        if pause.until_metadata or pause.refresh:
            run.metadata_version = self._network.metadata.version
            self._network.metadata.request_update()

    def _finish(self, run: _Run, value: object, error: Exception | None) -> None:
        was_first = self._first_of(run.line) is run
        run.finished = True
        following = self._first_of(run.line)
        if was_first and following is not None:
            self._ready.append(following)
        run.end(value, error)

    def _late(self, run: _Run) -> Exception:
        before = self._first_of(run.line)  # what held up the one before it held it up as well
        return late(run.what, run.problem if before is None else before.problem, self._network)

    def _first_of(self, line: str | None) -> _Run | None:
        """The script of `line` that may run: the one that was started first."""
        return (
            None
            if line is None
            else next((run for run in self._runs if run.line == line and not run.finished), None)
        )


def late(what: str, problem: Exception | None, network: Network) -> Exception:
    """The error for `what` that was not done in time: the missing topic or partition that held it
    up, else `TimedOut`."""
    if isinstance(problem, BrokerError) and problem.code in _MISSING:
        return problem
    if not network.metadata.nodes:
        return TimedOut(f"{what}: not done within the time allowed; {network.trouble()}")
    last = "no broker answered" if problem is None else f"last problem: {problem}"
    return TimedOut(f"{what}: not done within the time allowed; {last}")
