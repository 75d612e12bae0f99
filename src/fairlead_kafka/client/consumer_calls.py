"""Every call of a consumer, written once; `Consumer` and `AsyncConsumer` drive the steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.kernel import MACHINE_CODE
from fairlead_kafka.client.consumer_ranges import ConsumerRanges
from fairlead_kafka.client.consumer_reading import CLOSE_S
from fairlead_kafka.client.hosting import Steps, Wait, abandon, connect
from fairlead_kafka.consumer import (
    Assign,
    DescribeTopics,
    FindOffsets,
    OffsetAndTimestamp,
    SetPaused,
    Shut,
    TellMetrics,
)
from fairlead_kafka.consumer.groups import Unsubscribe
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.runtime import Completion


class ConsumerCalls(ConsumerRanges):
    """Steps of each call; those of polls and ranges are inherited."""

    # Assignment and positions

    def assign(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """Replace the assignment."""
        wanted = [TopicPartition(*each) for each in partitions]
        self._moved((yield from self._ask(lambda completion: Assign(completion, wanted))), replaces=True)

    def assignment(self) -> list[TopicPartition]:
        """The partitions assigned, in the order given."""
        return list(self._assigned)

    def seek_to(self, partitions: Iterable[TopicPartition] | None, target: int) -> Steps[None]:
        """Move positions to an end of the log; None: of all assigned partitions."""
        return self.seek(dict.fromkeys(self._assigned if partitions is None else partitions, target))

    def seek_offset(self, partition: TopicPartition, offset: int) -> Steps[None]:
        """Move one position; UsageError below 0."""
        if offset < 0:
            raise UsageError(
                f"seek {partition} to offset {offset}: offsets begin at 0; use seek_to_beginning or "
                "seek_to_end"
            )
        return self.seek({partition: offset})

    def pause(self, partitions: Iterable[TopicPartition], paused: bool) -> Steps[None]:
        """Pause partitions (`paused`), or resume them."""
        wanted = [TopicPartition(*each) for each in partitions]
        yield from self._ask(lambda completion: SetPaused(completion, wanted, paused))
        for partition in wanted:
            if paused:
                self._paused[partition] = None
            else:
                self._paused.pop(partition, None)
        for opened in self._open:
            opened.held = opened.chunk.partition in self._paused

    def paused(self) -> list[TopicPartition]:
        """The partitions paused."""
        return list(self._paused)

    # Looking up

    def find_offsets(
        self, targets: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, Any]]:
        """Offsets for timestamps (ms since 1970), EARLIEST or LATEST."""
        wanted = {TopicPartition(*partition): target for partition, target in targets.items()}
        if not wanted:
            return {}
        deadline_ns = self._deadline_ns(timeout_s)
        yield from self._connect_first(timeout_s)
        found: dict[TopicPartition, Any] = yield from self._ask(
            lambda completion: FindOffsets(completion, deadline_ns, wanted)
        )
        return found

    def end_of_logs(
        self, partitions: Iterable[TopicPartition], target: int, timeout_s: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """First offset (EARLIEST) or end offset (LATEST) of each partition."""
        found = yield from self.find_offsets(dict.fromkeys(partitions, target), timeout_s)
        return {partition: entry.offset for partition, entry in found.items()}

    def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """First offset at or after each time (ms since 1970). UsageError for a negative time."""
        for partition, time_ms in times_ms.items():
            if time_ms < 0:
                raise UsageError(
                    f"offsets_for_times: {partition} has time {time_ms}; milliseconds since 1970 are not "
                    "negative"
                )
        return self.find_offsets(times_ms, timeout_s)

    def topics(
        self, names: Sequence[str] | None, timeout_s: float | None
    ) -> Steps[dict[str, list[PartitionMetadata]]]:
        """Partitions of the topics named; None: of every topic."""
        deadline_ns = self._deadline_ns(timeout_s)
        yield from self._connect_first(timeout_s)
        found: dict[str, list[PartitionMetadata]] = yield from self._ask(
            lambda completion: DescribeTopics(completion, deadline_ns, names)
        )
        return found

    def partitions_for(self, topic: str, timeout_s: float | None) -> Steps[list[PartitionMetadata]]:
        """Partitions of one topic, by number."""
        found = yield from self.topics([topic], timeout_s)
        return found.get(topic, [])

    def connect(self, timeout_s: float | None) -> Steps[None]:
        """Wait until a broker is reached."""
        self.check()
        return connect(self._hosted, self.settings, timeout_s)

    def metrics(self) -> Steps[dict[str, Any]]:
        """Counters of the machine, and of this side: `records` and `machine_code`."""
        told = yield from self._ask(TellMetrics)
        return {**told, "records": self._records, "machine_code": MACHINE_CODE}

    def close(self) -> Steps[None]:
        """Leave the group and shut the machine; does nothing if it is closed already."""
        if self.closed or self._hosted.forked:
            return
        failure: Exception | None = None
        try:
            yield from self._part()
        except Exception as error:  # a listener's, told once all is closed
            failure = error
        self.closed = True
        completion: Completion[None] = Completion()
        self._hosted.submit(Shut(completion))
        with suppress(UsageError):  # its machine has crashed: there is nothing left to shut
            yield Wait(completion, CLOSE_S, lambda: None)
        self._pending.clear()
        self._open.clear()
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """End the thread of a consumer that was dropped without `close` (`hosting.end_with`).

        It leaves the group; nothing is committed.
        """
        if self.closed or self._hosted.forked:
            return
        self.closed = True
        abandon(self._hosted, self.end, Unsubscribe, Shut)

    def _part(self) -> Steps[None]:
        """Commit and leave the group; not while another thread polls, whose poll is ended instead."""
        if not self._has_group or not self._polling.acquire(blocking=False):
            return
        try:
            if self._subscribed:
                yield from self._leave(CLOSE_S)
            else:
                yield from self._auto_commit_now(CLOSE_S)
        finally:
            self._polling.release()

    def end(self) -> None:
        """Stop the host, after `close`."""
        self._hosted.close(CLOSE_S)
        if self.interceptors is not None:
            self.interceptors.close()
