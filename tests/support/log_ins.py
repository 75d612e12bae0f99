"""Whether a user is let in by Apache Kafka, as our client and confluent-kafka find it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairlead_kafka import Admin, AuthenticationFailed, ScramMechanism
from tests.support.secured_kafka import SecuredKafka
from tests.support.waiting import PATIENCE_S

confluent_kafka = pytest.importorskip("confluent_kafka")


def logging_in(kafka: SecuredKafka, user: str, password: str, mechanism: ScramMechanism) -> dict[str, Any]:
    """The settings of a client that does."""
    return kafka.settings("SASL") | {
        "sasl.mechanism": mechanism.mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def for_librdkafka(settings: dict[str, Any]) -> dict[str, Any]:
    """The same for a client that is silent about it."""
    return {**settings, "log_level": 0}


def logs_in(kafka: SecuredKafka, user: str, password: str, mechanism: ScramMechanism) -> bool:
    """Whether our client is let in; confluent-kafka has to be told the same."""
    settings = logging_in(kafka, user, password, mechanism)
    try:
        with Admin(settings) as ours:
            ours.describe_cluster(PATIENCE_S)
    except AuthenticationFailed:
        let_in = False
    else:
        let_in = True
    told: list[int] = []
    librdkafka = confluent_kafka.Producer(
        for_librdkafka(settings) | {"error_cb": lambda error: told.append(error.code())}
    )
    deadline = time.monotonic() + PATIENCE_S
    theirs = None
    while theirs is None and time.monotonic() < deadline:
        try:
            librdkafka.list_topics(timeout=0.5)
            theirs = True
        except confluent_kafka.KafkaException:
            librdkafka.poll(0)
            theirs = False if confluent_kafka.KafkaError._AUTHENTICATION in told else None
    assert theirs is let_in
    return let_in
