"""The driver's side: the steps from tasks that have ended to a batch that is committed, or back. See the theory of operation above."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import FairleadError, ItemsFailed
from fairlead_kafka.client import Admin, PreparedTransaction, TransactionDescription
from fairlead_kafka.spark.exactly_once.errors import TIMES, CheckpointBehind, NotCommitted, RowsLost
from fairlead_kafka.spark.exactly_once.log import CommitLog
from fairlead_kafka.spark.exactly_once.parts import Decision, Part, Writing
from fairlead_kafka.spark.exactly_once.settings import Guarantee, settings_for, transaction_timeout_ms
from fairlead_kafka.spark.exactly_once.task import is_task_of

T = TypeVar("T")
LOGGER = logging.getLogger("fairlead_kafka.spark")
AT_ONCE = 256
"""Transactions that one call ends or describes."""
AGE_MAX_RATIO = 0.9
"""A transaction that has used up more of its time than this is not committed any more: it might not live to see it."""
_ABORTED = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
"""What a coordinator answers who is to commit a transaction that has been aborted, by time-out above all."""


class Step(Enum):
    """How far the driver is."""

    TAKEN_OVER = "older drivers are shut out, and the last decision is known"
    VOTED = "every transaction is known to be open, with time left"
    DECISION_SENT = "the decision is in the log, and does not count yet"
    DECIDED = "the decision counts: what happens from now on, the batch will be committed"
    ENDED_SOME = "some of the transactions are committed"
    ENDED = "all of them are committed, and what is not wanted is aborted"
    DONE = "the log says so; Spark has not noted it yet"


class Committer:
    """Commits and aborts what tasks of `name` have prepared. Every call raises what the client raises, and may be repeated.

    `reached` is told of each step, `at_once` is how many transactions a call ends. `remembers` False: nobody will come back to the name, so
    what is done is taken out of the log.
    """

    def __init__(
        self,
        client: Mapping[str, str],
        guarantee: Guarantee,
        name: str,
        reached: Callable[[Step], None] = lambda step: None,
        at_once: int = AT_ONCE,
        remembers: bool = True,
    ) -> None:
        self._client = client
        self._guarantee = guarantee
        self._name = name
        self._reached = reached
        self._at_once = at_once
        self._remembers = remembers

    def commit(self, batch: int, parts: Sequence[Part], *, repeats_older: bool = False) -> bool:
        """Commit a batch, all its parts or none. False: it had been committed before, so what is prepared now is aborted.

        A batch that is older than the last one is an error, CheckpointBehind, unless `repeats_older`: then it too has been committed.
        NotCommitted: nothing of it is visible, write it again. RowsLost: see there.
        """
        writing = Writing(self._name, batch)
        with self._work() as (admin, log):
            last = log.take_over()
            self._reached(Step.TAKEN_OVER)
            if last is not None and last.writing.batch > batch and not repeats_older:
                raise CheckpointBehind(
                    f"{writing} is to be committed, and batch {last.writing.batch} was committed before: the checkpoint is older than what "
                    "was written. Use the newest checkpoint; to write the rows again, start with a new one"
                )
            lost = [] if last is None or last.done else self._carry_out(admin, last)
            new = last is None or last.writing.batch < batch
            if last is not None and last.writing.batch == batch:
                chosen = _instead_of(lost, last, parts)
            elif last is not None and lost:
                raise _rows_lost(last, lost)
            else:
                chosen = list(parts) if new else []
            if chosen or parts:
                self._vote(admin, writing, chosen)
                # What is already committed stays the last word: of a batch that is repeated everything is left over.
                of, earlier = (writing, 0) if new or last is None else (last.writing, last.earlier + len(last.commit) - len(lost))
                self._decide(admin, log, Decision(of, tuple(chosen), self._left_over(admin, chosen), earlier=earlier))
            return new or bool(chosen)

    def abort(self, parts: Sequence[Part]) -> None:
        """Abort parts of a batch that failed, but for those that were decided to be committed: the repeated batch will find them."""
        with self._work() as (admin, log):
            last = log.take_over()
            decided = {part.transaction for part in last.commit} if last is not None else set()
            self._abort(admin, [part.transaction for part in parts if part.transaction not in decided])

    # Steps

    def _decide(self, admin: Admin, log: CommitLog, decision: Decision) -> None:
        self._reached(Step.VOTED)
        log.write(decision, lambda: self._reached(Step.DECISION_SENT))
        self._reached(Step.DECIDED)
        lost = self._carry_out(admin, decision)
        if lost:
            raise _rows_lost(decision, lost)
        self._reached(Step.ENDED)
        log.write(decision.carried_out() if self._remembers else None)
        self._reached(Step.DONE)

    @contextmanager
    def _work(self) -> Iterator[tuple[Admin, CommitLog]]:
        with ExitStack() as stack:
            admin = stack.enter_context(Admin(settings_for("admin", self._client)))
            yield admin, stack.enter_context(CommitLog(self._client, self._guarantee, self._name, admin))

    def _vote(self, admin: Admin, writing: Writing, parts: Sequence[Part]) -> None:
        """NotCommitted unless every part's transaction is open, as its task left it, and will be for a while."""
        now_ms, limit_ms = time.time() * 1000, AGE_MAX_RATIO * transaction_timeout_ms(self._client)
        gone, old_ms = [], 0.0
        for some in self._in_turn(parts):
            try:
                described = admin.describe_transactions([part.transaction.transactional_id for part in some])
            except ItemsFailed as failed:
                described = failed.results
            for part in some:
                found = described.get(part.transaction.transactional_id)
                if found is None or not found.is_open or _named(found) != part.transaction:
                    gone.append(part)
                else:
                    old_ms = max(old_ms, now_ms - found.started_ms)
        if gone or old_ms > limit_ms:
            why = f"{len(gone)} of {len(parts)} transactions were aborted" if gone else f"a transaction is open for {old_ms / 1000:.0f} s"
            raise NotCommitted(
                f"{writing}: {why} before the batch could be committed; kafka.transaction.timeout.ms is "
                f"{transaction_timeout_ms(self._client)}. Nothing of the batch is visible; it will be written again. {TIMES}"
            )

    def _left_over(self, admin: Admin, chosen: Sequence[Part]) -> tuple[PreparedTransaction, ...]:
        """Transactions of the query that are open and not wanted: of attempts that lost, of tasks and drivers that died."""
        wanted = {part.transaction.transactional_id for part in chosen}
        ongoing = admin.list_transactions(["Ongoing"])
        listed = [each for each in ongoing if is_task_of(self._guarantee, self._name, each) and each not in wanted]
        found = []
        for some in self._in_turn(listed):
            try:
                described = admin.describe_transactions(some)
            except ItemsFailed as failed:
                described = failed.results
            found += [_named(one) for one in described.values() if one.is_open]
        return tuple(found)

    def _carry_out(self, admin: Admin, decision: Decision) -> list[Part]:
        """Commit and abort what was decided, as often as it takes; the parts that brokers had aborted before."""
        lost = []
        for some in self._in_turn(decision.commit):
            try:
                admin.end_transactions([part.transaction for part in some], commit=True)
            except ItemsFailed as failed:
                unclear = {of: error for of, error in failed.errors.items() if error.code not in _ABORTED}
                if unclear:
                    raise ItemsFailed(f"committing {decision.writing}", unclear, failed.results) from failed
                lost += [part for part in some if part.transaction in failed.errors]
            self._reached(Step.ENDED_SOME)
        self._abort(admin, decision.abort)
        return lost

    def _abort(self, admin: Admin, transactions: Sequence[PreparedTransaction]) -> None:
        """Abort; one that was aborted before, or cannot be now, is left to its time-out, which does the same."""
        for some in self._in_turn(transactions):
            try:
                admin.end_transactions(some, commit=False)
            except FairleadError as error:
                if not isinstance(error, ItemsFailed) or any(one.code not in _ABORTED for one in error.errors.values()):
                    LOGGER.warning("%s: some transactions that are not wanted stay open until they time out: %s", self._name, error)

    def _in_turn(self, items: Sequence[T]) -> Iterator[Sequence[T]]:
        return (items[start : start + self._at_once] for start in range(0, len(items), self._at_once))


def _named(found: TransactionDescription) -> PreparedTransaction:
    """What the task of this transaction handed over, if nobody has ended it since."""
    return PreparedTransaction(found.transactional_id, found.producer_id, found.epoch, len(found.partitions))


def _instead_of(lost: Sequence[Part], last: Decision | None, parts: Sequence[Part]) -> list[Part]:
    """Which parts of a repeated batch take the place of lost ones: those with the same rows, or all if nothing was committed. RowsLost."""
    if not lost or last is None:
        return []
    if len(lost) == len(last.commit) and not last.earlier:
        return list(parts)
    wanted, chosen = Counter((part.rows, part.digest) for part in lost), []
    for part in parts:
        if wanted[part.rows, part.digest] > 0:
            wanted[part.rows, part.digest] -= 1
            chosen.append(part)
    if wanted.total():
        raise _rows_lost(last, lost, repeated=True)
    return chosen


def _rows_lost(decision: Decision, lost: Sequence[Part], *, repeated: bool = False) -> RowsLost:
    rows = sum(part.rows for part in lost)
    said = f"{decision.writing}: it was decided to commit it, and brokers had aborted {len(lost)} of its transactions, with {rows} rows"
    if repeated:
        return RowsLost(
            f"{said}; the batch was written again, and its tasks do not hold the same rows as the first time, so these rows cannot be told "
            f"from those that are committed. Start with a new checkpoint at the offsets that you choose. {TIMES}"
        )
    return RowsLost(f"{said}. Start the query again: it writes the batch again, and these rows are committed then. {TIMES}")
