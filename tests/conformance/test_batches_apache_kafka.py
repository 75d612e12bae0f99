"""Headers of batches, sizes of logs and lags of groups, told by Apache Kafka as by our cluster."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from fairlead_kafka.client.group_lag import group_lags
from tests.support.command_line import runner
from tests.support.waiting import until_transactions_are_over

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(params=["apache_kafka", "embedded"])
def servers(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def test_batches_and_sizes_are_told_alike(servers: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic(servers, partitions=1)
    of = TopicPartition(topic, 0)
    for codec in CODECS:
        with fairlead_kafka.Producer(
            {"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 1_000}
        ) as producer:
            for number in range(20):
                producer.send(
                    topic, b"the same words again and again " * 10, timestamp_ms=1_700_000_000_000 + number
                )
            producer.flush()
    with fairlead_kafka.Producer(
        {"bootstrap.servers": servers, "transactional.id": f"of-{topic}"}
    ) as producer:
        producer.init_transactions()
        for commit in (True, False):
            producer.begin_transaction()
            producer.send(topic, b"in a transaction")
            producer.flush()
            (producer.commit_transaction if commit else producer.abort_transaction)()
    until_transactions_are_over(servers)
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as consumer:
        end = consumer.end_offsets([of])[of]
        rows = [
            row
            for table in consumer.read_batches(of, 0, end, measure_ratio=True)
            for row in table.to_pylist()
        ]
    plain = rows[:-4]
    assert {row["codec"] for row in plain} == set(CODECS)
    assert [row["base_offset"] for row in rows] == [0, *(row["last_offset"] + 1 for row in rows[:-1])]
    assert sum(row["records"] for row in plain) == 20 * len(CODECS)
    assert len({row["uncompressed_bytes"] / row["records"] for row in plain if row["records"] == 20}) == 1
    assert all(
        (row["size_bytes"] < row["uncompressed_bytes"] / 2) == (row["codec"] != "none")
        for row in plain
        if row["records"] == 20
    )
    assert min(row["base_timestamp"].timestamp() for row in plain) == 1_700_000_000.0
    assert [(row["is_transactional"], row["is_control"]) for row in rows[-4:]] == [
        (True, False),
        (True, True),
    ] * 2
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        leader = admin.describe_topics([topic])[topic].partitions[0].leader
        (directory,) = admin.describe_log_dirs([leader], [of])[leader].values()
    assert directory.replicas[of].size_bytes == sum(row["size_bytes"] for row in rows)


def test_the_skew_of_a_topic_is_reported(
    servers: str,
    new_topic: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = new_topic(servers, partitions=3)
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        for number in range(120):
            producer.send(topic, b"x" * 100, key=b"hot" if number % 3 else b"key-%d" % number)
    ran = runner(servers, capsys, monkeypatch)(
        "skew", topic, "--policy", "keyed,uniform", "--batch-size", "512", "--linger-ms", "5", "--json", "-"
    )
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert (
        report["looked_at"]["records"],
        report["keys"]["hottest"][0]["key"],
        report["keys"]["hottest"][0]["records"],
    ) == (
        120,
        "hot",
        80,
    )
    keyed, uniform = report["replay"]["rows"]
    assert keyed["max_over_mean"] > 1.5 > uniform["max_over_mean"]
    assert report["balance"]["records"]["max_over_mean"] > 1.5


def test_lags_of_groups_are_told_alike(servers: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic(servers, partitions=2)
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        for number in range(10):
            producer.send(topic, b"x", partition=number % 2)
    with fairlead_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": f"of-{topic}", "enable.auto.commit": "false"}
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.commit({TopicPartition(topic, 0): 2})
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        (lag,) = group_lags(admin, {f"of-{topic}": ()})[f"of-{topic}"]
    assert (lag.partition, lag.committed, lag.end, lag.lag, lag.member) == (
        TopicPartition(topic, 0),
        2,
        5,
        3,
        None,
    )
