"""Formats of keys and values, and the columns of a read.

Theory of operation. There are two halves, as everywhere in `spark`: planning and work.

**Planning** (`layout`). The options become a `Layout`: the columns asked for, and a `FieldFormat`
each for keys and values. All errors of options are found then: a schema that cannot be read (`ddl`
for json, `avro_types` for avro), a type that the format cannot give, an option that has no meaning.
Schemas are read once from a Schema Registry (`Layout.resolved`, `registry`) and sent to the
executors with the layout, so that all tasks of a read have one reader's schema.

**Work** (`decoding`). Only `Layout.record_columns` are asked of the consumer, which decodes no
others. A decoder turns a column of bytes into a column of the format's type: those of the room
`formats`, by machine code for whole blocks, and by libraries for what it leaves. Each decoder
returns the rows that do not parse with a reason. **Garbage never fails a task**: a value that does
not parse is null, and its bytes and the reason are in the column `rescued`. A row parses whole or
not at all: no field is made null because it does not fit.

A value's result depends neither on the way it was read nor on its neighbours (property tests
compare the ways).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.lazy import lazily
from fairlead_kafka.spark.formats.option_rows import FORMAT_OPTIONS, REGISTRY_PREFIX

if TYPE_CHECKING:
    from fairlead_kafka.spark.formats.decoding import decoder
    from fairlead_kafka.spark.formats.layout import (
        DEFAULT_LAYOUT,
        RESCUED_TYPE,
        FieldFormat,
        Layout,
        parse_layout,
        read_layout,
    )
    from fairlead_kafka.spark.formats.writing import WriteFormats, parse_write_formats

__all__ = [
    "DEFAULT_LAYOUT",
    "FORMAT_OPTIONS",
    "REGISTRY_PREFIX",
    "RESCUED_TYPE",
    "FieldFormat",
    "Layout",
    "WriteFormats",
    "decoder",
    "parse_layout",
    "parse_write_formats",
    "read_layout",
]

# `fairlead pipeline check` knows all options within a second, and has no time to load Arrow and
# Spark for it.
_HOMES = {
    "fairlead_kafka.spark.formats.decoding": ("decoder",),
    "fairlead_kafka.spark.formats.layout": (
        "DEFAULT_LAYOUT",
        "RESCUED_TYPE",
        "FieldFormat",
        "Layout",
        "parse_layout",
        "read_layout",
    ),
    "fairlead_kafka.spark.formats.writing": ("WriteFormats", "parse_write_formats"),
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
