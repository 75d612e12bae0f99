"""What a client without a log-in says of a port that wants one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fairlead_kafka import Admin, NoBrokerReached
from tests.support.waiting import until

GUESS = "does this port want a log-in (security.protocol SASL_PLAINTEXT or SASL_SSL)?"


def until_a_log_in_is_guessed(settings: Mapping[str, Any]) -> None:
    """Call a cluster in plaintext at a port that wants a log-in, until the error asks for it. (A
    broker that is slow to close the last of the connections is told of instead.)"""
    plain = {**settings, "security.protocol": "PLAINTEXT", "bootstrap.connection.timeout.ms": 1500}

    def guessed() -> bool:
        with Admin(plain) as admin, pytest.raises(NoBrokerReached) as unreached:
            admin.list_topics()
        return GUESS in str(unreached.value)

    until(guessed)
