"""Fairlead's producer, pressed: `send` with a delivery callback for each record; a record that is
refused because there is no memory is dropped."""

from __future__ import annotations

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.client import Producer, RecordMetadata
from fairlead_kafka.lab.peers.pressed import Run


def pressed_fairlead(run: Run) -> None:
    """Send records one after another; go on whenever `send` returns or raises."""
    task, value = run.task, run.value
    producer = Producer({"bootstrap.servers": task.bootstrap_servers, "acks": "all", **task.config})
    producer.partitions_for(task.topic)
    acked, fail = run.acked, run.fail

    def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
        if metadata is not None:
            acked(metadata.partition, metadata.timestamp_ms)
        else:
            fail(error)

    send, topic = producer.send, task.topic
    run.begin()
    for key in run.endless_keys():
        try:
            send(topic, value, key=key, on_delivery=delivered)
        except FairleadError as error:
            fail(error)
