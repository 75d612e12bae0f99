"""Records with the same key go to the same partition, in order."""

import sys
from collections import defaultdict

from fairlead_kafka import Admin, NewTopic, Producer

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
settings = {"bootstrap.servers": servers}

with Admin(settings) as admin:
    if "orders" not in admin.list_topics():
        admin.create_topics([NewTopic("orders", partitions=6)])

partitions = defaultdict(set)
with Producer(settings) as producer:
    for number in range(60):
        customer = f"customer {number % 5}"

        def delivered(metadata, error, customer=customer):
            if error is None:
                partitions[customer].add(metadata.partition)

        producer.send(
            "orders",
            f"order {number}".encode(),
            key=customer.encode(),
            headers={"source": b"shop"},
            on_delivery=delivered,
        )

for customer, found in sorted(partitions.items()):
    print(f"{customer}: partition {sorted(found)}")
