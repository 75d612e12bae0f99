"""What an exactly-once write says when it cannot go on; each error names what to do."""

from __future__ import annotations

from fairlead_kafka.base.errors import FairleadError

TIMES = (
    "Set kafka.transaction.timeout.ms longer than a batch takes (the brokers' transaction.max.timeout.ms is the most they allow), "
    "or make batches smaller (maxOffsetsPerTrigger, maxBytesPerTrigger)"
)


class NotCommitted(FairleadError):
    """Nothing of the batch is visible, and nothing is lost: it has to be written again, which a restarted query does by itself."""


class RowsLost(FairleadError):
    """A batch was decided to be committed, and brokers had aborted a part of it before that part was told."""


class CheckpointBehind(FairleadError):
    """The checkpoint is older than what was committed."""
