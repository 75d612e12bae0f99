"""Bytes as text. Bytes that are not UTF-8 are null, and left to the column `rescued`."""

from __future__ import annotations

import pyarrow as pa

from fairlead_kafka.formats.building import Reasons

_HALVE_ABOVE = 256
"""Below this many values it costs less to look at each than to halve further."""


def decode_text(array: pa.Array) -> tuple[pa.Array, Reasons]:
    """A binary array as a string array; values that are not UTF-8 are null, with their reasons.
    Nothing is copied if all values are UTF-8."""
    try:
        return array.cast(pa.string()), {}
    except pa.ArrowInvalid:
        pass
    if len(array) > _HALVE_ABOVE:
        middle = len(array) // 2
        (left, left_reasons), (right, right_reasons) = (
            decode_text(array[:middle]),
            decode_text(array[middle:]),
        )
        return pa.concat_arrays([left, right]), {
            **left_reasons,
            **{middle + row: why for row, why in right_reasons.items()},
        }
    values: list[str | None] = []
    reasons: Reasons = {}
    for row, value in enumerate(array.to_pylist()):
        try:
            values.append(None if value is None else value.decode("utf-8"))
        except UnicodeDecodeError as error:
            values.append(None)
            reasons[row] = f"not UTF-8: {error.reason} at byte {error.start}"
    return pa.array(values, pa.string()), reasons
