"""One process that is a member of a group: a real consumer machine, and an application that polls,
commits, hangs, and takes over and revokes partitions.

Its answers are recorded in the ledger of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Concatenate, NamedTuple

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer import Chunk, ConsumerMachine, Shut, Take, decode_chunk
from fairlead_kafka.consumer.groups import (
    Acknowledge,
    Commit,
    Gate,
    GetGroup,
    GroupChange,
    Subscribe,
    Unsubscribe,
)
from fairlead_kafka.core.group_offsets import GroupMetadata, OffsetAndMetadata
from fairlead_kafka.simulation.group_ledger import (
    Claim,
    CommitResult,
    Given,
    GroupLedger,
    Place,
    Session,
    label_of,
    partition_of,
    place_of,
)
from fairlead_kafka.simulation.process import (
    CALL_TIMEOUT_MS,
    GroupProcess,
    P,
    Part,
    Stage,
    Steps,
    T,
    called,
)
from fairlead_kafka.simulation.workload import Completion

TAKE_BYTES = 20_000


class Habits(NamedTuple):
    """How a member's application behaves: how long it polls and works, and what it commits or
    acknowledges; times in ms."""

    poll_ms: float
    """Milliseconds that a poll waits."""
    work_ms: float
    """Most milliseconds between two polls."""
    commit_share: float
    """Share of polls with records after which it commits."""
    waits_share: float
    """Share of commits that it waits for."""
    commits_when_revoked: bool


class Role(NamedTuple):
    """Description of one process; `config`: of its consumer."""

    number: int
    rng: Random
    config: Mapping[str, object]
    habits: Habits
    ledger: GroupLedger


class MemberProcess(GroupProcess):
    """One process of a group's member. `ended` is called once."""

    REFUSALS = frozenset(
        {
            ErrorCode.UNRELEASED_INSTANCE_ID,  # the member that died has its place until its session ends
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,  # the migration policy does not let the group change its protocol
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        }
    )

    def __init__(self, stage: Stage, role: Role, ended: Callable[[], None]) -> None:
        self._gate = Gate()
        self.machine = ConsumerMachine(CLIENT_CONFIGS.parse("consumer", role.config), role.rng, self._gate)
        super().__init__(stage, role.number, f"group {role.ledger.group}", self.machine, ended)
        self.claims: dict[Place, Claim] = {}
        """Partitions that it holds now."""
        self.left = False
        self.protocol = str(role.config["group.protocol"])
        self._rng, self._habits, self._ledger = role.rng, role.habits, role.ledger
        self._generations: dict[TopicPartition, int] = {}
        self._losses = self._commits = 0

    def position(self, place: Place) -> int:
        """The offset of the next record of the partition `place` that a poll would give; -1: not
        known yet."""
        found = self.machine.positions().get(partition_of(place))
        return -1 if found is None else found.offset

    # The life

    def _living(self) -> Steps:
        while not self._closing:
            yield from self._rest()
            if self._topics != self._wanted:
                self._topics = self._wanted
                yield from self._call(Subscribe, list(self._topics))
            self._gate.polled_ns = self._host.now_ns()
            while (change := self._gate.change) is not None:
                yield from self._make(change)
            patience_ns = ms_to_ns(self._habits.poll_ms)
            chunks, error = yield from self._call(Take, self._host.now_ns() + patience_ns, TAKE_BYTES)
            if error is not None and self._ends(error):
                self._end("left")
                return
            if chunks and (taken := self._given(chunks)):
                yield from self._work(taken)
            yield self._rng.random() * self._habits.work_ms
        yield from self._leave()

    def _make(self, change: GroupChange) -> Steps:
        """Do the application's part of a change of the assignment, and note which partitions it has
        then."""
        if change.revoked and not change.lost and self._habits.commits_when_revoked:
            yield from self._commit(waits=True)
        stopped_ns = self._host.now_ns()
        (_, generations), _ = yield from self._call(Acknowledge, change.number)
        who, _ = yield from self._call(GetGroup)
        self._losses += change.lost
        self._held(generations, who, stopped_ns, "lost" if change.lost else "revoked")

    def _held(
        self, generations: Mapping[TopicPartition, int], who: GroupMetadata, stopped_ns: int, how: str
    ) -> None:
        self._generations = dict(generations)
        held = {place_of(partition) for partition in generations}
        for place in [place for place in self.claims if place not in held]:
            claim = self.claims.pop(place)
            claim.ended_ns, claim.how = stopped_ns, how
            claim.subscribed = place[0] in self._topics
        for topic, index in sorted(held - self.claims.keys()):
            claim = Claim((topic, index), self._session(who), who.generation_id, self._host.now_ns())
            self.claims[topic, index] = claim
            self._ledger.claimed(claim)

    def _session(self, who: GroupMetadata) -> Session:
        return Session(self.number, who.member_id, self._losses)

    def _given(self, chunks: Sequence[Chunk]) -> list[tuple[Claim, int, bytes]]:
        """Note the records of chunks whose partitions are still assigned, and return (claim,
        offset, value) of each."""
        taken: list[tuple[Claim, int, bytes]] = []
        now_ns = self._host.now_ns()
        for chunk in chunks:
            if self._generations.get(chunk.partition) != chunk.generation:
                continue
            claim = self.claims[place_of(chunk.partition)]
            claim.base = chunk.start if claim.base < 0 else claim.base
            decoded = decode_chunk(chunk, check_crcs=True)
            offsets = decoded.offsets.tolist()
            claim.runs[-1] += [Given(offset, now_ns) for offset in offsets]
            claim.position = chunk.next_offset
            taken += [
                (claim, offset, value or b"")
                for offset, value in zip(offsets, decoded.values.to_list(), strict=True)
            ]
        return taken

    def _work(self, taken: Sequence[tuple[Claim, int, bytes]]) -> Steps:
        """Work on records for a while, and sometimes commit their offsets."""
        if self._rng.random() < self._habits.commit_share:
            yield from self._commit(waits=self._rng.random() < self._habits.waits_share)

    def _commit(self, *, waits: bool) -> Steps:
        """Commit all positions; `waits`: and wait for the answer."""
        offsets = self._positions()
        if not offsets:
            return
        who, _ = yield from self._call(GetGroup)
        results = self._asked(offsets, who)
        deadline_ns = self._host.now_ns() + ms_to_ns(CALL_TIMEOUT_MS)
        if waits:
            _, error = yield from self._call(Commit, deadline_ns, offsets)
            self._completed(results, error)
        else:
            heard: Completion[None] = Completion(lambda _value, error: self._completed(results, error))
            self._host.submit(self.handle, Commit(heard, deadline_ns, offsets))

    def _positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        self._commits += 1
        label = label_of(self._ledger.group, self.number, self._commits)
        return {
            partition_of(place): OffsetAndMetadata(claim.position, label)
            for place, claim in self.claims.items()
            if claim.position >= 0
        }

    def _asked(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], who: GroupMetadata
    ) -> list[CommitResult]:
        """Note in the ledger the commits of `offsets` that the member `who` asks for now."""
        session, now_ns = self._session(who), self._host.now_ns()
        results = [
            CommitResult(
                self.claims[place_of(of)], session, who.generation_id, one.offset, one.metadata, now_ns
            )
            for of, one in offsets.items()
        ]
        self._ledger.commits += results
        return results

    def _completed(self, results: Sequence[CommitResult], error: Exception | None) -> None:
        if self.ended:
            return  # nobody is there to be told
        if error is not None and not isinstance(error, FairleadError):
            raise error
        for commit in results:
            commit.answered_ns, commit.error = self._host.now_ns(), error

    def _leave(self) -> Steps:
        self.left = True
        if self._gate.change is None or not self._gate.change.lost:
            yield from self._commit(waits=True)
        stopped_ns = self._host.now_ns()
        yield from self._call(Unsubscribe)
        self._held({}, GroupMetadata(self._ledger.group), stopped_ns, "left")
        yield from self._call(Shut)
        self._end("left")

    def _end(self, how: str) -> None:
        for claim in self.claims.values():
            claim.ended_ns, claim.how = self._host.now_ns(), how
        self.claims.clear()
        super()._end(how)

    # Inside

    def _call(
        self, operation: Callable[Concatenate[Completion[T], P], object], *args: P.args, **kwargs: P.kwargs
    ) -> Part[tuple[T, Exception | None]]:
        return called(self.handle, operation, *args, **kwargs)
