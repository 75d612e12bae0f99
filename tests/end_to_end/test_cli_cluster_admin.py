"""`fairlead topics alter`, `configs`, `brokers`, `transactions`, `reassign` and `elect`, against an
embedded cluster, with good and bad input."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_kafka import Producer
from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey
from tests.support.broker_driver import batch, produce_fields
from tests.support.command_line import Run, runner
from tests.support.waiting import PATIENCE_S, until
from tests.support.wire_client import Wire


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {"transaction.partition.verification.enable": False, "auto.leader.rebalance.enable": False}
    with Cluster(brokers=3, config=config, racks=("a", "b", "c")) as cluster:
        yield cluster


@pytest.fixture
def run(cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(cluster.bootstrap_servers, capsys, monkeypatch)


def test_partitions_and_configs_of_topics_are_altered(run: Run) -> None:
    run("topics", "create", "one", "two", "--partitions", "1")
    ran = run("topics", "alter", "one", "two", "--config", "retention.ms=5000", "--partitions", "3")
    assert ran.out.splitlines() == [
        "configs changed: one",
        "configs changed: two",
        "has 3 partitions: one",
        "has 3 partitions: two",
    ]
    (described,) = run("topics", "describe", "one", "--json").rows()
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2]
    (entry,) = [
        each
        for each in run("configs", "describe", "--topic", "one", "--json").rows()
        if each["source"] == "topic"
    ]
    assert entry == {
        "type": "topic",
        "name": "one",
        "config": "retention.ms",
        "value": "5000",
        "source": "topic",
        "read_only": False,
        "sensitive": False,
    }
    assert run("topics", "alter", "one", "--delete-config", "retention.ms").code == 0
    rows = run("configs", "describe", "--topic", "one", "--all", "--json").rows()
    assert {each["config"]: each["source"] for each in rows}["retention.ms"] != "topic"
    ran = run("topics", "alter", "one", "missing", "--partitions", "4", "--validate-only")
    assert (ran.code, ran.out) == (1, "could have 4 partitions: one\n")
    assert ran.err.startswith("failed: missing: UNKNOWN_TOPIC_OR_PARTITION")
    ran = run("topics", "alter", "one", "--partitions", "2")
    assert ran.code == 1
    assert "INVALID_PARTITIONS" in ran.err


def test_configs_of_all_kinds_are_shown_and_changed(run: Run) -> None:
    run("topics", "create", "conf", "--partitions", "1")
    alter = ("configs", "alter", "--topic", "conf")
    assert run(*alter, "--set", "cleanup.policy=compact").out == "changed: topic conf\n"
    assert run(*alter, "--append", "cleanup.policy=delete").code == 0
    assert value(run, "cleanup.policy", "--topic", "conf") == "compact,delete"
    assert run(*alter, "--subtract", "cleanup.policy=compact").code == 0
    assert value(run, "cleanup.policy", "--topic", "conf") == "delete"
    assert run("configs", "delete", "cleanup.policy", "--topic", "conf").code == 0
    assert value(run, "cleanup.policy", "--topic", "conf") is None
    ran = run("configs", "alter", "--broker-defaults", "--broker", "1", "--set", "log.retention.ms=77000")
    assert ran.out.splitlines() == ["changed: broker 1", "changed: broker (default of all)"]
    assert value(run, "log.retention.ms", "--broker-defaults") == "77000"
    assert run("configs", "delete", "log.retention.ms", "--broker-defaults", "--broker", "1").code == 0
    assert run("configs", "alter", "--group", "g", "--set", "consumer.session.timeout.ms=50000").code == 0
    assert value(run, "consumer.session.timeout.ms", "--group", "g") == "50000"
    assert run("configs", "alter", "--client-metrics", "m", "--set", "interval.ms=60000").code == 0
    rows = run("configs", "list", "groups", "client-metrics", "--json").rows()
    assert {"type": "group", "name": "g"} in rows
    assert {"type": "client-metrics", "name": "m"} in rows
    assert {"type": "topic", "name": "conf"} in run("configs", "list", "--json").rows()
    ran = run(*alter, "--set", "cleanup.policy=never", "--validate-only")
    assert ran.code == 1
    assert "cleanup.policy" in ran.err


def value(run: Run, config: str, *of: str) -> str | None:
    """What somebody has set; None if nobody has."""
    ran = run("configs", "describe", *of, "--json")
    assert ran.code == 0, ran.err
    found = {each["config"]: each["value"] for each in ran.rows()}
    return found.get(config)


def test_brokers_are_listed_and_described(run: Run, cluster: Cluster) -> None:
    rows = run("brokers", "list", "--json").rows()
    assert [(each["broker"], each["rack"], each["fenced"]) for each in rows] == [
        (0, "a", False),
        (1, "b", False),
        (2, "c", False),
    ]
    assert [f"{each['host']}:{each['port']}" for each in rows] == cluster.bootstrap_servers.split(",")
    run("topics", "create", "held", "--partitions", "3", "-r", "3")
    run("produce", "held", stdin=b"a\nb\n")
    described = run("brokers", "describe", "1", "2", "--json").rows()
    assert [each["broker"] for each in described] == [1, 2]
    assert all(each["replicas"] >= 3 and each["leads"] >= 1 for each in described)
    (directory,) = run("brokers", "log-dirs", "0", "--json").rows()
    assert directory["error"] is None
    assert directory["log_bytes"] > 0
    replicas = run("brokers", "log-dirs", "--topic", "held:1", "--replicas", "--json").rows()
    assert [(each["broker"], each["topic"], each["partition"]) for each in replicas] == [
        (node, "held", 1) for node in range(3)
    ]
    versions = run("brokers", "api-versions", "0", "--json").rows()
    assert {"broker": 0, "api": "FETCH", "key": 1, "lowest": 4, "highest": 18} in versions
    assert "METADATA" in run("brokers", "api-versions").out


def test_transactions_are_listed_described_and_aborted(run: Run, cluster: Cluster) -> None:
    run("topics", "create", "txn", "--partitions", "1")
    config = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "mine"}
    with Producer(config) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("txn", b"a", partition=0).result(PATIENCE_S)
        (listed,) = run("transactions", "list", "--state", "Ongoing", "--json").rows()
        assert (listed["transactional_id"], listed["state"]) == ("mine", "Ongoing")
        assert run("transactions", "list", "--pattern", "other.*", "--json").rows() == []
        (described,) = run("transactions", "describe", "mine", "--json").rows()
        assert (described["state"], described["partitions"]) == ("Ongoing", ["txn-0"])
        assert described["producer_id"] == listed["producer_id"]
        (state,) = run("transactions", "producers", "txn:0", "--json").rows()
        assert state["transaction_start_offset"] == 0
        ran = run("transactions", "hanging", "--topic", "txn", "--open-for", "0", "--json")
        assert (ran.out, ran.err) == ("", "none in 1 partitions\n")  # its coordinator knows it
        assert run("transactions", "abort", "mine").out == "aborted: mine\n"
        until(lambda: run("transactions", "list", "--state", "Ongoing", "--json").rows() == [])
        assert (
            run("transactions", "producers", "txn:0", "--json").rows()[0]["transaction_start_offset"] is None
        )
        producer.close(timeout_s=0)


def test_a_hanging_transaction_is_found_and_aborted(run: Run, cluster: Cluster) -> None:
    """A transactional batch of a producer that no coordinator knows: what KIP-890 keeps away from
    brokers that verify."""
    run("topics", "create", "hangs", "--partitions", "1")
    (topic,) = run("topics", "describe", "hangs", "--json").rows()
    leader = topic["partitions"][0]["leader"]
    with Wire(cluster.broker(leader).address) as wire:
        now_ms = time.time_ns() // 1_000_000
        encoded = batch(
            [b"a"], [now_ms - 60_000], producer_id=4711, producer_epoch=3, base_sequence=0, transactional=True
        )
        fields = {**produce_fields({("hangs", 0): encoded}), "transactional_id": "nobody"}
        answer = wire.ask(ApiKey.PRODUCE, 9, **fields)
        assert answer.responses[0].partition_responses[0].error_code == 0
    (found,) = run("transactions", "hanging", "--all", "--open-for", "0", "--json").rows()
    assert (found["topic"], found["partition"], found["producer_id"], found["start_offset"]) == (
        "hangs",
        0,
        4711,
        0,
    )
    assert run("transactions", "hanging", "--broker", str(leader), "--json").rows() == []  # not for so long
    wide = ("transactions", "hanging", "--broker", str(leader), "--open-for", "0", "--json")
    assert run(*wide).rows() == [found]
    ran = run("transactions", "abort", "--topic", "hangs:0", "--start-offset", "9")
    assert ran.err == (
        "UsageError: no transaction of hangs-0 begins at offset 9; those that are open begin at 0\n"
    )
    ran = run("transactions", "abort", "--topic", "hangs:0", "--start-offset", "0")
    assert ran.out == "aborted: hangs-0 from offset 0\n", ran.err
    assert run(*wide).rows() == []


def test_partitions_are_moved_by_plan_and_back(run: Run, tmp_path: Path) -> None:
    run("topics", "create", "moves", "--partitions", "4", "-r", "2")
    planned = run("reassign", "plan", "moves", "--brokers", "1,2")
    assert planned.code == 0, planned.err
    plan = json.loads(planned.out)
    assert plan["version"] == 1
    assert [set(row["replicas"]) for row in plan["partitions"]] == [{1, 2}] * 4
    assert sorted(row["replicas"][0] for row in plan["partitions"]) == [1, 1, 2, 2]
    file, back = tmp_path / "plan.json", tmp_path / "back.json"
    file.write_text(planned.out)
    ran = run("reassign", "execute", str(file))
    assert ran.code == 0, ran.err
    back.write_text(ran.out)
    ran = run("reassign", "verify", str(file), "--wait", "--json")
    assert ran.code == 0
    assert [row["state"] for row in ran.rows()] == ["done"] * 4
    assert run("reassign", "list", "--json").rows() == []
    assert run("reassign", "cancel", str(file)).out == "nothing is under way\n"
    ran = run("reassign", "verify", str(back), "--json")
    assert ran.code == 1
    assert {row["state"] for row in ran.rows()} <= {"elsewhere", "done"}
    assert run("reassign", "execute", str(back)).code == 0
    assert run("reassign", "verify", str(back), "--wait").code == 0


def test_a_move_that_cannot_end_is_shown_and_taken_back(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    run("topics", "create", "stuck", "--partitions", "1", "-r", "1")
    (topic,) = run("topics", "describe", "stuck", "--json").rows()
    (leader,) = topic["partitions"][0]["replicas"]
    other = (leader + 1) % 3
    cluster.broker(leader).cut(from_=other)
    file = tmp_path / "plan.json"
    rows = [{"topic": "stuck", "partition": 0, "replicas": [other], "log_dirs": ["any"]}]
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    assert run("reassign", "execute", str(file)).code == 0
    (move,) = run("reassign", "list", "--json").rows()
    assert (move["topic"], move["adding"], move["removing"]) == ("stuck", [other], [leader])
    (row,) = run("reassign", "verify", str(file), "--json").rows()
    assert row["state"] == "moving"
    again = run("reassign", "execute", str(file))
    assert again.code == 1
    assert "stuck-0: on the move already" in again.err
    assert run("reassign", "cancel", str(file)).out == "cancelled: stuck-0\n"
    assert run("reassign", "list", "--json").rows() == []
    cluster.restore()


def test_the_preferred_replica_leads_again(run: Run, cluster: Cluster) -> None:
    run("topics", "create", "led", "--partitions", "3", "-r", "3")
    cluster.broker(1).stop()
    cluster.broker(1).start()
    until(lambda: all(len(each["isr"]) == 3 for each in partitions(run, "led")))
    ran = run("elect", "preferred", "--topic", "led")
    assert ran.code == 0, ran.err
    assert sorted(line.partition(":")[0] for line in ran.out.splitlines()) == [
        "elected",
        "nothing to do",
        "nothing to do",
    ]
    assert all(each["leader"] == each["replicas"][0] for each in partitions(run, "led"))
    assert run("elect", "preferred", "--all").code == 0
    assert run("elect", "preferred", "--all").out == "nothing to do\n"


def partitions(run: Run, topic: str) -> list[dict[str, object]]:
    (described,) = run("topics", "describe", topic, "--json").rows()
    found: list[dict[str, object]] = described["partitions"]
    return found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["topics", "alter", "x"],
            "UsageError: say what to change: --partitions, --config or --delete-config",
        ),
        (
            ["configs", "describe"],
            "UsageError: say whose configs: --topic, --broker, --broker-defaults, --group, ",
        ),
        (
            ["configs", "alter", "--topic", "x"],
            "UsageError: say what to change: --set, --append, --subtract or ",
        ),
        (["configs", "list", "queues"], "UsageError: queues is no type; there are topics, brokers, groups, "),
        (["configs", "describe", "--topic", "none"], "failed: topic none: UNKNOWN_TOPIC_OR_PARTITION"),
        (["brokers", "describe", "7"], "UsageError: there is no broker 7; there are 0, 1, 2"),
        (["transactions", "abort"], "UsageError: say which: a transactional id, or --topic TOPIC:0 with "),
        (["transactions", "abort", "nobody"], "UsageError: there is no transactional id nobody; `fairlead "),
        (["transactions", "describe", "nobody"], "failed: nobody: TRANSACTIONAL_ID_NOT_FOUND"),
        (["transactions", "hanging"], "UsageError: say where to look: one of --topic, --broker, --all"),
        (["reassign", "plan", "none", "--brokers", "1"], "failed: none: UNKNOWN_TOPIC_OR_PARTITION"),
        (
            ["reassign", "plan", "none", "--brokers", "1,9"],
            "UsageError: --brokers 1,9: there is no broker 9; ",
        ),
        (
            ["reassign", "plan", "none", "--brokers", "one"],
            "ConfigError: --brokers one: must be whole numbers",
        ),
        (["reassign", "verify", "no-such-file"], "ConfigError: no-such-file: No such file or directory"),
        (["elect", "preferred"], "UsageError: say which partitions: either --topic, or --all"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run: Run, arguments: list[str], said: str) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(said), ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "no plan: expected a JSON object, got list"),
        ("{}", "no plan: 'partitions' is missing"),
        ('{"version": 2, "partitions": []}', "no plan: version 2 is not known, only 1"),
        ('{"partitions": []}', "no plan: it has no partitions"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "no plan: 'replicas' is missing"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}',
            "no plan: t-0 must have replicas, each on another broker, not [1, 1]",
        ),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["/d"]}]}',
            'no plan: t-0 names log_dirs; only "any" can be asked for',
        ),
    ],
)
def test_a_plan_that_is_none_is_said_with_the_reason(run: Run, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    ran = run("reassign", "execute", str(file))
    assert ran.code == 1
    assert f"{file}: {said}" in ran.err


@pytest.mark.parametrize("broker", ["7", "2147483648", "99999999999"])
@pytest.mark.parametrize(
    "command",
    [
        ("configs", "describe"),
        ("configs", "alter", "--set", "background.threads=5"),
        ("configs", "delete", "background.threads"),
        ("transactions", "hanging"),
    ],
    ids=" ".join,
)
def test_an_absent_broker_is_refused_at_once(run: Run, command: tuple[str, ...], broker: str) -> None:
    ran = run(*command, "--broker", broker)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"UsageError: there is no broker {broker}; there are 0, 1, 2\n"


def test_partitions_beyond_every_number_are_refused(run: Run) -> None:
    ran = run("transactions", "producers", f"t:{'9' * 5000}")
    assert ran.code == 1
    assert "expected TOPIC, or TOPIC:0,1" in ran.err
