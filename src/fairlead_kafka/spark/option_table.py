"""The one table of options of the source and the sink: names, scopes, defaults, meanings; and those
that are refused, with the reason.

Names and meanings are those of Spark's Kafka connector, unless a row says that it is Fairlead's
own. `docs/reference/spark-options.md` is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairlead_kafka.spark.exactly_once.settings import EXACTLY_ONCE_OPTIONS
from fairlead_kafka.spark.formats import FORMAT_OPTIONS
from fairlead_kafka.spark.offsets import parse_assignment, parse_offsets, parse_timestamps
from fairlead_kafka.spark.option_values import (
    boolean,
    duration_ms,
    names,
    not_empty,
    one_of,
    positive,
    size_bytes,
    time_ms,
    topic_name,
)

USES = {
    "read": ("batch", "stream"),
    "batch": ("batch",),
    "stream": ("stream",),
    "write": ("write",),
    "both": ("batch", "stream", "write"),
}
"""Values of `Option.used_by` → what an option is for: batch reads, streaming reads, writes."""

TOPIC_CHOICES = ("assign", "subscribe", "subscribePattern")
"""A read names what it reads by exactly one of them."""
VIEW_OPTIONS: Mapping[str, frozenset[str]] = {
    "batches": frozenset(
        {
            *TOPIC_CHOICES,
            *(
                "startingTimestamp",
                "startingOffsetsByTimestamp",
                "startingOffsets",
                "startingOffsetsByTimestampStrategy",
            ),
            *("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets", "failOnDataLoss"),
            *(
                "minPartitions",
                "maxRecordsPerPartition",
                "maxBytesPerPartition",
                "balanceBy",
                "kafka.group.id",
                "groupIdPrefix",
            ),
            *(
                "kafkaConsumer.pollTimeoutMs",
                "fetchOffset.numRetries",
                "fetchOffset.retryIntervalMs",
                "measureRatio",
            ),
        }
    ),
    "offsets": frozenset({"subscribe", "subscribePattern", "groups"}),
    "topics": frozenset({"subscribe", "subscribePattern"}),
}
"""The views by name, each with the options of `OPTIONS` that it heeds; the others are refused
there."""


@dataclass(frozen=True)
class Option:
    """One option of the source or the sink."""

    name: str
    used_by: str
    """A key of `USES`."""
    default: str
    doc: str
    parse: Callable[[str], object] = str
    ours: bool = False
    """Spark's connector has no such option."""


OPTIONS: tuple[Option, ...] = (
    Option("assign", "read", "", 'Partitions to read, as JSON: {"topic": [0, 1]}.', parse_assignment),
    Option("subscribe", "read", "", "Topics to read, separated by commas.", names),
    Option(
        "subscribePattern",
        "read",
        "",
        "Regular expression (Python's) that the names of the topics to read match whole; Kafka's internal "
        "topics are left out.",
        not_empty,
    ),
    Option(
        "startingTimestamp",
        "read",
        "",
        "Start every partition at the first record of this time (ms since 1970).",
        time_ms,
    ),
    Option(
        "startingOffsetsByTimestamp",
        "read",
        "",
        'The same by partition: {"topic": {"0": 1000}}.',
        parse_timestamps,
    ),
    Option(
        "startingOffsets",
        "read",
        "earliest; streaming: latest",
        'earliest, latest (streaming only), or offsets by partition: {"topic": {"0": 23, "1": -2}}; -2 is '
        "earliest, -1 latest. "
        "A query that has a checkpoint goes on where it was; partitions found while it runs start at "
        "earliest.",
        parse_offsets,
    ),
    Option(
        "endingTimestamp",
        "batch",
        "",
        "End every partition before the first record of this time (ms since 1970).",
        time_ms,
    ),
    Option(
        "endingOffsetsByTimestamp",
        "batch",
        "",
        'The same by partition: {"topic": {"0": 2000}}.',
        parse_timestamps,
    ),
    Option(
        "endingOffsets",
        "batch",
        "latest",
        'latest, or offsets by partition: {"topic": {"0": 50, "1": -1}}; -1 is latest.',
        parse_offsets,
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "read",
        "error",
        "When a partition has no record of the starting time or later: error, or latest to start at its end.",
        one_of("error", "latest"),
    ),
    Option(
        "failOnDataLoss",
        "read",
        "true",
        "Fail if records between the offsets asked for are gone, or a topic is; false reads what is left.",
        boolean,
    ),
    Option(
        "maxOffsetsPerTrigger",
        "stream",
        "",
        "Offsets of a micro-batch at most, shared out by what each partition has.",
        positive,
    ),
    Option(
        "maxBytesPerTrigger",
        "stream",
        "",
        "Bytes of a micro-batch, about, as Kafka keeps them (compressed): 64m.",
        size_bytes,
        True,
    ),
    Option(
        "minOffsetsPerTrigger",
        "stream",
        "",
        "Wait until there are so many offsets to read, at most maxTriggerDelay.",
        positive,
    ),
    Option(
        "maxTriggerDelay", "stream", "15m", "Wait no longer than this for minOffsetsPerTrigger.", duration_ms
    ),
    Option(
        "minPartitions",
        "read",
        "",
        "Split the ranges so that there are at least so many tasks (approximately).",
        positive,
    ),
    Option(
        "maxRecordsPerPartition",
        "read",
        "",
        "Split ranges longer than this many offsets into several tasks.",
        positive,
    ),
    Option(
        "maxBytesPerPartition",
        "read",
        "",
        "Split ranges larger than this, about, into several tasks: 128m, as Kafka keeps them.",
        size_bytes,
        True,
    ),
    Option(
        "balanceBy",
        "read",
        "offsets",
        "offsets: a task for each partition, or more as above. bytes: as many tasks, each with about the "
        "same bytes: a hot partition is "
        "split, small ones share a task.",
        one_of("offsets", "bytes"),
        True,
    ),
    Option(
        "includeHeaders",
        "both",
        "false; write: as it is",
        "Add the column headers. In a write, which writes the column headers if there is one: see to it that "
        "there is, or is not.",
        boolean,
    ),
    *(Option(*row) for row in FORMAT_OPTIONS),
    Option(
        "kafkaConsumer.pollTimeoutMs",
        "read",
        "120000",
        "How long a task waits for records that must exist.",
        positive,
    ),
    Option(
        "fetchOffset.numRetries",
        "read",
        "3",
        "How often planning asks again for offsets when it fails.",
        positive,
    ),
    Option("fetchOffset.retryIntervalMs", "read", "10", "Wait between such attempts.", positive),
    Option(
        "kafka.group.id",
        "read",
        "",
        "The group of the clients. They join no group; see commitOffsets.",
        not_empty,
    ),
    Option(
        "groupIdPrefix",
        "read",
        "",
        "Without kafka.group.id: the group is this and a number made of what is read.",
        not_empty,
    ),
    Option(
        "commitOffsets",
        "stream",
        "false",
        "Commit what is processed to the group after each micro-batch, so that Kafka's tools see the lag. "
        "The checkpoint alone says where "
        "the query goes on.",
        boolean,
        True,
    ),
    Option(
        "view",
        "batch",
        "records",
        "What a row is. records; batches: a record batch, by its header; offsets: how far a group is in a "
        "partition, and its lag; topics: "
        "a partition, with leader, replicas, offsets, bytes and its topic's configs.",
        one_of("records", *VIEW_OPTIONS),
        True,
    ),
    Option(
        "measureRatio",
        "batch",
        "true",
        "In the view batches: inflate compressed batches to know their size without a codec; with false, "
        "that and ratio are null.",
        boolean,
        True,
    ),
    Option(
        "groups", "batch", "", "In the view offsets: only these groups, separated by commas.", names, True
    ),
    Option("topic", "write", "", "Topic of every row; goes over a column topic.", topic_name),
    *(Option(*row) for row in EXACTLY_ONCE_OPTIONS),
)

REFUSED: Mapping[str, str] = {
    "kafka.auto.offset.reset": "use startingOffsets",
    "kafka.key.deserializer": "keys are binary; use keyFormat, or decode with DataFrame operations",
    "kafka.value.deserializer": "values are binary; use valueFormat, or decode with DataFrame operations",
    "kafka.key.serializer": "use keyFormat, or encode with DataFrame operations",
    "kafka.value.serializer": "use valueFormat, or encode with DataFrame operations",
    "kafka.enable.auto.commit": "offsets are committed after each micro-batch, with commitOffsets=true",
    "kafka.interceptor.classes": "the source reads keys and values as they are",
    "kafka.transactional.id": "set deliveryGuarantee=exactly-once, and transactionalIdPrefix if names must "
    "begin with something",
}
"""Options of Spark's connector that are refused, with the reason."""
