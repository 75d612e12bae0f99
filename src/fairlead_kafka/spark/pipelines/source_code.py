"""Reading of a project's definitions from its files: Python by its syntax tree, SQL by its tokens;
no code is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from fairlead_kafka.spark.pipelines.constants import UNKNOWN, constant, text_of
from fairlead_kafka.spark.pipelines.definitions import (
    MATERIALIZED_VIEW,
    SINK,
    STREAMING_KINDS,
    TABLE,
    TEMPORARY_VIEW,
    Definitions,
    Flow,
    Frame,
    Output,
    Read,
    same_name,
)
from fairlead_kafka.spark.pipelines.findings import Finding, Place
from fairlead_kafka.spark.pipelines.frames import Body, SourceFile
from fairlead_kafka.spark.pipelines.project import Project
from fairlead_kafka.spark.pipelines.sql_names import declared_columns, definitions_of, reads_of

_DECORATORS = {
    "table": TABLE,
    "materialized_view": MATERIALIZED_VIEW,
    "temporary_view": TEMPORARY_VIEW,
    "append_flow": "append",
}
_CALLS = ("create_sink", "create_streaming_table", "create_auto_cdc_flow")
_SQL_KINDS = {
    "streaming table": TABLE,
    "materialized view": MATERIALIZED_VIEW,
    "temporary view": TEMPORARY_VIEW,
    "flow": "append",
}
_SESSION_CHANGES = {
    "spark.conf.set": "put it under configuration: in the specification",
    "spark.udf.register": "use the function itself, made with pyspark.sql.functions.udf",
    "spark.catalog.setCurrentDatabase": "put database: into the specification",
    "spark.catalog.setCurrentCatalog": "put catalog: into the specification",
    "spark.catalog.dropTempView": "leave it out; temporary views of a pipeline go by themselves",
}
_PIPELINES = "pyspark.pipelines"


def read_definitions(project: Project, findings: list[Finding]) -> Definitions:
    """The definitions of all files of a project; what cannot be read, or would not run, is added to
    `findings`."""
    definitions = Definitions()
    files: list[tuple[SourceFile, list[tuple[Flow, ast.FunctionDef]]]] = []
    for path in project.sources:
        shown = project.shown(path)
        if path.suffix == ".sql":
            _read_sql(path, definitions)
        elif path.suffix != ".py":
            findings.append(
                Finding(
                    shown,
                    1,
                    "no-definitions",
                    f"Spark takes .py and .sql files here, not {path.suffix or path.name}",
                    "move it away",
                )
            )
        else:
            tree = _parse(path, shown, findings)
            if tree is not None:
                files.append(
                    _PythonFile(
                        SourceFile(path, shown, configuration=project.configuration), definitions, findings
                    ).read(tree)
                )
    _follow(definitions, files, findings)
    return definitions


def _parse(path: Path, shown: str, findings: list[Finding]) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except SyntaxError as error:
        text = (error.text or "").strip()
        fix = f"look at `{text}`" if text else "look at this line and the one above"
        findings.append(Finding(shown, error.lineno or 1, "syntax-error", f"not Python: {error.msg}", fix))
    except UnicodeDecodeError as error:
        findings.append(
            Finding(
                shown,
                1,
                "syntax-error",
                f"not UTF-8: {error.reason} at byte {error.start}",
                "save the file as UTF-8",
            )
        )
    return None


def _follow(
    definitions: Definitions,
    files: list[tuple[SourceFile, list[tuple[Flow, ast.FunctionDef]]]],
    findings: list[Finding],
) -> None:
    """Go through every flow's function; functions of datasets that others read come first."""
    waiting = [(file, flow, function) for file, flows in files for flow, function in flows]
    frames: dict[int, Frame] = {}
    under_way: set[int] = set()

    def dataset(name: str) -> Frame:
        output = definitions.output(name)
        if output is not None and output.schema is not None:
            return Frame(dict(output.schema), watermark=False)
        for file, flow, function in waiting:
            if flow.target is not None and same_name(flow.target, name) and flow.kind != "append":
                frame = visit(file, flow, function)
                # A stored table has no watermark any more; a view is the same rows again.
                return frame if flow.kind == TEMPORARY_VIEW else Frame(frame.columns, watermark=False)
        return Frame()

    def visit(file: SourceFile, flow: Flow, function: ast.FunctionDef) -> Frame:
        if id(flow) in frames or id(flow) in under_way:
            return frames.get(id(flow), Frame())
        under_way.add(id(flow))
        result = Body(file, flow, findings, dataset).run(function)
        if result is None:
            what = f"{function.name} returns no DataFrame"
            findings.append(
                Finding(
                    file.shown, function.lineno, "no-return", what, "end it with return and the DataFrame"
                )
            )
        flow.frame = frames[id(flow)] = result or Frame()
        return flow.frame

    for file, flow, function in waiting:
        visit(file, flow, function)


def _read_sql(path: Path, definitions: Definitions) -> None:
    for words, name, target, query, line in definitions_of(path.read_text(encoding="utf-8")):
        kind, place = _SQL_KINDS[words], Place(path, line)
        if kind != "append":
            definitions.outputs.append(Output(name, kind, place))
        reads = [Read(one, streaming, place) for one, streaming in reads_of(query)]
        if reads or kind == "append":
            streaming = (
                any(read.streaming for read in reads)
                if kind in (*STREAMING_KINDS, MATERIALIZED_VIEW)
                else None
            )
            definitions.flows.append(
                Flow(
                    name,
                    target if kind == "append" else name,
                    kind,
                    place,
                    reads,
                    frame=Frame(streaming=streaming),
                )
            )


class _PythonFile:
    """Collects the definitions of one Python file, from its top level and its loops and
    conditions."""

    def __init__(self, file: SourceFile, definitions: Definitions, findings: list[Finding]) -> None:
        self._file = file
        self._definitions = definitions
        self._findings = findings
        self._modules: set[str] = set()
        self._direct: dict[str, str] = {}
        self._flows: list[tuple[Flow, ast.FunctionDef]] = []

    def read(self, tree: ast.Module) -> tuple[SourceFile, list[tuple[Flow, ast.FunctionDef]]]:
        """The file, with the values of its names, and its flows with their functions."""
        for node in ast.walk(tree):
            self._take_import(node)
        self._statements(tree.body)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _SESSION_CHANGES:
                called = ast.unparse(node.func)
                what = f"{called} in a definition is refused by Spark"
                self._findings.append(
                    Finding(self._file.shown, node.lineno, "session-change", what, _SESSION_CHANGES[called])
                )
        return self._file, self._flows

    def _take_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.ImportFrom) and node.module == "pyspark":
            self._modules |= {one.asname or one.name for one in node.names if one.name == "pipelines"}
        elif isinstance(node, ast.ImportFrom) and node.module == _PIPELINES:
            self._direct |= {one.asname or one.name: one.name for one in node.names}
        elif isinstance(node, ast.Import):
            self._modules |= {one.asname or one.name for one in node.names if one.name == _PIPELINES}

    def _statements(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.FunctionDef):
                self._file.functions[statement.name] = statement
                self._take_function(statement)
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self._file.names[target.id] = constant(
                            statement.value, self._file.names, self._file.configuration
                        )
            elif (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and statement.value
            ):
                self._file.names[statement.target.id] = constant(
                    statement.value, self._file.names, self._file.configuration
                )
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self._take_call(statement.value)
            elif not isinstance(statement, ast.ClassDef):
                if isinstance(statement, ast.For):
                    # What a loop's variable is differs from round to round.
                    self._file.names |= {
                        one.id: UNKNOWN for one in ast.walk(statement.target) if isinstance(one, ast.Name)
                    }
                for inner in ("body", "orelse", "finalbody"):
                    self._statements(getattr(statement, inner, []))

    def _pipelines_name(self, node: ast.expr) -> str | None:
        """The name in Spark's pipelines module that an expression means: `table` for `dp.table`,
        whatever name the file gives the module; None for anything else."""
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in self._modules:
            return node.attr
        return self._direct.get(node.id) if isinstance(node, ast.Name) else None

    def _text(self, call: ast.Call, position: int, name: str) -> str | None:
        return text_of(_argument(call, position, name), self._file.names, self._file.configuration)

    def _take_function(self, function: ast.FunctionDef) -> None:
        for decorator in function.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
            kind = _DECORATORS.get(self._pipelines_name(call.func) or "")
            if kind is None:
                continue
            place = Place(self._file.path, decorator.lineno)
            given = _argument(call, 9, "name")
            name = (
                function.name if given is None else text_of(given, self._file.names, self._file.configuration)
            )
            if kind == "append":
                target = self._text(call, 9, "target")
                if _argument(call, 9, "target") is None:
                    what = f"append_flow of {function.name} has no target"
                    self._findings.append(
                        Finding(
                            self._file.shown,
                            decorator.lineno,
                            "undefined-target",
                            what,
                            'write target="<sink or table>"',
                        )
                    )
                self._flows.append((Flow(name, target, kind, place), function))
            else:
                schema = self._text(call, 9, "schema")
                self._definitions.outputs.append(
                    Output(name, kind, place, declared_columns(schema) if schema else None)
                )
                self._flows.append((Flow(name, name, kind, place), function))
            self._definitions.flows.append(self._flows[-1][0])

    def _take_call(self, call: ast.Call) -> None:
        name = self._pipelines_name(call.func)
        if name not in _CALLS:
            return
        place = Place(self._file.path, call.lineno)
        if name == "create_auto_cdc_flow":
            target, source = self._text(call, 0, "target"), self._text(call, 1, "source")
            reads = [Read(source, True, place)] if source else []
            self._definitions.flows.append(
                Flow(
                    self._text(call, 8, "name") or target,
                    target,
                    "append",
                    place,
                    reads,
                    frame=Frame(streaming=True),
                )
            )
            return
        output = self._text(call, 0, "name")
        if name == "create_streaming_table":
            schema = self._text(call, 9, "schema")
            self._definitions.outputs.append(
                Output(output, TABLE, place, declared_columns(schema) if schema else None)
            )
            return
        options_node = _argument(call, 2, "options")
        options = (
            constant(options_node, self._file.names, self._file.configuration)
            if options_node is not None
            else {}
        )
        known = options if isinstance(options, dict) else None
        self._definitions.outputs.append(
            Output(output, SINK, place, format=self._text(call, 1, "format"), options=known)
        )


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    by_name = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    return by_name if by_name is not None or position >= len(call.args) else call.args[position]


def flows_into(definitions: Definitions, output: Output) -> Iterator[Flow]:
    """The flows that fill a dataset or a sink."""
    return (
        flow
        for flow in definitions.flows
        if flow.target and output.name and same_name(flow.target, output.name)
    )
