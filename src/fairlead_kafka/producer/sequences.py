"""Sequence arithmetic: numbers from 0 to 2**31 - 1 that wrap to 0 (Kafka's
`DefaultRecordBatch.incrementSequence`)."""

from __future__ import annotations

from fairlead_kafka.base.ids import NO_SEQUENCE
from fairlead_kafka.base.limits import SEQUENCE_MAX

_MODULUS = SEQUENCE_MAX + 1
EPOCH_MAX = 2**15 - 1
"""The highest producer epoch; after it a new producer id is needed."""


def sequence_after(base_sequence: int, count: int) -> int:
    """The sequence of the record that follows `count` records starting at `base_sequence`."""
    return (base_sequence + count) % _MODULUS


def last_sequence(base_sequence: int, count: int) -> int:
    """The sequence of the last of `count` (1 or more) records starting at `base_sequence`."""
    return (base_sequence + count - 1) % _MODULUS


def lies_behind(base_sequence: int, count: int, sequence: int) -> bool:
    """True if `sequence` is that of a later record than `count` records starting at
    `base_sequence`, by less than half of all numbers."""
    return count <= (sequence - base_sequence) % _MODULUS < _MODULUS // 2


def follows(last_acknowledged: int, base_sequence: int) -> bool:
    """True if a batch at `base_sequence` comes next after `last_acknowledged`; NO_SEQUENCE: nothing
    was acknowledged, so 0 is next."""
    return base_sequence == (0 if last_acknowledged == NO_SEQUENCE else sequence_after(last_acknowledged, 1))
