"""Offsets to commit, as callers give them."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead_kafka.base.checked import check
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.within import Int32, Offset
from fairlead_kafka.core.group_offsets import OffsetAndMetadata

Offsets = Mapping[TopicPartition, Offset | OffsetAndMetadata]


def as_offsets(call: str, offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    """`offsets`, each with its metadata. UsageError for numbers out of range.

    Their types are checked before, where the call comes in (`base.checked`).
    """
    wanted = {
        TopicPartition(*of): OffsetAndMetadata(*one) if isinstance(one, tuple) else OffsetAndMetadata(one)
        for of, one in offsets.items()
    }
    for of, one in wanted.items():
        check(call, f"offsets[{of}].offset", one.offset, Offset)
        check(call, f"offsets[{of}].leader_epoch", one.leader_epoch, Int32)
    return wanted
