"""Errors for topics that do not exist, with the topic that was most likely meant."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.base.nearest import nearest


def did_you_mean(topic: str, there: Iterable[str]) -> str:
    """The topic of `there` whose name is nearest to `topic`, as the end of a sentence; empty if
    none is near."""
    near = nearest(topic, there)
    return f"; did you mean {near}?" if near else ""
