"""The report: one document of plain values, which screen and picture show, and `--json` writes as
it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.ids import NO_LEADER, TopicPartition
from fairlead_kafka.cli.skew.document import Batches, Keys, LookedAt, PartitionRow, Replay, Report, Step
from fairlead_kafka.cli.skew.hot_keys import HotKeys, shown
from fairlead_kafka.cli.skew.replay import Case, Cluster, Records, replay
from fairlead_kafka.cli.skew.spread import Spread
from fairlead_kafka.cli.skew.tally import (
    REPLAY_MAX_BYTES,
    BatchTally,
    PartitionTally,
    Said,
    in_order,
    tally_batches,
    tally_records,
)
from fairlead_kafka.cli.skew.window import Window, newest
from fairlead_kafka.client import Consumer
from fairlead_kafka.core.metadata import PartitionMetadata

FILL_STEP_PERCENT = 10


@dataclass(frozen=True)
class Questions:
    """Questions that a report answers: what to look at and what to try.

    Policies are compared at the first batch size and linger.
    """

    records_max: int
    """Newest records to look at; 0: all."""
    replay_max: int
    """Newest records to replay; 0: none."""
    policies: Sequence[str]
    batch_sizes: Sequence[int]
    lingers_ms: Sequence[int]
    records_per_s: float | None
    """Records per second in the replay; None: as their timestamps say."""
    top: int
    seed: int

    def cases(self, keyed: bool) -> list[Case]:
        """The cases to replay: every policy at the first batch size and linger; the other sizes and
        lingers with the default policy for these records."""
        size, linger_ms = self.batch_sizes[0], self.lingers_ms[0]
        policies = [name for name in self.policies if keyed or name != "keyed"]
        usual = "keyed" if keyed else "late"
        found = [Case(name, size, linger_ms) for name in policies]
        found += [Case(usual, other, linger_ms) for other in self.batch_sizes]
        found += [Case(usual, size, other_ms) for other_ms in self.lingers_ms]
        return list(dict.fromkeys(found))


def make_report(consumer: Consumer, topic: str, questions: Questions, said: Said) -> Report:
    """Read a topic and replay it with other settings. Raises what the consumer raises."""
    described = consumer.partitions_for(topic)
    partitions = [TopicPartition(topic, one.partition) for one in described]
    starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    window = newest(starts, ends, questions.records_max)
    tally = tally_batches(consumer, window, questions.batch_sizes[0], said)
    kept = newest(
        {of: start for of, (start, _) in window.ranges.items()},
        ends,
        _replayable(window, tally, questions.replay_max),
    )
    keys, tables = tally_records(consumer, window, kept, said)
    records = in_order(tables, questions.records_per_s) if questions.replay_max else None
    cluster = Cluster(
        _dense([one.leader for one in described]),
        tally.codecs.most_common(1)[0][0] if tally.codecs else "none",
    )
    return {
        "topic": topic,
        "batch_size": questions.batch_sizes[0],
        "looked_at": _looked_at(window, tally),
        "balance": {
            "size_bytes": Spread.of([one.size_bytes for one in tally.partitions.values()]).figures(),
            "records": Spread.of([one.records for one in tally.partitions.values()]).figures(),
        },
        "partitions": [
            _partition_row(one, tally.partitions[of], tally.total)
            for of, one in zip(partitions, described, strict=True)
        ],
        "batches": _batches(tally, questions.batch_sizes[0]),
        "keys": _keys(keys, questions.top),
        "replay": _replay(records, questions, keys.records > keys.unkeyed, cluster, said),
    }


def _replayable(window: Window, tally: BatchTally, replay_max: int) -> int:
    """How many offsets' records to keep for the replay: `replay_max`, and no more than fit the
    memory set aside for that."""
    per_offset = tally.total.uncompressed_bytes / max(1, window.offsets)
    return max(1, min(replay_max or 1, int(REPLAY_MAX_BYTES / max(1.0, per_offset))))


def _dense(leaders: Sequence[int]) -> list[int]:
    """The leader of each partition, with brokers renumbered from 0; a partition without a leader
    gets broker 0."""
    ids = {leader: number for number, leader in enumerate(sorted(set(leaders) - {NO_LEADER}))}
    return [ids.get(leader, 0) for leader in leaders]


def _looked_at(window: Window, tally: BatchTally) -> LookedAt:
    total = tally.total
    seconds = (
        None if tally.first_ms is None or tally.last_ms is None else (tally.last_ms - tally.first_ms) / 1000
    )
    return {
        "whole_topic": window.whole,
        "offsets": window.offsets,
        "offsets_in_topic": window.offsets_in_topic,
        "records": total.records,
        "batches": total.batches,
        "markers": total.markers,
        "size_bytes": total.size_bytes,
        "uncompressed_bytes": total.uncompressed_bytes,
        "from_ms": tally.first_ms,
        "to_ms": tally.last_ms,
        "records_per_s": round(total.records / seconds, 3) if seconds else None,
        "timestamps": "log_append" if tally.log_append_batches else "create",
    }


def _partition_row(
    described: PartitionMetadata, tally: PartitionTally, total: PartitionTally
) -> PartitionRow:
    return {
        "partition": described.partition,
        "leader": None if described.leader == NO_LEADER else described.leader,
        "records": tally.records,
        "batches": tally.batches,
        "markers": tally.markers,
        "size_bytes": tally.size_bytes,
        "uncompressed_bytes": tally.uncompressed_bytes,
        "share": round(tally.size_bytes / max(1, total.size_bytes), 6),
        "records_per_batch": round(tally.records / max(1, tally.batches), 2),
    }


def _batches(tally: BatchTally, batch_size: int) -> Batches:
    total = tally.total
    bounds = [0, *(1 << power for power in range(17)), len(tally.records_per_batch)]
    return {
        "records_per_batch": {
            "mean": round(total.records / max(1, total.batches), 2),
            "median": _median(tally.records_per_batch),
            "histogram": _histogram(tally.records_per_batch, bounds),
        },
        "fill_percent": {
            "mean": round(100 * total.size_bytes / max(1, total.batches) / batch_size, 2),
            "median": _median(tally.fill),
            "histogram": _histogram(tally.fill, [*range(0, 101, FILL_STEP_PERCENT), len(tally.fill)]),
        },
        "codecs": dict(sorted(tally.codecs.items())),
        "ratio": round(total.size_bytes / max(1, total.uncompressed_bytes), 4),
    }


def _median(counts: npt.NDArray[np.int64]) -> int | None:
    ends = np.cumsum(counts)
    return int(np.searchsorted(ends, (ends[-1] + 1) // 2)) if ends[-1] else None


def _histogram(counts: npt.NDArray[np.int64], bounds: Sequence[int]) -> list[Step]:
    """{from, to (excluded), batches} of each step between the first and the last that has any."""
    steps: list[Step] = [
        {"from": first, "to": end, "batches": int(counts[first:end].sum())} for first, end in pairwise(bounds)
    ]
    filled = [number for number, step in enumerate(steps) if step["batches"]]
    return steps[filled[0] : filled[-1] + 1] if filled else []


def _keys(keys: HotKeys, top: int) -> Keys:
    return {
        "records": keys.records,
        "unkeyed_records": keys.unkeyed,
        "distinct": keys.distinct if not keys.error else None,
        "error_records": keys.error,
        "hottest": [
            {
                "key": shown(one.key),
                "records": one.records,
                "share": round(one.records / max(1, keys.records), 6),
                "size_bytes": one.size_bytes,
                "partition": one.partition,
            }
            for one in keys.hottest(top)
        ],
    }


def _replay(
    records: Records | None, questions: Questions, keyed: bool, cluster: Cluster, said: Said
) -> Replay | None:
    if records is None:
        return None
    rows = []
    cases = questions.cases(keyed)
    for number, case in enumerate(cases, start=1):
        said(
            f"replay {number} of {len(cases)}: {case.policy}, batch.size {case.batch_size}, linger.ms "
            f"{case.linger_ms}"
        )
        rows.append(replay(records, case, cluster, questions.seed))
    seconds = float(records.arrivals_ms[-1]) / 1000
    return {
        "records": records.columns.count,
        "seconds": round(seconds, 3),
        "records_per_s": questions.records_per_s,
        "codec": cluster.codec,
        "seed": questions.seed,
        "rows": rows,
    }
