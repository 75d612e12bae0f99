"""A streaming query under real Spark, from one topic to another, exactly once, that dies at given
steps: `exactly_once_spark.py JSON`.

`spec`: client, source, topic, checkpoint, batch_rows (None: all rows), deaths. The sink is
Fairlead's with two differences: its processes look after each step whether they are to die there,
and the driver ends transactions one by one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from importlib import import_module
from typing import Protocol

from fairlead_kafka.lab.peers.deaths import Death, Spec, deaths_of

FORMAT = "fairlead-dying"


class _Optioned(Protocol):
    """The part of a data source that is used here: its options."""

    options: Mapping[str, str]


class _WriteOptions(Protocol):
    """The part of a write's parsed options that is used here."""

    client: Mapping[str, str]
    exactly_once: object


def dying_source() -> type:
    """The data source `fairlead-dying`, whose option `deaths` says where it dies."""
    source = import_module("fairlead_kafka.spark.source").FairleadSource
    options = import_module("fairlead_kafka.spark.options")
    schemas = import_module("fairlead_kafka.spark.schema")

    def stream_writer(self: _Optioned, schema: object, overwrite: bool) -> object:
        given = {name: text for name, text in self.options.items() if name.lower() != "deaths"}
        parsed = options.parse_write_options(given, streaming=True)
        schemas.check_write_schema(schema, parsed.topic)
        return dying_writer(parsed, deaths_of(json.loads(self.options["deaths"])))

    return type(
        "DyingSource", (source,), {"name": classmethod(lambda cls: FORMAT), "streamWriter": stream_writer}
    )


def dying_writer(options: _WriteOptions, deaths: Sequence[Death]) -> object:
    """The writer of the data source `fairlead-dying`, which dies where `deaths` say."""
    base = import_module("fairlead_kafka.spark.exactly_once.writers").ExactlyOnceStreamWriter
    driver = import_module("fairlead_kafka.spark.exactly_once.driver")

    def reached(step: Enum | str) -> None:
        for death in deaths:
            death.reached(step if isinstance(step, str) else step.name)

    def committer(self: object, name: str) -> object:
        return driver.Committer(options.client, options.exactly_once, name, reached, at_once=1)

    def commit(self: object, messages: object, batch_id: int) -> None:
        reached("TASKS_ENDED")
        base.commit(self, messages, batch_id)

    methods = {"committer": committer, "commit": commit, "task_reached": lambda self, step: reached(step)}
    return type("DyingStreamWriter", (base,), methods)(options, options.exactly_once)


def run(spec: Spec) -> None:
    """Run the query until everything that was in the source when it began is written."""
    config = {"spark.ui.enabled": "false", "spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "2"}
    # Four attempts for a task; the default of a local master is one.
    session = import_module("fairlead_kafka.spark").spark_session("exactly-once", "local[2,4]", config)
    session.sparkContext.setLogLevel("OFF")
    session.dataSource.register(dying_source())
    reader = (
        session.readStream.format("fairlead")
        .option("subscribe", spec["source"])
        .option("startingOffsets", "earliest")
    )
    if spec["batch_rows"] is not None:
        reader = reader.option("maxOffsetsPerTrigger", spec["batch_rows"])
    for name, text in spec["client"].items():
        reader = reader.option(f"kafka.{name}", text)
    writer = (
        reader.load()
        .select("key", "value")
        .writeStream.format(FORMAT)
        .option("checkpointLocation", spec["checkpoint"])
    )
    for name, text in spec["client"].items():
        writer = writer.option(f"kafka.{name}", text)
    writer = (
        writer.option("topic", spec["topic"])
        .option("deliveryGuarantee", "exactly-once")
        .option("deaths", json.dumps(spec["deaths"]))
    )
    writer.trigger(availableNow=True).start().awaitTermination()
    session.stop()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
