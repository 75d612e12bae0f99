"""The part of a member that is the same for both group protocols.

It has a network of its own, requests to the coordinator, commits and committed offsets, and the
change that waits at the gate. `membership` is the classic protocol, `reconciling` that of KIP-848.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from fairlead_kafka.base.codes import policy
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import AuthenticationFailed, BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.groups.calls import CoordinatorCalls
from fairlead_kafka.consumer.groups.gate import Gate, GroupChange
from fairlead_kafka.consumer.groups.operations import SubscriptionPattern
from fairlead_kafka.consumer.groups.watch import Watch
from fairlead_kafka.consumer.metrics import Recorder
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.event_log import (
    GROUP_JOINED,
    GROUP_LEFT,
    MEMBER_FENCED,
    MEMBERSHIP_FAILED,
    PARTITIONS_ASSIGNED,
    PARTITIONS_LOST,
    PARTITIONS_REVOKED,
    POLL_TOO_LATE,
    Event,
)
from fairlead_kafka.core.events import ConnectionEvent
from fairlead_kafka.core.group_offsets import NO_GENERATION, GroupMetadata, OffsetAndMetadata
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.script import Done, Scripts, Steps, T

_FOR_EVER_NS = 2**63 - 1
_IN_FLIGHT_MAX = 8


class Assignee(Protocol):
    """The machine whose assignment the group makes."""

    def assigned(self) -> Sequence[TopicPartition]:
        """The partitions assigned now."""

    def adopt(self, partitions: Sequence[TopicPartition]) -> None:
        """Read exactly these partitions from now on; those assigned before keep their positions."""


class Member(ABC):
    """Membership of the group `group.id`, which may not have been joined yet.

    `gate` is shared with the client class; `network` is the consumer's own, beside which the member
    has one for its coordinator.
    """

    def __init__(
        self,
        settings: Settings,
        rng: Rng,
        network: Network,
        gate: Gate,
        assignee: Assignee,
        recorder: Recorder,
    ) -> None:
        self._settings = settings
        self._recorder = recorder
        self._assignee = assignee
        self._gate = gate
        group_id = settings["group.id"]
        assert group_id is not None, "a machine without group.id has no member"
        self.group_id = group_id
        self._instance_id: str | None = settings["group.instance.id"]
        self.network = self._network = Network(
            settings, rng, max_in_flight=_IN_FLIGHT_MAX, traffic=recorder, beside=network
        )
        self._scripts = Scripts(
            self._network, rng, Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"])
        )
        self._calls = CoordinatorCalls(settings, self._network.metadata, self.group_id, network.metadata)
        self._watch = Watch(settings)
        self.generation = NO_GENERATION
        """Generation, or member epoch; NO_GENERATION: not in the group."""
        self._last: GroupMetadata | None = None
        """The member as it was when it was in the group last; None: never since it subscribed."""
        self.error: Exception | None = None
        """Error that every poll raises, until a new subscription."""
        self._attempt = 0
        """Number of this membership, or attempt at one: answers to an older one are ignored."""
        self._change_number = 0
        self._beat_at_ns = 0
        self._beating = False
        """A heartbeat is under way."""
        self.now_ns = 0
        """Time of the machine's step, monotonic; set before its operations are handled."""

    # --- What the machine asks

    @property
    @abstractmethod
    def subscribed(self) -> bool:
        """True if partitions come from the group."""

    @abstractmethod
    def subscribe(self, topics: Sequence[str], pattern: re.Pattern[str] | SubscriptionPattern | None) -> None:
        """Read these topics, or all whose whole name the pattern matches, from now on."""

    @abstractmethod
    def leave(self, done: Callable[[], None]) -> None:
        """Leave the group, if it is in one. `done()` is called once the coordinator knows that, or
        cannot be reached."""

    @abstractmethod
    def who(self) -> GroupMetadata:
        """Sender of commits: this member as it is now, or only the group if not subscribed."""

    @abstractmethod
    def advance(self, now_ns: int, wall_ms: int) -> None:
        """Work on answers and on what is due. `now_ns` is monotonic, `wall_ms` milliseconds since
        1970."""

    @abstractmethod
    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""

    @abstractmethod
    def check(self) -> None:
        """Raise CheckFailed unless what is kept of the membership fits its state."""

    @abstractmethod
    def _taken(self, change: GroupChange) -> None:
        """Called when the client class has done its part of a change; does nothing by default."""

    @abstractmethod
    def _commit_script(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Steps[None]:
        """A script that commits, in the name of the member as it is now."""

    @abstractmethod
    def _committed_script(
        self, partitions: Sequence[TopicPartition]
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """A script that looks committed offsets up."""

    @abstractmethod
    def _refused(self, code: int) -> None:
        """React to an error in the answer to a request about offsets in this member's name."""

    def metadata(self) -> GroupMetadata:
        """Sender of offsets in transactions: this member, as it was last if it is out of the group.

        A producer that takes this along is refused then (KIP-447). Without a generation it would be
        taken for one that is no member, whose offsets an empty group takes.
        """
        if self.subscribed and self.generation == NO_GENERATION and self._last is not None:
            return self._last
        return self.who()

    def _parted(self) -> None:
        """Note that this member is out of the group, until the next join."""
        if self.generation != NO_GENERATION:
            self._last = self.who()
        self.generation = NO_GENERATION

    def topics(self) -> tuple[str, ...]:
        """Topics subscribed to, as far as they are known."""
        return self._watch.topics or ()

    def acknowledge(self, number: int) -> bool:
        """Make change `number`, for which the client did its part; False if it was overtaken."""
        change = self._gate.change
        if change is None or change.number != number:
            return False
        self._gate.change = None
        self._taken(change)
        return True

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline_ns: int, done: Done[None]
    ) -> None:
        """Commit offsets; done(None, error).

        One commit at a time, in the order of the calls: one that is asked again must not set back
        what a later one has committed. It is made in the name of the membership that it was asked
        for in.
        """
        if self.error is not None:
            done(None, self.error)
            return
        if self.subscribed and self.generation == NO_GENERATION:
            done(None, self._calls.not_a_member())
            return

        what = f"committing offsets of group {self.group_id!r}"
        script = self._commit_script(offsets)
        self._scripts.start(what, script, deadline_ns, self._reacting(done), line="commits")

    def committed(
        self,
        partitions: Sequence[TopicPartition],
        deadline_ns: int,
        done: Done[dict[TopicPartition, OffsetAndMetadata | None]],
    ) -> None:
        """Look up committed offsets; done({partition: OffsetAndMetadata | None}, error)."""
        what = f"reading offsets of group {self.group_id!r}"
        self._scripts.start(what, self._committed_script(partitions), deadline_ns, self._reacting(done))

    def _reacting(self, done: Done[T]) -> Done[T]:
        """Wrap `done`, so that the member reacts to an error before `done` is called, unless it has
        joined again or left since."""
        attempt = self._attempt

        def completed(value: T | None, error: Exception | None) -> None:
            if isinstance(error, BrokerError) and self.subscribed and attempt == self._attempt:
                self._refused(error.code)
            done(value, error)

        return completed

    # --- The machine's step

    def handle(self, event: ConnectionEvent, now_ns: int, wall_ms: int) -> None:
        """Handle an event of a connection; those of other parts' connections are ignored."""
        self._network.handle(event, now_ns, wall_ms)

    def take_refusals(self) -> list[tuple[int | None, AuthenticationFailed]]:
        """Failed log-ins since the last call; see `Network.take_refusals`."""
        return self._network.take_refusals()

    def take_effects(self) -> list[Effect]:
        """Take the effects of this step, which the host carries out."""
        return self._network.take_effects()

    def close(self, error: Exception) -> None:
        """Fail what is under way with `error`, and close the connections."""
        self._scripts.close(error)
        self._network.close()

    # --- For both protocols

    def _start(self, what: str, script: Steps[T], done: Done[T]) -> None:
        self._scripts.start(f"{what} for group {self.group_id!r}", script, _FOR_EVER_NS, done)

    def _announce(
        self,
        *,
        revoked: tuple[TopicPartition, ...],
        added: tuple[TopicPartition, ...] = (),
        lost: bool = False,
        complete: bool = False,
    ) -> None:
        """Have the client make a change; make it at once if the client has no part in it."""
        if revoked:
            self._log(PARTITIONS_LOST if lost else PARTITIONS_REVOKED, len(revoked), revoked)
        if added or (complete and not revoked):
            self._log(PARTITIONS_ASSIGNED, len(added), added)
        self._change_number += 1
        change = GroupChange(self._change_number, revoked, added, lost, complete)
        if revoked or complete:
            self._gate.change = change
        else:
            self._gate.change = None
            self._taken(change)

    def _log(self, event: Event, *values: object) -> None:
        self._network.events.log(event, self.group_id, *values)

    def _log_joined(self) -> None:
        who = self.who()
        self._log(GROUP_JOINED, who.member_id, who.generation_id)

    def _log_left(self) -> None:
        if self.generation != NO_GENERATION:
            self._log(GROUP_LEFT, self.who().member_id)

    def _log_fenced(self, code: int) -> None:
        self._log(MEMBER_FENCED, self.who().member_id, policy(code).name)

    def _log_silence(self) -> None:
        self._log(POLL_TOO_LATE, self.who().member_id, self._settings["max.poll.interval.ms"])

    def _log_failed(self, error: Exception) -> None:
        self._log(MEMBERSHIP_FAILED, error)

    def _polled(self) -> None:
        """Count `max.poll.interval.ms` from now, at the earliest: the application polls."""
        self._gate.polled_ns = max(self._gate.polled_ns, self.now_ns)

    def _absent_at_ns(self) -> int:
        return self._gate.polled_ns + ms_to_ns(self._settings["max.poll.interval.ms"])

    def _absent(self) -> bool:
        return self.now_ns >= self._absent_at_ns()

    def _instance_taken(self, code: int) -> BrokerError:
        text = f"group {self.group_id!r}: another consumer has taken group.instance.id {self._instance_id!r}"
        return BrokerError(code, f"{text}; give each its own")

    def _next_ns(self, *times: int | None) -> int | None:
        """The earliest time, in ns, at which the member, the network or a script has something to
        do."""
        known = (self._network.deadline_ns(), self._scripts.deadline_ns(), *times)
        return min((at_ns for at_ns in known if at_ns is not None), default=None)
