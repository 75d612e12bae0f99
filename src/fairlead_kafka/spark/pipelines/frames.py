"""DataFrames inferred from their program: the columns that a step refers to and keeps, and whether
rows stream.

`Body` goes through one function of a project as Spark would, and records mistakes that Spark would
find. After a step that it does not understand columns are unknown, and no mistakes in unknown
columns are reported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.spark.pipelines.column_expressions import Columns, name_of, references, type_of
from fairlead_kafka.spark.pipelines.constants import (
    UNKNOWN,
    Setting,
    constant,
    plain,
    setting,
    settings_of,
    text_of,
)
from fairlead_kafka.spark.pipelines.definitions import FORMAT, Flow, Frame, Read, Source
from fairlead_kafka.spark.pipelines.findings import Finding, Place, one_of
from fairlead_kafka.spark.pipelines.sql_names import (
    column_names,
    declared_columns,
    groups_without_watermark,
    reads_of,
    result_name,
    words,
)

SOURCE_COLUMNS: Columns = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
_CALLS_DEEP_MAX = 8
_ENDLESS = "an aggregate over a stream without watermark would wait for late rows for ever"
_SAME_COLUMNS = words(
    "alias cache coalesce checkpoint distinct dropDuplicates dropDuplicatesWithinWatermark drop_duplicates "
    "dropna filter hint limit "
    "observe offset orderBy persist repartition repartitionByRange sample sort sortWithinPartitions union "
    "unionAll unionByName where"
)
_ENDS = {
    **dict.fromkeys(
        (
            "collect",
            "toPandas",
            "toArrow",
            "show",
            "take",
            "head",
            "first",
            "tail",
            "toLocalIterator",
            "foreach",
        ),
        "would run a job",
    ),
    **dict.fromkeys(("write", "writeStream", "writeTo"), "would write"),
    **dict.fromkeys(
        (
            "createTempView",
            "createOrReplaceTempView",
            "createGlobalTempView",
            "createOrReplaceGlobalTempView",
        ),
        "changes the session",
    ),
}
"""Methods that a definition must not call, with the reason: it only says what is to be computed."""


@dataclass(frozen=True)
class Reader:
    """`spark.read` or `spark.readStream`, with the format, options and schema set so far."""

    streaming: bool
    format: str | None = None
    options: dict[str, Setting] | None = field(default_factory=dict)
    schema: Columns | None = None


@dataclass(frozen=True)
class Grouped:
    """A DataFrame that `groupBy(...)` has grouped."""

    frame: Frame
    keys: Columns | None


@dataclass
class SourceFile:
    """A Python file of the project, and what its names mean."""

    path: Path
    shown: str
    names: dict[str, object] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    configuration: Mapping[str, str] = field(default_factory=dict)


class Body:
    """Goes through one flow's function: notes reads and sources in the flow, and findings in the
    list given; `result` is the DataFrame that it returns.

    `dataset` gives the frame of a dataset of the project by name, as far as it is known.
    """

    def __init__(
        self,
        file: SourceFile,
        flow: Flow,
        findings: list[Finding],
        dataset: Callable[[str], Frame],
        depth: int = 0,
    ) -> None:
        self._file = file
        self._flow = flow
        self._findings = findings
        self._dataset = dataset
        self._depth = depth
        self._values: dict[str, object] = {}
        self.result: Frame | None = None

    def run(self, function: ast.FunctionDef, arguments: Sequence[object] | None = None) -> Frame | None:
        """Go through a function's statements. Returns the DataFrame of its last `return`, None if
        it returns none."""
        for name, value in zip((one.arg for one in function.args.args), arguments or (), strict=False):
            self._values[name] = value
        self._statements(function.body)
        return self.result

    def _statements(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if (
                isinstance(statement, ast.Assign)
                and len(statement.targets) == 1
                and isinstance(statement.targets[0], ast.Name)
            ):
                self._values[statement.targets[0].id] = self._value(statement.value)
            elif (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and statement.value
            ):
                self._values[statement.target.id] = self._value(statement.value)
            elif isinstance(statement, ast.Return):
                found = self._value(statement.value) if statement.value else None
                self.result = found if isinstance(found, Frame) else Frame() if statement.value else None
            elif isinstance(statement, ast.Expr):
                self._value(statement.value)
            else:
                for inner in ("body", "orelse", "finalbody"):
                    if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                        self._statements(getattr(statement, inner, []))

    def _note(self, line: int, rule: str, what: str, fix: str) -> None:
        finding = Finding(self._file.shown, line, rule, what, fix)
        if finding not in self._findings:
            self._findings.append(finding)

    def _value(self, node: ast.expr) -> object:
        """The value of an expression: a Frame, a Reader, a Grouped, or a constant
        (`constants.constant`)."""
        if isinstance(node, ast.Name):
            return self._values.get(node.id, self._file.names.get(node.id, UNKNOWN))
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return constant(node, {**self._file.names, **self._values}, self._file.configuration)

    def _attribute(self, node: ast.Attribute) -> object:
        if (
            isinstance(node.value, ast.Name)
            and node.value.id == "spark"
            and node.attr in ("read", "readStream")
        ):
            return Reader(streaming=node.attr == "readStream")
        base = self._value(node.value)
        if isinstance(base, Frame) and node.attr in _ENDS:
            self._refuse_end(node)
        return UNKNOWN

    def _refuse_end(self, node: ast.Attribute) -> None:
        what = f".{node.attr} in a definition {_ENDS[node.attr]}"
        self._note(
            node.end_lineno or node.lineno,
            "not-declarative",
            what,
            "return the DataFrame; the pipeline runs and writes it",
        )

    def _call(self, node: ast.Call) -> object:
        names = {**self._file.names, **self._values}
        if isinstance(node.func, ast.Name):
            return self._own_function(node)
        if not isinstance(node.func, ast.Attribute):
            return UNKNOWN
        called = ast.unparse(node.func)
        if called in ("spark.sql", "spark.table"):
            return self._by_name(node, called)
        if called == "spark.range":
            return Frame({"id": "bigint"}, streaming=False)
        base = self._value(node.func.value)
        if isinstance(base, Reader):
            return self._reader(base, node)
        if isinstance(base, Grouped):
            return self._grouped(base, node)
        if isinstance(base, Frame):
            return self._step(base, node)
        frames = [found for found in map(self._value, node.args) if isinstance(found, Frame)]
        if frames and node.func.attr in ("good", "bad", "judged"):
            return _checked(frames[0], node.func.attr)
        return (
            Frame(streaming=frames[0].streaming)
            if frames
            else constant(node, names, self._file.configuration)
        )

    def _own_function(self, node: ast.Call) -> object:
        assert isinstance(node.func, ast.Name)
        function = self._file.functions.get(node.func.id)
        values = [self._value(argument) for argument in node.args]
        if function is None or self._depth >= _CALLS_DEEP_MAX:
            frames = [value for value in values if isinstance(value, Frame)]
            return (
                Frame(streaming=frames[0].streaming)
                if frames
                else constant(node, self._file.names, self._file.configuration)
            )
        return (
            Body(self._file, self._flow, self._findings, self._dataset, self._depth + 1).run(function, values)
            or UNKNOWN
        )

    def _by_name(self, node: ast.Call, called: str) -> Frame:
        text = text_of(
            node.args[0] if node.args else None,
            {**self._file.names, **self._values},
            self._file.configuration,
        )
        if text is None:
            return Frame()
        if called == "spark.table":
            return self._read_dataset(text, False, node)
        reads = reads_of(text)
        for name, streaming in reads:
            self._flow.reads.append(Read(name, streaming, Place(self._file.path, node.lineno)))
        stored = [name for name, streaming in reads if streaming and self._dataset(name).watermark is False]
        if stored and groups_without_watermark(text):
            self._note(node.lineno, "no-watermark", _ENDLESS, _watermark_in_sql(stored[0]))
        return Frame(streaming=any(streaming for _, streaming in reads))

    def _read_dataset(self, name: str, streaming: bool, node: ast.Call) -> Frame:
        self._flow.reads.append(Read(name, streaming, Place(self._file.path, node.end_lineno or node.lineno)))
        known = self._dataset(name)
        return Frame(known.columns, streaming, known.watermark, from_dataset=name)

    def _reader(self, reader: Reader, node: ast.Call) -> object:
        assert isinstance(node.func, ast.Attribute)
        method, names, configuration = (
            node.func.attr,
            {**self._file.names, **self._values},
            self._file.configuration,
        )
        first = text_of(node.args[0] if node.args else None, names, configuration)
        if method == "format":
            return replace(reader, format=first)
        if method == "option" and len(node.args) == 2:
            known = (
                None
                if first is None or reader.options is None
                else {**reader.options, first: setting(node.args[1], names, configuration)}
            )
            return replace(reader, options=known)
        if method == "options":
            given = settings_of(node, names, configuration)
            return replace(
                reader,
                options=None if given is None or reader.options is None else {**reader.options, **given},
            )
        if method == "schema":
            return replace(reader, schema={**(declared_columns(first) or {})} if first else None)
        if method == "table" and first is not None:
            return self._read_dataset(first, reader.streaming, node)
        if method == "load" and reader.format == FORMAT:
            return self._load(reader, node)
        return Frame(streaming=reader.streaming)

    def _load(self, reader: Reader, node: ast.Call) -> Frame:
        place = Place(self._file.path, node.lineno)
        self._flow.sources.append(Source(reader.options, reader.streaming, place))
        lower = {name.lower(): plain(each.value) for name, each in (reader.options or {}).items()}
        if (
            reader.options is None
            or {"view", "columns", "rescued", "valueformat", "keyformat"} & set(lower)
            or reader.schema
        ):
            return Frame(streaming=reader.streaming, watermark=False)
        headers: Columns = (
            {"headers": "array"} if str(lower.get("includeheaders", "")).lower() == "true" else {}
        )
        return Frame({**SOURCE_COLUMNS, **headers}, reader.streaming, watermark=False)

    def _grouped(self, grouped: Grouped, node: ast.Call) -> Frame:
        assert isinstance(node.func, ast.Attribute)
        frame = grouped.frame
        if frame.streaming and frame.watermark is False:
            fix = 'put .withWatermark("<time column>", "10 minutes") behind .load()'
            if frame.from_dataset is not None:
                fix = _watermark_in_sql(frame.from_dataset)
            self._note(node.end_lineno or node.lineno, "no-watermark", _ENDLESS, fix)
        result = replace(frame, columns=None)
        if node.func.attr == "count" and grouped.keys is not None:
            return replace(result, columns={**grouped.keys, "count": "bigint"})
        if node.func.attr != "agg":
            return result
        added = self._selected(frame, node.args)
        return replace(
            result, columns=None if added is None or grouped.keys is None else {**grouped.keys, **added}
        )

    def _step(self, frame: Frame, node: ast.Call) -> object:
        assert isinstance(node.func, ast.Attribute)
        method = node.func.attr
        if method in _ENDS or (method == "count" and not node.args):
            if method == "count":
                what = ".count() in a definition would run a job"
                self._note(
                    node.end_lineno or node.lineno,
                    "not-declarative",
                    what,
                    "return the DataFrame; the pipeline's report counts its rows",
                )
            return UNKNOWN
        for argument in node.args:
            if method in ("join", "union", "unionAll", "unionByName", "crossJoin"):
                self._value(argument)  # the other side's reads count too
        steps: dict[str, Callable[[Frame, ast.Call], Frame | Grouped]] = {
            "select": lambda frame, node: replace(frame, columns=self._selected(frame, node.args)),
            "selectExpr": self._select_expressions,
            "withColumn": self._with_column,
            "withColumnRenamed": self._renamed,
            "drop": self._dropped,
            "groupBy": self._group_by,
            "groupby": self._group_by,
            "withWatermark": self._watermark,
        }
        if method in steps:
            return steps[method](frame, node)
        if method in _SAME_COLUMNS:
            self._check_arguments(frame, node, texts_are_sql=method in ("where", "filter"))
            return frame
        if (
            method == "transform"
            and node.args
            and isinstance(node.args[0], ast.Name)
            and node.args[0].id in self._file.functions
        ):
            function = self._file.functions[node.args[0].id]
            return (
                Body(self._file, self._flow, self._findings, self._dataset, self._depth + 1).run(
                    function, [frame]
                )
                or UNKNOWN
            )
        return Frame(streaming=frame.streaming, watermark=frame.watermark)

    def _is_frame(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and isinstance(self._values.get(node.id), Frame)

    def _check(self, frame: Frame, name: str, line: int) -> None:
        if frame.columns is None or not name or "*" in name:
            return
        first = name.split(".")[0].strip("`")
        if first.lower() in {column.lower() for column in frame.columns}:
            return
        near = nearest(first, frame.columns)
        fix = f"did you mean {near}?" if near else f"the columns here are {one_of(frame.columns)}"
        self._note(line, "wrong-column", f"there is no column {first}", fix)

    def _check_arguments(self, frame: Frame, node: ast.Call, texts_are_sql: bool) -> None:
        for argument in node.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                for name in column_names(argument.value) if texts_are_sql else ():
                    self._check(frame, name, argument.lineno)
            else:
                for name, line in references(argument, self._is_frame):
                    self._check(frame, name, line)

    def _selected(self, frame: Frame, nodes: list[ast.expr]) -> Columns | None:
        """The columns of a select or an aggregate, in order; None if one of them cannot be told."""
        columns: Columns | None = {}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                self._check(frame, node.value, node.lineno)
            for name, line in references(node, self._is_frame):
                self._check(frame, name, line)
            star = isinstance(node, ast.Constant) and node.value == "*"
            found = name_of(node, self._is_frame)
            if columns is None or (star and frame.columns is None) or (found is None and not star):
                columns = None
            elif star:
                columns |= frame.columns or {}
            elif found is not None:
                columns[found] = type_of(node, frame.columns or {}, self._is_frame)
        return columns

    def _select_expressions(self, frame: Frame, node: ast.Call) -> Frame:
        columns: Columns | None = {}
        for argument in node.args:
            text = text_of(argument, {**self._file.names, **self._values}, self._file.configuration)
            for name in column_names(text or ""):
                self._check(frame, name, argument.lineno)
            found = result_name(text or "")
            if columns is None or (text == "*" and frame.columns is None) or (text != "*" and found is None):
                columns = None
            elif text == "*":
                columns |= frame.columns or {}
            elif found is not None:
                columns[found] = (frame.columns or {}).get(found) if text == found else None
        return replace(frame, columns=columns)

    def _with_column(self, frame: Frame, node: ast.Call) -> Frame:
        if len(node.args) != 2:
            return replace(frame, columns=None)
        for name, line in references(node.args[1], self._is_frame):
            self._check(frame, name, line)
        added = text_of(node.args[0], self._file.names, self._file.configuration)
        if frame.columns is None or added is None:
            return replace(frame, columns=None)
        return replace(
            frame, columns={**frame.columns, added: type_of(node.args[1], frame.columns, self._is_frame)}
        )

    def _renamed(self, frame: Frame, node: ast.Call) -> Frame:
        before, after = (
            text_of(argument, self._file.names, self._file.configuration)
            for argument in (*node.args, None, None)[:2]
        )
        if before is None or after is None or frame.columns is None:
            return replace(frame, columns=None)
        self._check(frame, before, node.end_lineno or node.lineno)
        return replace(
            frame, columns={after if name == before else name: kind for name, kind in frame.columns.items()}
        )

    def _dropped(self, frame: Frame, node: ast.Call) -> Frame:
        dropped = [text_of(argument, self._file.names, self._file.configuration) for argument in node.args]
        if frame.columns is None or None in dropped:
            return replace(frame, columns=None)
        return replace(
            frame, columns={name: kind for name, kind in frame.columns.items() if name not in dropped}
        )

    def _group_by(self, frame: Frame, node: ast.Call) -> Grouped:
        return Grouped(frame, self._selected(frame, node.args))

    def _watermark(self, frame: Frame, node: ast.Call) -> Frame:
        if node.args and isinstance(node.args[0], ast.Constant):
            self._check(frame, str(node.args[0].value), node.args[0].lineno)
        if frame.from_dataset is not None and frame.streaming:
            what = f"withWatermark looks {frame.from_dataset} up before the pipeline has made it"
            self._note(
                node.end_lineno or node.lineno,
                "watermark-on-dataset",
                what,
                _watermark_in_sql(frame.from_dataset),
            )
        return replace(frame, watermark=True)


def _watermark_in_sql(dataset: str) -> str:
    return f'write spark.sql("SELECT … FROM STREAM {dataset} WATERMARK time DELAY OF INTERVAL 10 MINUTES …")'


def _checked(frame: Frame, method: str) -> Frame:
    """The frame that a method of `Expectations` returns.

    Good rows have the columns they had, the others one more.
    """
    if method == "good" or frame.columns is None:
        return frame
    return replace(frame, columns={**frame.columns, "failed": "array"})
