"""The options of the formats, by name alone: listed without loading the code that reads them."""

from __future__ import annotations

from collections.abc import Callable

REGISTRY_PREFIX = "schemaregistry."
_READ = "read"

FORMAT_OPTIONS: tuple[tuple[str, str, str, str, Callable[[str], object], bool], ...] = (
    (
        "columns",
        _READ,
        "all but headers",
        "The columns to read, separated by commas, in this order: value, or value,timestamp. Others are not "
        "even decoded.",
        str,
        True,
    ),
    *(
        row
        for field in ("value", "key")
        for row in (
            (
                f"{field}Format",
                _READ,
                "raw",
                f"What the {field} is: raw (bytes), string (UTF-8), json or avro.",
                str,
                True,
            ),
            (
                f"{field}Schema",
                _READ,
                "",
                "For json: Spark's DDL or df.schema.json(). For avro: the reader's schema.",
                str,
                True,
            ),
            (
                f"{field}WriterSchema",
                _READ,
                f"{field}Schema",
                f"For avro without a Schema Registry: the schema that every {field} was written with.",
                str,
                True,
            ),
            (
                f"{field}Subject",
                _READ,
                f"TOPIC-{field}",
                "For avro with a Schema Registry: the subject whose latest schema is the reader's, if "
                f"{field}Schema is not set.",
                str,
                True,
            ),
        )
    ),
    (
        "schemaRegistry.url",
        _READ,
        "",
        "For avro in Confluent's wire format. Other schemaRegistry.* options, such as "
        "schemaRegistry.basic.auth.user.info, are settings of "
        "confluent-kafka's SchemaRegistryClient.",
        str,
        True,
    ),
)
"""Rows for `fairlead_kafka.spark.option_table.OPTIONS`. Their values are looked at by `layout`, all
together."""
