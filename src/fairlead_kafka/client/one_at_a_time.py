"""`OneAtATime`: lets one of several calls of a client run at a time."""

from __future__ import annotations

from types import GeneratorType
from typing import TypeVar, cast

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.client.hosting import Steps

T = TypeVar("T")


class CallUnderWay(UsageError):
    """Another call runs that this one may not run beside."""


class OneAtATime:
    """Lets one of several steps run at a time. `said`: the error's text for others meanwhile.

    They run until they end, however they do. So there is no lock that must be released, which
    Ctrl-C could prevent.
    """

    def __init__(self, said: str) -> None:
        self._said = said
        self._steps: dict[GeneratorType[object, object, object], None] = {}
        """Steps that have ended, that run, and that are to run, in this order."""

    def run(self, steps: Steps[T]) -> Steps[T]:
        """Drive `steps`; CallUnderWay while others are driven."""
        mine = cast("GeneratorType[object, object, object]", steps)
        try:
            self._steps[mine] = None
            for other in list(self._steps):
                if other is mine:
                    break
                if other.gi_frame is not None:
                    raise CallUnderWay(self._said)
                self._steps.pop(other, None)  # it has ended
            return (yield from steps)
        finally:
            steps.close()
