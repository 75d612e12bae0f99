"""Registration of definitions with Spark: each flow gets two observations more, of rows read from
topics and of rows written.

Spark counts the rows of a Python source, but no bytes; observations are counted in the flow itself,
for next to nothing, and arrive with the progress of its query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from pyspark.pipelines.flow import Flow
from pyspark.pipelines.output import Output, Sink, TemporaryView
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.sql import DataFrame
from pyspark.sql.connect.readwriter import DataFrameReader
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming.readwriter import DataStreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as ClassicSession

FORMAT = "fairlead"
READ, WRITTEN = "fairlead.read", "fairlead.written"
ROWS, BYTES = "rows", "bytes"
_CHOOSING_OPTIONS = frozenset({"columns", "view", "valueformat", "keyformat"})
"""With these a read may have no value, or one that has no size."""


class CountingRegistry(SparkConnectGraphElementRegistry):
    """Spark's registry of a pipeline's outputs and flows, which remembers them and adds
    observations that count rows."""

    def __init__(self, spark: SparkSession, graph_id: str) -> None:
        # PySpark names the classic session there, and is given Connect's.
        super().__init__(cast("ClassicSession", spark), graph_id)
        self.targets: dict[str, str] = {}
        """Name of the dataset or sink that each flow fills."""
        self.sinks: dict[str, Sink] = {}
        self.views: list[TemporaryView] = []

    def register_output(self, output: Output) -> None:
        """Register an output as Spark does, and remember sinks and views."""
        if isinstance(output, Sink):
            self.sinks[output.name] = output
        elif isinstance(output, TemporaryView):
            self.views.append(output)
        super().register_output(output)

    def register_flow(self, flow: Flow) -> None:
        """Register a flow as Spark does, with the observations added.

        A view's flow is counted by the flows that read the view.
        """
        self.targets[flow.name] = flow.target
        sink = self.sinks.get(flow.target)
        with _reads_observed():
            if any(view.name == flow.target for view in self.views):
                super().register_flow(flow)
            else:
                has_values = sink is not None and sink.format == FORMAT
                super().register_flow(replace(flow, func=lambda: _observed(flow.func(), WRITTEN, has_values)))


def _observed(frame: DataFrame, metric: str, has_values: bool = True) -> DataFrame:
    """The frame, with rows and bytes of values observed as `metric`.

    The value is the one column that both a topic's read and its write surely have.
    """
    from pyspark.sql import functions as f

    counts = [f.count(f.lit(1)).alias(ROWS)]
    if has_values:
        counts.append(f.sum(f.octet_length("value")).alias(BYTES))
    return frame.observe(metric, *counts)


class _Reader(Protocol):
    """The parts that are used here of both of Spark Connect's readers."""

    _format: str | None
    _options: dict[str, str]


@contextmanager
def _reads_observed() -> Iterator[None]:
    """Have `load` of our format return an observed DataFrame within the block."""
    originals = {kind: kind.load for kind in (DataStreamReader, DataFrameReader)}

    def observing(load: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
        def loaded(self: _Reader, *arguments: object, **options: object) -> DataFrame:
            frame = load(self, *arguments, **options)
            chosen = _CHOOSING_OPTIONS & {name.lower() for name in (*self._options, *options)}
            return _observed(frame, READ) if self._format == FORMAT and not chosen else frame

        return loaded

    for kind, load in originals.items():
        kind.load = observing(load)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        for kind, load in originals.items():
            kind.load = load  # type: ignore[method-assign]
