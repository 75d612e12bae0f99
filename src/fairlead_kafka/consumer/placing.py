"""Finding positions: committed offsets, the reset policy, and handling of positions that are out of
range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, LogTruncated, OffsetOutOfRange, UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import NO_LEADER_EPOCH, NO_OFFSET, NO_TOPIC_ID, TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.partition import NO_END, PartitionState, Phase, Signal
from fairlead_kafka.core.group_offsets import OffsetAndMetadata
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.partition_offsets import (
    EARLIEST,
    ISOLATION_LEVELS,
    LATEST,
    READ_UNCOMMITTED,
    OffsetAndTimestamp,
    list_offsets,
)
from fairlead_kafka.core.script import Done, Pause, Scripts, Steps

LOGGER = GuardedLogger("fairlead_kafka.consumer")
_POLICIES = {"earliest": EARLIEST, "latest": LATEST, "none": None}

Result: TypeAlias = "OffsetAndTimestamp | BrokerError | None"
Bounds = tuple[Result, Result]
"""Start and end of a log, as its leader says them."""
Found = dict[TopicPartition, "OffsetAndMetadata | None"]
Committed = Callable[[Sequence[TopicPartition], int, Done[Found]], None]
"""committed(partitions, deadline_ns, done) finds what a group has committed, None where there is
nothing."""


class Placing:
    """Finds positions. Part of the consumer machine; all calls come from within its step.

    `partition` gives the state of one that is assigned, None for others; `back_off` has nothing
    asked about it for a while.
    """

    def __init__(
        self,
        settings: Settings,
        metadata: Metadata,
        scripts: Scripts,
        partition: Callable[[TopicPartition], PartitionState | None],
        back_off: Callable[[PartitionState], None],
        committed: Committed | None,
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._scripts = scripts
        self._partition = partition
        self._back_off = back_off
        self._committed = committed
        self._policy: int | None = _POLICIES[settings["auto.offset.reset"]]
        self.list_offsets = partial(
            list_offsets, metadata, isolation_level=ISOLATION_LEVELS[settings["isolation.level"]]
        )
        self.now_ns = 0
        """The time of this step; its owner sets it first."""

    def place(self, states: Sequence[PartitionState]) -> None:
        """Find positions for the partitions that have none: where a seek said, else the offset that
        the group has committed, else by `auto.offset.reset`."""
        targets: dict[TopicPartition, int] = {}
        unknown: dict[TopicPartition, int] = {}
        for state in states:
            if state.phase is not Phase.UNPLACED:  # it moved twice, and was dealt with
                continue
            state.signal(Signal.ASK)
            if state.target is not None:
                targets[state.partition] = state.target
            elif self._committed is not None and state.resets and not state.reset:
                unknown[state.partition] = state.generation
            else:
                self._by_policy(state, targets)
        self._look_up(targets)
        if unknown and self._committed is not None:
            self._committed(
                list(unknown), NO_END, lambda found, error: self._on_committed(unknown, found, error)
            )

    def _by_policy(self, state: PartitionState, targets: dict[TopicPartition, int]) -> None:
        if self._policy is None:
            state.fail(
                UsageError(
                    f"{state.partition} has no position, and auto.offset.reset is none; seek to an offset "
                    "first"
                )
            )
        else:
            targets[state.partition] = self._policy

    def _on_committed(
        self,
        generations: Mapping[TopicPartition, int],
        found: Mapping[TopicPartition, OffsetAndMetadata | None] | None,
        error: Exception | None,
    ) -> None:
        targets: dict[TopicPartition, int] = {}
        ahead: dict[TopicPartition, OffsetAndMetadata] = {}
        for partition, generation in generations.items():
            state = self._waiting(partition, generation)
            if state is None:
                continue
            offset = (found or {}).get(partition)
            if error is not None:
                state.fail(error)
            elif offset is None:
                self._by_policy(state, targets)
            elif offset.leader_epoch > self._metadata.leader_epoch(*partition):
                ahead[partition] = offset
            else:
                self._place_at(partition, generation, offset)
        self._look_up(targets)
        if ahead:
            self._place_later(generations, ahead)

    def _place_at(self, partition: TopicPartition, generation: int, offset: OffsetAndMetadata) -> None:
        """Place a partition at a committed offset; by its epoch a log that was cut since is noticed
        (KIP-320)."""
        state = self._waiting(partition, generation)
        self._placed(partition, generation, OffsetAndTimestamp(offset.offset))
        if state is not None and offset.leader_epoch <= self._metadata.leader_epoch(*partition):
            state.last_epoch = offset.leader_epoch

    def _place_later(
        self, generations: Mapping[TopicPartition, int], ahead: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Wait for newer metadata before partitions are placed at offsets that were committed in a
        later leader epoch than is known.

        A leader of an earlier epoch would call such an offset out of range. An epoch that newer
        metadata do not know either, as after a topic was made again, is not used.
        """

        def script() -> Steps[None]:
            yield Pause(
                BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH, "offsets were committed in a later leader epoch"),
                until_metadata=True,
            )

        def done(_: None, _error: Exception | None) -> None:
            for partition, offset in ahead.items():
                self._place_at(partition, generations[partition], offset)

        self._scripts.start("waiting for a leader epoch", script(), NO_END, done)

    def _look_up(self, targets: Mapping[TopicPartition, int]) -> None:
        if not targets:
            return
        states = {partition: self._partition(partition) for partition in targets}
        generations = {
            partition: state.generation for partition, state in states.items() if state is not None
        }

        def on_found(partition: TopicPartition, result: OffsetAndTimestamp | BrokerError | None) -> None:
            self._placed(partition, generations[partition], result)

        def done(_: object, error: Exception | None) -> None:
            for partition in generations if error is not None else ():
                self._placed(partition, generations[partition], error)

        def wanted(partition: TopicPartition) -> bool:
            return self._waiting(partition, generations.get(partition, -1)) is not None

        script = self.list_offsets(targets, on_found, wanted=wanted)
        self._scripts.start("looking up positions", script, NO_END, done)

    def _waiting(self, partition: TopicPartition, generation: int) -> PartitionState | None:
        """The partition's state, if it still waits for the answer to a look-up of `generation`;
        else None."""
        state = self._partition(partition)
        return (
            state
            if state is not None and state.generation == generation and state.phase is Phase.PLACING
            else None
        )

    def _placed(
        self, partition: TopicPartition, generation: int, result: OffsetAndTimestamp | Exception | None
    ) -> None:
        state = self._waiting(partition, generation)
        if state is None:
            return
        if isinstance(result, OffsetAndTimestamp):
            state.position, state.target, state.topic_id = result.offset, None, NO_TOPIC_ID
            state.signal(Signal.PLACED)
        else:
            state.fail(
                result
                or BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE, f"the answer has no offset of {partition}")
            )

    def truncated(self, state: PartitionState, epoch: int, end_offset: int) -> None:
        """Handle a log that no longer holds the records read from it (KIP-320). The log is the
        same up to `end_offset`, where `epoch` ended; NO_LEADER_EPOCH: the topic was deleted, and
        another has its name. With a reset policy reading goes on at `end_offset`, and the
        records that are there now have offsets that were read before; without one the next poll
        raises LogTruncated."""
        partition, position = state.partition, state.position
        if state.resets and self._policy is not None:
            how = "cut at %d, in an unclean election" if epoch >= 0 else "begins at %d, for its topic is new"
            LOGGER.warning(
                f"%s was read up to offset %d and {how}; going on from there",
                partition,
                position,
                end_offset,
            )
            state.position, state.last_epoch = min(position, end_offset), epoch
        else:
            state.fail(LogTruncated(partition, position, end_offset))

    def out_of_range(self, state: PartitionState) -> None:
        """Handle a position out of range: reset it by policy, or look up the bounds of the log.

        (A new leader may only be behind.) A reset skips records, or reads some again: it is logged.
        """
        if state.resets and self._policy is not None:
            LOGGER.warning(
                "%s was to be read from offset %d on, which is not in the log: deleted since, or never "
                "written; going on from the %s (auto.offset.reset)",
                state.partition,
                state.position,
                "first one" if self._policy == EARLIEST else "end",
            )
            state.position, state.target, state.reset, state.last_epoch = (
                NO_OFFSET,
                None,
                True,
                NO_LEADER_EPOCH,
            )
            state.signal(Signal.RESET)
            return
        state.signal(Signal.OUT_OF_RANGE)
        partition, generation = state.partition, state.generation

        def script() -> Steps[Bounds]:
            start = yield from self.list_offsets({partition: EARLIEST})
            end = yield from self.list_offsets({partition: LATEST}, isolation_level=READ_UNCOMMITTED)
            return start[partition], end[partition]

        def done(bounds: Bounds | None, error: Exception | None) -> None:
            if state.generation != generation or state.phase is not Phase.CHECKING:
                return
            start, end = bounds or (None, None)
            low = start.offset if isinstance(start, OffsetAndTimestamp) else NO_OFFSET
            high = end.offset if isinstance(end, OffsetAndTimestamp) else NO_OFFSET
            if (
                low != NO_OFFSET and low <= state.position <= high
            ):  # a new leader that was behind: it has caught up
                state.signal(Signal.PLACED)
                self._back_off(state)
            else:
                state.fail(OffsetOutOfRange(partition, state.position, low, high))

        deadline_ns = self.now_ns + ms_to_ns(self._settings["default.api.timeout.ms"])
        self._scripts.start(f"looking up what {partition} holds", script(), deadline_ns, done)
