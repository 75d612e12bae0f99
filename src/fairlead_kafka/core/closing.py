"""Closes the parts of a machine that raised: each is closed, even if closing another one raises."""

from __future__ import annotations

from collections.abc import Callable

from fairlead_kafka.base.guarded_log import GuardedLogger

_LOG = GuardedLogger("fairlead_kafka.runtime")


def close_each(*closes: Callable[[], object]) -> None:
    """Call each of `closes`, whatever one raises; the first error is logged, with their number.

    For `crashed` of machines: a defect that has ended a machine may show up again while its parts
    are closed, and callers that wait for other parts must get their error all the same.
    """
    errors = []
    for close in closes:
        try:
            close()
        except Exception as error:
            errors.append(error)
    if errors:
        text = "%d parts of a client that raised could not be closed"
        _LOG.error(text, len(errors), exc_info=errors[0])
