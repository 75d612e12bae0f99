"""Repeats what has to come to an end once a batch is decided, while what keeps it from that may
pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from fairlead_kafka.base.errors import BrokerError, ConnectionFailed, FairleadError, TimedOut
from fairlead_kafka.base.guarded_log import GuardedLogger

T = TypeVar("T")
LOGGER = GuardedLogger("fairlead_kafka.spark")
PAUSE_S = 1.0
"""Seconds between two attempts. Most of them wait for brokers themselves."""


def until_clear(what: str, call: Callable[[], T], limit_s: float) -> T:
    """The result of `call`, which is called again while its error may pass, until `limit_s` seconds
    are over. Then, and for any other error, raises that."""
    end_s = time.monotonic() + limit_s
    while True:
        try:
            return call()
        except FairleadError as error:
            if not _may_pass(error) or time.monotonic() >= end_s:
                raise
            LOGGER.warning("%s is tried again: %s", what, error)
        time.sleep(PAUSE_S)


def _may_pass(error: FairleadError) -> bool:
    return isinstance(error, (TimedOut, ConnectionFailed)) or (
        isinstance(error, BrokerError) and error.retriable
    )
