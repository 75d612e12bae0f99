"""A transactional producer in virtual time, with a cluster that has coordinators."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.producer import Producer
from fairlead_kafka.producer.transaction_states import TransactionState
from fairlead_kafka.wire import ApiKey
from tests.support.producer_rig import Rig
from tests.support.transaction_broker import FakeTransactions

LIFE = [
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
]
"""What coordinators are asked, in the order of a transaction's life."""
SOURCE = TopicPartition("source", 0)


class Scene:
    """A rig with coordinators, and one transactional producer."""

    def __init__(self) -> None:
        self.rig = Rig(brokers=2)
        self.cluster = self.rig.cluster
        self.cluster.create("t", 2)
        self.coordinator = FakeTransactions(self.cluster)
        self.producer = self.another()

    def another(self, **more: Any) -> Producer:
        return self.rig.producer(
            **{"transactional_id": "app", "retry_backoff_ms": 10, "linger_ms": 0, **more}
        )

    def transact(self, *values: bytes, offset: int | None = None) -> list[Any]:
        """A transaction that is committed."""
        acks = []
        self.producer.begin_transaction()
        for place, value in enumerate(values):
            acks.append(self.producer.send("t", value, partition=place % 2))
        if offset is not None:
            self.producer.send_offsets_to_transaction({SOURCE: offset}, "group")
        self.producer.commit_transaction()
        return acks

    def live(self, *values: bytes, offset: int) -> None:
        """From the beginning to the end of one transaction."""
        self.producer.init_transactions()
        self.transact(*values, offset=offset)

    def fail(self, *values: bytes) -> None:
        """A transaction in a block that raises ZeroDivisionError once its records are sent."""
        with self.producer.transaction():
            for value in values:
                self.producer.send("t", value, partition=0)
            self.producer.flush()
            raise ZeroDivisionError

    def state(self) -> TransactionState:
        found: TransactionState = self.rig.machine(self.producer)._transactions.state
        return found

    def committed(self) -> list[list[bytes | None]]:
        return self.coordinator.committed("t")
