"""`key.serializer` and `value.serializer`: applied to records before they are sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import FairleadError, InvalidRecord
from fairlead_kafka.formats.context import MessageField, SerializationContext, Serializer
from fairlead_kafka.formats.naming import serializer_of

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead_kafka.client.delivery import OnDelivery
    from fairlead_kafka.client.intake import Headers

T = TypeVar("T")
_NO_FIELDS = ("key", "headers", "timestamp", "partition")
"""Columns of a table that are no fields of its value."""
_SHOWN_ROWS = 3


class Serializing:
    """A producer's serializers; None for what is sent as it is."""

    def __init__(self, key: Serializer | None, value: Serializer | None) -> None:
        self._key = key
        self._value = value

    def around(self, send: Callable[..., T]) -> Callable[..., T]:
        """Wrap `send` so that it takes objects: they are serialized on the caller's thread, before
        anything else."""

        @wraps(send)
        def serialized(
            topic: str,
            value: object = None,
            *,
            key: object = None,
            headers: Headers | None = None,
            partition: int | None = None,
            timestamp_ms: int | None = None,
            on_delivery: OnDelivery | None = None,
        ) -> T:
            # A serializer may add headers, as Confluent's framing with a GUID does.
            pairs = (
                [] if headers is None else list(headers.items() if isinstance(headers, Mapping) else headers)
            )
            if self._key is not None:
                key = _made(self._key, key, SerializationContext(topic, MessageField.KEY, pairs))
            if self._value is not None:
                value = _made(self._value, value, SerializationContext(topic, MessageField.VALUE, pairs))
            return send(
                topic,
                value,
                key=key,
                headers=pairs or headers,
                partition=partition,
                timestamp_ms=timestamp_ms,
                on_delivery=on_delivery,
            )

        return serialized

    def table(self, topic: str, table: pa.Table) -> pa.Table:
        """`table` with its key and value serialized to columns of bytes. InvalidRecord, naming the
        first rows and why, if any cannot be written."""
        if self._value is not None and "value" not in table.column_names:
            table = _with_value(table)
        for field, serializer in ((MessageField.KEY, self._key), (MessageField.VALUE, self._value)):
            if serializer is not None and field.value in table.column_names:
                context = SerializationContext(topic, field)
                column = _column(serializer, table.column(field.value), context)
                table = table.set_column(table.column_names.index(field.value), field.value, column)
        return table


def serializing_of(settings: Settings) -> Serializing | None:
    """A producer's serializers; None if it has none. ConfigError if one cannot be imported or
    made."""
    names = [f"{field}.serializer" for field in MessageField]
    key, value = (serializer_of(name, settings[name]) for name in names)
    return None if key is None and value is None else Serializing(key, value)


def _made(serializer: Serializer, value: object, context: SerializationContext) -> bytes | None:
    try:
        return serializer(value, context)
    except FairleadError:
        raise
    except Exception as error:
        raise InvalidRecord(f"{context.field}.serializer, topic {context.topic}: {error}") from error


def _with_value(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    names = [name for name in table.column_names if name not in _NO_FIELDS]
    if not names:
        raise InvalidRecord(
            "value.serializer: the table has neither a column value nor fields to make one of"
        )
    chunks = [batch.to_struct_array() for batch in table.select(names).to_batches()]
    fields = pa.struct([table.schema.field(name) for name in names])
    return table.drop_columns(names).append_column("value", pa.chunked_array(chunks, fields))


def _column(
    serializer: Serializer, column: pa.ChunkedArray, context: SerializationContext
) -> pa.ChunkedArray:
    import pyarrow as pa

    encode = getattr(serializer, "encode_column", None)
    if encode is None:
        raise InvalidRecord(
            f"{context.field}.serializer: {serializer!r} takes single records only, it has no encode_column"
        )
    chunks, first = [], 0
    for chunk in column.chunks:
        try:
            made, reasons = encode(chunk, context)
        except FairleadError:
            raise
        except Exception as error:
            raise InvalidRecord(f"{context.field}.serializer, topic {context.topic}: {error}") from error
        if reasons:
            shown = "; ".join(
                f"row {first + row}: {why}" for row, why in sorted(reasons.items())[:_SHOWN_ROWS]
            )
            raise InvalidRecord(
                f"{context.field}.serializer, topic {context.topic}: {len(reasons)} rows of the "
                f"table cannot be "
                f"written, none was sent; {shown}; encode_column of the serializer tells them all"
            )
        chunks.append(made)
        first += len(chunk)
    return pa.chunked_array(chunks, pa.binary())
