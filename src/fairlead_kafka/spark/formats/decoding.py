"""Tables of records to tables in the layout that was asked for: formats applied, what does not
parse kept beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_type

from fairlead_kafka.spark.formats.building import Decode, Reasons
from fairlead_kafka.spark.formats.layout import RESCUED, RESCUED_TYPE, FieldFormat, Layout
from fairlead_kafka.spark.formats.utf8 import decode_text


def decoder(layout: Layout) -> Callable[[pa.Table], pa.Table]:
    """A function from tables with `layout.record_columns` to tables with `layout.columns`.

    It never raises for what a key or value holds; with a Schema Registry that does not answer it
    raises RegistryFailed. The layout is a resolved one.
    """
    decoders = {each.field: _decode_of(each) for each in layout.decoded}
    names = list(layout.columns)
    if not decoders:
        return lambda table: table.select(names)

    def decode(table: pa.Table) -> pa.Table:
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        return pa.Table.from_batches([_decoded(batch, names, decoders) for batch in batches])

    return decode


def _decode_of(one: FieldFormat) -> Decode:
    if one.kind == "string":
        return decode_text
    kind = one.spark_type()
    target = to_arrow_type(kind, timezone="UTC")
    if one.kind == "json":
        from fairlead_kafka.spark.formats.json_format import json_decoder
        from fairlead_kafka.spark.formats.json_types import wire_type

        return json_decoder(wire_type(kind), target)
    from fairlead_kafka.spark.formats.avro_format import avro_decoder

    assert one.reader is not None, "a resolved layout knows the reader's schema"
    return avro_decoder(one.reader, one.writer or one.reader, one.registry, target)


def _decoded(batch: pa.RecordBatch, names: list[str], decoders: Mapping[str, Decode]) -> pa.RecordBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    reasons: dict[str, Reasons] = {}
    for field, decode in decoders.items():
        columns[field], reasons[field] = decode(batch[field])
    if RESCUED in names:
        columns[RESCUED] = _rescued(batch, reasons)
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def _rescued(batch: pa.RecordBatch, reasons: Mapping[str, Reasons]) -> pa.Array:
    """Null where all parsed: the usual case, which costs nothing."""
    kind = to_arrow_type(RESCUED_TYPE)
    count = batch.num_rows
    if not any(reasons.values()):
        return pa.nulls(count, kind)
    reported: dict[int, str] = {}
    for field, found in reasons.items():
        for row, why in found.items():
            reported[row] = f"{reported[row]}; {field}: {why}" if row in reported else f"{field}: {why}"
    children = [
        _bytes_of(batch, "key", reasons),
        _bytes_of(batch, "value", reasons),
        pa.array([reported.get(row) for row in range(count)], pa.string()),
    ]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=pa.array(~_mask(count, reported)))


def _bytes_of(batch: pa.RecordBatch, field: str, reasons: Mapping[str, Reasons]) -> pa.Array:
    if not reasons.get(field):
        return pa.nulls(batch.num_rows, pa.binary())
    return pc.if_else(pa.array(_mask(batch.num_rows, reasons[field])), batch[field].cast(pa.binary()), None)


def _mask(count: int, rows: Mapping[int, str]) -> npt.NDArray[np.bool_]:
    mask = np.zeros(count, np.bool_)
    mask[list(rows)] = True
    return mask
