"""Avro with a Schema Registry: by record, and by column.

python registry.py SERVERS REGISTRY_URL
"""

import sys

import pyarrow as pa

from fairlead_kafka import Consumer, Producer, TopicPartition
from fairlead_kafka.formats import AvroDeserializer, AvroSerializer

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
registry = {"url": sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8081"}

VISIT = {
    "type": "record",
    "name": "Visit",
    "fields": [{"name": "host", "type": "string"}, {"name": "bytes", "type": ["null", "long"]}],
}

writing = {"bootstrap.servers": servers, "value.serializer": AvroSerializer(registry, VISIT)}
with Producer(writing) as producer:
    producer.send("visits", {"host": "a.example.com", "bytes": 512}, partition=0).result(timeout_s=10)
    rows = pa.table({"host": ["b.example.com", "c.example.com"], "bytes": [None, 7], "partition": [0, 0]})
    producer.send_table("visits", rows).result(timeout_s=10)

reading = {
    "bootstrap.servers": servers,
    "auto.offset.reset": "earliest",
    "value.deserializer": AvroDeserializer(registry, VISIT),
}
with Consumer(reading) as consumer:
    consumer.assign([TopicPartition("visits", 0)])
    seen = 0
    while seen < 3:
        table = consumer.poll_table(timeout_s=5)
        seen += table.num_rows
        for value in table["value"].to_pylist():
            print(value)
