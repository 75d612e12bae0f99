"""Dead letters of a read: as large as their records, or refused with the record's name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import Admin, NewTopic, TopicPartition
from fairlead_kafka.base.errors import RecordTooLarge
from fairlead_kafka.base.units import MIB
from fairlead_kafka.spark.dead_letters import dead_letters
from fairlead_kafka.spark.options import parse_read_options
from tests.support.waiting import PATIENCE_S

LARGE = b"x" * (40 * MIB)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            large = NewTopic("large", 1, configs={"max.message.bytes": str(64 * MIB)})
            admin.create_topics([large, NewTopic("small", 1)])
        yield cluster.bootstrap_servers


def send(servers: str, topic: str, *values: bytes) -> None:
    """Send letters for records of partition 3 of the topic `orders`, from offset 70 on."""
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": "orders",
        "valueformat": "json",
        "valueschema": "a INT",
        "deadlettertopic": topic,
    }
    count = len(values)
    rows = pa.record_batch(
        {
            "key": pa.array([b"key"] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": ["orders"] * count,
            "partition": pa.array([3] * count, pa.int32()),
            "offset": pa.array(range(70, 70 + count), pa.int64()),
        }
    )
    with dead_letters(parse_read_options(options)) as write:
        assert write is not None
        write(rows, {"value": dict.fromkeys(range(count), "no JSON")})


def test_a_letter_is_as_large_as_its_record(servers: str) -> None:
    send(servers, "large", b"y", LARGE)
    partition = TopicPartition("large", 0)
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as consumer:
        found = []
        for table in consumer.read_range(partition, 0, 2, columns=["value"], timeout_s=PATIENCE_S):
            found += [len(value) for value in table["value"].to_pylist()]
    assert found == [1, len(LARGE)]


@pytest.mark.parametrize(("topic", "mib"), [("small", 2), ("large", 64)])
def test_a_letter_that_is_too_large_names_its_record_and_what_to_raise(
    servers: str, topic: str, mib: int
) -> None:
    with pytest.raises(RecordTooLarge) as raised:
        send(servers, topic, b"y", b"x" * (mib * MIB), b"y")
    assert (
        f"the record of topic orders partition 3 offset 71, with {mib * MIB + 3} bytes, is too large for the "
        f"topic {topic}: raise max.message.bytes of that topic"
    ) in str(raised.value)
