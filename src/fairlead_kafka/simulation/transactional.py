"""An application that sends in transactions, as a generator, and the outcome that it got of each
transaction."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import TypeAlias, TypeVar

from fairlead_kafka.base.errors import ProducerFenced, TimedOut, TransactionFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.group_offsets import GroupMetadata, OffsetAndMetadata
from fairlead_kafka.producer.identity import Identity
from fairlead_kafka.producer.submission import BeginTransaction, EndTransaction, InitTransactions, SendOffsets
from fairlead_kafka.simulation.application import Application
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.workload import Completion, Sender, Sending

T = TypeVar("T")
Operation = Callable[[Completion[None]], object]
Part: TypeAlias = Generator["float | Operation", "Exception | None", T]
"""A generator that is a part of an application, and returns a `T`."""
Life: TypeAlias = Part[None]
"""Yields how many ms to wait, or an operation to submit; is sent the error that it ended with."""
CALL_TIMEOUT_MS = 700.0
"""Milliseconds that each call waits before it is made again."""
PAUSE_MS = 300.0
"""Greatest pause between two transactions, ms."""
CRASH_SHARE = 0.06
"""Share of transactions in which the application dies and starts again."""


class Outcome(Enum):
    """The end of a transaction, as far as its application knows."""

    OPEN = "not ended"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "either"


@dataclass
class TransactionResult:
    """One transaction: records `first` to `stop`, and maybe an offset for the application's
    group."""

    number: int
    first: int
    stop: int = -1
    outcome: Outcome = Outcome.OPEN
    sends_offset: bool = False


class TransactionalSender(Sender):
    """Runs transactions until it is told to finish. `start` makes a new producer of the same
    transactional id."""

    def __init__(
        self,
        number: int,
        script: Script,
        rng: Random,
        violated: Callable[[str], None],
        start: Callable[[Sender], Application],
        draw: Callable[[Random, Sender], Sending],
    ) -> None:
        super().__init__(number, script, rng, violated)
        self.transactions: list[TransactionResult] = []
        self.incarnations = 0
        self.former_speaks: Callable[[str, Identity], None] = lambda transactional_id, former: None
        """Called during a transaction with its transactional id and the identity of the producer
        that had it before.
        """
        self.offsets_topic = "orders"
        """Topic of the offsets that are committed with its transactions."""
        self._former: Identity | None = None
        self._idle = False
        self._stopping = False
        self._start = start
        self._draw = draw
        self._life: Life | None = None

    @property
    def group(self) -> str:
        """The group whose offsets are committed with its transactions."""
        return f"group-{self.number}"

    def begin(self) -> None:
        """Begin transactions with the attached producer."""
        self._idle = False
        self.incarnations += 1
        self._run_life(self._live())

    @property
    def finished(self) -> bool:
        """True if no transaction is open, and none will be begun."""
        return self._idle

    @property
    def open(self) -> int:
        """Open records and submissions, as for every sender, and 1 more while a transaction is
        open.
        """
        return super().open + (not self._idle)

    def finish(self) -> None:
        """Begin no more transactions; the present one ends."""
        self._stopping = True

    def send_last(self, sending: Sending) -> None:
        """Send one more transaction, with these records, which has to be committed."""
        self._idle = False
        self._run_life(self._last())

    # The life

    def _live(self) -> Life:
        if not (yield from self._initialize()):
            return
        while not self._stopping:
            yield self._rng.random() * PAUSE_MS
            if not (yield from self._transaction(commits=self._rng.random() < 0.8)):
                return
        self._idle = True

    def _last(self) -> Life:
        """The generator that `send_last` runs: one transaction that has to be committed."""
        if (yield from self._transaction(commits=True, crashes=False)) and self.transactions[
            -1
        ].outcome is not Outcome.COMMITTED:
            self._violated(f"{self.name}: its last transaction was not committed, though all was well again")
        self._idle = True

    def _initialize(self) -> Part[bool]:
        again = False
        while True:
            deadline_ns = self._deadline_ns()
            error = yield lambda done, again=again, deadline_ns=deadline_ns: InitTransactions(
                done, deadline_ns, again
            )  # type: ignore[misc]
            if error is None:
                return True
            if not isinstance(error, TimedOut):
                self._restart(error)
                return False
            again = True

    def _transaction(self, *, commits: bool, crashes: bool = True) -> Part[bool]:
        """One transaction from begin to end. False: this generator ends here, for another one has
        begun."""
        rng = self._rng
        error = yield BeginTransaction
        if error is not None:
            self._restart(error)
            return False
        transaction = TransactionResult(len(self.transactions), len(self.results))
        self.transactions.append(transaction)
        crashes = crashes and rng.random() < CRASH_SHARE
        for _ in range(rng.randrange(4)):
            self.send(self._draw(rng, self))
            yield rng.choice([0.0, 5.0, 50.0]) * rng.random()
        while self._blocked:
            yield 5.0
        transaction.stop = len(self.results)
        if rng.random() < 0.4:
            transaction.sends_offset = True
            error = yield self._offsets(transaction)
            commits = commits and error is None
        if crashes:
            self._crash(transaction, commits)
            return False
        former, self._former = self._former, None
        if former is not None:
            self.former_speaks(str(self._app().settings["transactional.id"]), former)
        return (yield from self._end(transaction, commits))

    def _offsets(self, transaction: TransactionResult) -> Operation:
        offsets = {TopicPartition(self.offsets_topic, 0): OffsetAndMetadata(transaction.number)}
        return lambda done: SendOffsets(done, self._deadline_ns(), offsets, GroupMetadata(self.group))

    def _end(self, transaction: TransactionResult, commits: bool) -> Part[bool]:
        may_commit, again = commits, False
        while True:
            deadline_ns = self._deadline_ns()
            error = yield lambda done, commits=commits, again=again, deadline_ns=deadline_ns: (  # type: ignore[misc]
                EndTransaction(done, deadline_ns, commits, again)
            )
            if error is None:
                transaction.outcome = Outcome.COMMITTED if commits else Outcome.ABORTED
                return True
            if isinstance(error, TimedOut):
                again = True
            elif isinstance(error, TransactionFailed) and commits:
                commits = may_commit = again = False
            else:
                transaction.outcome = Outcome.UNKNOWN if may_commit else Outcome.ABORTED
                self._restart(error)
                return False

    def _crash(self, transaction: TransactionResult, commits: bool) -> None:
        """End as a process that dies, maybe with the commit on its way, and start again."""
        application = self._app()
        transaction.outcome = Outcome.ABORTED
        if commits and self._rng.random() < 0.5:
            transaction.outcome = Outcome.UNKNOWN
            commit = EndTransaction(Completion(lambda _value, _error: None), self._deadline_ns(), True)
            application.host.submit(application.handle, commit)
            self._script.after(self._rng.random() * 20.0, self._replace)
        else:
            self._script.after(0.0, self._replace)

    def _restart(self, error: Exception) -> None:
        """Replace this producer, which cannot go on, by a new one with its transactional id.

        The only allowed reason is that the coordinator timed the transaction out; any other is a
        violation.
        """
        if not isinstance(error, ProducerFenced):
            self._violated(f"{self.name}: its producer ended with {error!r}")
        self._script.after(1.0, self._replace)

    def _replace(self) -> None:
        application = self._app()
        self.abandoned.update(serial for serial, result in enumerate(self.results) if result.completed_ns < 0)
        self._blocked.clear()
        self._former = (
            application.machine.identity if application.machine.identity.producer_id >= 0 else self._former
        )
        application.host.remove(application.handle)
        self.attach(self._start(self))
        self.begin()

    # Inside

    def _deadline_ns(self) -> int:
        return self._app().host.now_ns() + ms_to_ns(CALL_TIMEOUT_MS)

    def _run_life(self, life: Life) -> None:
        """Begin `life`, the generator that sends; the one before ends."""
        self._life = life
        self._go_on(life, lambda: next(life))

    def _go_on(self, life: Life, step: Callable[[], float | Operation]) -> None:
        if life is not self._life:
            return
        try:
            wanted = step()
        except StopIteration:
            return
        if isinstance(wanted, (int, float)):
            self._script.after(wanted, self._go_on, life, lambda: life.send(None))
            return

        def answered(_: None, error: Exception | None) -> None:
            self._go_on(life, lambda: life.send(error))

        application = self._app()
        application.host.submit(application.handle, wanted(Completion(answered)))
