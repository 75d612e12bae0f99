"""Records as release 0.1.0 wrote them: read once, when a cluster's folder is opened, and written in
the present form in the snapshot that follows.

In 0.1.0 a partition was a list of its own, [replicas, isr, leader, leader_epoch], a change of
leaders a list of [topic_id, partition, isr, leader, leader_epoch], and brokers had no epochs.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead_kafka.broker.controller.fold import ChangedPartition, MetadataRecord, changed_records
from fairlead_kafka.broker.controller.image import NO_BROKER_EPOCH, ClusterImage, PartitionImage
from fairlead_kafka.broker.controller.packed import pack


def modern(image: ClusterImage, record: MetadataRecord) -> list[MetadataRecord]:
    """A record of an older release in today's form, which may take two records; `image` is the
    cluster before it."""
    if record["type"] == "broker" and "epoch" not in record:
        return [{**record, "epoch": NO_BROKER_EPOCH, "stopping": False}]
    if isinstance(record.get("partitions"), list):
        partitions = [
            PartitionImage(tuple(replicas), tuple(isr), leader, epoch)
            for replicas, isr, leader, epoch in record["partitions"]
        ]
        return [{**record, "partitions": pack(partitions)}]
    if "changes" in record:
        return changed_records(_change(image, *change) for change in record["changes"])
    return [record]


def _change(
    image: ClusterImage, topic_id: str, number: int, isr: list[int], leader: int, leader_epoch: int
) -> ChangedPartition:
    topic = image.topic_of_hex(topic_id)
    if topic is None:
        raise KeyError(topic_id)
    before = topic.partitions[number]
    after = replace(
        before,
        isr=tuple(isr),
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=before.partition_epoch + 1,
    )
    return topic, number, after
