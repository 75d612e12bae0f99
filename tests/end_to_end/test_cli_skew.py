"""`fairlead skew` against an embedded cluster, and on a file of lines."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import fairlead_kafka
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.lab import plotting
from fairlead_kafka.testing import Cluster
from tests.support.command_line import Run
from tests.support.waiting import until_transactions_are_over


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    """300 keyed records in 30 batches and a transaction, over 3 partitions."""
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    with fairlead_kafka.Admin(config) as admin:
        admin.create_topics(
            [
                fairlead_kafka.NewTopic("skewed", partitions=3),
                fairlead_kafka.NewTopic("nothing", partitions=2),
            ]
        )
    with fairlead_kafka.Producer({**config, "compression.type": "zstd"}) as producer:
        for number in range(10):
            for key in range(30):
                producer.send(
                    "skewed",
                    b"a value " * 20,
                    key=b"hot" if key < 20 else b"key-%d" % key,
                    headers=[("n", b"%d" % number)],
                )
            producer.flush()
    with fairlead_kafka.Producer({**config, "transactional.id": "t"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("skewed", b"unkeyed", partition=1)
        producer.commit_transaction()
    until_transactions_are_over(cluster.bootstrap_servers)
    return "skewed"


def test_the_report_tells_what_the_topic_holds(run: Run, topic: str, cluster: Cluster) -> None:
    ran = run("skew", topic, "--replay-records", "0", "--top", "2", "--json", "-")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert (
        report["looked_at"]["records"],
        report["looked_at"]["markers"],
        report["looked_at"]["whole_topic"],
    ) == (301, 1, True)
    held: Counter[int] = Counter()
    with fairlead_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers}) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(3)]
        for partition, end in consumer.end_offsets(partitions).items():
            held[partition.partition] = (
                sum(table.num_rows for table in consumer.read_range(partition, 0, end)) if end else 0
            )
    assert {row["partition"]: row["records"] for row in report["partitions"]} == dict(held)
    assert sum(row["size_bytes"] for row in report["partitions"]) == report["looked_at"]["size_bytes"]
    assert report["batches"]["ratio"] < 0.5
    assert set(report["batches"]["codecs"]) == {"none", "zstd"}
    assert (
        sum(step["batches"] for step in report["batches"]["records_per_batch"]["histogram"])
        == report["looked_at"]["batches"]
    )
    assert (
        sum(step["batches"] for step in report["batches"]["fill_percent"]["histogram"])
        == report["looked_at"]["batches"]
    )
    assert [(row["key"], row["records"]) for row in report["keys"]["hottest"]] == [
        ("hot", 200),
        ("key-20", 10),
    ]
    assert (report["keys"]["unkeyed_records"], report["keys"]["distinct"], report["replay"]) == (1, 11, None)


def test_a_part_of_a_topic_is_looked_at_and_said_to_be_one(run: Run, topic: str) -> None:
    ran = run(
        "skew",
        topic,
        "--max-records",
        "60",
        "--replay-records",
        "20",
        "--policy",
        "keyed,late",
        "--linger-ms",
        "5",
        "--batch-size",
        "1024",
    )
    assert ran.code == 0, ran.err
    assert "the newest 61 of 302 offsets" in ran.out or "the newest 62 of 302 offsets" in ran.out, ran.out
    assert "What other settings would have done" in ran.out
    assert [line.split()[0] for line in ran.out.splitlines()[-2:]] == ["keyed", "late"]
    assert "hot" in ran.out


def test_an_empty_topic_has_an_empty_report(run: Run, topic: str) -> None:
    ran = run("skew", "nothing")
    assert ran.code == 0, ran.err
    assert "nothing: 2 partitions, 0 records in 0 batches" in ran.out


def test_a_file_of_lines_is_reported_on_and_drawn(run_at: Run, tmp_path: Path) -> None:
    lines = tmp_path / "access.log"
    lines.write_text(
        "".join(f"host-{number % 7 if number % 2 else 0} GET /{number}\n" for number in range(200))
    )
    picture, rows = tmp_path / "skew.svg", tmp_path / "skew.json"
    ran = run_at(
        "skew", "access", "--input", str(lines), "--partitions", "4", "--rate", "20000", "--policy",
        "keyed,uniform",
        "--batch-size", "512", "--plot", str(picture), "--json", str(rows),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    report = json.loads(rows.read_text())
    assert (report["looked_at"]["records"], report["replay"]["records"], len(report["partitions"])) == (
        200,
        200,
        4,
    )
    keyed, uniform = report["replay"]["rows"][:2]
    assert [row["records"] for row in report["partitions"]] != [50] * 4
    assert keyed["max_over_mean"] > uniform["max_over_mean"]
    assert report["keys"]["hottest"][0]["key"] == "host-0"
    assert "replayed uniform" in picture.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing"], "UNKNOWN_TOPIC_OR_PARTITION"),
        (["skewed", "--policy", "sticy"], "--policy sticy: must be one of keyed, round_robin, sticky"),
        (["skewed", "--linger-ms", "-1"], "--linger-ms -1: must be whole numbers from 0 on"),
        (["skewed", "--batch-size", "0"], "--batch-size 0: must be whole numbers from 1 on"),
        (["skewed", "--plot", "skew.pdf"], "a plot is written as .svg or .png"),
        (["skewed", "--input", "no-such-file"], "no-such-file: cannot be read"),
    ],
)
def test_what_is_wrong_is_said(run: Run, topic: str, arguments: list[str], said: str) -> None:
    ran = run("skew", *arguments)
    assert ran.code == 1
    assert said in ran.err


def test_a_picture_without_matplotlib_is_refused_before_the_work(
    run: Run, topic: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plotting, "find_spec", lambda name: None)
    ran = run("skew", topic, "--plot", str(tmp_path / "skew.svg"))
    assert (ran.code, ran.out) == (1, "")
    assert "pip install 'fairlead-kafka[lab]'" in ran.err
