"""Plans a streaming query's micro-batches on the driver: their end offsets, and their ranges.

**Beginning.** Spark's checkpoint keeps the end of every micro-batch before it runs, but asks for
the beginning of the first one again after a restart. A beginning that depends on the time of asking
(`latest`) would have moved by then. Such a query begins at no offsets at all; its first micro-batch
is empty and ends at the beginning, so that the checkpoint has it before anything is read.

**A partition that an offset does not name** did not exist: it begins at its earliest offset. So new
partitions, and new topics of a pattern, are part of the next micro-batch. With
`failOnDataLoss=false` a topic that was deleted and made again is left out of one micro-batch and is
new in the next; the checkpoint records that, and a replay does the same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.admission import ends_within, share_out
from fairlead_kafka.spark.offsets import OffsetRange, OffsetsByPartition
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.planning import starting_offsets
from fairlead_kafka.spark.reading import DataLoss
from fairlead_kafka.spark.survey import Found, Survey
from fairlead_kafka.spark.volume import Volume

LOGGER = GuardedLogger("fairlead_kafka.spark")


@dataclass(frozen=True)
class Seen:
    """The partitions and topic ids that a cluster had when it was asked, and the end offset of
    each."""

    ends: OffsetsByPartition
    found: Found


class StreamPlanner:
    """Decides the offsets of one streaming query's micro-batches. Not for several threads."""

    def __init__(self, options: ReadOptions, survey: Survey, volume: Volume) -> None:
        self._options = options
        self._survey = survey
        self._volume = volume
        self._initial: OffsetsByPartition | None = None
        """Offsets at which the query begins; None: Spark has not asked, for the checkpoint says."""
        self._first_end: OffsetsByPartition | None = None
        """End of the empty micro-batch with which a query begins whose beginning depends on the
        time."""
        self._begun = False
        """Whether a micro-batch has begun at an offset: no offsets at all are no beginning then,
        but topics that are gone."""
        self._target: Seen | None = None
        """Trigger.AvailableNow: how far to read, whatever comes later."""
        self._until_target = False
        self.seen: Seen | None = None
        """The cluster when it was last asked; None: not yet."""
        self._batches_planned = 0
        self._waiting_since_s: float | None = None

    def begin(self) -> OffsetsByPartition:
        """Offsets at which a new query begins, the same however often this is called. Empty if they
        depend on when it is called."""
        if self._initial is None:
            self._initial = {} if self._options.starts_at_latest else self._survey.attempt(self._starts)
        return self._initial

    def until_now(self) -> None:
        """Have later micro-batches go no further than the logs reach now (Trigger.AvailableNow)."""
        self._until_target = True
        self._target = self._survey.attempt(self._look)

    def advance(self, start: OffsetsByPartition, everything: bool) -> OffsetsByPartition:
        """The end of the micro-batch that begins at `start`; `start` itself if there is nothing to
        read, or not enough yet.

        `everything`: whatever the limits. Raises DataLoss if records that were to be read next are
        gone, unless `failOnDataLoss` is false.
        """
        self._begun |= bool(start)
        if self._at_the_beginning(start):
            self._first_end = self._survey.attempt(self._starts)
            self.seen = self._target or self._survey.attempt(self._look)
            return self._first_end
        ends = self._ends(start)
        if everything:
            return ends
        fresh = [partition for partition in ends if partition not in start]
        begins = start | (self._survey.earliest(fresh) if fresh else {})
        ranges = [OffsetRange(partition, begins[partition], end) for partition, end in sorted(ends.items())]
        if not self._until_target and self._too_few(sum(one.size for one in ranges)):
            return start
        return self._limited(ranges, ends)

    def ranges(self, start: OffsetsByPartition, end: OffsetsByPartition) -> list[OffsetRange]:
        """Ranges of offsets that the micro-batch from `start` to `end` reads."""
        self._begun |= bool(start)
        if start == end:
            return []
        if self._at_the_beginning(start):
            self._first_end = end
            return []
        if self.seen is None:
            end = self._still_there(end)
        gone = sorted(set(start) - set(end))
        if (
            gone and start != self._initial
        ):  # a partition that was made after the first micro-batch was planned is new in the next
            self._lose(
                [
                    f"{partition}: there is no such partition any more; offset {start[partition]} was next"
                    for partition in gone
                ]
            )
        fresh = [partition for partition in end if partition not in start]
        earliest = self._survey.attempt(lambda: self._survey.earliest(fresh)) if fresh else {}
        lost = [
            f"{one}: is new, and its offsets 0 to {first - 1} are gone already"
            for one, first in sorted(earliest.items())
            if first
        ]
        begins = start | earliest
        lost += [
            f"{one}: offset {begins[one]} was next, and its log ended at {end[one]}"
            for one in sorted(end)
            if end[one] < begins[one] and one in start
        ]
        self._lose(lost)
        return [OffsetRange(one, begins[one], end[one]) for one in sorted(end) if end[one] > begins[one]]

    # Inside

    def _starts(self) -> OffsetsByPartition:
        return starting_offsets(
            self._survey, self._options, None if self._target is None else self._target.ends
        )

    def _at_the_beginning(self, start: OffsetsByPartition) -> bool:
        """True if the empty `start` stands for a beginning that is to be looked up, not for a query
        that has found no partitions so far."""
        begins_later = self._initial == {} and self._options.starts_at_latest and self._first_end != {}
        return begins_later and not start and not self._begun

    def _look(self) -> Seen:
        found = self._survey.find()
        return Seen(self._survey.latest(found.partitions), found)

    def _ends(self, start: OffsetsByPartition) -> OffsetsByPartition:
        """The offset up to which each partition can be read. Losses are reported, after a second
        look, for a broker may only be behind."""
        before = self.seen
        now = self._target or self._survey.attempt(self._look)
        for _ in range(self._options.offset_attempts - 1):
            if not self._losses(start, before, now):
                break
            self._survey.wait()
            now = self._survey.attempt(self._look)
            self._target = now if self._until_target else None
        lost = self._losses(start, before, now)
        self._lose(list(lost.values()))
        if self._options.fail_on_data_loss:
            self._survey.refuse_missing(now.found)
        self.seen = now
        return {partition: end for partition, end in now.ends.items() if partition not in lost}

    def _losses(self, start: OffsetsByPartition, before: Seen | None, now: Seen) -> dict[TopicPartition, str]:
        """Partitions that cannot be read on from `start`, each with the reason in words."""
        lost = {}
        for partition, offset in sorted(start.items()):
            last = max(offset, before.ends.get(partition, 0) if before else 0)
            unread = (
                f"offsets {offset} to {last - 1} were not read"
                if last > offset
                else f"offset {offset} was next"
            )
            end = now.ends.get(partition)
            made_again = before is not None and before.found.topic_ids.get(
                partition.topic
            ) != now.found.topic_ids.get(partition.topic)
            if end is None:
                lost[partition] = f"{partition}: there is no such partition any more; {unread}"
            elif made_again and partition in (before.ends if before else {}):
                lost[partition] = (
                    f"{partition}: its topic was deleted and made again; of the old one {unread}"
                )
            elif end < offset:
                lost[partition] = (
                    f"{partition}: its log ends at {end} now: it was deleted and made again, or cut; {unread}"
                )
        return lost

    def _still_there(self, end: OffsetsByPartition) -> OffsetsByPartition:
        """Cut `end` of a replayed micro-batch to what the logs hold now.

        (An earlier run planned that micro-batch, so its records may be gone.)
        """
        self.seen = self._survey.attempt(self._look)
        ends = self.seen.ends
        lost = [
            f"{one}: offsets {ends.get(one, 0)} to {end[one] - 1} were planned before the restart, and its "
            "log " + (f"ends at {ends[one]} now" if one in ends else "is gone")
            for one in sorted(end)
            if end[one] > ends.get(one, 0)
        ]
        self._lose(lost)
        return {one: min(offset, ends[one]) for one, offset in end.items() if one in ends}

    def _lose(self, lost: list[str]) -> None:
        if lost and self._options.fail_on_data_loss:
            raise DataLoss("; ".join(lost) + "; set failOnDataLoss=false to go on with what is there")
        for one in lost:
            LOGGER.warning("%s", one)

    def _too_few(self, available: int) -> bool:
        """Whether to wait for `minOffsetsPerTrigger`. The first micro-batch does not wait, as with
        Spark's connector."""
        options, now_s = self._options, time.monotonic()
        if options.min_offsets is None:
            return False
        waited_ms = (
            options.max_delay_ms if self._waiting_since_s is None else (now_s - self._waiting_since_s) * 1000
        )
        if available < options.min_offsets and waited_ms < options.max_delay_ms:
            return True
        self._waiting_since_s = now_s
        return False

    def _limited(self, ranges: list[OffsetRange], ends: OffsetsByPartition) -> OffsetsByPartition:
        """The ends of `ranges` within what `maxOffsetsPerTrigger` and `maxBytesPerTrigger`
        admit."""
        options = self._options
        if options.max_offsets is None and options.max_bytes is None:
            return ends
        self._batches_planned += 1
        if options.max_offsets is not None:
            shares = share_out(
                options.max_offsets, {one.partition: one.size for one in ranges}, self._batches_planned
            )
            ranges = [replace(one, end=one.start + shares.get(one.partition, 0)) for one in ranges]
        if options.max_bytes is not None:
            self._volume.learn(ranges)
            return ends_within(options.max_bytes, ranges, self._volume, self._batches_planned)
        return {one.partition: one.end for one in ranges}
