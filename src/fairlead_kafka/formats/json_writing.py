"""Arrow columns to JSON texts, column by column, by Arrow's own functions: pieces of text for each
field, joined row by row.

A text is equal to that of Python's `json.dumps` without spaces, but characters beyond ASCII stay as
they are. Fields that are null are written as null. Dates and timestamps are ISO 8601 (with a `Z`
where they are of UTC), binaries base64, decimals are numbers with all their digits: `json_types`
reads all of these.
"""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.formats.building import Reasons

_BLOCK_ROWS = 32_768
"""Rows written at once: pieces of so many stay in the processor's cache, and far from the 2 GiB
that an array of texts may have."""
_SHORT_ESCAPES = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_T_POSITION = 10
"""Place of the space between day and time in a timestamp's text."""
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds since 1970."""


class _Misfits:
    """Rows that JSON has no form for, and why."""

    def __init__(self) -> None:
        self.reasons: Reasons = {}

    def note(self, bad: pa.Array, rows: np.ndarray[tuple[int], np.dtype[np.int64]], why: str) -> None:
        """Note `why` for the rows that have a bad item. `bad`: which items; `rows`: the row that
        each item is of."""
        for row in rows[bad.fill_null(False).to_numpy(zero_copy_only=False)].tolist():
            self.reasons.setdefault(row, why)


def check_json(kind: pa.DataType, where: str = "") -> None:
    """Raise TypeError, naming the field, for a type that JSON has no form for."""
    types = pa.types
    named = f"field {where.lstrip('.')}" if where else "the column"
    if types.is_dictionary(kind):
        check_json(kind.value_type, where)
    elif types.is_struct(kind):
        for field in kind:
            check_json(field.type, f"{where}.{field.name}")
    elif types.is_map(kind):
        if not (types.is_string(kind.key_type) or types.is_large_string(kind.key_type)):
            raise TypeError(f"json: {named}: keys of a map are strings in JSON, not {kind.key_type}")
        check_json(kind.item_type, f"{where}[]")
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        check_json(kind.value_type, f"{where}[]")
    elif types.is_duration(kind) or types.is_interval(kind) or types.is_union(kind):
        raise TypeError(f"json: {named}: {kind} has no form in JSON; cast it, or leave it out")


def json_texts(array: pa.Array) -> tuple[pa.Array, Reasons]:
    """The values as a binary column of JSON, and the reasons by row; null for null, and where JSON
    has no form for a value (NaN). TypeError for a type that JSON has no form for."""
    check_json(array.type)
    pieces: list[pa.Array] = []
    reasons: Reasons = {}
    for start in range(0, len(array), _BLOCK_ROWS):
        block = array.slice(start, _BLOCK_ROWS)
        misfits = _Misfits()
        texts = _texts(block, np.arange(len(block)), misfits, "").cast(pa.binary())
        given = block.is_valid()
        if misfits.reasons:
            fits = np.ones(len(block), np.bool_)
            fits[list(misfits.reasons)] = False
            given = pc.and_(given, pa.array(fits))
            reasons.update({start + row: why for row, why in misfits.reasons.items()})
        pieces.append(pc.if_else(given, texts, None) if given.false_count else texts)
    return (pa.concat_arrays(pieces) if pieces else pa.array([], pa.binary())), reasons


Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


def _texts(array: pa.Array, rows: Rows, misfits: _Misfits, where: str) -> pa.Array:
    """A text of JSON for each item of `array`, "null" for null."""
    kind = array.type
    types = pa.types
    if types.is_null(kind):
        return pa.array(["null"]).take(pa.array(np.zeros(len(array), np.int64)))
    if types.is_dictionary(kind):
        return _texts(array.dictionary_decode(), rows, misfits, where)
    if types.is_struct(kind):
        texts = _objects(array, rows, misfits, where)
    elif types.is_map(kind):
        texts = _maps(array, rows, misfits, where)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        items = _texts(array.flatten(), _rows_of(array, rows), misfits, f"{where}[]")
        texts = _joined("[", _lists(array, items), "]")
    else:
        texts = _leaves(array, rows, misfits, where)
    return pc.if_else(array.is_valid(), texts, "null") if array.null_count else texts


def _objects(array: pa.Array, rows: Rows, misfits: _Misfits, where: str) -> pa.Array:
    pieces: list[object] = []
    for number, (field, child) in enumerate(zip(array.type, array.flatten(), strict=True)):
        pieces.append(pa.scalar(("," if number else "{") + _quoted_name(field.name) + ":"))
        pieces.append(_texts(child, rows, misfits, f"{where}.{field.name}"))
    if not pieces:
        return pa.array(["{}"] * len(array))
    return pc.binary_join_element_wise(*pieces, pa.scalar("}"), pa.scalar(""))


def _maps(array: pa.Array, rows: Rows, misfits: _Misfits, where: str) -> pa.Array:
    lists = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    entries = lists.flatten()
    keys, items = entries.flatten()
    owners = _rows_of(lists, rows)
    texts = pc.binary_join_element_wise(
        _quoted(keys.cast(pa.string())),
        pa.scalar(":"),
        _texts(items, owners, misfits, f"{where}[]"),
        pa.scalar(""),
    )
    return _joined("{", _lists(lists, texts), "}")


def _lists(array: pa.Array, items: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), items), ",")


def _rows_of(array: pa.Array, rows: Rows) -> Rows:
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    return np.repeat(rows, lengths)


def _joined(before: str, texts: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(before), texts, pa.scalar(after), pa.scalar(""))


def _leaves(array: pa.Array, rows: Rows, misfits: _Misfits, where: str) -> pa.Array:
    kind = array.type
    types = pa.types
    if types.is_floating(kind):
        misfits.note(
            pc.invert(pc.is_finite(array)),
            rows,
            f"{where.lstrip('.') or 'value'}: NaN and infinity are no JSON",
        )
        return array.cast(pa.float32() if types.is_float16(kind) else kind).cast(pa.string())
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return array.cast(pa.string())
    if types.is_timestamp(kind):
        return _joined('"', _timestamps(array, rows, misfits, where), '"')
    if types.is_date(kind) or types.is_time(kind):
        return _joined('"', array.cast(pa.string()), '"')
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        texts = [None if value is None else f'"{b64encode(value).decode()}"' for value in array.to_pylist()]
        return pa.array(texts, pa.string())
    return _quoted(array.cast(pa.string()))


def _timestamps(array: pa.Array, rows: Rows, misfits: _Misfits, where: str) -> pa.Array:
    tz = array.type.tz
    if array.type.unit != "ns":
        numbers = array.cast(pa.timestamp("us", tz)).view(pa.int64())
        beyond = pc.or_(pc.less(numbers, _FIRST_US), pc.greater(numbers, _LAST_US))
        misfits.note(beyond, rows, f"{where.lstrip('.') or 'value'}: an instant outside the years 1 to 9999")
    # Instants are the same whatever their zone; ISO 8601 in UTC needs no table of zones.
    plain = array.view(pa.timestamp(array.type.unit)).cast(pa.string())
    texts = pc.utf8_replace_slice(plain, _T_POSITION, _T_POSITION + 1, "T")
    return texts if tz is None else _joined("", texts, "Z")


def _quoted(texts: pa.Array) -> pa.Array:
    """Texts as strings of JSON; Arrow's texts are UTF-8, so only a few characters are escaped."""
    filled = texts.fill_null("")
    offsets, data = filled.buffers()[1:]
    if data is not None and len(filled):
        ends = np.frombuffer(offsets, np.int32)[[filled.offset, filled.offset + len(filled)]]
        content = np.frombuffer(data, np.uint8)[ends[0] : ends[1]]
        if (content == ord("\\")).any():
            filled = pc.replace_substring(filled, "\\", "\\\\")
        if (content == ord('"')).any():
            filled = pc.replace_substring(filled, '"', '\\"')
        if (content < ord(" ")).any():
            for code in np.unique(content[content < ord(" ")]).tolist():
                filled = pc.replace_substring(filled, chr(code), _SHORT_ESCAPES.get(code, f"\\u{code:04x}"))
    return _joined('"', filled, '"')


def _quoted_name(name: str) -> str:
    return str(_quoted(pa.array([name]))[0].as_py())
