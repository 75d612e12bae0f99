"""JSON row by row, in Python: exact, with the reason for each row that does not fit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa

from fairlead_kafka.formats.json_types import has_decimal

Fit = Callable[[object], object]
"""A parsed JSON value, never None → what Arrow takes for the wire type. Raises Misfit."""
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SHOWN_CHARACTERS_MAX = 40


class Misfit(ValueError):
    """A value that is not what the schema says; `path` is where it lies in the JSON, innermost name
    first."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.path: list[str] = []

    def __str__(self) -> str:
        where = "".join(reversed(self.path)).lstrip(".")
        return f"{where}: {self.args[0]}" if where else str(self.args[0])


def row_reader(wire: pa.DataType) -> Callable[[str], object]:
    """A function from one JSON text to a value for `wire`. It raises ValueError or RecursionError
    for what does not fit."""
    decoder = json.JSONDecoder(parse_float=Decimal if has_decimal(wire) else _finite)
    fit = _fit(wire)

    def read(text: str) -> object:
        try:
            value = decoder.decode(text)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"not JSON: {error.msg} at character {error.pos + 1}" if text.strip() else "empty"
            ) from None
        return None if value is None else fit(value)

    return read


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:_SHOWN_CHARACTERS_MAX]} is too large for a double")
    return number


def _fit(kind: pa.DataType) -> Fit:
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_map(kind):
        return _map(kind)
    if pa.types.is_list(kind):
        return _list(kind)
    if pa.types.is_decimal(kind):
        return _decimal(kind)
    if pa.types.is_floating(kind):
        return _double
    if pa.types.is_integer(kind):
        return _integer(kind)
    return _boolean if pa.types.is_boolean(kind) else _string


def _struct(kind: pa.DataType) -> Fit:
    fields = [(field.name, _fit(field.type), field.nullable) for field in kind]
    names = [field.name for field in kind]

    def fit(value: object) -> object:
        if not isinstance(value, dict):
            raise _misfit(value, "an object")
        fitted: dict[str, object] = dict.fromkeys(names)
        for name, fit_field, nullable in fields:
            item = value.get(name)
            if item is not None:
                try:
                    fitted[name] = fit_field(item)
                except Misfit as misfit:
                    misfit.path.append(f".{name}")
                    raise
            elif not nullable:
                raise Misfit(f"the required field {name} is {'null' if name in value else 'not there'}")
        return fitted

    return fit


def _list(kind: pa.DataType) -> Fit:
    fit_item, nullable = _fit(kind.value_type), kind.value_field.nullable

    def fit(value: object) -> object:
        if not isinstance(value, list):
            raise _misfit(value, "an array")
        return [_item(item, f"[{index}]", fit_item, nullable) for index, item in enumerate(value)]

    return fit


def _map(kind: pa.DataType) -> Fit:
    fit_item, nullable = _fit(kind.item_type), kind.item_field.nullable

    def fit(value: object) -> object:
        if not isinstance(value, dict):
            raise _misfit(value, "an object")
        return [(name, _item(item, f".{name}", fit_item, nullable)) for name, item in value.items()]

    return fit


def _item(item: object, where: str, fit: Fit, nullable: bool) -> object:
    try:
        if item is not None:
            return fit(item)
        if not nullable:
            raise Misfit("null, which the schema does not allow")
        return None
    except Misfit as misfit:
        misfit.path.append(where)
        raise


def _integer(kind: pa.DataType) -> Fit:
    bits = kind.bit_width
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def fit(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _misfit(value, f"a whole number of {bits} bits")
        return value

    return fit


def _double(value: object) -> object:
    if type(value) is float:
        return value
    if type(value) not in (int, Decimal):
        raise _misfit(value, "a number")
    try:
        return _finite(str(value))
    except ValueError as error:
        raise Misfit(str(error)) from None


def _decimal(kind: pa.DataType) -> Fit:
    scale, whole_digits = kind.scale, kind.precision - kind.scale

    def fit(value: object) -> object:
        if isinstance(value, str) and _DECIMAL.fullmatch(value):
            value = Decimal(value)
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
            raise _misfit(value, "a number")
        number = Decimal(value)
        if not number:
            return Decimal(0)
        sign, digits, exponent = number.as_tuple()
        surplus = max(0, -int(exponent) - scale)
        if (
            number.adjusted() >= whole_digits
            or any(digits[len(digits) - surplus :])
            or surplus >= len(digits)
        ):
            raise Misfit(
                f"{str(value)[:_SHOWN_CHARACTERS_MAX]} does not fit decimal({kind.precision}, {scale})"
            )
        return Decimal((sign, digits[: len(digits) - surplus], int(exponent) + surplus))

    return fit


def _boolean(value: object) -> object:
    if type(value) is not bool:
        raise _misfit(value, "true or false")
    return value


def _string(value: object) -> object:
    if type(value) is not str:
        raise _misfit(value, "a string")
    return value


def _misfit(value: object, wanted: str) -> Misfit:
    shown = "an object" if type(value) is dict else "an array" if type(value) is list else _shown(value)
    return Misfit(f"{shown} is not {wanted}")


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, Decimal) else json.dumps(value)
    return text if len(text) <= _SHOWN_CHARACTERS_MAX else f"{text[:_SHOWN_CHARACTERS_MAX]}…"
