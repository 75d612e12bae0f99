"""The share groups of a world: their members through all their processes, the members' faults, and
in the end the check that a patient member gets all remaining records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random

from fairlead_kafka.base.hooks import HOOKS, Method
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import AlterGroupConfigs, AlterOperation, ConfigAlteration
from fairlead_kafka.broker.share_groups import ShareKey, SharePartition, Wanted
from fairlead_kafka.records import decode
from fairlead_kafka.simulation.group_checks import visible_offsets
from fairlead_kafka.simulation.group_ledger import Place
from fairlead_kafka.simulation.group_member import GroupMember, await_close
from fairlead_kafka.simulation.groups import MEMBER
from fairlead_kafka.simulation.keyed_writer import TOPIC as STATES
from fairlead_kafka.simulation.model_log import ModelPartition
from fairlead_kafka.simulation.process import Stage
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.replica_logs import read_held
from fairlead_kafka.simulation.share_checks import check_contents, check_share_group
from fairlead_kafka.simulation.share_jobs import TOPIC as JOBS
from fairlead_kafka.simulation.share_ledger import Acquisition, ShareLedger, Tenure
from fairlead_kafka.simulation.share_member import ShareProcess, ShareRole
from fairlead_kafka.simulation.share_probes import ShareProbes
from fairlead_kafka.simulation.share_rebirths import Rebirths
from fairlead_kafka.simulation.share_story import ShareHabits, SharesStory, ShareStory

CONVERGE_MS = 12_000.0
"""Milliseconds within which a patient member has been given all that is left, once all is well."""
HOLD_MS = 300.0
"""Milliseconds that members who held records have to say what they have to say of them."""
LOOK_MS = 20.0
"""Milliseconds between two looks at what is left."""
PATIENT = ShareHabits(150.0, 0.0, 0.0, True, 0.0, 0.0, 0.0, 1.0, 0.0, 500, False)
"""Habits of the member that accepts all that is left."""
ACQUIRED = "share groups: records are acquired"
NOT_TAKEN = ("auto.offset.reset", "enable.auto.commit")
"""Configs of consumers that share consumers do not take."""


class ShareMember(GroupMember[ShareProcess]):
    """One member of a share group: a process, and after it another."""

    def __init__(self, shares: Shares, story: ShareStory, number: int, ledger: ShareLedger) -> None:
        super().__init__(
            shares.stage, shares.cluster, f"share group {story.name}: member {number}", story.topics
        )
        self.story, self.ledger, self.seat = story, ledger, story.seats[number]
        self._shares = shares

    def _new_process(self) -> ShareProcess:
        return self._shares.process(self.story, self.ledger, self.seat.habits, self._ended)

    def calm(self) -> None:
        """Let nothing happen any more: be there, with the topics of the end."""
        super().calm()
        if self.process is not None and self.seat.holds:
            self.process.hold()


class Shares:
    """All share groups of a world. `partitions`: topic → number of partitions, for topics they
    read; `durable`: those of them that lost nothing."""

    def __init__(
        self,
        story: SharesStory,
        stage: Stage,
        cluster: RealCluster,
        partitions: Mapping[str, int],
        durable: Callable[[], Sequence[str]],
        rng: Random,
    ) -> None:
        self.stage, self.cluster = stage, cluster
        self.host, self.script, self._violated = stage
        self.story = story
        self.ledgers: list[ShareLedger] = []
        self.members: list[ShareMember] = []
        self.partitions, self.durable, self._rng = partitions, durable, rng
        self._processes = 0
        for group in story.groups:
            ledger = ShareLedger(
                group.name, group.topics, group.committed_only, group.limit, ms_to_ns(group.lock_ms)
            )
            self.ledgers.append(ledger)
            self.members += [ShareMember(self, group, number, ledger) for number in range(len(group.seats))]
        addresses = [broker.address for broker in cluster.brokers]
        self.probes = ShareProbes(self.host, self.script, addresses, self.new_rng(), self._running)
        self.rebirths = Rebirths(self.host, self.script, cluster, self.new_rng())

    def _running(self) -> list[tuple[str, ShareProcess]]:
        return [(member.story.name, member.process) for member in self.members if member.process is not None]

    def begin(self) -> None:
        """Plan the joins of all members and what happens to them, from now on."""
        for group in self.story.groups:
            level = "read_committed" if group.committed_only else "read_uncommitted"
            alterations = [
                ConfigAlteration("share.auto.offset.reset", AlterOperation.SET, "earliest"),
                ConfigAlteration("share.isolation.level", AlterOperation.SET, level),
            ]
            self.cluster.controller.decide(AlterGroupConfigs(group.name, alterations), _sound)
        for member in self.members:
            member.plan(member.seat.joins_ms, member.seat.happenings)
        self.probes.begin()
        self.rebirths.begin()

    def new_rng(self) -> Random:
        """A random number generator for one process, seeded by the world's."""
        return Random(self._rng.getrandbits(64))

    def process(
        self,
        story: ShareStory,
        ledger: ShareLedger,
        habits: ShareHabits,
        ended: Callable[[], None],
    ) -> ShareProcess:
        """A new process of a group."""
        self._processes += 1
        config = {
            **{key: value for key, value in MEMBER.items() if key not in NOT_TAKEN},
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "group.id": story.name,
            "max.poll.interval.ms": 2_500,
            "share.acknowledgement.mode": "explicit" if habits.explicit else "implicit",
            "share.acquire.mode": "record_limit" if habits.record_limit else "batch_optimized",
        }
        role = ShareRole(self._processes, self.new_rng(), config, habits, ledger)
        return ShareProcess(self.stage, role, ended)

    # What leaders do

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what leaders acquire, and have the network keep requests, while the block runs."""
        with HOOKS[ACQUIRED].replaced(self._noting), self.rebirths.keeping():
            yield

    def _noting(self, acquire: Method) -> Method:
        def noted(share: SharePartition, wanted: Wanted, *arguments: object) -> object:
            acquired = acquire(share, wanted, *arguments)
            broker = next(one for one in self.cluster.brokers if one.machine is share._host)
            ledger = next(one for one in self.ledgers if one.group == share.key.group_id)
            tenure = Tenure(share.leader_epoch, broker.life, broker.node_id)
            place = self._place(share.key)
            for first, last, deliveries in acquired:
                found = Acquisition(
                    self.host.now_ns(), wanted.deadline_ns, wanted.member, first, last, deliveries, tenure
                )
                ledger.acquired(place, found)
            return acquired

        return noted

    def _place(self, key: ShareKey) -> Place:
        return self.cluster.controller.image.topics_by_id[key.topic_id].name, key.partition

    # The end

    def calm(self) -> None:
        """Let nothing happen to any member any more. Some members keep the records that they are
        given next."""
        for member in self.members:
            member.calm()

    def converge(self) -> None:
        """Have a patient member read the records that are left: first beside members that keep
        records without acknowledging them, then after these have acknowledged them too late, and
        left."""
        self.probes.finish()
        self.rebirths.finish()
        for member in self.members:
            if not member.seat.holds:
                member.close()
        await_close(self.stage, [member for member in self.members if not member.seat.holds])
        holders = [member for member in self.members if member.seat.holds]
        patient = self._patient_members()
        if holders:
            self._await_finished("beside members that hold records")
            for member in holders:
                if member.process is not None:
                    member.process.let_go()
            self.host.advance(HOLD_MS)
            for member in holders:
                member.close()
            await_close(self.stage, holders)
        self._await_finished("after all other members have left")
        self._close(patient)

    def read_again(self) -> None:
        """Have a patient member of each group read the records that are left once more."""
        patient = self._patient_members()
        self._await_finished("after all brokers were started once more")
        self._close(patient)

    def _patient_members(self) -> list[ShareProcess]:
        patient = [
            self.process(group, ledger, PATIENT, lambda: None)
            for group, ledger in zip(self.story.groups, self.ledgers, strict=True)
        ]
        for process, ledger in zip(patient, self.ledgers, strict=True):
            process.begin(ledger.topics)
        return patient

    def _close(self, processes: Sequence[ShareProcess]) -> None:
        for process in processes:
            process.close()
        self._wait(
            lambda: [f"process {one.number} could not leave" for one in processes if not one.ended], ""
        )
        self.host.advance(1.0)

    def _await_finished(self, when: str) -> None:
        self._wait(self._unfinished, f", {when},")

    def _wait(self, unfinished: Callable[[], Sequence[str]], when: str) -> None:
        waited_ms = 0.0
        while left := unfinished():
            if waited_ms >= CONVERGE_MS:
                for what in left:
                    self._violated(f"share groups: {CONVERGE_MS:g} ms after all was well{when} {what}")
                return
            self.host.advance(LOOK_MS)
            waited_ms += LOOK_MS

    def _unfinished(self) -> list[str]:
        """Share partitions with records that are not completed, or that no member reads, as
        texts."""
        found: list[str] = []
        durable = self.durable()
        image = self.cluster.controller.image
        for ledger in self.ledgers:
            for topic in ledger.topics:
                if topic not in durable:
                    continue
                for index in range(self.partitions[topic]):
                    leader = image.topics[topic].partitions[index].leader
                    key = ShareKey(ledger.group, image.topics[topic].topic_id, index)
                    share = self.cluster.brokers[leader].machine.share_partitions.find(key)
                    name = f"{topic}-{index} of group {ledger.group}"
                    if share is None:
                        found.append(f"{name} is not read")
                        continue
                    partition = share.partition
                    end = partition.last_stable_offset if ledger.committed_only else partition.high_watermark
                    if max(share.window.start, partition.log_start) < end:
                        runs = [(run.first, run.last, run.now.state.name) for run in share.window][:4]
                        found.append(f"{name} is done up to {share.window.start} of {end}: {runs}")
        return found


def check_shares(shares: Shares, deleted: Mapping[Place, int]) -> list[str]:
    """Every violation, as a text, in the deliveries of a world's share groups, once it has ended.
    `deleted`: place (topic, number) → the offset before which records may be gone."""
    cluster, durable = shares.cluster, shares.durable()
    read = {topic for ledger in shares.ledgers for topic in ledger.topics}
    log = read_held(cluster, {topic: shares.partitions[topic] for topic in sorted(read)})
    records = {(topic, index): _records_of(partition) for topic, index, partition in log.each()}
    starts = {place: max(_log_start(cluster, place), deleted.get(place, 0)) for place in records}
    found = [*shares.probes.violations, *shares.rebirths.violations]
    for ledger in shares.ledgers:
        visible = {
            place: [offset for offset in offsets if offset in records[place]]
            for place, offsets in visible_offsets(log, ledger.committed_only).items()
        }
        found += check_share_group(ledger, records, visible, starts, durable)
        found += check_contents(ledger, records, visible, (JOBS, STATES), durable)
    return found


def _records_of(partition: ModelPartition) -> dict[int, bytes | None]:
    """The values of a partition's records, by offset."""
    data = b"".join(batch.data for batch in partition.batches if batch.data is not None)
    if not data:
        return {}
    decoded = decode(data)
    return dict(zip(decoded.offsets.tolist(), decoded.values.to_list(), strict=True))


def _log_start(cluster: RealCluster, place: Place) -> int:
    image = cluster.controller.image.topics[place[0]]
    log = cluster.brokers[image.partitions[place[1]].leader].machine.logs.known(image.topic_id, place[1])
    assert log is not None, "a leader has its log"
    return log.log_start


def _sound(_result: object, error: Exception | None) -> None:
    if error is not None:
        raise error
