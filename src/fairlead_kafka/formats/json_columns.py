"""JSON to columns, whatever the type: blocks by machine code (`json_reading`), and what it leaves
by Arrow's parser and row by row (`json_blocks`)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fairlead_kafka.base.kernel import MACHINE_CODE
from fairlead_kafka.formats.building import Decode, Reasons
from fairlead_kafka.formats.json_blocks import json_decoder, texts_decoder
from fairlead_kafka.formats.json_reading import decode, plan_of
from fairlead_kafka.formats.slots import NotByColumn, in_blocks, placed
from fairlead_kafka.formats.utf8 import decode_text

_LEFT_MAX = 0.75
"""Part of a block that may be left by machine code: putting rows in their places costs a fifth of
what Arrow's parser costs, so of more all are left."""


def json_columns_decoder(wire: pa.DataType, target: pa.DataType) -> Decode:
    """A decoder that returns the same as `json_blocks.json_decoder`, several times faster where
    machine code knows the type."""
    if not MACHINE_CODE:  # Arrow's parser is faster than the reference
        return json_decoder(wire, target)
    try:
        plan = plan_of(wire, target)
    except NotByColumn:
        return json_decoder(wire, target)
    others = texts_decoder(wire, target)

    def block(text: pa.Array) -> tuple[pa.Array, Reasons]:
        slots, bad = decode(plan, text)
        rest = np.flatnonzero(bad)
        if len(rest) > len(text) * _LEFT_MAX:
            return others(text)
        made = plan.array(slots, bad)
        if not len(rest):
            return made, {}
        values, found = others(text.take(pa.array(rest)))
        if values.null_count < len(values):
            # Of a row that two pieces have, the later one counts.
            made = placed([(np.arange(len(text)), made), (rest, values)], len(text), target)
        return made, {int(rest[row]): why for row, why in found.items()}

    def decode_column(array: pa.Array) -> tuple[pa.Array, Reasons]:
        text, reasons = decode_text(array)
        made, found = in_blocks(text, block, target)
        return made, {**reasons, **found}

    return decode_column
