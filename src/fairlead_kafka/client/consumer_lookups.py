"""Calls that look something up at brokers, as steps: offsets and topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer_asking import Asking
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.consumer import DescribeTopics, FindOffsets, OffsetAndTimestamp
from fairlead_kafka.core.metadata import PartitionMetadata


class ConsumerLookups:
    """Steps of a consumer's calls that need no assignment. `timeout_s` is in seconds; TimedOut
    after it."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def end_of_logs(
        self, partitions: Iterable[TopicPartition], target: int, timeout_s: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """First offset (EARLIEST) or end offset (LATEST) of each partition."""
        found = yield from self._find_offsets(dict.fromkeys(partitions, target), timeout_s)
        # Only for a time there may be no offset: a log always has its ends.
        return {partition: entry.offset for partition, entry in found.items() if entry is not None}

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
        return self._find_offsets(times_ms, timeout_s)

    def topics(
        self, names: Sequence[str] | None, timeout_s: float | None
    ) -> Steps[dict[str, list[PartitionMetadata]]]:
        """Partitions of the topics named; None: of every topic."""
        deadline_ns = self._asking.deadline_ns(timeout_s)
        yield from self._asking.connect_first(timeout_s)
        return (yield from self._asking.ask(DescribeTopics, deadline_ns, names))

    def partitions_for(self, topic: str, timeout_s: float | None) -> Steps[list[PartitionMetadata]]:
        """Partitions of one topic, by number. BrokerError if the topic is missing until the time is
        up."""
        found = yield from self.topics([topic], timeout_s)
        return found.get(topic, [])

    def _find_offsets(
        self, targets: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """Offsets for timestamps (ms since 1970), EARLIEST or LATEST."""
        wanted = {TopicPartition(*partition): target for partition, target in targets.items()}
        if not wanted:
            return {}
        deadline_ns = self._asking.deadline_ns(timeout_s)
        yield from self._asking.connect_first(timeout_s)
        return (yield from self._asking.ask(FindOffsets, deadline_ns, wanted))
