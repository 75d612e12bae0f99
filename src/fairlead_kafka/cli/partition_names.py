"""Partitions on the command line: `TOPIC` for all of a topic, `TOPIC:0,1` for single ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin


def named_partitions(admin: Admin, texts: Sequence[str], option: str = "--topic") -> list[TopicPartition]:
    """The partitions that `TOPIC` and `TOPIC:0,1` name. UsageError for one that is not there."""
    wanted: dict[str, list[int] | None] = {}
    for text in texts:
        name, colon, numbers = text.partition(":")
        if colon and not re.fullmatch(r"\d+(,\d+)*", numbers):
            raise UsageError(f"{option} {text}: expected TOPIC, or TOPIC:0,1 for single partitions")
        wanted[name] = [int(number) for number in numbers.split(",")] if colon else None
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
