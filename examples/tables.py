"""Send an Arrow table, a record for each row, and poll tables back."""

import sys

import pyarrow as pa

from fairlead_kafka import Consumer, Producer, TopicPartition

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
settings = {"bootstrap.servers": servers}
ROWS = 10_000

table = pa.table(
    {
        "key": [f"sensor {number % 7}" for number in range(ROWS)],
        "value": [f"{number / 10}" for number in range(ROWS)],
    }
)
with Producer(settings) as producer:
    written = producer.send_table("measurements", table).result(timeout_s=30)
    print("written:", written.num_rows, written.column_names)

with Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
    partitions = consumer.partitions_for("measurements")
    consumer.assign([TopicPartition("measurements", each.partition) for each in partitions])
    parts = []
    while sum(part.num_rows for part in parts) < ROWS:
        parts.append(consumer.poll_table(timeout_s=5, columns=["partition", "key", "value"]))
    counts = pa.concat_tables(parts).group_by("key").aggregate([("value", "count")])
    for row in counts.sort_by("key").to_pylist():
        print(row["key"].decode(), row["value_count"])
