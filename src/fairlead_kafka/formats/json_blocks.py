"""JSON to Arrow: blocks of rows by Arrow's own parser, and only rows that it refuses one by one
(`json_rows`).

Why a block may be parsed as one text. Arrow reads a stream of objects and does not report which row
each came from, and JSON may hold line breaks, so rows are let into a block only if they begin with
`{` and end with `}`. A string of JSON cannot hold a bare line break, so no string reaches from one
row into the next; and after a `}` a `{` can stand only between whole objects, so each row begins a
new one. Thus each row is one object or more, or the block is no JSON; and if there are as many
objects as rows, each row is exactly one.

Rows with values that Arrow's parser accepts and Python's refuses (`-NaN`, `Inf`) are not given to
Arrow's: a row's result must not depend on its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from fairlead_kafka.formats.building import MISFITS, Decode, Reasons, array_of, build, one_line
from fairlead_kafka.formats.json_rows import row_reader
from fairlead_kafka.formats.json_types import convert, has_map, lacks_required, relaxed
from fairlead_kafka.formats.slots import placed
from fairlead_kafka.formats.utf8 import decode_text

BLOCK_BYTES = 4 << 20
"""Text parsed at once: a call of the parser costs as much as some hundred rows, and memory is taken
for a block as a whole."""
BLOCK_ROWS = (4096, 256)
"""Rows of the blocks in which a block that does not parse is tried again, before single rows."""
_FAILED_BLOCKS_MIN = 3
"""From so many failed blocks on, if they are half of those tried, the rest of the larger block is
left to the rows."""
_WHITESPACE = " \t\r\n"
_NOT_FINITE = re.compile(rb"[:,\[\s-](?:NaN|Inf)")
_UNEXPECTED = "unexpected field"
"""Part of Arrow's reason for a row with a field that the schema lacks."""
_READ_MARGIN_BYTES = 64

Rows = npt.NDArray[np.int64]


def json_decoder(wire: pa.DataType, target: pa.DataType, in_blocks: bool = True) -> Decode:
    """A function from a binary array to an array of `target` and the reasons of the rows that do
    not parse, which are null in it.

    Without `in_blocks` every row is read by itself, which gives the same.
    """
    read = texts_decoder(wire, target, in_blocks)

    def decode(array: pa.Array) -> tuple[pa.Array, Reasons]:
        text, reasons = decode_text(array)
        made, found = read(text)
        return made, {**reasons, **found}

    return decode


def texts_decoder(wire: pa.DataType, target: pa.DataType, in_blocks: bool = True) -> Decode:
    """As `json_decoder`, of an array of strings."""
    read_row = row_reader(wire)
    in_blocks = in_blocks and pa.types.is_struct(wire) and not has_map(wire)

    def decode(text: pa.Array) -> tuple[pa.Array, Reasons]:
        reasons: Reasons = {}
        given = text.is_valid().to_numpy(zero_copy_only=False)
        pieces: list[tuple[Rows, pa.Array]] = []
        if in_blocks:
            trimmed = _trimmed(text)
            whole = _objects(trimmed).to_numpy(zero_copy_only=False)
            for rows, parsed in _blocks(trimmed, np.flatnonzero(whole), wire, target, _sizes(trimmed)):
                pieces.append((rows, parsed))
            for rows, _ in pieces:
                given[rows] = False
        rest = np.flatnonzero(given)
        if len(rest):
            pieces.append(
                (rest, _row_by_row(text.take(pa.array(rest)), rest, read_row, wire, target, reasons))
            )
        return placed(pieces, len(text), target), reasons

    return decode


def _sizes(text: pa.Array) -> tuple[int, ...]:
    """Numbers of rows in a block: first so many as make `BLOCK_BYTES` at mean length, then the
    smaller blocks that one which does not parse is split into."""
    first = max(1, BLOCK_BYTES * len(text) // max(1, text.nbytes))
    return (first, *(rows for rows in BLOCK_ROWS if rows < first))


def _trimmed(text: pa.Array) -> pa.Array:
    """The texts without white space around: a trailing line break is common."""
    if pc.all(_objects(text)).as_py() is not False:
        return text
    return pc.ascii_trim(text, characters=_WHITESPACE)


def _objects(text: pa.Array) -> pa.Array:
    """For each row, whether it is not null and has the braces of a JSON object around it."""
    return pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}")).fill_null(False)


def _blocks(
    text: pa.Array, rows: Rows, wire: pa.DataType, target: pa.DataType, sizes: tuple[int, ...]
) -> Iterator[tuple[Rows, pa.Array]]:
    """Rows that parse, block by block, each with the array made of them.

    Rows of blocks that do not parse by any size are left out.
    """
    failed = 0
    for tried, start in enumerate(range(0, len(rows), sizes[0]), start=1):
        chosen = rows[start : start + sizes[0]]
        contiguous = chosen[-1] - chosen[0] == len(chosen) - 1
        parsed = _parse(
            text.slice(chosen[0], len(chosen)) if contiguous else text.take(pa.array(chosen)), wire, target
        )
        if parsed is not None:
            yield chosen, parsed
        elif len(sizes) > 1:
            yield from _blocks(text, chosen, wire, target, sizes[1:])
        else:
            failed += 1
            if failed >= _FAILED_BLOCKS_MIN and failed * 2 > tried:
                return


def _parse(block: pa.Array, wire: pa.DataType, target: pa.DataType) -> pa.Array | None:
    """Rows that each begin with `{` and end with `}`, as an array of `target`; None if any of them
    does not fit."""
    try:
        joined = pc.binary_join(pa.ListArray.from_arrays([0, len(block)], block), "\n")[0].as_buffer()
        given = relaxed(wire)
        unread = False
        try:
            read = _read(joined, given, "error")
        except pa.ArrowInvalid as error:
            unread = _UNEXPECTED in str(error)
            if not unread or _may_differ(joined):
                return None
            read = _read(joined, given, "ignore")
        if read.num_rows != len(block):
            return None
        columns = [pa.concat_arrays(column.chunks) for column in read.columns]
        parsed = pa.StructArray.from_arrays(columns, fields=list(given))
        if not (unread or _finite(parsed)) or lacks_required(parsed, wire):
            return None
        return convert(parsed, target)
    except MISFITS:
        return None


def _read(joined: pa.Buffer, given: pa.StructType, unexpected: str) -> pa.Table:
    """The table of a text that has a row of JSON in each line."""
    return pj.read_json(
        pa.BufferReader(joined),
        read_options=pj.ReadOptions(use_threads=False, block_size=joined.size + _READ_MARGIN_BYTES),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema(list(given)), unexpected_field_behavior=unexpected
        ),
    )


def _may_differ(joined: pa.Buffer) -> bool:
    """Whether a text has one of the few numbers that Arrow's parser reads and Python's does not."""
    content = joined.to_pybytes()
    return (b"Inf" in content or b"NaN" in content) and _NOT_FINITE.search(content) is not None


def _finite(array: pa.Array) -> bool:
    """Whether all floats in an array are numbers. Others may come from texts that Python
    refuses."""
    kind = array.type
    if pa.types.is_struct(kind):
        return all(_finite(array.field(index)) for index in range(kind.num_fields))
    if pa.types.is_list(kind):
        return _finite(array.values)
    return not pa.types.is_floating(kind) or pc.all(pc.is_finite(array)).as_py() is not False


def _row_by_row(
    text: pa.Array,
    rows: Rows,
    read_row: Callable[[str], object],
    wire: pa.DataType,
    target: pa.DataType,
    reasons: Reasons,
) -> pa.Array:
    """The rows as an array, each parsed by itself; `reasons` gets, by position, why a row does not
    parse."""
    values: list[object] = []
    found: Reasons = {}
    for row, one in enumerate(text.to_pylist()):
        try:
            values.append(read_row(one))
        except (ValueError, RecursionError) as error:
            values.append(None)
            found[row] = one_line(error)
    array = build(values, lambda some: convert(array_of(some, wire), target), found)
    reasons.update((int(rows[row]), why) for row, why in found.items())
    return array
