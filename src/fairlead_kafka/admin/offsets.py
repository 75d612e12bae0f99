"""Offsets of partitions: look up, delete records before them. Sources: KIP-396, KIP-107."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from fairlead_kafka.admin.scripts import AdminScript, retriable
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ItemsFailed, UnsupportedVersion
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.partition_offsets import OffsetAndTimestamp, by_leader
from fairlead_kafka.core.partition_offsets import list_offsets as ask_offsets
from fairlead_kafka.core.script import Ask, Pause, ask_all
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse

T = TypeVar("T")


def list_offsets(
    metadata: Metadata, targets: Mapping[TopicPartition, int]
) -> AdminScript[dict[TopicPartition, OffsetAndTimestamp | None]]:
    """Look up offsets: {partition: offset and timestamp}, None where no record has that timestamp
    or a later one. ItemsFailed names the partitions that failed."""
    found = yield from ask_offsets(metadata, targets)
    return results_or_error("list_offsets", found)


def delete_records(
    metadata: Metadata, before: Mapping[TopicPartition, int], *, timeout_ms: int
) -> AdminScript[dict[TopicPartition, int]]:
    """Delete records before offsets: {partition: its log start offset now}. ItemsFailed names the
    partitions that failed."""
    found: dict[TopicPartition, int | BrokerError] = {}
    while len(found) < len(before):
        groups, problems = by_leader(metadata, (partition for partition in before if partition not in found))
        final = {partition: problem for partition, problem in problems.items() if not problem.retriable}
        found.update(final)
        trouble: Exception | None = None
        if groups:
            messages = {leader: _message(group, before, timeout_ms) for leader, group in groups.items()}
            asks = [Ask(ApiKey.DELETE_RECORDS, message, leader) for leader, message in messages.items()]
            for answer in (yield from ask_all(asks)):
                if isinstance(answer, UnsupportedVersion):
                    raise answer
                if isinstance(answer, Exception):
                    trouble = answer
                    continue
                for partition, result in _read(answer).items():
                    if partition not in before:
                        continue  # nobody asked about it
                    if isinstance(result, BrokerError) and (
                        retriable(result.code) or result.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    ):
                        trouble = result
                    else:
                        found[partition] = result
        unplaced = [problem for partition, problem in problems.items() if partition not in final]
        if trouble is not None:
            yield Pause(trouble, refresh=True)
        elif unplaced:
            yield Pause(unplaced[0], until_metadata=True)
        elif len(found) < len(before):
            yield Pause(
                BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "an answer left out partitions"), refresh=True
            )
    return results_or_error("delete_records", {partition: found[partition] for partition in before})


def results_or_error(what: str, found: Mapping[TopicPartition, T | BrokerError]) -> dict[TopicPartition, T]:
    """The results in `found`, by partition. Raises ItemsFailed, about the call `what`, if errors
    are among them."""
    errors = {partition: result for partition, result in found.items() if isinstance(result, BrokerError)}
    results = {
        partition: result for partition, result in found.items() if not isinstance(result, BrokerError)
    }
    if errors:
        raise ItemsFailed(what, errors, results)
    return results


def _message(
    partitions: list[TopicPartition], before: Mapping[TopicPartition, int], timeout_ms: int
) -> DeleteRecordsRequest:
    topics: dict[str, list[DeleteRecordsRequest.DeleteRecordsPartition]] = {}
    for partition in partitions:
        row = DeleteRecordsRequest.DeleteRecordsPartition(
            partition_index=partition.partition, offset=before[partition]
        )
        topics.setdefault(partition.topic, []).append(row)
    rows = [
        DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=items) for name, items in topics.items()
    ]
    return DeleteRecordsRequest(topics=rows, timeout_ms=timeout_ms)


def _read(answer: DeleteRecordsResponse) -> dict[TopicPartition, int | BrokerError]:
    return {
        TopicPartition(topic.name, item.partition_index): (
            BrokerError(item.error_code, f"{topic.name}-{item.partition_index}")
            if item.error_code
            else item.low_watermark
        )
        for topic in answer.topics
        for item in topic.partitions
    }
