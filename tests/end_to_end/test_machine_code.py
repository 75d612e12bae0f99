"""Every public path that touches records reaches machine code, from the first one on: each is run
on 5 MB, and kernels are asked."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka import AsyncConsumer, AsyncProducer, Consumer, Producer, TopicPartition
from fairlead_kafka.base.kernel import KERNELS
from fairlead_kafka.testing import Cluster

COUNT, VALUE = 50_000, b"v" * 100
PARTITION = TopicPartition("records", 0)
WRITES, READS, HEADERS = (
    {"measure_records", "encode_batches"},
    {"scan_batches", "decode_records"},
    {"scan_batches"},
)
RECORDS = READS | {"list_items"}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Any]]:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("records", 1)
        client = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(client) as producer:  # what is read is there, whichever tests run
            send_table(producer)
        yield client


@pytest.fixture
def called() -> Iterator[Counter[str]]:
    """Kernels that ran on threads of clients, by name. What a reference implementation would do
    fails."""
    counts: Counter[str] = Counter()

    def counting(name: str, machine_code: Callable[..., Any]) -> Callable[..., Any]:
        def body(*arguments: Any) -> Any:
            if threading.current_thread().name != "fairlead-cluster":
                counts[name] += 1
            return machine_code(*arguments)

        return body

    for kernel in KERNELS:
        assert kernel.machine_code is not None
        assert kernel._body is kernel.machine_code
        kernel.serve(counting(kernel.__name__, kernel.machine_code))
    yield counts
    for kernel in KERNELS:
        kernel.serve(kernel.machine_code)


def send(producer: Producer) -> None:
    for _ in range(COUNT):
        producer.send("records", VALUE)
    producer.flush()


def send_table(producer: Producer) -> None:
    producer.send_table("records", pa.table({"value": [VALUE] * COUNT})).result()


async def send_async(producer: AsyncProducer) -> None:
    for _ in range(COUNT):
        await producer.send("records", VALUE)
    await producer.flush()


async def send_table_async(producer: AsyncProducer) -> None:
    await (await producer.send_table("records", pa.table({"value": [VALUE] * COUNT})))


def poll(consumer: Consumer) -> int:
    return sum(len(consumer.poll(5)) for _ in range(COUNT // 500))


def poll_table(consumer: Consumer) -> int:
    return consumer.poll_table(5).num_rows


def iterate(consumer: Consumer) -> int:
    return sum(1 for _ in itertools.islice(consumer, COUNT))


def read_range(consumer: Consumer) -> int:
    return sum(table.num_rows for table in consumer.read_range(PARTITION, 0, COUNT))


def read_batches(consumer: Consumer) -> int:
    return int(sum(sum(table["records"].to_pylist()) for table in consumer.read_batches(PARTITION, 0, COUNT)))


async def poll_async(consumer: AsyncConsumer) -> int:
    return sum([len(await consumer.poll(5)) for _ in range(COUNT // 500)])


async def poll_table_async(consumer: AsyncConsumer) -> int:
    return (await consumer.poll_table(5)).num_rows


async def iterate_async(consumer: AsyncConsumer) -> int:
    count = 0
    async for _ in consumer:
        count += 1
        if count == COUNT:
            break
    return count


async def read_range_async(consumer: AsyncConsumer) -> int:
    return sum([table.num_rows async for table in consumer.read_range(PARTITION, 0, COUNT)])


async def read_batches_async(consumer: AsyncConsumer) -> int:
    return int(
        sum([sum(table["records"].to_pylist()) async for table in consumer.read_batches(PARTITION, 0, COUNT)])
    )


PATHS: dict[tuple[type, str], tuple[Callable[[Any], Any], set[str]]] = {
    (Producer, "send"): (send, WRITES),
    (Producer, "send_table"): (send_table, WRITES),
    (AsyncProducer, "send"): (send_async, WRITES),
    (AsyncProducer, "send_table"): (send_table_async, WRITES),
    (Consumer, "poll"): (poll, RECORDS),
    (Consumer, "poll_table"): (poll_table, READS),
    (Consumer, "__iter__"): (iterate, RECORDS),
    (Consumer, "read_range"): (read_range, READS),
    (Consumer, "read_batches"): (read_batches, HEADERS),
    (AsyncConsumer, "poll"): (poll_async, RECORDS),
    (AsyncConsumer, "poll_table"): (poll_table_async, READS),
    (AsyncConsumer, "__aiter__"): (iterate_async, RECORDS),
    (AsyncConsumer, "read_range"): (read_range_async, READS),
    (AsyncConsumer, "read_batches"): (read_batches_async, HEADERS),
}
"""Each public method through which records pass, and the kernels that it takes."""
WITHOUT_RECORDS = {
    "abort_transaction", "assign", "assignment", "beginning_offsets", "begin_transaction", "client_id",
    "client_instance_id", "close", "commit",
    "commit_transaction", "committed", "connect", "end_offsets", "flush", "group_id", "group_metadata",
    "init_transactions", "list_topics", "metrics",
    "offsets_for_times", "partitions_for", "pause", "paused", "position", "prepare_transaction", "resume",
    "seek", "seek_to_beginning",
    "seek_to_end", "send_offsets_to_transaction", "subscribe", "subscription", "transaction", "unsubscribe",
}  # fmt: skip


@pytest.mark.parametrize(
    "client", [Producer, AsyncProducer, Consumer, AsyncConsumer], ids=lambda client: client.__name__
)
def test_every_public_method_is_known(client: type) -> None:
    public = {name for name in dir(client) if not name.startswith("_")} | (
        {"__iter__", "__aiter__"} & set(dir(client))
    )
    assert public - WITHOUT_RECORDS == {name for owner, name in PATHS if owner is client}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path[0].__name__}.{path[1]}")
def test_it_reaches_machine_code(
    servers: dict[str, Any], called: Counter[str], path: tuple[type, str]
) -> None:
    client, _ = path
    program, kernels = PATHS[path]
    if client is Producer:
        with Producer(servers) as producer:
            program(producer)
    elif client is AsyncProducer:
        asyncio.run(_with(AsyncProducer(servers), program))
    elif client is Consumer:
        with Consumer(servers) as consumer:
            consumer.assign([PARTITION])
            consumer.seek_to_beginning()
            assert program(consumer) > 0
    else:
        assert asyncio.run(_with(AsyncConsumer(servers), program)) > 0
    assert kernels <= set(called), called
    if kernels is RECORDS:
        assert called["list_items"] < COUNT / 10, "by hundreds, not one by one"


async def _with(client: Any, program: Callable[[Any], Any]) -> Any:
    async with client:
        if isinstance(client, AsyncConsumer):
            await client.assign([PARTITION])
            await client.seek_to_beginning()
        return await program(client)
