"""`fairlead groups` against an embedded cluster: lag, members, resets that are shown first and done
only when told to."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from fairlead_kafka.testing import Cluster
from tests.support.command_line import Run

confluent_kafka = pytest.importorskip("confluent_kafka")
GROUP, TOPIC = "readers", "read"
PARTITIONS = [TopicPartition(TOPIC, number) for number in range(2)]


@pytest.fixture(scope="module", autouse=True)
def topic(cluster: Cluster) -> None:
    """Two partitions with ten records each, a second apart."""
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.create_topics([fairlead_kafka.NewTopic(TOPIC, partitions=2)])
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for number in range(10):
            for partition in range(2):
                producer.send(
                    TOPIC, b"x", partition=partition, timestamp_ms=1_700_000_000_000 + 1_000 * number
                )


@pytest.fixture
def group(cluster: Cluster) -> Iterator[None]:
    """A group without members that has read four records of partition 0 and all of partition 1."""
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.alter_group_offsets(GROUP, {PARTITIONS[0]: 4, PARTITIONS[1]: 10})
        yield
        admin.delete_groups([GROUP])


def offsets_after(run: Run, *options: str) -> list[int]:
    """The new offsets that a reset shows, then does, which is then described."""
    command = (
        "groups",
        "reset-offsets",
        GROUP,
        *(() if "--all-topics" in options else ("--topic", TOPIC)),
        *options,
    )
    before = committed(run)
    shown = run(*command, "--json", "-")
    assert shown.code == 0, shown.err
    assert "nothing was changed" in shown.err
    assert committed(run) == before
    done = run(*command, "--execute", "--json", "-")
    assert done.out == shown.out
    offsets = [json.loads(line)["new_offset"] for line in done.out.splitlines()]
    assert committed(run) == offsets
    return offsets


def committed(run: Run) -> list[int]:
    described = json.loads(run("groups", "describe", GROUP, "--json", "-").out)
    return [row["committed"] for row in described["partitions"]]


@pytest.mark.usefixtures("group")
def test_groups_are_listed_and_described_with_their_lag(run: Run) -> None:
    assert GROUP in run("groups", "list").out
    assert GROUP in run("groups", "list", "--state", "Empty").out
    assert GROUP not in run("groups", "list", "--state", "Stable").out
    described = json.loads(run("groups", "describe", GROUP, "--json", "-").out)
    assert (described["group"], described["state"], described["members"]) == (GROUP, "Empty", [])
    assert [
        (row["partition"], row["committed"], row["end"], row["lag"]) for row in described["partitions"]
    ] == [
        (0, 4, 10, 6),
        (1, 10, 10, 0),
    ]
    assert "committed" in run("groups", "describe").out


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (["--to-earliest"], [0, 0]),
        (["--to-latest"], [10, 10]),
        (["--to-current"], [4, 10]),
        (["--to-offset", "7"], [7, 7]),
        (["--to-offset", "70"], [10, 10]),
        (["--shift-by", "-3"], [1, 7]),
        (["--to-datetime", "2023-11-14T22:13:25"], [5, 5]),
        (["--to-datetime", "2023-11-14T23:13:25+01:00"], [5, 5]),
        (["--by-duration", "PT1H"], [10, 10]),
        (["--to-earliest", "--all-topics"], [0, 0]),
    ],
)
def test_offsets_are_reset_once_told_to(run: Run, options: list[str], offsets: list[int]) -> None:
    assert offsets_after(run, *options) == offsets


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to-offset", "70"], "offset 70 is outside of its log, 0 to 10; taking 10"),
        (["--shift-by", "-20"], "offset -16 is outside of its log, 0 to 10; taking 0"),
        (["--by-duration", "PT1H"], "no record is of that time or later; taking the end, 10"),
    ],
)
def test_an_offset_that_is_not_the_one_asked_for_is_said(run: Run, options: list[str], said: str) -> None:
    ran = run("groups", "reset-offsets", GROUP, "--topic", f"{TOPIC}:0", *options)
    assert ran.err.splitlines()[0] == f"{TOPIC}-0: {said}"


@pytest.mark.usefixtures("group")
def test_single_partitions_are_reset(run: Run) -> None:
    ran = run("groups", "reset-offsets", GROUP, "--topic", f"{TOPIC}:1", "--to-offset", "2", "--execute")
    assert ran.code == 0, ran.err
    assert committed(run) == [4, 2]


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to-earliest"], "either --topic, or --all-topics"),
        (["--topic", TOPIC], "say where to: one of --to-earliest"),
        (["--topic", TOPIC, "--to-earliest", "--to-latest"], "not --to-earliest and --to-latest"),
        (["--topic", f"{TOPIC}:7", "--to-earliest"], "has partitions 0 to 1, and no 7"),
        (["--topic", f"{TOPIC}:a", "--to-earliest"], "expected TOPIC, or TOPIC:0,1"),
        (["--topic", TOPIC, "--to-datetime", "soon"], "expected a time such as"),
        (["--topic", TOPIC, "--by-duration", "1h"], "expected a duration such as"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused_with_a_reason(
    run: Run, options: list[str], said: str
) -> None:
    ran = run("groups", "reset-offsets", GROUP, *options)
    assert ran.code == 1
    assert said in ran.err


def test_a_state_that_there_is_not_is_refused_and_an_option_without_its_value_leads_to_the_right_help(
    run: Run,
) -> None:
    ran = run("groups", "list", "--state", "Stabel")
    assert (ran.code, ran.out) == (1, "")
    assert "--state Stabel: is none of PreparingRebalance, " in ran.err
    assert "did you mean Stable?" in ran.err
    ran = run("groups", "list", "--state")
    assert ran.code == 2
    assert "see `fairlead groups list --help`" in ran.err


def test_a_group_with_members_is_neither_reset_nor_deleted(run: Run, cluster: Cluster) -> None:
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "busy",
        "client.id": "one",
        "heartbeat.interval.ms": 100,
    }
    member = confluent_kafka.Consumer(config)
    member.subscribe([TOPIC])
    try:
        while len(member.assignment()) < 2:
            member.poll(0.05)
        described = json.loads(run("groups", "describe", "busy", "--json", "-").out)
        assert (described["state"], described["protocol"]) == ("Stable", "range")
        assert [(one["client_id"], one["assignment"]) for one in described["members"]] == [
            ("one", {TOPIC: [0, 1]})
        ]
        assert [row["client_id"] for row in described["partitions"]] == ["one", "one"]
        assert f"{TOPIC}: 0 1" in run("groups", "describe", "busy", "--members").out
        ran = run("groups", "reset-offsets", "busy", "--topic", TOPIC, "--to-earliest")
        assert (ran.code, "busy is Stable: stop its consumers first" in ran.err) == (1, True)
        ran = run("groups", "delete", "busy")
        assert (ran.code, "NON_EMPTY_GROUP" in ran.err) == (1, True)
    finally:
        member.close()


def test_groups_are_deleted_whole_or_by_topic(run: Run, cluster: Cluster) -> None:
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.alter_group_offsets("old", dict.fromkeys(PARTITIONS, 1))
    assert run("groups", "delete", "old", "--topic", TOPIC).out.splitlines() == [
        f"deleted: old, {of}" for of in PARTITIONS
    ]
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.alter_group_offsets("old", dict.fromkeys(PARTITIONS, 1))
    ran = run("groups", "delete", "old", "missing")
    assert (ran.code, ran.out) == (1, "deleted: old\n")
    assert "missing: GROUP_ID_NOT_FOUND" in ran.err
    ran = run("groups", "describe", "old")
    assert (ran.code, "GROUP_ID_NOT_FOUND" in ran.err) == (1, True)


def test_consume_goes_on_where_its_group_committed_what_was_printed(run: Run, cluster: Cluster) -> None:
    assert run("topics", "create", "printed", "--partitions", "2").code == 0
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for number in range(10):
            producer.send("printed", b"%d" % number, partition=number % 2)
    consume = ("consume", "printed", "--group", "printers", "--from-beginning")
    first = run(*consume, "--max-records", "4")
    assert (first.code, len(first.out.split())) == (0, 4), first.err
    described = json.loads(run("groups", "describe", "printers", "--json", "-").out)
    assert sum(row["committed"] or 0 for row in described["partitions"]) == 4
    rest = run(*consume, "--until-end")
    assert rest.code == 0, rest.err
    assert sorted(map(int, (first.out + rest.out).split())) == list(range(10))
    again = run(*consume, "--until-end")
    assert (again.code, again.out) == (0, "")
    ran = run(*consume, "--partition", "0")
    assert (ran.code, "--group shares out the partitions by itself" in ran.err) == (1, True)
