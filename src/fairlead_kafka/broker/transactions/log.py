"""The log of a transaction coordinator: a change of a transaction's state is applied once its
record is written, as on replay.

One change of a transactional id is under way at a time (`pending`); a client that asks meanwhile
gets CONCURRENT_TRANSACTIONS, which is retriable. The log is kept short as any other with
`cleanup.policy=compact` is. With one replica it is synced before any answer, unlike other topics
(`flush.messages`, set at its creation): an epoch that was assigned and then lost in a power cut
would be assigned again, and the batches of the first producer would be mistaken for those of the
second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.broker.controller import TRANSACTIONS_TOPIC
from fairlead_kafka.broker.shards import APPEND_ERRORS, CHUNK_MAX_BYTES
from fairlead_kafka.broker.transactions.image import TransactionImage
from fairlead_kafka.broker.transactions.records import decode_key, decode_value, encode_key, encode_value
from fairlead_kafka.broker.transactions.states import ENDING, TRANSITIONS, TransactionState
from fairlead_kafka.records import RecordColumns, columns_from_lists, decode

Append = Callable[[str, int, RecordColumns, Callable[[int, int], None]], None]
"""append(topic, partition, columns, done) appends records, then calls done(error code, base
offset)."""


@dataclass(slots=True, eq=False)
class Transaction:
    """One transactional id at its coordinator, with the requests that wait. `position` is the
    offset of the record that `image` comes from; -1: not written yet."""

    transactional_id: str
    image: TransactionImage
    position: int = -1
    pending: TransactionState | None = None
    """The state it goes to once its record is written."""
    waiting: list[Callable[[], None]] = field(default_factory=list)
    """Callbacks of those who wait while it is `changing`, in order; each call takes itself off."""

    @property
    def changing(self) -> bool:
        """True while a change is being written, or the markers of the transaction's end are."""
        return self.pending is not None or self.image.state in ENDING

    def go_on(self) -> None:
        """Call the functions that wait, in turn, until one begins a change: the others then wait
        for that."""
        while self.waiting and not self.changing:
            self.waiting[0]()


@dataclass(slots=True, eq=False)
class TransactionShard:
    """The transactional ids of one partition of `__transaction_state` that this broker leads."""

    partition: int
    loaded: bool = False
    transactions: dict[str, Transaction] = field(default_factory=dict)

    def drop(self, transaction: Transaction) -> None:
        """Forget a transaction, unless another has its id by now."""
        if self.transactions.get(transaction.transactional_id) is transaction:
            del self.transactions[transaction.transactional_id]

    def check(self) -> None:
        """Raise CheckFailed unless each transaction's fields fit its state."""
        same(
            "transactional ids",
            list(self.transactions),
            [one.transactional_id for one in self.transactions.values()],
        )
        for one in self.transactions.values():
            what = f"{one.transactional_id!r} ({one.image.state.value})"
            is_open = one.image.state is TransactionState.ONGOING
            holds(f"{what} has partitions", is_open or one.image.state in ENDING or not one.image.partitions)
            holds(f"{what} began at {one.image.start_ms}", not is_open or one.image.start_ms >= 0)
            following = one.pending is None or one.pending in TRANSITIONS[one.image.state]
            holds(f"{what} is to be {one.pending}", following)
            holds(f"{what} is in the log, or on its way", one.position >= 0 or one.pending is not None)
            holds(f"{what}: {len(one.waiting)} wait for it", not one.waiting or one.changing)


class TransactionLog:
    """Writes the transactions of all shards of one broker."""

    def __init__(self, append: Append, transaction_version: Callable[[], int]) -> None:
        self._append_columns = append
        self._transaction_version = transaction_version
        """The cluster's level of `transaction.version`, which says in what form records are."""

    def write(
        self,
        shard: TransactionShard,
        transaction: Transaction,
        image: TransactionImage,
        done: Callable[[int], None],
        through: TransactionState | None = None,
    ) -> None:
        """Write `image` as the transaction's new one; done(error code for clients, 0 if it is
        committed). `through`: the state that is shown meanwhile."""
        columns = self._columns([(transaction.transactional_id, image)])
        transaction.pending = through or image.state
        shard.transactions[transaction.transactional_id] = transaction  # it may be new

        def written(error: int, base_offset: int) -> None:
            transaction.pending = None
            if not error:
                transaction.image, transaction.position = image, base_offset
            done(APPEND_ERRORS.get(error, error))
            transaction.go_on()
            # A new id whose first record could not be written is as unknown as before.
            if transaction.position < 0 and transaction.pending is None:
                shard.drop(transaction)

        self._append_columns(TRANSACTIONS_TOPIC, shard.partition, columns, written)

    def forget(self, shard: TransactionShard, transactions: Sequence[Transaction]) -> None:
        """Write tombstones of transactional ids, which are forgotten once these are written."""
        for chunk in _chunks(
            [(transaction.transactional_id, transaction.image) for transaction in transactions]
        ):
            columns = self._columns([(transactional_id, None) for transactional_id, _image in chunk])
            doomed = [shard.transactions[transactional_id] for transactional_id, _image in chunk]
            for transaction in doomed:
                transaction.pending = TransactionState.DEAD

            def written(error: int, base_offset: int, doomed: list[Transaction] = doomed) -> None:
                for transaction in doomed:
                    transaction.pending = None
                    if not error:
                        shard.transactions.pop(transaction.transactional_id, None)
                    transaction.go_on()

            self._append_columns(TRANSACTIONS_TOPIC, shard.partition, columns, written)

    def _columns(self, rows: Sequence[tuple[str, TransactionImage | None]]) -> RecordColumns:
        """The records of transactional ids, as columns. They are made before a transaction is
        marked as pending, so that an image that cannot be encoded changes nothing."""
        version = self._transaction_version()
        keys: list[bytes | None] = [encode_key(transactional_id) for transactional_id, _ in rows]
        values = [None if image is None else encode_value(image, version) for _, image in rows]
        return columns_from_lists(keys, values)


def replay(shard: TransactionShard, batches: bytes, from_offset: int) -> None:
    """Apply batches of the log to a shard. Records of unknown form are skipped: no coordinator
    wrote them."""
    records = decode(batches, from_offset=from_offset, want_headers=False)
    keys = records.keys.to_list() if records.keys is not None else [None] * records.count
    for key_bytes, value, position in zip(
        keys, records.values.to_list(), records.offsets.tolist(), strict=True
    ):
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
