"""Transactions of a producer: steps of both client APIs, and the block that commits or aborts.

Outside a transaction the intake is shut, so a send fails at once; sends inside a transaction need
no check. A call that ended by a time-out or an interrupt, before its caller had the answer, is
remembered: the same call again waits for it, or gets its outcome, and `_MAY_FOLLOW` says which
other calls are let through before. What those find is for the machine's states to say.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, TypeVar

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import FairleadError, TimedOut, TransactionFailed, UsageError
from fairlead_kafka.base.units import ms_to_ns, s_to_ns
from fairlead_kafka.client.delivery import LOGGER
from fairlead_kafka.client.hosting import (
    LONGEST_S,
    Host,
    Steps,
    connect_first,
    run_async,
    run_blocking,
    wait_for,
)
from fairlead_kafka.client.offsets import Offsets, as_offsets
from fairlead_kafka.core.group_offsets import GroupMetadata
from fairlead_kafka.core.prepared import PreparedTransaction
from fairlead_kafka.producer import ProducerMachine
from fairlead_kafka.producer.submission import (
    BeginTransaction,
    EndTransaction,
    InitTransactions,
    LeaveTransaction,
    PrepareTransaction,
    SendOffsets,
    TransactionOperation,
)
from fairlead_kafka.runtime import Completion

_INTERRUPTED_ABORT_S = 1.0
_TIMES = {
    "init_transactions": "txn_init_ns",
    "begin_transaction": "txn_begin_ns",
    "send_offsets_to_transaction": "txn_send_offsets_ns",
    "prepare_transaction": "flush_ns",
    "commit_transaction": "txn_commit_ns",
    "abort_transaction": "txn_abort_ns",
}
"""Call → the total of `ProducerMeter` that its time is added to."""
_MAY_FOLLOW: dict[str | None, tuple[str, ...]] = {
    None: tuple(_TIMES),
    "init_transactions": ("init_transactions",),
    "begin_transaction": ("begin_transaction", "commit_transaction", "abort_transaction"),
    "send_offsets_to_transaction": tuple(_TIMES),
    "prepare_transaction": ("prepare_transaction", "abort_transaction"),
    "commit_transaction": ("commit_transaction", "abort_transaction"),
    "abort_transaction": ("abort_transaction",),
}
"""Call whose end its caller did not hear of (None: there is none) → calls that may come next. An
abort after what may have failed: the machine knows whether it did."""
_NONE_OPEN = (
    "no transaction is open: call begin_transaction before sending (and init_transactions once before that)"
)


T = TypeVar("T")


class Gate(Protocol):
    """The parts of the intake that transactions use: opening and shutting it
    (`client.intake.Intake`)."""

    def check(self) -> None:
        """Raise UsageError if the producer is closed."""

    def shut(self, why: str) -> None:
        """Refuse records with UsageError, whose text is `why`, until `admit`; earlier ones stay."""

    def admit(self) -> None:
        """Accept records again, after `shut`."""


class TransactionSteps:
    """Steps of a producer's calls about transactions. Without `transactional.id` the machine
    refuses them, and sends work as in any producer."""

    def __init__(
        self,
        hosted: Host[ProducerMachine],
        intake: Gate,
        settings: Settings,
        check_thread: Callable[[str], None],
        timed: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._hosted = self.host = hosted
        self._settings = settings
        self._timed = timed
        self._intake = intake
        self._check_thread = check_thread
        self._max_block_ns: int = ms_to_ns(settings["max.block.ms"])
        self._transactional = settings["transactional.id"] is not None
        self._unheard: str | None = None
        """The call whose end its caller did not hear of, a key of `_MAY_FOLLOW`."""
        if self._transactional:
            intake.shut(_NONE_OPEN)

    def init(self, timeout_s: float | None) -> Steps[None]:
        """Get the producer id; see `Producer.init_transactions`."""
        name = "init_transactions"
        deadline_ns, again = self._deadline_ns(timeout_s), self._again(name)
        self._intake.check()
        if self._transactional:
            self._check_thread(name)
            yield from connect_first(self._hosted, self._settings, timeout_s, "max.block.ms")
        completion: Completion[None] = Completion()
        yield from self._ask(name, InitTransactions(completion, deadline_ns, again), completion)

    def begin(self) -> Steps[None]:
        """Begin a transaction, and let the intake accept records; see
        `Producer.begin_transaction`."""
        name = "begin_transaction"
        completion: Completion[None] = Completion()
        operation = BeginTransaction(completion, self._again(name))
        yield from self._ask(name, operation, completion, self._intake.admit)

    def send_offsets(self, offsets: Offsets, group: str | GroupMetadata) -> Steps[None]:
        """Commit a group's offsets with the transaction; does nothing without offsets. See
        `Producer.send_offsets_to_transaction`."""
        self._intake.check()
        checked = as_offsets("send_offsets_to_transaction", offsets)
        who = _group(group)
        deadline_ns = self._deadline_ns(None)
        if checked:
            name = "send_offsets_to_transaction"
            self._again(name)
            completion: Completion[None] = Completion()
            yield from self._ask(name, SendOffsets(completion, deadline_ns, checked, who), completion)

    def end(self, commit: bool, timeout_s: float | None) -> Steps[None]:
        """Commit or abort the transaction; see `Producer.commit_transaction` and
        `abort_transaction`.

        The intake is shut first, so that what was sent before is all of it.
        """
        name = "commit_transaction" if commit else "abort_transaction"
        deadline_ns, again = self._deadline_ns(timeout_s), self._again(name)
        self._check_thread(name)
        if self._transactional:
            self._intake.shut(_NONE_OPEN)
        completion: Completion[None] = Completion()
        yield from self._ask(name, EndTransaction(completion, deadline_ns, commit, again), completion)

    def prepare(self, timeout_s: float | None) -> Steps[PreparedTransaction | None]:
        """Deliver everything sent and leave the transaction open; see
        `Producer.prepare_transaction`.

        The intake is shut first, so that what was sent before is all of it.
        """
        name = "prepare_transaction"
        deadline_ns, again = self._deadline_ns(timeout_s), self._again(name)
        self._check_thread(name)
        if self._transactional:
            self._intake.shut(_NONE_OPEN)
        completion: Completion[PreparedTransaction | None] = Completion()
        return (yield from self._ask(name, PrepareTransaction(completion, deadline_ns, again), completion))

    def end_block(self, error: BaseException | None) -> Steps[None]:
        """End a transaction's `with` block, of which `error` came out (None: none): commit, or
        abort if the block or the commit failed."""
        if error is None:
            try:
                yield from self.end(True, None)
                return
            except TransactionFailed as failure:
                error = failure
        try:
            yield from self.end(False, None if isinstance(error, Exception) else _INTERRUPTED_ABORT_S)
        except FairleadError as problem:
            error.add_note(f"and the transaction was not aborted: {problem}")
        if isinstance(error, TransactionFailed):
            raise error

    def leave(self, timeout_s: float | None) -> Steps[None]:
        """End a transaction that is open, before the producer is closed. A warning is logged if it
        did not end."""
        if not self._transactional:
            return
        deadline_ns = self._deadline_ns(timeout_s)
        completion: Completion[bool] = Completion()
        self._hosted.submit(LeaveTransaction(completion, deadline_ns))
        try:
            if (yield from wait_for(completion)):
                LOGGER.warning("producer closed with an open transaction: it was aborted")
        except FairleadError as error:
            LOGGER.warning("producer closed with an open transaction, which did not end: %s", error)

    def _ask(
        self,
        name: str,
        operation: TransactionOperation,
        completion: Completion[T],
        done: Callable[[], None] = lambda: None,
    ) -> Steps[T]:
        """Submit the operation of the call `name`, and wait for its `completion`; then call
        `done`."""
        self._intake.check()
        self._check_thread(name)
        try:
            self._hosted.submit(operation)
            with self._timed(_TIMES[name]):
                answer = yield from wait_for(completion)
            done()
            self._unheard = None
            return answer
        except BaseException as error:
            if isinstance(error, TimedOut) or not isinstance(error, Exception):
                self._unheard = name
            elif self._unheard == name:
                self._unheard = None
            raise

    def _again(self, name: str) -> bool:
        """True if the call `name` was made before and its end not heard of. UsageError if that is
        another call, which `name` may not follow."""
        if name not in _MAY_FOLLOW[self._unheard]:
            raise UsageError(
                f"{name} cannot be called now: {self._unheard} was not waited for; call it again to learn "
                "its end"
            )
        return self._unheard == name

    def _deadline_ns(self, timeout_s: float | None) -> int:
        wait_ns = self._max_block_ns if timeout_s is None else s_to_ns(min(timeout_s, LONGEST_S))
        return self._hosted.now_ns() + wait_ns


class Transaction:
    """A `with` block that is a transaction; see `Producer.transaction`."""

    def __init__(self, steps: TransactionSteps) -> None:
        self._steps = steps

    def __enter__(self) -> None:
        run_blocking(self._steps.begin(), self._steps.host)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run_blocking(self._steps.end_block(error), self._steps.host)


class AsyncTransaction:
    """An `async with` block that is a transaction; see `Producer.transaction`."""

    def __init__(self, steps: TransactionSteps) -> None:
        self._steps = steps

    async def __aenter__(self) -> None:
        await run_async(self._steps.begin(), self._steps.host)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await run_async(self._steps.end_block(error), self._steps.host)


def _group(group: object) -> GroupMetadata:
    found = GroupMetadata(group) if isinstance(group, str) else group
    if not isinstance(found, GroupMetadata) or not found.group_id:
        raise UsageError(f"the group is its id, which is not empty, or a GroupMetadata, not {group!r}")
    if found.generation_id > 0 and not found.member_id:
        raise UsageError(f"{found!r} has a generation but no member_id; give both, or the group id alone")
    return found
