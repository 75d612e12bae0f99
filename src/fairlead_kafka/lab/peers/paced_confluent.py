"""confluent-kafka (librdkafka) under a paced load."""

from __future__ import annotations

import json
import threading
from functools import partial

from confluent_kafka import Producer

from fairlead_kafka.lab.peers.paced import Run

POLL_S = 0.1
STATISTICS_MS = 200


def paced_confluent_kafka(run: Run) -> None:
    """Send by `produce` with a callback per record, served by a thread that polls; the number of
    requests is from librdkafka's statistics, over all brokers."""
    journal, task = run.journal, run.task
    topic, value = task.topic, run.value
    transmitted: dict[str, int] = {}

    def statistics(text: str) -> None:
        brokers = json.loads(text)["brokers"]
        transmitted.update({name: broker["tx"] for name, broker in brokers.items()})

    def delivered(number: int, error: object, _: object) -> None:
        if error is None:
            journal.acked(number)
        else:
            journal.failed(number, error)

    config = {
        "bootstrap.servers": task.bootstrap_servers,
        "acks": "all",
        "statistics.interval.ms": STATISTICS_MS,
        "stats_cb": statistics,
    }
    producer = Producer({**config, **task.config})
    producer.list_topics(topic, timeout=10)
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            producer.poll(POLL_S)

    def send(number: int) -> None:
        journal.sent(number)
        try:
            producer.produce(topic, value, on_delivery=partial(delivered, number))
        except BufferError as error:
            journal.failed(number, error)

    poller = threading.Thread(target=poll)
    run.begin()
    poller.start()
    run.submit_due(send, producer.flush)
    producer.flush(run.left_s())
    run.end()
    stop.wait(2 * STATISTICS_MS / 1000)
    stop.set()
    poller.join()
    run.requests = sum(transmitted.values())
