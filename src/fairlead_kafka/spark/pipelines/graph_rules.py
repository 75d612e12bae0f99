"""Mistakes in the graph of datasets, sinks and flows: rules over the definitions, without files or
clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.spark.pipelines.definitions import (
    FORMAT,
    MATERIALIZED_VIEW,
    SINK,
    STREAMING_KINDS,
    TABLE,
    Definitions,
    Flow,
    Output,
    same_name,
)
from fairlead_kafka.spark.pipelines.findings import ERROR, Finding, Place, one_of

SINK_TYPES = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array",),
}
"""Columns and types that the sink takes, as in `fairlead_kafka.spark.schema`, which would load all
of Spark."""

Note = Callable[..., Finding]


def graph_findings(definitions: Definitions, shown: Callable[[Place], str]) -> Iterator[Finding]:
    """All findings of the rules about the graph; `shown` gives the name of a place's file."""

    def note(place: Place, rule: str, what: str, fix: str, severity: str = ERROR) -> Finding:
        return Finding(shown(place), place.line, rule, what, fix, severity)

    for rule in (
        _duplicates,
        _undefined_targets,
        _unfilled,
        _undefined_reads,
        _cycles,
        _wrong_kinds,
        _schemas,
    ):
        yield from rule(definitions, note)


def _duplicates(definitions: Definitions, note: Note) -> Iterator[Finding]:
    for what, named in (("dataset or sink", definitions.outputs), ("flow", definitions.flows)):
        seen: dict[str, Output | Flow] = {}
        for one in named:
            name = (one.name or "").lower()
            if name in seen and not (isinstance(one, Flow) and _defined_twice(definitions, one)):
                first = seen[name].place
                where = (
                    f"line {first.line}"
                    if first.file == one.place.file
                    else f"{first.file.name}:{first.line}"
                )
                yield note(
                    one.place,
                    "duplicate-name",
                    f"a second {what} named {one.name}",
                    f"rename it; the first is in {where}",
                )
            elif name:
                seen[name] = one


def _defined_twice(definitions: Definitions, flow: Flow) -> bool:
    """Whether the flow belongs to a dataset that is a duplicate itself: said once is enough."""
    return (
        flow.kind != "append"
        and sum(same_name(flow.name or "", name) for name in definitions.output_names) > 1
    )


def _undefined_targets(definitions: Definitions, note: Note) -> Iterator[Finding]:
    for flow in definitions.flows:
        if flow.kind != "append" or flow.target is None:
            continue
        output = definitions.output(flow.target)
        if output is None and definitions.complete:
            near = nearest(flow.target, definitions.output_names)
            fix = (
                f"did you mean {near}?"
                if near
                else f'define it: dp.create_sink("{flow.target}", "{FORMAT}", {{…}})'
            )
            yield note(
                flow.place,
                "undefined-target",
                f"flow {flow.name} goes to {flow.target}, which nothing defines",
                fix,
            )
        elif output is not None and output.kind not in STREAMING_KINDS:
            fix = "make it a @dp.table or a sink, or return the rows from its own function"
            yield note(
                flow.place,
                "undefined-target",
                f"flow {flow.name} goes to {flow.target}, a {output.kind}, which takes no flows",
                fix,
            )


def _unfilled(definitions: Definitions, note: Note) -> Iterator[Finding]:
    if any(flow.target is None for flow in definitions.flows):
        return
    for output in definitions.outputs:
        if output.name is None or any(
            same_name(flow.target or "", output.name) for flow in definitions.flows
        ):
            continue
        what = f"nothing flows into {output.kind} {output.name}"
        fix = (
            f'add @dp.append_flow(target="{output.name}") to a function that returns its rows, or take '
            f"the {output.kind} out"
        )
        yield note(output.place, "sink-without-flow", what, fix)


def _undefined_reads(definitions: Definitions, note: Note) -> Iterator[Finding]:
    for flow in definitions.flows:
        for read in flow.reads:
            output = definitions.output(read.name)
            if output is not None and output.kind == SINK:
                fix = 'read its topic with format("fairlead"), or the dataset that fills it'
                yield note(read.place, "undefined-dataset", f"{read.name} is a sink, and cannot be read", fix)
            elif output is None and definitions.complete and "." not in read.name:
                near = nearest(read.name, definitions.output_names)
                fix = (
                    f"did you mean {near}?"
                    if near
                    else f"define it; there are {one_of(definitions.output_names)}"
                )
                yield note(read.place, "undefined-dataset", f"nothing defines {read.name}", fix)


def _cycles(definitions: Definitions, note: Note) -> Iterator[Finding]:
    """Findings about datasets that are computed from themselves; each cycle is reported once, at
    its first definition."""
    needs: dict[str, list[str]] = {}
    for flow in definitions.flows:
        target = definitions.output(flow.target) if flow.target else None
        if target is not None and target.name is not None:
            found = (definitions.output(read.name) for read in flow.reads)
            needs.setdefault(target.name, []).extend(
                one.name for one in found if one is not None and one.name is not None
            )
    reported: set[str] = set()
    for name in needs:
        path = _way_back(name, needs)
        if path and not reported & set(path):
            reported |= set(path)
            output = definitions.output(name)
            assert output is not None
            what = f"{name} depends on itself: {' → '.join([*path, name])}"
            yield note(output.place, "cycle", what, "take one of these reads out")


def _way_back(name: str, needs: dict[str, list[str]]) -> list[str]:
    """The datasets on a way from `name`, along what each reads, back to `name`; empty if there is
    none."""
    paths = [[name]]
    seen = set()
    while paths:
        path = paths.pop()
        for needed in needs.get(path[-1], ()):
            if needed == name:
                return path
            if needed not in seen:
                seen.add(needed)
                paths.append([*path, needed])
    return []


def _wrong_kinds(definitions: Definitions, note: Note) -> Iterator[Finding]:
    for flow in definitions.flows:
        output = definitions.output(flow.target) if flow.target else None
        kind = flow.kind if output is None else output.kind
        if kind in STREAMING_KINDS and flow.frame.streaming is False:
            word = "streaming table" if kind == TABLE else "sink"
            what = f"{flow.name} fills a {word} with a batch read"
            fix = "use spark.readStream instead of spark.read" + (
                "" if kind == SINK else ", or make it a @dp.materialized_view"
            )
            yield note(_read_place(flow), "batch-read", what, fix)
        elif kind == MATERIALIZED_VIEW and flow.frame.streaming:
            what = f"{flow.name} is a materialized view of a stream; it is computed from scratch in each run"
            yield note(_read_place(flow), "streaming-read", what, "use spark.read, or make it a @dp.table")


def _read_place(flow: Flow) -> Place:
    places = [one.place for one in flow.sources] + [one.place for one in flow.reads]
    return places[0] if places else flow.place


def _schemas(definitions: Definitions, note: Note) -> Iterator[Finding]:
    for flow in definitions.flows:
        output = definitions.output(flow.target) if flow.target else None
        if output is None or flow.frame.columns is None:
            continue
        columns = flow.frame.columns
        if output.kind == SINK and output.format == FORMAT:
            yield from _sink_schema(flow, output, columns, note)
        elif output.schema is not None:
            declared = {name.lower() for name in output.schema}
            extra = [name for name in columns if name.lower() not in declared]
            missing = declared - {name.lower() for name in columns}
            if extra or missing:
                parts = [
                    f"has {one_of(extra)}" if extra else "",
                    f"lacks {one_of(missing)}" if missing else "",
                ]
                what = (
                    f"{flow.name} {' and '.join(part for part in parts if part)}, unlike the schema of "
                    f"{output.name}"
                )
                yield note(flow.place, "schema-mismatch", what, "select these columns, or change schema=")


def _sink_schema(flow: Flow, output: Output, columns: dict[str, str | None], note: Note) -> Iterator[Finding]:
    strange = [name for name in columns if name not in SINK_TYPES]
    if "value" not in columns:
        what = f"{flow.name} gives sink {output.name} no column value"
        fix = 'pack the columns into it: f.to_json(f.struct("*")).alias("value")'
        yield note(flow.place, "schema-mismatch", what, fix)
    elif strange:
        what = f"sink {output.name} takes {', '.join(SINK_TYPES)}, not {one_of(strange)}"
        yield note(
            flow.place,
            "schema-mismatch",
            what,
            f"drop {'it' if len(strange) == 1 else 'them'}, or pack all into value with to_json",
        )
    for name, kind in columns.items():
        if name in SINK_TYPES and kind is not None and kind not in SINK_TYPES[name]:
            wanted = " or ".join(SINK_TYPES[name])
            fix = (
                "use f.to_json(...)"
                if kind in ("struct", "array", "map")
                else f'add .cast("{SINK_TYPES[name][0]}")'
            )
            yield note(
                flow.place,
                "schema-mismatch",
                f"column {name} of {flow.name} is {kind}, sink {output.name} takes {wanted}",
                fix,
            )
    if (
        output.options is not None
        and "topic" not in {option.lower() for option in output.options}
        and "topic" not in columns
    ):
        fix = 'add "topic": "<name>" to its options'
        yield note(
            output.place,
            "schema-mismatch",
            f"sink {output.name} has no topic, neither as option nor as column",
            fix,
        )
