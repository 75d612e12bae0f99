"""Options that `fairlead produce` and `fairlead consume` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.record_values import Format, Schemas
from fairlead_kafka.cli.terminal import settings
from fairlead_kafka.formats.context import MessageField

Topic = Annotated[str, typer.Argument(help="The topic.")]
KeySeparator = Annotated[
    str | None,
    typer.Option("--key-separator", "-k", help="What stands between key and value; \\t for a tab."),
]
KeyFormat = Annotated[Format, typer.Option("--key-format", help="Format of keys.")]
ValueFormat = Annotated[Format, typer.Option("--value-format", help="Format of values.")]
Registry = Annotated[
    str | None,
    typer.Option("--schema-registry", metavar="URL", help="The Schema Registry of Avro's schemas."),
]
RegistryProperties = Annotated[
    list[str] | None,
    typer.Option(
        "--registry-property",
        metavar="KEY=VALUE",
        help="A setting of the registry's client, such as basic.auth.user.info; may be repeated.",
    ),
]
KeySchema = Annotated[
    Path | None, typer.Option("--key-schema", metavar="FILE", help="Avro schema of keys, in JSON.")
]
ValueSchema = Annotated[
    Path | None, typer.Option("--value-schema", metavar="FILE", help="Avro schema of values, in JSON.")
]


def separator_of(text: str | None) -> bytes | None:
    """The separator's bytes; None: there is none. ConfigError for an empty one."""
    if text == "":
        raise ConfigError("--key-separator: must not be empty")
    return text.replace("\\t", "\t").encode() if text else None


def schemas_of(
    registry: str | None, properties: list[str] | None, key_schema: Path | None, value_schema: Path | None
) -> Schemas:
    """The places of Avro's schemas. ConfigError for settings of a registry that is not named."""
    given = settings(properties, "--registry-property")
    if given and registry is None:
        raise ConfigError("--registry-property: name the registry with --schema-registry URL")
    files = {MessageField.KEY: key_schema, MessageField.VALUE: value_schema}
    return Schemas(
        {} if registry is None else {"url": registry, **given},
        {field: path for field, path in files.items() if path is not None},
    )
