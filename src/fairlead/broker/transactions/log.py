"""What the coordinator knows of transactions is what its log says: a change counts once its record is written, live and on replay alike.

One change of a transactional id is under way at a time (`pending`); whoever asks meanwhile is told to come again. The log is kept short as
that of the offsets is: a shard that has grown to many times its ids appends them once more, and when that is written, the
partition's start moves up to the oldest record that still counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import DecodeError
from fairlead.broker.controller import TRANSACTIONS_TOPIC
from fairlead.broker.transactions.image import TransactionImage
from fairlead.broker.transactions.records import decode_key, decode_value, encode_key, encode_value
from fairlead.broker.transactions.states import TransactionState
from fairlead.records import RecordColumns, columns_from_lists, decode

CHUNK_MAX_BYTES = 256 * 1024
"""Bytes of keys and values written as one batch: well below any topic's max.message.bytes default."""
CHECKPOINT_MIN_RECORDS = 10_000
CHECKPOINT_GROWTH = 4
"""A shard is written anew when its log holds more than CHECKPOINT_MIN_RECORDS and this many times its transactional ids."""

_APPEND_ERRORS: dict[int, int] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a client is told when the log could not be written (Kafka's `TransactionStateManager.appendTransactionToLog`)."""

Append = Callable[[str, int, RecordColumns, Callable[[int, int], None]], None]
"""append(topic, partition, columns, done) appends records, then calls done(error code, base offset)."""
RaiseStart = Callable[[str, int, int], None]
"""raise_start(topic, partition, offset) lets go of what a partition holds before `offset`."""


@dataclass(slots=True, eq=False)
class Transaction:
    """One transactional id at its coordinator. `position` is the offset of the record that `image` comes from; -1: not written yet."""

    transactional_id: str
    image: TransactionImage
    position: int = -1
    pending: TransactionState | None = None
    """The state it goes to once its record is written."""
    on_complete: list[Callable[[], None]] = field(default_factory=list)
    """Who waits for the end of the transaction that is ending."""


@dataclass(slots=True, eq=False)
class TransactionShard:
    """The transactional ids of one partition of `__transaction_state` that this broker leads."""

    partition: int
    loaded: bool = False
    transactions: dict[str, Transaction] = field(default_factory=dict)
    log_records: int = 0
    """Records in the partition's log, those that no longer count included."""
    log_end: int = 0
    """The offset after the last record that memory has."""
    checkpoint_at: int = CHECKPOINT_MIN_RECORDS
    checkpointing: bool = False


class TransactionLog:
    """Writes the transactions of all shards of one broker."""

    def __init__(self, append: Append, raise_start: RaiseStart) -> None:
        self._append_columns = append
        self._raise_start = raise_start

    def write(
        self,
        shard: TransactionShard,
        transaction: Transaction,
        image: TransactionImage,
        done: Callable[[int], None],
        through: TransactionState | None = None,
    ) -> None:
        """Make `image` the transaction's; done(error code for a client, 0 if it stands). `through`: the state shown as pending."""
        transaction.pending = through or image.state

        def written(error: int, base_offset: int) -> None:
            transaction.pending = None
            if not error:
                transaction.image, transaction.position = image, base_offset
                self._written(shard, 1, base_offset)
            done(_APPEND_ERRORS.get(error, error))
            self._checkpoint_if_due(shard)

        self._append(shard, [(transaction.transactional_id, image)], written)

    def forget(self, shard: TransactionShard, transactions: Sequence[Transaction]) -> None:
        """Take transactional ids back; they are gone once that is written."""
        for chunk in _chunks([(transaction.transactional_id, transaction.image) for transaction in transactions]):
            doomed = [shard.transactions[transactional_id] for transactional_id, _image in chunk]
            for transaction in doomed:
                transaction.pending = TransactionState.DEAD

            def written(error: int, base_offset: int, doomed: list[Transaction] = doomed) -> None:
                for transaction in doomed:
                    transaction.pending = None
                    if not error:
                        shard.transactions.pop(transaction.transactional_id, None)
                if not error:
                    self._written(shard, len(doomed), base_offset)

            self._append(shard, [(transactional_id, None) for transactional_id, _image in chunk], written)

    def _append(
        self, shard: TransactionShard, rows: Sequence[tuple[str, TransactionImage | None]], done: Callable[[int, int], None]
    ) -> None:
        keys: list[bytes | None] = [encode_key(transactional_id) for transactional_id, _ in rows]
        values = [None if image is None else encode_value(image) for _, image in rows]
        self._append_columns(TRANSACTIONS_TOPIC, shard.partition, columns_from_lists(keys, values), done)

    def _written(self, shard: TransactionShard, count: int, base_offset: int) -> None:
        shard.log_records += count
        shard.log_end = base_offset + count

    def _checkpoint_if_due(self, shard: TransactionShard) -> None:
        if shard.checkpointing or shard.log_records <= shard.checkpoint_at:
            return
        # What memory has of an id in change is older than what the log has: written now, it would come after that and win.
        settled = [one for one in shard.transactions.values() if one.pending is None and one.position >= 0]
        shard.checkpoint_at = CHECKPOINT_MIN_RECORDS + CHECKPOINT_GROWTH * len(settled)
        if shard.log_records <= shard.checkpoint_at or not settled:
            return
        shard.checkpointing = True
        chunks = list(_chunks([(one.transactional_id, one.image) for one in settled]))
        waiting = len(chunks)

        def written(chunk: list[tuple[str, TransactionImage]], error: int, base_offset: int) -> None:
            nonlocal waiting
            waiting -= 1
            for number, (transactional_id, image) in enumerate(chunk):
                transaction = shard.transactions.get(transactional_id)
                if not error and transaction is not None and transaction.image is image:
                    transaction.position = base_offset + number
            if not error:
                self._written(shard, len(chunk), base_offset)
            if not waiting:
                shard.checkpointing = False
                positions = [one.position for one in shard.transactions.values() if one.position >= 0]
                shard.log_records = len(positions)
                self._raise_start(TRANSACTIONS_TOPIC, shard.partition, min(positions, default=shard.log_end))

        for chunk in chunks:
            self._append(shard, chunk, lambda error, base_offset, chunk=chunk: written(chunk, error, base_offset))  # type: ignore[misc]


def replay(shard: TransactionShard, batches: bytes, from_offset: int) -> None:
    """Take batches of the log into memory. Records that are not Kafka's transactions are passed over: they are not ours."""
    records = decode(batches, from_offset=from_offset, want_headers=False)
    keys = records.keys.to_list() if records.keys is not None else [None] * records.count
    for key_bytes, value, position in zip(keys, records.values.to_list(), records.offsets.tolist(), strict=True):
        shard.log_records += 1
        shard.log_end = position + 1
        try:
            transactional_id = None if key_bytes is None else decode_key(key_bytes)
            image = None if value is None else decode_value(value)
        except DecodeError:
            continue
        if transactional_id is None:
            continue
        if image is None:
            shard.transactions.pop(transactional_id, None)
        else:
            shard.transactions[transactional_id] = Transaction(transactional_id, image, position)


def _chunks(rows: Iterable[tuple[str, TransactionImage]]) -> Iterable[list[tuple[str, TransactionImage]]]:
    chunk: list[tuple[str, TransactionImage]] = []
    size_bytes = 0
    for transactional_id, image in rows:
        row_bytes = 64 + 4 * len(transactional_id) + sum(16 + 4 * len(of.topic) for of in image.partitions)
        if chunk and size_bytes + row_bytes > CHUNK_MAX_BYTES:
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append((transactional_id, image))
        size_bytes += row_bytes
    if chunk:
        yield chunk
