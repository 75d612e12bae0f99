"""Streaming queries on a busy machine: Spark gives the Python process of a source ten seconds to
start, and no setting changes that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import StreamingQueryException

NO_WORKER = "Python worker failed to connect back"
ATTEMPTS = 5
Result = TypeVar("Result")


def until_workers_start(run: Callable[[], Result]) -> Result:
    """What `run` returns, which starts a query and waits for it. Where the process was late it runs
    again: nothing has happened yet."""
    for _ in range(ATTEMPTS):
        try:
            return run()
        except StreamingQueryException as error:
            if NO_WORKER not in str(error):
                raise
    raise AssertionError(f"{ATTEMPTS} times: {NO_WORKER}")
