"""Deletes records before offsets that lie within batches.

It asks every broker: the leader is the one that does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Asker
from fairlead_kafka.simulation.reader import Place
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse

DELETE_VERSION = 2
PAUSE_MS = 400.0
TIMEOUT_MS = 300


class Trimmer:
    """Deletes records now and then.

    `choose()` gives the partition and the offset to delete before, or None: nothing now.
    """

    def __init__(
        self,
        host: VirtualHost,
        script: Script,
        addresses: Sequence[str],
        rng: Random,
        choose: Callable[[Random], tuple[Place, int] | None],
    ) -> None:
        self._script = script
        self._addresses = addresses
        self._rng = rng
        self._choose = choose
        self._asker = Asker(host)
        self._finished = False
        self.asked: dict[Place, int] = {}
        """Place → the greatest offset asked for: records before it may be gone."""
        self.done: dict[Place, int] = {}
        """Place → the greatest offset before which a leader said that all records are gone."""

    def begin(self) -> None:
        """Delete some records, and more a little later."""
        if self._finished:
            return
        chosen = self._choose(self._rng)
        if chosen is not None:
            place, offset = chosen
            self.asked[place] = max(offset, self.asked.get(place, 0))
            answered = partial(self._answered, place, offset)
            for address in self._addresses:
                self._asker.ask(
                    address, ApiKey.DELETE_RECORDS, DELETE_VERSION, _delete(place, offset), answered
                )
        self._script.after(PAUSE_MS * (0.5 + self._rng.random()), self.begin)

    def finish(self) -> None:
        """Delete no more."""
        self._finished = True

    def _answered(self, place: Place, offset: int, answer: DeleteRecordsResponse | None) -> None:
        if answer is not None and not answer.topics[0].partitions[0].error_code:
            self.done[place] = max(offset, self.done.get(place, 0))


def _delete(place: Place, offset: int) -> DeleteRecordsRequest:
    partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=place[1], offset=offset)
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name=place[0], partitions=[partition])
    return DeleteRecordsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
