"""Delivery of records of a share partition: they are acquired by the index of the log alone, and
then the batches that hold them are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairlead_kafka.broker.log import Location, Partition
from fairlead_kafka.broker.log.index import CONTROL, MARK, PRODUCER, TRANSACTIONAL, unpack_mark
from fairlead_kafka.broker.log.transactions import AbortedRange
from fairlead_kafka.broker.share_groups.partition import SharePartition
from fairlead_kafka.broker.share_groups.window import Acquired, Wanted


class Span(NamedTuple):
    """A batch of the log: its first and last offset, and where it lies."""

    first: int
    last: int
    location: Location


class Delivery(NamedTuple):
    """Records that a member has acquired, and the batches that hold them."""

    acquired: list[Acquired]
    spans: list[Span]

    @property
    def records(self) -> int:
        """Number of records that were acquired, counting offsets without a record."""
        return sum(one.last - one.first + 1 for one in self.acquired)

    @property
    def size_bytes(self) -> int:
        """Size of the batches, in bytes."""
        return sum(span.location.size_bytes for span in self.spans)


def _end(share: SharePartition) -> int:
    """The offset at which records for readers end: the high watermark, or the last stable
    offset."""
    partition = share.partition
    return partition.last_stable_offset if share.settings().committed else partition.high_watermark


def _stop(share: SharePartition, sought: int) -> int:
    """The offset before which the batches begin that are read from `sought` on. The next batch
    is one of them, however far away it lies: offsets that compaction removed before it need no
    room."""
    index = share.partition.index
    stop = share.window.fetch_limit(share.settings().limits)
    number = index.first_reaching(sought)
    if number < len(index):
        stop = max(stop, index.base_offset(number) + 1)
    return min(_end(share), stop)


def available_bytes(share: SharePartition, enough_bytes: int) -> int:
    """Bytes of batches that could be acquired; counting ends once `enough_bytes` are there."""
    sought = share.next_fetch_offset()
    if not share.window.may_acquire(share.settings().limits):
        return 0
    return share.partition.available_bytes(sought, _stop(share, sought), enough_bytes)


def deliver(share: SharePartition, wanted: Wanted, max_bytes: int, at_least_one: bool) -> Delivery:
    """Acquire records of a share partition for a member, in batches of `max_bytes` in all, as far
    as the window has room."""
    sought = share.next_fetch_offset()
    acquired: list[Acquired] = []
    spans: list[Span] = []
    if share.window.may_acquire(share.settings().limits):
        spans = _spans(share.partition, sought, _stop(share, sought), max_bytes, at_least_one)
    if spans:
        first = max(sought, spans[0].first)
        acquired = share.acquire(wanted, sought, first, [span.last for span in spans])
    if acquired and share.settings().committed:
        acquired, spans = _without_aborted(share, acquired, spans)
    return Delivery(acquired, [span for span in spans if _holds_any(span, acquired)])


def cut(delivery: Delivery, read_count: int) -> tuple[list[Acquired], list[Acquired]]:
    """The acquired records in the first `read_count` batches, which could be read, and those in
    later ones."""
    if read_count >= len(delivery.spans):
        return delivery.acquired, []
    border = delivery.spans[read_count].first
    kept = [one._replace(last=min(one.last, border - 1)) for one in delivery.acquired if one.first < border]
    lost = [one._replace(first=max(one.first, border)) for one in delivery.acquired if one.last >= border]
    return kept, lost


def _spans(partition: Partition, sought: int, stop: int, max_bytes: int, at_least_one: bool) -> list[Span]:
    if sought >= stop:
        return []
    index = partition.index
    first = index.first_reaching(sought)
    return [
        Span(index.base_offset(number), index.last_offset(number), location)
        for number, location in enumerate(partition.select(sought, stop, max_bytes, at_least_one), first)
    ]


def _without_aborted(
    share: SharePartition, acquired: Sequence[Acquired], spans: Sequence[Span]
) -> tuple[list[Acquired], list[Span]]:
    """The acquired records and batches without those of aborted transactions, which are
    archived."""
    partition = share.partition
    ranges = partition.aborted(spans[0].first, spans[-1].last + 1)
    if not ranges:
        return list(acquired), list(spans)
    number = partition.index.first_reaching(spans[0].last)
    kept_spans = []
    rest = list(acquired)
    for row, span in enumerate(spans, number):
        if _aborted(partition.index.row(row), span, ranges):
            share.skip(span.first, span.last)
            rest = list(_subtract(rest, span))
        else:
            kept_spans.append(span)
    return rest, kept_spans


def _aborted(row: Sequence[int], span: Span, ranges: Sequence[AbortedRange]) -> bool:
    attributes = unpack_mark(row[MARK])[2]
    if not attributes & TRANSACTIONAL or attributes & CONTROL:
        return False
    return any(
        one.producer_id == row[PRODUCER] and one.first_offset <= span.first < one.last_offset
        for one in ranges
    )


def _subtract(acquired: Iterable[Acquired], span: Span) -> Iterable[Acquired]:
    for one in acquired:
        if one.last < span.first or one.first > span.last:
            yield one
            continue
        if one.first < span.first:
            yield one._replace(last=span.first - 1)
        if one.last > span.last:
            yield one._replace(first=span.last + 1)


def _holds_any(span: Span, acquired: Sequence[Acquired]) -> bool:
    return any(one.first <= span.last and span.first <= one.last for one in acquired)
