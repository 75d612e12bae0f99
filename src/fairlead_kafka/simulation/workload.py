"""The records that an application of a world sends, and their results: the ledger that the checks
compare with the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, NamedTuple, TypeVar

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.producer import Flush
from fairlead_kafka.simulation.application import Application, SubmittedRecords
from fairlead_kafka.simulation.script import Script

KEYS = 5
STYLES = ("unkeyed", "keyed", "explicit", "mixed")


@dataclass(frozen=True, slots=True)
class Sending:
    """One submission to make: `rows` records of `size_bytes` to `topic`."""

    topic: str
    style: str
    rows: int
    size_bytes: int
    partitions: int
    """Number of the topic's partitions, for records with an explicit one."""


class Rows(NamedTuple):
    """Records of one submission. Without `timestamps_ms` all have the present time."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    partitions: Sequence[int] | None = None
    timestamps_ms: Sequence[int] | None = None


@dataclass(slots=True)
class RecordResult:
    """The result of one record, as its application was told; times in ns, -1: not known yet."""

    submitted_ns: int
    placed: bool
    """True if it had a key (not ignored) or an explicit partition, and was bound when it was
    submitted.
    """
    topic: str
    completed_ns: int = -1
    partition: int = -1
    offset: int = -1
    error: Exception | None = None

    @property
    def acknowledged(self) -> bool:
        """True if the record was delivered, as far as the application knows."""
        return self.completed_ns >= 0 and self.error is None


T = TypeVar("T")


@dataclass(eq=False)
class Completion(Generic[T]):
    """Implements `core.completion.Completion` by a callback."""

    then: Callable[[T | None, Exception | None], None]
    _done: bool = False

    def done(self) -> bool:
        """True once there is a result or an error."""
        return self._done

    def set_result(self, value: T) -> None:
        """Called when the operation succeeded."""
        self._done = True
        self.then(value, None)

    def set_error(self, error: Exception) -> None:
        """Called when the operation failed."""
        self._done = True
        self.then(None, error)


class Sender:
    """Sends through one application, waits for memory as `send` does, and keeps the results."""

    def __init__(self, number: int, script: Script, rng: Random, violated: Callable[[str], None]) -> None:
        self.number = number
        self.results: list[RecordResult] = []
        """Results of all records, by serial."""
        self.abandoned: set[int] = set()
        """Serials of records whose application died before it was told of them."""
        self.refused = 0
        """Submissions that found no room in buffer.memory within max.block.ms."""
        self.application: Application | None = None
        self._script = script
        self._rng = rng
        self._violated = violated
        self._blocked: deque[tuple[int, Sending]] = deque()
        self._pumping = False

    def attach(self, application: Application) -> None:
        """Connect the sender to its application, before the first record."""
        self.application = application
        application.memory.on_release = self._released

    @property
    def name(self) -> str:
        """The sender's name in messages."""
        return f"producer {self.number}"

    @property
    def open(self) -> int:
        """Number of records that are not completed, plus submissions that wait for memory."""
        incomplete = sum(
            1
            for serial, result in enumerate(self.results)
            if result.completed_ns < 0 and serial not in self.abandoned
        )
        return len(self._blocked) + incomplete

    @property
    def finished(self) -> bool:
        """True if the sender begins nothing more by itself."""
        return True

    def finish(self) -> None:
        """Begin nothing more, once the submissions under way have ended."""

    def send_last(self, sending: Sending) -> None:
        """Send the last records, after all faults have ended."""
        self.send(sending)

    def send(self, sending: Sending) -> None:
        """Submit records, or queue them until there is memory."""
        assert self.application is not None
        self._blocked.append((self.application.host.now_ns(), sending))
        if len(self._blocked) == 1:
            self._pump()

    def flush(self) -> None:
        """Flush, and check that all records submitted before are completed then."""
        application = self._app()
        covered = len(self.results)

        def flushed(_: None, error: Exception | None) -> None:
            late = sum(1 for result in self.results[:covered] if result.completed_ns < 0)
            if late or error is not None:
                self._violated(
                    f"{self.name}: flush ended with {late} of {covered} records incomplete ({error})"
                )

        application.host.submit(application.handle, Flush(Completion(flushed)))

    def completed(
        self,
        submitted: SubmittedRecords,
        rows: Sequence[int],
        partition: int,
        base_offset: int,
        error: Exception | None,
    ) -> None:
        """Note completed records; an `OnCompleted` function."""
        now_ns = self._app().host.now_ns()
        for place, row in enumerate(rows):
            result = self.results[submitted.serial + row]
            if result.completed_ns >= 0:
                self._violated(f"{self.name}: record {submitted.serial + row} was completed twice")
            result.completed_ns, result.partition, result.error = now_ns, partition, error
            result.offset = base_offset + place if base_offset >= 0 else -1

    def value(self, serial: int, size_bytes: int) -> bytes:
        """The value of record `serial`, at least `size_bytes` long: no other record of the world
        has the same.
        """
        return (b"%d/%d/" % (self.number, serial)).ljust(size_bytes, b".")

    # Inside

    def _app(self) -> Application:
        assert self.application is not None
        return self.application

    def _released(self) -> None:
        if self._blocked and not self._pumping:
            self._pumping = True
            self._script.at(0, self._pump)

    def _pump(self) -> None:
        application = self._app()
        self._pumping = False
        max_block_ns = ms_to_ns(application.settings["max.block.ms"])
        while self._blocked:
            asked_ns, sending = self._blocked[0]
            if application.host.now_ns() - asked_ns >= max_block_ns:
                self.refused += 1
            elif not self._submit(sending):
                break
            self._blocked.popleft()
        application.memory.wanted = bool(self._blocked)
        if self._blocked:
            application.host.wake(application.handle)
            self._script.at(self._blocked[0][0] + max_block_ns, self._give_up, self._blocked[0])

    def _give_up(self, waiting: tuple[int, Sending]) -> None:
        if self._blocked and self._blocked[0] is waiting:
            self._pump()

    def rows(self, sending: Sending, serials: range) -> Rows:
        """Records of a submission; the records get the numbers `serials`."""
        rng = self._rng
        values = [self.value(serial, sending.size_bytes) for serial in serials]
        keys: list[bytes | None] | None = None
        partitions: list[int] | None = None
        if sending.style in ("keyed", "mixed"):
            keys = [
                b"key %d" % rng.randrange(KEYS) if sending.style == "keyed" or rng.random() < 0.5 else None
                for _ in serials
            ]
        if sending.style in ("explicit", "mixed"):
            count = sending.partitions
            partitions = [
                rng.randrange(count) if sending.style == "explicit" or rng.random() < 0.3 else -1
                for _ in serials
            ]
        return Rows(values, keys, partitions)

    def _submit(self, sending: Sending) -> bool:
        """Submit records. False: there is no memory for them now."""
        first = len(self.results)
        rows = self.rows(sending, range(first, first + sending.rows))
        keys, partitions = rows.keys, rows.partitions
        submitted = self._app().submit(sending.topic, rows.values, keys, partitions, rows.timestamps_ms)
        if submitted is None:
            return False
        by_key = not self._app().settings["partitioner.ignore.keys"]
        for place in range(sending.rows):
            placed = (by_key and keys is not None and keys[place] is not None) or (
                partitions is not None and partitions[place] >= 0
            )
            self.results.append(RecordResult(submitted.created_ns, placed, sending.topic))
        return True
