"""JSON at the door: what is of another type is refused, with its key and what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from fairlead_kafka.base.json_types import (
    NESTED_MAX,
    Json,
    integer_at,
    integer_list_at,
    integers_at,
    json_object,
    list_at,
    number_at,
    number_or_none,
    object_at,
    objects_at,
    read_json,
    text_at,
)

_ROW = json_object('{"n": 1, "f": 0.5, "t": "x", "o": {"a": 1}, "l": [1], "b": true, "z": null}')
_READS: Mapping[Callable[[Mapping[str, Json], str], object], str] = {
    number_at: "nf",
    integer_at: "n",
    text_at: "t",
    object_at: "o",
    list_at: "l",
}


@pytest.mark.parametrize("read", _READS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("key", _ROW)
def test_a_value_is_given_if_it_is_of_the_type_asked_for(
    read: Callable[[Mapping[str, Json], str], object], key: str
) -> None:
    if key in _READS[read]:
        assert read(_ROW, key) is _ROW[key]
    else:
        with pytest.raises(ValueError, match=f"'{key}' must be .*, got "):
            read(_ROW, key)


@pytest.mark.parametrize("read", _READS, ids=lambda read: read.__name__)
def test_a_missing_key_is_a_key_error(read: Callable[[Mapping[str, Json], str], object]) -> None:
    with pytest.raises(KeyError):
        read(_ROW, "missing")


def test_a_number_that_need_not_be_there() -> None:
    assert number_or_none(_ROW, "f") == 0.5
    assert number_or_none(_ROW, "z") is None
    assert number_or_none(_ROW, "missing") is None
    with pytest.raises(ValueError, match="'t' must be a number, got 'x'"):
        number_or_none(_ROW, "t")


def test_lists_and_objects_are_asked_for_with_what_is_in_them() -> None:
    row = json_object('{"ports": {"A": 1, "B": 2}, "ids": [3, 4], "rows": [{"n": 1}], "mixed": [1, "x"]}')
    assert integers_at(row, "ports") == {"A": 1, "B": 2}
    assert integer_list_at(row, "ids") == [3, 4]
    assert objects_at(row, "rows") == [{"n": 1}]
    for read in (integer_list_at, objects_at):
        with pytest.raises(ValueError, match="'mixed' must be an"):
            read(row, "mixed")
    with pytest.raises(ValueError, match="'x' must be an integer, got '1'"):
        integers_at({"ports": {"x": "1"}}, "ports")


@pytest.mark.parametrize("text", ["[1]", "null", '"x"'])
def test_json_of_another_type_is_no_object(text: str) -> None:
    with pytest.raises(ValueError, match="expected a JSON object"):
        json_object(text)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, b"[" * 100_000])
def test_json_that_is_nested_too_deep_is_a_value_error(text: str | bytes) -> None:
    for read in (read_json, json_object):
        with pytest.raises(ValueError, match="nested too deep"):
            read(text)


@pytest.mark.parametrize("made", [str, str.encode])
def test_nesting_has_a_bound_that_depends_on_nothing_else(made: Callable[[str], str | bytes]) -> None:
    assert read_json(made("[" * NESTED_MAX + "]" * NESTED_MAX))
    for deeper in ("[" * 501 + "]" * 501, '{"a":' * 501 + "1" + "}" * 501, "[" * 100_000):
        with pytest.raises(ValueError, match="nested too deep: 500"):
            read_json(made(deeper))
    for shallow in ('"' + "[" * 501 + '\\"{"', "[" + "{}," * 1000 + "{}]", '["' + "{" * 2_000_000 + '"]'):
        assert read_json(made(shallow))
