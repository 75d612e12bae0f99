"""The limits of records, batches and memory, each tried, with the error that the caller gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.json_types import Json
from fairlead_kafka.client import Admin, NewTopic, Producer
from fairlead_kafka.client.handles import Ack
from fairlead_kafka.lab.experiment import Row
from fairlead_kafka.lab.held import held
from fairlead_kafka.lab.lines import values_of_size
from fairlead_kafka.testing import Cluster

TIMEOUT_S = 30.0
KIB = 1 << 10
GOT_MAX_LETTERS = 200


@dataclass(frozen=True)
class Limit:
    """`records` records of `size` bytes under `config`, sent to a topic with configs of its own;
    `broker_up` False: the broker is dead.
    """

    name: str
    setting: str
    records: int
    size: int
    config: Mapping[str, Json] = field(default_factory=dict)
    topic: Mapping[str, str] = field(default_factory=dict)
    broker_up: bool = True


LIMITS = (
    Limit("a record beyond max.request.size", "max.request.size=65536", 1, 100 * KIB,
    {"max.request.size": 64 * KIB}),
    Limit("a record beyond max.message.bytes of the topic", "max.message.bytes=65536", 1, 100 * KIB, {},
    {"max.message.bytes": "65536"}),
    Limit(
        "the same record, compressed below it", "max.message.bytes=65536, compression.type=zstd", 1,
        100 * KIB,
        {"compression.type": "zstd"}, {"max.message.bytes": "65536"},
    ),
    Limit(
        "a record beyond max.request.size that would compress", "max.request.size=65536, "
                                                                "compression.type=zstd", 1, 100 * KIB,
        {"max.request.size": 64 * KIB, "compression.type": "zstd"},
    ),
    Limit(
        "a batch beyond max.message.bytes of the topic", "batch.size=262144, max.message.bytes=65536", 200,
        KIB,
        {"batch.size": 256 * KIB, "linger.ms": 1_000}, {"max.message.bytes": "65536"},
    ),
    Limit(
        "buffer.memory used up, brokers there", "buffer.memory=65536, batch.size=16384", 500, KIB,
        {"buffer.memory": 64 * KIB, "linger.ms": 10_000},
    ),
    Limit(
        "buffer.memory used up, no broker there", "buffer.memory=65536, max.block.ms=200", 100, KIB,
        {"buffer.memory": 64 * KIB, "max.block.ms": 200}, broker_up=False,
    ),
)  # fmt: skip


def limit_row(bootstrap_servers: str, topic: str, limit: Limit) -> Row:
    """{limit, setting, records, acked, batches, got}: `got` is the first error by name,
    "acknowledged", or the counts of both."""
    if limit.broker_up:
        with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
            admin.create_topics([NewTopic(topic, partitions=1, configs=limit.topic)])
        acked, errors = _try(bootstrap_servers, topic, limit)
        batches = sum(one.batches for one in held(bootstrap_servers, topic))
    else:
        with Cluster(brokers=1) as own:  # one that may be killed, whatever the target is
            with Admin({"bootstrap.servers": own.bootstrap_servers}) as admin:
                admin.create_topics([NewTopic(topic, partitions=1)])
            acked, errors = _try(own.bootstrap_servers, topic, limit, own.broker(0).kill)
        batches = 0
    return {
        "limit": limit.name,
        "setting": limit.setting,
        "records": limit.records,
        "acked": acked,
        "batches": batches,
        "got": reported_by(limit, acked, batches, errors),
    }


def reported_by(limit: Limit, acked: int, batches: int, errors: list[Exception]) -> str:
    """The result of the sends in words: what was acknowledged, and the first error."""
    parts = []
    if acked:
        parts.append("acknowledged" if not errors else f"{acked} acknowledged")
        if batches > 1:
            parts[0] += f", in {batches} batches"
    if errors:
        text = str(errors[0])
        text = text if len(text) <= GOT_MAX_LETTERS else text[:GOT_MAX_LETTERS] + "…"
        parts.append(
            f"{type(errors[0]).__name__}: {text}"
            if not acked
            else f"{len(errors)} × {type(errors[0]).__name__}: {text}"
        )
    left = limit.records - acked - len(errors)
    if left and acked:
        parts.append(f"{left} not submitted")
    return "; ".join(parts)


def _try(
    bootstrap_servers: str, topic: str, limit: Limit, kill: Callable[[], None] | None = None
) -> tuple[int, list[Exception]]:
    """Number of acknowledged records, and the errors of the others; the first refusal of `send`
    ends it. `kill` kills the broker first.
    """
    value = values_of_size(limit.size, 1)[0]
    errors: list[Exception] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, **limit.config})
    try:
        if kill is not None:
            producer.partitions_for(topic, TIMEOUT_S)  # max.block.ms may be too short for this
            kill()
        handles: list[Ack] = []
        try:
            handles.extend(producer.send(topic, value) for _ in range(limit.records))
        except FairleadError as error:
            errors.append(error)
        if not limit.broker_up:
            return 0, errors
        acked = 0
        producer.flush(TIMEOUT_S)
        for handle in handles:
            try:
                handle.result(TIMEOUT_S)
                acked += 1
            except FairleadError as error:
                errors.append(error)
        return acked, errors
    finally:
        producer.close(TIMEOUT_S if limit.broker_up else 0)
