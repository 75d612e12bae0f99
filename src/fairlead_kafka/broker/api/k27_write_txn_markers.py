"""WriteTxnMarkers (27): markers that end transactions, for partitions led here.

Versions 1-2; answered when all are written. It comes from the transaction's coordinator, or from an
admin who ends one left hanging. Version 2 says by which `transaction.version` the transaction was
made: a marker of version 2 must bring a new epoch (KIP-1228; INVALID_PRODUCER_EPOCH).

Needs ALTER or CLUSTER_ACTION on the cluster (CLUSTER_AUTHORIZATION_FAILED for every partition).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.api.common import PendingParts
from fairlead_kafka.broker.api.rights import may_cluster
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.internal import Marker, append_marker
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_FENCED_FROM_VERSION = 2
_Row = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


@serves(ApiKey.WRITE_TXN_MARKERS, versions=(1, 2))
def write_txn_markers(
    broker: Services, request: Request[WriteTxnMarkersRequest], session: Requester, reply: Reply
) -> None:
    """Serve WriteTxnMarkers: append every marker to every partition that it names."""
    answer = WriteTxnMarkersResponse(markers=[])
    parts_pending = PendingParts(lambda: reply(answer))
    allowed = may_cluster(session, AclOperation.ALTER, quiet=True) or may_cluster(
        session, AclOperation.CLUSTER_ACTION
    )
    error = ErrorCode.NONE if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    for asked in request.message.markers:
        marker = Marker(
            asked.producer_id,
            asked.producer_epoch,
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version if request.version >= _FENCED_FROM_VERSION else 0,
        )
        topics = []
        for topic in asked.topics:
            rows = [_Row(partition_index=number, error_code=error) for number in topic.partition_indexes]
            topics.append(
                WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(name=topic.name, partitions=rows)
            )
            for row in rows if allowed else ():
                _append(broker, TopicPartition(topic.name, row.partition_index), marker, row, parts_pending)
        answer.markers.append(
            WriteTxnMarkersResponse.WritableTxnMarkerResult(producer_id=asked.producer_id, topics=topics)
        )
    parts_pending.done()


def _append(
    broker: Services, of: TopicPartition, marker: Marker, row: _Row, parts_pending: PendingParts
) -> None:
    parts_pending.begin()

    def appended(error: int) -> None:
        row.error_code = error
        parts_pending.done()

    append_marker(broker, of, marker, appended)
