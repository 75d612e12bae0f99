"""Transactions of a producer: steps of both client APIs, and the block that commits or aborts.

Outside a transaction the intake is shut, so a send fails at once; sends inside a transaction need
no check. A call that ended by a time-out or an interrupt, before its caller had the answer, is
remembered: the same call again waits for it, or gets its outcome; no other call is begun before.
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
        if self._transactional:
            intake.shut(_NONE_OPEN)

    def init(self, timeout_s: float | None) -> Steps[None]:
        """Get the producer id; see `Producer.init_transactions`."""
        name = "init_transactions"
        deadline_ns, again = self._deadline_ns(timeout_s), self._unheard == name
        self._intake.check()
        if self._transactional:
            self._check_thread(name)
            yield from connect_first(self._hosted, self._settings, timeout_s, "max.block.ms")
        completion: Completion[None] = Completion()
        yield from self._ask(name, InitTransactions(completion, deadline_ns, again), completion, ends=True)

    def begin(self) -> Steps[None]:
        """Begin a transaction, and let the intake accept records; see
        `Producer.begin_transaction`."""
        if self._unheard is not None:
            raise UsageError(
                f"begin_transaction cannot be called now: {self._unheard} was not waited for; call it again "
                "to learn its end"
            )
        completion: Completion[None] = Completion()
        yield from self._ask("begin_transaction", BeginTransaction(completion), completion)
        self._intake.admit()

    def send_offsets(self, offsets: Offsets, group: str | GroupMetadata) -> Steps[None]:
        """Commit a group's offsets with the transaction; does nothing without offsets. See
        `Producer.send_offsets_to_transaction`."""
        self._intake.check()
        checked = as_offsets("send_offsets_to_transaction", offsets)
        who = _group(group)
        deadline_ns = self._deadline_ns(None)
        if checked:
            name = "send_offsets_to_transaction"
            completion: Completion[None] = Completion()
            yield from self._ask(name, SendOffsets(completion, deadline_ns, checked, who), completion)

    def end(self, commit: bool, timeout_s: float | None) -> Steps[None]:
        """Commit or abort the transaction; see `Producer.commit_transaction` and
        `abort_transaction`.

        The intake is shut first, so that what was sent before is all of it.
        """
        name = "commit_transaction" if commit else "abort_transaction"
        deadline_ns, again = self._deadline_ns(timeout_s), self._unheard == name
        self._check_thread(name)
        if self._transactional:
            self._intake.shut(_NONE_OPEN)
        completion: Completion[None] = Completion()
        operation = EndTransaction(completion, deadline_ns, commit, again)
        yield from self._ask(name, operation, completion, ends=True)

    def prepare(self, timeout_s: float | None) -> Steps[PreparedTransaction | None]:
        """Deliver everything sent and leave the transaction open; see
        `Producer.prepare_transaction`.

        The intake is shut first, so that what was sent before is all of it.
        """
        name = "prepare_transaction"
        deadline_ns, again = self._deadline_ns(timeout_s), self._unheard == name
        self._check_thread(name)
        if self._transactional:
            self._intake.shut(_NONE_OPEN)
        completion: Completion[PreparedTransaction | None] = Completion()
        operation = PrepareTransaction(completion, deadline_ns, again)
        return (yield from self._ask(name, operation, completion, ends=True))

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
        self, name: str, operation: TransactionOperation, completion: Completion[T], *, ends: bool = False
    ) -> Steps[T]:
        """Submit the operation of the call `name`, and wait for its `completion`. `ends`: the
        operation ends the transaction, and the call may be repeated after a time-out."""
        self._intake.check()
        self._check_thread(name)
        self._hosted.submit(operation)
        heard = False
        try:
            with self._timed(_TIMES[name]):
                answer = yield from wait_for(completion)
            heard = True
        except TimedOut:
            raise
        except Exception:
            heard = True
            raise
        finally:
            if ends:
                self._unheard = None if heard else name
        return answer

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
