"""Partitions and brokers on the command line: `TOPIC` for all of a topic, `TOPIC:0,1` for single
ones; brokers by their ids."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fairlead_kafka.admin import ClusterDescription
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.terminal import whole_number
from fairlead_kafka.client import Admin


def named_partitions(admin: Admin, texts: Sequence[str], option: str = "--topic") -> list[TopicPartition]:
    """The partitions that `TOPIC` and `TOPIC:0,1` name. UsageError, which names the option, for one
    that does not exist."""
    wanted: dict[str, list[int] | None] = {}
    for text in texts:
        name, colon, numbers = text.partition(":")
        given = [whole_number(number) for number in numbers.split(",")] if colon else []
        whole = [number for number in given if number is not None]
        if len(whole) < len(given):
            raise UsageError(f"{option} {text}: expected TOPIC, or TOPIC:0,1 for single partitions")
        wanted[name] = whole if colon else None
    described = admin.describe_topics(wanted) if wanted else {}
    found: list[TopicPartition] = []
    for name, only in wanted.items():
        count = len(described[name].partitions)
        absent = [number for number in only or () if number >= count]
        if absent:
            raise UsageError(
                f"topic {name} has partitions 0 to {count - 1}, and no {', '.join(map(str, absent))}"
            )
        found += [TopicPartition(name, number) for number in (range(count) if only is None else only)]
    return sorted(found)


def known_brokers(cluster: ClusterDescription, ids: Collection[int] | None) -> list[int]:
    """Ids of the brokers that were named, or of all. UsageError for one that does not run."""
    there = sorted(node.node_id for node in cluster.nodes)
    for node_id in ids or ():
        if node_id not in there:
            raise UsageError(f"there is no broker {node_id}; there are {', '.join(map(str, there))}")
    return sorted(set(ids)) if ids else there
