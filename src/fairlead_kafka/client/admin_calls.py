"""Every call of an admin client, written once; `Admin` and `AsyncAdmin` drive the steps.

An admin client is made of parts. `Performing` has the machine run the script of a call. Each other
part has the calls of one subject, and uses only `Performing`:

    TopicCalls        topics, their partitions, offsets and records, configs, log directories
    GroupCalls        classic and consumer groups, their members and committed offsets
    ShareGroupCalls   share groups and their offsets
    TransactionCalls  transactions, and the producers that began them
    AccessCalls       ACLs, SCRAM passwords, client quotas
    ClusterCalls      brokers, elections, moves, versions and features, the quorum
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead_kafka.admin import AdminMachine
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.client.admin_access_calls import AccessCalls
from fairlead_kafka.client.admin_cluster_calls import ClusterCalls
from fairlead_kafka.client.admin_group_calls import GroupCalls
from fairlead_kafka.client.admin_performing import Performing
from fairlead_kafka.client.admin_share_calls import ShareGroupCalls
from fairlead_kafka.client.admin_topic_calls import TopicCalls
from fairlead_kafka.client.admin_transaction_calls import TransactionCalls
from fairlead_kafka.client.hosting import Offload, Opener, open_host


class AdminCalls:
    """The parts of an admin client, for any number of threads or tasks. `offload` runs slow work on
    a thread, so that an event loop goes on."""

    def __init__(
        self, config: Mapping[str, object], offload: Offload | None = None, opener: Opener = open_host
    ) -> None:
        settings = CLIENT_CONFIGS.parse("admin", config)
        self.host = opener(lambda rng: AdminMachine(settings, rng), settings, "fairlead-admin")
        self.performing = performing = Performing(self.host, settings)
        self.topics = TopicCalls(performing)
        self.groups = GroupCalls(performing)
        self.share_groups = ShareGroupCalls(performing)
        self.transactions = TransactionCalls(performing)
        self.access = AccessCalls(performing, offload)
        self.cluster = ClusterCalls(performing)
