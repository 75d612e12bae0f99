"""Mistakes in the options of sources and sinks, and in the topics they name: the second part asks
the cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError, ConnectionFailed
from fairlead_kafka.base.json_types import read_json
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.spark.exactly_once.settings import parse_guarantee
from fairlead_kafka.spark.option_checks import check_options, check_read
from fairlead_kafka.spark.pipelines.cluster import ClusterView
from fairlead_kafka.spark.pipelines.constants import UNKNOWN, Setting, Settings
from fairlead_kafka.spark.pipelines.definitions import Definitions
from fairlead_kafka.spark.pipelines.findings import WARNING, Finding, Place, one_of
from fairlead_kafka.spark.pipelines.project import Project

SERVERS = "kafka.bootstrap.servers"
_TEXTS = {True: "true", False: "false"}


@dataclass(frozen=True)
class Use:
    """A source or sink whose options are known."""

    settings: Settings
    kind: str
    """batch, stream or write."""
    place: Place

    @property
    def options(self) -> dict[str, str]:
        """The options whose values are known, as Spark passes them."""
        known = {name: one.value for name, one in self.settings.items() if one.value is not UNKNOWN}
        return {
            name: _TEXTS.get(value, str(value)) if isinstance(value, bool) else str(value)
            for name, value in known.items()
        }

    def line_of(self, option: str) -> int:
        """Line of an option, in any case of letters; else that of the source or sink."""
        return next(
            (one.line for name, one in self.settings.items() if name.lower() == option.lower()),
            self.place.line,
        )

    def setting(self, option: str) -> Setting | None:
        """The value of an option, by its name in any case of letters; None if it is not set."""
        return next((one for name, one in self.settings.items() if name.lower() == option.lower()), None)


def uses_of(definitions: Definitions) -> list[Use]:
    """All sources and sinks whose options are known, each once."""
    found: dict[tuple[Place, str], Use] = {}
    for flow in definitions.flows:
        for source in flow.sources:
            if source.options is not None:
                use = Use(source.options, "stream" if source.streaming else "batch", source.place)
                found.setdefault((use.place, use.kind), use)
    for sink in definitions.sinks():
        if sink.options is not None:
            found[sink.place, "write"] = Use(sink.options, "write", sink.place)
    return list(found.values())


def option_findings(uses: Iterable[Use], project: Project) -> Iterator[Finding]:
    """Findings about options that Fairlead would refuse, and about one that most newcomers
    forget."""
    for use in uses:
        shown = project.shown(use.place.file)
        unknown = {name.lower() for name, one in use.settings.items() if one.value is UNKNOWN}
        for problem in _problems(use):
            name, _, rest = problem.partition(": ")
            if name.lower() in unknown or (
                problem.startswith("exactly one of") and unknown & {"subscribe", "assign", "subscribepattern"}
            ):
                continue
            if name.startswith("exactly"):
                name, rest = "", problem
            what, _, fix = rest.partition("; ")
            yield Finding(
                shown,
                use.line_of(name),
                "wrong-option",
                f"{name}: {what}" if name else what,
                fix or _FIXES.get(name, "see docs/how-to/spark.md"),
            )
        yield from _client_options(use, shown)
        if use.kind == "stream" and not any(name.lower().startswith("starting") for name in use.settings):
            what = "a stream starts at latest, so that the first run reads nothing"
            fix = 'add .option("startingOffsets", "earliest") if it is to begin with what is there'
            yield Finding(shown, use.place.line, "starts-at-latest", what, fix, WARNING)


_FIXES = {SERVERS: f'add .option("{SERVERS}", "host:port")'}


def _problems(use: Use) -> list[str]:
    if use.kind != "write":
        return check_read(use.options, streaming=use.kind == "stream")[2]
    values, client, wrong = check_options(use.options, "write")
    return wrong + parse_guarantee(values, client, wrong, streaming=True)[1]


def _client_options(use: Use, shown: str) -> Iterator[Finding]:
    """Findings about `kafka.*` options that no client has and whose values are not known. (Those
    with known values are checked together with these.)"""
    known = {key.name for key in CLIENT_CONFIGS.scope("producer" if use.kind == "write" else "consumer")}
    every = {key.name for key in CLIENT_CONFIGS.scope("producer")} | {
        key.name for key in CLIENT_CONFIGS.scope("consumer")
    }
    for name, one in use.settings.items():
        if one.value is not UNKNOWN or not name.lower().startswith("kafka.") or name[6:].lower() in every:
            continue
        near = nearest(name[6:], known)
        fix = f"did you mean kafka.{near}?" if near else "docs/reference/configuration.md lists them"
        yield Finding(shown, one.line, "wrong-option", f"{name}: no client has such a setting", fix)


LookAt = Callable[[str], ClusterView]


def cluster_findings(uses: Iterable[Use], project: Project, look_at: LookAt) -> Iterator[Finding]:
    """Findings about brokers that do not answer, and topics that do not exist. `look_at` is
    `cluster.look_at`; each cluster is asked once.

    A cluster that needs TLS or a log-in is not asked: that takes a whole client, and longer than a
    check should.
    """
    views: dict[str, ClusterView | Exception] = {}
    reported: set[tuple[str, int]] = set()
    for use in uses:
        servers = use.setting(SERVERS)
        if servers is None or not isinstance(servers.value, str) or _secured(use):
            continue
        file, line = _where(use, servers, project)
        if servers.value not in views:
            try:
                views[servers.value] = look_at(servers.value)
            except (ConnectionFailed, ConfigError) as error:
                views[servers.value] = error
        view = views[servers.value]
        if isinstance(view, ClusterView):
            yield from _topics(use, view, servers.value, project)
        elif (file, line) not in reported:
            reported.add((file, line))
            fix = (
                f"`fairlead up` starts a cluster; or {'write' if line else 'give'} the address of yours here"
            )
            yield Finding(file, line, "unreachable-broker", f"no broker answers: {view}", fix)


def _secured(use: Use) -> bool:
    protocol = use.setting("kafka.security.protocol")
    return protocol is not None and str(protocol.value).strip().upper() != "PLAINTEXT"


def _where(use: Use, setting: Setting, project: Project) -> tuple[str, int]:
    """File and line of an option's value: those of the specification if it came from there; if the
    command line replaced it, what was typed and line 0."""
    if setting.configured_by in project.typed:
        return project.typed[setting.configured_by], 0
    if setting.configured_by is not None:
        return project.shown(project.file), project.lines.get(f"configuration.{setting.configured_by}", 1)
    return project.shown(use.place.file), setting.line


def _topics(use: Use, view: ClusterView, servers: str, project: Project) -> Iterator[Finding]:
    shown = project.shown(use.place.file)
    for topic, partitions, option in named_topics(use):
        line = use.line_of(option)
        if topic in view.partitions:
            beyond = [number for number in partitions if number >= view.partitions[topic]]
            if beyond:
                what = f"topic {topic} has {view.partitions[topic]} partitions, no {one_of(map(str, beyond))}"
                yield Finding(shown, line, "wrong-topic", what, f"name 0 to {view.partitions[topic] - 1}")
            continue
        near = nearest(topic, view.partitions)
        create = f"create it with `fairlead topics create {topic} -b {servers}`"
        fix = f"did you mean {near}? else {create}" if near else create
        if use.kind == "write":
            what = (
                f"topic {topic} is not there yet; brokers that create topics will give it their default "
                "of partitions"
            )
            yield Finding(shown, line, "wrong-topic", what, fix, WARNING)
        else:
            yield Finding(shown, line, "wrong-topic", f"there is no topic {topic}", fix)
    pattern = _lower(use).get("subscribepattern")
    if pattern is not None and use.kind != "write" and not _matches(pattern, view.partitions):
        what = f"no topic matches {pattern}"
        fix = f"the topics are {one_of(view.partitions)}"
        yield Finding(
            shown,
            use.line_of("subscribePattern"),
            "wrong-topic",
            what,
            fix,
            WARNING if use.kind == "stream" else "error",
        )


def _lower(use: Use) -> dict[str, str]:
    return {name.lower(): text for name, text in use.options.items()}


def named_topics(use: Use) -> Iterator[tuple[str, list[int], str]]:
    """The topics that a source or sink names: (topic, the partitions named, the option that names
    them)."""
    options = _lower(use)
    if use.kind == "write":
        if "topic" in options:
            yield options["topic"], [], "topic"
        return
    for topic in options.get("subscribe", "").split(","):
        if topic.strip():
            yield topic.strip(), [], "subscribe"
    try:
        assigned = read_json(options.get("assign", "{}"))
    except ValueError:
        return  # said with the options
    for topic, partitions in assigned.items() if isinstance(assigned, dict) else ():
        yield (
            topic,
            [number for number in partitions if isinstance(number, int)]
            if isinstance(partitions, list)
            else [],
            "assign",
        )


def _matches(pattern: str, topics: Iterable[str]) -> bool:
    try:
        return any(re.fullmatch(pattern, topic) for topic in topics)
    except re.error:
        return True  # said with the options
