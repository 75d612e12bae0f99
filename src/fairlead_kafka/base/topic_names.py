"""Rules for the names of topics (Kafka's `Topic.validate`)."""

from __future__ import annotations

import re
from functools import lru_cache

from fairlead_kafka.base.limits import TOPIC_NAME_MAX_LENGTH

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_REMEMBERED_MAX = 1_000


@lru_cache(_REMEMBERED_MAX)
def wrong_topic_name(name: str) -> str:
    """Why a topic's name is invalid, in words; empty if it is valid."""
    if not name:
        return "a topic's name must not be empty"
    if name in (".", ".."):
        return f"a topic's name must not be {name!r}"
    if len(name) > TOPIC_NAME_MAX_LENGTH:
        return (
            f"a topic's name has at most {TOPIC_NAME_MAX_LENGTH} characters; this one has {len(name)}: {name}"
        )
    if not _LEGAL.fullmatch(name):
        return f"a topic's name is made of ASCII letters, digits, '.', '_' and '-'; {name!r} is not"
    return ""
