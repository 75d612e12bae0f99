"""Checks of reads: compares the records that readers got with the facts. No lasting record may be
missing, and none may be there that was not written or was aborted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.consumer import OffsetAndTimestamp
from fairlead_kafka.core.partition_offsets import MAX_TIMESTAMP
from fairlead_kafka.simulation.facts import Fact, Facts, Visibility
from fairlead_kafka.simulation.keyed_sender import COMPACTED
from fairlead_kafka.simulation.reader import Look
from fairlead_kafka.simulation.rot import Rotten

Item = tuple[int, int]
"""Offset and timestamp of a record or marker."""


def check_look(look: Look, facts: Facts) -> list[str]:
    """Every violation, as a text, in the answers that a look got, whenever it took place and
    however it ended."""
    found = [*_unsound(look, facts), *_missing(look, facts), *_beyond(look, facts)]
    for time_ms, answer in look.found.items():
        found += (
            _newest(look, facts, answer)
            if time_ms == MAX_TIMESTAMP
            else _by_time(look, facts, time_ms, answer)
        )
    return [f"{look}: {what}" for what in found]


def _unsound(look: Look, facts: Facts) -> Iterable[str]:
    """Records that the reader was given and should not have been, as texts."""
    place, before = look.place, max(look.seek, look.start) - 1
    for read in look.records:
        if read.offset <= before:
            yield f"it was given offset {read.offset} after {before}"
        before = read.offset
        fact = facts.at(place, read.offset)
        if fact is None:
            if not facts.may_be(place[0], read, look.committed):
                yield f"it was given {read}, which nobody wrote"
        elif (read.key, read.value, read.timestamp_ms) != fact.wrote:
            yield f"it was given {read}, where {fact} was acknowledged"
        elif look.committed and fact.visibility is Visibility.ABORTED:
            yield f"it was given {fact}"


def _missing(look: Look, facts: Facts) -> Iterable[str]:
    """Records that the reader should have been given on its way and was not, as texts."""
    if look.position < 0:
        return
    given = {read.offset for read in look.records}
    stop = min(look.position, look.end) if look.whole else look.position
    for fact in facts.by_place[look.place].values():
        if (
            max(look.seek, look.start) <= fact.offset < stop
            and fact.offset not in given
            and _is_due(look, facts, fact)
        ):
            yield f"it was not given {fact}"


def _is_due(look: Look, facts: Facts, fact: Fact) -> bool:
    if facts.stays(look.place, fact):
        return True
    # Nothing removes an aborted transaction from a log that is not compacted, so a read_uncommitted
    # reader is given it.
    plain = look.place[0] != COMPACTED and not look.committed
    return plain and fact.offset >= facts.trimmed.get(look.place, 0)


def _beyond(look: Look, facts: Facts) -> Iterable[str]:
    """As texts, log ends that leave out a record which was acknowledged before the end was asked
    for."""
    if look.committed or look.end < 0:
        return
    for fact in facts.by_place[look.place].values():
        if fact.completed_ns < look.begun_ns and fact.offset >= look.end:
            yield f"it was told that the log ends at {look.end}, and {fact} had been acknowledged"


def _sure(look: Look, facts: Facts) -> list[Fact]:
    """Facts that were certainly in the log when offsets were asked for."""
    return [fact for fact in facts.by_place[look.place].values() if _was_there(look, facts, fact)]


def _was_there(look: Look, facts: Facts, fact: Fact) -> bool:
    return facts.stays(look.place, fact) and fact.completed_ns < look.begun_ns and fact.offset < look.end


def _by_time(look: Look, facts: Facts, time_ms: int, answer: OffsetAndTimestamp | None) -> Iterable[str]:
    due = [fact for fact in _sure(look, facts) if fact.wrote.timestamp_ms >= time_ms]
    first = min(due, key=lambda fact: fact.offset, default=None)
    if answer is None:
        if first is not None:
            yield f"it was told that nothing is as late as {time_ms}, but there is {first}"
        return
    yield from _has_time(look, facts, answer)
    if answer.timestamp_ms < time_ms:
        yield f"for time {time_ms} it was told {answer}, which is earlier"
    if first is not None and first.offset < answer.offset:
        yield f"for time {time_ms} it was told {answer}, but before that there is {first}"


def _newest(look: Look, facts: Facts, answer: OffsetAndTimestamp | None) -> Iterable[str]:
    newest = max(_sure(look, facts), key=lambda fact: fact.wrote.timestamp_ms, default=None)
    if answer is not None:
        yield from _has_time(look, facts, answer)
    if newest is not None and (answer is None or answer.timestamp_ms < newest.wrote.timestamp_ms):
        yield f"it was told that {answer} is the newest, but there is {newest}"


def _has_time(look: Look, facts: Facts, answer: OffsetAndTimestamp) -> Iterable[str]:
    fact = facts.at(look.place, answer.offset)
    if fact is not None and fact.wrote.timestamp_ms != answer.timestamp_ms:
        yield f"it was told {answer}, where {fact} was acknowledged"


def check_final_looks(looks: Sequence[Look], rotten: Sequence[Rotten]) -> list[str]:
    """Violations, as texts, in looks at a partition that does not change any more: all of it but
    `rotten` batches is read, and offsets by time agree with what was read.

    A look may stop with CORRUPT_MESSAGE right before a batch that is damaged on its leader, and
    nowhere else.
    """
    stuck = [look for look in looks if not look.whole and not (look.damage and _corrupt(look.error))]
    found = [f"{look}, when all was well: {look.error}" for look in stuck]
    if found or rotten:
        return found
    plain, _ = looks
    items = sorted([(read.offset, read.timestamp_ms) for read in plain.records] + plain.markers)
    for look in looks:
        # Offsets by time go as far as the reader's view, and markers and aborted records count, as
        # in Kafka.
        seen = [item for item in items if plain.start <= item[0] < look.end]
        for time_ms, answer in look.found.items():
            expected = _expected(seen, time_ms)
            result = None if answer is None else (answer.offset, answer.timestamp_ms)
            if result != expected:
                asked = "the newest record" if time_ms == MAX_TIMESTAMP else f"time {time_ms}"
                found.append(
                    f"{look}, when all was well: for {asked} it was told {result}, and read {expected}"
                )
    return found


def _corrupt(error: Exception | None) -> bool:
    return isinstance(error, BrokerError) and error.code == ErrorCode.CORRUPT_MESSAGE


def _expected(items: Sequence[Item], time_ms: int) -> Item | None:
    if time_ms == MAX_TIMESTAMP:
        return max(items, key=lambda item: (item[1], -item[0]), default=None)
    return next((item for item in items if item[1] >= time_ms), None)
