"""Errors for a batch that a broker refused: for the batch, and for records that it named (KIP-467).

As in Kafka (`Sender.failBatch`) a batch is written whole or not at all, so all of its records fail.
Those that the broker named fail with what it said of them; the others with `BatchRefused`, for
nothing is wrong with them and they may be sent again.
"""

from __future__ import annotations

from itertools import pairwise

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import BatchRefused, BrokerError, RecordTooLarge
from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.producer.queues import Batch
from fairlead_kafka.producer.submission import Piece
from fairlead_kafka.wire.messages import ProduceResponse


def refusal(batch: Batch, code: int, entry: ProduceResponse.PartitionProduceResponse) -> Exception:
    """The error for a batch that a broker refused with `code`; `entry` is the batch's part of the
    Produce response."""
    said = entry.error_message or policy(code).meaning
    if code == ErrorCode.MESSAGE_TOO_LARGE:
        size = batch.uncompressed_bytes or BATCH_OVERHEAD_BYTES + batch.size_bytes
        sent = size if batch.buffer is None else len(batch.buffer)
        return RecordTooLarge(
            f"{batch}: a batch of {sent} bytes{f' ({size} before compression)' if size != sent else ''} is "
            "more than the broker takes "
            f"({said}); raise max.message.bytes of topic {batch.queue.topic.name!r}, or send less in one "
            "record"
        )
    refused = entry.record_errors
    if refused:
        first = refused[0]
        detail = first.batch_index_error_message or "refused"
        said += f"; {len(refused)} of the batch's records refused, the first at {first.batch_index}: {detail}"
    return broker_error(code, f"{batch}: {said}", "Write")


def refused_pieces(
    batch: Batch, code: int, entry: ProduceResponse.PartitionProduceResponse
) -> list[tuple[Piece, Exception]]:
    """The batch's pieces with their errors, cut so that each record the broker named is one piece.

    Empty if the broker named none.
    """
    named = entry.record_errors
    errors: dict[int, Exception] = {}
    for each in named:
        said = each.batch_index_error_message or entry.error_message or policy(code).meaning
        # Kafka: the batch's code may stand for one record; of several it cannot be told which it
        # means.
        own = code if len(named) == 1 else ErrorCode.INVALID_RECORD
        errors[each.batch_index] = BrokerError(own, f"a record for {batch.queue}: {said}")
    if not errors:
        return []
    others = BatchRefused(
        f"not written, since {len(errors)} other records of its batch for {batch.queue} were refused; it may "
        "be sent again"
    )
    cut: list[tuple[Piece, Exception]] = []
    first = 0
    for submission, start, stop, order, held_bytes in batch.pieces:
        marks = sorted({first, first + stop - start, *(at for index in errors for at in (index, index + 1))})
        bounds = [mark for mark in marks if first <= mark <= first + stop - start]
        for begin, end in pairwise(bounds):
            held = held_bytes if end == bounds[-1] else 0  # what the piece holds comes back with its last row
            piece = Piece(submission, start + begin - first, start + end - first, order, held)
            cut.append((piece, errors.get(begin, others)))
        first += stop - start
    return cut
