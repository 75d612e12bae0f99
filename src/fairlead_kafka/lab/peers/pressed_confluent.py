"""confluent-kafka (librdkafka), pressed: when its queue is full, poll and try the record again, as
its documentation says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Producer

from fairlead_kafka.lab.peers.pressed import Run

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

POLL_EVERY = 500
"""Records between two polls, which serve the delivery callbacks."""


def pressed_confluent_kafka(run: Run) -> None:
    """Send by `produce` with a delivery callback each, served by the thread that produces."""
    task, value = run.task, run.value
    producer = Producer({"bootstrap.servers": task.bootstrap_servers, "acks": "all", **task.config})
    producer.list_topics(task.topic, timeout=10)
    acked, fail = run.acked, run.fail

    def delivered(error: KafkaError | None, message: Message) -> None:
        partition = message.partition()
        if error is None and partition is not None:
            acked(partition, message.timestamp()[1])
        else:
            fail(error)

    produce, poll, topic = producer.produce, producer.poll, task.topic
    run.begin()
    for number, key in enumerate(run.endless_keys()):
        while True:
            try:
                produce(topic, value, key=key, on_delivery=delivered)
                break
            except BufferError:
                poll(0.01)
        if number % POLL_EVERY == 0:
            poll(0)
