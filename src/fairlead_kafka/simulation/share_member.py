"""One process that is a member of a share group: a real share consumer's machine, and an
application that polls, works, acknowledges, hangs with records locked, and closes.

The application uses the machine as the client classes do. Its records, acknowledgements and answers
are recorded in the ledger of its group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer import ALL_COLUMNS
from fairlead_kafka.consumer.share import (
    UNDECIDED,
    Acknowledge,
    AcknowledgeType,
    AckResult,
    Acks,
    Decoded,
    Delivery,
    InFlight,
    ShareChunk,
    ShareConsumerMachine,
    Shut,
    Subscribe,
    Take,
    decode_share_chunk,
    delivery_of,
    share_settings,
)
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.simulation.group_ledger import Place, place_of
from fairlead_kafka.simulation.process import CALL_TIMEOUT_MS, GroupProcess, Part, Stage, Steps, called
from fairlead_kafka.simulation.share_ledger import Acquisition, Connected, GivenRecord, Said, ShareLedger
from fairlead_kafka.simulation.share_story import ShareHabits
from fairlead_kafka.simulation.workload import Completion

API_TIMEOUT_MS = 2_000.0
"""Milliseconds for which acknowledgements are tried."""
SLOW = 1.3
"""How much longer than its lock a record is worked on by a slow poll."""


class ShareRole(NamedTuple):
    """Description of one process; `config`: of its consumer."""

    number: int
    rng: Random
    config: Mapping[str, object]
    habits: ShareHabits
    ledger: ShareLedger


class WatchedShareConsumer(ShareConsumerMachine):
    """A share consumer's machine that notes when its requests to brokers were sent, and which were
    served."""

    def __init__(self, role: ShareRole) -> None:
        super().__init__(share_settings(role.config), role.rng)
        self.connected: dict[tuple[int, int], Connected] = {}
        """(Broker, number of the session) → the session."""

    @property
    def member_id(self) -> str:
        """The member id by which brokers know the consumer."""
        return self._group.member_id

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Step the consumer, and note which requests it has sent in its sessions."""
        effects = super().step(now_ns, wall_ms)
        for session in self._fetcher._sessions.values():
            key = (session.node_id, session.number)
            known = self.connected.get(key)
            if known is None:
                if session.busy:
                    self.connected[key] = Connected(now_ns, now_ns, session.epoch)
                continue
            if session.epoch != known.epoch:
                known.proven_ns, known.epoch, known.busy = known.sent_ns, session.epoch, False
            if session.busy and not known.busy:
                known.sent_ns = now_ns
            known.busy = session.busy
        return effects

    def stale_epoch(self, rng: Random) -> tuple[int, int, int] | None:
        """(broker, number of the session, an epoch that is past) of one share session; None: there
        is none with such an epoch."""
        found = [
            (session.node_id, session.number, session.epoch)
            for session in self._fetcher._sessions.values()
            if session.epoch > 1
        ]
        if not found:
            return None
        node_id, number, epoch = rng.choice(found)
        return node_id, number, rng.randrange(1, epoch)

    def has(self, node_id: int, number: int) -> bool:
        """True if the share session `number` with a broker is still open."""
        session = self._fetcher._sessions.get(node_id)
        return session is not None and session.number == number and session.opened


class ShareProcess(GroupProcess):
    """One process of a share group's member. `ended` is called once, when the process has ended."""

    def __init__(self, stage: Stage, role: ShareRole, ended: Callable[[], None]) -> None:
        self.machine = WatchedShareConsumer(role)
        super().__init__(stage, role.number, f"share group {role.ledger.group}", self.machine, ended)
        self.holding = False
        """Whether it says nothing of the records that it has, nor asks for others."""
        self._rng, self._habits, self._ledger = role.rng, role.habits, role.ledger
        self._flight = InFlight()
        self._ledger.sessions[self.machine.member_id] = self.machine.connected
        self._origins: dict[tuple[Place, int], Acquisition] = {}
        """(Place, offset) → the delivery that the member had last."""
        self._said: dict[int, dict[int, Said]] = {}
        """Number of acknowledgements → offset → what has no answer yet."""
        self._hold = False

    # What the story does with it

    def hold(self) -> None:
        """Keep the records of the next poll, without acknowledging any, until `let_go`."""
        self._hold = True

    def let_go(self) -> None:
        """Stop keeping records: the process works on those it has, and on later ones, as usual."""
        self._hold = False

    def close(self) -> None:
        """Acknowledge the records that were decided about, leave the group, and end."""
        self._hold = False
        super().close()

    # The life

    def _living(self) -> Steps:
        while not self._closing:
            yield from self._rest()
            if self._topics != self._wanted:
                self._topics = self._wanted
                yield from called(self.handle, Subscribe, list(self._topics))
            found = yield from self._poll()
            if found is None:
                self._end("left")
                return
            if found:
                yield from self._work(found)
            yield self._rng.random() * self._habits.work_ms
        results, _ = yield from called(self.handle, Shut, self._decided())
        self._completed(results or ())
        self._end("left")

    def _poll(self) -> Part[list[Delivery] | None]:
        """Deliveries with records to work on, after acknowledgements were sent; None: an error that
        ends this process."""
        acks = self._decided()
        if self._flight.renewing:
            yield from self._send(acks, waits=True)
            if self._flight.renewing:
                renewed = self._flight.renewed
                self._flight.hand_out(renewed)
                return renewed
            acks = []
        by_ns = self._host.now_ns() + ms_to_ns(API_TIMEOUT_MS)
        wait_ns = self._host.now_ns() + ms_to_ns(self._habits.poll_ms)
        taken, error = yield from called(self.handle, Take, wait_ns, self._habits.records_max, acks, by_ns)
        if error is not None:
            return None if self._ends(error) else []
        self._completed(taken.results)
        added = [self._given(chunk) for chunk in taken.chunks if chunk.lock_ns > self._host.now_ns()]
        return [delivery for delivery in added if delivery.left]

    def _given(self, chunk: ShareChunk) -> Delivery:
        """Note the records of a chunk in the ledger."""
        place = place_of(chunk.partition)
        for first, last, deliveries in chunk.acquired:
            acquisition = self._ledger.found(place, self.machine.member_id, chunk.node_id, first, deliveries)
            if acquisition is None:
                self._violated(
                    f"share group {self._ledger.group}: process {self.number} was given delivery "
                    f"{deliveries} of {place[0]}-{place[1]}/{first}, which broker {chunk.node_id} never "
                    "acquired for it"
                )
                continue
            self._origins.update(((place, offset), acquisition) for offset in range(first, last + 1))
        decoded = decode_share_chunk(chunk, ALL_COLUMNS, check_crcs=True)
        if decoded.error is not None:
            self._violated(f"share group {self._ledger.group}: {place} does not decode: {decoded.error}")
        self._ledger.given += [
            GivenRecord(place, offset, value, self.number) for offset, value in _records(decoded)
        ]
        delivery = delivery_of(chunk, decoded)
        self._flight.hand_out([delivery])
        return delivery

    def _work(self, found: Sequence[Delivery]) -> Steps:
        """Work on records, decide about each, and perhaps send that at once."""
        habits, rng = self._habits, self._rng
        self.holding = self._hold
        while self._hold:
            yield 20.0
        self.holding = False
        yield from self._rest()
        if rng.random() < habits.slow_share:
            yield SLOW * self._ledger.lock_ns / 1e6
        elif habits.work_ms:
            yield rng.random() * habits.work_ms
        if habits.explicit:
            for delivery in found:
                rows = np.flatnonzero(delivery.types == UNDECIDED)
                delivery.decide(rows, np.array([self._decision() for _ in rows], np.int8))
        if rng.random() < habits.commit_share:
            yield from self._send(self._decided(), waits=rng.random() < habits.waits_share)

    def _decision(self) -> AcknowledgeType:
        habits, chance = self._habits, self._rng.random()
        if chance < habits.released:
            return AcknowledgeType.RELEASE
        if chance < habits.released + habits.rejected:
            return AcknowledgeType.REJECT
        if chance < habits.released + habits.rejected + habits.renewed:
            return AcknowledgeType.RENEW
        return AcknowledgeType.ACCEPT

    # Acknowledgements

    def _decided(self) -> list[Acks]:
        """Take the acknowledgements that are to be sent now; in implicit mode those of all records
        given."""
        if not self._habits.explicit:
            self._flight.decide_rest(AcknowledgeType.ACCEPT)
        acks = list(self._flight.to_send())
        self._flight.sent()
        now_ns = self._host.now_ns()
        for one in acks:
            place = place_of(one.partition)
            said = {
                offset: Said(self.number, place, offset, kind, self._origins[place, offset], now_ns)
                for offset, kind in zip(one.offsets.tolist(), one.types.tolist(), strict=True)
                if (place, offset) in self._origins
            }
            self._said[one.number] = said
            self._ledger.said += said.values()
        return acks

    def _send(self, acks: Sequence[Acks], *, waits: bool) -> Steps:
        now_ns = self._host.now_ns()
        by_ns = now_ns + ms_to_ns(API_TIMEOUT_MS)
        if waits:
            wait_ns = now_ns + ms_to_ns(CALL_TIMEOUT_MS)
            results, error = yield from called(self.handle, Acknowledge, wait_ns, acks, by_ns)
            if error is not None:
                raise error
            self._completed(results)
        elif acks:
            ignored: Completion[list[AckResult]] = Completion(lambda _results, _error: None)
            self._host.submit(self.handle, Acknowledge(ignored, None, acks, by_ns))

    def _completed(self, results: Sequence[AckResult]) -> None:
        outcomes = deque(results)
        while outcomes:
            self._flight.complete_first(outcomes)
        now_ns = self._host.now_ns()
        for acks, error in results:
            said = self._said.get(acks.number, {})
            for offset in acks.offsets.tolist():
                one = said.pop(offset, None)
                if one is not None:
                    one.answered_ns, one.error = now_ns, error
            if not said:
                self._said.pop(acks.number, None)


def _records(decoded: Decoded) -> list[tuple[int, bytes | None]]:
    """Offset and value of the records that were acquired."""
    found: list[tuple[int, bytes | None]] = []
    for part in decoded.parts:
        values = part.decoded.values.to_list()
        offsets = part.decoded.offsets.tolist()
        found += [
            (offset, value)
            for offset, value, wanted in zip(offsets, values, part.wanted.tolist(), strict=True)
            if wanted
        ]
    return found
