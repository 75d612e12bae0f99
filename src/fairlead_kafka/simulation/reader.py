"""Readers: real consumer machines that look at one partition at a time, from an offset to its end,
and ask for offsets by time.

A look asks for the end and the start of the log, for the first record at or after each of some
times, for the newest record, and then reads from an offset to that end. The answers are recorded,
and checked once the world is over (`reading_checks`): only then is it known which transactions were
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer import (
    Assign,
    Chunk,
    ConsumerMachine,
    FindOffsets,
    OffsetAndTimestamp,
    Seek,
    Take,
    decode_chunk,
)
from fairlead_kafka.core.partition_offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from fairlead_kafka.records import scan
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.workload import Completion

TAKE_BYTES = 1 << 20
Place = tuple[str, int]


class Read(NamedTuple):
    """One record that a reader was given."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass
class Look:
    """One look at a partition by a reader: what it asks for, and the answers."""

    place: Place
    committed: bool
    """True if it reads with isolation.level=read_committed."""
    begun_ns: int
    seek: int = 0
    times_ms: Sequence[int] | None = ()
    """Timestamps to look up, ms; None: no lookup by time, nor of the newest record."""
    end: int = -1
    """The latest offset by ListOffsets, before anything was read; -1: not told yet."""
    start: int = -1
    """The earliest offset by ListOffsets, before anything was read; -1: not told yet."""
    found: dict[int, OffsetAndTimestamp | None] = field(default_factory=dict)
    """Time (ms) or MAX_TIMESTAMP → the answer of ListOffsets."""
    records: list[Read] = field(default_factory=list)
    markers: list[tuple[int, int]] = field(default_factory=list)
    """(offset, timestamp) of the transaction markers that were passed."""
    position: int = -1
    """The offset up to which it read; -1: it did not begin to."""
    error: FairleadError | None = None
    """The error that ended the look; None if it reached its end."""
    stopped_ns: int = -1
    damage: bool = False
    """True if the first batch at or behind `position` was damaged on the leader's disk."""

    @property
    def whole(self) -> bool:
        """True if the look read up to the end that ListOffsets reported."""
        return self.error is None and self.position >= self.end >= 0

    def __str__(self) -> str:
        level = "read_committed" if self.committed else "read_uncommitted"
        return f"{level} look at {self.place[0]}-{self.place[1]}, begun at {self.begun_ns / 1e6:.1f} ms"


P = ParamSpec("P")
T = TypeVar("T")
Made = Callable[[Completion[object]], object]
Part: TypeAlias = Generator[Made, "tuple[object, Exception | None]", T]
"""A part of a look, which returns a `T`. It waits for the answer to the operation that it
yields."""


def _asked(
    operation: Callable[Concatenate[Completion[T], P], object], *args: P.args, **kwargs: P.kwargs
) -> Part[tuple[T, Exception | None]]:
    """Submit `operation(completion, *args, **kwargs)`; its result, which is nothing with an error,
    and its error."""

    def make(done: Completion[object]) -> object:
        return operation(cast("Completion[T]", done), *args, **kwargs)

    value, error = yield make
    return cast("T", value), error  # the answer is the operation's


class Reader:
    """A consumer that looks at one partition after the other. `look` begins a look, which has ended
    once its `stopped_ns` is set."""

    def __init__(self, host: VirtualHost, bootstrap_servers: str, committed: bool, rng: Random) -> None:
        config = {
            "bootstrap.servers": bootstrap_servers,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "auto.offset.reset": "none",
            "fetch.max.wait.ms": 40,
            "request.timeout.ms": 400,
            "fetch.max.bytes": rng.choice([500, 5_000, 1_000_000]),
            "max.partition.fetch.bytes": rng.choice([300, 3_000, 1_000_000]),
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
            "socket.connection.setup.timeout.ms": 200,
        }
        self.committed = committed
        self.looks: list[Look] = []
        self._host = host
        self.machine = ConsumerMachine(CLIENT_CONFIGS.parse("consumer", config), rng)
        self.handle = host.add(self.machine)

    @property
    def idle(self) -> bool:
        """True if no look is under way."""
        return not self.looks or self.looks[-1].stopped_ns >= 0

    def look(self, place: Place, seek: int, times_ms: Sequence[int] | None, patience_ms: float) -> Look:
        """Begin a look at a partition; it gives up after `patience_ms` milliseconds. To be called
        only when `idle`."""
        look = Look(place, self.committed, self._host.now_ns(), seek, times_ms)
        self.looks.append(look)
        self._go_on(self._looking(look, self._host.now_ns() + ms_to_ns(patience_ms)), None, None)
        return look

    def _go_on(self, steps: Part[None], value: object, error: Exception | None) -> None:
        try:
            operation = next(steps) if (value, error) == (None, None) else steps.send((value, error))
        except StopIteration:
            return
        self._host.submit(
            self.handle, operation(Completion(lambda value, error: self._go_on(steps, value or (), error)))
        )

    def _looking(self, look: Look, deadline_ns: int) -> Part[None]:
        partition = TopicPartition(*look.place)
        for asked in (LATEST, EARLIEST, *(() if look.times_ms is None else (MAX_TIMESTAMP, *look.times_ms))):
            answer, error = yield from _asked(FindOffsets, deadline_ns, {partition: asked})
            if self._failed(look, error):
                return
            result = answer[partition]
            if asked not in (LATEST, EARLIEST):
                look.found[asked] = result
                continue
            assert result is not None
            if asked == LATEST:
                look.end = result.offset
            else:
                look.start = result.offset
        _, error = yield from _asked(Assign, [partition])
        if self._failed(look, error):
            return
        look.position = max(look.seek, look.start)
        generations, error = yield from _asked(Seek, {partition: look.position})
        while error is None and look.position < look.end:
            chunks, error = yield from _asked(Take, deadline_ns, TAKE_BYTES)
            if error is None:
                error = self._taken(
                    look, [chunk for chunk in chunks if chunk.generation == generations[partition]]
                )
            if error is None and self._host.now_ns() >= deadline_ns:
                error = FairleadError(f"it came no further than {look.position} of {look.end}")
        if not self._failed(look, error):
            yield from _asked(Assign, [])
            look.stopped_ns = self._host.now_ns()

    def _failed(self, look: Look, error: Exception | None) -> bool:
        if error is None:
            return False
        if not isinstance(error, FairleadError):
            raise error
        look.error, look.stopped_ns = error, self._host.now_ns()
        return True

    def _taken(self, look: Look, chunks: Sequence[Chunk]) -> FairleadError | None:
        for chunk in chunks:
            try:
                decoded = decode_chunk(chunk, check_crcs=True)
                if not self.committed:
                    headers = [
                        header
                        for header in scan(chunk.data)
                        if header.control and header.base_offset >= chunk.start
                    ]
                    look.markers += [(header.base_offset, header.max_timestamp_ms) for header in headers]
            except FairleadError as error:
                return error
            keys: Sequence[bytes | None] = (
                [None] * decoded.count if decoded.keys is None else decoded.keys.to_list()
            )
            rows = zip(
                decoded.offsets.tolist(),
                keys,
                decoded.values.to_list(),
                decoded.timestamps_ms.tolist(),
                strict=True,
            )
            look.records += [Read(*row) for row in rows]
            look.position = chunk.next_offset
        return None
