"""Kafka's requests and responses as type checkers see them. Written by `src/schemas/stubs.py`; edits here are lost."""

from uuid import UUID

from fairlead_kafka.wire.message import ApiMessage, RequestMessage
from fairlead_kafka.wire.primitives import Buffer

class ProduceResponse(ApiMessage):
    class TopicProduceResponse(ApiMessage):
        name: str
        partition_responses: list[ProduceResponse.PartitionProduceResponse]
        topic_id: UUID
        def __init__(self, *, name: str = ..., partition_responses: list[ProduceResponse.PartitionProduceResponse] = ..., topic_id: UUID = ...) -> None: ...
    class PartitionProduceResponse(ApiMessage):
        index: int
        error_code: int
        base_offset: int
        log_append_time_ms: int
        log_start_offset: int
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage]
        error_message: str | None
        current_leader: ProduceResponse.LeaderIdAndEpoch
        def __init__(self, *, index: int = ..., error_code: int = ..., base_offset: int = ..., log_append_time_ms: int = ..., log_start_offset: int = ..., record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = ..., error_message: str | None = ..., current_leader: ProduceResponse.LeaderIdAndEpoch = ...) -> None: ...
    class BatchIndexAndErrorMessage(ApiMessage):
        batch_index: int
        batch_index_error_message: str | None
        def __init__(self, *, batch_index: int = ..., batch_index_error_message: str | None = ...) -> None: ...
    class LeaderIdAndEpoch(ApiMessage):
        leader_id: int
        leader_epoch: int
        def __init__(self, *, leader_id: int = ..., leader_epoch: int = ...) -> None: ...
    class NodeEndpoint(ApiMessage):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ...) -> None: ...
    responses: list[ProduceResponse.TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: list[ProduceResponse.NodeEndpoint]
    def __init__(self, *, responses: list[ProduceResponse.TopicProduceResponse] = ..., throttle_time_ms: int = ..., node_endpoints: list[ProduceResponse.NodeEndpoint] = ...) -> None: ...

class ProduceRequest(RequestMessage[ProduceResponse]):
    class TopicProduceData(ApiMessage):
        name: str
        partition_data: list[ProduceRequest.PartitionProduceData]
        topic_id: UUID
        def __init__(self, *, name: str = ..., partition_data: list[ProduceRequest.PartitionProduceData] = ..., topic_id: UUID = ...) -> None: ...
    class PartitionProduceData(ApiMessage):
        index: int
        records: Buffer | None
        def __init__(self, *, index: int = ..., records: Buffer | None = ...) -> None: ...
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[ProduceRequest.TopicProduceData]
    def __init__(self, *, transactional_id: str | None = ..., acks: int = ..., timeout_ms: int = ..., topic_data: list[ProduceRequest.TopicProduceData] = ...) -> None: ...

class FetchResponse(ApiMessage):
    class FetchableTopicResponse(ApiMessage):
        topic: str
        partitions: list[FetchResponse.PartitionData]
        topic_id: UUID
        def __init__(self, *, topic: str = ..., partitions: list[FetchResponse.PartitionData] = ..., topic_id: UUID = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        error_code: int
        high_watermark: int
        last_stable_offset: int
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None
        records: Buffer | None
        log_start_offset: int
        preferred_read_replica: int
        diverging_epoch: FetchResponse.EpochEndOffset
        current_leader: FetchResponse.LeaderIdAndEpoch
        snapshot_id: FetchResponse.SnapshotId
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., high_watermark: int = ..., last_stable_offset: int = ..., aborted_transactions: list[FetchResponse.AbortedTransaction] | None = ..., records: Buffer | None = ..., log_start_offset: int = ..., preferred_read_replica: int = ..., diverging_epoch: FetchResponse.EpochEndOffset = ..., current_leader: FetchResponse.LeaderIdAndEpoch = ..., snapshot_id: FetchResponse.SnapshotId = ...) -> None: ...
    class AbortedTransaction(ApiMessage):
        producer_id: int
        first_offset: int
        def __init__(self, *, producer_id: int = ..., first_offset: int = ...) -> None: ...
    class EpochEndOffset(ApiMessage):
        epoch: int
        end_offset: int
        def __init__(self, *, epoch: int = ..., end_offset: int = ...) -> None: ...
    class LeaderIdAndEpoch(ApiMessage):
        leader_id: int
        leader_epoch: int
        def __init__(self, *, leader_id: int = ..., leader_epoch: int = ...) -> None: ...
    class SnapshotId(ApiMessage):
        end_offset: int
        epoch: int
        def __init__(self, *, end_offset: int = ..., epoch: int = ...) -> None: ...
    class NodeEndpoint(ApiMessage):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ...) -> None: ...
    throttle_time_ms: int
    responses: list[FetchResponse.FetchableTopicResponse]
    error_code: int
    session_id: int
    node_endpoints: list[FetchResponse.NodeEndpoint]
    def __init__(self, *, throttle_time_ms: int = ..., responses: list[FetchResponse.FetchableTopicResponse] = ..., error_code: int = ..., session_id: int = ..., node_endpoints: list[FetchResponse.NodeEndpoint] = ...) -> None: ...

class FetchRequest(RequestMessage[FetchResponse]):
    class FetchTopic(ApiMessage):
        topic: str
        partitions: list[FetchRequest.FetchPartition]
        topic_id: UUID
        def __init__(self, *, topic: str = ..., partitions: list[FetchRequest.FetchPartition] = ..., topic_id: UUID = ...) -> None: ...
    class FetchPartition(ApiMessage):
        partition: int
        fetch_offset: int
        partition_max_bytes: int
        log_start_offset: int
        current_leader_epoch: int
        last_fetched_epoch: int
        replica_directory_id: UUID
        high_watermark: int
        def __init__(self, *, partition: int = ..., fetch_offset: int = ..., partition_max_bytes: int = ..., log_start_offset: int = ..., current_leader_epoch: int = ..., last_fetched_epoch: int = ..., replica_directory_id: UUID = ..., high_watermark: int = ...) -> None: ...
    class ForgottenTopic(ApiMessage):
        topic: str
        partitions: list[int]
        topic_id: UUID
        def __init__(self, *, topic: str = ..., partitions: list[int] = ..., topic_id: UUID = ...) -> None: ...
    class ReplicaState(ApiMessage):
        replica_id: int
        replica_epoch: int
        def __init__(self, *, replica_id: int = ..., replica_epoch: int = ...) -> None: ...
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    topics: list[FetchRequest.FetchTopic]
    session_id: int
    session_epoch: int
    forgotten_topics_data: list[FetchRequest.ForgottenTopic]
    rack_id: str
    cluster_id: str | None
    replica_state: FetchRequest.ReplicaState
    def __init__(self, *, replica_id: int = ..., max_wait_ms: int = ..., min_bytes: int = ..., max_bytes: int = ..., isolation_level: int = ..., topics: list[FetchRequest.FetchTopic] = ..., session_id: int = ..., session_epoch: int = ..., forgotten_topics_data: list[FetchRequest.ForgottenTopic] = ..., rack_id: str = ..., cluster_id: str | None = ..., replica_state: FetchRequest.ReplicaState = ...) -> None: ...

class ListOffsetsResponse(ApiMessage):
    class ListOffsetsTopicResponse(ApiMessage):
        name: str
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse]
        def __init__(self, *, name: str = ..., partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = ...) -> None: ...
    class ListOffsetsPartitionResponse(ApiMessage):
        partition_index: int
        error_code: int
        timestamp: int
        offset: int
        leader_epoch: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., timestamp: int = ..., offset: int = ..., leader_epoch: int = ...) -> None: ...
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse]
    throttle_time_ms: int
    def __init__(self, *, topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = ..., throttle_time_ms: int = ...) -> None: ...

class ListOffsetsRequest(RequestMessage[ListOffsetsResponse]):
    class ListOffsetsTopic(ApiMessage):
        name: str
        partitions: list[ListOffsetsRequest.ListOffsetsPartition]
        def __init__(self, *, name: str = ..., partitions: list[ListOffsetsRequest.ListOffsetsPartition] = ...) -> None: ...
    class ListOffsetsPartition(ApiMessage):
        partition_index: int
        timestamp: int
        current_leader_epoch: int
        def __init__(self, *, partition_index: int = ..., timestamp: int = ..., current_leader_epoch: int = ...) -> None: ...
    replica_id: int
    topics: list[ListOffsetsRequest.ListOffsetsTopic]
    isolation_level: int
    timeout_ms: int
    def __init__(self, *, replica_id: int = ..., topics: list[ListOffsetsRequest.ListOffsetsTopic] = ..., isolation_level: int = ..., timeout_ms: int = ...) -> None: ...

class MetadataResponse(ApiMessage):
    class MetadataResponseBroker(ApiMessage):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ...) -> None: ...
    class MetadataResponseTopic(ApiMessage):
        error_code: int
        name: str | None
        partitions: list[MetadataResponse.MetadataResponsePartition]
        is_internal: bool
        topic_authorized_operations: int
        topic_id: UUID
        def __init__(self, *, error_code: int = ..., name: str | None = ..., partitions: list[MetadataResponse.MetadataResponsePartition] = ..., is_internal: bool = ..., topic_authorized_operations: int = ..., topic_id: UUID = ...) -> None: ...
    class MetadataResponsePartition(ApiMessage):
        error_code: int
        partition_index: int
        leader_id: int
        replica_nodes: list[int]
        isr_nodes: list[int]
        offline_replicas: list[int]
        leader_epoch: int
        def __init__(self, *, error_code: int = ..., partition_index: int = ..., leader_id: int = ..., replica_nodes: list[int] = ..., isr_nodes: list[int] = ..., offline_replicas: list[int] = ..., leader_epoch: int = ...) -> None: ...
    brokers: list[MetadataResponse.MetadataResponseBroker]
    topics: list[MetadataResponse.MetadataResponseTopic]
    controller_id: int
    cluster_id: str | None
    throttle_time_ms: int
    cluster_authorized_operations: int
    error_code: int
    def __init__(self, *, brokers: list[MetadataResponse.MetadataResponseBroker] = ..., topics: list[MetadataResponse.MetadataResponseTopic] = ..., controller_id: int = ..., cluster_id: str | None = ..., throttle_time_ms: int = ..., cluster_authorized_operations: int = ..., error_code: int = ...) -> None: ...

class MetadataRequest(RequestMessage[MetadataResponse]):
    class MetadataRequestTopic(ApiMessage):
        name: str | None
        topic_id: UUID
        def __init__(self, *, name: str | None = ..., topic_id: UUID = ...) -> None: ...
    topics: list[MetadataRequest.MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool
    def __init__(self, *, topics: list[MetadataRequest.MetadataRequestTopic] | None = ..., allow_auto_topic_creation: bool = ..., include_cluster_authorized_operations: bool = ..., include_topic_authorized_operations: bool = ...) -> None: ...

class OffsetCommitResponse(ApiMessage):
    class OffsetCommitResponseTopic(ApiMessage):
        name: str
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition]
        topic_id: UUID
        def __init__(self, *, name: str = ..., partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = ..., topic_id: UUID = ...) -> None: ...
    class OffsetCommitResponsePartition(ApiMessage):
        partition_index: int
        error_code: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic]
    throttle_time_ms: int
    def __init__(self, *, topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = ..., throttle_time_ms: int = ...) -> None: ...

class OffsetCommitRequest(RequestMessage[OffsetCommitResponse]):
    class OffsetCommitRequestTopic(ApiMessage):
        name: str
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition]
        topic_id: UUID
        def __init__(self, *, name: str = ..., partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = ..., topic_id: UUID = ...) -> None: ...
    class OffsetCommitRequestPartition(ApiMessage):
        partition_index: int
        committed_offset: int
        committed_metadata: str | None
        committed_leader_epoch: int
        def __init__(self, *, partition_index: int = ..., committed_offset: int = ..., committed_metadata: str | None = ..., committed_leader_epoch: int = ...) -> None: ...
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    retention_time_ms: int
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic]
    group_instance_id: str | None
    def __init__(self, *, group_id: str = ..., generation_id_or_member_epoch: int = ..., member_id: str = ..., retention_time_ms: int = ..., topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = ..., group_instance_id: str | None = ...) -> None: ...

class OffsetFetchResponse(ApiMessage):
    class OffsetFetchResponseTopic(ApiMessage):
        name: str
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition]
        def __init__(self, *, name: str = ..., partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = ...) -> None: ...
    class OffsetFetchResponsePartition(ApiMessage):
        partition_index: int
        committed_offset: int
        metadata: str | None
        error_code: int
        committed_leader_epoch: int
        def __init__(self, *, partition_index: int = ..., committed_offset: int = ..., metadata: str | None = ..., error_code: int = ..., committed_leader_epoch: int = ...) -> None: ...
    class OffsetFetchResponseGroup(ApiMessage):
        group_id: str
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics]
        error_code: int
        def __init__(self, *, group_id: str = ..., topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = ..., error_code: int = ...) -> None: ...
    class OffsetFetchResponseTopics(ApiMessage):
        name: str
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions]
        topic_id: UUID
        def __init__(self, *, name: str = ..., partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = ..., topic_id: UUID = ...) -> None: ...
    class OffsetFetchResponsePartitions(ApiMessage):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int
        def __init__(self, *, partition_index: int = ..., committed_offset: int = ..., committed_leader_epoch: int = ..., metadata: str | None = ..., error_code: int = ...) -> None: ...
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic]
    error_code: int
    throttle_time_ms: int
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup]
    def __init__(self, *, topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = ..., error_code: int = ..., throttle_time_ms: int = ..., groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = ...) -> None: ...

class OffsetFetchRequest(RequestMessage[OffsetFetchResponse]):
    class OffsetFetchRequestTopic(ApiMessage):
        name: str
        partition_indexes: list[int]
        def __init__(self, *, name: str = ..., partition_indexes: list[int] = ...) -> None: ...
    class OffsetFetchRequestGroup(ApiMessage):
        group_id: str
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None
        member_id: str | None
        member_epoch: int
        def __init__(self, *, group_id: str = ..., topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ..., member_id: str | None = ..., member_epoch: int = ...) -> None: ...
    class OffsetFetchRequestTopics(ApiMessage):
        name: str
        partition_indexes: list[int]
        topic_id: UUID
        def __init__(self, *, name: str = ..., partition_indexes: list[int] = ..., topic_id: UUID = ...) -> None: ...
    group_id: str
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None
    require_stable: bool
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup]
    def __init__(self, *, group_id: str = ..., topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ..., require_stable: bool = ..., groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = ...) -> None: ...

class FindCoordinatorResponse(ApiMessage):
    class Coordinator(ApiMessage):
        key: str
        node_id: int
        host: str
        port: int
        error_code: int
        error_message: str | None
        def __init__(self, *, key: str = ..., node_id: int = ..., host: str = ..., port: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    error_code: int
    node_id: int
    host: str
    port: int
    throttle_time_ms: int
    error_message: str | None
    coordinators: list[FindCoordinatorResponse.Coordinator]
    def __init__(self, *, error_code: int = ..., node_id: int = ..., host: str = ..., port: int = ..., throttle_time_ms: int = ..., error_message: str | None = ..., coordinators: list[FindCoordinatorResponse.Coordinator] = ...) -> None: ...

class FindCoordinatorRequest(RequestMessage[FindCoordinatorResponse]):
    key: str
    key_type: int
    coordinator_keys: list[str]
    def __init__(self, *, key: str = ..., key_type: int = ..., coordinator_keys: list[str] = ...) -> None: ...

class JoinGroupResponse(ApiMessage):
    class JoinGroupResponseMember(ApiMessage):
        member_id: str
        metadata: Buffer
        group_instance_id: str | None
        def __init__(self, *, member_id: str = ..., metadata: Buffer = ..., group_instance_id: str | None = ...) -> None: ...
    error_code: int
    generation_id: int
    protocol_name: str | None
    leader: str
    member_id: str
    members: list[JoinGroupResponse.JoinGroupResponseMember]
    throttle_time_ms: int
    protocol_type: str | None
    skip_assignment: bool
    def __init__(self, *, error_code: int = ..., generation_id: int = ..., protocol_name: str | None = ..., leader: str = ..., member_id: str = ..., members: list[JoinGroupResponse.JoinGroupResponseMember] = ..., throttle_time_ms: int = ..., protocol_type: str | None = ..., skip_assignment: bool = ...) -> None: ...

class JoinGroupRequest(RequestMessage[JoinGroupResponse]):
    class JoinGroupRequestProtocol(ApiMessage):
        name: str
        metadata: Buffer
        def __init__(self, *, name: str = ..., metadata: Buffer = ...) -> None: ...
    group_id: str
    session_timeout_ms: int
    member_id: str
    protocol_type: str
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol]
    rebalance_timeout_ms: int
    group_instance_id: str | None
    reason: str | None
    def __init__(self, *, group_id: str = ..., session_timeout_ms: int = ..., member_id: str = ..., protocol_type: str = ..., protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = ..., rebalance_timeout_ms: int = ..., group_instance_id: str | None = ..., reason: str | None = ...) -> None: ...

class HeartbeatResponse(ApiMessage):
    error_code: int
    throttle_time_ms: int
    def __init__(self, *, error_code: int = ..., throttle_time_ms: int = ...) -> None: ...

class HeartbeatRequest(RequestMessage[HeartbeatResponse]):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    def __init__(self, *, group_id: str = ..., generation_id: int = ..., member_id: str = ..., group_instance_id: str | None = ...) -> None: ...

class LeaveGroupResponse(ApiMessage):
    class MemberResponse(ApiMessage):
        member_id: str
        group_instance_id: str | None
        error_code: int
        def __init__(self, *, member_id: str = ..., group_instance_id: str | None = ..., error_code: int = ...) -> None: ...
    error_code: int
    throttle_time_ms: int
    members: list[LeaveGroupResponse.MemberResponse]
    def __init__(self, *, error_code: int = ..., throttle_time_ms: int = ..., members: list[LeaveGroupResponse.MemberResponse] = ...) -> None: ...

class LeaveGroupRequest(RequestMessage[LeaveGroupResponse]):
    class MemberIdentity(ApiMessage):
        member_id: str
        group_instance_id: str | None
        reason: str | None
        def __init__(self, *, member_id: str = ..., group_instance_id: str | None = ..., reason: str | None = ...) -> None: ...
    group_id: str
    member_id: str
    members: list[LeaveGroupRequest.MemberIdentity]
    def __init__(self, *, group_id: str = ..., member_id: str = ..., members: list[LeaveGroupRequest.MemberIdentity] = ...) -> None: ...

class SyncGroupResponse(ApiMessage):
    error_code: int
    assignment: Buffer
    throttle_time_ms: int
    protocol_type: str | None
    protocol_name: str | None
    def __init__(self, *, error_code: int = ..., assignment: Buffer = ..., throttle_time_ms: int = ..., protocol_type: str | None = ..., protocol_name: str | None = ...) -> None: ...

class SyncGroupRequest(RequestMessage[SyncGroupResponse]):
    class SyncGroupRequestAssignment(ApiMessage):
        member_id: str
        assignment: Buffer
        def __init__(self, *, member_id: str = ..., assignment: Buffer = ...) -> None: ...
    group_id: str
    generation_id: int
    member_id: str
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    def __init__(self, *, group_id: str = ..., generation_id: int = ..., member_id: str = ..., assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = ..., group_instance_id: str | None = ..., protocol_type: str | None = ..., protocol_name: str | None = ...) -> None: ...

class DescribeGroupsResponse(ApiMessage):
    class DescribedGroup(ApiMessage):
        error_code: int
        group_id: str
        group_state: str
        protocol_type: str
        protocol_data: str
        members: list[DescribeGroupsResponse.DescribedGroupMember]
        authorized_operations: int
        error_message: str | None
        def __init__(self, *, error_code: int = ..., group_id: str = ..., group_state: str = ..., protocol_type: str = ..., protocol_data: str = ..., members: list[DescribeGroupsResponse.DescribedGroupMember] = ..., authorized_operations: int = ..., error_message: str | None = ...) -> None: ...
    class DescribedGroupMember(ApiMessage):
        member_id: str
        client_id: str
        client_host: str
        member_metadata: Buffer
        member_assignment: Buffer
        group_instance_id: str | None
        def __init__(self, *, member_id: str = ..., client_id: str = ..., client_host: str = ..., member_metadata: Buffer = ..., member_assignment: Buffer = ..., group_instance_id: str | None = ...) -> None: ...
    groups: list[DescribeGroupsResponse.DescribedGroup]
    throttle_time_ms: int
    def __init__(self, *, groups: list[DescribeGroupsResponse.DescribedGroup] = ..., throttle_time_ms: int = ...) -> None: ...

class DescribeGroupsRequest(RequestMessage[DescribeGroupsResponse]):
    groups: list[str]
    include_authorized_operations: bool
    def __init__(self, *, groups: list[str] = ..., include_authorized_operations: bool = ...) -> None: ...

class ListGroupsResponse(ApiMessage):
    class ListedGroup(ApiMessage):
        group_id: str
        protocol_type: str
        group_state: str
        group_type: str
        def __init__(self, *, group_id: str = ..., protocol_type: str = ..., group_state: str = ..., group_type: str = ...) -> None: ...
    error_code: int
    groups: list[ListGroupsResponse.ListedGroup]
    throttle_time_ms: int
    def __init__(self, *, error_code: int = ..., groups: list[ListGroupsResponse.ListedGroup] = ..., throttle_time_ms: int = ...) -> None: ...

class ListGroupsRequest(RequestMessage[ListGroupsResponse]):
    states_filter: list[str]
    types_filter: list[str]
    def __init__(self, *, states_filter: list[str] = ..., types_filter: list[str] = ...) -> None: ...

class SaslHandshakeResponse(ApiMessage):
    error_code: int
    mechanisms: list[str]
    def __init__(self, *, error_code: int = ..., mechanisms: list[str] = ...) -> None: ...

class SaslHandshakeRequest(RequestMessage[SaslHandshakeResponse]):
    mechanism: str
    def __init__(self, *, mechanism: str = ...) -> None: ...

class ApiVersionsResponse(ApiMessage):
    class ApiVersion(ApiMessage):
        api_key: int
        min_version: int
        max_version: int
        def __init__(self, *, api_key: int = ..., min_version: int = ..., max_version: int = ...) -> None: ...
    class SupportedFeatureKey(ApiMessage):
        name: str
        min_version: int
        max_version: int
        def __init__(self, *, name: str = ..., min_version: int = ..., max_version: int = ...) -> None: ...
    class FinalizedFeatureKey(ApiMessage):
        name: str
        max_version_level: int
        min_version_level: int
        def __init__(self, *, name: str = ..., max_version_level: int = ..., min_version_level: int = ...) -> None: ...
    error_code: int
    api_keys: list[ApiVersionsResponse.ApiVersion]
    throttle_time_ms: int
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey]
    zk_migration_ready: bool
    def __init__(self, *, error_code: int = ..., api_keys: list[ApiVersionsResponse.ApiVersion] = ..., throttle_time_ms: int = ..., supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = ..., finalized_features_epoch: int = ..., finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = ..., zk_migration_ready: bool = ...) -> None: ...

class ApiVersionsRequest(RequestMessage[ApiVersionsResponse]):
    client_software_name: str
    client_software_version: str
    def __init__(self, *, client_software_name: str = ..., client_software_version: str = ...) -> None: ...

class CreateTopicsResponse(ApiMessage):
    class CreatableTopicResult(ApiMessage):
        name: str
        error_code: int
        error_message: str | None
        topic_config_error_code: int
        num_partitions: int
        replication_factor: int
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None
        topic_id: UUID
        def __init__(self, *, name: str = ..., error_code: int = ..., error_message: str | None = ..., topic_config_error_code: int = ..., num_partitions: int = ..., replication_factor: int = ..., configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = ..., topic_id: UUID = ...) -> None: ...
    class CreatableTopicConfigs(ApiMessage):
        name: str
        value: str | None
        read_only: bool
        config_source: int
        is_sensitive: bool
        def __init__(self, *, name: str = ..., value: str | None = ..., read_only: bool = ..., config_source: int = ..., is_sensitive: bool = ...) -> None: ...
    throttle_time_ms: int
    topics: list[CreateTopicsResponse.CreatableTopicResult]
    def __init__(self, *, throttle_time_ms: int = ..., topics: list[CreateTopicsResponse.CreatableTopicResult] = ...) -> None: ...

class CreateTopicsRequest(RequestMessage[CreateTopicsResponse]):
    class CreatableTopic(ApiMessage):
        name: str
        num_partitions: int
        replication_factor: int
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment]
        configs: list[CreateTopicsRequest.CreatableTopicConfig]
        def __init__(self, *, name: str = ..., num_partitions: int = ..., replication_factor: int = ..., assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = ..., configs: list[CreateTopicsRequest.CreatableTopicConfig] = ...) -> None: ...
    class CreatableReplicaAssignment(ApiMessage):
        partition_index: int
        broker_ids: list[int]
        def __init__(self, *, partition_index: int = ..., broker_ids: list[int] = ...) -> None: ...
    class CreatableTopicConfig(ApiMessage):
        name: str
        value: str | None
        def __init__(self, *, name: str = ..., value: str | None = ...) -> None: ...
    topics: list[CreateTopicsRequest.CreatableTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(self, *, topics: list[CreateTopicsRequest.CreatableTopic] = ..., timeout_ms: int = ..., validate_only: bool = ...) -> None: ...

class DeleteTopicsResponse(ApiMessage):
    class DeletableTopicResult(ApiMessage):
        name: str | None
        error_code: int
        error_message: str | None
        topic_id: UUID
        def __init__(self, *, name: str | None = ..., error_code: int = ..., error_message: str | None = ..., topic_id: UUID = ...) -> None: ...
    throttle_time_ms: int
    responses: list[DeleteTopicsResponse.DeletableTopicResult]
    def __init__(self, *, throttle_time_ms: int = ..., responses: list[DeleteTopicsResponse.DeletableTopicResult] = ...) -> None: ...

class DeleteTopicsRequest(RequestMessage[DeleteTopicsResponse]):
    class DeleteTopicState(ApiMessage):
        name: str | None
        topic_id: UUID
        def __init__(self, *, name: str | None = ..., topic_id: UUID = ...) -> None: ...
    topic_names: list[str]
    timeout_ms: int
    topics: list[DeleteTopicsRequest.DeleteTopicState]
    def __init__(self, *, topic_names: list[str] = ..., timeout_ms: int = ..., topics: list[DeleteTopicsRequest.DeleteTopicState] = ...) -> None: ...

class DeleteRecordsResponse(ApiMessage):
    class DeleteRecordsTopicResult(ApiMessage):
        name: str
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult]
        def __init__(self, *, name: str = ..., partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = ...) -> None: ...
    class DeleteRecordsPartitionResult(ApiMessage):
        partition_index: int
        low_watermark: int
        error_code: int
        def __init__(self, *, partition_index: int = ..., low_watermark: int = ..., error_code: int = ...) -> None: ...
    throttle_time_ms: int
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult]
    def __init__(self, *, throttle_time_ms: int = ..., topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = ...) -> None: ...

class DeleteRecordsRequest(RequestMessage[DeleteRecordsResponse]):
    class DeleteRecordsTopic(ApiMessage):
        name: str
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition]
        def __init__(self, *, name: str = ..., partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = ...) -> None: ...
    class DeleteRecordsPartition(ApiMessage):
        partition_index: int
        offset: int
        def __init__(self, *, partition_index: int = ..., offset: int = ...) -> None: ...
    topics: list[DeleteRecordsRequest.DeleteRecordsTopic]
    timeout_ms: int
    def __init__(self, *, topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = ..., timeout_ms: int = ...) -> None: ...

class InitProducerIdResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    ongoing_txn_producer_id: int
    ongoing_txn_producer_epoch: int
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., producer_id: int = ..., producer_epoch: int = ..., ongoing_txn_producer_id: int = ..., ongoing_txn_producer_epoch: int = ...) -> None: ...

class InitProducerIdRequest(RequestMessage[InitProducerIdResponse]):
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int
    enable2_pc: bool
    keep_prepared_txn: bool
    def __init__(self, *, transactional_id: str | None = ..., transaction_timeout_ms: int = ..., producer_id: int = ..., producer_epoch: int = ..., enable2_pc: bool = ..., keep_prepared_txn: bool = ...) -> None: ...

class OffsetForLeaderEpochResponse(ApiMessage):
    class OffsetForLeaderTopicResult(ApiMessage):
        topic: str
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset]
        def __init__(self, *, topic: str = ..., partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = ...) -> None: ...
    class EpochEndOffset(ApiMessage):
        error_code: int
        partition: int
        leader_epoch: int
        end_offset: int
        def __init__(self, *, error_code: int = ..., partition: int = ..., leader_epoch: int = ..., end_offset: int = ...) -> None: ...
    throttle_time_ms: int
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult]
    def __init__(self, *, throttle_time_ms: int = ..., topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = ...) -> None: ...

class OffsetForLeaderEpochRequest(RequestMessage[OffsetForLeaderEpochResponse]):
    class OffsetForLeaderTopic(ApiMessage):
        topic: str
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition]
        def __init__(self, *, topic: str = ..., partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = ...) -> None: ...
    class OffsetForLeaderPartition(ApiMessage):
        partition: int
        current_leader_epoch: int
        leader_epoch: int
        def __init__(self, *, partition: int = ..., current_leader_epoch: int = ..., leader_epoch: int = ...) -> None: ...
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic]
    replica_id: int
    def __init__(self, *, topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = ..., replica_id: int = ...) -> None: ...

class AddPartitionsToTxnResponse(ApiMessage):
    class AddPartitionsToTxnTopicResult(ApiMessage):
        name: str
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]
        def __init__(self, *, name: str = ..., results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = ...) -> None: ...
    class AddPartitionsToTxnPartitionResult(ApiMessage):
        partition_index: int
        partition_error_code: int
        def __init__(self, *, partition_index: int = ..., partition_error_code: int = ...) -> None: ...
    class AddPartitionsToTxnResult(ApiMessage):
        transactional_id: str
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
        def __init__(self, *, transactional_id: str = ..., topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...) -> None: ...
    throttle_time_ms: int
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
    error_code: int
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult]
    def __init__(self, *, throttle_time_ms: int = ..., results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ..., error_code: int = ..., results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = ...) -> None: ...

class AddPartitionsToTxnRequest(RequestMessage[AddPartitionsToTxnResponse]):
    class AddPartitionsToTxnTopic(ApiMessage):
        name: str
        partitions: list[int]
        def __init__(self, *, name: str = ..., partitions: list[int] = ...) -> None: ...
    class AddPartitionsToTxnTransaction(ApiMessage):
        transactional_id: str
        producer_id: int
        producer_epoch: int
        verify_only: bool
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
        def __init__(self, *, transactional_id: str = ..., producer_id: int = ..., producer_epoch: int = ..., verify_only: bool = ..., topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...) -> None: ...
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction]
    def __init__(self, *, v3_and_below_transactional_id: str = ..., v3_and_below_producer_id: int = ..., v3_and_below_producer_epoch: int = ..., v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ..., transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ...) -> None: ...

class AddOffsetsToTxnResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ...) -> None: ...

class AddOffsetsToTxnRequest(RequestMessage[AddOffsetsToTxnResponse]):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str
    def __init__(self, *, transactional_id: str = ..., producer_id: int = ..., producer_epoch: int = ..., group_id: str = ...) -> None: ...

class EndTxnResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., producer_id: int = ..., producer_epoch: int = ...) -> None: ...

class EndTxnRequest(RequestMessage[EndTxnResponse]):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    def __init__(self, *, transactional_id: str = ..., producer_id: int = ..., producer_epoch: int = ..., committed: bool = ...) -> None: ...

class WriteTxnMarkersResponse(ApiMessage):
    class WritableTxnMarkerResult(ApiMessage):
        producer_id: int
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult]
        def __init__(self, *, producer_id: int = ..., topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = ...) -> None: ...
    class WritableTxnMarkerTopicResult(ApiMessage):
        name: str
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]
        def __init__(self, *, name: str = ..., partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = ...) -> None: ...
    class WritableTxnMarkerPartitionResult(ApiMessage):
        partition_index: int
        error_code: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult]
    def __init__(self, *, markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = ...) -> None: ...

class WriteTxnMarkersRequest(RequestMessage[WriteTxnMarkersResponse]):
    class WritableTxnMarker(ApiMessage):
        producer_id: int
        producer_epoch: int
        transaction_result: bool
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic]
        coordinator_epoch: int
        transaction_version: int
        def __init__(self, *, producer_id: int = ..., producer_epoch: int = ..., transaction_result: bool = ..., topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = ..., coordinator_epoch: int = ..., transaction_version: int = ...) -> None: ...
    class WritableTxnMarkerTopic(ApiMessage):
        name: str
        partition_indexes: list[int]
        def __init__(self, *, name: str = ..., partition_indexes: list[int] = ...) -> None: ...
    markers: list[WriteTxnMarkersRequest.WritableTxnMarker]
    def __init__(self, *, markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = ...) -> None: ...

class TxnOffsetCommitResponse(ApiMessage):
    class TxnOffsetCommitResponseTopic(ApiMessage):
        name: str
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition]
        def __init__(self, *, name: str = ..., partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = ...) -> None: ...
    class TxnOffsetCommitResponsePartition(ApiMessage):
        partition_index: int
        error_code: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
    throttle_time_ms: int
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic]
    def __init__(self, *, throttle_time_ms: int = ..., topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = ...) -> None: ...

class TxnOffsetCommitRequest(RequestMessage[TxnOffsetCommitResponse]):
    class TxnOffsetCommitRequestTopic(ApiMessage):
        name: str
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]
        def __init__(self, *, name: str = ..., partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = ...) -> None: ...
    class TxnOffsetCommitRequestPartition(ApiMessage):
        partition_index: int
        committed_offset: int
        committed_metadata: str | None
        committed_leader_epoch: int
        def __init__(self, *, partition_index: int = ..., committed_offset: int = ..., committed_metadata: str | None = ..., committed_leader_epoch: int = ...) -> None: ...
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]
    generation_id: int
    member_id: str
    group_instance_id: str | None
    def __init__(self, *, transactional_id: str = ..., group_id: str = ..., producer_id: int = ..., producer_epoch: int = ..., topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = ..., generation_id: int = ..., member_id: str = ..., group_instance_id: str | None = ...) -> None: ...

class DescribeAclsResponse(ApiMessage):
    class DescribeAclsResource(ApiMessage):
        resource_type: int
        resource_name: str
        pattern_type: int
        acls: list[DescribeAclsResponse.AclDescription]
        def __init__(self, *, resource_type: int = ..., resource_name: str = ..., pattern_type: int = ..., acls: list[DescribeAclsResponse.AclDescription] = ...) -> None: ...
    class AclDescription(ApiMessage):
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(self, *, principal: str = ..., host: str = ..., operation: int = ..., permission_type: int = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: list[DescribeAclsResponse.DescribeAclsResource]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., resources: list[DescribeAclsResponse.DescribeAclsResource] = ...) -> None: ...

class DescribeAclsRequest(RequestMessage[DescribeAclsResponse]):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int
    def __init__(self, *, resource_type_filter: int = ..., resource_name_filter: str | None = ..., pattern_type_filter: int = ..., principal_filter: str | None = ..., host_filter: str | None = ..., operation: int = ..., permission_type: int = ...) -> None: ...

class CreateAclsResponse(ApiMessage):
    class AclCreationResult(ApiMessage):
        error_code: int
        error_message: str | None
        def __init__(self, *, error_code: int = ..., error_message: str | None = ...) -> None: ...
    throttle_time_ms: int
    results: list[CreateAclsResponse.AclCreationResult]
    def __init__(self, *, throttle_time_ms: int = ..., results: list[CreateAclsResponse.AclCreationResult] = ...) -> None: ...

class CreateAclsRequest(RequestMessage[CreateAclsResponse]):
    class AclCreation(ApiMessage):
        resource_type: int
        resource_name: str
        resource_pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(self, *, resource_type: int = ..., resource_name: str = ..., resource_pattern_type: int = ..., principal: str = ..., host: str = ..., operation: int = ..., permission_type: int = ...) -> None: ...
    creations: list[CreateAclsRequest.AclCreation]
    def __init__(self, *, creations: list[CreateAclsRequest.AclCreation] = ...) -> None: ...

class DeleteAclsResponse(ApiMessage):
    class DeleteAclsFilterResult(ApiMessage):
        error_code: int
        error_message: str | None
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl]
        def __init__(self, *, error_code: int = ..., error_message: str | None = ..., matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = ...) -> None: ...
    class DeleteAclsMatchingAcl(ApiMessage):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(self, *, error_code: int = ..., error_message: str | None = ..., resource_type: int = ..., resource_name: str = ..., pattern_type: int = ..., principal: str = ..., host: str = ..., operation: int = ..., permission_type: int = ...) -> None: ...
    throttle_time_ms: int
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult]
    def __init__(self, *, throttle_time_ms: int = ..., filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = ...) -> None: ...

class DeleteAclsRequest(RequestMessage[DeleteAclsResponse]):
    class DeleteAclsFilter(ApiMessage):
        resource_type_filter: int
        resource_name_filter: str | None
        pattern_type_filter: int
        principal_filter: str | None
        host_filter: str | None
        operation: int
        permission_type: int
        def __init__(self, *, resource_type_filter: int = ..., resource_name_filter: str | None = ..., pattern_type_filter: int = ..., principal_filter: str | None = ..., host_filter: str | None = ..., operation: int = ..., permission_type: int = ...) -> None: ...
    filters: list[DeleteAclsRequest.DeleteAclsFilter]
    def __init__(self, *, filters: list[DeleteAclsRequest.DeleteAclsFilter] = ...) -> None: ...

class DescribeConfigsResponse(ApiMessage):
    class DescribeConfigsResult(ApiMessage):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult]
        def __init__(self, *, error_code: int = ..., error_message: str | None = ..., resource_type: int = ..., resource_name: str = ..., configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = ...) -> None: ...
    class DescribeConfigsResourceResult(ApiMessage):
        name: str
        value: str | None
        read_only: bool
        config_source: int
        is_sensitive: bool
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym]
        config_type: int
        documentation: str | None
        def __init__(self, *, name: str = ..., value: str | None = ..., read_only: bool = ..., config_source: int = ..., is_sensitive: bool = ..., synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = ..., config_type: int = ..., documentation: str | None = ...) -> None: ...
    class DescribeConfigsSynonym(ApiMessage):
        name: str
        value: str | None
        source: int
        def __init__(self, *, name: str = ..., value: str | None = ..., source: int = ...) -> None: ...
    throttle_time_ms: int
    results: list[DescribeConfigsResponse.DescribeConfigsResult]
    def __init__(self, *, throttle_time_ms: int = ..., results: list[DescribeConfigsResponse.DescribeConfigsResult] = ...) -> None: ...

class DescribeConfigsRequest(RequestMessage[DescribeConfigsResponse]):
    class DescribeConfigsResource(ApiMessage):
        resource_type: int
        resource_name: str
        configuration_keys: list[str] | None
        def __init__(self, *, resource_type: int = ..., resource_name: str = ..., configuration_keys: list[str] | None = ...) -> None: ...
    resources: list[DescribeConfigsRequest.DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool
    def __init__(self, *, resources: list[DescribeConfigsRequest.DescribeConfigsResource] = ..., include_synonyms: bool = ..., include_documentation: bool = ...) -> None: ...

class AlterConfigsResponse(ApiMessage):
    class AlterConfigsResourceResponse(ApiMessage):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        def __init__(self, *, error_code: int = ..., error_message: str | None = ..., resource_type: int = ..., resource_name: str = ...) -> None: ...
    throttle_time_ms: int
    responses: list[AlterConfigsResponse.AlterConfigsResourceResponse]
    def __init__(self, *, throttle_time_ms: int = ..., responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = ...) -> None: ...

class AlterConfigsRequest(RequestMessage[AlterConfigsResponse]):
    class AlterConfigsResource(ApiMessage):
        resource_type: int
        resource_name: str
        configs: list[AlterConfigsRequest.AlterableConfig]
        def __init__(self, *, resource_type: int = ..., resource_name: str = ..., configs: list[AlterConfigsRequest.AlterableConfig] = ...) -> None: ...
    class AlterableConfig(ApiMessage):
        name: str
        value: str | None
        def __init__(self, *, name: str = ..., value: str | None = ...) -> None: ...
    resources: list[AlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    def __init__(self, *, resources: list[AlterConfigsRequest.AlterConfigsResource] = ..., validate_only: bool = ...) -> None: ...

class AlterReplicaLogDirsResponse(ApiMessage):
    class AlterReplicaLogDirTopicResult(ApiMessage):
        topic_name: str
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult]
        def __init__(self, *, topic_name: str = ..., partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = ...) -> None: ...
    class AlterReplicaLogDirPartitionResult(ApiMessage):
        partition_index: int
        error_code: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
    throttle_time_ms: int
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult]
    def __init__(self, *, throttle_time_ms: int = ..., results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = ...) -> None: ...

class AlterReplicaLogDirsRequest(RequestMessage[AlterReplicaLogDirsResponse]):
    class AlterReplicaLogDir(ApiMessage):
        path: str
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic]
        def __init__(self, *, path: str = ..., topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = ...) -> None: ...
    class AlterReplicaLogDirTopic(ApiMessage):
        name: str
        partitions: list[int]
        def __init__(self, *, name: str = ..., partitions: list[int] = ...) -> None: ...
    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir]
    def __init__(self, *, dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = ...) -> None: ...

class DescribeLogDirsResponse(ApiMessage):
    class DescribeLogDirsResult(ApiMessage):
        error_code: int
        log_dir: str
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic]
        total_bytes: int
        usable_bytes: int
        is_cordoned: bool
        def __init__(self, *, error_code: int = ..., log_dir: str = ..., topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = ..., total_bytes: int = ..., usable_bytes: int = ..., is_cordoned: bool = ...) -> None: ...
    class DescribeLogDirsTopic(ApiMessage):
        name: str
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition]
        def __init__(self, *, name: str = ..., partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = ...) -> None: ...
    class DescribeLogDirsPartition(ApiMessage):
        partition_index: int
        partition_size: int
        offset_lag: int
        is_future_key: bool
        def __init__(self, *, partition_index: int = ..., partition_size: int = ..., offset_lag: int = ..., is_future_key: bool = ...) -> None: ...
    throttle_time_ms: int
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult]
    error_code: int
    def __init__(self, *, throttle_time_ms: int = ..., results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = ..., error_code: int = ...) -> None: ...

class DescribeLogDirsRequest(RequestMessage[DescribeLogDirsResponse]):
    class DescribableLogDirTopic(ApiMessage):
        topic: str
        partitions: list[int]
        def __init__(self, *, topic: str = ..., partitions: list[int] = ...) -> None: ...
    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None
    def __init__(self, *, topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = ...) -> None: ...

class SaslAuthenticateResponse(ApiMessage):
    error_code: int
    error_message: str | None
    auth_bytes: Buffer
    session_lifetime_ms: int
    def __init__(self, *, error_code: int = ..., error_message: str | None = ..., auth_bytes: Buffer = ..., session_lifetime_ms: int = ...) -> None: ...

class SaslAuthenticateRequest(RequestMessage[SaslAuthenticateResponse]):
    auth_bytes: Buffer
    def __init__(self, *, auth_bytes: Buffer = ...) -> None: ...

class CreatePartitionsResponse(ApiMessage):
    class CreatePartitionsTopicResult(ApiMessage):
        name: str
        error_code: int
        error_message: str | None
        def __init__(self, *, name: str = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    throttle_time_ms: int
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult]
    def __init__(self, *, throttle_time_ms: int = ..., results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = ...) -> None: ...

class CreatePartitionsRequest(RequestMessage[CreatePartitionsResponse]):
    class CreatePartitionsTopic(ApiMessage):
        name: str
        count: int
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None
        def __init__(self, *, name: str = ..., count: int = ..., assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = ...) -> None: ...
    class CreatePartitionsAssignment(ApiMessage):
        broker_ids: list[int]
        def __init__(self, *, broker_ids: list[int] = ...) -> None: ...
    topics: list[CreatePartitionsRequest.CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(self, *, topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = ..., timeout_ms: int = ..., validate_only: bool = ...) -> None: ...

class CreateDelegationTokenResponse(ApiMessage):
    error_code: int
    principal_type: str
    principal_name: str
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    token_id: str
    hmac: Buffer
    throttle_time_ms: int
    token_requester_principal_type: str
    token_requester_principal_name: str
    def __init__(self, *, error_code: int = ..., principal_type: str = ..., principal_name: str = ..., issue_timestamp_ms: int = ..., expiry_timestamp_ms: int = ..., max_timestamp_ms: int = ..., token_id: str = ..., hmac: Buffer = ..., throttle_time_ms: int = ..., token_requester_principal_type: str = ..., token_requester_principal_name: str = ...) -> None: ...

class CreateDelegationTokenRequest(RequestMessage[CreateDelegationTokenResponse]):
    class CreatableRenewers(ApiMessage):
        principal_type: str
        principal_name: str
        def __init__(self, *, principal_type: str = ..., principal_name: str = ...) -> None: ...
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers]
    max_lifetime_ms: int
    owner_principal_type: str | None
    owner_principal_name: str | None
    def __init__(self, *, renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = ..., max_lifetime_ms: int = ..., owner_principal_type: str | None = ..., owner_principal_name: str | None = ...) -> None: ...

class RenewDelegationTokenResponse(ApiMessage):
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    def __init__(self, *, error_code: int = ..., expiry_timestamp_ms: int = ..., throttle_time_ms: int = ...) -> None: ...

class RenewDelegationTokenRequest(RequestMessage[RenewDelegationTokenResponse]):
    hmac: Buffer
    renew_period_ms: int
    def __init__(self, *, hmac: Buffer = ..., renew_period_ms: int = ...) -> None: ...

class ExpireDelegationTokenResponse(ApiMessage):
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    def __init__(self, *, error_code: int = ..., expiry_timestamp_ms: int = ..., throttle_time_ms: int = ...) -> None: ...

class ExpireDelegationTokenRequest(RequestMessage[ExpireDelegationTokenResponse]):
    hmac: Buffer
    expiry_time_period_ms: int
    def __init__(self, *, hmac: Buffer = ..., expiry_time_period_ms: int = ...) -> None: ...

class DescribeDelegationTokenResponse(ApiMessage):
    class DescribedDelegationToken(ApiMessage):
        principal_type: str
        principal_name: str
        issue_timestamp: int
        expiry_timestamp: int
        max_timestamp: int
        token_id: str
        hmac: Buffer
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer]
        token_requester_principal_type: str
        token_requester_principal_name: str
        def __init__(self, *, principal_type: str = ..., principal_name: str = ..., issue_timestamp: int = ..., expiry_timestamp: int = ..., max_timestamp: int = ..., token_id: str = ..., hmac: Buffer = ..., renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = ..., token_requester_principal_type: str = ..., token_requester_principal_name: str = ...) -> None: ...
    class DescribedDelegationTokenRenewer(ApiMessage):
        principal_type: str
        principal_name: str
        def __init__(self, *, principal_type: str = ..., principal_name: str = ...) -> None: ...
    error_code: int
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken]
    throttle_time_ms: int
    def __init__(self, *, error_code: int = ..., tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = ..., throttle_time_ms: int = ...) -> None: ...

class DescribeDelegationTokenRequest(RequestMessage[DescribeDelegationTokenResponse]):
    class DescribeDelegationTokenOwner(ApiMessage):
        principal_type: str
        principal_name: str
        def __init__(self, *, principal_type: str = ..., principal_name: str = ...) -> None: ...
    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None
    def __init__(self, *, owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = ...) -> None: ...

class DeleteGroupsResponse(ApiMessage):
    class DeletableGroupResult(ApiMessage):
        group_id: str
        error_code: int
        def __init__(self, *, group_id: str = ..., error_code: int = ...) -> None: ...
    throttle_time_ms: int
    results: list[DeleteGroupsResponse.DeletableGroupResult]
    def __init__(self, *, throttle_time_ms: int = ..., results: list[DeleteGroupsResponse.DeletableGroupResult] = ...) -> None: ...

class DeleteGroupsRequest(RequestMessage[DeleteGroupsResponse]):
    groups_names: list[str]
    def __init__(self, *, groups_names: list[str] = ...) -> None: ...

class ElectLeadersResponse(ApiMessage):
    class ReplicaElectionResult(ApiMessage):
        topic: str
        partition_result: list[ElectLeadersResponse.PartitionResult]
        def __init__(self, *, topic: str = ..., partition_result: list[ElectLeadersResponse.PartitionResult] = ...) -> None: ...
    class PartitionResult(ApiMessage):
        partition_id: int
        error_code: int
        error_message: str | None
        def __init__(self, *, partition_id: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    throttle_time_ms: int
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult]
    error_code: int
    def __init__(self, *, throttle_time_ms: int = ..., replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = ..., error_code: int = ...) -> None: ...

class ElectLeadersRequest(RequestMessage[ElectLeadersResponse]):
    class TopicPartitions(ApiMessage):
        topic: str
        partitions: list[int]
        def __init__(self, *, topic: str = ..., partitions: list[int] = ...) -> None: ...
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None
    timeout_ms: int
    election_type: int
    def __init__(self, *, topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = ..., timeout_ms: int = ..., election_type: int = ...) -> None: ...

class IncrementalAlterConfigsResponse(ApiMessage):
    class AlterConfigsResourceResponse(ApiMessage):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        def __init__(self, *, error_code: int = ..., error_message: str | None = ..., resource_type: int = ..., resource_name: str = ...) -> None: ...
    throttle_time_ms: int
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse]
    def __init__(self, *, throttle_time_ms: int = ..., responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = ...) -> None: ...

class IncrementalAlterConfigsRequest(RequestMessage[IncrementalAlterConfigsResponse]):
    class AlterConfigsResource(ApiMessage):
        resource_type: int
        resource_name: str
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig]
        def __init__(self, *, resource_type: int = ..., resource_name: str = ..., configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = ...) -> None: ...
    class AlterableConfig(ApiMessage):
        name: str
        config_operation: int
        value: str | None
        def __init__(self, *, name: str = ..., config_operation: int = ..., value: str | None = ...) -> None: ...
    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    def __init__(self, *, resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = ..., validate_only: bool = ...) -> None: ...

class AlterPartitionReassignmentsResponse(ApiMessage):
    class ReassignableTopicResponse(ApiMessage):
        name: str
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse]
        def __init__(self, *, name: str = ..., partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = ...) -> None: ...
    class ReassignablePartitionResponse(ApiMessage):
        partition_index: int
        error_code: int
        error_message: str | None
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse]
    allow_replication_factor_change: bool
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = ..., allow_replication_factor_change: bool = ...) -> None: ...

class AlterPartitionReassignmentsRequest(RequestMessage[AlterPartitionReassignmentsResponse]):
    class ReassignableTopic(ApiMessage):
        name: str
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition]
        def __init__(self, *, name: str = ..., partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = ...) -> None: ...
    class ReassignablePartition(ApiMessage):
        partition_index: int
        replicas: list[int] | None
        def __init__(self, *, partition_index: int = ..., replicas: list[int] | None = ...) -> None: ...
    timeout_ms: int
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic]
    allow_replication_factor_change: bool
    def __init__(self, *, timeout_ms: int = ..., topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = ..., allow_replication_factor_change: bool = ...) -> None: ...

class ListPartitionReassignmentsResponse(ApiMessage):
    class OngoingTopicReassignment(ApiMessage):
        name: str
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment]
        def __init__(self, *, name: str = ..., partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = ...) -> None: ...
    class OngoingPartitionReassignment(ApiMessage):
        partition_index: int
        replicas: list[int]
        adding_replicas: list[int]
        removing_replicas: list[int]
        def __init__(self, *, partition_index: int = ..., replicas: list[int] = ..., adding_replicas: list[int] = ..., removing_replicas: list[int] = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = ...) -> None: ...

class ListPartitionReassignmentsRequest(RequestMessage[ListPartitionReassignmentsResponse]):
    class ListPartitionReassignmentsTopics(ApiMessage):
        name: str
        partition_indexes: list[int]
        def __init__(self, *, name: str = ..., partition_indexes: list[int] = ...) -> None: ...
    timeout_ms: int
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None
    def __init__(self, *, timeout_ms: int = ..., topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = ...) -> None: ...

class OffsetDeleteResponse(ApiMessage):
    class OffsetDeleteResponseTopic(ApiMessage):
        name: str
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition]
        def __init__(self, *, name: str = ..., partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = ...) -> None: ...
    class OffsetDeleteResponsePartition(ApiMessage):
        partition_index: int
        error_code: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
    error_code: int
    throttle_time_ms: int
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic]
    def __init__(self, *, error_code: int = ..., throttle_time_ms: int = ..., topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = ...) -> None: ...

class OffsetDeleteRequest(RequestMessage[OffsetDeleteResponse]):
    class OffsetDeleteRequestTopic(ApiMessage):
        name: str
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition]
        def __init__(self, *, name: str = ..., partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = ...) -> None: ...
    class OffsetDeleteRequestPartition(ApiMessage):
        partition_index: int
        def __init__(self, *, partition_index: int = ...) -> None: ...
    group_id: str
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic]
    def __init__(self, *, group_id: str = ..., topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = ...) -> None: ...

class DescribeClientQuotasResponse(ApiMessage):
    class EntryData(ApiMessage):
        entity: list[DescribeClientQuotasResponse.EntityData]
        values: list[DescribeClientQuotasResponse.ValueData]
        def __init__(self, *, entity: list[DescribeClientQuotasResponse.EntityData] = ..., values: list[DescribeClientQuotasResponse.ValueData] = ...) -> None: ...
    class EntityData(ApiMessage):
        entity_type: str
        entity_name: str | None
        def __init__(self, *, entity_type: str = ..., entity_name: str | None = ...) -> None: ...
    class ValueData(ApiMessage):
        key: str
        value: float
        def __init__(self, *, key: str = ..., value: float = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: list[DescribeClientQuotasResponse.EntryData] | None
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., entries: list[DescribeClientQuotasResponse.EntryData] | None = ...) -> None: ...

class DescribeClientQuotasRequest(RequestMessage[DescribeClientQuotasResponse]):
    class ComponentData(ApiMessage):
        entity_type: str
        match_type: int
        match: str | None
        def __init__(self, *, entity_type: str = ..., match_type: int = ..., match: str | None = ...) -> None: ...
    components: list[DescribeClientQuotasRequest.ComponentData]
    strict: bool
    def __init__(self, *, components: list[DescribeClientQuotasRequest.ComponentData] = ..., strict: bool = ...) -> None: ...

class AlterClientQuotasResponse(ApiMessage):
    class EntryData(ApiMessage):
        error_code: int
        error_message: str | None
        entity: list[AlterClientQuotasResponse.EntityData]
        def __init__(self, *, error_code: int = ..., error_message: str | None = ..., entity: list[AlterClientQuotasResponse.EntityData] = ...) -> None: ...
    class EntityData(ApiMessage):
        entity_type: str
        entity_name: str | None
        def __init__(self, *, entity_type: str = ..., entity_name: str | None = ...) -> None: ...
    throttle_time_ms: int
    entries: list[AlterClientQuotasResponse.EntryData]
    def __init__(self, *, throttle_time_ms: int = ..., entries: list[AlterClientQuotasResponse.EntryData] = ...) -> None: ...

class AlterClientQuotasRequest(RequestMessage[AlterClientQuotasResponse]):
    class EntryData(ApiMessage):
        entity: list[AlterClientQuotasRequest.EntityData]
        ops: list[AlterClientQuotasRequest.OpData]
        def __init__(self, *, entity: list[AlterClientQuotasRequest.EntityData] = ..., ops: list[AlterClientQuotasRequest.OpData] = ...) -> None: ...
    class EntityData(ApiMessage):
        entity_type: str
        entity_name: str | None
        def __init__(self, *, entity_type: str = ..., entity_name: str | None = ...) -> None: ...
    class OpData(ApiMessage):
        key: str
        value: float
        remove: bool
        def __init__(self, *, key: str = ..., value: float = ..., remove: bool = ...) -> None: ...
    entries: list[AlterClientQuotasRequest.EntryData]
    validate_only: bool
    def __init__(self, *, entries: list[AlterClientQuotasRequest.EntryData] = ..., validate_only: bool = ...) -> None: ...

class DescribeUserScramCredentialsResponse(ApiMessage):
    class DescribeUserScramCredentialsResult(ApiMessage):
        user: str
        error_code: int
        error_message: str | None
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo]
        def __init__(self, *, user: str = ..., error_code: int = ..., error_message: str | None = ..., credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = ...) -> None: ...
    class CredentialInfo(ApiMessage):
        mechanism: int
        iterations: int
        def __init__(self, *, mechanism: int = ..., iterations: int = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = ...) -> None: ...

class DescribeUserScramCredentialsRequest(RequestMessage[DescribeUserScramCredentialsResponse]):
    class UserName(ApiMessage):
        name: str
        def __init__(self, *, name: str = ...) -> None: ...
    users: list[DescribeUserScramCredentialsRequest.UserName] | None
    def __init__(self, *, users: list[DescribeUserScramCredentialsRequest.UserName] | None = ...) -> None: ...

class AlterUserScramCredentialsResponse(ApiMessage):
    class AlterUserScramCredentialsResult(ApiMessage):
        user: str
        error_code: int
        error_message: str | None
        def __init__(self, *, user: str = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult]
    def __init__(self, *, throttle_time_ms: int = ..., results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = ...) -> None: ...

class AlterUserScramCredentialsRequest(RequestMessage[AlterUserScramCredentialsResponse]):
    class ScramCredentialDeletion(ApiMessage):
        name: str
        mechanism: int
        def __init__(self, *, name: str = ..., mechanism: int = ...) -> None: ...
    class ScramCredentialUpsertion(ApiMessage):
        name: str
        mechanism: int
        iterations: int
        salt: Buffer
        salted_password: Buffer
        def __init__(self, *, name: str = ..., mechanism: int = ..., iterations: int = ..., salt: Buffer = ..., salted_password: Buffer = ...) -> None: ...
    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion]
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion]
    def __init__(self, *, deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ..., upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ...) -> None: ...

class VoteResponse(ApiMessage):
    class TopicData(ApiMessage):
        topic_name: str
        partitions: list[VoteResponse.PartitionData]
        def __init__(self, *, topic_name: str = ..., partitions: list[VoteResponse.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        vote_granted: bool
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., leader_id: int = ..., leader_epoch: int = ..., vote_granted: bool = ...) -> None: ...
    class NodeEndpoint(ApiMessage):
        node_id: int
        host: str
        port: int
        def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ...) -> None: ...
    error_code: int
    topics: list[VoteResponse.TopicData]
    node_endpoints: list[VoteResponse.NodeEndpoint]
    def __init__(self, *, error_code: int = ..., topics: list[VoteResponse.TopicData] = ..., node_endpoints: list[VoteResponse.NodeEndpoint] = ...) -> None: ...

class VoteRequest(RequestMessage[VoteResponse]):
    class TopicData(ApiMessage):
        topic_name: str
        partitions: list[VoteRequest.PartitionData]
        def __init__(self, *, topic_name: str = ..., partitions: list[VoteRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        replica_epoch: int
        replica_id: int
        last_offset_epoch: int
        last_offset: int
        replica_directory_id: UUID
        voter_directory_id: UUID
        pre_vote: bool
        def __init__(self, *, partition_index: int = ..., replica_epoch: int = ..., replica_id: int = ..., last_offset_epoch: int = ..., last_offset: int = ..., replica_directory_id: UUID = ..., voter_directory_id: UUID = ..., pre_vote: bool = ...) -> None: ...
    cluster_id: str | None
    topics: list[VoteRequest.TopicData]
    voter_id: int
    def __init__(self, *, cluster_id: str | None = ..., topics: list[VoteRequest.TopicData] = ..., voter_id: int = ...) -> None: ...

class BeginQuorumEpochResponse(ApiMessage):
    class TopicData(ApiMessage):
        topic_name: str
        partitions: list[BeginQuorumEpochResponse.PartitionData]
        def __init__(self, *, topic_name: str = ..., partitions: list[BeginQuorumEpochResponse.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., leader_id: int = ..., leader_epoch: int = ...) -> None: ...
    class NodeEndpoint(ApiMessage):
        node_id: int
        host: str
        port: int
        def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ...) -> None: ...
    error_code: int
    topics: list[BeginQuorumEpochResponse.TopicData]
    node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint]
    def __init__(self, *, error_code: int = ..., topics: list[BeginQuorumEpochResponse.TopicData] = ..., node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = ...) -> None: ...

class BeginQuorumEpochRequest(RequestMessage[BeginQuorumEpochResponse]):
    class TopicData(ApiMessage):
        topic_name: str
        partitions: list[BeginQuorumEpochRequest.PartitionData]
        def __init__(self, *, topic_name: str = ..., partitions: list[BeginQuorumEpochRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        leader_id: int
        leader_epoch: int
        voter_directory_id: UUID
        def __init__(self, *, partition_index: int = ..., leader_id: int = ..., leader_epoch: int = ..., voter_directory_id: UUID = ...) -> None: ...
    class LeaderEndpoint(ApiMessage):
        name: str
        host: str
        port: int
        def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...
    cluster_id: str | None
    topics: list[BeginQuorumEpochRequest.TopicData]
    voter_id: int
    leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint]
    def __init__(self, *, cluster_id: str | None = ..., topics: list[BeginQuorumEpochRequest.TopicData] = ..., voter_id: int = ..., leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = ...) -> None: ...

class EndQuorumEpochResponse(ApiMessage):
    class TopicData(ApiMessage):
        topic_name: str
        partitions: list[EndQuorumEpochResponse.PartitionData]
        def __init__(self, *, topic_name: str = ..., partitions: list[EndQuorumEpochResponse.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., leader_id: int = ..., leader_epoch: int = ...) -> None: ...
    class NodeEndpoint(ApiMessage):
        node_id: int
        host: str
        port: int
        def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ...) -> None: ...
    error_code: int
    topics: list[EndQuorumEpochResponse.TopicData]
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint]
    def __init__(self, *, error_code: int = ..., topics: list[EndQuorumEpochResponse.TopicData] = ..., node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = ...) -> None: ...

class EndQuorumEpochRequest(RequestMessage[EndQuorumEpochResponse]):
    class TopicData(ApiMessage):
        topic_name: str
        partitions: list[EndQuorumEpochRequest.PartitionData]
        def __init__(self, *, topic_name: str = ..., partitions: list[EndQuorumEpochRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        leader_id: int
        leader_epoch: int
        preferred_successors: list[int]
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo]
        def __init__(self, *, partition_index: int = ..., leader_id: int = ..., leader_epoch: int = ..., preferred_successors: list[int] = ..., preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = ...) -> None: ...
    class ReplicaInfo(ApiMessage):
        candidate_id: int
        candidate_directory_id: UUID
        def __init__(self, *, candidate_id: int = ..., candidate_directory_id: UUID = ...) -> None: ...
    class LeaderEndpoint(ApiMessage):
        name: str
        host: str
        port: int
        def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...
    cluster_id: str | None
    topics: list[EndQuorumEpochRequest.TopicData]
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint]
    def __init__(self, *, cluster_id: str | None = ..., topics: list[EndQuorumEpochRequest.TopicData] = ..., leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = ...) -> None: ...

class DescribeQuorumResponse(ApiMessage):
    class TopicData(ApiMessage):
        topic_name: str
        partitions: list[DescribeQuorumResponse.PartitionData]
        def __init__(self, *, topic_name: str = ..., partitions: list[DescribeQuorumResponse.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        high_watermark: int
        current_voters: list[DescribeQuorumResponse.ReplicaState]
        observers: list[DescribeQuorumResponse.ReplicaState]
        error_message: str | None
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., leader_id: int = ..., leader_epoch: int = ..., high_watermark: int = ..., current_voters: list[DescribeQuorumResponse.ReplicaState] = ..., observers: list[DescribeQuorumResponse.ReplicaState] = ..., error_message: str | None = ...) -> None: ...
    class ReplicaState(ApiMessage):
        replica_id: int
        log_end_offset: int
        last_fetch_timestamp: int
        last_caught_up_timestamp: int
        replica_directory_id: UUID
        def __init__(self, *, replica_id: int = ..., log_end_offset: int = ..., last_fetch_timestamp: int = ..., last_caught_up_timestamp: int = ..., replica_directory_id: UUID = ...) -> None: ...
    class Node(ApiMessage):
        node_id: int
        listeners: list[DescribeQuorumResponse.Listener]
        def __init__(self, *, node_id: int = ..., listeners: list[DescribeQuorumResponse.Listener] = ...) -> None: ...
    class Listener(ApiMessage):
        name: str
        host: str
        port: int
        def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...
    error_code: int
    topics: list[DescribeQuorumResponse.TopicData]
    error_message: str | None
    nodes: list[DescribeQuorumResponse.Node]
    def __init__(self, *, error_code: int = ..., topics: list[DescribeQuorumResponse.TopicData] = ..., error_message: str | None = ..., nodes: list[DescribeQuorumResponse.Node] = ...) -> None: ...

class DescribeQuorumRequest(RequestMessage[DescribeQuorumResponse]):
    class TopicData(ApiMessage):
        topic_name: str
        partitions: list[DescribeQuorumRequest.PartitionData]
        def __init__(self, *, topic_name: str = ..., partitions: list[DescribeQuorumRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        def __init__(self, *, partition_index: int = ...) -> None: ...
    topics: list[DescribeQuorumRequest.TopicData]
    def __init__(self, *, topics: list[DescribeQuorumRequest.TopicData] = ...) -> None: ...

class AlterPartitionResponse(ApiMessage):
    class TopicData(ApiMessage):
        topic_id: UUID
        partitions: list[AlterPartitionResponse.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[AlterPartitionResponse.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        isr: list[int]
        leader_recovery_state: int
        partition_epoch: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., leader_id: int = ..., leader_epoch: int = ..., isr: list[int] = ..., leader_recovery_state: int = ..., partition_epoch: int = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    topics: list[AlterPartitionResponse.TopicData]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., topics: list[AlterPartitionResponse.TopicData] = ...) -> None: ...

class AlterPartitionRequest(RequestMessage[AlterPartitionResponse]):
    class TopicData(ApiMessage):
        topic_id: UUID
        partitions: list[AlterPartitionRequest.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[AlterPartitionRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        leader_epoch: int
        new_isr: list[int]
        leader_recovery_state: int
        partition_epoch: int
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState]
        def __init__(self, *, partition_index: int = ..., leader_epoch: int = ..., new_isr: list[int] = ..., leader_recovery_state: int = ..., partition_epoch: int = ..., new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = ...) -> None: ...
    class BrokerState(ApiMessage):
        broker_id: int
        broker_epoch: int
        def __init__(self, *, broker_id: int = ..., broker_epoch: int = ...) -> None: ...
    broker_id: int
    broker_epoch: int
    topics: list[AlterPartitionRequest.TopicData]
    def __init__(self, *, broker_id: int = ..., broker_epoch: int = ..., topics: list[AlterPartitionRequest.TopicData] = ...) -> None: ...

class UpdateFeaturesResponse(ApiMessage):
    class UpdatableFeatureResult(ApiMessage):
        feature: str
        error_code: int
        error_message: str | None
        def __init__(self, *, feature: str = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = ...) -> None: ...

class UpdateFeaturesRequest(RequestMessage[UpdateFeaturesResponse]):
    class FeatureUpdateKey(ApiMessage):
        feature: str
        max_version_level: int
        allow_downgrade: bool
        upgrade_type: int
        def __init__(self, *, feature: str = ..., max_version_level: int = ..., allow_downgrade: bool = ..., upgrade_type: int = ...) -> None: ...
    timeout_ms: int
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey]
    validate_only: bool
    def __init__(self, *, timeout_ms: int = ..., feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = ..., validate_only: bool = ...) -> None: ...

class EnvelopeResponse(ApiMessage):
    response_data: Buffer | None
    error_code: int
    def __init__(self, *, response_data: Buffer | None = ..., error_code: int = ...) -> None: ...

class EnvelopeRequest(RequestMessage[EnvelopeResponse]):
    request_data: Buffer
    request_principal: Buffer | None
    client_host_address: Buffer
    def __init__(self, *, request_data: Buffer = ..., request_principal: Buffer | None = ..., client_host_address: Buffer = ...) -> None: ...

class FetchSnapshotResponse(ApiMessage):
    class TopicSnapshot(ApiMessage):
        name: str
        partitions: list[FetchSnapshotResponse.PartitionSnapshot]
        def __init__(self, *, name: str = ..., partitions: list[FetchSnapshotResponse.PartitionSnapshot] = ...) -> None: ...
    class PartitionSnapshot(ApiMessage):
        index: int
        error_code: int
        snapshot_id: FetchSnapshotResponse.SnapshotId
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch
        size: int
        position: int
        unaligned_records: Buffer
        def __init__(self, *, index: int = ..., error_code: int = ..., snapshot_id: FetchSnapshotResponse.SnapshotId = ..., current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = ..., size: int = ..., position: int = ..., unaligned_records: Buffer = ...) -> None: ...
    class SnapshotId(ApiMessage):
        end_offset: int
        epoch: int
        def __init__(self, *, end_offset: int = ..., epoch: int = ...) -> None: ...
    class LeaderIdAndEpoch(ApiMessage):
        leader_id: int
        leader_epoch: int
        def __init__(self, *, leader_id: int = ..., leader_epoch: int = ...) -> None: ...
    class NodeEndpoint(ApiMessage):
        node_id: int
        host: str
        port: int
        def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    topics: list[FetchSnapshotResponse.TopicSnapshot]
    node_endpoints: list[FetchSnapshotResponse.NodeEndpoint]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., topics: list[FetchSnapshotResponse.TopicSnapshot] = ..., node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = ...) -> None: ...

class FetchSnapshotRequest(RequestMessage[FetchSnapshotResponse]):
    class TopicSnapshot(ApiMessage):
        name: str
        partitions: list[FetchSnapshotRequest.PartitionSnapshot]
        def __init__(self, *, name: str = ..., partitions: list[FetchSnapshotRequest.PartitionSnapshot] = ...) -> None: ...
    class PartitionSnapshot(ApiMessage):
        partition: int
        current_leader_epoch: int
        snapshot_id: FetchSnapshotRequest.SnapshotId
        position: int
        replica_directory_id: UUID
        def __init__(self, *, partition: int = ..., current_leader_epoch: int = ..., snapshot_id: FetchSnapshotRequest.SnapshotId = ..., position: int = ..., replica_directory_id: UUID = ...) -> None: ...
    class SnapshotId(ApiMessage):
        end_offset: int
        epoch: int
        def __init__(self, *, end_offset: int = ..., epoch: int = ...) -> None: ...
    cluster_id: str | None
    replica_id: int
    max_bytes: int
    topics: list[FetchSnapshotRequest.TopicSnapshot]
    def __init__(self, *, cluster_id: str | None = ..., replica_id: int = ..., max_bytes: int = ..., topics: list[FetchSnapshotRequest.TopicSnapshot] = ...) -> None: ...

class DescribeClusterResponse(ApiMessage):
    class DescribeClusterBroker(ApiMessage):
        broker_id: int
        host: str
        port: int
        rack: str | None
        is_fenced: bool
        def __init__(self, *, broker_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ..., is_fenced: bool = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    cluster_id: str
    controller_id: int
    brokers: list[DescribeClusterResponse.DescribeClusterBroker]
    cluster_authorized_operations: int
    endpoint_type: int
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., cluster_id: str = ..., controller_id: int = ..., brokers: list[DescribeClusterResponse.DescribeClusterBroker] = ..., cluster_authorized_operations: int = ..., endpoint_type: int = ...) -> None: ...

class DescribeClusterRequest(RequestMessage[DescribeClusterResponse]):
    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool
    def __init__(self, *, include_cluster_authorized_operations: bool = ..., endpoint_type: int = ..., include_fenced_brokers: bool = ...) -> None: ...

class DescribeProducersResponse(ApiMessage):
    class TopicResponse(ApiMessage):
        name: str
        partitions: list[DescribeProducersResponse.PartitionResponse]
        def __init__(self, *, name: str = ..., partitions: list[DescribeProducersResponse.PartitionResponse] = ...) -> None: ...
    class PartitionResponse(ApiMessage):
        partition_index: int
        error_code: int
        error_message: str | None
        active_producers: list[DescribeProducersResponse.ProducerState]
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., error_message: str | None = ..., active_producers: list[DescribeProducersResponse.ProducerState] = ...) -> None: ...
    class ProducerState(ApiMessage):
        producer_id: int
        producer_epoch: int
        last_sequence: int
        last_timestamp: int
        coordinator_epoch: int
        current_txn_start_offset: int
        def __init__(self, *, producer_id: int = ..., producer_epoch: int = ..., last_sequence: int = ..., last_timestamp: int = ..., coordinator_epoch: int = ..., current_txn_start_offset: int = ...) -> None: ...
    throttle_time_ms: int
    topics: list[DescribeProducersResponse.TopicResponse]
    def __init__(self, *, throttle_time_ms: int = ..., topics: list[DescribeProducersResponse.TopicResponse] = ...) -> None: ...

class DescribeProducersRequest(RequestMessage[DescribeProducersResponse]):
    class TopicRequest(ApiMessage):
        name: str
        partition_indexes: list[int]
        def __init__(self, *, name: str = ..., partition_indexes: list[int] = ...) -> None: ...
    topics: list[DescribeProducersRequest.TopicRequest]
    def __init__(self, *, topics: list[DescribeProducersRequest.TopicRequest] = ...) -> None: ...

class BrokerRegistrationResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    broker_epoch: int
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., broker_epoch: int = ...) -> None: ...

class BrokerRegistrationRequest(RequestMessage[BrokerRegistrationResponse]):
    class Listener(ApiMessage):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(self, *, name: str = ..., host: str = ..., port: int = ..., security_protocol: int = ...) -> None: ...
    class Feature(ApiMessage):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(self, *, name: str = ..., min_supported_version: int = ..., max_supported_version: int = ...) -> None: ...
    broker_id: int
    cluster_id: str
    incarnation_id: UUID
    listeners: list[BrokerRegistrationRequest.Listener]
    features: list[BrokerRegistrationRequest.Feature]
    rack: str | None
    is_migrating_zk_broker: bool
    log_dirs: list[UUID]
    previous_broker_epoch: int
    def __init__(self, *, broker_id: int = ..., cluster_id: str = ..., incarnation_id: UUID = ..., listeners: list[BrokerRegistrationRequest.Listener] = ..., features: list[BrokerRegistrationRequest.Feature] = ..., rack: str | None = ..., is_migrating_zk_broker: bool = ..., log_dirs: list[UUID] = ..., previous_broker_epoch: int = ...) -> None: ...

class BrokerHeartbeatResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., is_caught_up: bool = ..., is_fenced: bool = ..., should_shut_down: bool = ...) -> None: ...

class BrokerHeartbeatRequest(RequestMessage[BrokerHeartbeatResponse]):
    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: list[UUID]
    cordoned_log_dirs: list[UUID] | None
    def __init__(self, *, broker_id: int = ..., broker_epoch: int = ..., current_metadata_offset: int = ..., want_fence: bool = ..., want_shut_down: bool = ..., offline_log_dirs: list[UUID] = ..., cordoned_log_dirs: list[UUID] | None = ...) -> None: ...

class UnregisterBrokerResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...

class UnregisterBrokerRequest(RequestMessage[UnregisterBrokerResponse]):
    broker_id: int
    def __init__(self, *, broker_id: int = ...) -> None: ...

class DescribeTransactionsResponse(ApiMessage):
    class TransactionState(ApiMessage):
        error_code: int
        transactional_id: str
        transaction_state: str
        transaction_timeout_ms: int
        transaction_start_time_ms: int
        producer_id: int
        producer_epoch: int
        topics: list[DescribeTransactionsResponse.TopicData]
        def __init__(self, *, error_code: int = ..., transactional_id: str = ..., transaction_state: str = ..., transaction_timeout_ms: int = ..., transaction_start_time_ms: int = ..., producer_id: int = ..., producer_epoch: int = ..., topics: list[DescribeTransactionsResponse.TopicData] = ...) -> None: ...
    class TopicData(ApiMessage):
        topic: str
        partitions: list[int]
        def __init__(self, *, topic: str = ..., partitions: list[int] = ...) -> None: ...
    throttle_time_ms: int
    transaction_states: list[DescribeTransactionsResponse.TransactionState]
    def __init__(self, *, throttle_time_ms: int = ..., transaction_states: list[DescribeTransactionsResponse.TransactionState] = ...) -> None: ...

class DescribeTransactionsRequest(RequestMessage[DescribeTransactionsResponse]):
    transactional_ids: list[str]
    def __init__(self, *, transactional_ids: list[str] = ...) -> None: ...

class ListTransactionsResponse(ApiMessage):
    class TransactionState(ApiMessage):
        transactional_id: str
        producer_id: int
        transaction_state: str
        def __init__(self, *, transactional_id: str = ..., producer_id: int = ..., transaction_state: str = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[ListTransactionsResponse.TransactionState]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., unknown_state_filters: list[str] = ..., transaction_states: list[ListTransactionsResponse.TransactionState] = ...) -> None: ...

class ListTransactionsRequest(RequestMessage[ListTransactionsResponse]):
    state_filters: list[str]
    producer_id_filters: list[int]
    duration_filter: int
    transactional_id_pattern: str | None
    def __init__(self, *, state_filters: list[str] = ..., producer_id_filters: list[int] = ..., duration_filter: int = ..., transactional_id_pattern: str | None = ...) -> None: ...

class AllocateProducerIdsResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    producer_id_start: int
    producer_id_len: int
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., producer_id_start: int = ..., producer_id_len: int = ...) -> None: ...

class AllocateProducerIdsRequest(RequestMessage[AllocateProducerIdsResponse]):
    broker_id: int
    broker_epoch: int
    def __init__(self, *, broker_id: int = ..., broker_epoch: int = ...) -> None: ...

class ConsumerGroupHeartbeatResponse(ApiMessage):
    class Assignment(ApiMessage):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions]
        def __init__(self, *, topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = ...) -> None: ...
    class TopicPartitions(ApiMessage):
        topic_id: UUID
        partitions: list[int]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[int] = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., member_id: str | None = ..., member_epoch: int = ..., heartbeat_interval_ms: int = ..., assignment: ConsumerGroupHeartbeatResponse.Assignment | None = ...) -> None: ...

class ConsumerGroupHeartbeatRequest(RequestMessage[ConsumerGroupHeartbeatResponse]):
    class TopicPartitions(ApiMessage):
        topic_id: UUID
        partitions: list[int]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[int] = ...) -> None: ...
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topic_names: list[str] | None
    server_assignor: str | None
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None
    subscribed_topic_regex: str | None
    def __init__(self, *, group_id: str = ..., member_id: str = ..., member_epoch: int = ..., instance_id: str | None = ..., rack_id: str | None = ..., rebalance_timeout_ms: int = ..., subscribed_topic_names: list[str] | None = ..., server_assignor: str | None = ..., topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = ..., subscribed_topic_regex: str | None = ...) -> None: ...

class ConsumerGroupDescribeResponse(ApiMessage):
    class DescribedGroup(ApiMessage):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ConsumerGroupDescribeResponse.Member]
        authorized_operations: int
        def __init__(self, *, error_code: int = ..., error_message: str | None = ..., group_id: str = ..., group_state: str = ..., group_epoch: int = ..., assignment_epoch: int = ..., assignor_name: str = ..., members: list[ConsumerGroupDescribeResponse.Member] = ..., authorized_operations: int = ...) -> None: ...
    class Member(ApiMessage):
        member_id: str
        instance_id: str | None
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        subscribed_topic_regex: str | None
        assignment: ConsumerGroupDescribeResponse.Assignment
        target_assignment: ConsumerGroupDescribeResponse.Assignment
        member_type: int
        def __init__(self, *, member_id: str = ..., instance_id: str | None = ..., rack_id: str | None = ..., member_epoch: int = ..., client_id: str = ..., client_host: str = ..., subscribed_topic_names: list[str] = ..., subscribed_topic_regex: str | None = ..., assignment: ConsumerGroupDescribeResponse.Assignment = ..., target_assignment: ConsumerGroupDescribeResponse.Assignment = ..., member_type: int = ...) -> None: ...
    class Assignment(ApiMessage):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions]
        def __init__(self, *, topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = ...) -> None: ...
    class TopicPartitions(ApiMessage):
        topic_id: UUID
        topic_name: str
        partitions: list[int]
        def __init__(self, *, topic_id: UUID = ..., topic_name: str = ..., partitions: list[int] = ...) -> None: ...
    throttle_time_ms: int
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup]
    def __init__(self, *, throttle_time_ms: int = ..., groups: list[ConsumerGroupDescribeResponse.DescribedGroup] = ...) -> None: ...

class ConsumerGroupDescribeRequest(RequestMessage[ConsumerGroupDescribeResponse]):
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(self, *, group_ids: list[str] = ..., include_authorized_operations: bool = ...) -> None: ...

class ControllerRegistrationResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...

class ControllerRegistrationRequest(RequestMessage[ControllerRegistrationResponse]):
    class Listener(ApiMessage):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(self, *, name: str = ..., host: str = ..., port: int = ..., security_protocol: int = ...) -> None: ...
    class Feature(ApiMessage):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(self, *, name: str = ..., min_supported_version: int = ..., max_supported_version: int = ...) -> None: ...
    controller_id: int
    incarnation_id: UUID
    zk_migration_ready: bool
    listeners: list[ControllerRegistrationRequest.Listener]
    features: list[ControllerRegistrationRequest.Feature]
    def __init__(self, *, controller_id: int = ..., incarnation_id: UUID = ..., zk_migration_ready: bool = ..., listeners: list[ControllerRegistrationRequest.Listener] = ..., features: list[ControllerRegistrationRequest.Feature] = ...) -> None: ...

class GetTelemetrySubscriptionsResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    client_instance_id: UUID
    subscription_id: int
    accepted_compression_types: list[int]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: list[str]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., client_instance_id: UUID = ..., subscription_id: int = ..., accepted_compression_types: list[int] = ..., push_interval_ms: int = ..., telemetry_max_bytes: int = ..., delta_temporality: bool = ..., requested_metrics: list[str] = ...) -> None: ...

class GetTelemetrySubscriptionsRequest(RequestMessage[GetTelemetrySubscriptionsResponse]):
    client_instance_id: UUID
    def __init__(self, *, client_instance_id: UUID = ...) -> None: ...

class PushTelemetryResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ...) -> None: ...

class PushTelemetryRequest(RequestMessage[PushTelemetryResponse]):
    client_instance_id: UUID
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: Buffer
    def __init__(self, *, client_instance_id: UUID = ..., subscription_id: int = ..., terminating: bool = ..., compression_type: int = ..., metrics: Buffer = ...) -> None: ...

class AssignReplicasToDirsResponse(ApiMessage):
    class DirectoryData(ApiMessage):
        id_: UUID
        topics: list[AssignReplicasToDirsResponse.TopicData]
        def __init__(self, *, id_: UUID = ..., topics: list[AssignReplicasToDirsResponse.TopicData] = ...) -> None: ...
    class TopicData(ApiMessage):
        topic_id: UUID
        partitions: list[AssignReplicasToDirsResponse.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[AssignReplicasToDirsResponse.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        error_code: int
        def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    directories: list[AssignReplicasToDirsResponse.DirectoryData]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., directories: list[AssignReplicasToDirsResponse.DirectoryData] = ...) -> None: ...

class AssignReplicasToDirsRequest(RequestMessage[AssignReplicasToDirsResponse]):
    class DirectoryData(ApiMessage):
        id_: UUID
        topics: list[AssignReplicasToDirsRequest.TopicData]
        def __init__(self, *, id_: UUID = ..., topics: list[AssignReplicasToDirsRequest.TopicData] = ...) -> None: ...
    class TopicData(ApiMessage):
        topic_id: UUID
        partitions: list[AssignReplicasToDirsRequest.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[AssignReplicasToDirsRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        def __init__(self, *, partition_index: int = ...) -> None: ...
    broker_id: int
    broker_epoch: int
    directories: list[AssignReplicasToDirsRequest.DirectoryData]
    def __init__(self, *, broker_id: int = ..., broker_epoch: int = ..., directories: list[AssignReplicasToDirsRequest.DirectoryData] = ...) -> None: ...

class ListConfigResourcesResponse(ApiMessage):
    class ConfigResource(ApiMessage):
        resource_name: str
        resource_type: int
        def __init__(self, *, resource_name: str = ..., resource_type: int = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    config_resources: list[ListConfigResourcesResponse.ConfigResource]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., config_resources: list[ListConfigResourcesResponse.ConfigResource] = ...) -> None: ...

class ListConfigResourcesRequest(RequestMessage[ListConfigResourcesResponse]):
    resource_types: list[int]
    def __init__(self, *, resource_types: list[int] = ...) -> None: ...

class DescribeTopicPartitionsResponse(ApiMessage):
    class DescribeTopicPartitionsResponseTopic(ApiMessage):
        error_code: int
        name: str | None
        topic_id: UUID
        is_internal: bool
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition]
        topic_authorized_operations: int
        def __init__(self, *, error_code: int = ..., name: str | None = ..., topic_id: UUID = ..., is_internal: bool = ..., partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = ..., topic_authorized_operations: int = ...) -> None: ...
    class DescribeTopicPartitionsResponsePartition(ApiMessage):
        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: list[int]
        isr_nodes: list[int]
        eligible_leader_replicas: list[int] | None
        last_known_elr: list[int] | None
        offline_replicas: list[int]
        def __init__(self, *, error_code: int = ..., partition_index: int = ..., leader_id: int = ..., leader_epoch: int = ..., replica_nodes: list[int] = ..., isr_nodes: list[int] = ..., eligible_leader_replicas: list[int] | None = ..., last_known_elr: list[int] | None = ..., offline_replicas: list[int] = ...) -> None: ...
    class Cursor(ApiMessage):
        topic_name: str
        partition_index: int
        def __init__(self, *, topic_name: str = ..., partition_index: int = ...) -> None: ...
    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None
    def __init__(self, *, throttle_time_ms: int = ..., topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = ..., next_cursor: DescribeTopicPartitionsResponse.Cursor | None = ...) -> None: ...

class DescribeTopicPartitionsRequest(RequestMessage[DescribeTopicPartitionsResponse]):
    class TopicRequest(ApiMessage):
        name: str
        def __init__(self, *, name: str = ...) -> None: ...
    class Cursor(ApiMessage):
        topic_name: str
        partition_index: int
        def __init__(self, *, topic_name: str = ..., partition_index: int = ...) -> None: ...
    topics: list[DescribeTopicPartitionsRequest.TopicRequest]
    response_partition_limit: int
    cursor: DescribeTopicPartitionsRequest.Cursor | None
    def __init__(self, *, topics: list[DescribeTopicPartitionsRequest.TopicRequest] = ..., response_partition_limit: int = ..., cursor: DescribeTopicPartitionsRequest.Cursor | None = ...) -> None: ...

class ShareGroupHeartbeatResponse(ApiMessage):
    class Assignment(ApiMessage):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions]
        def __init__(self, *, topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = ...) -> None: ...
    class TopicPartitions(ApiMessage):
        topic_id: UUID
        partitions: list[int]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[int] = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ShareGroupHeartbeatResponse.Assignment | None
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., member_id: str | None = ..., member_epoch: int = ..., heartbeat_interval_ms: int = ..., assignment: ShareGroupHeartbeatResponse.Assignment | None = ...) -> None: ...

class ShareGroupHeartbeatRequest(RequestMessage[ShareGroupHeartbeatResponse]):
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: list[str] | None
    def __init__(self, *, group_id: str = ..., member_id: str = ..., member_epoch: int = ..., rack_id: str | None = ..., subscribed_topic_names: list[str] | None = ...) -> None: ...

class ShareGroupDescribeResponse(ApiMessage):
    class DescribedGroup(ApiMessage):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ShareGroupDescribeResponse.Member]
        authorized_operations: int
        def __init__(self, *, error_code: int = ..., error_message: str | None = ..., group_id: str = ..., group_state: str = ..., group_epoch: int = ..., assignment_epoch: int = ..., assignor_name: str = ..., members: list[ShareGroupDescribeResponse.Member] = ..., authorized_operations: int = ...) -> None: ...
    class Member(ApiMessage):
        member_id: str
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        assignment: ShareGroupDescribeResponse.Assignment
        def __init__(self, *, member_id: str = ..., rack_id: str | None = ..., member_epoch: int = ..., client_id: str = ..., client_host: str = ..., subscribed_topic_names: list[str] = ..., assignment: ShareGroupDescribeResponse.Assignment = ...) -> None: ...
    class Assignment(ApiMessage):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions]
        def __init__(self, *, topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = ...) -> None: ...
    class TopicPartitions(ApiMessage):
        topic_id: UUID
        topic_name: str
        partitions: list[int]
        def __init__(self, *, topic_id: UUID = ..., topic_name: str = ..., partitions: list[int] = ...) -> None: ...
    throttle_time_ms: int
    groups: list[ShareGroupDescribeResponse.DescribedGroup]
    def __init__(self, *, throttle_time_ms: int = ..., groups: list[ShareGroupDescribeResponse.DescribedGroup] = ...) -> None: ...

class ShareGroupDescribeRequest(RequestMessage[ShareGroupDescribeResponse]):
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(self, *, group_ids: list[str] = ..., include_authorized_operations: bool = ...) -> None: ...

class ShareFetchResponse(ApiMessage):
    class ShareFetchableTopicResponse(ApiMessage):
        topic_id: UUID
        partitions: list[ShareFetchResponse.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[ShareFetchResponse.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        error_code: int
        error_message: str | None
        acknowledge_error_code: int
        acknowledge_error_message: str | None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch
        records: Buffer
        acquired_records: list[ShareFetchResponse.AcquiredRecords]
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., error_message: str | None = ..., acknowledge_error_code: int = ..., acknowledge_error_message: str | None = ..., current_leader: ShareFetchResponse.LeaderIdAndEpoch = ..., records: Buffer = ..., acquired_records: list[ShareFetchResponse.AcquiredRecords] = ...) -> None: ...
    class LeaderIdAndEpoch(ApiMessage):
        leader_id: int
        leader_epoch: int
        def __init__(self, *, leader_id: int = ..., leader_epoch: int = ...) -> None: ...
    class AcquiredRecords(ApiMessage):
        first_offset: int
        last_offset: int
        delivery_count: int
        def __init__(self, *, first_offset: int = ..., last_offset: int = ..., delivery_count: int = ...) -> None: ...
    class NodeEndpoint(ApiMessage):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse]
    node_endpoints: list[ShareFetchResponse.NodeEndpoint]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., acquisition_lock_timeout_ms: int = ..., responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = ..., node_endpoints: list[ShareFetchResponse.NodeEndpoint] = ...) -> None: ...

class ShareFetchRequest(RequestMessage[ShareFetchResponse]):
    class FetchTopic(ApiMessage):
        topic_id: UUID
        partitions: list[ShareFetchRequest.FetchPartition]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[ShareFetchRequest.FetchPartition] = ...) -> None: ...
    class FetchPartition(ApiMessage):
        partition_index: int
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch]
        def __init__(self, *, partition_index: int = ..., acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = ...) -> None: ...
    class AcknowledgementBatch(ApiMessage):
        first_offset: int
        last_offset: int
        acknowledge_types: list[int]
        def __init__(self, *, first_offset: int = ..., last_offset: int = ..., acknowledge_types: list[int] = ...) -> None: ...
    class ForgottenTopic(ApiMessage):
        topic_id: UUID
        partitions: list[int]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[int] = ...) -> None: ...
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    topics: list[ShareFetchRequest.FetchTopic]
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic]
    share_acquire_mode: int
    is_renew_ack: bool
    def __init__(self, *, group_id: str | None = ..., member_id: str | None = ..., share_session_epoch: int = ..., max_wait_ms: int = ..., min_bytes: int = ..., max_bytes: int = ..., max_records: int = ..., batch_size: int = ..., topics: list[ShareFetchRequest.FetchTopic] = ..., forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = ..., share_acquire_mode: int = ..., is_renew_ack: bool = ...) -> None: ...

class ShareAcknowledgeResponse(ApiMessage):
    class ShareAcknowledgeTopicResponse(ApiMessage):
        topic_id: UUID
        partitions: list[ShareAcknowledgeResponse.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[ShareAcknowledgeResponse.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition_index: int
        error_code: int
        error_message: str | None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., error_message: str | None = ..., current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = ...) -> None: ...
    class LeaderIdAndEpoch(ApiMessage):
        leader_id: int
        leader_epoch: int
        def __init__(self, *, leader_id: int = ..., leader_epoch: int = ...) -> None: ...
    class NodeEndpoint(ApiMessage):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse]
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint]
    acquisition_lock_timeout_ms: int
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = ..., node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = ..., acquisition_lock_timeout_ms: int = ...) -> None: ...

class ShareAcknowledgeRequest(RequestMessage[ShareAcknowledgeResponse]):
    class AcknowledgeTopic(ApiMessage):
        topic_id: UUID
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = ...) -> None: ...
    class AcknowledgePartition(ApiMessage):
        partition_index: int
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch]
        def __init__(self, *, partition_index: int = ..., acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = ...) -> None: ...
    class AcknowledgementBatch(ApiMessage):
        first_offset: int
        last_offset: int
        acknowledge_types: list[int]
        def __init__(self, *, first_offset: int = ..., last_offset: int = ..., acknowledge_types: list[int] = ...) -> None: ...
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic]
    is_renew_ack: bool
    def __init__(self, *, group_id: str | None = ..., member_id: str | None = ..., share_session_epoch: int = ..., topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = ..., is_renew_ack: bool = ...) -> None: ...

class AddRaftVoterResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...

class AddRaftVoterRequest(RequestMessage[AddRaftVoterResponse]):
    class Listener(ApiMessage):
        name: str
        host: str
        port: int
        def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...
    cluster_id: str | None
    timeout_ms: int
    voter_id: int
    voter_directory_id: UUID
    listeners: list[AddRaftVoterRequest.Listener]
    ack_when_committed: bool
    def __init__(self, *, cluster_id: str | None = ..., timeout_ms: int = ..., voter_id: int = ..., voter_directory_id: UUID = ..., listeners: list[AddRaftVoterRequest.Listener] = ..., ack_when_committed: bool = ...) -> None: ...

class RemoveRaftVoterResponse(ApiMessage):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...

class RemoveRaftVoterRequest(RequestMessage[RemoveRaftVoterResponse]):
    cluster_id: str | None
    voter_id: int
    voter_directory_id: UUID
    def __init__(self, *, cluster_id: str | None = ..., voter_id: int = ..., voter_directory_id: UUID = ...) -> None: ...

class UpdateRaftVoterResponse(ApiMessage):
    class CurrentLeader(ApiMessage):
        leader_id: int
        leader_epoch: int
        host: str
        port: int
        def __init__(self, *, leader_id: int = ..., leader_epoch: int = ..., host: str = ..., port: int = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    current_leader: UpdateRaftVoterResponse.CurrentLeader
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., current_leader: UpdateRaftVoterResponse.CurrentLeader = ...) -> None: ...

class UpdateRaftVoterRequest(RequestMessage[UpdateRaftVoterResponse]):
    class Listener(ApiMessage):
        name: str
        host: str
        port: int
        def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...
    class KRaftVersionFeature(ApiMessage):
        min_supported_version: int
        max_supported_version: int
        def __init__(self, *, min_supported_version: int = ..., max_supported_version: int = ...) -> None: ...
    cluster_id: str | None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: UUID
    listeners: list[UpdateRaftVoterRequest.Listener]
    k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature
    def __init__(self, *, cluster_id: str | None = ..., current_leader_epoch: int = ..., voter_id: int = ..., voter_directory_id: UUID = ..., listeners: list[UpdateRaftVoterRequest.Listener] = ..., k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = ...) -> None: ...

class InitializeShareGroupStateResponse(ApiMessage):
    class InitializeStateResult(ApiMessage):
        topic_id: UUID
        partitions: list[InitializeShareGroupStateResponse.PartitionResult]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[InitializeShareGroupStateResponse.PartitionResult] = ...) -> None: ...
    class PartitionResult(ApiMessage):
        partition: int
        error_code: int
        error_message: str | None
        def __init__(self, *, partition: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    results: list[InitializeShareGroupStateResponse.InitializeStateResult]
    def __init__(self, *, results: list[InitializeShareGroupStateResponse.InitializeStateResult] = ...) -> None: ...

class InitializeShareGroupStateRequest(RequestMessage[InitializeShareGroupStateResponse]):
    class InitializeStateData(ApiMessage):
        topic_id: UUID
        partitions: list[InitializeShareGroupStateRequest.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[InitializeShareGroupStateRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition: int
        state_epoch: int
        start_offset: int
        def __init__(self, *, partition: int = ..., state_epoch: int = ..., start_offset: int = ...) -> None: ...
    group_id: str
    topics: list[InitializeShareGroupStateRequest.InitializeStateData]
    def __init__(self, *, group_id: str = ..., topics: list[InitializeShareGroupStateRequest.InitializeStateData] = ...) -> None: ...

class ReadShareGroupStateResponse(ApiMessage):
    class ReadStateResult(ApiMessage):
        topic_id: UUID
        partitions: list[ReadShareGroupStateResponse.PartitionResult]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[ReadShareGroupStateResponse.PartitionResult] = ...) -> None: ...
    class PartitionResult(ApiMessage):
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        start_offset: int
        state_batches: list[ReadShareGroupStateResponse.StateBatch]
        def __init__(self, *, partition: int = ..., error_code: int = ..., error_message: str | None = ..., state_epoch: int = ..., start_offset: int = ..., state_batches: list[ReadShareGroupStateResponse.StateBatch] = ...) -> None: ...
    class StateBatch(ApiMessage):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(self, *, first_offset: int = ..., last_offset: int = ..., delivery_state: int = ..., delivery_count: int = ...) -> None: ...
    results: list[ReadShareGroupStateResponse.ReadStateResult]
    def __init__(self, *, results: list[ReadShareGroupStateResponse.ReadStateResult] = ...) -> None: ...

class ReadShareGroupStateRequest(RequestMessage[ReadShareGroupStateResponse]):
    class ReadStateData(ApiMessage):
        topic_id: UUID
        partitions: list[ReadShareGroupStateRequest.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[ReadShareGroupStateRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition: int
        leader_epoch: int
        def __init__(self, *, partition: int = ..., leader_epoch: int = ...) -> None: ...
    group_id: str
    topics: list[ReadShareGroupStateRequest.ReadStateData]
    def __init__(self, *, group_id: str = ..., topics: list[ReadShareGroupStateRequest.ReadStateData] = ...) -> None: ...

class WriteShareGroupStateResponse(ApiMessage):
    class WriteStateResult(ApiMessage):
        topic_id: UUID
        partitions: list[WriteShareGroupStateResponse.PartitionResult]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[WriteShareGroupStateResponse.PartitionResult] = ...) -> None: ...
    class PartitionResult(ApiMessage):
        partition: int
        error_code: int
        error_message: str | None
        def __init__(self, *, partition: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    results: list[WriteShareGroupStateResponse.WriteStateResult]
    def __init__(self, *, results: list[WriteShareGroupStateResponse.WriteStateResult] = ...) -> None: ...

class WriteShareGroupStateRequest(RequestMessage[WriteShareGroupStateResponse]):
    class WriteStateData(ApiMessage):
        topic_id: UUID
        partitions: list[WriteShareGroupStateRequest.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[WriteShareGroupStateRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition: int
        state_epoch: int
        leader_epoch: int
        start_offset: int
        state_batches: list[WriteShareGroupStateRequest.StateBatch]
        delivery_complete_count: int
        def __init__(self, *, partition: int = ..., state_epoch: int = ..., leader_epoch: int = ..., start_offset: int = ..., state_batches: list[WriteShareGroupStateRequest.StateBatch] = ..., delivery_complete_count: int = ...) -> None: ...
    class StateBatch(ApiMessage):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(self, *, first_offset: int = ..., last_offset: int = ..., delivery_state: int = ..., delivery_count: int = ...) -> None: ...
    group_id: str
    topics: list[WriteShareGroupStateRequest.WriteStateData]
    def __init__(self, *, group_id: str = ..., topics: list[WriteShareGroupStateRequest.WriteStateData] = ...) -> None: ...

class DeleteShareGroupStateResponse(ApiMessage):
    class DeleteStateResult(ApiMessage):
        topic_id: UUID
        partitions: list[DeleteShareGroupStateResponse.PartitionResult]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[DeleteShareGroupStateResponse.PartitionResult] = ...) -> None: ...
    class PartitionResult(ApiMessage):
        partition: int
        error_code: int
        error_message: str | None
        def __init__(self, *, partition: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    results: list[DeleteShareGroupStateResponse.DeleteStateResult]
    def __init__(self, *, results: list[DeleteShareGroupStateResponse.DeleteStateResult] = ...) -> None: ...

class DeleteShareGroupStateRequest(RequestMessage[DeleteShareGroupStateResponse]):
    class DeleteStateData(ApiMessage):
        topic_id: UUID
        partitions: list[DeleteShareGroupStateRequest.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[DeleteShareGroupStateRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition: int
        def __init__(self, *, partition: int = ...) -> None: ...
    group_id: str
    topics: list[DeleteShareGroupStateRequest.DeleteStateData]
    def __init__(self, *, group_id: str = ..., topics: list[DeleteShareGroupStateRequest.DeleteStateData] = ...) -> None: ...

class ReadShareGroupStateSummaryResponse(ApiMessage):
    class ReadStateSummaryResult(ApiMessage):
        topic_id: UUID
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = ...) -> None: ...
    class PartitionResult(ApiMessage):
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        def __init__(self, *, partition: int = ..., error_code: int = ..., error_message: str | None = ..., state_epoch: int = ..., leader_epoch: int = ..., start_offset: int = ..., delivery_complete_count: int = ...) -> None: ...
    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult]
    def __init__(self, *, results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = ...) -> None: ...

class ReadShareGroupStateSummaryRequest(RequestMessage[ReadShareGroupStateSummaryResponse]):
    class ReadStateSummaryData(ApiMessage):
        topic_id: UUID
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData]
        def __init__(self, *, topic_id: UUID = ..., partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = ...) -> None: ...
    class PartitionData(ApiMessage):
        partition: int
        leader_epoch: int
        def __init__(self, *, partition: int = ..., leader_epoch: int = ...) -> None: ...
    group_id: str
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData]
    def __init__(self, *, group_id: str = ..., topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = ...) -> None: ...

class StreamsGroupHeartbeatResponse(ApiMessage):
    class Status(ApiMessage):
        status_code: int
        status_detail: str
        def __init__(self, *, status_code: int = ..., status_detail: str = ...) -> None: ...
    class TaskIds(ApiMessage):
        subtopology_id: str
        partitions: list[int]
        def __init__(self, *, subtopology_id: str = ..., partitions: list[int] = ...) -> None: ...
    class EndpointToPartitions(ApiMessage):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        def __init__(self, *, user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = ..., active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ..., standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...) -> None: ...
    class Endpoint(ApiMessage):
        host: str
        port: int
        def __init__(self, *, host: str = ..., port: int = ...) -> None: ...
    class TopicPartition(ApiMessage):
        topic: str
        partitions: list[int]
        def __init__(self, *, topic: str = ..., partitions: list[int] = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    acceptable_recovery_lag: int
    task_offset_interval_ms: int
    status: list[StreamsGroupHeartbeatResponse.Status] | None
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    endpoint_information_epoch: int
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., member_id: str = ..., member_epoch: int = ..., heartbeat_interval_ms: int = ..., acceptable_recovery_lag: int = ..., task_offset_interval_ms: int = ..., status: list[StreamsGroupHeartbeatResponse.Status] | None = ..., active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ..., standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ..., warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ..., endpoint_information_epoch: int = ..., partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = ...) -> None: ...

class StreamsGroupHeartbeatRequest(RequestMessage[StreamsGroupHeartbeatResponse]):
    class Topology(ApiMessage):
        epoch: int
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology]
        def __init__(self, *, epoch: int = ..., subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = ...) -> None: ...
    class Subtopology(ApiMessage):
        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup]
        def __init__(self, *, subtopology_id: str = ..., source_topics: list[str] = ..., source_topic_regex: list[str] = ..., state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ..., repartition_sink_topics: list[str] = ..., repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ..., copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = ...) -> None: ...
    class TopicInfo(ApiMessage):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue]
        def __init__(self, *, name: str = ..., partitions: int = ..., replication_factor: int = ..., topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = ...) -> None: ...
    class KeyValue(ApiMessage):
        key: str
        value: str
        def __init__(self, *, key: str = ..., value: str = ...) -> None: ...
    class CopartitionGroup(ApiMessage):
        source_topics: list[int]
        source_topic_regex: list[int]
        repartition_source_topics: list[int]
        def __init__(self, *, source_topics: list[int] = ..., source_topic_regex: list[int] = ..., repartition_source_topics: list[int] = ...) -> None: ...
    class TaskIds(ApiMessage):
        subtopology_id: str
        partitions: list[int]
        def __init__(self, *, subtopology_id: str = ..., partitions: list[int] = ...) -> None: ...
    class Endpoint(ApiMessage):
        host: str
        port: int
        def __init__(self, *, host: str = ..., port: int = ...) -> None: ...
    class TaskOffset(ApiMessage):
        subtopology_id: str
        partition: int
        offset: int
        def __init__(self, *, subtopology_id: str = ..., partition: int = ..., offset: int = ...) -> None: ...
    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: StreamsGroupHeartbeatRequest.Topology | None
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    process_id: str | None
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    shutdown_application: bool
    def __init__(self, *, group_id: str = ..., member_id: str = ..., member_epoch: int = ..., endpoint_information_epoch: int = ..., instance_id: str | None = ..., rack_id: str | None = ..., rebalance_timeout_ms: int = ..., topology: StreamsGroupHeartbeatRequest.Topology | None = ..., active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ..., standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ..., warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ..., process_id: str | None = ..., user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = ..., client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = ..., task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = ..., task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = ..., shutdown_application: bool = ...) -> None: ...

class StreamsGroupDescribeResponse(ApiMessage):
    class DescribedGroup(ApiMessage):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        topology: StreamsGroupDescribeResponse.Topology | None
        members: list[StreamsGroupDescribeResponse.Member]
        authorized_operations: int
        def __init__(self, *, error_code: int = ..., error_message: str | None = ..., group_id: str = ..., group_state: str = ..., group_epoch: int = ..., assignment_epoch: int = ..., topology: StreamsGroupDescribeResponse.Topology | None = ..., members: list[StreamsGroupDescribeResponse.Member] = ..., authorized_operations: int = ...) -> None: ...
    class Topology(ApiMessage):
        epoch: int
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None
        def __init__(self, *, epoch: int = ..., subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = ...) -> None: ...
    class Subtopology(ApiMessage):
        subtopology_id: str
        source_topics: list[str]
        repartition_sink_topics: list[str]
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        def __init__(self, *, subtopology_id: str = ..., source_topics: list[str] = ..., repartition_sink_topics: list[str] = ..., state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ..., repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...) -> None: ...
    class TopicInfo(ApiMessage):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue]
        def __init__(self, *, name: str = ..., partitions: int = ..., replication_factor: int = ..., topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = ...) -> None: ...
    class KeyValue(ApiMessage):
        key: str
        value: str
        def __init__(self, *, key: str = ..., value: str = ...) -> None: ...
    class Member(ApiMessage):
        member_id: str
        member_epoch: int
        instance_id: str | None
        rack_id: str | None
        client_id: str
        client_host: str
        topology_epoch: int
        process_id: str
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None
        client_tags: list[StreamsGroupDescribeResponse.KeyValue]
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        assignment: StreamsGroupDescribeResponse.Assignment
        target_assignment: StreamsGroupDescribeResponse.Assignment
        is_classic: bool
        def __init__(self, *, member_id: str = ..., member_epoch: int = ..., instance_id: str | None = ..., rack_id: str | None = ..., client_id: str = ..., client_host: str = ..., topology_epoch: int = ..., process_id: str = ..., user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = ..., client_tags: list[StreamsGroupDescribeResponse.KeyValue] = ..., task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ..., task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ..., assignment: StreamsGroupDescribeResponse.Assignment = ..., target_assignment: StreamsGroupDescribeResponse.Assignment = ..., is_classic: bool = ...) -> None: ...
    class Endpoint(ApiMessage):
        host: str
        port: int
        def __init__(self, *, host: str = ..., port: int = ...) -> None: ...
    class TaskOffset(ApiMessage):
        subtopology_id: str
        partition: int
        offset: int
        def __init__(self, *, subtopology_id: str = ..., partition: int = ..., offset: int = ...) -> None: ...
    class Assignment(ApiMessage):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        def __init__(self, *, active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ..., standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ..., warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...) -> None: ...
    class TaskIds(ApiMessage):
        subtopology_id: str
        partitions: list[int]
        def __init__(self, *, subtopology_id: str = ..., partitions: list[int] = ...) -> None: ...
    throttle_time_ms: int
    groups: list[StreamsGroupDescribeResponse.DescribedGroup]
    def __init__(self, *, throttle_time_ms: int = ..., groups: list[StreamsGroupDescribeResponse.DescribedGroup] = ...) -> None: ...

class StreamsGroupDescribeRequest(RequestMessage[StreamsGroupDescribeResponse]):
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(self, *, group_ids: list[str] = ..., include_authorized_operations: bool = ...) -> None: ...

class DescribeShareGroupOffsetsResponse(ApiMessage):
    class DescribeShareGroupOffsetsResponseGroup(ApiMessage):
        group_id: str
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic]
        error_code: int
        error_message: str | None
        def __init__(self, *, group_id: str = ..., topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    class DescribeShareGroupOffsetsResponseTopic(ApiMessage):
        topic_name: str
        topic_id: UUID
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition]
        def __init__(self, *, topic_name: str = ..., topic_id: UUID = ..., partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = ...) -> None: ...
    class DescribeShareGroupOffsetsResponsePartition(ApiMessage):
        partition_index: int
        start_offset: int
        leader_epoch: int
        error_code: int
        error_message: str | None
        lag: int
        def __init__(self, *, partition_index: int = ..., start_offset: int = ..., leader_epoch: int = ..., error_code: int = ..., error_message: str | None = ..., lag: int = ...) -> None: ...
    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup]
    def __init__(self, *, throttle_time_ms: int = ..., groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = ...) -> None: ...

class DescribeShareGroupOffsetsRequest(RequestMessage[DescribeShareGroupOffsetsResponse]):
    class DescribeShareGroupOffsetsRequestGroup(ApiMessage):
        group_id: str
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None
        def __init__(self, *, group_id: str = ..., topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = ...) -> None: ...
    class DescribeShareGroupOffsetsRequestTopic(ApiMessage):
        topic_name: str
        partitions: list[int]
        def __init__(self, *, topic_name: str = ..., partitions: list[int] = ...) -> None: ...
    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup]
    def __init__(self, *, groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = ...) -> None: ...

class AlterShareGroupOffsetsResponse(ApiMessage):
    class AlterShareGroupOffsetsResponseTopic(ApiMessage):
        topic_name: str
        topic_id: UUID
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition]
        def __init__(self, *, topic_name: str = ..., topic_id: UUID = ..., partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = ...) -> None: ...
    class AlterShareGroupOffsetsResponsePartition(ApiMessage):
        partition_index: int
        error_code: int
        error_message: str | None
        def __init__(self, *, partition_index: int = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = ...) -> None: ...

class AlterShareGroupOffsetsRequest(RequestMessage[AlterShareGroupOffsetsResponse]):
    class AlterShareGroupOffsetsRequestTopic(ApiMessage):
        topic_name: str
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition]
        def __init__(self, *, topic_name: str = ..., partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = ...) -> None: ...
    class AlterShareGroupOffsetsRequestPartition(ApiMessage):
        partition_index: int
        start_offset: int
        def __init__(self, *, partition_index: int = ..., start_offset: int = ...) -> None: ...
    group_id: str
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic]
    def __init__(self, *, group_id: str = ..., topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = ...) -> None: ...

class DeleteShareGroupOffsetsResponse(ApiMessage):
    class DeleteShareGroupOffsetsResponseTopic(ApiMessage):
        topic_name: str
        topic_id: UUID
        error_code: int
        error_message: str | None
        def __init__(self, *, topic_name: str = ..., topic_id: UUID = ..., error_code: int = ..., error_message: str | None = ...) -> None: ...
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]
    def __init__(self, *, throttle_time_ms: int = ..., error_code: int = ..., error_message: str | None = ..., responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = ...) -> None: ...

class DeleteShareGroupOffsetsRequest(RequestMessage[DeleteShareGroupOffsetsResponse]):
    class DeleteShareGroupOffsetsRequestTopic(ApiMessage):
        topic_name: str
        def __init__(self, *, topic_name: str = ...) -> None: ...
    group_id: str
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic]
    def __init__(self, *, group_id: str = ..., topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = ...) -> None: ...
