"""Writes to a compacted topic, one record after the other, and keeps the last acknowledged value of
each key.

Compaction may take any record but the newest of its key, and of a key that was deleted the
tombstone too, after a while. Each replica compacts at its own times, so that their batches differ;
the newest record of each key has to be the same on all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import Slice, columns_from_lists, decode, encode
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import PATIENCE_MS, Asker
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.replica_logs import READ_MAX_BYTES, held
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import ProduceRequest, ProduceResponse

TOPIC = "states"
DELETE_RETENTION_MS = 500
LOOK_MS = 50.0
"""Milliseconds between two looks at who is in sync."""
CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
    "segment.bytes": str(READ_MAX_BYTES),
}
PRODUCE_VERSION = 9
KEYS = [b"key %d" % number for number in range(4)]
PAUSE_MS = 60.0
TIMEOUT_MS = 300
DELETED_SHARE = 0.2
NEVER_TAKEN = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Answers that leave no doubt: nothing was written there, and nothing will be.

NOT_LEADER_OR_FOLLOWER does not: a leader says so too that wrote the record, waited for its
followers, and was deposed meanwhile.
"""
State = dict[bytes, bytes | None]


class KeyedWriter:
    """Writes records 1, 2, 3 ..., each under one of a few keys. Every request goes to all brokers;
    the leader is the one that accepts it."""

    def __init__(self, host: VirtualHost, script: Script, addresses: Sequence[str], rng: Random) -> None:
        self._host = host
        self._script = script
        self._addresses = addresses
        self._rng = rng
        self._asker = Asker(host)
        self._finished = False
        self._serial = 0
        self.acknowledged: State = {}
        """Key → the value that was acknowledged last; None: a tombstone."""
        self._uncertain: dict[bytes, set[bytes | None]] = {key: set() for key in KEYS}
        """Values that may have been written, then or later."""
        self._out_since_ns: dict[int, int] = {}
        self._long_out: set[int] = set()
        """Replicas that were out of sync for longer than tombstones are kept."""

    def watch(self, cluster: RealCluster) -> None:
        """Note which replicas are out of sync, now and every `LOOK_MS` milliseconds from now on."""
        partition = cluster.controller.image.topics[TOPIC].partitions[0]
        now_ns = self._host.now_ns()
        for node_id in partition.replicas:
            since_ns = self._out_since_ns.setdefault(node_id, now_ns)
            if node_id in partition.isr:
                del self._out_since_ns[node_id]
            elif now_ns - since_ns >= (DELETE_RETENTION_MS - LOOK_MS) * 1e6:
                self._long_out.add(node_id)
        self._script.after(LOOK_MS, self.watch, cluster)

    def begin(self) -> None:
        """Write one record, and the next a little later."""
        if self._finished:
            return
        self._serial += 1
        key = self._rng.choice(KEYS)
        value = None if self._rng.random() < DELETED_SHARE else b"%d" % self._serial
        codes: list[int | None] = []
        for address in self._addresses:
            self._asker.ask(
                address,
                ApiKey.PRODUCE,
                PRODUCE_VERSION,
                self._record(key, value),
                lambda answer: self._answered(key, value, codes, answer),
            )
        self._script.after(
            PAUSE_MS * (0.5 + self._rng.random()), self._go_on, key, value, codes, self._host.now_ns()
        )

    def finish(self) -> None:
        """Write no more."""
        self._finished = True

    def _go_on(self, key: bytes, value: bytes | None, codes: list[int | None], begun_ns: int) -> None:
        if len(codes) < len(self._addresses) and self._host.now_ns() - begun_ns < PATIENCE_MS * 1e6:
            self._script.after(20.0, self._go_on, key, value, codes, begun_ns)
            return
        known = ErrorCode.NONE in codes or (
            len(codes) == len(self._addresses) and all(code in NEVER_TAKEN for code in codes)
        )
        if not known:
            self._uncertain[key].add(value)
        self.begin()

    def _answered(
        self, key: bytes, value: bytes | None, codes: list[int | None], answer: ProduceResponse | None
    ) -> None:
        codes.append(None if answer is None else answer.responses[0].partition_responses[0].error_code)
        if codes[-1] == ErrorCode.NONE:
            if value in self._uncertain[key]:
                return  # the answer came late, perhaps after others, and the value stays uncertain
            self.acknowledged[key] = value

    def _record(self, key: bytes, value: bytes | None) -> ProduceRequest:
        columns = columns_from_lists([key], [value])
        batch = encode([Slice(columns, 0, 1, None)], create_time_ms=1_700_000_000_000 + self._serial).buffer
        row = ProduceRequest.PartitionProduceData(index=0, records=batch)
        topics = [ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[row])]
        return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=TIMEOUT_MS, topic_data=topics)

    def violations(self, cluster: RealCluster) -> list[str]:
        """Errors in the replicas at the end, after compaction, as texts.

        A replica that was out of sync for longer than `delete.retention.ms` may have missed a
        tombstone, as in Kafka: the replica keeps a value that the others deleted, and readers see
        it if the replica leads.
        """
        image = cluster.controller.image.topics[TOPIC]
        states: dict[int, State] = {}
        for node_id in image.partitions[0].replicas:
            broker = cluster.brokers[node_id]
            log = broker.machine.logs.known(image.topic_id, 0)
            states[node_id] = state_of([held(cluster, broker, log)])
        leader = image.partitions[0].leader
        for node_id, own in states.items():
            if node_id in self._long_out:
                states[node_id] = {key: value for key, value in own.items() if self._may_stand(key, value)}
        first = _present(next(iter(states.values())))
        found = [
            f"{TOPIC}-0: on broker {node_id} the records come to {_shown(own)}, on others to {_shown(first)}"
            for node_id, own in states.items()
            if _present(own) != first
        ]
        state = states[leader]
        for key in KEYS:
            value = state.get(key)
            if not self._may_stand(key, value):
                found.append(
                    f"{TOPIC}-0: {key!r} is {value!r} in the end, though {self.acknowledged.get(key)!r} was "
                    "acknowledged last"
                )
        return found

    def _may_stand(self, key: bytes, value: bytes | None) -> bool:
        """True if this may be the newest value of a key."""
        return value == self.acknowledged.get(key) or value in self._uncertain[key]


def state_of(batches: Iterable[Buffer]) -> State:
    """Key → its newest value in the batches of a log; None: a tombstone.

    UsageError for records without keys.
    """
    state: State = {}
    for data in batches:
        if data:
            records = decode(bytes(data))
            if records.keys is None:
                raise UsageError("a compacted topic has records without keys")
            for key, value in zip(records.keys.to_list(), records.values.to_list(), strict=True):
                assert key is not None
                state[key] = value
    return state


def _present(state: Mapping[bytes, bytes | None]) -> State:
    """The state without deleted keys: one replica may still have the tombstone."""
    return {key: value for key, value in state.items() if value is not None}


def _shown(state: Mapping[bytes, bytes | None]) -> str:
    return ", ".join(f"{key!r}: {value!r}" for key, value in sorted(_present(state).items()))
