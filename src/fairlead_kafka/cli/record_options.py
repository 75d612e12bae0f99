"""Options that `fairlead produce` and `fairlead consume` share."""

from __future__ import annotations

from dataclasses import dataclass
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


def separator_of(text: str | None) -> bytes | None:
    """The separator's bytes; None: there is none. ConfigError for an empty one."""
    if text == "":
        raise ConfigError("--key-separator: must not be empty")
    return text.replace("\\t", "\t").encode() if text else None


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """The options that say what keys and values are, and where Avro's schemas are."""

    key_format: Annotated[Format, typer.Option("--key-format", help="Format of keys.")] = Format.BYTES
    value_format: Annotated[Format, typer.Option("--value-format", help="Format of values.")] = Format.BYTES
    schema_registry: Annotated[
        str | None,
        typer.Option("--schema-registry", metavar="URL", help="The Schema Registry of Avro's schemas."),
    ] = None
    registry_property: Annotated[
        list[str] | None,
        typer.Option(
            "--registry-property",
            metavar="KEY=VALUE",
            help="A setting of the registry's client, such as basic.auth.user.info; may be repeated.",
        ),
    ] = None
    key_schema: Annotated[
        Path | None, typer.Option("--key-schema", metavar="FILE", help="Avro schema of keys, in JSON.")
    ] = None
    value_schema: Annotated[
        Path | None, typer.Option("--value-schema", metavar="FILE", help="Avro schema of values, in JSON.")
    ] = None

    def schemas(self) -> Schemas:
        """The source of Avro's schemas: a Schema Registry or files. ConfigError for settings of a
        registry that is not named."""
        given = settings(self.registry_property, "--registry-property")
        if given and self.schema_registry is None:
            raise ConfigError("--registry-property: name the registry with --schema-registry URL")
        files = {MessageField.KEY: self.key_schema, MessageField.VALUE: self.value_schema}
        return Schemas(
            {} if self.schema_registry is None else {"url": self.schema_registry, **given},
            {field: path for field, path in files.items() if path is not None},
        )
