"""Registration and fencing of brokers, with the changes of the partitions that a broker leads or is
in sync for. States of a broker:

- awaited: it was alive when the controller itself ended, and has not come back yet. It is in sync
  as before; its partitions have no leader.
- fenced: it stopped, was lost, or was awaited for `broker.session.timeout.ms`. It leads nothing,
  and is in sync only where no other replica is.
- alive: it started. It leads, and is in sync.
- stopping: it asked to leave in good order, and will be fenced. It leads only where no other can.
- disk failed: it reported that it cannot write, and will report when it can. It leads only where no
  other can, and is in sync only where no other is.

A broker that is lost leads nothing from that moment, whether the change can be written to the
metadata log or not. New leaders and replicas in sync are set only once they are written: until then
the partitions have no leader, and writing is tried again every second.

Each start is a new epoch; a broker that uses an older one gets STALE_BROKER_EPOCH. The loss of a
broker is detected by the server that has its connection (`broker.control`), or reported by the
broker itself if it runs in the controller's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER, Node
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller.elections import Electorate, after_coming, after_leaving, changed, grown
from fairlead_kafka.broker.controller.fold import (
    ChangedPartition,
    MetadataRecord,
    broker_record,
    changed_records,
)
from fairlead_kafka.broker.controller.image import BrokerInfo, PartitionImage, TopicImage
from fairlead_kafka.broker.controller.journal import Journal

Decide = Callable[[PartitionImage, bool, int], PartitionImage | None]
"""A partition, whether unclean election is on for it, and who led it before a restart → what it is
to become, or None."""

TRY_AGAIN_MS = 1000
"""How often the metadata log is tried again for what follows from a broker's end."""


class Brokers:
    """Decides on the partitions' leaders and replicas in sync when a broker starts, stops or is
    lost."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._image = journal.image
        self._awaiting_since_ns: int | None = None
        self._unwritten: dict[int, bool] = {}
        """Brokers that left while the metadata log could not be written, in this order: what
        follows from it is still to be decided, with unclean elections or not."""
        self._try_again_ns: int | None = None
        self.all_stopping = False
        """The cluster ends: nobody takes over from anybody. What is not replicated by now is not
        acknowledged (acks=all)."""

    def electorate(self, *, without: int | None = None, coming: int | None = None) -> Electorate:
        """The brokers that count in elections now, without one that leaves and with one that
        comes."""
        alive = {node_id for node_id, broker in self._image.brokers.items() if broker.alive}
        eligible = set(self._image.eligible())
        if coming is not None:
            alive.add(coming)
            eligible.add(coming)
        if without is not None:
            alive.discard(without)
            eligible.discard(without)
        resigned = (alive & self._unwritten.keys()) - eligible
        return Electorate(alive, eligible, self._journal.awaited - alive, resigned)

    # --- Coming and going

    def started(self, node: Node, endpoints: Mapping[str, tuple[str, int]]) -> int:
        """Note that a broker listens, and make it leader of partitions without one in which it is
        in sync. Returns its new broker epoch. If it was known as alive, its earlier life ends
        first. BrokerError KAFKA_STORAGE_ERROR: the metadata log takes nothing."""
        self.stopped(node.node_id)
        self._leave_again()
        if node.node_id in self._unwritten:
            # It may have lost what it had not synced: while it counts as in sync for what was
            # before, it must not lead.
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"that broker {node.node_id} had ended could not be written to the metadata log: make room, "
                "and try again",
            )
        awaited = self._journal.awaited
        broker = BrokerInfo(node, True, self._image.next_broker_epoch(), endpoints=endpoints)
        electorate = self.electorate(coming=node.node_id)
        changes = self.changes(lambda one, unclean, last: after_coming(one, electorate, unclean, last))
        self._journal.commit([broker_record(broker), *changed_records(changes)])
        awaited.discard(node.node_id)
        if not awaited:
            self._journal.last_leaders.clear()
        return broker.epoch

    def stopping(self, node_id: int) -> None:
        """Begin a controlled shutdown: other brokers become leaders of the partitions that the
        broker leads, where they can, while it still serves."""
        broker = self._image.brokers.get(node_id)
        if broker is None or not broker.alive or broker.stopping:
            return
        self._resign(replace(broker, stopping=True))

    def disk_reported(self, node_id: int, epoch: int, works: bool) -> None:
        """Note that writes to a broker's disk fail, or succeed again (`works`). BrokerError as in
        `check_epoch`. Kafka's counterpart is a log directory failure; but a broker of Kafka with
        one log directory ends then, and this one goes on serving reads."""
        broker = self.check_epoch(node_id, epoch)
        if not broker.alive or broker.disk_failed is not works:
            return
        if not works:
            self._resign(replace(broker, disk_failed=True))
            return
        electorate = self.electorate(coming=node_id)
        changes = self.changes(lambda one, unclean, last: after_coming(one, electorate, unclean, last))
        self._journal.commit([broker_record(replace(broker, disk_failed=False)), *changed_records(changes)])

    def _resign(self, broker: BrokerInfo) -> None:
        """Take a broker off the leaders and replicas in sync of its partitions, where others are in
        sync."""
        node_id = broker.node.node_id
        self._leave_again()
        self._leave(node_id, self._without(node_id), broker_record(broker), unclean=False)

    def _without(self, node_id: int) -> Electorate:
        """The electorate without a broker that resigned, and may go on leading."""
        electorate = self.electorate()
        return replace(
            electorate,
            eligible=set(electorate.eligible) - {node_id},
            resigned=set(electorate.resigned) - {node_id},
        )

    def stopped(self, node_id: int) -> None:
        """Called when the broker has ended: the partitions that it led are led by the next replica
        in sync that is alive, or by none until it is back."""
        broker = self._image.brokers.get(node_id)
        if broker is None or not broker.alive:
            return
        electorate = self.electorate(without=node_id)
        self._leave(
            node_id,
            electorate,
            broker_record(replace(broker, alive=False, stopping=False, disk_failed=False)),
        )

    # --- Waiting after a restart

    def tick(self, now_ns: int) -> None:
        """Count brokers as stopped that did not come back after a restart of the controller, and
        make decisions again that could not be written before."""
        if not self._journal.awaited:
            self._awaiting_since_ns = None
        elif self._awaiting_since_ns is None:
            self._awaiting_since_ns = now_ns
        elif now_ns - self._awaiting_since_ns >= self._patience_ns():
            self._give_up()
        if self._try_again_ns is not None and now_ns >= self._try_again_ns:
            self._leave_again()
        if not self._unwritten:
            self._try_again_ns = None
        elif self._try_again_ns is None or now_ns >= self._try_again_ns:
            self._try_again_ns = now_ns + ms_to_ns(TRY_AGAIN_MS)

    def deadline_ns(self) -> int | None:
        """Time at which `tick` has something to do, ns; None: there is nothing."""
        due = [] if self._awaiting_since_ns is None else [self._awaiting_since_ns + self._patience_ns()]
        if self._unwritten:
            due.append(self._try_again_ns or 0)
        return min(due, default=None)

    def write_ends(self) -> None:
        """Decide on what follows from ends that could not be written, before anything is decided
        that counts on the replicas in sync. BrokerError KAFKA_STORAGE_ERROR: it cannot be written
        yet."""
        self._leave_again(resigned=False)
        if not all(map(self._image.is_alive, self._unwritten)):
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                "that brokers have ended could not be written to the metadata log: make room, and try again",
            )

    def _leave_again(self, *, resigned: bool = True) -> None:
        """Decide what follows from ends that could not be written, in their order: of replicas that
        all ended, the one that ended last has everything, and stays in sync. Those that resigned
        and still run come after all that ended."""
        for node_id in sorted(self._unwritten, key=self._image.is_alive):
            if self._image.is_alive(node_id) and (self.all_stopping or not resigned):
                return
            came_back = node_id in self._image.eligible()  # which was written
            if not came_back and not self._write(
                self._after_leaving(node_id, self._without(node_id), self._unwritten[node_id])
            ):
                return
            self._unwritten.pop(node_id, None)

    def _patience_ns(self) -> int:
        return ms_to_ns(self._journal.configs.broker_settings()["broker.session.timeout.ms"])

    def _give_up(self) -> None:
        gone = sorted(self._journal.awaited)
        self._journal.awaited.clear()
        self._journal.last_leaders.clear()
        self._awaiting_since_ns = None
        electorate = self.electorate()
        for node_id in gone:
            self._leave(node_id, electorate)

    def _leave(
        self, node_id: int, electorate: Electorate, *first: MetadataRecord, unclean: bool = True
    ) -> None:
        self._leave_again(resigned=False)
        self._unwritten.pop(node_id, None)
        next_to_write = all(unclean and self._image.is_alive(other) for other in self._unwritten)
        records = [*first, *([] if self.all_stopping else self._after_leaving(node_id, electorate, unclean))]
        if next_to_write and self._write(records):
            return
        # Who leads now and who is in sync must be on the disk before anybody acts on it: a
        # controller that starts again would not know that a replica had left those in sync, and
        # might let it lead. That nobody leads it takes for granted.
        lost = self.changes(
            lambda one, _unclean, _last: (
                None if one.leader in electorate.alive else changed(one, leader=NO_LEADER)
            )
        )
        self._journal.enact_fact([*first, *changed_records(lost)])
        if not self.all_stopping:
            self._unwritten[node_id] = unclean

    def _after_leaving(self, node_id: int, electorate: Electorate, unclean: bool) -> list[MetadataRecord]:
        """Records of the changes that follow from a broker's end or resignation."""
        return changed_records(
            self.changes(lambda one, allowed, _: after_leaving(one, node_id, electorate, unclean and allowed))
        )

    def _write(self, records: Sequence[MetadataRecord]) -> bool:
        """Decide; False if it could not be written."""
        try:
            if records:
                self._journal.commit(records)
        except BrokerError:
            return False
        return True

    def check_epoch(self, node_id: int, epoch: int) -> BrokerInfo:
        """The broker of this id, if `epoch` is that of its present life. BrokerError:
        BROKER_ID_NOT_REGISTERED or STALE_BROKER_EPOCH."""
        broker = self._image.brokers.get(node_id)
        if broker is None:
            raise BrokerError(
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                f"broker {node_id} never started in this cluster: register it first",
            )
        if broker.epoch != epoch:
            raise BrokerError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"broker {node_id} has epoch {broker.epoch}, not {epoch}: it started again since; register "
                "again",
            )
        return broker

    # --- All partitions

    def unclean(self, topic: TopicImage) -> bool:
        """True if a replica that is not in sync may lead where no other is alive."""
        return bool(self._journal.configs.topic_settings(topic)["unclean.leader.election.enable"])

    def changes(self, decide: Decide) -> Iterator[ChangedPartition]:
        """Yield what `decide` makes of each partition that it changes.

        `decide` is called once for all partitions of a topic that are equal but for their epochs.
        """
        for topic in self._image.topics.values():
            unclean = self.unclean(topic)
            lasts = chain(self._journal.last_leaders.get(topic.topic_id, ()), repeat(NO_LEADER))
            decided: dict[tuple[object, ...], PartitionImage | None] = {}
            for number, (before, last) in enumerate(zip(topic.partitions, lasts, strict=False)):
                look = (before.replicas, before.isr, before.leader, before.adding, before.removing, last)
                if look not in decided:
                    decided[look] = decide(replace(before, leader_epoch=0, partition_epoch=0), unclean, last)
                after = decided[look]
                if after is not None:
                    yield topic, number, grown(before, after)
