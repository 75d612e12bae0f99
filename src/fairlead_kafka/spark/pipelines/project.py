"""The project's specification, `spark-pipeline.yml`: read with the lines of its keys, so that a
mistake has a place.

The keys are those of Spark Declarative Pipelines (`pyspark.pipelines.cli.PipelineSpec`). All
mistakes are found at once, not only the first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

import yaml

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.spark.pipelines.findings import Finding, one_of

SPEC_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
KEYS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")
SERVERS_KEY = "spark.fairlead.bootstrap.servers"
"""Key under which a project of `fairlead pipeline init` keeps its brokers: one place to change when
it moves to another cluster."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass
class Project:
    """A pipeline's specification, as far as it is valid; `findings` says what is not."""

    file: Path
    name: str = ""
    storage: str = ""
    catalog: str | None = None
    database: str | None = None
    configuration: dict[str, str] = field(default_factory=dict)
    sources: list[Path] = field(default_factory=list)
    """The files with definitions, in the order of the specification."""
    lines: dict[str, int] = field(default_factory=dict)
    """Line of each key; `configuration.KEY` for what is inside."""
    typed: dict[str, str] = field(default_factory=dict)
    """Keys of the configuration that were given with the command, each with what was typed."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.file.parent

    @property
    def storage_folder(self) -> Path | None:
        """The storage as a folder of this machine; None if the storage is elsewhere."""
        return local_folder(self.storage)

    def shown(self, file: Path) -> str:
        """A file's name as the project's user writes it."""
        return str(file.relative_to(self.root)) if file.is_relative_to(self.root) else str(file)

    def wrong(self, line: int, rule: str, what: str, fix: str) -> None:
        """Note a mistake in the specification itself."""
        self.findings.append(Finding(self.shown(self.file), line, rule, what, fix))


def local_folder(storage: str) -> Path | None:
    """The folder that a storage of scheme `file:` or none means."""
    if not _SCHEME.match(storage):
        return Path(storage)
    parsed = urlparse(storage)
    return Path(unquote(parsed.path)) if parsed.scheme == "file" else None


def find_spec(start: Path) -> Path:
    """The specification in a folder or one above it, or the file itself. Raises ConfigError if
    there is none, or more than one."""
    if start.is_file():
        return start.absolute()
    if not start.is_dir():
        raise ConfigError(
            f"{start}: there is no such file or folder; name a project's folder or its spark-pipeline.yml"
        )
    for folder in (start.absolute(), *start.absolute().parents):
        found = [folder / name for name in SPEC_NAMES if (folder / name).is_file()]
        if len(found) > 1:
            raise ConfigError(f"{folder}: has both {' and '.join(SPEC_NAMES)}; keep one")
        if found:
            return found[0]
    raise ConfigError(
        f"{start.absolute()}: no spark-pipeline.yml here or above; `fairlead pipeline init NAME` writes a "
        "project"
    )


def load_project(file: Path) -> Project:
    """Read a specification; what is wrong with it is in `findings`. Raises OSError if it cannot be
    read."""
    project = Project(file)
    text = file.read_text(encoding="utf-8")
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        given: object = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        project.wrong(
            line,
            "bad-yaml",
            f"not YAML: {error.problem or error}",
            "look at indentation, colons and quotes of this line and the one above",
        )
        return project
    if not isinstance(tree, yaml.MappingNode) or not isinstance(given, dict):
        project.wrong(1, "bad-yaml", "a specification has keys and values", "start with name: and storage:")
        return project
    project.lines = _lines(tree)
    _take_texts(project, given)
    _take_configuration(project, given)
    _take_libraries(project, given)
    return project


def _lines(tree: yaml.MappingNode) -> dict[str, int]:
    lines: dict[str, int] = {}
    for key, value in tree.value:
        lines[str(key.value)] = key.start_mark.line + 1
        if isinstance(value, yaml.MappingNode):
            lines |= {f"{key.value}.{inner.value}": inner.start_mark.line + 1 for inner, _ in value.value}
    return lines


def _take_texts(project: Project, given: Mapping[str, object]) -> None:
    for key in given:
        if key not in KEYS:
            near = nearest(str(key), KEYS)
            fix = f"did you mean {near}?" if near else f"the keys are {', '.join(KEYS)}"
            project.wrong(project.lines[str(key)], "unknown-key", f"{key}: no key of a specification", fix)
    project.name = str(given.get("name") or "")
    project.storage = str(given.get("storage") or "")
    catalog, database = given.get("catalog"), given.get("database", given.get("schema"))
    project.catalog = None if catalog is None else str(catalog)
    project.database = None if database is None else str(database)
    if not project.name:
        project.wrong(
            project.lines.get("name", 1), "missing-name", "the pipeline has no name", "add name: and a word"
        )
    line = project.lines.get("storage", 1)
    if not project.storage:
        fix = f"add storage: file://{project.root / 'storage'}"
        project.wrong(
            line, "missing-checkpoint", "no storage: streams have nowhere to keep their checkpoints", fix
        )
    elif not _SCHEME.match(project.storage):
        place = Path(project.storage) if project.storage.startswith("/") else project.root / project.storage
        project.wrong(
            line,
            "missing-checkpoint",
            f"storage {project.storage} is no URI",
            f"write file://{place}, or a folder that the cluster shares",
        )


def _take_configuration(project: Project, given: Mapping[str, object]) -> None:
    configuration = given.get("configuration") or {}
    if not isinstance(configuration, dict):
        project.wrong(
            project.lines["configuration"],
            "bad-configuration",
            "configuration has keys and values",
            "write KEY: VALUE, one a line",
        )
        return
    for key, value in configuration.items():
        if isinstance(value, str):
            project.configuration[str(key)] = value
        else:
            line = project.lines.get(f"configuration.{key}", project.lines["configuration"])
            written = str(value).lower() if isinstance(value, bool) else value
            project.wrong(
                line,
                "bad-configuration",
                f"{key}: Spark takes texts, not {type(value).__name__}",
                f'write "{written}" in quotes',
            )


def _take_libraries(project: Project, given: Mapping[str, object]) -> None:
    line = project.lines.get("libraries", 1)
    example = "write libraries: with an entry - glob: and, indented below it, include: transformations/**"
    libraries = given.get("libraries") or []
    if not isinstance(libraries, list) or not libraries:
        project.wrong(line, "no-libraries", "no libraries: the pipeline has no definitions", example)
        return
    for entry in libraries:
        pattern = (
            (entry.get("glob") or {}).get("include")
            if isinstance(entry, dict) and isinstance(entry.get("glob"), dict)
            else None
        )
        if not isinstance(pattern, str):
            project.wrong(line, "no-libraries", f"{entry!r}: no glob of definitions", example)
            continue
        if re.search(r"[*?\[]", pattern.removesuffix("/**")):
            project.wrong(
                line,
                "no-libraries",
                f"{pattern}: Spark takes a file or a folder with /** at its end",
                "name one of these",
            )
            continue
        found = [
            file
            for file in sorted(project.root.glob(pattern + "/*" if pattern.endswith("/**") else pattern))
            if _counts(file)
        ]
        if not found:
            project.wrong(
                line,
                "no-libraries",
                f"{pattern}: no file is there",
                f"put definitions there; the project has {one_of(_folders(project.root))}",
            )
        project.sources += found


def _counts(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts


def _folders(root: Path) -> list[str]:
    return [entry.name for entry in root.iterdir() if not entry.name.startswith(".")]
