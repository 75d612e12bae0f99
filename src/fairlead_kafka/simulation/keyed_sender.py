"""Applications of world `readers`: every record has a key and a timestamp of a clock that may be
wrong; some are tombstones.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from fairlead_kafka.simulation.transactional import TransactionalSender
from fairlead_kafka.simulation.workload import Rows, Sender, Sending

COMPACTED = "states"
KEYS = tuple(b"key %d" % number for number in range(4))
TOMBSTONE_SHARE = 0.15
SKEWS_MS = (0, 0, -600_000, -2_000, 2_000, 600_000)
JITTER_MS = 40
"""Greatest distance of a record's timestamp from its clock, ms: timestamps in a submission have no
order.
"""


class Wrote(NamedTuple):
    """Key, value and timestamp (ms) of one record."""

    key: bytes
    value: bytes | None
    timestamp_ms: int


class KeyedSender(Sender):
    """A sender that keeps what it wrote, by serial."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.wrote: dict[int, Wrote] = {}
        self.skew_ms = 0
        """How far its clock is ahead, ms."""

    def rows(self, sending: Sending, serials: range) -> Rows:
        """Records of a submission with keys, and timestamps of a clock that may be wrong; the
        records get the numbers `serials`."""
        now_ms = self._app().host.now_ms() + self.skew_ms
        rows = [self._row(self._rng, serial, sending, now_ms) for serial in serials]
        self.wrote.update(zip(serials, rows, strict=True))
        return Rows(
            [row.value for row in rows], [row.key for row in rows], None, [row.timestamp_ms for row in rows]
        )

    def _row(self, rng: Random, serial: int, sending: Sending, now_ms: int) -> Wrote:
        deletes = sending.topic == COMPACTED and rng.random() < TOMBSTONE_SHARE
        timestamp_ms = now_ms + rng.choice([0, 0, rng.randrange(-JITTER_MS, JITTER_MS)])
        return Wrote(
            rng.choice(KEYS), None if deletes else self.value(serial, sending.size_bytes), timestamp_ms
        )


class KeyedTransactionalSender(KeyedSender, TransactionalSender):
    """A `KeyedSender` that sends in transactions."""
