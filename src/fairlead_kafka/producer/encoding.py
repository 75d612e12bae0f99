"""Encoding of drained batches, in as few kernel calls for a request as possible, and splitting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead_kafka.base.ids import NO_SEQUENCE
from fairlead_kafka.producer.queues import Batch, TopicBuffer
from fairlead_kafka.producer.settings import ProducerSettings
from fairlead_kafka.producer.spans import Span, SpanQueue, prefix_sums
from fairlead_kafka.producer.submission import Int64
from fairlead_kafka.producer.tuning import RATIO_DOWN, RATIO_UP
from fairlead_kafka.records import Compression, encode, encode_many


def encode_drained(batches: Sequence[Batch], settings: ProducerSettings, wall_ms: int) -> None:
    """Encode every batch that has no bytes yet.

    Uncompressed batches cut from one set of columns, as those of a big table are, share one kernel
    call; a batch with records of several, or a compressed one, is encoded by itself. `wall_ms` is
    the create time of records that came without a timestamp.
    """
    groups: dict[tuple[int, int, int], list[Batch]] = {}
    for batch in batches:
        if batch.buffer is not None:
            continue
        source = batch.pieces[0][0].source
        if settings.compression is Compression.none and (
            len(batch.pieces) == 1 or all(piece[0].source is source for piece in batch.pieces)
        ):
            key = (id(source), batch.producer_id, batch.producer_epoch)
            group = groups.get(key)
            if group is None:
                groups[key] = [batch]
            else:
                group.append(batch)
        else:
            _encode_one(batch, settings, wall_ms)
    for group in groups.values():
        _encode_group(group, settings, wall_ms)


def _encode_one(batch: Batch, settings: ProducerSettings, wall_ms: int) -> None:
    encoded = encode(
        batch.slices(),
        create_time_ms=wall_ms,
        compression=settings.compression,
        level=settings.compression_level,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=settings.transactional_id is not None,
    )
    batch.buffer = encoded.buffer
    if settings.compression is not Compression.none and encoded.uncompressed_bytes:
        batch.uncompressed_bytes = encoded.uncompressed_bytes
        learn_ratio(batch.queue.topic, encoded.size_bytes / encoded.uncompressed_bytes)


def _encode_group(group: list[Batch], settings: ProducerSettings, wall_ms: int) -> None:
    order, bounds = _row_spans(group)
    records_bytes = sum([batch.held_bytes for batch in group])
    sequences = None
    if group[0].base_sequence != NO_SEQUENCE:
        sequences = np.array([batch.base_sequence for batch in group], np.int64)
    encoded = encode_many(
        group[0].pieces[0][0].source,
        order,
        np.array(bounds, np.int64),
        create_time_ms=wall_ms,
        producer_id=group[0].producer_id,
        producer_epoch=group[0].producer_epoch,
        base_sequences=sequences,
        transactional=settings.transactional_id is not None,
        records_bytes=records_bytes,
    )
    for batch, each in zip(group, encoded, strict=True):
        batch.buffer = each.buffer


def _row_spans(group: list[Batch]) -> tuple[Int64 | None, list[int]]:
    """The order of the rows of the batches, all of one source (None: as they are), and where in it
    each batch starts and stops."""
    order = group[0].pieces[0][3]
    bounds: list[int] = []
    for batch in group:
        _, start, stop, other, _ = batch.pieces[0]
        if len(batch.pieces) > 1 or other is not order:
            break
        bounds += (start, stop)
    else:
        return order, bounds
    rows = [
        np.arange(start, stop) if own is None else own[start:stop]
        for batch in group
        for _, start, stop, own, _ in batch.pieces
    ]
    ends = np.cumsum([batch.count for batch in group]).tolist()
    return np.concatenate(rows), [each for pair in zip([0, *ends[:-1]], ends, strict=True) for each in pair]


def learn_ratio(topic: TopicBuffer, observed: float) -> None:
    """Adapt the topic's estimated compression ratio to the `observed` one of a batch: at once if
    that is worse than estimated, slowly if it is better."""
    estimated = topic.compression_ratio
    if observed > estimated:
        topic.compression_ratio = max(estimated + RATIO_UP, observed)
    elif observed < estimated:
        topic.compression_ratio = max(estimated - RATIO_DOWN, observed)


def split(batch: Batch) -> list[Batch]:
    """Smaller batches with the records of one that a broker found too large (KIP-126); at least two
    if it has two records.

    The first time a batch is cut at batch.size, or at half of its size if that is more; a batch
    that is no larger than that, or was split before, is halved. Sequences are left to the caller.
    The estimated compression ratio is set back, since it was too good.
    """
    topic = batch.queue.topic
    topic.compression_ratio = max(topic.compression_ratio, 1.0)
    topic.coalesce_limit_bytes = min(topic.coalesce_limit_bytes, batch.size_bytes // 2)
    limit = max(topic.batch_limit_bytes, topic.coalesce_limit_bytes)
    if batch.split_limit_bytes or batch.held_bytes <= limit:
        limit = max(batch.held_bytes // 2, 1)
    records = SpanQueue()
    for submission, start, stop, order, _ in batch.pieces:
        sizes = submission.source.sizes_bytes()
        rows = np.arange(start, stop, dtype=np.int64) if order is None else order[start:stop]
        records.append(Span(submission, prefix_sums(sizes[rows]), 0, len(rows), rows))
    parts: list[Batch] = []
    serial, bound_bytes = batch.serial, batch.bound_bytes
    while records.count:
        pieces = records.cut(limit)
        part = Batch(batch.queue, pieces, batch.created_ns, 0, bound_bytes=0)
        part.bound_bytes = min(part.held_bytes, bound_bytes)
        bound_bytes -= part.bound_bytes
        part.size_bytes, part.split_limit_bytes, part.maybe_written, part.serial = (
            part.held_bytes,
            limit,
            batch.maybe_written,
            serial,
        )
        serial += part.count
        parts.append(part)
    return parts
