"""One process that is a member of a group: a real consumer machine, and an application that polls,
commits, hangs, and takes over and gives up what its group tells it to.

The application is a generator, as in `transactional`: it yields how many ms to wait, or an
operation for a machine, and is sent its result. What it is told goes into the ledger of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import BrokerError, FairleadError
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
from fairlead_kafka.runtime import Handle, VirtualHost
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
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.workload import Completion

TAKE_BYTES = 20_000
CALL_TIMEOUT_MS = 700.0
"""Milliseconds that a commit is waited for."""
REFUSALS = frozenset(
    {
        ErrorCode.UNRELEASED_INSTANCE_ID,  # the member that died has its place until its session ends
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,  # the migration policy does not let the group change its protocol
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    }
)
"""Errors of a group after which a process ends and another begins."""
P = ParamSpec("P")
T = TypeVar("T")


class Call(NamedTuple):
    """An operation for a machine; `make` is given its completion."""

    handle: Handle
    make: Callable[[Completion[object]], object]


Answer: TypeAlias = "tuple[object, Exception | None]"
Part: TypeAlias = Generator["float | Call", Answer, T]
"""A part of a process's life, which returns a `T`. It waits for so many ms, or for a call's answer."""
Steps: TypeAlias = Part[None]


def called(
    handle: Handle,
    operation: Callable[Concatenate[Completion[T], P], object],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Part[tuple[T, Exception | None]]:
    """Submit `operation(completion, *args, **kwargs)`; its result, which is nothing with an error,
    and its error."""

    def make(done: Completion[object]) -> object:
        return operation(cast("Completion[T]", done), *args, **kwargs)

    value, error = yield Call(handle, make)
    return cast("T", value), error  # the answer to a call is its operation's


class Habits(NamedTuple):
    """How the application of a member behaves."""

    poll_ms: float
    """Milliseconds that a poll waits."""
    work_ms: float
    """Most milliseconds between two polls."""
    commit_share: float
    """Share of polls with records after which it commits."""
    waits_share: float
    """Share of commits that it waits for."""
    commits_when_revoked: bool


class Stage(NamedTuple):
    """The world, as far as members know it."""

    host: VirtualHost
    script: Script
    violated: Callable[[str], None]


class Role(NamedTuple):
    """Description of one process; `config`: of its consumer."""

    number: int
    rng: Random
    config: Mapping[str, object]
    habits: Habits
    ledger: GroupLedger


class MemberProcess:
    """One life of a member. `ended` is called once, with True if it is to be replaced."""

    def __init__(self, stage: Stage, role: Role, ended: Callable[[MemberProcess], None]) -> None:
        self.number = role.number
        self.claims: dict[Place, Claim] = {}
        """Partitions that it holds now."""
        self.ended = False
        self.left = False
        self.protocol = str(role.config["group.protocol"])
        self._host, self._script, self._violated = stage
        self._rng, self._habits, self._ledger = role.rng, role.habits, role.ledger
        self._on_ended = ended
        self._gate = Gate()
        self.machine = ConsumerMachine(CLIENT_CONFIGS.parse("consumer", role.config), role.rng, self._gate)
        self.handle = stage.host.add(self.machine)
        self._generations: dict[TopicPartition, int] = {}
        self._losses = self._commits = 0
        self._topics: Sequence[str] = ()
        self._wanted: Sequence[str] = ()
        self._nap_ms = 0.0
        self._closing = False

    # What the story does with it

    def begin(self, topics: Sequence[str]) -> None:
        """Subscribe, and poll from now on."""
        self._wanted = topics
        steps = self._living()
        self._go_on(steps, lambda: next(steps))

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read these topics from the next poll on."""
        self._wanted = topics

    def nap(self, ms: float) -> None:
        """Do not poll for so long: the application hangs, its machine does not."""
        self._nap_ms = ms

    def close(self) -> None:
        """Commit, leave the group, and end."""
        self._closing, self._nap_ms = True, 0.0

    def position(self, place: Place) -> int:
        """The offset of the next record that a poll would give; -1: not known yet."""
        found = self.machine.positions().get(partition_of(place))
        return -1 if found is None else found.offset

    def kill(self) -> None:
        """End as `kill -9` does."""
        if not self.ended:
            self._end("died")

    # The life

    def _living(self) -> Steps:
        while not self._closing:
            if self._nap_ms:
                wait_ms, self._nap_ms = self._nap_ms, 0.0
                yield wait_ms
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

    def _ends(self, error: Exception) -> bool:
        """True if the error ends this process; a retriable one is passed over by the next poll."""
        if not isinstance(error, FairleadError):
            raise error
        if isinstance(error, BrokerError) and error.code in REFUSALS:
            return True
        if isinstance(error, BrokerError) and error.retriable:
            return False
        self._violated(f"group {self._ledger.group}: process {self.number} was told {error!r}")
        return True

    def _make(self, change: GroupChange) -> Steps:
        """Do the application's part of a change, and see what is held afterwards."""
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
        """Note the records of chunks that are still wanted; (claim, offset, value) of each."""
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
        """Work on records; a part of the time, commit what was worked on."""
        if self._rng.random() < self._habits.commit_share:
            yield from self._commit(waits=self._rng.random() < self._habits.waits_share)

    def _commit(self, *, waits: bool) -> Steps:
        """Commit all positions."""
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
        """Note a commit that is asked for now."""
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
        self.ended = True
        for claim in self.claims.values():
            claim.ended_ns, claim.how = self._host.now_ns(), how
        self.claims.clear()
        self._script.after(0.0, self._removed)

    def _removed(self) -> None:
        self._host.remove(self.handle)
        self._on_ended(self)

    # Inside

    def _call(
        self, operation: Callable[Concatenate[Completion[T], P], object], *args: P.args, **kwargs: P.kwargs
    ) -> Part[tuple[T, Exception | None]]:
        return called(self.handle, operation, *args, **kwargs)

    def _go_on(self, steps: Steps, step: Callable[[], float | Call]) -> None:
        if self.ended:
            return
        try:
            wanted = step()
        except StopIteration:
            return
        if isinstance(wanted, Call):
            self._host.submit(wanted.handle, wanted.make(Completion(partial(self._answered, steps))))
        else:
            self._script.after(wanted, self._answered, steps, None, None)

    def _answered(self, steps: Steps, value: object, error: Exception | None) -> None:
        self._go_on(steps, lambda: steps.send((value, error)))
