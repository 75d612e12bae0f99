"""The class `Controller`: the only one that changes the cluster's metadata. See the package for the
theory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from fairlead_kafka.base.acls import AclBinding, AclFilter
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import Node
from fairlead_kafka.broker.controller.acls import Acls
from fairlead_kafka.broker.controller.brokers import Brokers
from fairlead_kafka.broker.controller.client_quotas import QuotaAlterations
from fairlead_kafka.broker.controller.configs import (
    CLIENT_METRICS,
    ConfigAlteration,
    alter,
    alter_group,
    alter_topic,
    check_cluster_wide,
    client_metrics_settings,
)
from fairlead_kafka.broker.controller.credentials import Credentials
from fairlead_kafka.broker.controller.decisions import (
    AllocateProducerIds,
    AlterBrokerConfigs,
    AlterClientMetrics,
    AlterClientQuotas,
    AlterGroupConfigs,
    AlterPartitions,
    AlterReassignments,
    AlterScramCredentials,
    AlterTopicConfigs,
    BrokerStarted,
    BrokerStopped,
    BrokerStopping,
    Charged,
    CreateAcls,
    CreateInternalTopic,
    CreatePartitions,
    CreateTopics,
    Decision,
    DecisionDone,
    DeleteAcls,
    DeleteTopics,
    DiskReported,
    ElectLeaders,
    FeatureUpdate,
    NewTopic,
    ProposedIsr,
    QuotaAlteration,
    Reassignment,
    ScramAlteration,
    UpdateFeatures,
)
from fairlead_kafka.broker.controller.features import Features
from fairlead_kafka.broker.controller.fold import client_metrics_record
from fairlead_kafka.broker.controller.image import (
    CLUSTER_WIDE,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    Change,
    TopicImage,
)
from fairlead_kafka.broker.controller.in_sync import InSync
from fairlead_kafka.broker.controller.journal import Append, Journal
from fairlead_kafka.broker.controller.leadership import Leadership, Named
from fairlead_kafka.broker.controller.limits import Limits
from fairlead_kafka.broker.controller.mutations import Mutations
from fairlead_kafka.broker.controller.placement import Assignments
from fairlead_kafka.broker.controller.reassignment import Reassignments
from fairlead_kafka.broker.controller.topics import Topics
from fairlead_kafka.broker.controller.view import ClusterView
from fairlead_kafka.broker.guard import Guard, Task
from fairlead_kafka.core.machine import Rng

R = TypeVar("R")
PRODUCER_ID_BLOCK = 1_000
"""Producer ids handed to a broker at once (Kafka's `ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`)."""

_UNCLEAN = "unclean.leader.election.enable"


class Controller(ClusterView):
    """The controller, of which a cluster has one: it alone changes the metadata, by a method for
    each kind of decision. `append` and `replace` write the metadata log, see `Journal`.

    All methods that change something raise `BrokerError` with Kafka's code, and change nothing
    then.
    """

    def __init__(
        self, settings: Settings, rng: Rng, append: Append | None = None, replace: Append | None = None
    ) -> None:
        super().__init__(settings)
        self.guard = Guard("the controller")
        """Logs and counts exceptions that are no refusals."""
        self.journal = Journal(self, rng, append, replace)
        self.limits = Limits(self.image, self.configs)
        self.mutations = Mutations(self.image, self.configs)
        self._topics = Topics(self.journal, self.limits, self.mutations)
        self._quotas = QuotaAlterations(self.journal)
        self._brokers = Brokers(self.journal)
        self._in_sync = InSync(self.journal, self._brokers, self.limits)
        self._credentials = Credentials(self.journal)
        self._leadership = Leadership(self.journal, self._brokers)
        self._reassignments = Reassignments(self.journal, self._brokers, self.limits, self._topics.placement)
        self._acls = Acls(self.journal)
        self._features = Features(self.journal)

    @property
    def errors(self) -> int:
        """Number of exceptions that the controller survived."""
        return self.guard.errors

    def decide(self, decision: Decision[R], done: DecisionDone[R]) -> None:
        """Make a decision within this call: done(result, None) or done(None, error). One that
        raises anything else than a refusal is logged, counted in `guard.errors` and answered with
        UNKNOWN_SERVER_ERROR; SharedDamage is raised."""
        try:
            result = self.decided(decision)
        except BrokerError as error:
            done(None, error)
            return
        except Exception as error:
            self.guard.now_ns = self.now_ns
            self.guard.blame(Task(f"the decision {type(decision).__name__}"), error)
            context = f"the controller failed in {type(decision).__name__}: {error!r}; see its log"
            done(None, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, context))
            return
        done(result, None)

    def decided(self, decision: Decision[R]) -> R:
        """The result of a decision, made now. BrokerError: it is refused."""
        result: R = DECIDERS[type(decision)](self, decision)
        return result

    # --- The log of metadata

    def replay(self, data: bytes) -> int:
        """Rebuild the image from a metadata log, before any broker starts; returns how many of its
        bytes are valid. See `Journal.replay`."""
        return self.journal.replay(data)

    def snapshot(self) -> bytes:
        """A metadata log that replays to this image and has no other records."""
        return self.journal.snapshot()

    def follow(self, follower: Callable[[bytes], None]) -> Callable[[], None]:
        """Have `follower` called with the line of every decision, in order; the function that is
        returned ends that."""
        return self.journal.follow(follower)

    # --- For brokers of this thread

    def detach(self, node_id: int) -> None:
        """Note that a broker, which is hosted by the controller's own thread, has ended."""
        self.broker_stopped(node_id)

    def note(self, change: Change | None) -> None:
        """Update the state that is derived from the image, after `change`."""
        super().note(change)
        self._topics.note(change)
        self.limits.note(change)
        self.mutations.note(change)

    def tick(self, now_ns: int) -> None:
        """Do what is due at `now_ns`; see `deadline_ns`."""
        self.mutations.tick(now_ns)
        self._brokers.tick(now_ns)
        self._leadership.tick(now_ns)

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, at which `tick` is to be called next; None: not yet known, for it was
        never called."""
        deadlines = (self._brokers.deadline_ns(), self._leadership.deadline_ns())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    # --- Brokers, leaders and replicas

    def broker_started(self, node: Node, endpoints: Mapping[str, tuple[str, int]] | None = None) -> int:
        """Note that a broker listens. Returns its epoch, which identifies this run of it from now
        on."""
        return self._brokers.started(node, endpoints or {})

    def await_brokers(self, node_ids: Iterable[int]) -> None:
        """Expect brokers that are about to start: decisions that concern all brokers wait for them,
        for one broker session time-out at most."""
        self.journal.awaited.update(node_ids)

    def broker_stopping(self, node_id: int) -> None:
        """Begin a controlled shutdown: move leadership of the broker's partitions to others. Does
        nothing if it is not alive."""
        self._brokers.stopping(node_id)

    def broker_stopped(self, node_id: int) -> None:
        """Called when the broker has ended. Does nothing if that is known."""
        self._brokers.stopped(node_id)

    def disk_reported(self, node_id: int, broker_epoch: int, works: bool) -> None:
        """Called when the broker's disk fails, so that others are to lead its partitions, or works
        again. BrokerError(STALE_BROKER_EPOCH)."""
        self._brokers.disk_reported(node_id, broker_epoch, works)

    def cluster_stopping(self) -> None:
        """Called when all brokers are about to stop: the partitions of a broker that stops from now
        on stay as they are, and are the same when it is back."""
        self._brokers.all_stopping = True

    def alter_partitions(
        self, node_id: int, broker_epoch: int, proposals: Sequence[ProposedIsr]
    ) -> list[int]:
        """Decide on replicas in sync that leader `node_id` proposes; per proposal an error code.
        BrokerError(STALE_BROKER_EPOCH)."""
        return self._in_sync.alter(node_id, broker_epoch, proposals)

    def elect_leaders(
        self, election: int, partitions: Sequence[Named] | None
    ) -> list[tuple[str, int, BrokerError | None]]:
        """Hold elections; per partition None, or the error. `partitions` None: all partitions; only
        those that needed an election are returned."""
        return self._leadership.elect(election, partitions)

    def alter_reassignments(
        self, wanted: Sequence[Reassignment], may_change_factor: bool = True
    ) -> list[BrokerError | None]:
        """Begin, change or cancel moves of partitions to other brokers; for each None, or the
        error."""
        return self._reassignments.alter(wanted, may_change_factor)

    def allocate_producer_ids(self, node_id: int) -> range:
        """A block of producer ids that no other broker gets, also after a restart. BrokerError if
        the broker was never registered."""
        if node_id not in self.image.brokers:
            raise BrokerError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {node_id} never started in this cluster"
            )
        first = self.image.next_producer_id
        self.journal.commit([{"type": "producer_ids", "next": first + PRODUCER_ID_BLOCK}])
        return range(first, first + PRODUCER_ID_BLOCK)

    def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], validate_only: bool = False
    ) -> list[BrokerError | None]:
        """Set and remove client quotas (KIP-546), in one decision; for each entity None, or the
        error for which none of its alterations was made."""
        return self._quotas.alter(alterations, validate_only)

    def update_features(self, updates: Sequence[FeatureUpdate], validate_only: bool = False) -> None:
        """Change feature levels (KIP-584), all or none."""
        self._features.update(updates, validate_only)

    # --- Topics

    def create_topics(
        self, wanted: Sequence[NewTopic], validate_only: bool = False
    ) -> list[TopicImage | BrokerError]:
        """Create topics, in one decision; for each its image, or the error. With `validate_only`,
        the images that they would have."""
        return self._topics.create(wanted, validate_only)

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Assignments | None = None,
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
    ) -> TopicImage:
        """Create one topic; -1 means num.partitions and default.replication.factor. Returns its
        image."""
        (result,) = self.create_topics(
            [NewTopic(name, partitions, replication_factor, assignments, configs or {})], validate_only
        )
        if isinstance(result, BrokerError):
            raise result
        return result

    def create_internal_topic(self, name: str) -> TopicImage:
        """The image of one of INTERNAL_TOPICS, created if it does not exist.
        BrokerError(INVALID_TOPIC_EXCEPTION) for another name."""
        return self._topics.create_internal(name)

    def create_offsets_topic(self) -> TopicImage:
        """The image of the topic of committed offsets, created if it does not exist."""
        return self.create_internal_topic(OFFSETS_TOPIC)

    def create_transactions_topic(self) -> TopicImage:
        """The image of the topic of transactions' state, created if it does not exist."""
        return self.create_internal_topic(TRANSACTIONS_TOPIC)

    def delete_topics(self, topics: Sequence[str | UUID]) -> list[TopicImage | BrokerError]:
        """Delete topics by name or id, in one decision; for each its last image, or the error."""
        return self._topics.delete(topics)

    def delete_topic(self, topic: str | UUID) -> TopicImage:
        """Delete one topic by name or id; returns its last image."""
        (result,) = self.delete_topics([topic])
        if isinstance(result, BrokerError):
            raise result
        return result

    def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Grow a topic to `count` partitions in all; `assignments` are those of the new ones, in
        order."""
        self._topics.grow(name, count, assignments, validate_only)

    # --- Who may come in

    def alter_scram_credentials(self, alterations: Sequence[ScramAlteration]) -> list[BrokerError | None]:
        """Set and delete SCRAM credentials; of one user all or none. For each None, or the error of
        its user's."""
        return self._credentials.alter(alterations)

    # --- Rights

    def create_acls(self, bindings: Sequence[AclBinding]) -> list[BrokerError | None]:
        """Create ACLs, in one decision; for each None, or the error. An ACL that exists already
        stays as it is."""
        return self._acls.create(bindings)

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[list[AclBinding] | BrokerError]:
        """Delete ACLs, in one decision; for each filter the ACLs that matched it, or the error of
        an invalid filter."""
        return self._acls.delete(filters)

    # --- Configs

    def alter_topic_configs(
        self, name: str, alterations: Sequence[ConfigAlteration], validate_only: bool = False
    ) -> None:
        """Change a topic's own configs, all or none. BrokerError if the topic does not exist or a
        config is invalid."""
        topic = self.image.topics.get(name)
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {name!r} does not exist.")
        altered = alter_topic(topic, self.configs.topic_settings(topic), alterations)
        changed = _changed(topic.configs, altered)
        if changed and not validate_only:
            self.journal.commit(
                [{"type": "topic_configs", "topic_id": topic.topic_id.hex, "configs": changed}]
            )
            self._configs_altered(changed)

    def alter_broker_configs(
        self, name: str, alterations: Sequence[ConfigAlteration], validate_only: bool = False
    ) -> None:
        """Change the dynamic configs of the broker `name` (a node id as text), or of all
        (CLUSTER_WIDE), all or none. BrokerError INVALID_CONFIG if one is invalid."""
        self.check_broker_name(name)
        if name == CLUSTER_WIDE:
            check_cluster_wide(alterations)
        elif any(alteration.key == _UNCLEAN for alteration in alterations):
            raise BrokerError(
                ErrorCode.INVALID_CONFIG,
                f"{_UNCLEAN}: the controller elects for all brokers: set it for all (the broker ''), or on a "
                "topic",
            )
        current = self.image.broker_configs.get(name, {})
        altered = alter("broker", current, self.configs.broker_settings(name), alterations)
        changed = _changed(current, altered)
        if changed and not validate_only:
            self.journal.commit([{"type": "broker_configs", "name": name, "configs": changed}])
            self._configs_altered(changed)

    def alter_client_metrics(
        self, name: str, alterations: Sequence[ConfigAlteration], validate_only: bool = False
    ) -> None:
        """Change the configs of a subscription to clients' metrics, all or none. BrokerError if the
        name is empty or a config is invalid."""
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
        current = self.image.client_metrics.get(name, {})
        altered = alter(CLIENT_METRICS, current, client_metrics_settings(current), alterations)
        changed = _changed(current, altered)
        if changed and not validate_only:
            self.journal.commit([client_metrics_record(name, changed)])

    def alter_group_configs(
        self, group_id: str, alterations: Sequence[ConfigAlteration], validate_only: bool = False
    ) -> None:
        """Change a group's own configs, all or none; the group need not exist."""
        current = self.image.group_configs.get(group_id, {})
        altered = alter_group(group_id, current, self.configs, alterations)
        changed = _changed(current, altered)
        if changed and not validate_only:
            self.journal.commit([{"type": "group_configs", "group": group_id, "configs": changed}])

    def _configs_altered(self, changed: Mapping[str, str | None]) -> None:
        if _UNCLEAN in changed:
            self._leadership.elect_unclean()


def _changed(current: Mapping[str, str], altered: Mapping[str, str]) -> dict[str, str | None]:
    return {
        key: altered.get(key) for key in sorted({*current, *altered}) if current.get(key) != altered.get(key)
    }


def _elect(controller: Controller, decision: ElectLeaders) -> list[tuple[str, int, BrokerError | None]]:
    partitions = (
        None if decision.partitions is None else [(topic, number) for topic, number in decision.partitions]
    )
    return controller.elect_leaders(decision.election_type, partitions)


def _charge(controller: Controller, one: Charged[R]) -> tuple[R | BrokerError, int]:
    return controller.mutations.spend_for(one.spender, lambda: controller.decided(one.decision))


def _allocate(controller: Controller, decision: AllocateProducerIds) -> tuple[int, int]:
    block = controller.allocate_producer_ids(decision.node_id)
    return block.start, len(block)


DECIDERS: dict[type[Decision[object]], Callable[[Controller, Any], Any]] = {
    Charged: _charge,
    CreateTopics: lambda controller, one: controller.create_topics(one.topics, one.validate_only),
    CreateInternalTopic: lambda controller, one: controller.create_internal_topic(one.name),
    DeleteTopics: lambda controller, one: controller.delete_topics(one.topics),
    CreatePartitions: lambda controller, one: controller.create_partitions(
        one.name, one.partitions, one.assignments, one.validate_only
    ),
    AlterTopicConfigs: lambda controller, one: controller.alter_topic_configs(
        one.name, one.alterations, one.validate_only
    ),
    AlterBrokerConfigs: lambda controller, one: controller.alter_broker_configs(
        one.name, one.alterations, one.validate_only
    ),
    AlterClientMetrics: lambda controller, one: controller.alter_client_metrics(
        one.name, one.alterations, one.validate_only
    ),
    AlterGroupConfigs: lambda controller, one: controller.alter_group_configs(
        one.name, one.alterations, one.validate_only
    ),
    AlterClientQuotas: lambda controller, one: controller.alter_client_quotas(
        one.alterations, one.validate_only
    ),
    AllocateProducerIds: _allocate,
    BrokerStarted: lambda controller, one: controller.broker_started(one.node, one.endpoints),
    ElectLeaders: _elect,
    AlterReassignments: lambda controller, one: controller.alter_reassignments(
        one.moves, one.may_change_factor
    ),
    BrokerStopping: lambda controller, one: controller.broker_stopping(one.node_id),
    AlterPartitions: lambda controller, one: controller.alter_partitions(
        one.node_id, one.broker_epoch, one.changes
    ),
    DiskReported: lambda controller, one: controller.disk_reported(one.node_id, one.broker_epoch, one.works),
    AlterScramCredentials: lambda controller, one: controller.alter_scram_credentials(one.alterations),
    BrokerStopped: lambda controller, one: controller.broker_stopped(one.node_id),
    CreateAcls: lambda controller, one: controller.create_acls(one.bindings),
    DeleteAcls: lambda controller, one: controller.delete_acls(one.filters),
    UpdateFeatures: lambda controller, one: controller.update_features(one.updates, one.validate_only),
}
"""Kind of decision → the method that makes it. What is not here cannot be decided."""
