"""Fairlead's producer under a paced load, record by record with a delivery callback each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.client import Producer
from fairlead_kafka.lab.peers.paced import Run


def paced_fairlead(run: Run) -> None:
    """Send by `Producer.send`; the number of requests counts all kinds, as Kafka's request-total
    does."""
    journal, task = run.journal, run.task
    topic, value = task.topic, run.value

    def delivered(number: int, metadata: object, error: Exception | None) -> None:
        if error is None:
            journal.acked(number)
        else:
            journal.failed(number, error)

    producer = Producer({"bootstrap.servers": task.bootstrap_servers, "acks": "all", **task.config})
    producer.partitions_for(topic)

    def send(number: int) -> None:
        journal.sent(number)
        try:
            producer.send(topic, value, on_delivery=partial(delivered, number))
        except FairleadError as error:
            journal.failed(number, error)

    run.begin()
    run.submit_due(send, producer.flush)
    producer.close(run.left_s())
    run.end()
    run.requests = requests_of(producer.metrics()["producer-metrics"])


def requests_of(metrics: Mapping[str, float]) -> int:
    """Number of all requests sent, by the producer's own metrics."""
    return int(metrics["request-total"])
