"""The ledger of submitted records: which are not completed, their memory, and flushes that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.effects import Call, Effect, Resolve
from fairlead_kafka.core.machine import MemoryPool
from fairlead_kafka.producer.batch_states import BatchTrigger
from fairlead_kafka.producer.metrics import Recorder
from fairlead_kafka.producer.queues import Batch
from fairlead_kafka.producer.submission import Calls, Int64, Piece, Submission

T = TypeVar("T")


class Ledger:
    """Completes every submitted row exactly once: frees memory, ends flushes, calls callbacks."""

    def __init__(self, memory: MemoryPool, recorder: Recorder) -> None:
        self._memory = memory
        self._recorder = recorder
        self._open: dict[int, Submission] = {}
        self._newest_ns = 0
        self.batches: dict[Batch, None] = {}
        """Every batch that is not completed, in the order in which they were cut."""
        self._serial = 0
        self._flushes: list[tuple[int, Completion[None]]] = []
        self._freed_bytes = 0
        self._effects: list[Effect] = []
        self.records_open = 0
        """Records submitted and not completed."""
        self._delivered: dict[str, int] = {}
        """Records delivered in this step by topic, to be counted at its end."""
        self.on_completed: Callable[[Batch], None] | None = None
        """Called with each batch just before its records are completed."""
        self.on_failure: Callable[[Exception], None] = lambda error: None
        """Called whenever records fail, whatever failed them."""

    def enter(self, submission: Submission) -> None:
        """Enter a submission that arrived, and give it its serial number."""
        self._serial += 1
        submission.serial = self._serial
        # Threads that submit at the same time may get here the other way round: the first here
        # expires first.
        submission.created_ns = self._newest_ns = max(submission.created_ns, self._newest_ns)
        self.records_open += submission.rows
        if submission.rows:
            self._open[submission.serial] = submission
            self._recorder.entered(submission)

    def held_bytes(self) -> int:
        """Bytes of buffer.memory that open submissions hold."""
        return sum(submission.reserved_bytes for submission in self._open.values())

    def open_submissions(self) -> Iterable[Submission]:
        """The submissions of which not every row is completed."""
        return self._open.values()

    def oldest_ns(self) -> int | None:
        """Monotonic time, ns, at which the first incomplete submission was submitted; None: there
        is none."""
        for submission in self._open.values():
            return submission.created_ns
        return None

    def watch(self, batch: Batch) -> None:
        """Enter a batch that was cut from the queues; `finish` completes its records once."""
        self.batches[batch] = None

    def split(self, batch: Batch, parts: Iterable[Batch]) -> None:
        """Replace a batch by `parts`, which have its records and are completed instead."""
        batch.fire(BatchTrigger.COMPLETED)
        del self.batches[batch]
        self.batches.update(dict.fromkeys(parts))

    def open_by_topic(self) -> dict[str, int]:
        """Records submitted and not completed, by topic."""
        counts: dict[str, int] = {}
        for submission in self._open.values():
            counts[submission.topic] = counts.get(submission.topic, 0) + submission.rows
        return counts

    def finish(
        self,
        batch: Batch,
        base_offset: int,
        log_append_ms: int,
        error: Exception | None,
        refused: Sequence[tuple[Piece, Exception]] = (),
    ) -> None:
        """Complete all records of a batch; a batch that is completed already is left alone. Times
        are milliseconds since 1970.

        `refused`: its pieces, each with an error of its own, if the broker told its records apart.
        """
        if batch.done:
            return
        for (submission, start, stop, order, held_bytes), why in refused:
            self._completed(
                submission,
                *submission.complete(start, stop, order, held_bytes, batch.queue.partition, -1, -1, why),
            )
        if refused:
            batch.pieces = []
        if self.on_completed is not None:
            self.on_completed(batch)
        partition, offset = batch.queue.partition, base_offset
        for submission, start, stop, order, held_bytes in batch.pieces:
            freed, call = submission.complete(
                start, stop, order, held_bytes, partition, offset, log_append_ms, error
            )
            self._freed_bytes += freed
            if call is not None:
                self._effects.append(Call(*call))
            if not submission.rows:
                del self._open[submission.serial]
            if offset >= 0:
                offset += stop - start
        batch.fire(BatchTrigger.COMPLETED)
        del self.batches[batch]
        self.records_open -= batch.count
        name = batch.queue.topic.name
        if error is None:
            self._delivered[name] = self._delivered.get(name, 0) + batch.count
        else:
            self._recorder.failed(name, batch.count)
            self.on_failure(error)

    def fail_rows(
        self, submission: Submission, order: Int64 | None, error: Exception, partition: int = -1
    ) -> None:
        """Fail rows that were never queued: `order` (rows of its columns), or all (None)."""
        sizes, base = submission.sizes_bytes(), submission.base
        if order is None:
            piece = Piece(submission, base, base + len(sizes), None, int(np.sum(sizes)))
        else:
            piece = Piece(submission, 0, len(order), order + base, int(np.sum(sizes[order])))
        self.fail_pieces([piece], error, partition)

    def fail_pieces(self, pieces: Iterable[Piece], error: Exception, partition: int = -1) -> None:
        """Fail with `error` the rows of pieces that are in no batch."""
        for submission, start, stop, order, held_bytes in pieces:
            if stop > start:
                freed_bytes, call = submission.complete(
                    start, stop, order, held_bytes, partition, -1, -1, error
                )
                self.records_open -= stop - start
                self._recorder.failed(submission.topic, stop - start)
                self.on_failure(error)
                self._completed(submission, freed_bytes, call)

    def _completed(self, submission: Submission, freed_bytes: int, call: Calls | None) -> None:
        self._freed_bytes += freed_bytes
        if call is not None:
            self._effects.append(Call(*call))
        if not submission.rows:
            del self._open[submission.serial]

    def flush(self, completion: Completion[None]) -> None:
        """Answer `completion` once everything that has arrived so far is completed."""
        self._flushes.append((self._serial, completion))

    @property
    def flushing(self) -> bool:
        """True while a flush waits."""
        return bool(self._flushes)

    def resolve(
        self, completion: Completion[T], value: T | None = None, error: Exception | None = None
    ) -> None:
        """Answer an operation with a value or an error."""
        self._effects.append(Resolve(completion, value, error))

    def check(self) -> None:
        """Raise CheckFailed unless counts are those of the submissions, between two steps."""
        same("records open", self.records_open, sum(submission.rows for submission in self._open.values()))
        same("submissions open", list(self._open), [submission.serial for submission in self._open.values()])
        for submission in self._open.values():
            holds(f"submission {submission.serial} is open with {submission.rows} rows", submission.rows > 0)
            holds(
                f"submission {submission.serial} holds {submission.reserved_bytes} bytes",
                submission.reserved_bytes >= 0,
            )
        same("bytes freed and not given back", self._freed_bytes, 0)
        oldest = next(iter(self._open), self._serial + 1)
        holds(
            f"a flush waits for nothing: {self._flushes}, the oldest is {oldest}",
            all(serial >= oldest for serial, _ in self._flushes),
        )

    def take_effects(self) -> list[Effect]:
        """Give memory back, answer the flushes that are over, and return the effects gathered."""
        if self._delivered:
            for name, count in self._delivered.items():
                self._recorder.delivered(name, count)
            self._delivered.clear()
        if self._freed_bytes:
            self._memory.release(self._freed_bytes)
            self._freed_bytes = 0
        if self._flushes:
            oldest = next(iter(self._open), self._serial + 1)
            over = [completion for serial, completion in self._flushes if serial < oldest]
            if over:
                self._flushes = [
                    (serial, completion) for serial, completion in self._flushes if serial >= oldest
                ]
                for completion in over:
                    self.resolve(completion)
        effects, self._effects = self._effects, []
        return effects
