"""`ModelCluster`: the state of a model cluster that its brokers and their coordinator read.

`ProduceCluster` has it. Model brokers see only this part of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead_kafka.records import BatchHeader
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.model_log import ModelLog
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.wire import ApiKey

PORT = 9092
"""Port on which every model broker listens, under its own name."""


@dataclass(slots=True, frozen=True)
class Refusal:
    """A script's answer to a batch: an error code; `written`: it is written all the same."""

    error_code: int
    written: bool = False


OnProduce = Callable[[int, str, int, BatchHeader], Refusal | None]
"""(node id, topic, partition, header of the batch) → how to refuse it, or None to serve it."""
OnRequest = Callable[[int, ApiKey], int]
"""(node id, API) → the error code to answer with, or 0."""


class ModelNode(Protocol):
    """One model broker, as the others know it."""

    @property
    def node_id(self) -> int:
        """The broker's id, counted from 0."""

    @property
    def name(self) -> str:
        """The broker's host name."""

    @property
    def running(self) -> bool:
        """True unless the broker was killed."""


class ModelCluster(Protocol):
    """State that model brokers share: the log, each other, and faults that a script may set at any
    time."""

    host: VirtualHost
    name: str
    log: ModelLog
    script: Script
    """Events of the cluster itself: transaction timeouts, markers."""
    keeps_records: bool
    """True if the log keeps records, not headers alone."""
    forgetful: bool
    """True if brokers answer as those before Kafka 2.5."""
    max_message_bytes: int
    first_epoch: int
    """The epoch that new producer ids begin with."""
    metadata_lag_ns: int
    """Ns after a leader change in which other brokers still name the previous leader."""
    on_produce: OnProduce | None

    @property
    def machines(self) -> Sequence[ModelNode]:
        """All brokers, by id."""

    def replication_ns(self) -> int:
        """Time that the answer to one request waits for other brokers, ns."""

    def markers_ms(self) -> float:
        """Time until the markers of one transaction are written, ms."""

    def coordinator_error(self, node_id: int, api_key: ApiKey) -> int:
        """The error code that a script wants for this request, or 0."""
