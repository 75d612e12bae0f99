"""The options of the formats, by name alone: listed without loading the code that reads them."""

from __future__ import annotations

from collections.abc import Callable

REGISTRY_PREFIX = "schemaregistry."
_READ = "read"
_BOTH = "both"

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
                _BOTH,
                "raw",
                f"What the {field} is: raw (bytes), string (UTF-8), json, avro or protobuf. In a "
                f"write, what it "
                "becomes.",
                str,
                True,
            ),
            (
                f"{field}Schema",
                _BOTH,
                "",
                "For json: Spark's DDL or df.schema.json(); not in writes. For avro: the reader's "
                "schema; in a "
                "write, the one to write with.",
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
                _BOTH,
                f"TOPIC-{field}",
                "For avro with a Schema Registry: the subject whose latest schema is the reader's, if "
                f"{field}Schema is not set. In a write: the subject of the schema, also for protobuf.",
                str,
                True,
            ),
            (
                f"{field}Descriptor",
                _BOTH,
                "",
                "For protobuf: a file with the FileDescriptorSet that protoc --include_imports "
                "--descriptor_set_out writes.",
                str,
                True,
            ),
            (
                f"{field}Message",
                _BOTH,
                "",
                f"For protobuf: the full name of the message that a {field} is.",
                str,
                True,
            ),
        )
    ),
    (
        "schemaRegistry.url",
        _BOTH,
        "",
        "For avro and protobuf in Confluent's wire format. Other schemaRegistry.* options, such as "
        "schemaRegistry.basic.auth.user.info, are settings of confluent-kafka's "
        "SchemaRegistryClient; in writes "
        "also auto.register.schemas, normalize.schemas, use.latest.version and subject.name.strategy.",
        str,
        True,
    ),
    (
        "deadLetterTopic",
        _BOTH,
        "",
        "Topic for what does not parse, or cannot be written: its bytes as they came, with headers "
        "that say where "
        "it came from and why. Without it reads have it in the column rescued, and writes fail.",
        str,
        True,
    ),
)
"""Rows for `fairlead_kafka.spark.option_table.OPTIONS`. Their values are looked at by `layout`, all
together."""
