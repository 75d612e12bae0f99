"""How `Admin` and `AsyncAdmin` drive the steps of a call.

Each of them has more than forty methods. Those about the cluster and about share groups are in base
classes of `Admin` and `AsyncAdmin`: one class for all would be too long a file, and methods that
only delegate to another object would repeat each signature.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TypeVar

from fairlead_kafka.client.admin_calls import AdminCalls
from fairlead_kafka.client.hosting import Steps, run_async, run_blocking

T = TypeVar("T")


class Blocking:
    """Base of classes whose calls block: each call's steps are driven on the calling thread."""

    _calls: AdminCalls

    def _run(self, steps: Steps[T]) -> T:
        return run_blocking(steps, self._calls.host)


class Awaiting:
    """Base of classes whose calls are coroutines: each call's steps are driven on the running event
    loop."""

    _calls: AdminCalls

    def _run(self, steps: Steps[T]) -> Coroutine[object, None, T]:
        return run_async(steps, self._calls.host)
