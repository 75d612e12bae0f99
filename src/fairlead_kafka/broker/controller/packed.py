"""Partitions as columns, the form in which records hold them: 30,000 of them take 100 kB of text
and are read in milliseconds.

Most partitions of a topic have the same shape as many others, so each shape (replicas, replicas in
sync and leader) is written once, and partitions refer to it by number; epochs that are all the same
are written once.

    {"shapes": [[[0, 1, 2], [0, 1, 2], 0], ...], "of": [0, 1, 0, ...],
     "leader_epochs": 0, "partition_epochs": [3, 4, 3, ...]}

A shape is [replicas, isr, leader], and two lists more, adding and removing, while the partition is
being moved. One epoch stands for all if it is a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, TypedDict

from fairlead_kafka.broker.controller.image import PartitionImage

Written = list[Any]
"""A shape as it is in the log: lists and a number."""


class Packed(TypedDict):
    """Partitions as columns: each one's shape is `shapes[of]`. An epoch that is the same for all is
    written once."""

    shapes: list[Written]
    of: list[int]
    leader_epochs: int | list[int]
    partition_epochs: int | list[int]


Shape = tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...], tuple[int, ...]]
"""Replicas, replicas in sync, leader, replicas being added, replicas being removed."""


def pack(partitions: Sequence[PartitionImage]) -> Packed:
    """The columns of partitions, the form in which records have them."""
    numbers: dict[Shape, int] = {}
    of = [
        numbers.setdefault((one.replicas, one.isr, one.leader, one.adding, one.removing), len(numbers))
        for one in partitions
    ]
    return {
        "shapes": [_written(shape) for shape in numbers],
        "of": of,
        "leader_epochs": _column([one.leader_epoch for one in partitions]),
        "partition_epochs": _column([one.partition_epoch for one in partitions]),
    }


def unpack(packed: Packed) -> list[PartitionImage]:
    """New partitions from columns. Equal partitions share their tuples."""
    return [
        PartitionImage(replicas, isr, leader, leader_epoch, partition_epoch, adding, removing)
        for (replicas, isr, leader, adding, removing), leader_epoch, partition_epoch in rows(packed)
    ]


def rows(packed: Packed) -> Iterable[tuple[Shape, int, int]]:
    """Shape, leader epoch and partition epoch of each partition."""
    shapes = [_read(shape) for shape in packed["shapes"]]
    return zip(
        map(shapes.__getitem__, packed["of"]),
        _epochs(packed["leader_epochs"]),
        _epochs(packed["partition_epochs"]),
        strict=False,
    )


def _written(shape: Shape) -> Written:
    replicas, isr, leader, adding, removing = shape
    written: Written = [list(replicas), list(isr), leader]
    return [*written, list(adding), list(removing)] if adding or removing else written


def _read(written: Written) -> Shape:
    replicas, isr, leader, *moving = written
    adding, removing = moving or ((), ())
    return tuple(replicas), tuple(isr), leader, tuple(adding), tuple(removing)


def _column(epochs: list[int]) -> int | list[int]:
    return epochs[0] if len(set(epochs)) == 1 else epochs


def _epochs(column: int | list[int]) -> Iterable[int]:
    return repeat(column) if isinstance(column, int) else column
