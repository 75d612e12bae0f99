"""Changes of replicas in sync, which their leader asks for, as only it knows their offsets
(AlterPartition, KIP-497 and KIP-903)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller.brokers import Brokers
from fairlead_kafka.broker.controller.decisions import ProposedIsr
from fairlead_kafka.broker.controller.elections import Electorate, after_leaving, changed, grown
from fairlead_kafka.broker.controller.fold import ChangedPartition, changed_records
from fairlead_kafka.broker.controller.image import NO_BROKER_EPOCH, PartitionImage, TopicImage
from fairlead_kafka.broker.controller.journal import Journal
from fairlead_kafka.broker.controller.limits import Limits
from fairlead_kafka.broker.controller.reassignment import completed


class InSync:
    """Decides on the replicas in sync that leaders propose."""

    def __init__(self, journal: Journal, brokers: Brokers, limits: Limits) -> None:
        self._journal = journal
        self._limits = limits
        self._brokers = brokers

    def alter(self, node_id: int, broker_epoch: int, proposals: Sequence[ProposedIsr]) -> list[int]:
        """Accept the proposals that can be accepted, in one decision; per proposal an error code, 0
        if it is accepted or true already.

        BrokerError(STALE_BROKER_EPOCH) if the leader that proposes is not in its present life.
        """
        self._brokers.check_epoch(node_id, broker_epoch)
        image, electorate = self._journal.image, self._brokers.electorate()
        topics = {topic_id: image.topic_of_hex(topic_id) for topic_id in {one.topic_id for one in proposals}}
        decided: dict[tuple[object, ...], PartitionImage | int | None] = {}
        changes: dict[tuple[str, int], ChangedPartition] = {}
        codes = []
        for proposal in proposals:
            topic, key = topics[proposal.topic_id], (proposal.topic_id, proposal.partition)
            before = _found(topic, proposal.partition)
            code = before if isinstance(before, int) else _stale(node_id, proposal, before)
            if key in changes:
                code = ErrorCode.INVALID_UPDATE_VERSION
            if topic is not None and not isinstance(before, int) and not code:
                # Many partitions look alike, and are to look alike again.
                look = (
                    before.replicas,
                    before.isr,
                    before.leader,
                    before.adding,
                    before.removing,
                    *map(tuple, _wanted(proposal)),
                )
                if look not in decided:
                    decided[look] = self._decide(
                        proposal, replace(before, leader_epoch=0, partition_epoch=0), electorate
                    )
                outcome = decided[look]
                if isinstance(outcome, int):
                    code = outcome
                elif outcome is not None:
                    changes[key] = (topic, proposal.partition, grown(before, outcome))
            codes.append(int(code))
        if changes:
            moved = any(
                after.replicas != topic.partitions[number].replicas
                for topic, number, after in changes.values()
            )
            self._journal.commit(changed_records(changes.values()))
            if moved:
                self._limits.forget()
        return codes

    def _decide(
        self, proposal: ProposedIsr, before: PartitionImage, electorate: Electorate
    ) -> PartitionImage | int | None:
        """The partition with the proposed replicas in sync, and with its reassignment completed if
        that waited for them; None: it has them already; or an error code."""
        isr, epochs = _wanted(proposal)
        if len(set(isr)) != len(isr) or not set(isr) <= set(before.replicas) or before.leader not in isr:
            return ErrorCode.INVALID_REQUEST
        # A replica comes into sync only if it is alive, is to stay, and is in the life that its
        # leader saw (KIP-903).
        brokers = self._journal.image.brokers
        for replica, epoch in zip(isr, epochs, strict=False):
            if replica not in electorate.eligible and replica != before.leader:
                return ErrorCode.INELIGIBLE_REPLICA
            if epoch not in (NO_BROKER_EPOCH, brokers[replica].epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        if set(isr) == set(before.isr):
            return None
        after = changed(before, isr=tuple(isr))
        if after is not None and before.leader not in electorate.eligible:
            # It led because nobody else was in sync. Now somebody is.
            after = after_leaving(after, before.leader, electorate, unclean=False) or after
            after.partition_epoch = before.partition_epoch + 1
        over = None if after is None else completed(after, electorate)
        if over is None:
            return after
        over.partition_epoch = before.partition_epoch + 1
        return over


def _wanted(proposal: ProposedIsr) -> tuple[Sequence[int], Sequence[int]]:
    return proposal.isr, proposal.isr_epochs or [NO_BROKER_EPOCH] * len(proposal.isr)


def _found(topic: TopicImage | None, number: int) -> PartitionImage | int:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return (
        topic.partitions[number]
        if 0 <= number < len(topic.partitions)
        else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def _stale(node_id: int, proposal: ProposedIsr, before: PartitionImage) -> int:
    """The error code for a proposal that was made from an older image; 0: it was not. The first
    condition that holds decides (Kafka's
    `ReplicationControlManager.validateAlterPartitionData`)."""
    leader_epoch, partition_epoch = proposal.leader_epoch, proposal.partition_epoch
    if (leader_epoch, partition_epoch, node_id) == (
        before.leader_epoch,
        before.partition_epoch,
        before.leader,
    ):
        return ErrorCode.NONE
    rows = (
        (leader_epoch > before.leader_epoch, ErrorCode.NOT_CONTROLLER),
        (partition_epoch > before.partition_epoch, ErrorCode.NOT_CONTROLLER),
        (leader_epoch < before.leader_epoch, ErrorCode.FENCED_LEADER_EPOCH),
        (node_id != before.leader, ErrorCode.INVALID_REQUEST),
        (partition_epoch < before.partition_epoch, ErrorCode.INVALID_UPDATE_VERSION),
    )
    return next(code for holds, code in rows if holds)
