"""The column `rescued`: bytes that did not parse, and why."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.formats.building import Reasons

RESCUED = pa.struct([("key", pa.binary()), ("value", pa.binary()), ("reason", pa.string())])
"""The struct of a row's bytes that did not parse, with the reasons; null for those that parsed, and
as a whole where all of a row did."""


def rescued(batch: pa.RecordBatch, reasons: Mapping[str, Reasons]) -> pa.Array:
    """The column `rescued`: null where all of a row parsed, the usual case, which costs nothing.
    `batch` has the bytes, `reasons` are by field and row."""
    kind = RESCUED
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
