"""Reports on undelivered records: their number, their topics, and the reason of the delay."""

from __future__ import annotations

from math import ceil, isinf

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.client.delivery import LOGGER
from fairlead_kafka.client.hosting import Host, Steps, wait_until
from fairlead_kafka.producer import ProducerMachine, ReportUndelivered, Undelivered
from fairlead_kafka.runtime import Completion

EXPLAIN_S = 0.5
"""Seconds that the machine may take, at most, to say what it waits for. It answers within a step,
unless a callback holds its thread."""


def why_waiting(hosted: Host[ProducerMachine], topic: str | None, within_s: float) -> Steps[str]:
    """Why records of a topic (None: of any) are not delivered yet, as the end of a sentence.

    Empty if the machine does not answer within `within_s` seconds, or half a second.
    """
    undelivered = yield from _ask(hosted, topic, min(within_s, EXPLAIN_S))
    return f": {undelivered.why}" if undelivered is not None and undelivered.why else ""


def log_undelivered(hosted: Host[ProducerMachine], level: int, remaining_s: float) -> Steps[None]:
    """Log, at `level`, which records a close waits for, and for how many seconds more it may
    (`remaining_s`)."""
    undelivered = yield from _ask(hosted, None, EXPLAIN_S)
    if undelivered is not None and undelivered.counts:
        counts = ", ".join(
            f"{count} of topic {topic!r}" for topic, count in sorted(undelivered.counts.items())
        )
        LOGGER.log(
            level,
            "closing waits for records (%s), for %s: %s",
            counts,
            "as long as it takes" if isinf(remaining_s) else f"at most {ceil(remaining_s)} s more",
            undelivered.why,
        )


def _ask(hosted: Host[ProducerMachine], topic: str | None, within_s: float) -> Steps[Undelivered | None]:
    """The machine's report on undelivered records; None if it does not come within `within_s`
    seconds, or the machine has ended."""
    completion: Completion[Undelivered] = Completion()
    try:
        hosted.submit(ReportUndelivered(completion, topic))
        report = yield from wait_until(completion, within_s)
    except UsageError:
        return None
    return report
