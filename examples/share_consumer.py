"""A worker of a share group: each job is done, tried again, or given up, by itself."""

import sys

from fairlead_kafka import (
    AcknowledgeType,
    Admin,
    ConfigChange,
    ConfigResource,
    NewTopic,
    Producer,
    ShareConsumer,
)

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
settings = {"bootstrap.servers": servers}

with Admin(settings) as admin:
    if "jobs" not in admin.list_topics():
        admin.create_topics([NewTopic("jobs", partitions=1)])
    earliest = ConfigChange.set("share.auto.offset.reset", "earliest")
    admin.alter_configs({ConfigResource.group("workers"): [earliest]})

with Producer(settings) as producer:
    for job in (b"add", b"busy", b"nonsense"):
        producer.send("jobs", job)

worker = {**settings, "group.id": "workers", "share.acknowledgement.mode": "explicit"}
with ShareConsumer(worker) as consumer:
    consumer.subscribe(["jobs"])
    over = 0
    while over < 3:
        for record in consumer.poll(timeout_s=1):
            if record.value == b"busy" and record.delivery_count == 1:
                consumer.acknowledge(record, AcknowledgeType.RELEASE)
                print("later:", record.value)
            elif record.value == b"nonsense":
                consumer.acknowledge(record, AcknowledgeType.REJECT)
                over += 1
                print("given up:", record.value)
            else:
                consumer.acknowledge(record, AcknowledgeType.ACCEPT)
                over += 1
                print("done:", record.value, "try", record.delivery_count)
