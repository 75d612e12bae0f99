"""Admin scripts about the whole cluster: list resources that have configs, features, the quorum.
Sources: KIP-584, KIP-836, KIP-1142."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fairlead_kafka.admin.cluster_items import (
    FeatureLevels,
    FeatureMetadata,
    QuorumInfo,
    QuorumReplica,
    UpgradeType,
)
from fairlead_kafka.admin.items import ConfigResource, ResourceType
from fairlead_kafka.admin.scripts import AdminScript, Outcome, Refused, about_one, explained, outcome_of
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.core.network import CONTROLLER
from fairlead_kafka.core.script import Ask, Pause, ask_all
from fairlead_kafka.core.topic_listing import ask_metadata
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_METADATA_LOG = "__cluster_metadata"
_SOFTWARE = "fairlead"


def list_config_resources(types: Sequence[ResourceType]) -> AdminScript[list[ConfigResource]]:
    """Everything that has configs; `types` empty: of all types that the broker knows. BrokerError
    if it refuses."""
    message = ListConfigResourcesRequest(resource_types=[int(one) for one in types])

    def read(answer: ListConfigResourcesResponse) -> Outcome[list[ConfigResource]]:
        known = set(ResourceType)
        found = sorted(
            ConfigResource(ResourceType(row.resource_type), row.resource_name)
            for row in answer.config_resources
            if row.resource_type in known
        )
        return outcome_of(answer.error_code, explained(answer.error_code, None, "DescribeConfigs"), found)

    return about_one("list_config_resources", Ask(ApiKey.LIST_CONFIG_RESOURCES, message), read)


def describe_metadata_quorum() -> AdminScript[QuorumInfo]:
    """Describe the quorum of controllers. BrokerError if the broker refuses."""
    one = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=_METADATA_LOG, partitions=[one])

    def read(answer: DescribeQuorumResponse) -> Outcome[QuorumInfo]:
        if answer.error_code:
            return Refused(answer.error_code, explained(answer.error_code, answer.error_message, "Describe"))
        row = answer.topics[0].partitions[0]
        info = QuorumInfo(
            row.leader_id,
            row.leader_epoch,
            row.high_watermark,
            tuple(map(_replica, row.current_voters)),
            tuple(map(_replica, row.observers)),
        )
        return outcome_of(row.error_code, row.error_message, info)

    return about_one(
        "describe_metadata_quorum", Ask(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest(topics=[topic])), read
    )


def _replica(row: DescribeQuorumResponse.ReplicaState) -> QuorumReplica:
    times = (row.last_fetch_timestamp, row.last_caught_up_timestamp)
    fetched, caught_up = (None if time < 0 else time for time in times)
    return QuorumReplica(row.replica_id, row.log_end_offset, fetched, caught_up)


def describe_features() -> AdminScript[FeatureMetadata]:
    """Describe the features that a broker supports, and their finalized levels in the cluster.
    BrokerError if it refuses."""
    message = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="admin")

    def read(answer: ApiVersionsResponse) -> Outcome[FeatureMetadata]:
        epoch = answer.finalized_features_epoch
        features = FeatureMetadata(
            {row.name: FeatureLevels(row.min_version, row.max_version) for row in answer.supported_features},
            {row.name: row.max_version_level for row in answer.finalized_features},
            None if epoch < 0 else epoch,
        )
        return outcome_of(answer.error_code, None, features)

    return about_one("describe_features", Ask(ApiKey.API_VERSIONS, message), read)


def describe_api_versions(node_ids: Collection[int]) -> AdminScript[dict[int, dict[int, tuple[int, int]]]]:
    """Versions of APIs by broker: {node id: {API key: (lowest, highest)}}. `node_ids` empty: all
    live brokers. BrokerError if one of them refuses."""
    waiting = set(node_ids)
    if not waiting:
        answer = yield from ask_metadata([])
        waiting = {broker.node_id for broker in answer.brokers}
    message = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="admin")
    found: dict[int, dict[int, tuple[int, int]]] = {}
    while waiting:
        nodes = sorted(waiting)
        trouble: Exception | None = None
        answers = yield from ask_all([Ask(ApiKey.API_VERSIONS, message, node_id) for node_id in nodes])
        for node_id, said in zip(nodes, answers, strict=True):
            if isinstance(said, Exception):
                trouble = said
                continue
            if said.error_code:
                raise BrokerError(said.error_code, f"asking broker {node_id} for its versions")
            waiting.discard(node_id)
            found[node_id] = {row.api_key: (row.min_version, row.max_version) for row in said.api_keys}
        if trouble is not None:
            yield Pause(trouble, refresh=True)
    return dict(sorted(found.items()))


def update_features(
    levels: Mapping[str, int], upgrade_type: UpgradeType, *, validate_only: bool, timeout_ms: int
) -> AdminScript[None]:
    """Change the finalized levels of features, all or none. BrokerError if the controller
    refuses."""
    rows = [
        UpdateFeaturesRequest.FeatureUpdateKey(
            feature=name,
            max_version_level=level,
            allow_downgrade=upgrade_type is not UpgradeType.UPGRADE,
            upgrade_type=int(upgrade_type),
        )
        for name, level in levels.items()
    ]
    message = UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=rows, validate_only=validate_only)

    def read(answer: UpdateFeaturesResponse) -> Outcome[None]:
        wrong = next((row for row in answer.results if row.error_code), None)
        if wrong is not None and not answer.error_code:
            return Refused(wrong.error_code, wrong.error_message)
        return outcome_of(
            answer.error_code, explained(answer.error_code, answer.error_message, "Alter"), None
        )

    return about_one("update_features", Ask(ApiKey.UPDATE_FEATURES, message, CONTROLLER), read)
