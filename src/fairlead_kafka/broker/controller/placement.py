"""Placement of new partitions: around the ring of live brokers, each topic begins where the
previous one ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker.controller.image import ClusterImage, PartitionImage, TopicImage
from fairlead_kafka.broker.controller.limits import Limits, count_replicas

PARTITIONS_PER_TOPIC_MAX = 100_000
"""Most partitions of one topic, and of all topics that one request creates: a slip of the keyboard
should not take the process's memory. (Kafka creates 10,000 by one request.)"""

Replicas = tuple[int, ...]
Assignments = Mapping[int, Sequence[int]]
"""Partition number → replicas, the preferred leader first."""


Racks = Mapping[int, str | None]
"""Broker → the rack it is in; None: not said."""


def round_robin(
    broker_ids: Sequence[int],
    partition_count: int,
    replication_factor: int,
    start: int,
    racks: Racks | None = None,
) -> list[Replicas]:
    """Replicas of `partition_count` new partitions, the preferred leader first.

    The n-th partition's leader is the broker at `start` + n on the ring, so leaders are spread to
    within one. Its followers come after it at a distance that grows by one each time the ring has
    been gone round, so that a broker's partitions do not all share one follower (the idea of
    Kafka's `AdminUtils.assignReplicasToBrokers`). With `racks`, a rack that has a replica already
    is passed over as long as there are others (KIP-36). ValueError if there are too few brokers.
    """
    ring = len(broker_ids)
    if not 1 <= replication_factor <= ring:
        raise ValueError(f"{replication_factor} replicas need as many brokers; there are {ring}")
    others = ring - 1
    rows: list[Replicas] = []
    for number in range(start, start + min(partition_count, ring * max(others, 1))):
        leader, lap = number % ring, number // ring
        after = [broker_ids[(leader + 1 + (lap + step) % others) % ring] for step in range(others)]
        if racks is not None:
            after = _other_racks_first(broker_ids[leader], after, racks)
        rows.append((broker_ids[leader], *after[: replication_factor - 1]))
    return (rows * (partition_count // len(rows) + 1))[:partition_count]


def _other_racks_first(leader: int, followers: Sequence[int], racks: Racks) -> list[int]:
    used = {racks[leader]}
    first: list[int] = []
    for follower in followers:
        if racks[follower] not in used:
            used.add(racks[follower])
            first.append(follower)
    return first + [follower for follower in followers if follower not in first]


class Placement:
    """Chooses brokers for the replicas of partitions, and checks given ones. All methods raise
    BrokerError with Kafka's code for an impossible placement."""

    def __init__(self, image: ClusterImage, limits: Limits) -> None:
        self._image = image
        self._limits = limits
        self.placed = 0
        """Partitions placed so far, where the next topic starts on the ring; the controller
        counts."""

    def of_new_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        assignments: Assignments | None,
        defaults: Settings,
    ) -> list[Replicas]:
        """Replicas of each partition of a new topic: as assigned, or else around the ring; -1 is
        taken from `defaults`. BrokerError if the assignment is invalid."""
        if not assignments:
            count = defaults["num.partitions"] if partitions == -1 else partitions
            factor = (
                defaults["default.replication.factor"] if replication_factor == -1 else replication_factor
            )
            return self._limited_ring(count, factor, f"topic {name!r} with {count} partitions x {factor}")
        if partitions != -1 or replication_factor != -1:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                "an assignment was given, so partitions and replication factor must be -1",
            )
        check_partition_count(len(assignments))
        if sorted(assignments) != list(range(len(assignments))):
            raise BrokerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "the partitions of an assignment must be numbered 0, 1, 2, ...",
            )
        placed = self._all_checked(
            0, [assignments[number] for number in range(len(assignments))], len(assignments[0])
        )
        self._check_limits(placed, f"topic {name!r} with the {len(placed)} partitions assigned")
        return placed

    def of_more_partitions(
        self, topic: TopicImage, count: int, assignments: Sequence[Sequence[int]] | None
    ) -> list[Replicas]:
        """Replicas of the partitions that a topic needs to have `count` in all: `assignments`, in
        order, if they are given. BrokerError if `count` is not greater than now, or the assignments
        are invalid."""
        present = len(topic.partitions)
        if count <= present:
            text = f"Topic already has {present} partition(s)."
            if count < present:
                text = (
                    f"The topic {topic.name} currently has {present} partition(s); {count} would not be an "
                    "increase."
                )
            raise BrokerError(ErrorCode.INVALID_PARTITIONS, text)
        check_partition_count(count)
        factor, request = (
            topic.replication_factor,
            f"topic {topic.name!r} going from {present} to {count} partitions",
        )
        if assignments is None:
            return self._limited_ring(count - present, factor, f"{request} x {factor}")
        if len(assignments) != count - present:
            raise BrokerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{count - present} partitions are new, but {len(assignments)} assignments given",
            )
        placed = self._all_checked(present, assignments, factor)
        self._check_limits(placed, request)
        return placed

    def of_internal_topic(self, count: int, replication_factor: int) -> list[Replicas]:
        """Replicas of the partitions of an internal topic, to which no limit applies."""
        return self._ring(self._brokers(count, replication_factor), count, replication_factor)

    def new_partition(self, replicas: Replicas) -> PartitionImage:
        """A partition's first image: all live replicas are in sync, the first of them leads."""
        eligible = self._image.eligible()
        in_sync = tuple(node_id for node_id in replicas if node_id in eligible)
        return PartitionImage(replicas, in_sync or replicas[:1], in_sync[0] if in_sync else NO_LEADER, 0)

    def new_partitions(self, placed: Sequence[Replicas]) -> list[PartitionImage]:
        """First images of partitions; those with the same replicas share their tuples."""
        first = {replicas: self.new_partition(replicas) for replicas in set(placed)}
        return [
            PartitionImage(replicas, first[replicas].isr, first[replicas].leader, 0) for replicas in placed
        ]

    def checked(self, what: str, replicas: Sequence[int]) -> Replicas:
        """The replicas of one partition, given by hand. BrokerError(INVALID_REPLICA_ASSIGNMENT),
        about `what`, if they are invalid."""
        wrong = ""
        unknown = [node_id for node_id in replicas if node_id not in self._image.brokers]
        if not replicas:
            wrong = "no replicas given: name one broker at least"
        elif len(set(replicas)) != len(replicas):
            wrong = f"a broker is named twice: {list(replicas)}"
        elif unknown:
            wrong = (
                f"there is no broker {unknown[0]}; there are "
                f"{', '.join(map(str, sorted(self._image.brokers)))}"
            )
        if wrong:
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{what}: {wrong}")
        return tuple(replicas)

    # --- The ring

    def _brokers(self, count: int, replication_factor: int) -> list[int]:
        """The ring: brokers that can take a partition. BrokerError INVALID_REPLICATION_FACTOR if
        there are fewer than the replication factor."""
        check_partition_count(count)
        if replication_factor < 1:
            raise BrokerError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        eligible = self._image.eligible()
        if not eligible:
            text = "no broker can take a partition: all are down, about to stop or on a failed disk"
            raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
        known = len(self._image.brokers)
        if replication_factor > known:
            raise BrokerError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {replication_factor} time(s): The target replication "
                f"factor of {replication_factor} cannot be reached because only {known} broker(s) are "
                "registered.",
            )
        return sorted(eligible)

    def _ring(self, brokers: Sequence[int], count: int, replication_factor: int) -> list[Replicas]:
        missing = replication_factor - len(brokers)
        if missing <= 0:
            racks = {node_id: self._image.brokers[node_id].node.rack for node_id in brokers}
            known = None if None in racks.values() else racks
            return round_robin(brokers, count, replication_factor, self.placed, known)
        # Too few are alive: brokers that are down hold the last replicas, and catch up when they
        # are back (as KRaft places them).
        down = sorted(set(self._image.brokers) - set(brokers))
        live = round_robin(brokers, count, len(brokers), self.placed)
        return [
            replicas + tuple(down[(number + one) % len(down)] for one in range(missing))
            for number, replicas in enumerate(live)
        ]

    def _limited_ring(self, count: int, replication_factor: int, request: str) -> list[Replicas]:
        brokers = self._brokers(count, replication_factor)
        self._limits.check_all(count * replication_factor, request)
        placed = self._ring(brokers, count, replication_factor)
        room = self._limits.room(self._image.brokers)
        if not room or all(
            wanted <= room.get(node_id, wanted) for node_id, wanted in count_replicas(placed).items()
        ):
            return placed
        ring = brokers if len(brokers) >= replication_factor else sorted(self._image.brokers)
        spread = fitted(ring, count, replication_factor, self.placed, room)
        if spread is None:
            full = sorted(node_id for node_id, free in room.items() if free < count)
            raise self._limits.refused(full, request, f"{count * replication_factor} more partition replicas")
        return spread

    def _check_limits(self, placed: Sequence[Replicas], request: str) -> None:
        counted = count_replicas(placed)
        self._limits.check_all(sum(counted.values()), request)
        self._limits.check_brokers(counted, request)

    def _all_checked(
        self, first: int, assignments: Sequence[Sequence[int]], replication_factor: int
    ) -> list[Replicas]:
        checked = [
            self.checked(f"partition {number}", replicas)
            for number, replicas in enumerate(assignments, first)
        ]
        for number, replicas in enumerate(checked, first):
            if len(replicas) != replication_factor:
                raise BrokerError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"partition {number} is assigned {len(replicas)} replicas, others of the topic "
                    f"{replication_factor}: give all as many",
                )
            if self._image.eligible().isdisjoint(
                replicas
            ):  # as KRaft's `ReplicationControlManager.createTopic`: nobody could lead it
                named = ", ".join(map(str, replicas))
                text = (
                    f"partition {number}: none of the brokers {named} can take it: all are down, "
                    "stopping or on a failed disk"
                )
                raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        return checked


def fitted(
    brokers: Sequence[int], count: int, replication_factor: int, start: int, room: Mapping[int, int]
) -> list[Replicas] | None:
    """Replicas of `count` partitions on brokers of which some have `room` for only few more: full
    ones are left out of the ring. None if it is impossible.

    A broker with room for all remaining partitions wastes some of it when it is passed over. As
    long as that is affordable the ring decides; from then on such brokers go first, or the last
    partitions would find too few brokers (the condition of Gale and Ryser).
    """
    left = {node_id: min(room.get(node_id, count), count) for node_id in brokers}
    if sum(left.values()) < count * replication_factor:
        return None
    placed: list[Replicas] = []
    for number in range(count):
        to_come = count - number
        order = [brokers[(start + number + step) % len(brokers)] for step in range(len(brokers))]
        free = [node_id for node_id in order if left[node_id]]
        roomy = {node_id for node_id in free if left[node_id] >= to_come}
        spare = sum(min(left[node_id], to_come) for node_id in free) - to_come * replication_factor
        if len(roomy.difference(free[:replication_factor])) > spare:
            free.sort(key=lambda node_id: node_id not in roomy)
        chosen = set(free[:replication_factor])
        placed.append(tuple(node_id for node_id in order if node_id in chosen))
        for node_id in chosen:
            left[node_id] -= 1
    return placed


def check_batch_size(counts: Iterable[int]) -> None:
    """Raise BrokerError(POLICY_VIOLATION) if topics with so many partitions are too many for one
    decision, during which no broker is heard (Kafka's `validateTotalNumberOfPartitions`)."""
    if sum(count for count in counts if 0 < count <= PARTITIONS_PER_TOPIC_MAX) > PARTITIONS_PER_TOPIC_MAX:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def check_partition_count(count: int) -> None:
    """Raise BrokerError(INVALID_PARTITIONS) unless a topic can have `count` partitions."""
    if count < 1:
        raise BrokerError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    if not 1 <= count <= PARTITIONS_PER_TOPIC_MAX:
        raise BrokerError(
            ErrorCode.INVALID_PARTITIONS,
            f"a topic has 1 to {PARTITIONS_PER_TOPIC_MAX} partitions, not {count}",
        )
