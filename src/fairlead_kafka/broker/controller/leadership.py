"""Elections by request and periodic ones: preferred leaders (KIP-460), and leaders that were not in
sync."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller.brokers import Brokers
from fairlead_kafka.broker.controller.elections import Electorate, after_coming, preferred
from fairlead_kafka.broker.controller.fold import ChangedPartition, changed_records
from fairlead_kafka.broker.controller.image import PartitionImage
from fairlead_kafka.broker.controller.journal import Journal

_logger = GuardedLogger("fairlead_kafka.broker")

_MS_PER_SECOND = 1_000


class ElectionType(IntEnum):
    """Types of elections, by the protocol's numbers."""

    PREFERRED = 0
    UNCLEAN = 1


Named = tuple[str, int]
"""A topic's name and a partition's number."""


class Leadership:
    """Decides on elections that are asked for, and on regular ones of preferred leaders."""

    def __init__(self, journal: Journal, brokers: Brokers) -> None:
        self._journal = journal
        self._brokers = brokers
        self._balanced_ns: int | None = None

    def elect(
        self, election_type: int, partitions: Sequence[Named] | None
    ) -> list[tuple[str, int, BrokerError | None]]:
        """Hold elections, in one decision; for each partition None, or the error. `partitions`
        None: all partitions; those that need no election are left out.

        BrokerError(INVALID_REQUEST) if there is no such type.
        """
        election = _election(election_type)
        image, electorate = self._journal.image, self._brokers.electorate()
        named = (
            [(topic.name, number) for topic, number, _ in image.partitions()]
            if partitions is None
            else partitions
        )
        results: list[tuple[str, int, BrokerError | None]] = []
        changes: dict[Named, ChangedPartition] = {}
        for name, number in named:
            before = image.partition(name, number)
            if before is None:
                results.append(
                    (
                        name,
                        number,
                        BrokerError(
                            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{number}"
                        ),
                    )
                )
                continue
            after = _elected(before, election, electorate)
            if isinstance(after, PartitionImage):
                changes[name, number] = (image.topics[name], number, after)
                results.append((name, number, None))
            elif partitions is not None or after != ErrorCode.ELECTION_NOT_NEEDED:
                results.append((name, number, BrokerError(after, _REASONS[after].format(before=before))))
        if changes:
            self._journal.commit(changed_records(changes.values()))
        return results

    def elect_unclean(self) -> None:
        """Elect leaders that are not in sync for partitions without one, after unclean election was
        enabled."""
        electorate = self._brokers.electorate()
        records = changed_records(
            self._brokers.changes(lambda one, unclean, _: after_coming(one, electorate, unclean))
        )
        if records:
            self._journal.commit(records)

    # --- What comes round

    def tick(self, now_ns: int) -> None:
        """Elect preferred leaders, if `auto.leader.rebalance.enable` is on and it is time."""
        if self._balanced_ns is None:
            self._balanced_ns = now_ns
        if now_ns - self._balanced_ns >= self._interval_ns():
            self._balanced_ns = now_ns
            if self._settings()["auto.leader.rebalance.enable"]:
                try:
                    self.balance()
                except BrokerError as error:
                    _logger.warning("partitions were not given back to their preferred leaders: %s", error)

    def deadline_ns(self) -> int | None:
        """Time at which `tick` has something to do, ns; None: there is nothing."""
        return None if self._balanced_ns is None else self._balanced_ns + self._interval_ns()

    def balance(self) -> None:
        """Elect the preferred leader of every partition whose preferred leader can lead."""
        electorate = self._brokers.electorate()
        records = changed_records(self._brokers.changes(lambda one, *_: preferred(one, electorate)))
        if records:
            self._journal.commit(records)

    def _interval_ns(self) -> int:
        return ms_to_ns(self._settings()["leader.imbalance.check.interval.seconds"] * _MS_PER_SECOND)

    def _settings(self) -> Settings:
        return self._journal.configs.broker_settings()


_REASONS: dict[int, str] = {
    ErrorCode.ELECTION_NOT_NEEDED: "broker {before.leader} leads it already, as it should",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "its preferred leader is not alive or not in sync (replicas "
    "{before.replicas}, in sync "
    "{before.isr}): start it, or wait until it has caught up",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "none of its replicas {before.replicas} is alive: start one of "
    "these brokers",
}


def _elected(before: PartitionImage, election: ElectionType, electorate: Electorate) -> PartitionImage | int:
    """The partition after an election, or the error code that says why there is none (Kafka's
    `electLeader`)."""
    if election is ElectionType.PREFERRED:
        if before.leader == before.target_replicas[0]:
            return ErrorCode.ELECTION_NOT_NEEDED
        return preferred(before, electorate) or ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    if before.leader != NO_LEADER:
        return ErrorCode.ELECTION_NOT_NEEDED
    after = after_coming(before, electorate, True)
    return (
        after if after is not None and after.leader != NO_LEADER else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    )


def _election(number: int) -> ElectionType:
    try:
        return ElectionType(number)
    except ValueError:
        known = ", ".join(f"{one} {one.name.lower()}" for one in ElectionType)
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"election type {number}: there are {known}") from None
