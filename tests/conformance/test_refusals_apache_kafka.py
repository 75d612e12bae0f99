"""What Apache Kafka refuses reaches each record of ours as Kafka means it; and its words for what
is too large."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import fairlead_kafka
from tests.support.waiting import PATIENCE_S


def test_records_without_key_are_refused_by_a_compacted_topic_and_the_others_may_be_sent_again(
    apache_kafka: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(apache_kafka, cleanup_policy="compact")
    keys = pa.array([b"a", None, b"b", None, b"c"], pa.binary())
    table = pa.table(
        {"key": keys, "value": [b"%d" % row for row in range(5)], "partition": pa.array([0] * 5, pa.int32())}
    )
    with fairlead_kafka.Producer({"bootstrap.servers": apache_kafka}) as producer:
        refused = producer.send_table(topic, table).result(raise_on_error=False)["error"].to_pylist()
        assert ["may be sent again" in error for error in refused] == [True, False, True, False, True]
        assert all("INVALID_RECORD" in refused[row] for row in (1, 3))
        again = producer.send_table(
            topic, table.filter(pa.array([error.endswith("again") for error in refused]))
        )
        assert again.result()["offset"].to_pylist() == [0, 1, 2]


def test_a_record_that_apache_kafka_finds_too_large_names_the_limit(
    apache_kafka: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(apache_kafka, max_message_bytes="1000")
    with fairlead_kafka.Producer({"bootstrap.servers": apache_kafka}) as producer:
        ack = producer.send(topic, b"x" * 2000, partition=0)
        with pytest.raises(
            fairlead_kafka.RecordTooLarge, match=r"a batch of 20\d\d bytes.*raise max.message.bytes"
        ):
            ack.result(timeout_s=PATIENCE_S)
        parts = [producer.send(topic, b"x" * 300, partition=0) for _ in range(20)]
        assert [ack.result(timeout_s=PATIENCE_S).offset for ack in parts] == list(range(20))
