"""Where the cases are asked: this cluster, driven by hand, and Apache Kafka; and what of an answer
is compared."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from uuid import UUID

from fairlead_kafka.base.acls import AclBinding
from fairlead_kafka.base.principal import Principal
from fairlead_kafka.lab.apache_kafka import ApacheKafka
from fairlead_kafka.wire import ApiKey, Message, decode_response, encode_request
from tests.support.broker_driver import Client, Driver
from tests.support.rights import (
    ALICE,
    GROUP,
    NO_ID,
    OPEN,
    SECRET,
    SPARE,
    TRANSACTION,
    Case,
    acls,
    binding,
    cluster,
    groups,
    shares,
    topics,
    transactions,
)

CASES: tuple[Case, ...] = (
    *topics.METADATA,
    *topics.RECORDS,
    *groups.GROUPS,
    *shares.SHARES,
    *transactions.TRANSACTIONS,
    *cluster.CLUSTER,
    *acls.ACLS,
)
CONFIG: dict[str, Any] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 2,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}
_PASSWORD = "wonderland"
APACHE_KAFKA: dict[str, Any] = {
    "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{_PASSWORD}";'
    ),
}
"""What Apache Kafka is started with beside CONFIG and a listener SASL (SASL_PLAINTEXT)."""
TRIES = 1_000
_TIMEOUT_S = 60


class World(Protocol):
    """Whom the cases are asked."""

    def admin(self, api: ApiKey, version: int, **fields: Any) -> Message:
        """Ask as a super user."""

    def alice(self, api: ApiKey, version: int, **fields: Any) -> Message:
        """Ask as alice."""

    def pause(self) -> None:
        """Let a moment pass."""


class Ours:
    """A broker of this cluster, driven by hand."""

    def __init__(self, **config: Any) -> None:
        self.driver = Driver(CONFIG | {key.replace("_", "."): value for key, value in config.items()})
        self._admin = self.driver.connect()
        self.client = self.driver.connect("1.2.3.4")
        """Alice's."""
        self.driver.broker.clients.sessions[self.client.connection].principal = Principal("User", "alice")

    def admin(self, api: ApiKey, version: int, **fields: Any) -> Message:
        return self._ask(self._admin, api, version, fields)

    def alice(self, api: ApiKey, version: int, **fields: Any) -> Message:
        return self._ask(self.client, api, version, fields)

    def _ask(self, client: Client, api: ApiKey, version: int, fields: dict[str, Any]) -> Message:
        before = len(client.arrived)
        client.send(api, version, **fields)
        for _ in range(TRIES):
            if len(client.arrived) > before:
                return client.arrived[-1]
            self.pause()
        raise AssertionError(f"{api.name} is not answered")

    def pause(self) -> None:
        self.driver.advance(50)


class Theirs:
    """An Apache Kafka, over two connections."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self._admin = _connect(kafka.bootstrap_servers)
        self._alice = _connect(kafka.servers("SASL"))
        for api, version, fields in (
            (ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}),
            (ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": f"\0alice\0{_PASSWORD}".encode()}),
        ):
            assert self.alice(api, version, **fields).error_code == 0

    def admin(self, api: ApiKey, version: int, **fields: Any) -> Message:
        return _ask(self._admin, api, version, fields)

    def alice(self, api: ApiKey, version: int, **fields: Any) -> Message:
        return _ask(self._alice, api, version, fields)

    def pause(self) -> None:
        select.select([], [], [], 0.02)

    def close(self) -> None:
        self._admin.close()
        self._alice.close()


def _connect(server: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(server.rpartition(":")[2])), timeout=_TIMEOUT_S)


def _ask(connection: socket.socket, api: ApiKey, version: int, fields: dict[str, Any]) -> Message:
    connection.sendall(b"".join(encode_request(api, version, 1, "rights", Message(**fields))))
    (size_bytes,) = struct.unpack(">i", _exactly(connection, 4))
    return decode_response(api, version, memoryview(_exactly(connection, size_bytes)))


def _exactly(connection: socket.socket, size_bytes: int) -> bytes:
    data = bytearray()
    while len(data) < size_bytes:
        piece = connection.recv(size_bytes - len(data))
        assert piece, "the connection was closed"
        data += piece
    return bytes(data)


def _until(world: World, so: Callable[[Message], bool], api: ApiKey, version: int, **fields: Any) -> Message:
    """Ask until it is so."""
    for _ in range(TRIES):
        answer = world.admin(api, version, **fields)
        if so(answer):
            return answer
        world.pause()
    raise AssertionError(f"it never came to be: {answer}")


def prepare(world: World) -> dict[str, UUID]:
    """Make what the cases are about; the ids of its topics."""
    names = (OPEN, SECRET, SPARE)
    new = [
        Message(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        for name in names
    ]
    created = world.admin(ApiKey.CREATE_TOPICS, 7, topics=new, timeout_ms=30_000, validate_only=False)
    _until(
        world,
        lambda answer: (
            not any(one.error_code or any(row.error_code for row in one.partitions) for one in answer.topics)
        ),
        ApiKey.METADATA,
        12,
        topics=[Message(name=name, topic_id=NO_ID) for name in names],
        allow_auto_topic_creation=False,
    )
    for key_type, key in ((0, GROUP), (1, TRANSACTION)):
        _until(
            world,
            lambda answer: not answer.error_code,
            ApiKey.FIND_COORDINATOR,
            3,
            key_type=key_type,
            key=key,
        )
    rows = [Message(partition_index=0, committed_offset=3, committed_metadata="")]
    _until(
        world,
        lambda answer: not any(row.error_code for one in answer.topics for row in one.partitions),
        ApiKey.OFFSET_COMMIT,
        9,
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[Message(name=name, partitions=rows) for name in (OPEN, SECRET)],
    )
    _begin_transaction(world)
    return {one.name: one.topic_id for one in created.topics}


def _begin_transaction(world: World) -> None:
    producer = _until(
        world,
        lambda answer: not answer.error_code,
        ApiKey.INIT_PRODUCER_ID,
        4,
        transactional_id=TRANSACTION,
        transaction_timeout_ms=900_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    _until(
        world,
        lambda answer: (
            not any(
                row.partition_error_code
                for one in answer.results_by_topic_v3_and_below
                for row in one.results_by_partition
            )
        ),
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[Message(name=name, partitions=[0]) for name in (OPEN, SECRET)],
    )


_ALL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": ALICE,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def creation(acl: AclBinding) -> Message:
    """An ACL as CreateAcls brings it."""
    return Message(
        resource_type=int(acl.resource_type),
        resource_name=acl.resource_name,
        resource_pattern_type=int(acl.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=int(acl.operation),
        permission_type=int(acl.permission),
    )


def give(world: World, *rights: str) -> None:
    """Alice has these rights, and no other; returns when the broker knows that."""
    wanted = {binding(right) for right in rights}
    world.admin(ApiKey.DELETE_ACLS, 3, filters=[Message(**_ALL)])
    created = world.admin(ApiKey.CREATE_ACLS, 3, creations=[creation(acl) for acl in wanted])
    assert not any(one.error_code for one in created.results)

    def known(answer: Message) -> bool:
        found = {
            (
                of.resource_type,
                of.resource_name,
                of.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for of in answer.resources
            for acl in of.acls
        }
        return found == {tuple(acl) for acl in wanted}

    _until(world, known, ApiKey.DESCRIBE_ACLS, 3, **_ALL)


def answers(world: World) -> dict[str, Any]:
    """Every case's answer, by its name, as far as it is compared."""
    ids, found = prepare(world), {}
    for case in CASES:
        give(world, *case.rights)
        found[case.name] = seen(world.alice(case.api_key, case.version, **case.fields(ids)), ids)
    return found


_LEFT_OUT = frozenset(
    {
        "error_message",
        "throttle_time_ms",
        "host",
        "port",
        "node_id",
        "brokers",
        "cluster_id",
        "controller_id",
        "log_append_time_ms",
    }
    | {
        "producer_id",
        "producer_epoch",
        "records",
        "high_watermark",
        "last_stable_offset",
        "offset",
        "low_watermark",
        "configs",
    }
    | {
        "log_start_offset",
        "base_offset",
        "leader_epoch",
        "end_offset",
        "session_id",
        "current_leader",
        "node_endpoints",
    }
    | {
        "active_producers",
        "transaction_start_time_ms",
        "leader_id",
        "replica_nodes",
        "isr_nodes",
        "diverging_epoch",
    }
)
"""What no right decides, or is each system's own."""


def seen(answer: Any, ids: Mapping[str, UUID]) -> Any:
    """An answer as plain values that two systems can agree on: ids by the names of their topics,
    lists in one order."""
    if isinstance(answer, Message):
        return {
            name: seen(value, ids) for name, value in sorted(vars(answer).items()) if name not in _LEFT_OUT
        }
    if isinstance(answer, list | tuple):
        return sorted((seen(one, ids) for one in answer), key=repr)
    if isinstance(answer, UUID):
        return next(
            (f"of {name}" for name, topic_id in ids.items() if topic_id == answer), "of no topic of the world"
        )
    return bytes(answer).hex() if isinstance(answer, bytes | memoryview | bytearray) else answer
