"""Definitions of a project, as found in its text: datasets, sinks, flows, and their sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fairlead_kafka.spark.pipelines.constants import Settings
from fairlead_kafka.spark.pipelines.findings import Place

TABLE, MATERIALIZED_VIEW, TEMPORARY_VIEW, SINK = "table", "materialized view", "temporary view", "sink"
STREAMING_KINDS = (TABLE, SINK)
"""Kinds of targets that a flow can only append to."""
FORMAT = "fairlead"


@dataclass(frozen=True)
class Frame:
    """A DataFrame, as far as its text tells; an attribute that is None is unknown."""

    columns: dict[str, str | None] | None = None
    """Type by name, the type None where it is not known."""
    streaming: bool | None = None
    watermark: bool | None = None
    from_dataset: str | None = None
    """The dataset of the pipeline that it was read from."""


@dataclass(frozen=True)
class Read:
    """A flow reads a dataset by name."""

    name: str
    streaming: bool
    place: Place


@dataclass(frozen=True)
class Source:
    """A flow reads topics. `options` None: not known."""

    options: Settings | None
    streaming: bool
    place: Place


@dataclass
class Flow:
    """How one dataset or sink is filled."""

    name: str | None
    target: str | None
    kind: str
    """Kind of the dataset that was defined along with it; `append` for a flow of its own."""
    place: Place
    reads: list[Read] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    frame: Frame = field(default_factory=Frame)


@dataclass(frozen=True)
class Output:
    """A dataset or a sink."""

    name: str | None
    kind: str
    place: Place
    schema: dict[str, str] | None = None
    format: str | None = None
    options: Settings | None = None


@dataclass
class Definitions:
    """All datasets, sinks and flows of a project. A name that is None is known only when the
    program runs."""

    outputs: list[Output] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)

    def output(self, name: str) -> Output | None:
        """The dataset or sink of this name, with or without its database."""
        return next((one for one in self.outputs if one.name is not None and same_name(one.name, name)), None)

    @property
    def output_names(self) -> list[str]:
        """All names of outputs that are known."""
        return [one.name for one in self.outputs if one.name is not None]

    @property
    def complete(self) -> bool:
        """Whether all names are known, so that one which is not among them does not exist."""
        return all(one.name is not None for one in self.outputs)

    def sinks(self) -> Iterable[Output]:
        """The sinks that write topics."""
        return (one for one in self.outputs if one.kind == SINK and one.format == FORMAT)


def same_name(left: str, right: str) -> bool:
    """True if two names mean the same dataset: Spark ignores the case of names, which may begin
    with catalog and database or not."""
    one, other = (name.lower().replace("`", "").split(".") for name in (left, right))
    shared = min(len(one), len(other))
    return one[-shared:] == other[-shared:]
