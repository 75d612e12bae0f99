"""Checking a project without starting Spark: its specification, its files, the flows between its
datasets, and the topics of its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlead_kafka.spark.pipelines.cluster import look_at
from fairlead_kafka.spark.pipelines.definitions import Definitions
from fairlead_kafka.spark.pipelines.findings import ERROR, Finding
from fairlead_kafka.spark.pipelines.graph_rules import graph_findings
from fairlead_kafka.spark.pipelines.project import Project, load_project
from fairlead_kafka.spark.pipelines.source_code import read_definitions
from fairlead_kafka.spark.pipelines.topic_rules import LookAt, cluster_findings, option_findings, uses_of


def check_project(
    spec: Path,
    ask: LookAt | None = look_at,
    overrides: Mapping[str, str] | None = None,
    typed: Mapping[str, str] | None = None,
) -> tuple[Project, Definitions, list[Finding]]:
    """The project, what it defines, and all that is wrong with it, by file and line.

    `ask` looks at the cluster of a list of brokers; None: no cluster is asked; `overrides` go over
    the specification's configuration, and `typed` says how each was given. Raises OSError for a
    file that cannot be read.
    """
    project = load_project(spec)
    project.configuration.update(overrides or {})
    project.typed.update(typed or {})
    findings = list(project.findings)
    definitions = read_definitions(project, findings)
    findings += graph_findings(definitions, lambda place: project.shown(place.file))
    if not definitions.outputs and not findings:
        fix = "a definition is a function with @dp.table, @dp.materialized_view or @dp.append_flow"
        findings.append(
            Finding(
                project.shown(spec),
                project.lines.get("libraries", 1),
                "no-libraries",
                "the files define nothing",
                fix,
            )
        )
    uses = uses_of(definitions)
    findings += option_findings(uses, project)
    if ask is not None:
        findings += cluster_findings(uses, project, ask)
    return project, definitions, sorted(set(findings))


def errors_of(findings: list[Finding]) -> list[Finding]:
    """The findings that keep a pipeline from running."""
    return [one for one in findings if one.severity == ERROR]
