"""Checks of topic names: invalid names, and names that collide with others ('.' and '_')."""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.topic_names import wrong_topic_name


def check_topic_name(name: str) -> None:
    """Raise BrokerError(INVALID_TOPIC_EXCEPTION), which says what is wrong, for an invalid name of
    a topic."""
    if wrong := wrong_topic_name(name):
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {wrong}")


def collision_key(name: str) -> str:
    """The part of a name in which two topics must differ: '.' and '_' become the same character in
    Kafka's metric names."""
    return name.replace(".", "_")
