"""`key.deserializer` and `value.deserializer`: applied to a consumer's records before they are
returned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import DeserializationFailed, FairleadError, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer import Record, check_columns
from fairlead_kafka.formats.context import Deserializer, MessageField, SerializationContext
from fairlead_kafka.formats.naming import deserializer_of

if TYPE_CHECKING:
    import pyarrow as pa

RESCUED = "rescued"
_WHERE = ("topic", "partition", "offset")


class Deserialized(NamedTuple):
    """Records up to one that does not parse: `failure` says why."""

    records: list[Record]
    failure: Exception | None = None


class Deserializing:
    """A consumer's deserializers; None for what is given as it is."""

    def __init__(self, key: Deserializer | None, value: Deserializer | None) -> None:
        self._key = key
        self._value = value

    def records(self, records: list[Record]) -> Deserialized:
        """The records as objects, up to the first that cannot be read."""
        made: list[Record] = []
        try:
            made.extend(map(self._record, records))  # keeps those before the one that fails
        except Exception as error:
            return Deserialized(made, error)
        return Deserialized(made)

    def columns(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """The names of a table's columns, checked; `columns` None: all, and `rescued`."""
        if columns is None:
            return (*check_columns(None), RESCUED)
        if columns != [RESCUED]:
            check_columns([name for name in columns if name != RESCUED])
        return tuple(columns)

    def fetched_columns(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns to fetch so that `columns` can be made of them."""
        names = [name for name in columns if name != RESCUED]
        if RESCUED in columns:
            names += [field.value for field in MessageField if self._of(field) is not None]
        return tuple(dict.fromkeys([*names, *_WHERE]))

    def table(self, table: pa.Table, names: Sequence[str]) -> pa.Table:
        """A table of these columns, with keys and values deserialized."""
        import pyarrow as pa

        try:
            batches = [self._batch(batch, names) for batch in table.to_batches() if batch.num_rows]
            return pa.Table.from_batches(batches) if batches else _empty(table, names)
        except pa.ArrowInvalid as error:
            raise UsageError(
                "poll_table: records of several topics, or schemas, have columns of different "
                "types; give the "
                f"deserializer a schema, or read one topic with a consumer ({error})"
            ) from error

    def _of(self, field: MessageField) -> Deserializer | None:
        return self._key if field is MessageField.KEY else self._value

    def _record(self, record: Record) -> Record:
        for field in MessageField:
            deserializer = self._of(field)
            if deserializer is None:
                continue
            is_key = field is MessageField.KEY
            data = record.key if is_key else record.value
            try:
                made = deserializer(data, SerializationContext(record.topic, field, list(record.headers)))
            except FairleadError:
                raise
            except Exception as error:
                partition = TopicPartition(record.topic, record.partition)
                raise DeserializationFailed(
                    partition, record.offset, field.value, data, str(error)
                ) from error
            record = record._replace(key=made) if is_key else record._replace(value=made)
        return record

    def _batch(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        import pyarrow as pa

        from fairlead_kafka.formats.rescuing import rescued

        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        reasons = {}
        topic = batch["topic"][0].as_py()
        for field in MessageField:
            deserializer = self._of(field)
            if deserializer is not None and field.value in columns:
                decode = getattr(deserializer, "decode_column", None)
                if decode is None:
                    raise UsageError(
                        f"{field}.deserializer: {deserializer!r} gives single records only, it has "
                        f"no decode_column"
                    )
                context = SerializationContext(topic, field)
                columns[field.value], reasons[field.value] = decode(columns[field.value], context)
        if RESCUED in names:
            columns[RESCUED] = rescued(batch, reasons)
        return pa.RecordBatch.from_arrays([columns[name] for name in names], names=list(names))


def _empty(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """A table without rows, whose keys and values have the types they were fetched with: no record
    says which they would have."""
    import pyarrow as pa

    from fairlead_kafka.formats.rescuing import RESCUED as RESCUED_TYPE

    if RESCUED in names:
        table = table.append_column(RESCUED, pa.chunked_array([], RESCUED_TYPE))
    return table.select(list(names))


def deserializing_of(settings: Settings) -> Deserializing | None:
    """A consumer's deserializers; None if it has none. ConfigError if one cannot be imported or
    made."""
    key, value = (
        deserializer_of(f"{field}.deserializer", settings[f"{field}.deserializer"]) for field in MessageField
    )
    return None if key is None and value is None else Deserializing(key, value)
