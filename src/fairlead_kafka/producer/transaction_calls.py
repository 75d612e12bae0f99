"""Calls that wait for a transaction: each is answered once, in time or with TimedOut."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.core.prepared import PreparedTransaction
from fairlead_kafka.producer.ledger import Ledger
from fairlead_kafka.producer.submission import (
    EndTransaction,
    InitTransactions,
    LeaveTransaction,
    PrepareTransaction,
    SendOffsets,
    TransactionOperation,
)

INIT, COMMIT, ABORT, OFFSETS = (
    "init_transactions",
    "commit_transaction",
    "abort_transaction",
    "send_offsets_to_transaction",
)
PREPARE = "prepare_transaction"
Waiting = InitTransactions | SendOffsets | EndTransaction | PrepareTransaction | LeaveTransaction


class Call:
    """A call that is under way, and the operations that wait for its end: none if all have timed
    out."""

    __slots__ = ("name", "waiters")

    def __init__(self, name: str, first: Waiting) -> None:
        self.name = name
        self.waiters: list[Waiting] = [first]


class Calls:
    """The call under way that changes the transaction's state, and the calls with offsets to be
    sent, in their order of arrival."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.current: Call | None = None
        self.offsets: deque[tuple[SendOffsets, Call]] = deque()

    def joins(self, operation: InitTransactions | EndTransaction | PrepareTransaction, name: str) -> bool:
        """True if a call is under way: the same one is joined, another one is refused."""
        call = self.current
        if call is not None and call.name == name:
            call.waiters.append(operation)
        elif call is not None:
            self.refuse_unfinished(operation, name)
        return call is not None

    def finish(self, error: Exception | None = None, value: PreparedTransaction | None = None) -> None:
        """Answer the current call with `error`, or with `value`."""
        call, self.current = self.current, None
        if call is not None:
            self._answer(call, error, value)

    def finish_offsets(self) -> None:
        """Complete the oldest call with offsets: they are part of the transaction now."""
        if self.offsets:
            self._answer(self.offsets.popleft()[1], None)

    def fail_offsets(self, error: Exception) -> None:
        """Fail all calls with offsets, with `error`."""
        while self.offsets:
            self._answer(self.offsets.popleft()[1], error)

    def fail_all(self, error: Exception) -> None:
        """Fail the current call, and all calls with offsets."""
        self.finish(error)
        self.fail_offsets(error)

    def expire(self, now_ns: int, lateness: Callable[[str], Exception]) -> None:
        """Fail with TimedOut the operations whose time is up; their calls go on. `lateness(...)`
        gives the error's text."""
        for call in list(self._all()):
            for operation in [each for each in call.waiters if each.deadline_ns <= now_ns]:
                call.waiters.remove(operation)
                self.refuse(operation, lateness(call.name))

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, at which the next operation times out; None: none waits."""
        return min((each.deadline_ns for call in self._all() for each in call.waiters), default=None)

    def refuse(self, operation: TransactionOperation, error: Exception) -> None:
        """Answer an operation with an error."""
        self._ledger.resolve(operation.completion, error=error)

    def refuse_unfinished(self, operation: TransactionOperation, name: str) -> None:
        """Answer an operation with UsageError: another call is under way."""
        assert self.current is not None
        under_way = self.current.name
        self.refuse(
            operation,
            UsageError(
                f"{name} cannot be called now: {under_way} has not ended; call that again to wait for its end"
            ),
        )

    def _all(self) -> Iterator[Call]:
        if self.current is not None:
            yield self.current
        for _, call in self.offsets:
            yield call

    def _answer(self, call: Call, error: Exception | None, value: PreparedTransaction | None = None) -> None:
        for place, operation in enumerate(call.waiters):
            if isinstance(operation, LeaveTransaction):
                aborted = call.name == ABORT and place == 0
                self._ledger.resolve(operation.completion, None if error is not None else aborted, error)
            elif isinstance(operation, PrepareTransaction):
                self._ledger.resolve(operation.completion, None if error is not None else value, error)
            else:
                self._ledger.resolve(operation.completion, None, error)
        call.waiters.clear()
