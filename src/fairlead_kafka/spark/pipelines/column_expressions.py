"""Column expressions in Python: the columns that an expression refers to, and the name and type of
its result."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from fairlead_kafka.spark.pipelines.sql_names import column_names, result_name, words

_FIRST_ARGUMENT = words(
    """
    abs approx_count_distinct array_contains array_size asc avg base64 bit_length cardinality cast
    ceil char_length col collect_list collect_set column count count_distinct countDistinct count_if
    date_add date_format date_sub date_trunc dayofmonth dayofweek dayofyear desc element_at explode
    explode_outer first flatten floor from_json get_json_object hash hex hour initcap isnan
    isnotnull isnull kurtosis last length lower lpad ltrim max md5 mean median min minute month nvl
    octet_length parse_json percentile_approx quarter regexp_extract regexp_replace round rpad rtrim
    second session_window sha1 sha2 size skewness split stddev substring sum sum_distinct to_date
    to_json to_timestamp trim try_cast try_to_timestamp unbase64 unix_timestamp upper variance
    weekofyear window window_time xxhash64 year
    """
)
_ALL_ARGUMENTS = words(
    "array coalesce concat count_distinct countDistinct greatest hash ifnull least nullif nvl struct xxhash64"
)
_RESULTS = {
    "string": "base64 concat_ws date_format get_json_object hex initcap lower lpad ltrim md5 regexp_extract "
    "regexp_replace rpad rtrim sha1 "
    "sha2 to_json trim upper",
    "bigint": "approx_count_distinct count countDistinct count_distinct count_if",
    "array": "array collect_list collect_set split",
    "struct": "named_struct session_window struct window",
    "timestamp": "to_timestamp current_timestamp try_to_timestamp window_time",
    "int": "length octet_length size year month hour minute second",
    "double": "avg mean stddev variance",
    "binary": "unbase64 encode",
}
_TYPES = {function: result for result, functions in _RESULTS.items() for function in words(functions)}
_SYNONYMS = {
    "str": "string",
    "integer": "int",
    "long": "bigint",
    "stringtype": "string",
    "binarytype": "binary",
    "bytes": "binary",
}

Columns = dict[str, str | None]
IsFrame = Callable[[ast.expr], bool]
"""Whether an expression is a DataFrame, so that an attribute of it is a column."""


def function_name(call: ast.Call) -> str:
    """Name of the function that a call names: `col` for `f.col(...)` and for `col(...)`; empty for
    anything else, a method of a column included."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        return call.func.attr
    return ""


def references(node: ast.expr, is_frame: IsFrame) -> Iterator[tuple[str, int]]:
    """The columns that an expression refers to, with their lines. A text by itself is no
    reference."""
    if isinstance(node, ast.Call):
        yield from _called(node, is_frame)
    elif isinstance(node, ast.Attribute) and is_frame(node.value):
        yield node.attr, node.lineno
    elif isinstance(node, ast.Subscript) and is_frame(node.value):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            yield node.slice.value, node.lineno
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from references(child, is_frame)


def _called(node: ast.Call, is_frame: IsFrame) -> Iterator[tuple[str, int]]:
    name = function_name(node)
    texts = [
        argument.value
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    if name == "expr" and texts:
        yield from ((one, node.lineno) for one in column_names(texts[0]))
        return
    if name in _ALL_ARGUMENTS:
        yield from ((text, node.lineno) for text in texts)
    elif (
        name in _FIRST_ARGUMENT
        and texts
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == texts[0]
    ):
        yield texts[0], node.lineno
    if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name):
        yield from references(node.func.value, is_frame)
    elif isinstance(node.func, ast.Attribute) and is_frame(node.func.value):
        return  # a step of a DataFrame inside of an expression, such as a join's other side
    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
        if not isinstance(argument, ast.Constant):
            yield from references(argument, is_frame)


def name_of(node: ast.expr, is_frame: IsFrame) -> str | None:
    """Column name of an expression's result; None if it cannot be told."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return None if node.value.endswith("*") else node.value.rpartition(".")[2].strip("`")
    if isinstance(node, ast.Attribute) and is_frame(node.value):
        return node.attr
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    ):
        return node.slice.value
    if not isinstance(node, ast.Call):
        return None
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    if method in ("alias", "name"):
        return first if isinstance(first, str) and len(node.args) == 1 else None
    name = function_name(node)
    if name in ("col", "column") and isinstance(first, str):
        return name_of(node.args[0], is_frame)
    if name == "expr" and isinstance(first, str):
        return result_name(first)
    if name in ("window", "session_window"):
        return name
    if method in ("cast", "astype", "try_cast") and isinstance(node.func, ast.Attribute):
        return name_of(node.func.value, is_frame)
    return None


def type_of(node: ast.expr, columns: Columns, is_frame: IsFrame) -> str | None:
    """The type of an expression's result, if that can be told from the text; None if not. Types
    within structs and arrays are left out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return columns.get(node.value)
    if isinstance(node, ast.Attribute) and is_frame(node.value):
        return columns.get(node.attr)
    if not isinstance(node, ast.Call):
        return None
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if method in ("alias", "name") and isinstance(node.func, ast.Attribute):
        return type_of(node.func.value, columns, is_frame)
    if method in ("cast", "astype", "try_cast") and node.args:
        return type_name(node.args[0])
    name = function_name(node)
    if name in ("col", "column") and node.args and isinstance(node.args[0], ast.Constant):
        return columns.get(str(node.args[0].value))
    return _TYPES.get(name)


def type_name(node: ast.expr) -> str | None:
    """The type that an argument of `cast` names; None if it cannot be told."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        word = node.value
    elif isinstance(node, ast.Call):
        word = function_name(node)
    else:
        return None
    word = word.strip().lower().partition("<")[0].partition("(")[0]
    return _SYNONYMS.get(word, word.removesuffix("type"))
