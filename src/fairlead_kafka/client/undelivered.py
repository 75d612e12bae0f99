"""What a producer says of records that are not delivered yet: how many, of which topics, and what holds them up."""

from __future__ import annotations

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.client.delivery import LOGGER
from fairlead_kafka.client.hosting import Hosted, Steps, Wait
from fairlead_kafka.producer import ProducerMachine, TellUndelivered, Undelivered
from fairlead_kafka.runtime import Completion

EXPLAIN_S = 0.5
"""How long the machine may take to say what it waits for: it answers within a step."""


def why_waiting(hosted: Hosted[ProducerMachine], topic: str | None) -> Steps[str]:
    """Why records of a topic, or of any, are not delivered yet, as the end of a sentence; empty if that cannot be told."""
    undelivered = yield from _ask(hosted, topic)
    return f": {undelivered.why}" if undelivered is not None and undelivered.why else ""


def tell_waiting(hosted: Hosted[ProducerMachine], level: int, remaining_s: float) -> Steps[None]:
    """Have the log say what a close waits for, and for how long it may."""
    undelivered = yield from _ask(hosted, None)
    if undelivered is not None and undelivered.counts:
        counts = ", ".join(f"{count} of topic {topic!r}" for topic, count in sorted(undelivered.counts.items()))
        LOGGER.log(level, "closing waits for records (%s), for at most %.0f s more: %s", counts, remaining_s, undelivered.why)


def _ask(hosted: Hosted[ProducerMachine], topic: str | None) -> Steps[Undelivered | None]:
    """None if the machine cannot tell: it has ended."""
    completion = Completion()
    try:
        hosted.submit(TellUndelivered(completion, topic))
        told: Undelivered | None = yield Wait(completion, EXPLAIN_S, lambda: None)
    except UsageError:
        return None
    return told
