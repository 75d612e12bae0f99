"""A member of a consumer group that commits after the work is done.

Start it several times: the members share the partitions. It ends when nothing came for a while.
"""

import sys

from fairlead_kafka import Consumer, Producer, RebalanceListener

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"

with Producer({"bootstrap.servers": servers}) as producer:
    for number in range(20):
        producer.send("payments", b"payment %d" % number, key=b"account %d" % (number % 4))


class Told(RebalanceListener):
    def on_assigned(self, partitions):
        print("reading", [str(each) for each in partitions])

    def on_revoked(self, partitions):
        print("giving up", [str(each) for each in partitions])


settings = {
    "bootstrap.servers": servers,
    "group.id": "bookkeeping",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
with Consumer(settings) as consumer:
    consumer.subscribe(["payments"], Told())
    done = idle = 0
    while done == 0 or idle < 2:
        records = consumer.poll(timeout_s=0.5)
        idle = 0 if records else idle + 1
        for _record in records:
            done += 1  # the work
        if records:
            consumer.commit()  # a crash before this repeats records, and skips none
    print(f"{done} payments booked")
