"""Our commands beside Kafka's own tools: they say the same of a cluster, ours of an Apache Kafka
and Kafka's of ours, and read each other's plans."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead_kafka import Producer
from tests.support.command_line import Run, runner
from tests.support.java_tools import JavaTools
from tests.support.waiting import PATIENCE_S, until

Command = Callable[..., str]
_numbers = itertools.count()


@pytest.fixture(params=["apache_kafka", "embedded"])
def servers(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def run(servers: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(servers, capsys, monkeypatch)


@pytest.fixture
def tool(tools: JavaTools, servers: str) -> Command:
    return lambda tool, *arguments: tools.run(tool, "--bootstrap-server", servers, *arguments)


@pytest.fixture
def topic() -> str:
    return f"beside-{next(_numbers)}"


def test_topics_are_altered_and_described_alike(run: Run, tool: Command, topic: str) -> None:
    assert run("topics", "create", topic, "--partitions", "2").code == 0
    ran = run("topics", "alter", topic, "--partitions", "4", "--config", "retention.ms=90000")
    assert ran.code == 0, ran.err
    until(lambda: "PartitionCount: 4" in tool("topics", "--describe", "--topic", topic))
    said = tool("topics", "--describe", "--topic", topic)
    assert "retention.ms=90000" in said
    rows = re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: ([\d,]+)\s+Isr: ([\d,]+)", said)
    (described,) = run("topics", "describe", topic, "--json").rows()
    assert [
        (
            str(each["partition"]),
            str(each["leader"]),
            *(",".join(map(str, each[key])) for key in ("replicas", "isr")),
        )
        for each in described["partitions"]
    ] == rows
    ran = run("topics", "alter", topic, "--delete-config", "retention.ms")
    assert ran.code == 0
    until(lambda: "retention.ms" not in tool("topics", "--describe", "--topic", topic))


def test_configs_are_those_that_kafkas_tool_shows(run: Run, tool: Command, topic: str) -> None:
    run("topics", "create", topic, "--partitions", "1")
    ran = run(
        "configs",
        "alter",
        "--topic",
        topic,
        "--set",
        "cleanup.policy=compact",
        "--set",
        "segment.bytes=2000000",
    )
    assert ran.code == 0, ran.err
    until(
        lambda: (
            "segment.bytes"
            in tool("configs", "--entity-type", "topics", "--entity-name", topic, "--describe")
        )
    )
    said = tool("configs", "--entity-type", "topics", "--entity-name", topic, "--describe")
    theirs = dict(re.findall(r"^\s+([a-z0-9.]+)=(\S+) sensitive", said, re.MULTILINE))
    rows = run("configs", "describe", "--topic", topic, "--json").rows()
    assert {each["config"]: each["value"] for each in rows if each["source"] == "topic"} == theirs
    said = tool("configs", "--entity-type", "topics", "--entity-name", topic, "--describe", "--all")
    everything = set(re.findall(r"^\s+([a-z0-9.]+)=\S* sensitive", said, re.MULTILINE))
    rows = run("configs", "describe", "--topic", topic, "--all", "--json").rows()
    assert {each["config"] for each in rows} == everything


def test_brokers_serve_what_kafkas_tool_says(run: Run, tool: Command) -> None:
    said = tool("api-versions")
    theirs = re.findall(r"^\t\w+\((\d+)\): (\d+(?: to \d+)?)", said, re.MULTILINE)
    ours = {}
    for row in run("brokers", "api-versions", "--json").rows():
        low, high = row["lowest"], row["highest"]
        ours[str(row["key"])] = str(low) if low == high else f"{low} to {high}"
    assert len(theirs) > 50
    assert dict(theirs).items() <= ours.items()
    ids = [row["broker"] for row in run("brokers", "list", "--json").rows()]
    assert len(ids) == len(re.findall(r"\(id: \d+ rack: ", said))


def test_log_directories_are_those_that_kafkas_tool_shows(run: Run, tool: Command, topic: str) -> None:
    run("topics", "create", topic, "--partitions", "2")
    assert run("produce", topic, stdin=b"a\nb\n").code == 0
    said = tool("log-dirs", "--describe", "--topic-list", topic)
    theirs = sorted(
        (broker["broker"], directory["logDir"], row["partition"], row["size"])
        for broker in json.loads(said.splitlines()[-1])["brokers"]
        for directory in broker["logDirs"]
        for row in directory["partitions"]
    )
    rows = run("brokers", "log-dirs", "--topic", topic, "--replicas", "--json").rows()
    assert (
        sorted(
            (each["broker"], each["directory"], f"{each['topic']}-{each['partition']}", each["size_bytes"])
            for each in rows
        )
        == theirs
    )


def test_transactions_are_those_that_kafkas_tool_shows(
    run: Run, tool: Command, servers: str, topic: str
) -> None:
    run("topics", "create", topic, "--partitions", "1")
    with Producer({"bootstrap.servers": servers, "transactional.id": topic}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"a", partition=0).result(PATIENCE_S)
        (row,) = [
            one for one in run("transactions", "list", "--json").rows() if one["transactional_id"] == topic
        ]
        said = tool("transactions", "list")
        found = re.search(rf"^{topic}\s+(\d+)\s+(\d+)\s+(\w+)", said, re.MULTILINE)
        assert found is not None, said
        assert (str(row["producer_id"]), row["state"]) == (found[2], found[3])
        (described,) = run("transactions", "describe", topic, "--json").rows()
        assert str(described["coordinator"]) == found[1]
        said = tool("transactions", "describe", "--transactional-id", topic)
        assert f"{topic}-0" in said
        assert described["partitions"] == [f"{topic}-0"]
        (state,) = run("transactions", "producers", f"{topic}:0", "--json").rows()
        said = tool("transactions", "describe-producers", "--topic", topic, "--partition", "0")
        line = said.splitlines()[1].split()
        assert [str(state["producer_id"]), str(state["epoch"])] == line[:2]
        assert str(state["transaction_start_offset"]) == line[-1]
        ran = run("transactions", "abort", topic)
        assert ran.out == f"aborted: {topic}\n", ran.err
        until(
            lambda: (
                topic
                not in [
                    one["transactional_id"]
                    for one in run("transactions", "list", "--state", "Ongoing", "--json").rows()
                ]
            )
        )
        producer.close(timeout_s=0)


def test_a_plan_of_ours_is_one_of_theirs_and_the_other_way_round(
    run: Run, tool: Command, topic: str, tmp_path: Path
) -> None:
    run("topics", "create", topic, "--partitions", "3")
    ids = ",".join(str(row["broker"]) for row in run("brokers", "list", "--json").rows())
    planned = run("reassign", "plan", topic, "--brokers", ids)
    assert planned.code == 0, planned.err
    ours = tmp_path / "ours.json"
    ours.write_text(planned.out)
    assert run("reassign", "execute", str(ours)).code == 0
    assert run("reassign", "verify", str(ours), "--wait").code == 0
    said = tool("reassign", "--reassignment-json-file", str(ours), "--verify")
    assert said.count("is completed.") == 3, said
    wanted = tmp_path / "topics.json"
    wanted.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    said = tool("reassign", "--topics-to-move-json-file", str(wanted), "--broker-list", ids, "--generate")
    theirs = tmp_path / "theirs.json"
    theirs.write_text(said.partition("Proposed partition reassignment configuration\n")[2])
    assert run("reassign", "execute", str(theirs)).code == 0
    ran = run("reassign", "verify", str(theirs), "--wait", "--json")
    assert ran.code == 0, ran.out
    assert tool("reassign", "--reassignment-json-file", str(theirs), "--verify").count("is completed.") == 3


def test_records_go_out_and_come_back_with_all_that_they_have(run: Run, topic: str) -> None:
    # What is older than a week would be deleted whenever the broker looks for it.
    run("topics", "create", topic, "--partitions", "1", "--config", "retention.ms=-1")
    options = ("-p", "0", "-H", "h=1", "--timestamp", "1700000000000")
    assert run("produce", topic, *options, "-k", ":", "--null", "~", stdin=b"k:v\nk:~\n").code == 0
    ran = run("consume", topic, "-o", "-2", "--until-end", "-f", "%o %T %k=%s/%S %h\\n", "--null", "NULL")
    assert ran.out.splitlines() == ["0 1700000000000 k=v/1 h=1", "1 1700000000000 k=NULL/-1 h=1"]
    ran = run("consume", topic, "-o", "@1699999999999", "--until", "1", "--json")
    assert [row["offset"] for row in ran.rows()] == [0]


def test_offsets_are_reset_to_where_kafkas_tool_resets_them(run: Run, tool: Command, topic: str) -> None:
    run("topics", "create", topic, "--partitions", "1")
    assert run("produce", topic, stdin=b"a\nb\nc\n").code == 0
    assert run("consume", topic, "--group", topic, "--from-beginning", "-n", "2").code == 0
    for way in (
        ("--to-offset", "99"),
        ("--to-offset", "-5"),
        ("--shift-by", "50"),
        ("--shift-by", "-1"),
        ("--to-datetime", "2090-01-01T00:00:00.000"),
        ("--by-duration", "PT0S"),
        ("--by-duration", "P1D"),
        ("--to-current",),
    ):
        given = ("--topic", f"{topic}:0", *way)
        said = tool("groups", "--group", topic, "--reset-offsets", *given, "--dry-run")
        theirs = re.search(rf"^{topic}\s+{topic}\s+0\s+(\d+)", said, re.MULTILINE)
        assert theirs is not None, said
        (row,) = run("groups", "reset-offsets", topic, *given, "--json", "-").rows()
        assert str(row["new_offset"]) == theirs[1], way


def test_a_share_group_reads_from_the_beginning_if_asked(
    apache_kafka: str,
    tools: JavaTools,
    topic: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = runner(apache_kafka, capsys, monkeypatch)
    run("topics", "create", topic, "--partitions", "1")
    assert run("produce", topic, stdin=b"a\nb\n").code == 0
    ran = run("consume", topic, "--share", topic, "--from-beginning", "-n", "2")
    assert (ran.code, ran.out) == (0, "a\nb\n"), ran.err
    assert ran.err.splitlines()[0].endswith("(share.auto.offset.reset=earliest) with the first record")
    entity = ("--entity-type", "groups", "--entity-name", topic)
    said = tools.run("configs", "--bootstrap-server", apache_kafka, "--describe", *entity)
    assert "share.auto.offset.reset=earliest" in said
