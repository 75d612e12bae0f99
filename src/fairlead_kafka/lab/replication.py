"""Scenarios of replication on an embedded cluster: the effects of each on the partition, a producer
and a consumer.

A topic of one partition, three replicas and min.insync.replicas=2 unless the scenario says
otherwise. Every step prints the partition as `kafka-topics --describe` would, the outcomes of
records sent at that moment, and the records that a consumer got.

    1  all replicas in sync, then the leader is lost: another takes over, nothing is lost
    2  a follower lags: it leaves the replicas in sync, the topic goes on, and it comes back
    3  too few replicas in sync: acks=all is refused, acks=1 is not; all of them lost: no broker
       leads, or, with unclean election, one that was not in sync, and acknowledged records are lost
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from fairlead_kafka.base.errors import FairleadError, TimedOut
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.json_types import list_at
from fairlead_kafka.client import Admin, Consumer, NewTopic, Producer, Record
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.testing import Cluster

BROKERS = 3
TOPIC = "fruit-prices"
FRUITS = (
    "mango",
    "banana",
    "apple",
    "lime",
    "grape",
    "pear",
    "guava",
    "cherry",
    "fig",
    "kiwi",
    "plum",
    "peach",
    "quince",
    "melon",
)
LAG_MS = 600
"""replica.lag.time.max.ms: how long a follower may lag (Kafka's default is 30 s)."""
DELIVERY_MS = 4_000
"""delivery.timeout.ms of the producers; Kafka's default is two minutes."""
PATIENCE_S = 20.0
PROMPT_S = 0.25
"""Seconds above which the duration of a send is reported."""
POLL_S, EMPTY_POLLS = 0.15, 3
"""Seconds of a poll, and the number of empty polls after which a consumer has read everything."""
CONFIG = {"replica.lag.time.max.ms": LAG_MS, "group.initial.rebalance.delay.ms": 0}


@dataclass
class Stage:
    """A cluster with a topic, a producer for each kind of acks, and a consumer that reads along:
    where a scenario is played."""

    number: int
    title: str
    configs: dict[str, str]
    status: Status
    cluster: Cluster = field(init=False)
    rows: list[Row] = field(default_factory=list)
    sent: int = 0
    acknowledged: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    def __enter__(self) -> Stage:
        self.cluster = Cluster(BROKERS, config=CONFIG)
        self._admin = Admin(self._client())
        self._admin.create_topics([NewTopic(TOPIC, 1, BROKERS, configs=self.configs)])
        self._consumer = Consumer(
            {**self._client(), "auto.offset.reset": "earliest", "isolation.level": "read_uncommitted"}
        )
        self._consumer.assign([TopicPartition(TOPIC, 0)])
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()
        self._admin.close()
        self.cluster.close()

    # What happens

    def step(
        self,
        what: str,
        *,
        acks: Sequence[str] = ("all",),
        wait: Callable[[PartitionMetadata], bool] | None = None,
    ) -> Row:
        """Wait until the partition is as it should be, send a record with each of `acks`, read
        along, and note the results.
        """
        self.status(f"scenario {self.number}: {what}")
        began_s = time.monotonic()
        before = self._until(wait or (lambda one: True))
        waited_s = time.monotonic() - began_s
        sent = [self._send(each) for each in acks]
        got = self._read_along()
        after = self._describe()
        row: Row = {
            "scenario": self.number,
            "title": self.title,
            "step": what,
            "settled_ms": round(waited_s * 1000),
            "describe": [self._summary(), *dict.fromkeys((_line(before), _line(after)))],
            "leader": before.leader,
            "leader_epoch": before.leader_epoch,
            "replicas": list(before.replicas),
            "isr": list(before.isr),
            "producer": sent,
            "consumer": got,
        }
        self.rows.append(row)
        return row

    def leader(self) -> int:
        """The node id of the partition's present leader."""
        return int(self._describe().leader)

    def followers(self) -> list[int]:
        """Node ids of the other replicas, in order of preference."""
        partition = self._describe()
        return [node_id for node_id in partition.replicas if node_id != partition.leader]

    # How it is seen

    def _client(self) -> dict[str, object]:
        return {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.max.ms": 100,
            "metadata.max.age.ms": 1_000,
        }

    def _describe(self) -> PartitionMetadata:
        return self._admin.describe_topics([TOPIC])[TOPIC].partitions[0]

    def _summary(self) -> str:
        configs = ",".join(f"{key}={value}" for key, value in sorted(self.configs.items()))
        return f"Topic: {TOPIC}\tPartitionCount: 1\tReplicationFactor: {BROKERS}\tConfigs: {configs}"

    def _until(self, reached: Callable[[PartitionMetadata], bool]) -> PartitionMetadata:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            partition = self._describe()
            if reached(partition):
                return partition
            if time.monotonic() > deadline_s:
                raise TimedOut(
                    f"scenario {self.number}: the partition is still as in {_line(partition)!r} after "
                    f"{PATIENCE_S:g} s"
                )
            time.sleep(0.02)

    def _send(self, acks: str) -> str:
        """Send one record with `acks`. Returns the producer's result, as text."""
        value = FRUITS[self.sent % len(FRUITS)]
        self.sent += 1
        config = {
            **self._client(),
            "acks": acks,
            "enable.idempotence": False,
            "request.timeout.ms": 1_000,
            "delivery.timeout.ms": DELIVERY_MS,
        }
        config |= {"max.block.ms": DELIVERY_MS, "linger.ms": 0, "retry.backoff.ms": 50}
        began_s = time.monotonic()
        with Producer(config) as producer:
            try:
                offset = producer.send(TOPIC, value.encode()).result(timeout_s=PATIENCE_S).offset
            except FairleadError as error:
                return (
                    f"{value}, acks={acks}: {type(error).__name__} after "
                    f"{time.monotonic() - began_s:.1f} s: {error}"
                )
        if offset < 0:
            return f"{value}, acks={acks}: sent, and nobody says what became of it"
        self.acknowledged.append(value)
        took_s = time.monotonic() - began_s
        return f"{value}, acks={acks}: acknowledged at offset {offset}" + (
            f" after {took_s:.1f} s" if took_s > PROMPT_S else ""
        )

    def _read_along(self) -> str:
        """Records that the consumer gets now, as text."""
        try:
            got = _everything(self._consumer)
        except FairleadError as error:
            return f"{type(error).__name__}: {error}"
        said = [
            f"{_fruit(record)} at {record.offset}{' (again)' if _fruit(record) in self.read else ''}"
            for record in got
        ]
        self.read += [_fruit(record) for record in got]
        return ", ".join(said) or "nothing new"

    def held(self) -> list[str]:
        """All records that the partition holds."""
        with Consumer({**self._client(), "auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0)])
            return [_fruit(record) for record in _everything(consumer)]


def _everything(consumer: Consumer) -> list[Record]:
    """All records that a consumer gets until no more come."""
    got: list[Record] = []
    empty = 0
    while empty < EMPTY_POLLS:
        records = consumer.poll(timeout_s=POLL_S)
        empty = 0 if records else empty + 1
        got += records
    return got


def _fruit(record: Record) -> str:
    return (record.value or b"").decode()


def run(status: Status, scenarios: Sequence[int] = (1, 2, 3)) -> list[Row]:
    """Rows {scenario, title, step, settled_ms, describe, leader, leader_epoch, replicas, isr,
    producer, consumer}.

    `describe`: lines as `kafka-topics --describe` prints them, a third one if the partition changed
    while records were sent; `producer`: a line for each record sent; `consumer`: what it got;
    `settled_ms`: how long it took until the partition was as the step says. The last row of a
    scenario has `comparison`.
    """
    rows: list[Row] = []
    for number in scenarios:
        for play in SCENARIOS[number]:
            with play.stage(status) as stage:
                play.acts(stage)
                stage.rows[-1]["comparison"] = _conclusion(stage)
                rows += stage.rows
    return rows


def text(rows: Sequence[Row]) -> Iterator[str]:
    """The rows as lines to read."""
    title = None
    for row in rows:
        if row["title"] != title:
            title = row["title"]
            yield f"\nScenario {row['scenario']}: {title}"
        yield f"\n  {row['step']}  ({row['settled_ms']} ms)"
        yield from (f"    {line}" for line in list_at(row, "describe"))
        yield from (f"    producer: {line}" for line in list_at(row, "producer"))
        yield f"    consumer: {row['consumer']}"
        if "comparison" in row:
            yield f"  {row['comparison']}"


def _line(partition: PartitionMetadata) -> str:
    leader = partition.leader if partition.leader >= 0 else "none"
    replicas, isr = (",".join(map(str, each)) for each in (partition.replicas, partition.isr))
    return f"\tTopic: {TOPIC}\tPartition: 0\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}"


def _conclusion(stage: Stage) -> str:
    held = stage.held()
    lost = [each for each in stage.acknowledged if each not in held]
    what = f"{stage.sent} records sent, {len(stage.acknowledged)} acknowledged, {len(held)} there in the end"
    return (
        f"{what}; acknowledged and gone: {', '.join(lost)}"
        if lost
        else f"{what}; nothing acknowledged was lost"
    )


# The scenarios


@dataclass(frozen=True)
class Play:
    """One scenario, or one of its variants."""

    number: int
    title: str
    acts: Callable[[Stage], None]
    configs: tuple[tuple[str, str], ...] = (("min.insync.replicas", "2"),)

    def stage(self, status: Status) -> Stage:
        """A fresh stage for the scenario."""
        return Stage(self.number, self.title, dict(self.configs), status)


def _in_sync(count: int) -> Callable[[PartitionMetadata], bool]:
    return lambda partition: len(partition.isr) == count


def _led_by_another(than: int) -> Callable[[PartitionMetadata], bool]:
    return lambda partition: partition.leader not in (-1, than)


def _leader_lost(stage: Stage) -> None:
    stage.step("all replicas are in sync with the leader", acks=("all", "1"), wait=_in_sync(BROKERS))
    lost = stage.leader()
    stage.cluster.broker(lost).kill()
    stage.step(
        f"broker {lost}, the leader, is killed: a replica in sync takes over",
        acks=("all", "1"),
        wait=_led_by_another(lost),
    )
    stage.cluster.broker(lost).start()
    stage.step(
        f"broker {lost} is back, cuts what the new leader does not have, and catches up",
        wait=_in_sync(BROKERS),
    )


def _follower_lags(stage: Stage) -> None:
    stage.step("all replicas are in sync with the leader", wait=_in_sync(BROKERS))
    leader, slow = stage.leader(), stage.followers()[-1]
    stage.cluster.broker(slow).cut(from_=leader)
    stage.step(
        f"broker {slow} hears nothing from the leader any more, and still counts: acks=all waits for it",
        acks=("1", "all"),
    )
    stage.step(
        f"it is behind for replica.lag.time.max.ms={LAG_MS}, and counts no more",
        acks=("all", "1"),
        wait=_in_sync(2),
    )
    stage.cluster.broker(slow).heal()
    stage.step(f"broker {slow} has caught up", wait=_in_sync(BROKERS))


def _too_few_in_sync(stage: Stage) -> None:
    stage.step("all replicas are in sync with the leader", wait=_in_sync(BROKERS))
    followers = stage.followers()
    for node_id in followers:
        stage.cluster.broker(node_id).kill()
    said = f"brokers {followers[0]} and {followers[1]} are killed"
    stage.step(
        f"{said}: acks=all needs min.insync.replicas=2, acks=1 and 0 do not ask",
        acks=("all", "1", "0"),
        wait=_in_sync(1),
    )
    for node_id in followers:
        stage.cluster.broker(node_id).start()
    stage.step("both are back", wait=_in_sync(BROKERS))


def _all_lost(stage: Stage) -> tuple[int, list[int]]:
    stage.step("all replicas are in sync with the leader", wait=_in_sync(BROKERS))
    last, followers = stage.leader(), stage.followers()
    for node_id in followers:
        stage.cluster.broker(node_id).kill()
    stage.step(
        f"brokers {followers[0]} and {followers[1]} are killed; the leader takes records alone",
        acks=("all", "1"),
        wait=_in_sync(1),
    )
    stage.cluster.broker(last).kill()
    for node_id in followers:
        stage.cluster.broker(node_id).start()
    return last, followers


def _all_lost_clean(stage: Stage) -> None:
    last, _ = _all_lost(stage)
    waiting = f"broker {last}, the last in sync, is killed; the others are back, and may not lead"
    stage.step(waiting, acks=("all", "1"), wait=lambda partition: partition.leader < 0)
    stage.cluster.broker(last).start()
    stage.step(f"broker {last} is back, and leads", wait=_in_sync(BROKERS))


def _all_lost_unclean(stage: Stage) -> None:
    last, followers = _all_lost(stage)
    elected = f"broker {last} is killed, and one that was not in sync leads: what {last} took alone is lost"
    stage.step(
        elected,
        acks=("all",),
        wait=lambda partition: partition.leader in followers and len(partition.isr) == 2,
    )
    stage.cluster.broker(last).start()
    stage.step(f"broker {last} is back, and cuts what nobody else has", wait=_in_sync(BROKERS))


_ALONE = (("min.insync.replicas", "1"),)
SCENARIOS: dict[int, tuple[Play, ...]] = {
    1: (Play(1, "the leader is lost, the rest in sync", _leader_lost),),
    2: (Play(2, "a follower lags", _follower_lags),),
    3: (
        Play(3, "no follower in sync, min.insync.replicas=2", _too_few_in_sync),
        Play(
            3, "all replicas in sync are lost, unclean.leader.election.enable=false", _all_lost_clean, _ALONE
        ),
        Play(
            3,
            "all replicas in sync are lost, unclean.leader.election.enable=true",
            _all_lost_unclean,
            (*_ALONE, ("unclean.leader.election.enable", "true")),
        ),
    ),
}
