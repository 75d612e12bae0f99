"""Running a project: one session with one or more runs, each reported and counted while it runs."""

from __future__ import annotations

import builtins
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fairlead_kafka.base.config_security import SECURITY_KEYS
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.json_types import json_object
from fairlead_kafka.spark.pipelines.catalog import derby_log, kept_catalog
from fairlead_kafka.spark.pipelines.counters import (
    Connection,
    FlowCounters,
    Offsets,
    Progress,
    ProgressJson,
    add_lag_and_loss,
    earliest_offsets,
    latest_offsets,
)
from fairlead_kafka.spark.pipelines.definitions import MATERIALIZED_VIEW, TABLE, Definitions
from fairlead_kafka.spark.pipelines.project import Project
from fairlead_kafka.spark.pipelines.session import connect_session
from fairlead_kafka.spark.pipelines.topic_rules import SERVERS, named_topics, uses_of
from fairlead_kafka.spark.versions import Feature, has

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress

JAVA_OPTIONS_KEY = "spark.driver.extraJavaOptions"
LOG4J_OPTION = f'"-Dlog4j2.configurationFile={Path(__file__).with_name("log4j2.properties")}"'
LISTENER_PATIENCE_S = 15.0
"""Seconds to wait after a run: the last progress of a query comes a moment after its end."""
_FLOW_EVENT = re.compile(r"Flow '?(?P<name>[^\s']+)'? (?:is|has) (?P<state>[A-Z]+)", re.DOTALL)
SECURITY_NAMES = frozenset(name for key in SECURITY_KEYS for name in (key.name, *key.aliases))
Status = Callable[[str], None]


@dataclass
class RunResult:
    """One run: its flows, and why it failed, if it did."""

    flows: list[FlowCounters]
    seconds: float
    failure: str | None = None
    events: list[str] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Number of offsets that no flow will ever read."""
        return sum(flow.lost for flow in self.flows)

    def as_json(self) -> dict[str, object]:
        """The report for `--json`."""
        rows = [flow.as_row() for flow in self.flows]
        return {
            "state": "failed" if self.failure else "completed",
            "seconds": round(self.seconds, 3),
            "lost": self.lost,
            "flows": rows,
            "failure": self.failure,
        }


@dataclass(frozen=True)
class Refresh:
    """Datasets to compute from scratch: all, or some. `only`: those that a run is limited to."""

    everything: bool = False
    datasets: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Where:
    """The place where a pipeline runs: a Spark master, or the address of a Spark Connect server,
    and Spark's settings."""

    master: str | None = None
    remote: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings that go over the specification's configuration."""


class Runner:
    """A project in a session of its own; `run` may be called again and again."""

    def __init__(
        self,
        session: SparkSession,
        project: Project,
        definitions: Definitions,
        graph_config: Mapping[str, str],
    ) -> None:
        self._session = session
        self._graph_config = graph_config
        self._project = project
        self._topics = dict(_topics(definitions))
        self.progress = Progress({})

    def run(self, refresh: Refresh, status: Status) -> RunResult:
        """Run the pipeline once, until all records that are there now have been read. Errors of the
        pipeline are in the result, and not raised."""
        started_s = time.monotonic()
        events: list[str] = []
        failure = None
        earliest = _offsets_or_none(earliest_offsets, self._topics)
        try:
            graph_id, targets = self._register()
            self.progress = Progress(targets)
            with self._listening():
                for message in self._events(graph_id, refresh):
                    events.append(message)
                    self._follow(message, status)
                self.progress.await_ended(LISTENER_PATIENCE_S)
        except Exception as error:  # whatever a definition or Spark raises is the pipeline's failure
            failure = _said(error)
        flows = list(self.progress.flows.values())
        add_lag_and_loss(flows, earliest, _offsets_or_none(latest_offsets, self._topics_read(flows)))
        return RunResult(flows, time.monotonic() - started_s, failure, events)

    def _topics_read(self, flows: list[FlowCounters]) -> dict[str, Connection]:
        """The settings to reach the cluster of each topic that was read. Topics that a pattern
        found are taken to be on the cluster of the others."""
        clusters = set(self._topics.values())
        others = (
            {one.topic: next(iter(clusters)) for flow in flows for one in flow.end}
            if len(clusters) == 1
            else {}
        )
        return {**others, **self._topics}

    def _register(self) -> tuple[str, dict[str, str]]:
        from pyspark.pipelines.cli import load_pipeline_spec, register_definitions
        from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph

        from fairlead_kafka.spark.pipelines.registry import CountingRegistry

        spec = load_pipeline_spec(self._project.file)
        graph_id = create_dataflow_graph(self._session, spec.catalog, spec.database, self._graph_config)  # type: ignore[arg-type]
        registry = CountingRegistry(self._session, graph_id)
        if not has(Feature.NAMED_SESSION):
            builtins.__dict__["spark"] = self._session  # for the files and, later, for their functions
        with redirect_stdout(StringIO()):  # it tells each file on standard output, which is for reports
            register_definitions(self._project.file, registry, spec, self._session, graph_id)  # type: ignore[arg-type]
        views = {one.name for one in registry.views}
        return graph_id, {flow: target for flow, target in registry.targets.items() if target not in views}

    def _events(self, graph_id: str, refresh: Refresh) -> Iterator[str]:
        from pyspark.pipelines.spark_connect_pipeline import start_run

        answers = start_run(
            self._session,  # type: ignore[arg-type]
            graph_id,
            full_refresh=list(refresh.datasets),
            full_refresh_all=refresh.everything,
            refresh=list(refresh.only),
            dry=False,
            storage=self._project.storage,
        )
        for answer in answers:
            if "pipeline_event_result" in answer:
                yield answer["pipeline_event_result"].event.message.strip()

    def _follow(self, message: str, status: Status) -> None:
        found = _FLOW_EVENT.match(message)
        counters = self.progress.named(found["name"]) if found else None
        if found and counters is not None:
            counters.state = found["state"].lower()
            done = sum(flow.state == "completed" for flow in self.progress.flows.values())
            status(
                f"{counters.flow} → {counters.target}: {counters.state} ({done} of "
                f"{len(self.progress.flows)} flows done)"
            )

    @contextmanager
    def _listening(self) -> Iterator[None]:
        from pyspark.sql.streaming.listener import (
            QueryIdleEvent,
            QueryProgressEvent,
            QueryStartedEvent,
            QueryTerminatedEvent,
            StreamingQueryListener,
        )

        progress = self.progress

        class Listener(StreamingQueryListener):
            def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
                progress.started(str(event.runId), event.name)

            def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
                progress.add(_as_json(event.progress))

            def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
                pass

            def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
                progress.ended(str(event.runId))

        listener = Listener()
        self._session.streams.addListener(listener)
        try:
            yield
        finally:
            with suppress(Exception):  # after Ctrl-C nobody may be there any more
                self._session.streams.removeListener(listener)


@contextmanager
def open_runner(project: Project, definitions: Definitions, where: Where) -> Iterator[Runner]:
    """A runner with its session. Raises ConfigError or ConnectionFailed if there can be none."""
    stores_tables = any(output.kind in (TABLE, MATERIALIZED_VIEW) for output in definitions.outputs)
    given = {**project.configuration, **where.config}
    kept = (
        {}
        if where.remote
        else kept_catalog(project.storage_folder, stores_tables and project.catalog is None, given)
    )
    if kept and project.storage_folder is not None:
        project.storage_folder.mkdir(parents=True, exist_ok=True)
    project.configuration.update(where.config)
    java_options = f"{LOG4J_OPTION} {derby_log(project.storage_folder)}".strip()
    local = {"spark.ui.enabled": "false", JAVA_OPTIONS_KEY: java_options, **kept, **given}
    with connect_session(project.name, where.master, where.remote, local) as session:
        # A server of ours has the configuration already; Spark sets a graph's on each flow, and
        # refuses what is no setting of SQL.
        yield Runner(session, project, definitions, project.configuration if where.remote else {})


def _offsets_or_none(
    ask: Callable[[Mapping[str, Connection]], Offsets], topics: Mapping[str, Connection]
) -> Offsets:
    """The offsets of topics, or none if brokers do not answer: the report is made without them."""
    try:
        return ask(topics)
    except FairleadError:
        return {}


def _topics(definitions: Definitions) -> Iterator[tuple[str, Connection]]:
    """The topics that flows read, with their clusters."""
    for use in uses_of(definitions):
        if use.kind != "write" and use.options.get(SERVERS):
            for topic, _, _ in named_topics(use):
                yield topic, _connection(use.options)
            if use.setting("subscribePattern"):
                yield "", _connection(use.options)  # no topic has this name; its brokers count all the same


def _connection(options: Mapping[str, str]) -> Connection:
    """The options of a flow that a client needs to reach its cluster and to log in there."""
    kept = {key.removeprefix("kafka."): value for key, value in options.items() if key.startswith("kafka.")}
    return tuple(
        sorted(
            (key, value) for key, value in kept.items() if key == "bootstrap.servers" or key in SECURITY_NAMES
        )
    )


def _as_json(progress: StreamingQueryProgress) -> ProgressJson:
    """Spark's progress of a query as JSON."""
    # Not by its attributes: over Connect PySpark 4.0 and 4.1 have offsets there as Python writes a
    # dictionary.
    return cast("ProgressJson", json_object(progress.json))


def _said(error: Exception) -> str:
    """An error's message without the JVM's stack; its type if it has no message."""
    text = str(error).split("JVM stacktrace:")[0].strip()
    return text or type(error).__name__
