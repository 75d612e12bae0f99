"""`fairlead topics`, `produce` and `consume` against an embedded cluster, with good and bad
input."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_kafka.lab.experiment import EXPERIMENTS, TRIALS
from fairlead_kafka.testing import Cluster
from tests.support.command_line import Run, start
from tests.support.waiting import PATIENCE_S


def _consumed(run: Run, topic: str, *options: str) -> bytes:
    ran = run("consume", topic, "--from-beginning", "--until-end", *options)
    assert ran.code == 0, ran.err
    return ran.out.encode()


def test_topics_are_created_listed_described_and_deleted(run: Run, tmp_path: Path) -> None:
    ran = run("topics", "create", "life-a", "life-b", "--partitions", "4", "--config", "retention.ms=1000")
    assert (ran.code, ran.out) == (0, "created: life-a\ncreated: life-b\n")
    assert {"life-a", "life-b"} <= set(run("topics", "list").out.split())
    described = json.loads(run("topics", "describe", "life-a", "--json").out)
    assert [one["partition"] for one in described["partitions"]] == [0, 1, 2, 3]
    assert run("topics", "describe", "life-a", "--json",
    str(tmp_path / "report")).out.splitlines()[0].split()[:3] == [
        "topic", "partition", "leader",
    ]  # fmt: skip
    assert json.loads((tmp_path / "report").read_text()) == described
    assert run("topics", "delete", "life-a", "life-b").out == "deleted: life-a\ndeleted: life-b\n"
    assert not {"life-a", "life-b"} & set(run("topics", "list").out.split())


def test_what_could_be_done_is_said_even_if_another_topic_failed(run: Run) -> None:
    ran = run("topics", "create", "half", "bad[name]")
    assert (ran.code, ran.out) == (1, "created: half\n")
    assert ran.err.startswith("failed: bad[name]: INVALID_TOPIC_EXCEPTION")
    ran = run("topics", "delete", "half", "missing")
    assert (ran.code, ran.out) == (1, "deleted: half\n")
    assert ran.err.startswith("failed: missing: UNKNOWN_TOPIC_OR_PARTITION")


def test_validate_only_creates_nothing(run: Run) -> None:
    assert run("topics", "create", "perhaps", "--validate-only").out == "could be created: perhaps\n"
    assert "perhaps" not in run("topics", "list").out.split()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nonsense"], 2, "fairlead: No such command 'nonsense'"),
        (["topics", "create"], 2, "see `fairlead topics create --help`"),
        (["topics", "list", "--foo"], 2, "No such option"),
        (["topics", "create", "--topic", "t"], 2, "argument, without a name: `fairlead topics create TOPIC`"),
        (["consume", "--topic", "t"], 2, "argument, without a name: `fairlead consume TOPIC`"),
        (["consume", "t", "-n", "0"], 2, "see `fairlead consume --help`"),
        (["topics", "create", "x", "--config", "foo"], 1, "--config 'foo': expected KEY=VALUE"),
        (["topics", "create", "x", "--config", "foo=1"], 1, "Unknown topic config name: foo"),
        (
            ["topics", "list", "-X", "request.timeout.ms=soon"],
            1,
            "request.timeout.ms: expected a whole number (int), got 'soon'",
        ),
        (["topics", "list", "-b", "nonsense"], 1, "'nonsense' is not host:port"),
        (
            ["topics", "list", "--json", "no-such-folder/x"],
            1,
            "--json no-such-folder/x: cannot be written (No such file or directory)",
        ),
        (["topics", "list", "--json", "."], 1, "--json .: cannot be written (Is a directory)"),
        (["produce", "t", "-X", "acks=7"], 1, "acks: must be one of all, -1, 0, 1"),
        (["produce", "t", "-k", ""], 1, "--key-separator: must not be empty"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run: Run, arguments: list[str], code: int, said: str) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "list"],
        ["produce", "t"],
        ["consume", "t"],
        ["perf", "consume", "--topic", "t", "--messages", "1"],
    ],
)
def test_an_unreachable_cluster_is_named_with_the_reason(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr("fairlead_kafka.cli.connecting.QUIET_S", 0.1)
    monkeypatch.setattr("fairlead_kafka.cli.connecting.PATIENCE_S", 0.2)
    ran = run(*arguments, "-b", "127.0.0.1:1")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "waiting for 127.0.0.1:1 …",
        "ConnectionFailed: could not reach any of 127.0.0.1:1 (connection refused); `fairlead up` starts a "
        "cluster, "
        "--bootstrap-server names another",
    ]


def test_a_missing_topic_is_said_and_not_created(run: Run) -> None:
    ran = run("consume", "misspelt")
    assert ran.code == 1
    assert "topic misspelt is not in the cluster" in ran.err
    assert "misspelt" not in run("topics", "list").out.split()


def test_lines_go_in_and_come_out(run: Run) -> None:
    run("topics", "create", "lines", "--partitions", "1")
    ran = run("produce", "lines", stdin=b"a\n\nb\r\nlast without end")
    assert (ran.code, ran.err) == (0, "4 records acknowledged\n")
    assert _consumed(run, "lines") == b"a\n\nb\nlast without end\n"
    assert _consumed(run, "lines", "-n", "2") == b"a\n\n"
    assert run("produce", "lines").err == "0 records acknowledged\n"


def test_keys_stand_before_the_separator(run: Run) -> None:
    run("topics", "create", "keyed", "--partitions", "1")
    assert run("produce", "keyed", "-k", "\\t", stdin=b"k\tv\n\tx\ty\n").code == 0
    assert _consumed(run, "keyed", "-k", "=") == b"k=v\n=x\ty\n"


def test_a_line_without_separator_stops_it_and_what_came_before_is_delivered(run: Run) -> None:
    run("topics", "create", "stopped", "--partitions", "1")
    ran = run("produce", "stopped", "-k", ":", stdin=b"a:1\nb:2\nc\nd:4\n")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "2 records acknowledged",
        "ConfigError: line 3 of standard input has no key separator ':': 'c'",
    ]
    assert _consumed(run, "stopped") == b"1\n2\n"


def test_a_line_that_is_too_large_is_named(run: Run) -> None:
    run("topics", "create", "large", "--partitions", "1")
    ran = run("produce", "large", stdin=b"a\n" + b"x" * 2_000_000)
    assert ran.code == 1
    assert ran.err.startswith("1 record acknowledged\nInvalidRecord: line 2 of standard input: ")
    assert _consumed(run, "large") == b"a\n"


def test_binary_lines_pass_as_they_are(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(byte for byte in range(256) if byte not in b"\r\n")
    run("topics", "create", "binary", "--partitions", "1")
    assert run("produce", "binary", stdin=data).code == 0
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, write_through=True))
    assert run("consume", "binary", "--from-beginning", "-n", "1").code == 0
    assert written.getvalue() == data + b"\n"


def test_only_one_partition_is_read_if_asked_for(run: Run) -> None:
    run("topics", "create", "parts", "--partitions", "3")
    run("produce", "parts", "-X", "partitioner.class=round_robin", stdin=b"x\n" * 30)
    counts = [_consumed(run, "parts", "--partition", str(number)).count(b"x") for number in range(3)]
    assert sum(counts) == 30
    assert min(counts) > 0
    assert (
        "--partition 3: topic parts has partitions 0 to 2" in run("consume", "parts", "--partition", "3").err
    )


def test_a_reader_that_leaves_ends_it_quietly(cluster: Cluster, run: Run) -> None:
    run("topics", "create", "piped", "--partitions", "1")
    run("produce", "piped", stdin=b"0123456789\n" * 20_000)
    with start(
        "consume", "piped", "--from-beginning", bootstrap_servers=cluster.bootstrap_servers
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0123456789\n"
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert re.fullmatch(
            r"((waiting for|no connection to) [^\n]*\n)*[\d,]+ records?\n", process.stderr.read()
        )


def test_ctrl_c_ends_consume_cleanly(cluster: Cluster, run: Run) -> None:
    run("topics", "create", "waiting", "--partitions", "1")
    run("produce", "waiting", stdin=b"a\n")
    with start(
        "consume", "waiting", "--from-beginning", bootstrap_servers=cluster.bootstrap_servers
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, "")
    assert re.fullmatch(r"((waiting for|no connection to) [^\n]*\n)*\d records?\n", err)


def test_ctrl_c_lets_produce_deliver_what_it_read(cluster: Cluster, run: Run) -> None:
    run("topics", "create", "cut-short", "--partitions", "1")
    with start("produce", "cut-short", bootstrap_servers=cluster.bootstrap_servers) as process:
        assert process.stdin is not None
        process.stdin.write("a\nb\n")
        process.stdin.flush()
        assert run("consume", "cut-short", "--from-beginning", "-n", "2").out == "a\nb\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        err = process.stderr.read()
        assert process.wait(PATIENCE_S) == 0
    slow = r"((waiting for|no connection to) [^\n]*\n)*"
    assert re.fullmatch(f"{slow}interrupted; sending what was read\n2 records acknowledged\n", err)


def test_ctrl_c_does_not_wait_for_a_cluster_that_went_away(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_kafka.cli.producing.FLUSH_S", 0.1)
    doomed = Cluster(brokers=1)

    class Typist:
        """Standard input: a line, the end of the cluster, another line, Ctrl-C."""

        @property
        def buffer(self) -> Iterator[bytes]:
            yield b"before\n"
            doomed.close()
            yield b"after\n"
            raise KeyboardInterrupt

    ran = run("produce", "gone", "-b", doomed.bootstrap_servers, stdin=Typist())
    assert ran.code == 1
    assert ran.err.startswith("interrupted; sending what was read\n")
    assert ran.err.splitlines()[-1].startswith("TimedOut: ")


def test_ctrl_c_while_waiting_for_a_cluster_ends_with_130() -> None:
    with start("topics", "list", bootstrap_servers="127.0.0.1:1") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("waiting for 127.0.0.1:1")
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert process.wait(PATIENCE_S) == 130
    assert err == "interrupted\n"


def test_sigterm_ends_with_143(cluster: Cluster, run: Run) -> None:
    run("topics", "create", "terminated", "--partitions", "1")
    run("produce", "terminated", stdin=b"a\n")
    with start(
        "consume", "terminated", "--from-beginning", bootstrap_servers=cluster.bootstrap_servers
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a\n"
        process.terminate()
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143
    assert "Traceback" not in err


def test_help_and_version(run: Run) -> None:
    assert run("--version").out.startswith("fairlead ")
    for command in ("up", "topics", "produce", "consume", "perf", "lab", "demo"):
        assert command in run("--help").out
        assert run(command, "--help").code == 0


def test_no_table_is_cut_or_wrapped_where_there_is_no_terminal() -> None:
    with start("lab", "list") as process:
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert [line.split()[0] for line in out.splitlines()] == ["experiment", *EXPERIMENTS, *TRIALS]
    assert "…" not in out


def test_settings_come_from_a_file_or_a_profile(
    run_at: Run, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("NAME_OF_CLIENT", "somebody")
    servers = cluster.bootstrap_servers
    refused = run_at("profile", "add", "here", "-b", servers, "-X", "sasl.password=hunter2")
    assert (refused.code, "hunter2" in refused.err) == (1, False)
    assert "a profile keeps no secrets; give ${env:NAME} or ${file:PATH:KEY}" in refused.err
    assert (
        run_at(
            "profile",
            "add",
            "here",
            "-b",
            servers,
            "-X",
            "client.id=a",
            "-X",
            "sasl.password=${env:NAME_OF_CLIENT}",
        ).code
        == 0
    )
    assert run_at("profile", "list").out == "here\n"
    assert (
        run_at("profile", "show", "here").out
        == f"bootstrap.servers={servers}\nclient.id=a\nsasl.password=${{env:NAME_OF_CLIENT}}\n"
    )
    assert run_at("topics", "list", "--profile", "here").code == 0
    assert "did you mean here?" in run_at("topics", "list", "--profile", "hree").err
    file = tmp_path / "client.properties"
    file.write_text(f"# as for Kafka's tools\nbootstrap.servers={servers}\nrequest.timeout.ms=0x\n")
    assert (
        "request.timeout.ms: expected a whole number (int)"
        in run_at("topics", "list", "--command-config", str(file)).err
    )
    assert run_at("topics", "list", "--command-config", str(file), "-X", "request.timeout.ms=9000").code == 0
    assert (
        "cannot be read (no such file or directory)"
        in run_at("topics", "list", "--command-config", str(tmp_path / "none")).err
    )
    assert run_at("profile", "delete", "here").code == 0
    assert "there is none; `fairlead profile add here` makes it" in run_at("profile", "show", "here").err


def test_ctrl_c_within_an_import_ends_with_the_same_exit_code(tmp_path: Path) -> None:
    """CPython remembers a KeyboardInterrupt that was raised inside of an exec of text, and kills
    itself by SIGINT at its end."""
    (tmp_path / "interrupted.py").write_text(
        "import fairlead_kafka.cli.application as application\n"
        "from fairlead_kafka.cli.main import main\n"
        "application.invoke = lambda arguments: exec('raise KeyboardInterrupt')\n"
        "main()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (130, "interrupted\n")
