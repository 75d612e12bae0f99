"""The driver's side of exactly-once writes: commits or aborts a batch once its tasks have ended.
`fairlead_kafka.spark.exactly_once` explains the steps."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, FairleadError, ItemsFailed, TimedOut
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.client import Admin, PreparedTransaction, TransactionDescription
from fairlead_kafka.spark.exactly_once.errors import (
    TIMES,
    CheckpointBehind,
    CommitUnfinished,
    NotCommitted,
    RowsLost,
    still_open,
)
from fairlead_kafka.spark.exactly_once.log import CommitLog
from fairlead_kafka.spark.exactly_once.parts import Decision, Part, Writing
from fairlead_kafka.spark.exactly_once.patience import until_clear
from fairlead_kafka.spark.exactly_once.settings import Guarantee, settings_for, transaction_timeout_ms
from fairlead_kafka.spark.exactly_once.task import is_task_of

T = TypeVar("T")
LOGGER = GuardedLogger("fairlead_kafka.spark")
AT_ONCE = 256
"""Transactions that one call ends or describes."""
AGE_MAX_RATIO = 0.9
"""Share of transaction.timeout.ms. A transaction that is open for longer is not committed any more:
it might time out first."""
_ABORTED = frozenset(
    {ErrorCode.INVALID_TXN_STATE, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
)
"""Errors of a coordinator asked to commit a transaction that has been aborted, mostly by
time-out."""
_ENDED = _ABORTED | {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
"""Errors of a coordinator asked to end a transaction that has ended otherwise, or is forgotten."""
TAKE_BACK_TIMEOUT_S = 15.0
"""Seconds to abort what a failed commit leaves behind: the brokers may be why it failed, and the
error has to be told."""


class Step(Enum):
    """Steps of a commit that the driver has reached."""

    TAKEN_OVER = "older drivers are shut out, and the last decision is known"
    VOTED = "every transaction is known to be open, with time left"
    DECISION_SENT = "the decision is in the log, and does not count yet"
    DECIDED = "the decision counts: what happens from now on, the batch will be committed"
    ENDED_SOME = "some of the transactions are committed"
    ENDED = "all of them are committed, and what is not wanted is aborted"
    DONE = "the log says so; Spark has not noted it yet"


class Committer:
    """Commits and aborts the transactions that tasks of `name` have prepared. Every call raises
    what the client raises, and may be repeated. `reached` is called at each step; `at_once` is how
    many transactions one request ends. `remembers` False: no later call will ask about the name, so
    decisions that are carried out are taken out of the log."""

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
        self._may_count = False
        """Whether the decision about the batch at hand may count by now: from then on nothing of it
        is aborted without reading the log."""

    def commit(self, batch: int, parts: Sequence[Part], *, repeats_older: bool = False) -> bool:
        """Commit a batch, all its parts or none. False: the batch had been committed before, so the
        parts prepared now are aborted.

        A batch that is older than the last one is an error, CheckpointBehind, unless
        `repeats_older`: then that batch counts as committed, too. NotCommitted: nothing of it is
        visible, write it again. If it raises anything before the decision counts, the parts are
        aborted; if they cannot be, NotCommitted says so. After the decision it goes on for as long
        as a transaction may be open; then CommitUnfinished. RowsLost: brokers had aborted a part
        after the decision.
        """
        writing = Writing(self._name, batch)
        self._may_count = False
        with self._work() as (admin, log):
            try:
                return self._commit(admin, log, writing, parts, repeats_older)
            except FairleadError as error:
                if not self._may_count:
                    self._take_back(admin, writing, parts, error)
                raise

    def abort(self, parts: Sequence[Part], *, everything: bool = False) -> None:
        """Abort parts of a failed batch, except those that were decided to be committed.

        A repeated batch finds those decisions. `everything`: also all other open transactions of
        the name, of tasks that were stopped before they could report them. NotCommitted if
        something stays open.
        """
        with self._work() as (admin, log):
            if not everything and not self._any_open(admin, parts):
                # A commit that failed has aborted them itself; to take over would shut out a driver
                # that has replaced this one.
                return
            try:
                last = log.take_over(to_write=False)
            except FairleadError as error:
                raise NotCommitted(
                    f"{self._name}: what was decided last cannot be read, so nothing may be aborted: "
                    f"{still_open(len(parts), transaction_timeout_ms(self._client))} ({error})"
                ) from error
            decided = () if last is None else last.commit
            kept = {part.transaction for part in decided}
            unwanted = [part.transaction for part in parts if part.transaction not in kept]
            left = self._abort(admin, unwanted)
            if everything:
                left += self._abort(admin, self._left_over(admin, decided))
            if left:
                raise NotCommitted(
                    f"{self._name}: {still_open(len(left), transaction_timeout_ms(self._client))}"
                )

    # Steps

    def _commit(
        self, admin: Admin, log: CommitLog, writing: Writing, parts: Sequence[Part], repeats_older: bool
    ) -> bool:
        batch = writing.batch
        last = log.take_over()
        self._reached(Step.TAKEN_OVER)
        if last is not None and last.writing.batch > batch and not repeats_older:
            raise CheckpointBehind(
                f"{writing} is to be committed, and batch {last.writing.batch} was committed before: the "
                "checkpoint is older than what "
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
        # Tasks use ids again once their transactions have ended: that a decision is carried out is
        # noted before, or its transactions would look lost.
        if chosen or parts or (last is not None and not last.done):
            self._vote(admin, writing, chosen)
            # What is already committed stays the last word: of a batch that is repeated everything
            # is left over.
            of, earlier = (
                (writing, 0)
                if new or last is None
                else (last.writing, last.earlier + len(last.commit) - len(lost))
            )
            self._decide(
                admin, log, Decision(of, tuple(chosen), self._left_over(admin, chosen), earlier=earlier)
            )
        return new or bool(chosen)

    def _take_back(self, admin: Admin, writing: Writing, parts: Sequence[Part], why: FairleadError) -> None:
        """Abort the parts, about which no decision can exist, for only this driver knows them.
        NotCommitted, because of `why`, if some stay open."""
        left = self._abort(admin, [part.transaction for part in parts], TAKE_BACK_TIMEOUT_S)
        if left:
            waits = still_open(len(left), transaction_timeout_ms(self._client))
            raise NotCommitted(
                f"{writing} is not committed: {why}. It could not be aborted either: {waits}"
            ) from why

    def _decide(self, admin: Admin, log: CommitLog, decision: Decision) -> None:
        self._reached(Step.VOTED)
        log.write(decision)
        self._may_count = True
        self._reached(Step.DECISION_SENT)
        # What is not committed after this is aborted by the brokers.
        limit_s = transaction_timeout_ms(self._client) / 1000
        try:
            until_clear(f"the decision about {decision.writing}", log.commit, limit_s)
        except TimedOut as error:
            raise self._unfinished(
                decision, "whether it is decided to commit it is not known", error
            ) from error
        self._reached(Step.DECIDED)
        try:
            lost = until_clear(
                f"committing {decision.writing}", lambda: self._carry_out(admin, decision), limit_s
            )
        except FairleadError as error:
            said = f"it is decided to commit it, and not all of its {len(decision.commit)} transactions are"
            raise self._unfinished(decision, said, error) from error
        if lost:
            raise _rows_lost(decision, lost, remembers=self._remembers)
        self._reached(Step.ENDED)
        self._note(log, decision)
        self._reached(Step.DONE)

    def _note(self, log: CommitLog, decision: Decision) -> None:
        """Note in the log that the decision is carried out."""
        try:
            log.write(decision.carried_out() if self._remembers else None)
            log.commit()
        except FairleadError as error:
            if self._remembers:  # the driver that comes back finds it carried out
                raise
            # To tell of a failure would have rows written twice that are all committed.
            LOGGER.warning("%s is committed, and the log could not forget it: %s", decision.writing, error)

    def _unfinished(self, decision: Decision, said: str, why: FairleadError) -> CommitUnfinished:
        if not self._remembers:
            timeout_ms = transaction_timeout_ms(self._client)
            then = (
                f"What is not committed when kafka.transaction.timeout.ms ({timeout_ms} ms) is over, is "
                "never: compare before you write it again. With txnAppId and txnVersion the same write "
                "would finish it"
            )
        elif self._guarantee.app_id is not None:
            then = "Write the same txnAppId and txnVersion again: that finishes it"
        else:
            then = "Start the query again: that finishes it"
        return CommitUnfinished(f"{decision.writing}: {said} ({why}). A part of it may be visible. {then}")

    @contextmanager
    def _work(self) -> Iterator[tuple[Admin, CommitLog]]:
        with ExitStack() as stack:
            admin = stack.enter_context(Admin(settings_for("admin", self._client)))
            yield admin, stack.enter_context(CommitLog(self._client, self._guarantee, self._name, admin))

    def _vote(self, admin: Admin, writing: Writing, parts: Sequence[Part]) -> None:
        """Raise NotCommitted unless every part's transaction is open, as its task left it, and
        stays so for long enough to be committed."""
        now_ms, limit_ms = time.time() * 1000, AGE_MAX_RATIO * transaction_timeout_ms(self._client)
        gone, old_ms = [], 0.0
        for some in self._in_groups(parts):
            described = _described(admin, [part.transaction.transactional_id for part in some])
            for part in some:
                found = described.get(part.transaction.transactional_id)
                if found is None or not found.is_open or _named(found) != part.transaction:
                    gone.append(part)
                else:
                    old_ms = max(old_ms, now_ms - found.started_ms)
        if gone or old_ms > limit_ms:
            why = (
                f"{len(gone)} of {len(parts)} transactions were aborted"
                if gone
                else f"a transaction is open for {old_ms / 1000:.0f} s"
            )
            raise NotCommitted(
                f"{writing}: {why} before the batch could be committed; kafka.transaction.timeout.ms is "
                f"{transaction_timeout_ms(self._client)}. Nothing of the batch is visible; it will be "
                f"written again. {TIMES}"
            )

    def _left_over(self, admin: Admin, chosen: Sequence[Part]) -> tuple[PreparedTransaction, ...]:
        """Open transactions of the query that are not those of the parts in `chosen`: of other
        attempts of tasks, and of tasks and drivers that died."""
        wanted = {part.transaction.transactional_id for part in chosen}
        ongoing = admin.list_transactions(["Ongoing"])
        listed = [
            each for each in ongoing if is_task_of(self._guarantee, self._name, each) and each not in wanted
        ]
        found = []
        for some in self._in_groups(listed):
            found += [_named(one) for one in _described(admin, some).values() if one.is_open]
        return tuple(found)

    def _any_open(self, admin: Admin, parts: Sequence[Part]) -> bool:
        """Whether some of them are open as their tasks left them, or nobody can tell."""
        identities = {part.transaction[:3] for part in parts}
        try:
            for some in self._in_groups(parts):
                described = _described(admin, [part.transaction.transactional_id for part in some])
                if any(one.is_open and _named(one)[:3] in identities for one in described.values()):
                    return True
        except FairleadError:
            return True
        return False

    def _carry_out(self, admin: Admin, decision: Decision) -> list[Part]:
        """Commit and abort the transactions of a decision. Returns the parts that brokers had
        aborted before. May be repeated. ItemsFailed if the outcome of some is not clear,
        CommitUnfinished if it never will be."""
        lost, forgotten = [], []
        for some in self._in_groups(decision.commit):
            try:
                admin.end_transactions([part.transaction for part in some], commit=True)
            except ItemsFailed as failed:
                unclear = {of: error for of, error in failed.errors.items() if error.code not in _ENDED}
                if unclear:
                    raise ItemsFailed(f"committing {decision.writing}", unclear, failed.results) from failed
                gone = {of for of, error in failed.errors.items() if error.code not in _ABORTED}
                forgotten += [part for part in some if part.transaction in gone]
                lost += [part for part in some if part.transaction in failed.errors.keys() - gone]
            self._reached(Step.ENDED_SOME)
        self._abort(admin, decision.abort)
        if forgotten:
            raise _forgotten(decision, forgotten)
        return lost

    def _abort(
        self, admin: Admin, transactions: Sequence[PreparedTransaction], timeout_s: float | None = None
    ) -> list[PreparedTransaction]:
        """Abort transactions. Returns those that cannot be aborted now, which stay open until they
        time out; a transaction that has ended before is not among them."""
        left: list[PreparedTransaction] = []
        for some in self._in_groups(transactions):
            try:
                admin.end_transactions(some, commit=False, timeout_s=timeout_s)
            except FairleadError as error:
                errors = error.errors if isinstance(error, ItemsFailed) else dict.fromkeys(some, error)
                stay = [
                    of
                    for of, one in errors.items()
                    if not isinstance(one, BrokerError) or one.code not in _ENDED
                ]
                if stay:
                    LOGGER.warning(
                        "%s: %d transactions that are not wanted could not be aborted: %s",
                        self._name,
                        len(stay),
                        error,
                    )
                left += stay
        return left

    def _in_groups(self, items: Sequence[T]) -> Iterator[Sequence[T]]:
        return (items[start : start + self._at_once] for start in range(0, len(items), self._at_once))


def _described(admin: Admin, transactional_ids: Sequence[str]) -> dict[str, TransactionDescription]:
    """Descriptions of those of the transactional ids that their coordinators know."""
    try:
        return admin.describe_transactions(transactional_ids)
    except ItemsFailed as failed:
        return failed.results


def _named(found: TransactionDescription) -> PreparedTransaction:
    """A described transaction as its task reported it; equal to that if it was not ended since."""
    return PreparedTransaction(found.transactional_id, found.producer_id, found.epoch, len(found.partitions))


def _instead_of(lost: Sequence[Part], last: Decision | None, parts: Sequence[Part]) -> list[Part]:
    """The parts of a repeated batch that take the place of `lost` ones: those with the same rows,
    or all if nothing was committed. RowsLost if some lost part has no such counterpart."""
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


def _forgotten(decision: Decision, parts: Sequence[Part]) -> CommitUnfinished:
    return CommitUnfinished(
        f"{decision.writing}: it was decided to commit it, and nobody finished that before the brokers had "
        f"forgotten {len(parts)} of its transactions, with {sum(part.rows for part in parts)} rows (their "
        "setting transactional.id.expiration.ms): whether these rows are committed cannot be told any more. "
        "Compare what was written with the source, and start with a new checkpoint, or another txnAppId, at "
        "the offsets that you choose"
    )


def _rows_lost(
    decision: Decision, lost: Sequence[Part], *, repeated: bool = False, remembers: bool = True
) -> RowsLost:
    rows = sum(part.rows for part in lost)
    said = (
        f"{decision.writing}: it was decided to commit it, and brokers had aborted {len(lost)} of its "
        f"transactions, with {rows} rows"
    )
    if repeated:
        return RowsLost(
            f"{said}; the batch was written again, and its tasks do not hold the same rows as the first "
            "time, so these rows cannot be told "
            "from those that are committed. Start with a new checkpoint at the offsets that you choose. "
            f"{TIMES}"
        )
    if not remembers:
        return RowsLost(
            f"{said}. The others are committed, and a write without a name is not finished by another: "
            f"compare before you write it again. {TIMES}"
        )
    return RowsLost(
        f"{said}. Start the query again: it writes the batch again, and these rows are committed then. "
        f"{TIMES}"
    )
