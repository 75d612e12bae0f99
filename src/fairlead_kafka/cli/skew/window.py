"""The window of a report: the whole topic, or the newest share of each partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fairlead_kafka.base.ids import TopicPartition


class Window(NamedTuple):
    """The ranges of offsets that a report looks at, (start, end) by partition, and how many offsets
    they and the topic have."""

    ranges: Mapping[TopicPartition, tuple[int, int]]
    offsets: int
    """Offsets in all ranges together; after compaction, and with transactions, there are fewer
    records."""
    offsets_in_topic: int

    @property
    def whole(self) -> bool:
        """Whether the window is the whole topic."""
        return self.offsets == self.offsets_in_topic


def newest(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], offsets_max: int
) -> Window:
    """A window of the newest `offsets_max` offsets (0: all), spread over partitions in proportion
    to what each has.

    Partitions that are filled at rates of their own then begin at about the same time.
    """
    held = {of: max(0, ends[of] - starts[of]) for of in sorted(starts)}
    total = sum(held.values())
    share = 1.0 if not offsets_max or offsets_max >= total else offsets_max / total
    # Rounded up, so that a small partition is not left out.
    ranges = {of: (ends[of] - min(count, -int(-count * share // 1)), ends[of]) for of, count in held.items()}
    return Window(ranges, sum(end - start for start, end in ranges.values()), total)
