"""The list of the broker's parts that handlers of requests may use."""

from __future__ import annotations

from typing import Protocol

from fairlead_kafka.base.config import Settings
from fairlead_kafka.broker.control import ProducerIds
from fairlead_kafka.broker.coordinator import GroupCoordinator
from fairlead_kafka.broker.fetch_sessions import FetchSessionHost, FetchSessions
from fairlead_kafka.broker.internal import MarkerHost
from fairlead_kafka.broker.links import Links
from fairlead_kafka.broker.partitions import HostedPartitions, PartitionsHost
from fairlead_kafka.broker.purgatory import Deadlines
from fairlead_kafka.broker.quotas.quotas import Quotas
from fairlead_kafka.broker.share_groups import (
    ShareCoordinator,
    SharePartitions,
    ShareSessions,
    StatePersister,
)
from fairlead_kafka.broker.telemetry import ClientTelemetry
from fairlead_kafka.broker.timers import DelayHost
from fairlead_kafka.broker.transactions import TransactionCoordinator, Verifier
from fairlead_kafka.core.machine import Rng


class AnswerRoom(Protocol):
    """The bound on the bytes of answers that clients of a broker have not read yet."""

    @property
    def answer_room_bytes(self) -> int:
        """Bytes that an answer may have, by what other connections have not fetched yet."""


class Services(PartitionsHost, FetchSessionHost, MarkerHost, DelayHost, Protocol):
    """A broker as the handlers of `broker.api` see it (`machine.Broker` is one).

    Its clock stands still during a step: `now_ns` on the host's clock, `wall_ms` since 1970.
    """

    settings: Settings
    """The broker's configs, dynamic ones included; replaced when one changes, so read late."""
    folder: str
    """Path of the broker's files."""
    coordinator: GroupCoordinator
    transactions: TransactionCoordinator
    verifier: Verifier
    producer_ids: ProducerIds
    partitions: HostedPartitions
    links: Links
    quotas: Quotas
    fetch_sessions: FetchSessions
    deadlines: Deadlines
    telemetry: ClientTelemetry
    rng: Rng
    share_coordinator: ShareCoordinator
    share_persister: StatePersister
    share_partitions: SharePartitions
    share_sessions: ShareSessions

    @property
    def clients(self) -> AnswerRoom:
        """The connections of clients."""
