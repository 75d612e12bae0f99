"""The topic "jobs" of worlds with share groups: a writer that appends batches, and deletes records
before offsets that lie within batches.

Share groups read it. The only check of its records is that members get records that are in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.records import Slice, columns_from_lists, encode
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Asker
from fairlead_kafka.simulation.group_ledger import Place
from fairlead_kafka.simulation.keyed_writer import PRODUCE_VERSION
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.trimmer import Trimmer
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import ProduceRequest, ProduceResponse

TOPIC = "jobs"
PARTITIONS = 2
PAUSE_MS = 80.0
TIMEOUT_MS = 300
ROWS_MAX = 8
TRIMMED_SHARE = 0.3
"""Share of turns in which records are deleted."""


class Jobs:
    """Appends records to "jobs". Every request goes to all brokers; the leader is the one that
    accepts it."""

    def __init__(self, host: VirtualHost, script: Script, addresses: Sequence[str], rng: Random) -> None:
        self._script = script
        self._addresses = addresses
        self._rng = rng
        self._asker = Asker(host)
        self._finished = False
        self._serial = 0
        self._ends: dict[Place, int] = {}
        """Place → the offset after the last record that was acknowledged."""
        self._trimmer = Trimmer(host, script, addresses, rng, self._choose)

    @property
    def deleted(self) -> dict[Place, int]:
        """Place → the offset before which records may be gone. If a leader dies before its
        followers have deleted them, they are there again, as in Kafka."""
        return self._trimmer.asked

    def begin(self) -> None:
        """Append a batch, and the next a little later; delete records now and then."""
        self._trimmer.begin()
        self._append()

    def finish(self) -> None:
        """Stop appending and deleting records."""
        self._finished = True
        self._trimmer.finish()

    def _append(self) -> None:
        if self._finished:
            return
        rows = 1 + self._rng.randrange(ROWS_MAX)
        values: list[bytes | None] = [
            b"job %d" % number for number in range(self._serial, self._serial + rows)
        ]
        self._serial += rows
        place = (TOPIC, self._rng.randrange(PARTITIONS))
        columns = columns_from_lists([None] * rows, values)
        batch = encode(
            [Slice(columns, 0, rows, None)], create_time_ms=1_700_000_000_000 + self._serial
        ).buffer
        row = ProduceRequest.PartitionProduceData(index=place[1], records=batch)
        topics = [ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[row])]
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=TIMEOUT_MS, topic_data=topics)
        answered = partial(self._answered, place, rows)
        for address in self._addresses:
            self._asker.ask(address, ApiKey.PRODUCE, PRODUCE_VERSION, request, answered)
        self._script.after(PAUSE_MS * (0.5 + self._rng.random()), self._append)

    def _answered(self, place: Place, rows: int, answer: ProduceResponse | None) -> None:
        if answer is None:
            return
        row = answer.responses[0].partition_responses[0]
        if row.error_code == ErrorCode.NONE:
            self._ends[place] = max(self._ends.get(place, 0), row.base_offset + rows)

    def _choose(self, rng: Random) -> tuple[Place, int] | None:
        if not self._ends or rng.random() >= TRIMMED_SHARE:
            return None
        place = rng.choice(sorted(self._ends))
        end = self._ends[place]
        return place, max(0, end - rng.randrange(1 + min(end, 3 * ROWS_MAX)))
