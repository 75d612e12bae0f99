"""Parsed options by their proper names, with the types that the functions of `option_table` give
them; a test compares the names with the table."""

from __future__ import annotations

from typing import TypedDict

from fairlead_kafka.spark.offsets import OffsetsByPartition

Values = TypedDict(
    "Values",
    {
        "assign": dict[str, list[int]],
        "subscribe": list[str],
        "subscribePattern": str,
        "startingTimestamp": int,
        "startingOffsetsByTimestamp": OffsetsByPartition,
        "startingOffsets": int | OffsetsByPartition,
        "endingTimestamp": int,
        "endingOffsetsByTimestamp": OffsetsByPartition,
        "endingOffsets": int | OffsetsByPartition,
        "startingOffsetsByTimestampStrategy": str,
        "failOnDataLoss": bool,
        "maxOffsetsPerTrigger": int,
        "maxBytesPerTrigger": int,
        "minOffsetsPerTrigger": int,
        "maxTriggerDelay": int,
        "minPartitions": int,
        "maxRecordsPerPartition": int,
        "maxBytesPerPartition": int,
        "balanceBy": str,
        "includeHeaders": bool,
        "columns": str,
        "valueFormat": str,
        "valueSchema": str,
        "valueWriterSchema": str,
        "valueSubject": str,
        "valueDescriptor": str,
        "valueMessage": str,
        "keyFormat": str,
        "keySchema": str,
        "keyWriterSchema": str,
        "keySubject": str,
        "keyDescriptor": str,
        "keyMessage": str,
        "schemaRegistry.url": str,
        "deadLetterTopic": str,
        "kafkaConsumer.pollTimeoutMs": int,
        "fetchOffset.numRetries": int,
        "fetchOffset.retryIntervalMs": int,
        "kafka.group.id": str,
        "groupIdPrefix": str,
        "commitOffsets": bool,
        "view": str,
        "measureRatio": bool,
        "groups": list[str],
        "topic": str,
        "deliveryGuarantee": str,
        "transactionalIdPrefix": str,
        "commitLogTopic": str,
        "txnAppId": str,
        "txnVersion": int,
    },
    total=False,
)
"""Options that were given, and could be parsed. `maxTriggerDelay` and timestamps are in ms, those
of `…Bytes…` in bytes."""
