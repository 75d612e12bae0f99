"""The format of a replication stream: a follower's pulls and its leader's answers. All integers are
big-endian.

    pull    kind 1 · node id 4 · broker epoch 8 · answer written 8 · wait in ms 4 · most bytes 4
            counts of the two lists 4, 4
            dropped: topic id 16 · partition 4
            meetings: topic id 16 · partition 4 · leader epoch 4 · log end 8 · last epoch 4
    answer  error 2 · number 8 · counts of the three lists 4, 4, 4
            outcomes: topic id 16 · partition 4 · error 2 · step 1 · epoch 4 · offset 8
            marks: topic id 16 · partition 4 · high watermark 8 · log start 8
            runs: topic id 16 · partition 4 · size in bytes 4
            the batches of all runs, one after another

A partition is named by its key: topic id and number, 20 bytes. A nudge is a pull with a kind of its
own, and nothing else in it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.broker.replication.rules import LogMatch, Step
from fairlead_kafka.core.effects import Buffer

PULL, NUDGE = 0, 1
_PULL = struct.Struct(">biqqiiii")
_ANSWER = struct.Struct(">hqiii")
_KEY = struct.Struct(">20s")
_NUMBER = struct.Struct(">i")
_MEETING = struct.Struct(">20siqi")
_OUTCOME = struct.Struct(">20shbiq")
_MARK = struct.Struct(">20sqq")
_RUN = struct.Struct(">20si")

Key = bytes
"""A partition: topic id (16 bytes) and number (4)."""


class Meeting(NamedTuple):
    """End and last epochs of a follower's log, for its leader to compare."""

    key: Key
    leader_epoch: int
    log_end: int
    last_epoch: int


class Pull(NamedTuple):
    """A follower's request. `written` is the number of the last answer that it has written; 0: none
    on this connection. `meetings` are Meetings, or, if there are very many, plain tuples, which
    cost the garbage collector less."""

    node_id: int
    broker_epoch: int
    written: int
    wait_ms: int
    max_bytes: int
    dropped: Sequence[Key] = ()
    meetings: Sequence[tuple[Key, int, int, int]] = ()


class PartitionOutcome(NamedTuple):
    """A partition that cannot be followed as it is: an error code, or what the follower has to do
    (`log_match`)."""

    key: Key
    error: int
    log_match: LogMatch


class Mark(NamedTuple):
    """High watermark and log start offset of a partition, for its follower."""

    key: Key
    high_watermark: int
    log_start: int


class Answer(NamedTuple):
    """A leader's answer. `runs` are partitions with their next batches."""

    error: int
    number: int
    outcomes: Sequence[PartitionOutcome] = ()
    marks: Sequence[Mark] = ()
    runs: Sequence[tuple[Key, memoryview]] = ()


def key_of(topic_id: bytes, number: int) -> Key:
    """The key of a partition: the topic id's 16 bytes and the number."""
    return topic_id + _NUMBER.pack(number)


def number_of(key: Key) -> int:
    """The partition number in a key; its first 16 bytes are the topic id."""
    number: int = _NUMBER.unpack_from(key, 16)[0]
    return number


def encode_pull(pull: Pull) -> list[Buffer]:
    """The body of a pull."""
    head = _PULL.pack(
        PULL,
        pull.node_id,
        pull.broker_epoch,
        pull.written,
        pull.wait_ms,
        pull.max_bytes,
        len(pull.dropped),
        len(pull.meetings),
    )
    pack = _MEETING.pack
    return [b"".join((head, *pull.dropped, *[pack(*meeting) for meeting in pull.meetings]))]


def encode_nudge(node_id: int) -> list[Buffer]:
    """The body of a nudge."""
    return [_PULL.pack(NUDGE, node_id, 0, 0, 0, 0, 0, 0)]


def decode_pull(body: memoryview) -> Pull | None:
    """The pull in `body`; None for a nudge. DecodeError for bytes that are neither."""
    try:
        kind, node_id, broker_epoch, written, wait_ms, max_bytes, dropped_count, meeting_count = (
            _PULL.unpack_from(body)
        )
        if kind == NUDGE:
            return None
        position = _PULL.size
        middle = position + dropped_count * _KEY.size
        stop = middle + meeting_count * _MEETING.size
        dropped = [key for (key,) in _KEY.iter_unpack(body[position:middle])]
        meetings = list(_MEETING.iter_unpack(body[middle:stop]))
    except struct.error as error:
        raise DecodeError(f"not a pull of a replication stream: {error}", 0) from None
    if stop != len(body) or kind != PULL:
        raise DecodeError(f"a pull of a replication stream has {stop} bytes, not {len(body)}", 0)
    return Pull(node_id, broker_epoch, written, wait_ms, max_bytes, dropped, meetings)


def encode_answer(
    error: int,
    number: int,
    outcomes: Sequence[PartitionOutcome],
    marks: Sequence[Mark],
    runs: Sequence[tuple[Key, int]],
    batches: Sequence[Buffer],
) -> list[Buffer]:
    """The body of an answer; `runs` say how many bytes of `batches` belong to which partition. The
    batches are not copied."""
    head = b"".join(
        (
            _ANSWER.pack(error, number, len(outcomes), len(marks), len(runs)),
            *[_OUTCOME.pack(one.key, one.error, *one.log_match) for one in outcomes],
            *[_MARK.pack(*mark) for mark in marks],
            *[_RUN.pack(*run) for run in runs],
        )
    )
    return [head, *batches]


def decode_answer(body: memoryview) -> Answer:
    """The answer in `body`; its batches are views into that. DecodeError for bytes that are
    none."""
    try:
        error, number, outcome_count, mark_count, run_count = _ANSWER.unpack_from(body)
        marks_begin = _ANSWER.size + outcome_count * _OUTCOME.size
        runs_begin = marks_begin + mark_count * _MARK.size
        position = runs_begin + run_count * _RUN.size
        outcomes = [
            PartitionOutcome(key, code, LogMatch(Step(step), epoch, offset))
            for key, code, step, epoch, offset in _OUTCOME.iter_unpack(body[_ANSWER.size : marks_begin])
        ]
        marks = list(map(Mark._make, _MARK.iter_unpack(body[marks_begin:runs_begin])))
        runs = []
        for key, size_bytes in _RUN.iter_unpack(body[runs_begin:position]):
            runs.append((key, body[position : position + size_bytes]))
            position += size_bytes
    except (struct.error, ValueError) as wrong:
        raise DecodeError(f"not an answer of a replication stream: {wrong}", 0) from None
    if position != len(body):
        raise DecodeError(f"an answer of a replication stream has {position} bytes, not {len(body)}", 0)
    return Answer(error, number, outcomes, marks, runs)
