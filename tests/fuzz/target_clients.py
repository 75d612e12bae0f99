"""The clients against a liar: every call ends in time, with a result or one of our errors; every
record sent is settled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fairlead_kafka import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
    ClientQuotaEntity,
    ConfigChange,
    ConfigResource,
    NewPartitions,
    NewTopic,
    Producer,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.ids import TopicPartition
from tests.fuzz.client_apis import CLIENT_CONFIG, Fault, World, lying_world
from tests.fuzz.tape import Tape
from tests.support.checked_clients import CheckedConsumer

CALLS_MAX = 30
READER_CONFIG = {**CLIENT_CONFIG, "default.api.timeout.ms": 4000}
DELIVERY_S = 3.0
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]
PRODUCER = {
    "delivery.timeout.ms": 3000,
    "linger.ms": 0,
    "max.block.ms": 1000,
    "buffer.memory": 100_000,
    "batch.size": 400,
}
ENTRY = AclBinding(
    AclResourceType.TOPIC, "t", AclPatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermission.ALLOW
)
PASSWORDS = [
    UserScramCredentialUpsertion(
        "a", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret", b"salt"
    ),
    UserScramCredentialUpsertion(
        "a", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), "secret", b"salt"
    ),
    UserScramCredentialDeletion("b", ScramMechanism.SCRAM_SHA_256),
]
QUOTA_OF = ClientQuotaEntity({"user": "a", "client-id": None})


def producer(tape: Tape) -> int:
    """Sends, and waits for what becomes of it."""
    with lying_world(tape) as world:
        more = tape.pick(
            (
                {},
                {"enable.idempotence": False},
                {"partitioner.class": "late"},
                {"compression.type": "lz4"},
                {"acks": "1", "enable.idempotence": False},
            )
        )
        client = Producer({**CLIENT_CONFIG, **PRODUCER, **more}, opener=world.opener)
        handles: list[Any] = []
        for _ in range(CALLS_MAX):
            if tape.ended:
                break
            how = tape.below(8)
            if how == 7:
                world.call("partitions_for", lambda: client.partitions_for("t", 2.0), 2.0)
            elif how == 6:
                world.host.advance(tape.pick((1, 20, 300, 1500)))
            elif how == 5:
                world.call("flush", lambda: client.flush(1.0), 1.0)
            else:
                topic = "t" if not tape.chance(20) else "unknown"
                where = tape.pick((None, None, 0, 1, 7))
                handle = world.call(
                    "send",
                    lambda topic=topic, where=where: client.send(
                        topic, b"v" * tape.below(300), partition=where
                    ),
                    1.0,
                )
                if handle is not None:
                    handles.append(handle)
        world.host.advance((DELIVERY_S + 0.5) * 1000)
        world.check()
        _settled(handles)
        world.call("close", lambda: client.close(1.0), 2.0)
        found = client.metrics()["producer-metrics"]
        free_bytes, total_bytes = found["buffer-available-bytes"], found["buffer-total-bytes"]
        if free_bytes != total_bytes:
            raise Fault("memory of completed records is not given back", f"{free_bytes} of {total_bytes}")
        return _made(world)


def transactions(tape: Tape) -> int:
    """Transactions, ended as it comes."""
    with lying_world(tape) as world:
        client = Producer(
            {**CLIENT_CONFIG, **PRODUCER, "transactional.id": "tx", "transaction.timeout.ms": 2000},
            opener=world.opener,
        )
        handles: list[Any] = []
        world.call("init_transactions", lambda: client.init_transactions(3.0), 3.0)
        calls: list[tuple[str, Callable[[], Any], float]] = [
            ("begin_transaction", client.begin_transaction, 0.0),
            ("send", lambda: handles.append(client.send("t", b"v", partition=tape.below(2))), 1.0),
            ("send", lambda: handles.append(client.send("t", b"v")), 1.0),
            ("commit_transaction", lambda: client.commit_transaction(4.0), 4.0),
            ("abort_transaction", lambda: client.abort_transaction(4.0), 4.0),
            (
                "send_offsets_to_transaction",
                lambda: client.send_offsets_to_transaction({PARTITIONS[0]: 3}, "g"),
                4.0,
            ),
            ("flush", lambda: client.flush(1.0), 1.0),
            ("init_transactions", lambda: client.init_transactions(3.0), 3.0),
            ("prepare_transaction", lambda: client.prepare_transaction(3.0), 3.0),
        ]
        for nth in range(CALLS_MAX):
            if tape.ended:
                break
            what, function, timeout_s = calls[nth % 5 if tape.chance(128) else tape.below(len(calls))]
            world.call(what, function, timeout_s)
        world.host.advance((DELIVERY_S + 0.5) * 1000)
        world.check()
        _settled(handles)
        world.call("close", lambda: client.close(2.0), 4.0)
        return _made(world)


def consumer(tape: Tape) -> int:
    """Reads partitions assigned by hand, in every way there is."""
    with lying_world(tape) as world, _Returns() as returns:
        isolation = tape.pick(("read_uncommitted", "read_committed"))
        reset = tape.pick(("earliest", "latest", "none"))
        client = CheckedConsumer(
            {
                **READER_CONFIG,
                "isolation.level": isolation,
                "auto.offset.reset": reset,
                "fetch.max.wait.ms": 100,
            },
            opener=world.opener,
        )
        reader = _Reader(world, client, returns)
        calls: list[tuple[str, Callable[[], Any], float | None]] = [
            ("poll", reader.poll, 1.0),
            ("poll", reader.poll, 1.0),
            ("poll_table", lambda: reader.restart(client.poll_table(1.0)), 1.0),
            ("position", lambda: client.position(PARTITIONS[tape.below(2)], 2.0), 2.0),
            (
                "seek",
                lambda: reader.restart(client.seek(PARTITIONS[tape.below(2)], tape.pick((0, 3, 100)))),
                1.0,
            ),
            ("seek_to_end", lambda: reader.restart(client.seek_to_end()), 1.0),
            ("seek_to_beginning", lambda: reader.restart(client.seek_to_beginning()), 1.0),
            ("beginning_offsets", lambda: client.beginning_offsets(PARTITIONS, 2.0), 2.0),
            ("end_offsets", lambda: client.end_offsets(PARTITIONS, 2.0), 2.0),
            ("offsets_for_times", lambda: client.offsets_for_times({PARTITIONS[0]: 5}, 2.0), 2.0),
            ("partitions_for", lambda: client.partitions_for("t", 2.0), 2.0),
            ("list_topics", lambda: client.list_topics(2.0), 2.0),
            ("read_range", lambda: _first(client.read_range(PARTITIONS[0], 0, 5, timeout_s=2.0)), 4.0),
            ("read_batches", lambda: _first(client.read_batches(PARTITIONS[0], 0, 5, timeout_s=2.0)), 4.0),
            ("pause", lambda: client.pause(PARTITIONS[:1]), 1.0),
            ("resume", lambda: client.resume(PARTITIONS[:1]), 1.0),
            ("assign", lambda: reader.restart(client.assign(PARTITIONS[: tape.below(3)])), 1.0),
        ]
        world.call("assign", lambda: client.assign(PARTITIONS), 1.0)
        for _ in range(CALLS_MAX):
            if tape.ended:
                break
            what, function, timeout_s = tape.pick(calls)
            if what.startswith("read_"):
                reader.restart()
            world.call(what, function, timeout_s)
        world.call("close", client.close, 5.0)
        return _made(world)


def group(tape: Tape) -> int:
    """Members of a group that join, poll, commit and leave."""
    with lying_world(tape) as world:
        more = tape.pick(
            (
                {},
                {"group.instance.id": "i"},
                {"partition.assignment.strategy": "cooperative-sticky"},
                {"enable.auto.commit": False},
            )
        )
        config = {
            **READER_CONFIG,
            "group.id": "g",
            "session.timeout.ms": 1500,
            "heartbeat.interval.ms": 300,
            "auto.offset.reset": "earliest",
        }
        members = [
            CheckedConsumer({**config, **(more if nth == 0 else {})}, opener=world.opener)
            for nth in range(1 + tape.below(2))
        ]
        for member in members:
            world.call("subscribe", lambda member=member: member.subscribe(["t"]), 1.0)
        for _ in range(CALLS_MAX):
            if tape.ended:
                break
            member = members[tape.below(len(members))]
            calls: list[tuple[str, Callable[[], Any], float | None]] = [
                ("poll", lambda member=member: member.poll(1.0), 5.0),  # type: ignore[misc]
                ("poll", lambda member=member: member.poll(1.0), 5.0),  # type: ignore[misc]
                ("commit", lambda member=member: member.commit(timeout_s=2.0), 2.0),  # type: ignore[misc]
                (
                    "commit of one",
                    lambda member=member: member.commit({PARTITIONS[0]: 2}, timeout_s=2.0),
                    2.0,
                ),  # type: ignore[misc]
                ("committed", lambda member=member: member.committed(PARTITIONS, timeout_s=2.0), 2.0),  # type: ignore[misc]
                ("group_metadata", member.group_metadata, 4.0),
                ("unsubscribe", member.unsubscribe, 5.0),
                ("subscribe", lambda member=member: member.subscribe(["t"]), 5.0),  # type: ignore[misc]
            ]
            what, function, timeout_s = tape.pick(calls)
            world.call(what, function, timeout_s)
        for member in members:
            world.call("close of a member", member.close, 10.0)
        return _made(world)


def _admin_calls(client: Admin) -> list[tuple[str, Callable[[], Any]]]:
    return [
        (
            "create_topics",
            lambda: client.create_topics([NewTopic("n", 1), NewTopic("m", 2)], timeout_s=2.0),
        ),
        ("delete_topics", lambda: client.delete_topics(["n", "m"], timeout_s=2.0)),
        ("create_partitions", lambda: client.create_partitions({"n": NewPartitions(3)}, timeout_s=2.0)),
        ("list_topics", lambda: client.list_topics(timeout_s=2.0)),
        ("describe_topics", lambda: client.describe_topics(["t", "n"], timeout_s=2.0)),
        ("describe_cluster", lambda: client.describe_cluster(timeout_s=2.0)),
        (
            "describe_configs",
            lambda: client.describe_configs(
                [ConfigResource.topic("t"), ConfigResource.broker(0)], timeout_s=2.0
            ),
        ),
        (
            "alter_configs",
            lambda: client.alter_configs(
                {ConfigResource.topic("t"): [ConfigChange.set("retention.ms", "5000")]}, timeout_s=2.0
            ),
        ),
        ("list_offsets", lambda: client.list_offsets(dict.fromkeys(PARTITIONS, -1), timeout_s=2.0)),
        ("delete_records", lambda: client.delete_records({PARTITIONS[0]: 1}, timeout_s=2.0)),
        ("describe_log_dirs", lambda: client.describe_log_dirs(timeout_s=2.0)),
        ("list_groups", lambda: client.list_groups(timeout_s=2.0)),
        ("describe_groups", lambda: client.describe_groups(["g"], timeout_s=2.0)),
        ("delete_groups", lambda: client.delete_groups(["g"], timeout_s=2.0)),
        ("list_group_offsets", lambda: client.list_group_offsets("g", timeout_s=2.0)),
        (
            "alter_group_offsets",
            lambda: client.alter_group_offsets("g", {PARTITIONS[0]: 2}, timeout_s=2.0),
        ),
        ("delete_group_offsets", lambda: client.delete_group_offsets("g", PARTITIONS[:1], timeout_s=2.0)),
        ("list_transactions", lambda: client.list_transactions(timeout_s=2.0)),
        ("describe_transactions", lambda: client.describe_transactions(["tx"], timeout_s=2.0)),
        (
            "create_acls",
            lambda: client.create_acls([ENTRY, ENTRY._replace(principal="User:b")], timeout_s=2.0),
        ),
        ("describe_acls", lambda: client.describe_acls(timeout_s=2.0)),
        (
            "delete_acls",
            lambda: client.delete_acls([AclFilter(), AclFilter(principal="User:b")], timeout_s=2.0),
        ),
        (
            "describe_user_scram_credentials",
            lambda: client.describe_user_scram_credentials(timeout_s=2.0),
        ),
        (
            "describe_user_scram_credentials",
            lambda: client.describe_user_scram_credentials(["a", "b"], timeout_s=2.0),
        ),
        (
            "alter_user_scram_credentials",
            lambda: client.alter_user_scram_credentials(PASSWORDS, timeout_s=2.0),
        ),
        ("describe_client_quotas", lambda: client.describe_client_quotas(timeout_s=2.0)),
        (
            "alter_client_quotas",
            lambda: client.alter_client_quotas({QUOTA_OF: {"producer_byte_rate": 5.0}}, timeout_s=2.0),
        ),
        (
            "describe_topics",
            lambda: client.describe_topics(["t"], 2.0, include_authorized_operations=True),
        ),
        ("describe_cluster", lambda: client.describe_cluster(2.0, include_authorized_operations=True)),
    ]


def admin(tape: Tape) -> int:
    """Every call of the admin client."""
    with lying_world(tape) as world:
        client = Admin(READER_CONFIG, opener=world.opener)
        calls = _admin_calls(client)
        for _ in range(CALLS_MAX):
            if tape.ended:
                break
            what, function = tape.pick(calls)
            world.call(what, function, 2.0)
        world.call("close", client.close, 2.0)
        return _made(world)


class _Returns(logging.Handler):
    """Counts how often a consumer said that it goes on elsewhere, since its log was cut or its
    offset is not there, or its topic is a new one."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "going on from" in record.getMessage()

    def __enter__(self) -> _Returns:
        self._logger = logging.getLogger("fairlead_kafka.consumer")
        self._level = self._logger.level
        self._logger.addHandler(self)
        self._logger.setLevel(logging.WARNING)  # those above it let errors through alone
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)


class _Reader:
    """Polls, and sees to it that offsets rise: a record is handed over once, in order, until the
    caller goes elsewhere, or the consumer says that it does."""

    def __init__(self, world: World, client: CheckedConsumer, returns: _Returns) -> None:
        self.world, self.client = world, client
        self.last: dict[TopicPartition, int] = {}
        self._returns, self._seen = returns, 0

    def restart(self, result: Any = None) -> Any:
        self.last.clear()
        return result

    def poll(self) -> None:
        try:
            records = self.client.poll(1.0)
        except FairleadError:
            self.restart()  # an offset that is out of range, and reset
            raise
        if self._returns.count > self._seen:
            self._seen = self._returns.count
            self.restart()
        for record in records:
            of = TopicPartition(record.topic, record.partition)
            if record.offset <= self.last.get(of, -1):
                raise Fault(
                    "poll hands a record over again", f"{of} offset {record.offset} after {self.last[of]}"
                )
            self.last[of] = record.offset


def _settled(handles: list[Any]) -> None:
    for handle in handles:
        if not handle.done():
            raise Fault("a record is neither delivered nor failed after delivery.timeout.ms")
        with suppress(FairleadError):
            handle.result(0)


def _first(tables: Any) -> Any:
    return next(iter(tables), None)


def _made(world: World) -> int:
    return max(1, world.liar.answers)
