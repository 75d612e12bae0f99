"""Share groups (KIP-932) on the command line: reading as a member, and describing them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import BrokerError, UnsupportedVersion
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.connecting import open_admin, open_share_consumer
from fairlead_kafka.cli.terminal import counted, errors
from fairlead_kafka.client import AcknowledgeType, ConfigChange, ConfigResource

if TYPE_CHECKING:
    from fairlead_kafka.client import Admin, ShareRecord

POLL_S = 0.2
"""Time that one poll waits, s; Ctrl-C takes effect in between."""
LONG_WAIT_S = 10.0
"""Seconds without a record after which a line says so if no partition was assigned: longer than two
heartbeats (`share.heartbeat.interval.ms`), which a first member takes."""
_RESET = "share.auto.offset.reset"
_STATE_TOPIC = "__share_group_state"


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
    settings: Mapping[str, object],
    topic: str,
    max_records: int | None,
    show: Callable[[ShareRecord], None],
    from_beginning: bool,
) -> None:
    """Print records as a member of a share group, `max_records` of them at most, until Ctrl-C.
    Records that were printed are accepted, all others released."""
    shown = 0
    group = str(settings["group.id"])
    known = {key.name for key in CLIENT_CONFIGS.scope("admin")}
    for_admin = {
        name: one for name, one in settings.items() if CLIENT_CONFIGS.aliases.get(name, name) in known
    }
    settings = {**settings, "share.acknowledgement.mode": "explicit"}
    try:
        with open_admin(for_admin) as admin:
            begin_group(admin, group, topic, from_beginning)
        with open_share_consumer(settings) as consumer:
            consumer.subscribe([topic])
            wait_until: float | None = time.monotonic() + LONG_WAIT_S
            while max_records is None or shown < max_records:
                records = consumer.poll(POLL_S)
                if records:
                    wait_until = None
                elif wait_until is not None and time.monotonic() > wait_until:
                    wait_until = None
                    with open_admin(for_admin) as admin:
                        explain_wait(admin, group, topic)
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


def begin_group(admin: Admin, group: str, topic: str, from_beginning: bool) -> None:
    """Print a line about where a share group begins in a topic that is new to it.

    `from_beginning`: set the group's config, so that it is the first record; BrokerError if the
    user may not. A user who may not look the group up gets no line.
    """
    resource = ConfigResource.group(group)
    if from_beginning:
        admin.alter_configs({resource: [ConfigChange.set(_RESET, "earliest")]})
    try:
        offsets = admin.list_share_group_offsets([group])[group]
        reset = "earliest" if from_beginning else admin.describe_configs([resource])[resource][_RESET].value
    except (BrokerError, UnsupportedVersion):
        return
    started = any(of.topic == topic and one.start_offset >= 0 for of, one in offsets.items())
    if started:
        if from_beginning:
            errors.print(
                f"share group {group} goes on where it was; --from-beginning is for what is new to it",
                markup=False,
            )
        return
    where = {
        "earliest": "with the first record",
        "latest": "with what comes from now on; --from-beginning has it begin with the first record",
    }.get(str(reset), "where that says")
    errors.print(f"share group {group} begins in {topic} ({_RESET}={reset}) {where}", markup=False)


def explain_wait(admin: Admin, group: str, topic: str) -> None:
    """Print why a share group gets no records, if the reason is that no member has a partition of
    the topic."""
    try:
        members = admin.describe_share_groups([group])[group].members
        if any(of.topic == topic for member in members for of in member.assignment):
            return
        missing = _STATE_TOPIC not in admin.list_topics(include_internal=True)
    except (BrokerError, UnsupportedVersion):
        return
    errors.print(
        f"share group {group} has no partition of {topic} yet"
        + (
            f": the cluster has no topic {_STATE_TOPIC}. Apache Kafka creates it with three replicas; "
            "fewer brokers need share.coordinator.state.topic.replication.factor=1 and "
            "share.coordinator.state.topic.min.isr=1"
            if missing
            else ""
        ),
        markup=False,
    )


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
