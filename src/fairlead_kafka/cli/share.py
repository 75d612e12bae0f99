"""Share groups (KIP-932) on the command line: reading as a member, and describing them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.connecting import open_share_consumer
from fairlead_kafka.cli.terminal import counted, errors
from fairlead_kafka.client import AcknowledgeType

if TYPE_CHECKING:
    from fairlead_kafka.client import Admin, ShareRecord

POLL_S = 0.2
"""How long one poll waits; Ctrl-C is heard in between."""


class DescribedGroup(TypedDict):
    """A group, as shown and as reported."""

    group: str
    state: str
    type: str
    protocol: str
    epoch: int | None
    target_assignment_epoch: int | None
    coordinator: int | None
    partitions: Sequence[Mapping[str, object]]
    members: Sequence[Mapping[str, object]]


def consume_share(
    settings: Mapping[str, object], topic: str, max_records: int | None, show: Callable[[ShareRecord], None]
) -> None:
    """Print records as a member of a share group, up to so many, until Ctrl-C.

    What is written is accepted, and the rest released.
    """
    shown = 0
    settings = {**settings, "share.acknowledgement.mode": "explicit"}
    try:
        with open_share_consumer(settings) as consumer:
            consumer.subscribe([topic])
            while max_records is None or shown < max_records:
                records = consumer.poll(POLL_S)
                left = len(records) if max_records is None else max_records - shown
                for record in records[:left]:
                    show(record)
                sys.stdout.buffer.flush()
                for number, record in enumerate(records):
                    consumer.acknowledge(
                        record, AcknowledgeType.ACCEPT if number < left else AcknowledgeType.RELEASE
                    )
                shown += len(records[:left])
            for failed in filter(None, consumer.commit().values()):
                raise failed
    except KeyboardInterrupt:
        pass  # The usual way to end it.
    finally:
        sys.stdout.buffer.flush()
        errors.print(counted(shown))


def describe_share_groups(admin: Admin, groups: list[str]) -> list[DescribedGroup]:
    """Share groups as `fairlead groups describe` reports groups."""
    if not groups:
        return []
    described = admin.describe_share_groups(groups)
    offsets = admin.list_share_group_offsets(groups)
    return [
        {
            "group": name,
            "state": group.state,
            "type": "share",
            "protocol": group.assignor,
            "epoch": group.epoch,
            "target_assignment_epoch": group.target_assignment_epoch,
            "coordinator": None if group.coordinator is None else group.coordinator.node_id,
            "partitions": [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "start_offset": offset.start_offset,
                    "lag": offset.lag,
                }
                for partition, offset in sorted(offsets[name].items())
            ],
            "members": [
                {
                    "member_id": member.member_id,
                    "client_id": member.client_id,
                    "host": member.host,
                    "epoch": member.epoch,
                    "assignment": by_topic(member.assignment),
                }
                for member in group.members
            ],
        }
        for name, group in described.items()
    ]


def by_topic(partitions: tuple[TopicPartition, ...]) -> dict[str, list[int]]:
    """Numbers of partitions by topic."""
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found
