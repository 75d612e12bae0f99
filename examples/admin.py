"""Create and change a topic, and see how far a group is behind."""

import sys

from fairlead_kafka import (
    Admin,
    ConfigChange,
    ConfigResource,
    Consumer,
    NewPartitions,
    NewTopic,
    Producer,
    TopicPartition,
)

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
settings = {"bootstrap.servers": servers}

with Admin(settings) as admin:
    if "readings" not in admin.list_topics():
        day = {"retention.ms": 24 * 3600 * 1000}
        admin.create_topics([NewTopic("readings", partitions=2, configs=day)])
        admin.create_partitions({"readings": NewPartitions(4)})
    week = ConfigChange.set("retention.ms", 7 * 24 * 3600 * 1000)
    admin.alter_configs({ConfigResource.topic("readings"): [week]})
    print("partitions:", len(admin.describe_topics(["readings"])["readings"].partitions))

    with Producer(settings) as producer:
        for number in range(100):
            producer.send("readings", b"%d" % number, partition=number % 4)
    partitions = [TopicPartition("readings", number) for number in range(4)]
    with Consumer({**settings, "group.id": "dashboard"}) as consumer:
        consumer.assign(partitions)
        consumer.commit(dict.fromkeys(partitions, 5))
        ends = consumer.end_offsets(partitions)
        committed = consumer.committed(partitions)

    lag = sum(ends[each] - committed[each].offset for each in partitions)
    print("records behind:", lag)
    print("groups:", sorted(group for group in admin.list_groups() if group == "dashboard"))
