"""Brokers end, resign, lose power and come back at random while the metadata log fails at any
write: no acknowledged record is lost by an election, and the log tells of the cluster as it is.

The controller is the real one; brokers and their replicas are a model. A sequence takes a hundredth
of a second, so this asks for orders of events that the worlds of `fairlead simulate` seldom reach.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import Controller, Reassignment, journal
from fairlead_kafka.broker.controller.decisions import ProposedIsr
from fairlead_kafka.broker.controller.leadership import ElectionType
from tests.support.controllers import node
from tests.support.failing_log import FAULTS, FailingLog
from tests.support.modelled_brokers import MIN_IN_SYNC, ModelledBroker

BROKERS = range(4)
TOPICS = ("orders", "payments")
STEPS = (60, 150, 400)
SEQUENCES = 40
ALL = 1_000
"""More entries than any log has."""
PAUSES_MS = (1_000, 2_000, 8_000)
SETTINGS = BROKER_CONFIGS.parse(
    "broker", {"broker.session.timeout.ms": 6_000, "broker.heartbeat.interval.ms": 1_000}
)


class Storm:
    """One run, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.log = FailingLog(self.rng)
        self.brokers = [ModelledBroker(node_id) for node_id in BROKERS]
        self.now_ns = 0
        self.over = False
        """Something happened that the controller cannot know of: see `damage_is_unknown`."""
        self.acknowledged: dict[str, set[int]] = {}
        """Topic id → numbers of entries."""
        self.proposals: list[tuple[ModelledBroker, ProposedIsr]] = []
        """Those that are on their way to the controller."""
        self.ended: list[int] = []
        """Brokers that ended, which the controller was not told."""
        self._leaders: dict[tuple[str, int], tuple[int, int]] = {}
        """Topic id and leader epoch → who led in it, in which of its lives."""
        self._next_number = 0
        self._start_controller()
        for broker in self.brokers:
            self.start(broker)
        for name in TOPICS:
            self.create_topic(name)
        calm = self.rng.choice((0.2, 0.5, 0.7))
        weights = {event: weight * (1 - calm) for event, weight in FAILURES.items()}
        weights |= TRAFFIC | {Storm.round: calm * sum(FAILURES.values())}
        self._events, self._weights = list(weights), list(weights.values())

    def step(self) -> None:
        (event,) = self.rng.choices(self._events, self._weights)
        event(self, self.rng.choice(self.brokers))

    # --- Records

    def round(self, _broker: ModelledBroker) -> None:
        """Every broker does what it does when nothing happens."""
        what = self.rng.choice((self.produce, self.propose, self.replicate))
        for broker in self.rng.sample(self.brokers, len(self.brokers)):
            self.replicate(broker)
            what(broker)
        self.answer_proposal(self.brokers[0])

    def produce(self, broker: ModelledBroker) -> None:
        for topic_id in broker.leads:
            broker.replicas[topic_id].append(broker.leads[topic_id].epoch, self._next_number)
            self._next_number += 1
            self._acknowledge(broker, topic_id)

    def replicate(self, broker: ModelledBroker) -> None:
        """Take the metadata that has come, and fetch from all leaders."""
        if not broker.running:
            return
        self.take_lines(broker, None)
        for topic_id, partition in broker.partitions().items():
            leader = self.brokers[partition.leader]
            leading = leader.leads.get(topic_id)
            if (
                partition.leader not in (NO_LEADER, broker.node_id)
                and leading is not None
                and leading.epoch == partition.leader_epoch
                and broker.node_id in leader.partition(topic_id).replicas
            ):
                broker.fetch(topic_id, leader, self.rng.choice((0, 1, ALL)))
                self._acknowledge(leader, topic_id)

    def take_some_lines(self, broker: ModelledBroker) -> None:
        self.take_lines(broker, self.rng.choice((1, None)))

    def take_lines(self, broker: ModelledBroker, count: int | None) -> None:
        if broker.running:
            before = {(topic_id, leading.epoch) for topic_id, leading in broker.leads.items()}
            broker.take_lines(count)
            self._judge_leaders(broker, before)

    def sync(self, broker: ModelledBroker) -> None:
        for replica in broker.replicas.values():
            replica.synced = len(replica.entries)

    def propose(self, broker: ModelledBroker) -> None:
        """Ask the controller for other replicas in sync, or ask again."""
        for topic_id, leading in broker.leads.items():
            proposal = leading.proposed
            if proposal is None:
                isr = self._wanted_in_sync(broker, topic_id)
                if isr is not None:
                    proposal = broker.proposal(topic_id, isr)
            if proposal is not None and (broker, proposal) not in self.proposals:
                self.proposals.append((broker, proposal))

    def answer_proposal(self, _broker: ModelledBroker) -> None:
        """Have the controller decide on a proposal; the answer may be lost."""
        if not self.proposals:
            return
        at = 0 if self.rng.random() < 0.7 else self.rng.randrange(len(self.proposals))
        broker, proposal = self.proposals.pop(at)
        if not broker.linked:
            return
        with suppress(BrokerError):
            self.controller.alter_partitions(broker.node_id, broker.epoch, [proposal])
            self.take_lines(broker, None)
            leading = broker.leads.get(proposal.topic_id)
            if leading is not None and leading.proposed is proposal:
                leading.proposed = None
                self._acknowledge(broker, proposal.topic_id)

    def _wanted_in_sync(self, broker: ModelledBroker, topic_id: str) -> tuple[int, ...] | None:
        isr = broker.partition(topic_id).isr
        coming = broker.may_come_into_sync(topic_id)
        late = [
            other
            for other in isr
            if other != broker.node_id
            and (broker.is_behind(topic_id, other) or not self.brokers[other].running)
        ]
        if coming and self.rng.random() < 0.7:
            return (*isr, self.rng.choice(coming))
        if late:
            leaving = self.rng.choice(late)
            return tuple(other for other in isr if other != leaving)
        return None

    def _acknowledge(self, broker: ModelledBroker, topic_id: str) -> None:
        entries = broker.acknowledged(topic_id)
        self.acknowledged.setdefault(topic_id, set()).update(entry.number for entry in entries)

    # --- Brokers

    def start(self, broker: ModelledBroker) -> None:
        """Start a broker that is down, or link one to the controller again. A start that is refused
        ends it."""
        if broker.linked:
            return
        self.controller.broker_stopped(broker.node_id)
        if not broker.running:
            broker.begin()
        self.ended = [other for other in self.ended if other != broker.node_id]
        broker.join(self.controller)
        self._judge_leaders(broker, set())
        try:
            broker.epoch = self.controller.broker_started(node(broker.node_id))
            broker.registered = True
        except BrokerError:
            broker.linked = False
            if not broker.registered:
                broker.end(power_cut=False)

    def kill(self, broker: ModelledBroker) -> None:
        if broker.running:
            self._end(broker)

    def cut_power(self, broker: ModelledBroker) -> None:
        """End a broker with what is on its disk, where a replica in sync keeps all the rest."""
        alive = broker.running and self.controller.image.is_alive(broker.node_id)
        if alive and all(self._others_have_all(broker, topic_id) for topic_id in broker.replicas):
            self._end(broker, power_cut=True)
            self.notice()

    def notice_one(self, _broker: ModelledBroker) -> None:
        """Tell the controller of the first broker that ended."""
        if self.ended:
            self.controller.broker_stopped(self.ended.pop(0))

    def notice(self) -> None:
        """Tell the controller of all brokers that ended."""
        while self.ended:
            self.controller.broker_stopped(self.ended.pop(0))

    def unlink(self, broker: ModelledBroker) -> None:
        """Cut the connection between a broker and the controller: each goes on."""
        if broker.linked:
            broker.linked = False
            self.controller.broker_stopped(broker.node_id)

    def begin_shutdown(self, broker: ModelledBroker) -> None:
        if broker.running:
            self.controller.broker_stopping(broker.node_id)

    def report_disk(self, broker: ModelledBroker) -> None:
        if broker.linked:
            if self.rng.random() < 0.4:
                broker.disk_works = not broker.disk_works
            with suppress(BrokerError):
                self.controller.disk_reported(broker.node_id, broker.epoch, broker.disk_works)

    def _end(self, broker: ModelledBroker, power_cut: bool = False) -> None:
        broker.end(power_cut)
        self.proposals = [one for one in self.proposals if one[0] is not broker]
        self.ended.append(broker.node_id)

    def _others_have_all(self, broker: ModelledBroker, topic_id: str) -> bool:
        topic = self.controller.image.topic_of_hex(topic_id)
        isr = () if topic is None else topic.partitions[0].isr
        eligible = self.controller.image.eligible()
        return broker.node_id not in isr or any(
            other.linked
            and other.node_id in eligible
            and topic_id in other.replicas
            and not other.replicas[topic_id].damaged
            and self.acknowledged.get(topic_id, set()) <= other.replicas[topic_id].numbers()
            for other in self.brokers
            if other is not broker and other.node_id in isr
        )

    # --- The controller

    def log_fails(self, _broker: ModelledBroker) -> None:
        """Have the metadata log fail, or work again."""
        self.log.fail("" if self.log.fault else self.rng.choice(FAULTS))

    def wait(self, _broker: ModelledBroker) -> None:
        self._tick(self.rng.choice(PAUSES_MS))

    def elect_preferred(self, _broker: ModelledBroker) -> None:
        with suppress(BrokerError):
            self.controller.elect_leaders(ElectionType.PREFERRED, None)

    def reassign(self, _broker: ModelledBroker) -> None:
        """Begin, change or cancel a reassignment."""
        names = list(self.controller.image.topics)
        if names:
            count = self.rng.choice((0, 0, 2, 2, 3, 3, 3))
            replicas = self.rng.sample(BROKERS, count) or None
            with suppress(BrokerError):
                self.controller.alter_reassignments([Reassignment(self.rng.choice(names), 0, replicas)])

    def create_or_delete(self, _broker: ModelledBroker) -> None:
        name = self.rng.choice(TOPICS)
        with suppress(BrokerError):
            if name in self.controller.image.topics:
                self.controller.delete_topic(name)
            else:
                self.create_topic(name)

    def create_topic(self, name: str) -> None:
        replicas = self.rng.sample(BROKERS, 3)
        configs = {"min.insync.replicas": str(MIN_IN_SYNC)}
        self.controller.create_topic(name, assignments={0: replicas}, configs=configs)

    def restart_controller(self, _broker: ModelledBroker) -> None:
        """End the controller, and go on with what its log has; brokers run on, or end too."""
        if self.damage_is_unknown() or (self.log.fault and self.rng.random() < 0.8):
            return
        brokers_run_on = self.rng.random() < 0.5
        for broker in self.brokers:
            broker.linked = False
            if broker.running and not brokers_run_on:
                self._end(broker)
        self.proposals.clear()
        self._start_controller()

    def stop_cluster(self, _broker: ModelledBroker) -> None:
        """Stop all in good order, and start the controller again."""
        self.controller.cluster_stopping()
        self.notice()
        for broker in self.rng.sample(self.brokers, len(self.brokers)):
            if broker.running:
                if self.rng.random() < 0.5:
                    self.controller.broker_stopping(broker.node_id)
                if self.rng.random() < 0.3:
                    self.log.fail("")
                if self.rng.random() < 0.3:
                    self._tick(2_000)
                self._end(broker)
                self.notice()
        self.over = self.damage_is_unknown()
        self._start_controller()

    def damage_is_unknown(self) -> bool:
        """True if a replica lost entries in a power cut, and the metadata log counts it as in sync:
        its broker's end could not be written. A controller that started now would let it lead,
        which is a known limit."""
        image = self._replayed().image
        topics = ((topic.topic_id.hex, topic.partitions[0]) for topic in image.topics.values())
        return any(
            broker.node_id in partition.isr
            and topic_id in broker.replicas
            and broker.replicas[topic_id].damaged
            for topic_id, partition in topics
            for broker in self.brokers
        )

    def _tick(self, pause_ms: int) -> None:
        self.now_ns += ms_to_ns(pause_ms)
        self.controller.tick(self.now_ns)

    def _start_controller(self) -> None:
        self.log.fail("")
        self.controller = Controller(
            SETTINGS, random.Random(self.rng.random()), self.log.append, self.log.replace
        )
        self.controller.replay(self.log.data)
        self.log.replace(self.controller.snapshot())
        self.controller.await_brokers(BROKERS)
        self.controller.follow(self._send)
        self.ended.clear()

    def _send(self, line: bytes) -> None:
        for broker in self.brokers:
            if broker.linked:
                broker.lines.append(line)

    def _replayed(self) -> Controller:
        controller = Controller(SETTINGS, random.Random(1))
        controller.replay(self.log.data)
        return controller

    # --- What has to hold

    def _judge_leaders(self, broker: ModelledBroker, before: set[tuple[str, int]]) -> None:
        """Judge the partitions that a broker leads now, and did not before."""
        for topic_id, leading in broker.leads.items():
            if (topic_id, leading.epoch) in before:
                continue
            life = (broker.node_id, broker.life)
            first = self._leaders.setdefault((topic_id, leading.epoch), life)
            assert first == life, "two leaders in one epoch"
            topic = self.controller.image.topic_of_hex(topic_id)
            now = None if topic is None else topic.partitions[0]
            if now is not None and (now.leader, now.leader_epoch) == (broker.node_id, leading.epoch):
                self._judge_records(broker, topic_id)

    def _judge_records(self, leader: ModelledBroker, topic_id: str) -> None:
        lost = self.acknowledged.get(topic_id, set()) - leader.replicas[topic_id].numbers()
        assert not lost, f"broker {leader.node_id} leads without {len(lost)} acknowledged records"

    def settle(self) -> None:
        """Let the log work and time pass: then every partition has a leader that can have one, and
        the log tells of replicas, those in sync and brokers as they are."""
        self.log.fail("")
        self.notice()
        for _ in range(12):
            self._tick(2_000)
        image = self.controller.image
        assert not self.controller.journal.awaited
        for topic, _, one in image.partitions():
            assert one.isr, topic
            assert set(one.isr) <= set(one.replicas), topic
            if one.leader == NO_LEADER:
                may_lead = [node_id for node_id in one.isr if image.is_alive(node_id)]
                assert not may_lead, f"{topic.name} has no leader: {one}"
            else:
                assert one.leader in one.isr, topic
                assert image.is_alive(one.leader), topic
        replayed = self._replayed()
        assert _metadata(replayed) == _metadata(self.controller)
        for topic, number, one in replayed.image.partitions():
            assert one.leader_epoch >= image.topics[topic.name].partitions[number].leader_epoch, topic

    def finish(self) -> None:
        """With all brokers, every partition has a leader, and it has all that was acknowledged."""
        self.settle()
        for broker in self.brokers:
            self.start(broker)
            self.controller.disk_reported(broker.node_id, broker.epoch, works=True)
            if self.controller.image.brokers[broker.node_id].stopping:
                self._end(broker)
                self.notice()
                self.start(broker)
        self.settle()
        for broker in self.brokers:
            self.take_lines(broker, None)
        for topic, _, one in self.controller.image.partitions():
            assert one.leader != NO_LEADER, topic
            self._judge_records(self.brokers[one.leader], topic.topic_id.hex)


Event = Callable[[Storm, ModelledBroker], None]

TRAFFIC: dict[Event, float] = {
    Storm.produce: 16,
    Storm.replicate: 22,
    Storm.take_some_lines: 8,
    Storm.propose: 8,
    Storm.answer_proposal: 8,
}
FAILURES: dict[Event, float] = {
    Storm.sync: 3,
    Storm.kill: 2.5,
    Storm.cut_power: 3,
    Storm.notice_one: 5,
    Storm.start: 7,
    Storm.unlink: 1.5,
    Storm.begin_shutdown: 3,
    Storm.report_disk: 5,
    Storm.log_fails: 7,
    Storm.wait: 2.5,
    Storm.elect_preferred: 1,
    Storm.reassign: 1.5,
    Storm.create_or_delete: 0.6,
    Storm.restart_controller: 0.9,
    Storm.stop_cluster: 0.7,
}
"""How often each happens, relative to each other; in calm sequences less."""


def _metadata(controller: Controller) -> object:
    image = controller.image
    return (
        {
            topic.topic_id: [(one.replicas, one.isr, one.adding, one.removing) for one in topic.partitions]
            for topic in image.topics.values()
        },
        {node_id: broker.epoch for node_id, broker in image.brokers.items()},
    )


@pytest.fixture(autouse=True)
def _folded_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata log is replaced by a snapshot many times in a sequence."""
    monkeypatch.setattr(journal, "FOLD_MIN_BYTES", 2_000)


@pytest.mark.parametrize("first", range(0, 8 * SEQUENCES, SEQUENCES))
def test_elections_lose_nothing_that_was_acknowledged(first: int) -> None:
    for seed in range(first, first + SEQUENCES):
        storm = Storm(seed)
        for _ in range(storm.rng.choice(STEPS)):
            storm.step()
            if storm.over:
                break
            if storm.rng.random() < 0.01:
                storm.settle()
        else:
            storm.finish()
