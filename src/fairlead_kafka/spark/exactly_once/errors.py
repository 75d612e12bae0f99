"""Errors of exactly-once writes that cannot go on, with messages that say what to do."""

from __future__ import annotations

from fairlead_kafka.base.errors import FairleadError

TIMES = (
    "Set kafka.transaction.timeout.ms longer than a batch takes (the brokers' transaction.max.timeout.ms is "
    "the most they allow), "
    "or make batches smaller (maxOffsetsPerTrigger, maxBytesPerTrigger)"
)


def still_open(count: int, timeout_ms: int) -> str:
    """Message on `count` transactions that cannot be committed or aborted now. They stay open, and
    readers wait, until `timeout_ms` milliseconds have passed."""
    which = "a transaction of it stays" if count == 1 else f"{count} transactions of it stay"
    return (
        f"{which} open until kafka.transaction.timeout.ms ({timeout_ms} ms) is over, and readers of "
        "committed data see nothing of what is "
        "written behind; Admin.list_transactions(['Ongoing']) and kafka-transactions.sh show such "
        "transactions"
    )


def too_long(timeout_ms: int, allowed_ms: int | None = None) -> str:
    """Message for transactions that may be open for `timeout_ms`, longer than the `allowed_ms` that
    brokers allow; None: that is not known."""
    allowed = "less" if allowed_ms is None else f"{allowed_ms} at most"
    return (
        f"kafka.transaction.timeout.ms: a task's transaction may be open for {timeout_ms} ms, and the "
        f"brokers allow {allowed} (their "
        "setting transaction.max.timeout.ms); lower kafka.transaction.timeout.ms, or raise the brokers' "
        "setting"
    )


class NotCommitted(FairleadError):
    """Nothing of the batch is visible, and nothing is lost: it has to be written again, which a
    restarted query does by itself."""


class CommitUnfinished(FairleadError):
    """A batch was decided to be committed, and it is not known that all of its transactions are: a
    part of it may be visible."""


class RowsLost(FairleadError):
    """A batch was decided to be committed, but brokers had already aborted a part of it."""


class CheckpointBehind(FairleadError):
    """The checkpoint is older than what was committed."""
