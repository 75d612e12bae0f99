"""`Parts`: what the sending half of one producer shares."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.producer.identity import Identity
from fairlead_kafka.producer.ledger import Ledger
from fairlead_kafka.producer.metrics import Recorder
from fairlead_kafka.producer.nodes import Nodes
from fairlead_kafka.producer.schedule import Schedule
from fairlead_kafka.producer.settings import ProducerSettings
from fairlead_kafka.producer.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one producer's machine that accumulator, drain and sender work with.

    `ProducerMachine` makes them once; each is described in its own module.
    """

    settings: ProducerSettings
    network: Network
    schedule: Schedule
    ledger: Ledger
    identity: Identity
    transactions: Transactions
    nodes: Nodes
    recorder: Recorder
    rng: Rng
