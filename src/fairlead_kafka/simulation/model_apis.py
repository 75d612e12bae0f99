"""Answers of model brokers besides Produce: versions, metadata, producer ids, and the transaction
coordinator's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.core.connection import R
from fairlead_kafka.simulation.model_cluster import PORT, ModelCluster, ModelNode
from fairlead_kafka.simulation.model_log import NOWHERE, ModelPartition, ModelTopic
from fairlead_kafka.simulation.model_transactions import ModelTransactions
from fairlead_kafka.wire import ApiKey, ApiMessage, Message, Request
from fairlead_kafka.wire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

VERSIONS: dict[ApiKey, tuple[int, int]] = {
    ApiKey.PRODUCE: (3, 13),
    ApiKey.METADATA: (4, 12),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.INIT_PRODUCER_ID: (0, 4),
    ApiKey.FIND_COORDINATOR: (0, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 3),
    ApiKey.END_TXN: (0, 3),
    ApiKey.TXN_OFFSET_COMMIT: (0, 3),
}
"""API → the lowest and highest version that a model broker serves."""
Ending = TypeVar("Ending", AddOffsetsToTxnRequest, EndTxnRequest)


class ModelApis:
    """Makes the answers that any model broker of a cluster can give."""

    def __init__(self, cluster: ModelCluster) -> None:
        self._cluster = cluster
        self.transactions = ModelTransactions(cluster, self._new_producer_id)
        self._last_producer_id = 999
        self._answers: dict[int, Callable[..., ApiMessage | None]] = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.INIT_PRODUCER_ID: self._init_producer_id,
            ApiKey.FIND_COORDINATOR: self._find_coordinator,
            ApiKey.ADD_PARTITIONS_TO_TXN: self._add_partitions,
            ApiKey.ADD_OFFSETS_TO_TXN: self._add_offsets,
            ApiKey.END_TXN: self._end,
            ApiKey.TXN_OFFSET_COMMIT: self._commit_offsets,
        }

    def answer(self, broker: ModelNode, request: Request[Message], accepted_ns: int) -> ApiMessage | None:
        """The response to a request; None closes the connection, as for an API that is not offered.
        `accepted_ns`: when the connection was accepted, ns."""
        answer = self._answers.get(request.api_key)
        return None if answer is None else answer(broker, request, accepted_ns)

    def _new_producer_id(self) -> int:
        self._last_producer_id += 1
        return self._last_producer_id

    def _api_versions(
        self, broker: ModelNode, request: Request[ApiVersionsRequest], _: int
    ) -> ApiVersionsResponse:
        row = ApiVersionsResponse.ApiVersion
        keys = [
            row(api_key=int(key), min_version=low, max_version=high) for key, (low, high) in VERSIONS.items()
        ]
        return ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0)

    def _init_producer_id(
        self, broker: ModelNode, request: Request[InitProducerIdRequest], accepted_ns: int
    ) -> InitProducerIdResponse | None:
        key = request.message.transactional_id
        if key is not None:
            if not self.transactions.hears(key, accepted_ns):
                return None
            code = self._misplaced(broker, request, key)
            producer_id, epoch = -1, -1
            if not code:
                code, producer_id, epoch = self.transactions.initialize(request, accepted_ns)
        else:
            code = self._cluster.coordinator_error(broker.node_id, ApiKey.INIT_PRODUCER_ID)
            producer_id, epoch = (-1, -1) if code else (self._new_producer_id(), self._cluster.first_epoch)
        return InitProducerIdResponse(
            throttle_time_ms=0, error_code=code, producer_id=producer_id, producer_epoch=epoch
        )

    # Coordinators

    def _misplaced(self, broker: ModelNode, request: Request[R], key: str) -> int:
        """NOT_COORDINATOR if another broker coordinates `key`, else the error code that a script
        wants, or 0.
        """
        if self.transactions.coordinator(key) != broker.node_id:
            return ErrorCode.NOT_COORDINATOR
        return self._cluster.coordinator_error(broker.node_id, ApiKey(request.api_key))

    def _find_coordinator(
        self, broker: ModelNode, request: Request[FindCoordinatorRequest], _: int
    ) -> FindCoordinatorResponse:
        keys = request.message.coordinator_keys if request.version >= 4 else [request.message.key]
        found = [self._coordinator(broker, key) for key in keys]
        if request.version >= 4:
            return FindCoordinatorResponse(throttle_time_ms=0, coordinators=found)
        first = found[0]
        return FindCoordinatorResponse(
            throttle_time_ms=0,
            error_message=None,
            error_code=first.error_code,
            node_id=first.node_id,
            host=first.host,
            port=first.port,
        )

    def _coordinator(self, broker: ModelNode, key: str) -> FindCoordinatorResponse.Coordinator:
        made = FindCoordinatorResponse.Coordinator
        node_id = self.transactions.coordinator(key)
        code = self._cluster.coordinator_error(broker.node_id, ApiKey.FIND_COORDINATOR)
        if code or node_id == NOWHERE:
            code = code or ErrorCode.COORDINATOR_NOT_AVAILABLE
            return made(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=None)
        host = self._cluster.machines[node_id].name
        return made(key=key, node_id=node_id, host=host, port=PORT, error_code=0, error_message=None)

    def _add_partitions(
        self, broker: ModelNode, request: Request[AddPartitionsToTxnRequest], accepted_ns: int
    ) -> AddPartitionsToTxnResponse | None:
        message = request.message
        key = message.v3_and_below_transactional_id
        if not self.transactions.hears(key, accepted_ns):
            return None
        partitions = [
            (topic.name, index) for topic in message.v3_and_below_topics for index in topic.partitions
        ]
        code = self._misplaced(broker, request, key) or self.transactions.add_partitions(request, partitions)
        row = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
        results = [
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    row(partition_index=index, partition_error_code=code) for index in topic.partitions
                ],
            )
            for topic in message.v3_and_below_topics
        ]
        return AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_topic_v3_and_below=results)

    def _add_offsets(
        self, broker: ModelNode, request: Request[AddOffsetsToTxnRequest], accepted_ns: int
    ) -> AddOffsetsToTxnResponse | None:
        code = self._coordinated(broker, request, accepted_ns, self.transactions.add_offsets)
        return None if code is None else AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=code)

    def _end(
        self, broker: ModelNode, request: Request[EndTxnRequest], accepted_ns: int
    ) -> EndTxnResponse | None:
        code = self._coordinated(broker, request, accepted_ns, self.transactions.end)
        return None if code is None else EndTxnResponse(throttle_time_ms=0, error_code=code)

    def _coordinated(
        self,
        broker: ModelNode,
        request: Request[Ending],
        accepted_ns: int,
        act: Callable[[Request[Ending]], int],
    ) -> int | None:
        key = request.message.transactional_id
        if not self.transactions.hears(key, accepted_ns):
            return None
        return self._misplaced(broker, request, key) or act(request)

    def _commit_offsets(
        self, broker: ModelNode, request: Request[TxnOffsetCommitRequest], accepted_ns: int
    ) -> TxnOffsetCommitResponse | None:
        message = request.message
        if not self.transactions.hears(message.transactional_id, accepted_ns):
            return None
        code = self._misplaced(broker, request, message.group_id) or self.transactions.commit_offsets(request)
        row = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
        topics = [
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    row(partition_index=each.partition_index, error_code=code) for each in topic.partitions
                ],
            )
            for topic in message.topics
        ]
        return TxnOffsetCommitResponse(throttle_time_ms=0, topics=topics)

    # Metadata

    def _metadata(self, broker: ModelNode, request: Request[MetadataRequest], _: int) -> MetadataResponse:
        cluster = self._cluster
        asked = request.message.topics
        names = list(cluster.log.topics) if asked is None else [topic.name or "" for topic in asked]
        node = MetadataResponse.MetadataResponseBroker
        running = [machine for machine in cluster.machines if machine.running]
        return MetadataResponse(
            throttle_time_ms=0,
            brokers=[node(node_id=each.node_id, host=each.name, port=PORT, rack=None) for each in running],
            cluster_id=cluster.name,
            controller_id=broker.node_id,
            topics=[self._topic(broker, name) for name in names],
        )

    def _topic(self, broker: ModelNode, name: str) -> MetadataResponse.MetadataResponseTopic:
        made = MetadataResponse.MetadataResponseTopic
        topic = self._cluster.log.topics.get(name)
        code = self._cluster.coordinator_error(broker.node_id, ApiKey.METADATA) or (
            0 if topic else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        if code or topic is None:
            return made(error_code=code, name=name, is_internal=False, partitions=[])
        rows = self._partitions(broker, topic)
        return made(error_code=0, name=name, topic_id=topic.topic_id, is_internal=False, partitions=rows)

    def _partitions(
        self, broker: ModelNode, topic: ModelTopic
    ) -> list[MetadataResponse.MetadataResponsePartition]:
        return [self._partition(broker, index, partition) for index, partition in enumerate(topic.partitions)]

    def _partition(
        self, broker: ModelNode, index: int, partition: ModelPartition
    ) -> MetadataResponse.MetadataResponsePartition:
        leader, epoch = partition.leader, partition.leader_epoch
        if (
            broker.node_id != leader
            and self._cluster.host.now_ns() < partition.moved_ns + self._cluster.metadata_lag_ns
        ):
            leader, epoch = partition.previous_leader, epoch - 1  # this broker has not heard of it yet
        nodes = list(range(len(self._cluster.machines)))
        return MetadataResponse.MetadataResponsePartition(
            error_code=ErrorCode.NONE if leader != NOWHERE else ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=index,
            leader_id=leader,
            leader_epoch=epoch,
            replica_nodes=nodes,
            isr_nodes=nodes,
            offline_replicas=[],
        )
