"""A tour through every API that a cluster serves: requests that have something done, in an order
that lets them; answers may fail to come.

For tests in which anything may go wrong at any place: `tour` goes on whatever is lost on the way,
`check_well` says whether a cluster serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, wraps
from itertools import count
from typing import Any
from uuid import UUID

from fairlead_kafka.base.config_broker_security import STANDARD_AUTHORIZER
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, fetch_fields, produce_fields
from tests.support.log_rig import records
from tests.support.virtual_cluster import VirtualCluster

GROUP, TRANSACTION = "tour", "tour"
TOPIC = "tour"
CONFIG = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "log.retention.check.interval.ms": 2_000,
    "log.cleaner.backoff.ms": 500,
    "replica.lag.time.max.ms": 4_000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2_000,
    "default.replication.factor": 3,
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
}


_LANES = count(1)
"""No two requests of this process share a connection: what is lost is one request."""


class Tour:
    """One tour: `ask` sends the highest version of an API that is served, on a connection of its
    own; None where no answer came."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.visited: set[ApiKey] = set()

    def ask(
        self,
        node_id: int,
        api_key: ApiKey,
        version: int | None = None,
        patience_ms: float = 8_000,
        **fields: Any,
    ) -> Message | None:
        self.visited.add(api_key)
        version = REGISTRY[api_key].high if version is None else version
        asked = self.cluster.send(node_id, api_key, version, lane=next(_LANES), **fields)
        try:
            self.cluster.host.run_until(lambda: asked.lost or asked.answer is not None, patience_ms)
        except TimeoutError:
            return None
        return asked.answer

    def everywhere(self, api_key: ApiKey, **fields: Any) -> None:
        """The same of each broker, or of those that can say."""
        for node_id in list(self.cluster.brokers):
            self.ask(node_id, api_key, **fields)

    def leader(self, topic: str = TOPIC, number: int = 0) -> int:
        partition = self.cluster.controller.image.partition(topic, number)
        return 0 if partition is None or partition.leader < 0 else partition.leader


def tour(cluster: VirtualCluster) -> Tour:
    """Every API, once at least."""
    visit = Tour(cluster)
    for part in (_quotas, _topics, _records, _group, _transaction, _looking, _moving, _rights, _ending):
        part(visit)
        cluster.host.advance(3_000)  # what was left to timers
    return visit


def _quotas(visit: Tour) -> None:
    """More than anybody uses here, of everything: so all that comes is measured."""
    granted = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    wanted = {"user": granted, "ip": ("connection_creation_rate",)}
    entries = [
        Message(
            entity=[Message(entity_type=kind, entity_name=None)],
            ops=[Message(key=key, value=1e9, remove=False) for key in keys],
        )
        for kind, keys in wanted.items()
    ]
    visit.ask(0, ApiKey.ALTER_CLIENT_QUOTAS, entries=entries, validate_only=False)
    visit.everywhere(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        components=[Message(entity_type="user", match_type=1, match=None)],
        strict=True,
    )


def _topics(visit: Tour) -> None:
    visit.everywhere(ApiKey.API_VERSIONS, client_software_name="tour", client_software_version="1")
    configs = [
        Message(name="cleanup.policy", value="compact"),
        Message(name="min.cleanable.dirty.ratio", value="0.01"),
    ]
    topics = [
        Message(name=TOPIC, num_partitions=2, replication_factor=3, assignments=[], configs=[]),
        Message(name="compacted", num_partitions=1, replication_factor=3, assignments=[], configs=configs),
        Message(name="gone", num_partitions=1, replication_factor=3, assignments=[], configs=[]),
    ]
    visit.ask(0, ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=5_000, validate_only=False)
    visit.everywhere(ApiKey.METADATA, topics=None, allow_auto_topic_creation=False)
    visit.ask(
        1,
        ApiKey.METADATA,
        topics=[Message(topic_id=UUID(int=0), name="made-by-asking")],
        allow_auto_topic_creation=True,
    )
    visit.ask(
        0,
        ApiKey.CREATE_PARTITIONS,
        topics=[Message(name=TOPIC, count=3, assignments=None)],
        timeout_ms=5_000,
        validate_only=False,
    )
    alter = [
        Message(
            resource_type=kind,
            resource_name=name,
            configs=[Message(name=key, config_operation=0, value="50000")],
        )
        for kind, name, key in (
            (2, TOPIC, "retention.ms"),
            (4, "", "log.retention.ms"),
            (16, "subscription", "interval.ms"),
            (32, GROUP, "consumer.session.timeout.ms"),
        )
    ]
    visit.ask(0, ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=alter, validate_only=False)
    whole = [
        Message(resource_type=2, resource_name="gone", configs=[Message(name="retention.ms", value="1000")])
    ]
    visit.ask(0, ApiKey.ALTER_CONFIGS, resources=whole, validate_only=False)
    described = [Message(resource_type=2, resource_name=TOPIC, configuration_keys=None)]
    visit.everywhere(
        ApiKey.DESCRIBE_CONFIGS, resources=described, include_synonyms=True, include_documentation=True
    )


def _records(visit: Tour) -> None:
    for acks in (-1, 1, 0):
        for topic, number in ((TOPIC, 0), (TOPIC, 1), ("compacted", 0), ("gone", 0)):
            written = records(b"value", b"another", keys=[b"k", b"k"])
            patience_ms = 200 if acks == 0 else 8_000
            visit.ask(
                visit.leader(topic, number),
                ApiKey.PRODUCE,
                9,
                patience_ms,
                **produce_fields({(topic, number): written}, acks),
            )
    names = {(TOPIC, 0): 0, (TOPIC, 1): 0}
    visit.everywhere(ApiKey.FETCH, version=12, **fetch_fields(names))
    visit.ask(
        visit.leader(),
        ApiKey.FETCH,
        12,
        **fetch_fields({(TOPIC, 0): 4}, max_wait_ms=500, min_bytes=10_000_000),
    )
    for session_epoch in (0, 1):
        visit.ask(
            visit.leader(),
            ApiKey.FETCH,
            12,
            **fetch_fields(names, session_epoch=session_epoch, session_id=session_epoch),
        )
    for timestamp in (-1, -2, -3, 1, 2**60):
        asked = [
            Message(partition_index=number, current_leader_epoch=-1, timestamp=timestamp) for number in (0, 1)
        ]
        visit.everywhere(
            ApiKey.LIST_OFFSETS,
            replica_id=-1,
            isolation_level=0,
            topics=[Message(name=TOPIC, partitions=asked)],
        )
    epochs = [Message(partition=0, current_leader_epoch=-1, leader_epoch=0)]
    visit.everywhere(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, replica_id=-1, topics=[Message(topic=TOPIC, partitions=epochs)]
    )
    deleted = [Message(name=TOPIC, partitions=[Message(partition_index=1, offset=2)])]
    visit.ask(visit.leader(TOPIC, 1), ApiKey.DELETE_RECORDS, topics=deleted, timeout_ms=3_000)


def _group(visit: Tour) -> None:
    visit.everywhere(ApiKey.FIND_COORDINATOR, key_type=0, coordinator_keys=[GROUP])
    here = visit.leader("__consumer_offsets")
    who = {"group_id": GROUP, "group_instance_id": None}
    join = {**who, "session_timeout_ms": 6_000, "rebalance_timeout_ms": 6_000, "protocol_type": "consumer"}
    protocols = [Message(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")]
    member_id, generation = "", -1
    for _ in range(2):
        joined = visit.ask(here, ApiKey.JOIN_GROUP, member_id=member_id, protocols=protocols, **join)
        if joined is not None:
            member_id, generation = joined.member_id, joined.generation_id
    assignments = [Message(member_id=member_id, assignment=b"")]
    synced = {"protocol_type": "consumer", "protocol_name": "range", "assignments": assignments}
    visit.ask(here, ApiKey.SYNC_GROUP, generation_id=generation, member_id=member_id, **who, **synced)
    visit.ask(here, ApiKey.HEARTBEAT, generation_id=generation, member_id=member_id, **who)
    rows = [Message(partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata="")]
    offsets = [Message(name=TOPIC, partitions=rows)]
    visit.ask(
        here,
        ApiKey.OFFSET_COMMIT,
        9,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=offsets,
        **who,
    )
    visit.ask(here, ApiKey.OFFSET_FETCH, groups=[Message(group_id=GROUP, topics=None)], require_stable=True)
    visit.everywhere(ApiKey.DESCRIBE_GROUPS, groups=[GROUP], include_authorized_operations=True)
    visit.everywhere(ApiKey.LIST_GROUPS, states_filter=[], types_filter=[])
    # One that asked for its id and never came again, and one whose session ends by itself.
    visit.ask(here, ApiKey.JOIN_GROUP, member_id="", protocols=protocols, **join)
    visit.cluster.host.advance(7_000)
    visit.ask(
        here,
        ApiKey.LEAVE_GROUP,
        group_id=GROUP,
        members=[Message(member_id=member_id, group_instance_id=None, reason="over")],
    )
    visit.ask(
        here,
        ApiKey.OFFSET_DELETE,
        group_id=GROUP,
        topics=[Message(name=TOPIC, partitions=[Message(partition_index=0)])],
    )
    visit.ask(here, ApiKey.DELETE_GROUPS, groups_names=[GROUP])
    beat = {"group_id": GROUP, "member_id": "m", "rebalance_timeout_ms": 1_000, "topic_partitions": []}
    joins = {"member_epoch": 0, "subscribed_topic_names": [TOPIC]}
    visit.ask(here, ApiKey.CONSUMER_GROUP_HEARTBEAT, **beat, **joins)
    visit.ask(here, ApiKey.CONSUMER_GROUP_HEARTBEAT, **beat, member_epoch=2)
    visit.ask(here, ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=[GROUP])
    visit.ask(here, ApiKey.CONSUMER_GROUP_HEARTBEAT, group_id=GROUP, member_id="m", member_epoch=-1)


def _transaction(visit: Tour) -> None:
    visit.everywhere(ApiKey.FIND_COORDINATOR, key_type=1, coordinator_keys=[TRANSACTION])
    here = visit.leader("__transaction_state")
    visit.ask(
        here,
        ApiKey.INIT_PRODUCER_ID,
        transactional_id=None,
        transaction_timeout_ms=5_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    for committed in (True, False, None):
        begun = visit.ask(
            here,
            ApiKey.INIT_PRODUCER_ID,
            4,
            transactional_id=TRANSACTION,
            transaction_timeout_ms=3_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        identity = (-1, -1) if begun is None else (begun.producer_id, begun.producer_epoch)
        flat = {"transactional_id": TRANSACTION, "producer_id": identity[0], "producer_epoch": identity[1]}
        added = {f"v3_and_below_{name}": value for name, value in flat.items()}
        added["v3_and_below_topics"] = [Message(name=TOPIC, partitions=[0, 1, 2])]
        visit.ask(here, ApiKey.ADD_PARTITIONS_TO_TXN, 3, **added)
        visit.ask(here, ApiKey.ADD_OFFSETS_TO_TXN, 3, group_id="another", **flat)
        for number in (0, 1, 2):
            written = batch(
                [b"t"],
                producer_id=identity[0],
                producer_epoch=identity[1],
                base_sequence=0,
                transactional=True,
            )
            fields = produce_fields({(TOPIC, number): written}) | {"transactional_id": TRANSACTION}
            visit.ask(visit.leader(TOPIC, number), ApiKey.PRODUCE, 9, **fields)
        rows = [
            Message(partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata="")
        ]
        member = {"group_id": "another", "generation_id": -1, "member_id": "", "group_instance_id": None}
        there = visit.leader("__consumer_offsets")
        visit.ask(
            there,
            ApiKey.TXN_OFFSET_COMMIT,
            3,
            topics=[Message(name=TOPIC, partitions=rows)],
            **member,
            **flat,
        )
        visit.everywhere(ApiKey.DESCRIBE_PRODUCERS, topics=[Message(name=TOPIC, partition_indexes=[0])])
        visit.everywhere(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=[TRANSACTION])
        visit.everywhere(
            ApiKey.LIST_TRANSACTIONS, state_filters=[], producer_id_filters=[], duration_filter=-1
        )
        if committed is not None:  # the last one is aborted by its time-out
            visit.ask(here, ApiKey.END_TXN, 3, committed=committed, **flat)
        visit.cluster.host.advance(6_000 if committed is None else 200)


def _looking(visit: Tour) -> None:
    visit.everywhere(ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=True, endpoint_type=1)
    visit.everywhere(ApiKey.DESCRIBE_LOG_DIRS, topics=None)
    visit.everywhere(ApiKey.DESCRIBE_TOPIC_PARTITIONS, topics=[], response_partition_limit=2, cursor=None)
    visit.everywhere(ApiKey.LIST_CONFIG_RESOURCES, resource_types=[])
    visit.everywhere(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, client_instance_id=UUID(int=7))
    told = {"client_instance_id": UUID(int=7), "subscription_id": 1, "terminating": False}
    visit.everywhere(ApiKey.PUSH_TELEMETRY, **told, compression_type=0, metrics=b"")
    log = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]
    visit.everywhere(ApiKey.DESCRIBE_QUORUM, topics=log)
    moved = [Message(path="/nowhere", topics=[Message(name=TOPIC, partitions=[0])])]
    visit.everywhere(ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=moved)
    nobody = {"owner_principal_type": None, "owner_principal_name": None}
    visit.ask(0, ApiKey.CREATE_DELEGATION_TOKEN, renewers=[], max_lifetime_ms=-1, **nobody)
    visit.ask(0, ApiKey.RENEW_DELEGATION_TOKEN, hmac=b"x", renew_period_ms=-1)
    visit.ask(0, ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=b"x", expiry_time_period_ms=-1)
    visit.ask(0, ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None)
    marker = Message(producer_id=9, producer_epoch=0, transaction_result=False, coordinator_epoch=0)
    marker.topics = [Message(name=TOPIC, partition_indexes=[0])]
    visit.ask(visit.leader(), ApiKey.WRITE_TXN_MARKERS, markers=[marker])


def _moving(visit: Tour) -> None:
    visit.ask(0, ApiKey.ELECT_LEADERS, election_type=0, topic_partitions=None, timeout_ms=5_000)
    for replicas in ([1, 2, 0], [1, 2], None):
        topics = [Message(name=TOPIC, partitions=[Message(partition_index=0, replicas=replicas)])]
        visit.ask(0, ApiKey.ALTER_PARTITION_REASSIGNMENTS, timeout_ms=5_000, topics=topics)
        visit.everywhere(ApiKey.LIST_PARTITION_REASSIGNMENTS, timeout_ms=5_000, topics=None)
        visit.cluster.host.advance(1_000)


def _rights(visit: Tour) -> None:
    acl = {
        "resource_type": 2,
        "resource_name": TOPIC,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    any_of_it = {"resource_type_filter": 2, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    visit.ask(
        0, ApiKey.CREATE_ACLS, creations=[Message(**acl, resource_pattern_type=pattern) for pattern in (3, 4)]
    )
    visit.everywhere(ApiKey.DESCRIBE_ACLS, **any_of_it)
    visit.ask(0, ApiKey.DELETE_ACLS, filters=[Message(**any_of_it)])
    password = Message(name="alice", mechanism=1, iterations=4_096, salt=b"s", salted_password=b"p")
    visit.ask(0, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=[], upsertions=[password])


def _ending(visit: Tour) -> None:
    topics = [Message(name=name, topic_id=UUID(int=0)) for name in ("gone", "made-by-asking")]
    visit.ask(0, ApiKey.DELETE_TOPICS, topics=topics, timeout_ms=5_000)
    for api_key in set(REGISTRY) - visit.visited:
        visit.ask(0, api_key)


def check_well(cluster: VirtualCluster, name: str = "afterwards") -> None:
    """AssertionError unless all brokers live and serve: a new topic, records replicated and read, a
    group, a transaction."""
    assert all(not handle.ended for handle in cluster.handles.values()), "a broker was ended"
    for broker in cluster.brokers.values():
        broker.check()
    visit = Tour(cluster)
    for step in _well(visit, name):
        for _ in range(60):
            if step():
                break
            cluster.host.advance(500)
        else:
            raise AssertionError(f"not served: {step.__doc__}")


def _well(visit: Tour, name: str) -> Iterator[Callable[[], bool]]:
    cluster = visit.cluster

    def created() -> bool:
        """a new topic"""
        if cluster.controller.image.topics.get(name) is None:
            topics = [Message(name=name, num_partitions=3, replication_factor=3, assignments=[], configs=[])]
            visit.ask(0, ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=5_000, validate_only=False)
        return name in cluster.controller.image.topics

    yield created

    def written(topic: str, number: int) -> Callable[[], bool]:
        def write() -> bool:
            answer = visit.ask(
                visit.leader(topic, number),
                ApiKey.PRODUCE,
                9,
                **produce_fields({(topic, number): batch([b"well"])}),
            )
            return answer is not None and answer.responses[0].partition_responses[0].error_code == 0

        write.__doc__ = f"a record for {topic}-{number}, replicated"
        return write

    def read(topic: str, number: int) -> Callable[[], bool]:
        def fetch() -> bool:
            answer = visit.ask(
                visit.leader(topic, number), ApiKey.FETCH, 12, **fetch_fields({(topic, number): 0})
            )
            row = None if answer is None else answer.responses[0].partitions[0]
            return row is not None and row.error_code == 0 and bool(row.records)

        fetch.__doc__ = f"what is in {topic}-{number}"
        return fetch

    for number in range(3):
        yield written(name, number)
        yield read(name, number)
    yield wraps(commits)(partial(commits, visit, name))
    yield wraps(_begun)(partial(_begun, visit, name))
    for node_id in cluster.brokers:
        yield lambda node_id=node_id: visit.ask(node_id, ApiKey.METADATA, topics=None) is not None


def commits(visit: Tour, group: str) -> bool:
    """a commit of a group"""
    rows = [Message(partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata="")]
    fields = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
    }
    visit.ask(0, ApiKey.FIND_COORDINATOR, key_type=0, coordinator_keys=[group])
    topics = [Message(name=group, partitions=rows)]
    answer = visit.ask(visit.leader("__consumer_offsets"), ApiKey.OFFSET_COMMIT, 9, topics=topics, **fields)
    return answer is not None and answer.topics[0].partitions[0].error_code == 0


def _begun(visit: Tour, name: str) -> bool:
    """a producer id for a transactional id"""
    visit.ask(0, ApiKey.FIND_COORDINATOR, key_type=1, coordinator_keys=[name])
    fields = {
        "transactional_id": name,
        "transaction_timeout_ms": 5_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    answer = visit.ask(visit.leader("__transaction_state"), ApiKey.INIT_PRODUCER_ID, 4, **fields)
    return answer is not None and answer.error_code == 0


def new_cluster() -> VirtualCluster:
    """Three brokers that a tour goes through in little time."""
    return VirtualCluster(3, dict(CONFIG), checks=False)
