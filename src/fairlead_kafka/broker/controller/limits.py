"""KIP-578: limits of partition replicas on one broker, and on all together.
`docs/concepts/kip-578.md` discusses the KIP's wording.

`max.broker.partitions` bounds each broker, with the value that counts for that broker;
`max.partitions` bounds the sum over all brokers, with the smallest value that counts for any of
them. Every replica counts, also one that is being added or removed; internal topics are not
counted. A limit only refuses new replicas: a broker that is above it, because it was lowered,
continues to serve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import LONG_MAX
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller.configs import Configs
from fairlead_kafka.broker.controller.image import (
    BrokerConfigsChanged,
    BrokersChanged,
    Change,
    ClusterImage,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)

PER_BROKER: Final = "max.broker.partitions"
IN_ALL: Final = "max.partitions"


def count_replicas(placed: Iterable[Sequence[int]]) -> Counter[int]:
    """How many of the replicas `placed` are on each broker, by node id."""
    counted: Counter[int] = Counter()
    for replicas, times in Counter(map(tuple, placed)).items():
        for node_id in replicas:
            counted[node_id] += times
    return counted


class Limits:
    """Counts the replicas that brokers hold, and says whether they may hold more (KIP-578)."""

    def __init__(self, image: ClusterImage, configs: Configs) -> None:
        self._image = image
        self._configs = configs
        self._held: Counter[int] | None = None
        self._planned: Counter[int] = Counter()
        self._of_brokers: dict[int, int] = {}
        self._in_all: int | None = None

    # --- What is held

    def note(self, change: Change | None) -> None:
        """Update counts and limits after a change of the image."""
        if isinstance(change, BrokerConfigsChanged | BrokersChanged):
            self._of_brokers.clear()
            self._in_all = None
        if self._held is None:
            return
        if isinstance(change, TopicCreated | TopicDeleted | PartitionsAdded) and not change.topic.internal:
            first = change.first if isinstance(change, PartitionsAdded) else 0
            counted = count_replicas(one.replicas for one in change.topic.partitions[first:])
            if isinstance(change, TopicDeleted):
                self._held.subtract(counted)
            else:
                self._held.update(counted)

    def forget(self) -> None:
        """Called when replicas moved: they are counted again when the counts are next needed."""
        self._held = None

    def held(self) -> Counter[int]:
        """Number of replicas of each broker, of topics that are not internal, with those planned in
        the decision that is being made."""
        if self._held is None:
            topics = [topic for topic in self._image.topics.values() if not topic.internal]
            self._held = count_replicas(one.replicas for topic in topics for one in topic.partitions)
        return self._held + self._planned if self._planned else self._held

    def plan(self, placed: Iterable[Sequence[int]]) -> None:
        """Count the planned replicas `placed` until `planned_all`, for a decision may consist of
        several requests."""
        self._planned.update(count_replicas(placed))

    def planned_all(self) -> None:
        """Forget the planned replicas: the decision was made, or given up."""
        self._planned.clear()

    # --- What may be held

    def of_broker(self, node_id: int) -> int:
        """The value of `max.broker.partitions` that holds for a broker."""
        if node_id not in self._of_brokers:
            self._of_brokers[node_id] = self._configs.broker_settings(str(node_id))[PER_BROKER]
        return self._of_brokers[node_id]

    def in_all(self) -> int:
        """The value of `max.partitions` that holds for the cluster: the smallest of any
        broker's."""
        if self._in_all is None:
            every = (self._configs.broker_settings(str(node_id))[IN_ALL] for node_id in self._image.brokers)
            self._in_all = min(every, default=LONG_MAX)
        return self._in_all

    def room(self, node_ids: Iterable[int]) -> dict[int, int]:
        """How many more replicas each broker may have; brokers without a limit are left out."""
        limits = {node_id: self.of_broker(node_id) for node_id in node_ids}
        if all(limit == LONG_MAX for limit in limits.values()):
            return {}
        held = self.held()
        return {
            node_id: max(0, limit - held[node_id]) for node_id, limit in limits.items() if limit != LONG_MAX
        }

    def check_all(self, more: int, request: str) -> None:
        """Raise BrokerError(POLICY_VIOLATION) if all brokers together may not have `more` further
        replicas."""
        limit = self.in_all()
        if more <= 0 or limit == LONG_MAX:
            return
        held = sum(self.held().values())
        if held + more > limit:
            raise BrokerError(
                ErrorCode.POLICY_VIOLATION,
                f"{IN_ALL}: {request} asks for {more} more partition replicas, and the brokers hold {held} "
                f"of {limit} at most: "
                f"delete topics, ask for less, or raise {IN_ALL}",
            )

    def check_brokers(self, more: Mapping[int, int], request: str) -> None:
        """Raise BrokerError(POLICY_VIOLATION) if a broker may not have as many further replicas as
        `more` says."""
        room = self.room(more)
        full = sorted(node_id for node_id, free in room.items() if more[node_id] > free)
        if full:
            raise self.refused(full, request, f"{sum(more.values())} more partition replicas")

    def refused(self, full: Sequence[int], request: str, wanted: str) -> BrokerError:
        """The error for a request, which says which brokers are too full for it."""
        held = self.held()
        limits_text = ", ".join(
            f"broker {node_id} holds {held[node_id]} of {self.of_broker(node_id)}" for node_id in full[:10]
        )
        more = f" and {len(full) - 10} brokers more are full" if len(full) > 10 else ""
        return BrokerError(
            ErrorCode.POLICY_VIOLATION,
            f"{PER_BROKER}: {request} asks for {wanted}, and {limits_text} at most{more}: "
            "delete topics, ask for less, add brokers, "
            f"or raise {PER_BROKER}",
        )

    def check_growth(self, before: Sequence[int], replicas: Sequence[int], request: str) -> None:
        """Raise BrokerError(POLICY_VIOLATION) if brokers may not have a partition's replicas that
        are new in `replicas`."""
        new = [node_id for node_id in replicas if node_id not in before]
        if new:
            self.check_all(len(new), request)
            self.check_brokers(Counter(new), request)
