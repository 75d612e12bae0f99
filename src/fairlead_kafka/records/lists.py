"""Conversion of Python lists to columns, without Arrow: sending single records never loads it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import cast

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.errors import InvalidRecord
from fairlead_kafka.records.arrays import Bools
from fairlead_kafka.records.columns import BinaryColumn, HeaderColumns, RecordColumns, timestamps_or_none


def columns_from_lists(
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    headers: Sequence[Sequence[tuple[str, bytes | None]] | None] | None = None,
    timestamps_ms: list[int] | None = None,
) -> RecordColumns:
    """Columns of records gathered one by one; a timestamp of -1 leaves it to the create time.

    Raises InvalidRecord if a key, value or header is not bytes (a header's key: str), or if the
    lists differ in length.
    """
    count = len(values)
    for name, other in (("keys", keys), ("headers", headers), ("timestamps", timestamps_ms)):
        if other is not None and len(other) != count:
            raise InvalidRecord(f"{len(other)} {name} for {count} values; give one for each record")
    key_column = None if keys is None else _column_or_none("key", keys)
    timestamps = None if timestamps_ms is None else timestamps_or_none(np.array(timestamps_ms, np.int64))
    header_columns = None if headers is None else headers_from_lists(headers)
    return RecordColumns(count, key_column, _column_or_none("value", values), header_columns, timestamps)


def column_from_list(name: str, items: Sequence[bytes | None]) -> BinaryColumn:
    """A column of the bytes (or None) in a list; raises InvalidRecord, which calls the items
    `name`, for any other item.

    It does not use Arrow's conversion, which imports pandas where it is installed: half a second at
    the first record, and an error when the interpreter is ending.
    """
    valid: Bools | None = None
    present = cast("Sequence[bytes]", items)  # tried as if nothing were None, which is most often so
    try:
        try:
            data = b"".join(present)
        except TypeError:
            valid = np.fromiter((item is not None for item in items), np.bool_, len(items))
            present = [b"" if item is None else item for item in items]
            data = b"".join(present)
        offsets = np.zeros(len(present) + 1, np.int64)
        np.add.accumulate(np.fromiter(map(len, present), np.int64, len(present)), out=offsets[1:])
    except TypeError as error:
        raise InvalidRecord(f"a {name} is not bytes (or None): {error}") from None
    return BinaryColumn(np.frombuffer(data, np.uint8), offsets, valid)


def _column_or_none(name: str, items: Sequence[bytes | None]) -> BinaryColumn | None:
    column = column_from_list(name, items)
    return None if column.valid is not None and not column.valid.any() else column


def headers_from_lists(headers: Sequence[Sequence[tuple[str, bytes | None]] | None]) -> HeaderColumns | None:
    """Headers of records gathered one by one; None if none has any. InvalidRecord for what is no
    pair of a str and bytes (or None)."""
    lengths: npt.NDArray[np.int64] = np.array(
        [0 if each is None else len(each) for each in headers], np.int64
    )
    if not lengths.any():
        return None
    flat = list(chain.from_iterable(each for each in headers if each))
    try:
        names = [name.encode() for name, _ in flat]
        values = [value for _, value in flat]
    except (AttributeError, TypeError, ValueError):
        raise InvalidRecord("a header is not a pair of a str and bytes (or None)") from None
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return HeaderColumns(
        offsets, column_from_list("header's key", names), column_from_list("header's value", values)
    )
