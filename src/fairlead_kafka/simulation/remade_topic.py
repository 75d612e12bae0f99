"""The topic "remade" of some worlds `readers`: it is deleted and made again under the same name,
while consumers that were assigned its partition read on.

What is written names its topic by id, so no record of one life of the topic comes into another. A
consumer with `auto.offset.reset=earliest` is given each life that it sees from offset 0 on, without
gaps, and nothing of an earlier life afterwards. Once all is well the topic is made again a few
times more, shorter or longer than it was read, and the last life has to be read to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from random import Random
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import CreateTopics, DeleteTopics, NewTopic, TopicImage
from fairlead_kafka.consumer import Assign, Chunk, ConsumerMachine, Take, decode_chunk
from fairlead_kafka.records import Slice, columns_from_lists, encode
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Asker
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.workload import Completion
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import ProduceRequest, ProduceResponse

TOPIC = "remade"
PARTITION = TopicPartition(TOPIC, 0)
PRODUCE_VERSION = 13
"""The first version that names topics by id (KIP-516)."""
ROWS_MAX = 6
PAUSE_MS = 40.0
"""Mean time between two batches, ms."""
LIFE_MS = 350.0
"""Mean time from the making of a topic to its deletion, ms."""
RETRY_MS = 50.0
TIMEOUT_MS = 300
TAKE_BYTES, TAKE_MS = 20_000, 500.0
NAPS_MS = (0.0, 60.0, 250.0)
"""Longest pause of a follower between two polls, ms: one of these for each."""
FOLLOWERS = 2
CALM_LIVES = 4
CALM_BATCHES_MAX = 14
LAST_BATCHES_MAX = 200
"""Attempts to have a record in the last life; each is followed by RETRY_MS."""
PATIENCE_MS = 15_000.0
"""Time in which the last life is read to its end once all is well, ms."""


@dataclass
class Life:
    """One topic by this name."""

    topic_id: UUID
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    """Offset → the value that was acknowledged there."""


class Given(NamedTuple):
    """One record that a follower was given; `life` and `value` are of the record itself."""

    life: int
    offset: int
    value: bytes


class Follower:
    """A consumer that reads the partition all along."""

    def __init__(self, host: VirtualHost, script: Script, bootstrap_servers: str, rng: Random) -> None:
        config = {
            "bootstrap.servers": bootstrap_servers,
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
            "fetch.max.wait.ms": 300,
            "request.timeout.ms": 600,
            "max.partition.fetch.bytes": rng.choice([200, 3_000, 1_000_000]),
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
            "socket.connection.setup.timeout.ms": 200,
        }
        self.given: list[Given] = []
        self._host, self._script, self._rng = host, script, rng
        self._nap_ms = rng.choice(NAPS_MS)
        self._handle = host.add(ConsumerMachine(CLIENT_CONFIGS.parse("consumer", config), rng))

    def begin(self) -> None:
        """Assign the partition, and poll from now on."""
        self._host.submit(self._handle, Assign(Completion(lambda _generations, _error: None), [PARTITION]))
        self._poll()

    def _poll(self) -> None:
        deadline_ns = self._host.now_ns() + ms_to_ns(TAKE_MS)
        self._host.submit(self._handle, Take(Completion(self._taken), deadline_ns, TAKE_BYTES))

    def _taken(self, chunks: Sequence[Chunk] | None, error: Exception | None) -> None:
        if error is not None and not isinstance(error, FairleadError):
            raise error
        for chunk in chunks or ():
            records = decode_chunk(chunk, check_crcs=True)
            for offset, value in zip(records.offsets.tolist(), records.values.to_list(), strict=True):
                assert value is not None
                self.given.append(Given(int(value.partition(b"/")[0]), offset, bytes(value)))
        self._script.after(
            (0.0 if error is None else RETRY_MS) + self._rng.random() * self._nap_ms, self._poll
        )


class RemadeTopic:
    """Makes the topic, writes to it, deletes it, and makes it again, over and over."""

    def __init__(
        self, host: VirtualHost, script: Script, cluster: RealCluster, rng: Random, replicas: int
    ) -> None:
        self._host, self._script, self._cluster, self._rng = host, script, cluster, rng
        self._replicas = replicas
        self._asker = Asker(host)
        self._finished = self._deleting = False
        self._serial = 0
        self._calm_from = 0
        """The first life that was made when all was well."""
        self.lives: list[Life] = []
        self.followers = [
            Follower(host, script, cluster.bootstrap_servers, Random(rng.getrandbits(64)))
            for _ in range(FOLLOWERS)
        ]

    def begin(self) -> None:
        """Make the topic, and all that follows."""
        self._make()
        for follower in self.followers:
            follower.begin()

    def finish(self) -> None:
        """Write no more. The topic stays, or is made again if it is just being deleted."""
        self._finished = True

    # The topic

    def _make(self) -> None:
        self._cluster.controller.decide(CreateTopics([NewTopic(TOPIC, 1, self._replicas)]), self._made)

    def _made(self, result: Sequence[object] | None, error: Exception | None) -> None:
        image = None if error is not None or result is None else result[0]
        if not isinstance(image, TopicImage):
            self._script.after(RETRY_MS, self._make)
            return
        self._deleting = False
        self.lives.append(Life(image.topic_id))
        if not self._finished:
            self._write(len(self.lives))
            self._script.after(LIFE_MS * (0.3 + 1.4 * self._rng.random()), self._end, len(self.lives))

    def _end(self, life: int) -> None:
        if not self._finished and life == len(self.lives):
            self._delete()

    def _delete(self) -> None:
        self._deleting = True
        self._cluster.controller.decide(DeleteTopics([self.lives[-1].topic_id]), self._deleted)

    def _deleted(self, result: Sequence[object] | None, error: Exception | None) -> None:
        if error is not None or result is None or isinstance(result[0], Exception):
            self._script.after(RETRY_MS, self._delete)
        else:
            self._script.after(self._rng.choice([0.0, 0.0, RETRY_MS]), self._make)

    # Its records

    def _write(self, life: int) -> None:
        if not self._finished and not self._deleting and life == len(self.lives):
            self._append()
            self._script.after(PAUSE_MS * (0.5 + self._rng.random()), self._write, life)

    def _append(self) -> None:
        """Ask every broker to append a batch: the leader is the one that takes it."""
        rows = 1 + self._rng.randrange(ROWS_MAX)
        values: list[bytes | None] = [
            b"%d/%d" % (len(self.lives), number) for number in range(self._serial, self._serial + rows)
        ]
        self._serial += rows
        columns = columns_from_lists([None] * rows, values)
        batch = encode(
            [Slice(columns, 0, rows, None)], create_time_ms=1_700_000_000_000 + self._serial
        ).buffer
        row = ProduceRequest.PartitionProduceData(index=0, records=batch)
        topic = ProduceRequest.TopicProduceData(topic_id=self.lives[-1].topic_id, partition_data=[row])
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        answered = partial(self._answered, self.lives[-1], values)
        for broker in self._cluster.brokers:
            self._asker.ask(broker.address, ApiKey.PRODUCE, PRODUCE_VERSION, request, answered)

    def _answered(self, life: Life, values: Sequence[bytes | None], answer: ProduceResponse | None) -> None:
        row = None if answer is None else answer.responses[0].partition_responses[0]
        if row is not None and row.error_code == ErrorCode.NONE:
            for offset, value in enumerate(values, start=row.base_offset):
                assert value is not None
                life.acknowledged[offset] = value

    # The end

    def live_calmly(self) -> list[str]:
        """Make the topic again a few times, now that all is well. Returns violations, as texts."""
        self._calm_from = len(self.lives) + 1
        self._waited_for(lambda: not self._deleting and bool(self.lives))
        for number in range(CALM_LIVES):
            before = len(self.lives)
            self._delete()
            if not self._waited_for(lambda before=before: len(self.lives) > before):  # type: ignore[misc]
                return [f"{TOPIC} could not be made again within {PATIENCE_MS:g} ms, though all is well"]
            for _ in range(self._rng.randrange(CALM_BATCHES_MAX) + (number == CALM_LIVES - 1)):
                self._append()
                self._host.advance(PAUSE_MS * self._rng.random())
            if self._rng.random() < 0.5:
                self._host.advance(LIFE_MS * self._rng.random())
        for _ in range(LAST_BATCHES_MAX):
            if self.lives[-1].acknowledged:
                break
            self._append()
            self._host.advance(RETRY_MS)
        self._waited_for(lambda: not self._unread())
        return self._unread()

    def _waited_for(self, done: Callable[[], bool]) -> bool:
        """Whether `done()` is true within PATIENCE_MS."""
        waited_ms = 0.0
        while not done() and waited_ms < PATIENCE_MS:
            self._host.advance(RETRY_MS)
            waited_ms += RETRY_MS
        return done()

    def _unread(self) -> list[str]:
        wanted, life = set(self.lives[-1].acknowledged.values()), len(self.lives)
        found = []
        for number, follower in enumerate(self.followers):
            missing = wanted - {record.value for record in follower.given if record.life == life}
            if missing or not wanted:
                found.append(
                    f"follower {number} of {TOPIC} was not given {len(missing)} of {len(wanted)} records of "
                    f"life {life} within {PATIENCE_MS:g} ms, though all is well: {sorted(missing)[:3]}"
                )
        return found

    def violations(self, lost: bool) -> list[str]:
        """Errors in what followers were given, as texts.

        `lost`: brokers may have lost what they acknowledged before all was well, so that logs were
        cut.
        """
        whole_from = self._calm_from if lost else 0
        wrong = [wrong_step(follower.given, whole_from) for follower in self.followers]
        return [
            f"follower {number} of {TOPIC} was given {step[1]} after {step[0]}"
            for number, step in enumerate(wrong)
            if step is not None
        ]

    def __str__(self) -> str:
        given = [[(record.life, record.offset) for record in one.given] for one in self.followers]
        return f"{len(self.lives)} lives of {TOPIC}: {given}"


def wrong_step(given: Sequence[Given], whole_from: int) -> tuple[Given, Given] | None:
    """The first two records of `given` of which one cannot come right after the other; None: all
    may.

    A life is the time between two deletions of the topic, and a reader never goes back to an
    earlier one. Lives from `whole_from` on are read from offset 0 and without gaps.
    """
    for before, record in pairwise([Given(0, -1, b""), *given]):
        expected = before.offset + 1 if record.life == before.life else 0
        if record.life < before.life or (record.offset != expected and record.life >= whole_from):
            return before, record
    return None
