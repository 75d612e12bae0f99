"""A member that reads, processes and writes in transactions: for each record read it writes one to
the output topic, and commits offsets in the same transaction (KIP-447).

A new process has a new transactional id, so that only its group's generation prevents a hanging
process from committing records that others have read meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate

from fairlead_kafka.base.errors import FairleadError, ProducerFenced, TimedOut, TransactionFailed
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer import Seek
from fairlead_kafka.consumer.groups import GetGroup
from fairlead_kafka.producer.submission import BeginTransaction, EndTransaction, InitTransactions, SendOffsets
from fairlead_kafka.simulation.application import Application, SubmittedRecords
from fairlead_kafka.simulation.group_ledger import Claim, CommitResult, Place, partition_of
from fairlead_kafka.simulation.member import MemberProcess, Role
from fairlead_kafka.simulation.process import CALL_TIMEOUT_MS, P, Part, Stage, Steps, T, called
from fairlead_kafka.simulation.workload import Completion

PRODUCER = {
    "linger.ms": 0,
    "request.timeout.ms": 500,
    "delivery.timeout.ms": 1_500,
    "max.block.ms": 300,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.max.ms": 100,
    "socket.connection.setup.timeout.ms": 200,
    "transaction.timeout.ms": 900,
}
"""Configs of the producers: an open transaction of a process that died holds up its group for
transaction.timeout.ms.
"""


def output_of(place: Place, offset: int) -> bytes:
    """The record that is written for the one at `offset` of `place`."""
    return f"{place[0]}/{place[1]}/{offset}".encode()


class Processor(MemberProcess):
    """One process of a group's member with a transactional producer of its own."""

    def __init__(self, stage: Stage, role: Role, ended: Callable[[], None]) -> None:
        super().__init__(stage, role, ended)
        producer = {
            **PRODUCER,
            "bootstrap.servers": role.config["bootstrap.servers"],
            "transactional.id": f"{role.ledger.group}-{role.number}",
        }
        self._application = Application(stage.host, producer, role.rng, self._delivered)
        self._committed: dict[Claim, int] = {}
        self._ready = False
        self._in_transaction = False

    def position(self, place: Place) -> int:
        """The offset of the next record of the partition `place` that is not processed yet; while a
        transaction is open, the one that it goes back to if it is aborted. -1: not known yet."""
        claim = self.claims.get(place)
        if self._in_transaction and claim is not None:
            return self._committed.get(claim, claim.base)
        return super().position(place)

    # A transaction for what one poll gave

    def _work(self, taken: Sequence[tuple[Claim, int, bytes]]) -> Steps:
        self._in_transaction = True
        yield from self._process(taken)
        self._in_transaction = False

    def _process(self, taken: Sequence[tuple[Claim, int, bytes]]) -> Steps:
        if not self._ready and not (yield from self._initialize()):
            return
        yield from self._ask(BeginTransaction)
        values = [output_of(claim.place, offset) for claim, offset, _ in taken]
        assert self._ledger.output is not None
        self._application.submit(self._ledger.output, values)
        offsets = self._positions()
        who, _ = yield from self._call(GetGroup)
        results = self._asked(offsets, who)
        _, error = yield from self._ask(SendOffsets, self._deadline_ns(), offsets, who)
        if error is None:
            yield self._rng.random() * self._habits.work_ms
        yield from self._finish(results, error)

    def _commit(self, *, waits: bool) -> Steps:
        """Do nothing: offsets are committed with their transactions alone."""
        return
        yield

    def _initialize(self) -> Part[bool]:
        again, error = False, None
        while not self._ready and (error is None or isinstance(error, TimedOut)):
            _, error = yield from self._ask(InitTransactions, self._deadline_ns(), again)
            self._ready, again = error is None, True
        if not self._ready:
            self._give_up(error)
        return self._ready

    def _finish(self, results: Sequence[CommitResult], failed: Exception | None) -> Steps:
        """Commit the transaction; or, if it `failed`, abort it and read on from where the last one
        ended."""
        commits, again, may_stand = failed is None, False, False
        while True:
            may_stand = may_stand or commits
            _, error = yield from self._ask(EndTransaction, self._deadline_ns(), commits, again)
            if isinstance(error, TransactionFailed) and commits:
                commits = again = may_stand = False
            elif isinstance(error, TimedOut):
                again = True
            else:
                break
        if error is not None:
            for commit in results:
                commit.never = not may_stand
            self._give_up(error)
        elif commits:
            self._completed(results, None)
            self._committed.update((commit.claim, commit.offset) for commit in results)
        else:
            for commit in results:
                commit.never = True
            yield from self._go_back()

    def _go_back(self) -> Steps:
        """Read again from the last commit, or from where the claim began."""
        places = {
            partition_of(place): self._committed.get(claim, claim.base)
            for place, claim in self.claims.items()
            if claim.base >= 0
        }
        if not places:
            return
        generations, error = yield from self._call(Seek, places)
        if error is not None:
            return  # the partitions were lost meanwhile, as the next poll tells
        self._generations = dict(generations)
        for claim in self.claims.values():
            if claim.base >= 0:
                claim.position = self._committed.get(claim, claim.base)
                claim.runs.append([])

    # Inside

    def _delivered(
        self,
        submitted: SubmittedRecords,
        rows: Sequence[int],
        partition: int,
        offset: int,
        error: Exception | None,
    ) -> None:
        """Do nothing: the outcome of a record is that of its transaction."""

    def _ask(
        self, operation: Callable[Concatenate[Completion[T], P], object], *args: P.args, **kwargs: P.kwargs
    ) -> Part[tuple[T, Exception | None]]:
        return called(self._application.handle, operation, *args, **kwargs)

    def _deadline_ns(self) -> int:
        return self._host.now_ns() + ms_to_ns(CALL_TIMEOUT_MS)

    def _give_up(self, error: Exception | None) -> None:
        """End this process, whose producer cannot go on: it was fenced for being too slow."""
        if not isinstance(error, FairleadError):
            raise error or AssertionError("there is an error")
        if not isinstance(error, ProducerFenced):
            self._violated(f"group {self._ledger.group}: process {self.number} was told {error!r}")
        self._end("died")

    def _removed(self) -> None:
        self._host.remove(self._application.handle)
        super()._removed()
