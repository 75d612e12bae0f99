"""Read, process and write exactly once: results and offsets are one transaction."""

import sys

from fairlead_kafka import Consumer, Producer, TopicPartition

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"
settings = {"bootstrap.servers": servers}

with Producer(settings) as producer:
    for number in range(10):
        producer.send("words", b"word %d" % number)

reading = {
    **settings,
    "group.id": "shouting",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
}
with Producer({**settings, "transactional.id": "shouting"}) as producer, Consumer(reading) as consumer:
    producer.init_transactions()
    consumer.subscribe(["words"])
    done = 0
    while done < 10:
        records = consumer.poll(timeout_s=1)
        if not records:
            continue
        with producer.transaction():  # commits at its end, aborts if the block raises
            for record in records:
                producer.send("shouts", record.value.upper(), key=record.key)
            offsets = {TopicPartition(each.topic, each.partition): each.offset + 1 for each in records}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        done += len(records)
    print(f"{done} words in transactions")
