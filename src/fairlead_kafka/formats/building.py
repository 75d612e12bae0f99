"""Python values to Arrow arrays, of values that may not fit the type: those become null, and are
returned with the reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import cast

import pyarrow as pa

Reasons = dict[int, str]
"""Reasons why rows do not parse, in words, by the row's position in the column."""
Decode = Callable[[pa.Array], tuple[pa.Array, Reasons]]
"""Function from a binary array to an array of the format's type, null where a value does not parse,
and the reasons of those rows."""
MISFITS = (pa.ArrowException, ValueError, TypeError, OverflowError, ArithmeticError)
"""Exceptions that Arrow and Python raise for a value that a type cannot hold."""


def build(values: list[object], make: Callable[[list[object]], pa.Array], reasons: Reasons) -> pa.Array:
    """The array `make(values)`. Values for which `make` fails are null in it, and `reasons` gets
    why, by position."""
    try:
        return make(values)
    except MISFITS:
        for index, error in list(_misfits(values, make, 0)):
            values[index] = None
            reasons[index] = one_line(error)
        return make(values)


def _misfits(
    values: list[object], make: Callable[[list[object]], pa.Array], first: int
) -> Iterator[tuple[int, Exception]]:
    """Positions and errors of the values for which `make` fails, found by halving; `first` is its
    error for all values."""
    try:
        make(values)
    except MISFITS as error:
        if len(values) == 1:
            yield first, error
        else:
            middle = len(values) // 2
            yield from _misfits(values[:middle], make, first)
            yield from _misfits(values[middle:], make, first + middle)


def array_of(values: list[object], kind: pa.DataType) -> pa.Array:
    """The array `pa.array(values, kind)`. Structs, given as dictionaries with all their fields, are
    built column by column, in a fraction of the time."""
    if not pa.types.is_struct(kind) or not values:
        return pa.array(values, kind)
    names = [field.name for field in kind]
    mask = None
    if None in values:
        mask = pa.array([value is None for value in values])
        nothing = dict.fromkeys(names)
        values = [nothing if value is None else value for value in values]
    rows = cast("list[dict[str, object]]", values)  # what is no struct fails here, as one of MISFITS
    fields_of = itemgetter(*names)
    columns = (
        [[fields_of(row) for row in rows]] if len(names) == 1 else zip(*map(fields_of, rows), strict=True)
    )
    children = [array_of(list(column), field.type) for column, field in zip(columns, kind, strict=True)]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)


def one_line(error: BaseException) -> str:
    """An error as one short line for people; the class's name if the error has no text."""
    said = " ".join(str(error).split())
    return (said or type(error).__name__)[:200]
