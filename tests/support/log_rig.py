"""A broker's log without its broker: `Logs` over a virtual disk, a clock that moves when told,
crashes between any two effects."""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable
from typing import Any

from fairlead_kafka.base.config_broker import BROKER_CONFIGS, topic_settings
from fairlead_kafka.broker.files import Files
from fairlead_kafka.broker.guard import Guard, Owner, Task
from fairlead_kafka.broker.log import Logs, LogSettings, Partition, RecoveryResult, TopicLimits, readable
from fairlead_kafka.core.effects import FileEffect
from fairlead_kafka.core.events import FileDone
from fairlead_kafka.records import (
    ControlType,
    EndMarker,
    Slice,
    columns_from_lists,
    control_batch,
    decode,
    encode,
    scan,
)
from fairlead_kafka.runtime.handle import Handle
from fairlead_kafka.runtime.virtual_disk import VirtualDisk

WALL_MS = 1_700_000_000_000
FOLDER = "/log"
TOPIC = uuid.UUID(int=7)
CHECKED_MAX = 50
"""Logs of more partitions are not checked all the time."""


def limits(**configs: Any) -> TopicLimits:
    """Limits of a topic with these configs (underscores for dots)."""
    given = BROKER_CONFIGS.parse(
        "topic", {key.replace("_", "."): str(value) for key, value in configs.items()}
    )
    return TopicLimits.of(
        topic_settings(BROKER_CONFIGS.parse("broker", {}), {name: given[name] for name in given.given})
    )


def records(
    *values: bytes | None, keys: list[bytes | None] | None = None, at_ms: int = WALL_MS, **options: Any
) -> bytes:
    """One batch."""
    columns = columns_from_lists(keys, list(values))
    return bytes(encode([Slice(columns, 0, len(values), None)], create_time_ms=at_ms, **options).buffer)


class LogRig:
    """Logs of one folder through all their lives. `disk` outlives a crash."""

    def __init__(
        self, topics: dict[uuid.UUID, tuple[str, TopicLimits]] | None = None, **configs: Any
    ) -> None:
        self.topics = topics if topics is not None else {TOPIC: ("events", limits())}
        self.settings = BROKER_CONFIGS.parse(
            "broker", {key.replace("_", "."): value for key, value in configs.items()}
        )
        self.now_ms = 0.0
        self.guard = Guard("the rig")
        self.errors_allowed = 0
        """Exceptions of regular work and of the cleaner that a test plants."""
        self.disk = VirtualDisk(self._later, self._deliver)
        self.wall_skew_ms = 0
        self.results: list[RecoveryResult] = []
        self.effects_left: int | None = None
        """Effects carried out before the power goes; None: it stays."""
        self.start()

    @property
    def wall_ms(self) -> int:  # type: ignore[override]
        """The wall clock."""
        return WALL_MS + int(self.now_ms) + self.wall_skew_ms

    def start(self) -> RecoveryResult:
        """Begin a life over what the disk has."""
        self._effects: list[FileEffect] = []
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._handle: Any = Handle.__new__(Handle)
        self._handle.ended = False
        self.moved: list[tuple[str, int]] = []
        self.files = Files(self._effects.append)  # type: ignore[arg-type]
        self.logs = Logs(
            self.files, FOLDER, self.topics.get, self._written, self, LogSettings.of(self.settings)
        )
        results: list[RecoveryResult] = []
        self._recovering = True
        self.logs.recover(results.append)
        self.run()
        if not results:
            self.advance(self.disk.sync_ms)  # what it found is synced before anybody is promised it
        self.results += results
        self._recovering = False
        return self.results[-1]

    def crash(
        self, *, power: bool = False, kept: Callable[[int], int] = lambda size_bytes: 0
    ) -> RecoveryResult:
        """End this life, and begin another; with `power`, what was not synced is gone but for
        `kept(its size)` bytes."""
        self._handle.ended = True
        self.effects_left = None
        if power:
            self.disk.cut_power(FOLDER, kept)
        return self.start()

    def run(self) -> None:
        """Until nothing more happens at this time."""
        while self.step():
            pass
        assert self.guard.errors <= self.errors_allowed, "regular work or the cleaner raised; see the log"
        if (
            self.effects_left is None
            and len(self.logs.hosted()) <= CHECKED_MAX
            and not self._recovering
            and self.results[-1].refused is None
        ):
            self.logs.check()

    def step(self) -> bool:
        """What is asked of the disk, and the first thing that is due; False if there was nothing,
        or the power went."""
        self.logs.flush()
        effects, self._effects[:] = list(self._effects), []
        for effect in effects:
            if self.effects_left is not None:
                if self.effects_left == 0:
                    return False
                self.effects_left -= 1
            self.disk.carry_out(self._handle, effect)
        due = bool(self._queue) and self._queue[0][0] <= self.now_ms
        if due:
            _at, _number, function, arguments = heapq.heappop(self._queue)
            function(*arguments)
        return due or bool(effects)

    def forget_timers(self) -> None:
        """As a broker that stops: nothing more happens by itself."""
        own = (self.disk._deliver, self._deliver)
        self._queue = [
            entry
            for entry in self._queue
            if entry[2] in own or getattr(entry[2], "__self__", None) is self.disk
        ]
        heapq.heapify(self._queue)

    def advance(self, milliseconds: float) -> None:
        """Move the clock, stopping at whatever is due on the way."""
        target = self.now_ms + milliseconds
        while self._queue and self._queue[0][0] <= target:
            self.now_ms = max(self.now_ms, self._queue[0][0])
            self.run()
        self.now_ms = target
        self.run()

    def partition(self, number: int = 0, topic: uuid.UUID = TOPIC) -> Partition:
        """A partition."""
        return self.logs.partition(topic, number)

    def append(self, data: bytes, number: int = 0, epoch: int = 0, topic: uuid.UUID = TOPIC) -> list[bool]:
        """Append as the leader, and let it be written; what was told of it (empty: nothing yet)."""
        header = scan(data)[0]
        self.logs.append(self.partition(number, topic), memoryview(data), header, epoch, self.wall_ms)
        told: list[bool] = []
        self.logs.when_written(told.append)
        self.run()
        return told

    def replicate(
        self, data: bytes, base_offset: int, epoch: int = 0, number: int = 0, leader_epoch: int | None = None
    ) -> None:
        """Append as a follower what the leader has at `base_offset`."""
        stamped = bytearray(data)
        stamped[0:8] = base_offset.to_bytes(8, "big")
        stamped[12:16] = epoch.to_bytes(4, "big")
        header = scan(stamped)[0]
        self.logs.append_replica(
            self.partition(number),
            memoryview(stamped),
            header,
            epoch if leader_epoch is None else leader_epoch,
            self.wall_ms,
        )
        self.run()

    def mark(self, producer_id: int, committed: bool, number: int = 0) -> None:
        """End a transaction."""
        kind = ControlType.commit if committed else ControlType.abort
        data = bytes(
            control_batch(kind, producer_id=producer_id, producer_epoch=0, timestamp_ms=self.wall_ms).buffer
        )
        partition = self.partition(number)
        self.logs.append(partition, memoryview(data), scan(data)[0], 0, self.wall_ms, EndMarker(committed, 0))
        self.run()

    def data(self, number: int = 0, topic: uuid.UUID = TOPIC) -> bytes:
        """All batches of a partition, as they are read."""
        partition = self.partition(number, topic)
        found: list[Any] = []
        self.logs.read(partition.select(partition.log_start, partition.log_end, 1 << 40, True), found.append)
        self.run()
        batches, error = readable(found[0])
        assert not error, f"the log cannot be read: error {error}"
        return b"".join(map(bytes, batches))

    def values(self, number: int = 0, topic: uuid.UUID = TOPIC) -> dict[int, bytes | None]:
        """Offset → value of every record of a partition that is no marker."""
        data = self.data(number, topic)
        if not data:
            return {}
        decoded = decode(data, from_offset=self.partition(number, topic).log_start)
        return dict(zip(decoded.offsets.tolist(), decoded.values.to_list(), strict=True))

    def _written(self, partition: Partition) -> None:
        self.moved.append((str(partition), partition.written_end))
        partition.high_watermark = max(partition.high_watermark, partition.written_end)

    def bind(self, function: Callable[..., Any], owner: Owner | None = None) -> Callable[..., None]:
        return function if owner is None else self.guard.bind(function, owner)

    def repeat(self, name: str, wait_ms: Callable[[], float], function: Callable[[], object]) -> None:
        """See `LogHost`."""
        task = Task(name)

        def due() -> None:
            self.guard.call(task, function)
            self._later(wait_ms(), due)

        self._later(wait_ms(), due)

    def call_later(self, milliseconds: float, function: Callable[[], None]) -> None:
        """See `LogHost`."""
        self._later(milliseconds, function)

    def _later(self, milliseconds: float, function: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + milliseconds, self._count, function, arguments))

    def _deliver(self, handle: Any, done: FileDone) -> None:
        if handle is self._handle:
            self.files.finished(done)
