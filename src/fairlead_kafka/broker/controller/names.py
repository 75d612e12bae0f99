"""What a topic may be called (Kafka's `Topic.validate`), and which names are too near each other."""

from __future__ import annotations

import re

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.limits import TOPIC_NAME_MAX_LENGTH

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """BrokerError(INVALID_TOPIC_EXCEPTION) that says what is wrong, if anything is."""
    wrong = ""
    if not name:
        wrong = "a topic's name must not be empty"
    elif name in (".", ".."):
        wrong = f"a topic's name must not be {name!r}"
    elif len(name) > TOPIC_NAME_MAX_LENGTH:
        wrong = f"a topic's name has at most {TOPIC_NAME_MAX_LENGTH} characters; this one has {len(name)}: {name}"
    elif not _LEGAL.fullmatch(name):
        wrong = f"a topic's name is made of ASCII letters, digits, '.', '_' and '-'; {name!r} is not"
    if wrong:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)


def collision_key(name: str) -> str:
    """Two names with the same key cannot both be topics: '.' and '_' become the same character in Kafka's metric names."""
    return name.replace(".", "_")
