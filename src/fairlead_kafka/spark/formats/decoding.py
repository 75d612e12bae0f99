"""Conversion of tables of records to the layout of a read: keys and values are decoded, and those
that do not parse are kept with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fairlead_kafka.formats.building import Decode, Reasons
from fairlead_kafka.formats.rescuing import rescued
from fairlead_kafka.formats.utf8 import decode_text
from fairlead_kafka.spark.compatibility import arrow_type
from fairlead_kafka.spark.formats.layout import RESCUED, FieldFormat, Layout

if TYPE_CHECKING:
    from fairlead_kafka.formats.avro_rows import LookUp
    from fairlead_kafka.formats.avro_schema import AvroSchema


def decoder(
    layout: Layout, letters: Callable[[pa.RecordBatch, Mapping[str, Reasons]], None] | None = None
) -> Callable[[pa.Table], pa.Table]:
    """A function from tables with `layout.record_columns` to tables with `layout.columns`.

    With `letters`, rows that do not parse are left out, after it was called with them. The function
    never raises for what a key or value holds; with a Schema Registry that does not answer it
    raises RegistryFailed. The layout must be resolved.
    """
    decoders = {each.field: _decode_of(each) for each in layout.decoded}
    names = list(layout.columns)
    if not decoders:
        return lambda table: table.select(names)

    def decode(table: pa.Table) -> pa.Table:
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        return pa.Table.from_batches([_decoded(batch, names, decoders, letters) for batch in batches])

    return decode


def _decode_of(one: FieldFormat) -> Decode:
    if one.kind == "string":
        return decode_text
    kind = one.spark_type()
    target = arrow_type(kind)
    if one.kind == "json":
        from fairlead_kafka.formats.json_columns import json_columns_decoder
        from fairlead_kafka.spark.formats.json_schema import wire_type

        return json_columns_decoder(wire_type(kind), target)
    if one.kind == "protobuf":
        assert one.message is not None, "it was parsed"
        return one.message.deserializer(framed=one.registry is not None).decode_column
    from fairlead_kafka.formats.avro_columns import columns_decoder

    assert one.reader is not None, "a resolved layout knows the reader's schema"
    return columns_decoder(one.reader, one.writer or one.reader, _look_up(one), target)


def _look_up(one: FieldFormat) -> LookUp | None:
    if one.registry is None:
        return None
    from fairlead_kafka.formats.avro_schema import stored_avro
    from fairlead_kafka.formats.registry import SCHEMAS_KEPT_MAX, UnknownSchema, schema_by_id

    settings = tuple(sorted(one.registry.items()))
    refused: dict[int | str, str] = {}

    def look_up(schema_id: int | str) -> AvroSchema:
        if schema_id in refused:
            raise UnknownSchema(refused[schema_id])
        try:
            return stored_avro(schema_by_id(settings, int(schema_id)), f"schema id {schema_id}")
        except UnknownSchema as error:
            if len(refused) < SCHEMAS_KEPT_MAX:
                refused[schema_id] = str(error)
            raise

    return look_up


def _decoded(
    batch: pa.RecordBatch,
    names: list[str],
    decoders: Mapping[str, Decode],
    letters: Callable[[pa.RecordBatch, Mapping[str, Reasons]], None] | None,
) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    reasons: dict[str, Reasons] = {}
    for field, decode in decoders.items():
        columns[field], reasons[field] = decode(batch[field])
    if RESCUED in names:
        columns[RESCUED] = rescued(batch, reasons)
    made = pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)
    if letters is None or not any(reasons.values()):
        return made
    letters(batch, reasons)
    fine = np.ones(batch.num_rows, np.bool_)
    fine[sorted({row for found in reasons.values() for row in found})] = False
    return made.filter(pa.array(fine))
