"""Transactions: what a transactional producer does in each of its states (`transaction_states`;
KIP-98, Kafka's `TransactionManager`).

One script of requests runs at a time (`coordinators`), and the state says which is next: the
producer id is asked for, partitions that got a batch are added, offsets are submitted, and when a
transaction is to end and nothing of it is open or on the wire any more, it is ended. A batch goes
out only to a partition that is added (`may_send`).

Where the cluster has finalized `transaction.version` 2, the answer to EndTxn has the epoch of the
next transaction (KIP-890). The first batch of a partition could add it then; all are asked for
nevertheless, in one request, for brokers that add them one by one wait for each other.

After any failure in a transaction, of a record without a partition as well as of a batch, it can
only be aborted. Records that have not been sent then fail at once. If the outcome of a batch is not
known, or its sequence is missing, the coordinator is asked for a new epoch after the abort
(KIP-360), under which every partition starts again at sequence 0; a late message of the old epoch
is refused. Fatal errors, such as a newer producer of the same transactional id, end the producer.

Calls wait for their state, each until its own time-out; the work goes on without them, and the same
call again waits for the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import (
    BrokerError,
    ProducerFenced,
    TimedOut,
    TransactionFailed,
    UnsupportedVersion,
    UsageError,
)
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.connection import NEVER_NS
from fairlead_kafka.core.event_log import PRODUCER_FAILED, PRODUCER_FENCED, TRANSACTION_FAILED
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.prepared import PreparedTransaction
from fairlead_kafka.core.script import Scripts, Steps
from fairlead_kafka.producer.coordinators import Coordinators, Refused
from fairlead_kafka.producer.identity import Identity, IdentityState, IdentityTrigger
from fairlead_kafka.producer.ledger import Ledger
from fairlead_kafka.producer.reactions import FATAL_CODES, Reaction, code_of
from fairlead_kafka.producer.settings import ProducerSettings
from fairlead_kafka.producer.submission import (
    BeginTransaction,
    EndTransaction,
    InitTransactions,
    LeaveTransaction,
    PrepareTransaction,
    SendOffsets,
    TransactionOperation,
)
from fairlead_kafka.producer.transaction_calls import ABORT, COMMIT, INIT, OFFSETS, PREPARE, Call, Calls
from fairlead_kafka.producer.transaction_partitions import TransactionPartitions
from fairlead_kafka.producer.transaction_states import TRANSITIONS, TransactionState, TransactionTrigger

_S, _T = TransactionState, TransactionTrigger
_COMMITTABLE = (_S.IN_TRANSACTION, _S.COMMITTING, _S.PREPARING)
_FINISHING = (_S.COMMITTING, _S.ABORTING, _S.PREPARING)
_LOST = (_S.ABORTABLE_ERROR, _S.ABORTING, _S.FATAL_ERROR)


class Transactions:
    """A producer's transactions. Without a transactional id every batch may be sent at any time.
    `quiet()` is true if every record is completed and no batch in flight."""

    def __init__(
        self,
        settings: ProducerSettings,
        network: Network,
        identity: Identity,
        ledger: Ledger,
        rng: Rng,
        quiet: Callable[[], bool],
    ) -> None:
        self.transactional_id = settings.transactional_id
        self.state = TransactionState.UNINITIALIZED
        self.error: Exception | None = None
        """Why the transaction, or the producer, failed."""
        self._network = network
        self._identity = identity
        self._ledger = ledger
        self._quiet = quiet
        self._calls = Calls(ledger)
        self._scripts = Scripts(
            network, rng, Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        )
        self._coordinators = Coordinators(
            network,
            identity,
            settings.transactional_id or "",
            settings.transaction_timeout_ms,
            settings.retry_backoff_ms,
            lambda: self.state in _COMMITTABLE,
        )
        self._busy = False
        self._partitions = TransactionPartitions()
        self._started = False  # the coordinator knows of the transaction
        self._prepared: PreparedTransaction | None = None  # the last one
        self._serve: dict[type, Callable[..., None]] = {
            InitTransactions: self._init,
            BeginTransaction: self._begin,
            SendOffsets: self._send_offsets,
            EndTransaction: self._end,
            PrepareTransaction: self._prepare,
            LeaveTransaction: self._leave,
        }

    # For the accumulator and the sender

    @property
    def transactional(self) -> bool:
        """True if every record belongs to a transaction."""
        return self.transactional_id is not None

    def partition_used(self, topic: str, partition: int) -> None:
        """Called when a batch was begun for this partition: it has to be added to the
        transaction."""
        if self.transactional_id is not None:
            self._partitions.use(TopicPartition(topic, partition))

    def may_send(self, topic: str, partition: int) -> bool:
        """True if a batch of the partition may be sent: the partition is part of the transaction at
        its coordinator. Once that changes, `take_released` names the partition."""
        return self.transactional_id is None or (topic, partition) in self._partitions.added

    # For the machine

    @property
    def hurries(self) -> bool:
        """True if nothing should linger: someone waits for all of it to be written."""
        return self.state in (_S.COMMITTING, _S.PREPARING)

    def refusal(self) -> Exception | None:
        """The error for records that are submitted now; None: records are accepted."""
        if not self.transactional or self.state in _COMMITTABLE:
            return None
        return self.losses() or UsageError("no transaction is open; call begin_transaction before sending")

    def losses(self) -> Exception | None:
        """The error for records that were not sent yet (in FATAL_ERROR: for all records); None:
        they are sent."""
        return self.error if self.state in _LOST else None

    def failed(self, error: Exception) -> None:
        """Called when records failed with `error`: the transaction cannot be committed any more."""
        if self.state not in (*_COMMITTABLE, _S.ABORTABLE_ERROR, _S.ABORTING):
            return
        if isinstance(error, UnsupportedVersion) or code_of(error) in FATAL_CODES:
            self._doom(
                Reaction.FENCED if code_of(error) == ErrorCode.PRODUCER_FENCED else Reaction.FATAL, error
            )
        elif self.state in _COMMITTABLE:
            self._fail(error)

    def trouble(self) -> str:
        """Why the coordinator has not done yet what it was asked for, in words."""
        problem = self._coordinators.problem
        return self._network.trouble() if problem is None else f"last problem: {problem}"

    def operate(self, operation: TransactionOperation) -> None:
        """Begin an operation, have it wait for the same one that is under way, or refuse it."""
        if not self.transactional:
            self._calls.refuse(
                operation,
                UsageError("this producer has no transactional.id; give it one to use transactions"),
            )
        elif (
            self.state is TransactionState.FATAL_ERROR
            and self.error is not None
            and not isinstance(operation, LeaveTransaction)
        ):
            self._calls.refuse(operation, self.error)
        else:
            self._serve[type(operation)](operation)

    def advance(self, now_ns: int) -> None:
        """Go on with the call under way, begin the next one, and fail operations whose time is
        up."""
        self._scripts.advance(now_ns)
        while not self._busy and self._begin_next():
            self._scripts.advance(now_ns)
        self._calls.expire(now_ns, self._lateness)

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, at which `advance` has something to do if nothing happens before;
        None: at no time."""
        return min(
            (due for due in (self._scripts.deadline_ns(), self._calls.deadline_ns()) if due is not None),
            default=None,
        )

    def take_released(self) -> list[TopicPartition]:
        """Take the partitions that were added to the transaction since the last call, and may be
        sent to."""
        return self._partitions.take_released()

    def close(self, error: Exception) -> None:
        """Fail all calls with `error`, as the producer ends."""
        if self.state is not TransactionState.FATAL_ERROR:
            self._end_with(error)

    def check(self) -> None:
        """Raise CheckFailed unless the transaction's partitions fit its state."""
        if self.state is not TransactionState.FATAL_ERROR:
            self._partitions.check(started=self._started, asking=self._busy)

    # Calls

    def _init(self, operation: InitTransactions) -> None:
        if self._calls.joins(operation, INIT):
            return
        if self.state is TransactionState.UNINITIALIZED:
            self._fire(_T.INIT)
            self._calls.current = Call(INIT, operation)
        elif operation.again and self.state is TransactionState.READY:
            self._ledger.resolve(operation.completion)
        else:
            self._refuse_state(operation, INIT)

    def _begin(self, operation: BeginTransaction) -> None:
        if self._calls.current is not None:
            self._calls.refuse_unfinished(operation, "begin_transaction")
        elif self.state is TransactionState.READY:
            self._fire(_T.BEGIN)
            self._ledger.resolve(operation.completion)
        elif operation.again and self.state is TransactionState.IN_TRANSACTION:
            self._ledger.resolve(operation.completion)
        else:
            self._refuse_state(operation, "begin_transaction")

    def _send_offsets(self, operation: SendOffsets) -> None:
        if self._calls.current is not None:
            self._calls.refuse_unfinished(operation, OFFSETS)
        elif self.state is TransactionState.IN_TRANSACTION:
            self._calls.offsets.append((operation, Call(OFFSETS, operation)))
        else:
            self._refuse_state(operation, OFFSETS)

    def _end(self, operation: EndTransaction) -> None:
        name = COMMIT if operation.commit else ABORT
        if self._calls.joins(operation, name):
            return
        if self.state is TransactionState.IN_TRANSACTION and operation.commit:
            self._fire(_T.COMMIT)
            self._calls.current = Call(COMMIT, operation)
        elif self.state in (_S.IN_TRANSACTION, _S.ABORTABLE_ERROR) and not operation.commit:
            self._abort(operation)
        elif operation.again and self.state is TransactionState.READY:
            self._ledger.resolve(operation.completion)  # it has ended since it was asked for the first time
        else:
            self._refuse_state(operation, name)

    def _prepare(self, operation: PrepareTransaction) -> None:
        if self._calls.joins(operation, PREPARE):
            return
        if self.state is TransactionState.IN_TRANSACTION:
            self._fire(_T.PREPARE)
            self._calls.current = Call(PREPARE, operation)
        elif operation.again and self.state is TransactionState.UNINITIALIZED:
            self._ledger.resolve(operation.completion, self._prepared)
        else:
            self._refuse_state(operation, PREPARE)

    def _leave(self, operation: LeaveTransaction) -> None:
        if self.state in (_S.IN_TRANSACTION, _S.ABORTABLE_ERROR):
            self._abort(operation)
        elif self._calls.current is not None and self.state in _FINISHING:
            self._calls.current.waiters.append(operation)
        else:
            self._ledger.resolve(operation.completion, False)

    def _abort(self, operation: EndTransaction | LeaveTransaction) -> None:
        self._fire(_T.ABORT)
        self._calls.current = Call(ABORT, operation)
        self.error = self.error or TransactionFailed(
            f"{self._who()}: the transaction was aborted before the records were sent"
        )
        self._calls.fail_offsets(self.error)

    # What is next

    def _begin_next(self) -> bool:
        state, coordinators, offsets = self.state, self._coordinators, self._calls.offsets
        if state is TransactionState.INITIALIZING:
            self._run("the producer id", coordinators.initialize(), self._initialized)
        elif state in _COMMITTABLE and self._partitions.wanted:
            script = coordinators.add_partitions(self._partitions.ask)
            self._run("adding partitions", script, self._added_partitions)
        elif state in _COMMITTABLE and offsets:
            self._run("adding offsets", self._write_offsets(offsets[0][0]), self._offsets_written)
        elif state is TransactionState.PREPARING and self._quiet():
            self._leave_prepared()
        elif state in (_S.COMMITTING, _S.ABORTING) and self._quiet():
            if self._started:
                self._run(
                    "ending the transaction",
                    coordinators.end(state is TransactionState.COMMITTING),
                    self._ended,
                )
            else:
                self._ended(None)
        else:
            return False
        return True

    def _run(self, what: str, script: Steps[object], done: Callable[[Exception | None], None]) -> None:
        def finished(_: object, error: Exception | None) -> None:
            self._busy = False
            if self.state is not TransactionState.FATAL_ERROR:
                done(error)

        self._busy = True
        self._scripts.start(what, script, NEVER_NS, finished)

    def _write_offsets(self, operation: SendOffsets) -> Steps[None]:
        yield from self._coordinators.add_offsets(operation.group.group_id)
        self._started = True
        yield from self._coordinators.commit_offsets(operation.offsets, operation.group)

    def _initialized(self, error: Exception | None) -> None:
        if error is None:
            self._fire(_T.GRANTED)
            self._calls.finish()
        elif (
            isinstance(error, Refused)
            and error.reaction is Reaction.REFUSED
            and self._identity.state is IdentityState.AWAITED
        ):
            self._fire(_T.REFUSED)
            self._calls.finish(error.cause)
        else:
            self._react(error)

    def _added_partitions(self, error: Exception | None) -> None:
        self._partitions.answered(added=error is None)
        if error is None:
            self._started = True
        else:
            self._refused_part(error)

    def _offsets_written(self, error: Exception | None) -> None:
        if error is None:
            self._calls.finish_offsets()
        else:
            self._refused_part(error)

    def _refused_part(self, error: Exception) -> None:
        # By the second protocol the coordinator is asked for the abort of a transaction that may
        # not have begun: it knows, and if it has ended it for being too slow, it gives the next
        # epoch.
        if isinstance(error, Refused) and self._coordinators.ends_by_epoch:
            self._started = True
        self._react(error)

    def _leave_prepared(self) -> None:
        who = (
            self.transactional_id or "",
            self._identity.producer_id,
            self._identity.epoch,
            len(self._partitions.added),
        )
        self._prepared = PreparedTransaction(*who) if self._started else None
        self._forget()
        self._fire(_T.PREPARED)
        self._calls.finish(value=self._prepared)

    def _ended(self, error: Exception | None) -> None:
        identity, aborting = self._identity, self.state is TransactionState.ABORTING
        if aborting and isinstance(error, Refused) and error.reaction is Reaction.BUMP:
            identity.bump_wanted = (
                True  # the coordinator knows nothing of the producer id, so there is nothing to abort
            )
        elif aborting and isinstance(error, Refused):
            self._doom(error.reaction, error.cause)
            return
        elif error is not None:
            self._react(error)
            return
        self._forget()
        if not identity.bump_wanted:
            self._fire(_T.ENDED)
            self._calls.finish()
        elif self._coordinators.can_bump:
            self._fire(_T.ENDED_STALE)
        else:
            text = (
                "the transaction was aborted, but its coordinator cannot give the new epoch that this "
                "needs (KIP-360, Kafka 2.5)"
            )
            self._doom(Reaction.FATAL, UnsupportedVersion(f"{text}; close this producer and make a new one"))

    def _forget(self) -> None:
        """Reset the state of the transaction, which is over."""
        self._started, self.error = False, None
        self._partitions.forget()

    # Outcomes

    def _react(self, error: Exception) -> None:
        """React to the error of a script; `Abandoned`: the transaction has failed already."""
        if not isinstance(error, Refused):
            return
        if (
            error.reaction not in (Reaction.ABORT, Reaction.BUMP)
            or self.state is TransactionState.INITIALIZING
        ):
            self._doom(error.reaction, error.cause)
            return
        self._identity.bump_wanted = self._identity.bump_wanted or error.reaction is Reaction.BUMP
        if self.state in _COMMITTABLE:
            self._fail(error.cause)

    def _fail(self, cause: Exception) -> None:
        self._fire(_T.FAILED)
        self._network.events.log(TRANSACTION_FAILED, self.transactional_id, cause)
        self.error = TransactionFailed(f"{self._who()}: the transaction has failed; abort it: {cause}")
        self.error.__cause__ = cause
        self._calls.fail_all(self.error)

    def _doom(self, reaction: Reaction, cause: Exception) -> None:
        error = cause
        if reaction is Reaction.FENCED:
            why = "a newer one has taken over, or its transaction took longer than transaction.timeout.ms"
            said = cause.context if isinstance(cause, BrokerError) else cause
            error = ProducerFenced(code_of(cause), f"{self._who()} was shut out: {why}; close it ({said})")
        elif isinstance(cause, BrokerError):
            error = BrokerError(cause.code, f"{self._who()} cannot go on; close it ({cause.context})")
        self._fire(_T.DOOMED)
        who = (self.transactional_id, self._identity.producer_id, self._identity.epoch)
        if reaction is Reaction.FENCED:
            self._network.events.log(PRODUCER_FENCED, *who, cause)
        else:
            self._network.events.log(PRODUCER_FAILED, self.transactional_id, cause)
        self._end_with(error)
        if self._identity.state in (IdentityState.AWAITED, IdentityState.READY):
            self._identity.error = error
            self._identity.fire(IdentityTrigger.GIVEN_UP)

    def _end_with(self, error: Exception) -> None:
        self.state, self.error = TransactionState.FATAL_ERROR, error
        self._calls.fail_all(error)
        self._scripts.close(error)

    def _fire(self, trigger: TransactionTrigger) -> None:
        following = TRANSITIONS.get((self.state, trigger))
        if following is None:
            raise UsageError(f"a transactional producer that is {self.state.name} cannot be {trigger.name}")
        self.state = following

    def _refuse_state(self, operation: TransactionOperation, name: str) -> None:
        error = self.error if self.state is TransactionState.ABORTABLE_ERROR else None
        self._calls.refuse(operation, error or UsageError(f"{name} cannot be called now: {self.state.value}"))

    def _who(self) -> str:
        return (
            f"producer of transactional.id {self.transactional_id!r} (id {self._identity.producer_id}, "
            f"epoch {self._identity.epoch})"
        )

    def _lateness(self, name: str) -> TimedOut:
        why = self.trouble()
        if self._coordinators.problem is None and self.state in _FINISHING and not self._quiet():
            why = f"{self._ledger.records_open} records are still on their way"
        return TimedOut(
            f"{name} has not ended within the time allowed ({why}); it goes on, call it again to wait for "
            "its end"
        )
