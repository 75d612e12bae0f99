"""`fairlead up` in a process of its own, and `fairlead lab`."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.command_line import Run, start
from tests.support.waiting import PATIENCE_S

MAP = "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"


@contextmanager
def _up(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A cluster in a process of its own, and its address; killed at the end if it still runs."""
    with start("up", "--port", "0", *arguments) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"(\d) brokers? up: bootstrap.servers=(\S+)", process.stdout.readline())
            assert found is not None
            assert found[2].count(":") == int(found[1])
            yield process, found[2]
        finally:
            process.kill()


def test_data_is_kept_from_one_cluster_to_the_next(run_at: Run, tmp_path: Path) -> None:
    folder = str(tmp_path / "data")
    with _up("--data-dir", folder) as (process, servers):
        assert run_at("topics", "create", "kept", "--partitions", "1", "-b", servers).code == 0
        assert run_at("produce", "kept", "-b", servers, stdin=b"a\nb\n").code == 0
        refused = run_at("up", "--port", "0", "--data-dir", folder)
        assert refused.code == 1
        assert "is in use by another cluster" in refused.err
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
        assert (process.wait(PATIENCE_S), err) == (0, "")
        assert out.splitlines() == [f"data in {folder}", "Ctrl-C stops it", "stopping"]
    with _up("--data-dir", folder) as (process, servers):
        assert run_at("consume", "kept", "--from-beginning", "--until-end", "-b", servers).out == "a\nb\n"
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_a_temporary_folder_goes_with_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with _up("--brokers", "2") as (process, _):
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert not list(tmp_path.iterdir())


def test_the_address_of_every_listener_is_told() -> None:
    with _up("-X", "listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0", "-X", MAP) as (process, _):
        assert process.stdout is not None
        assert re.fullmatch(r"listener OUTSIDE: bootstrap.servers=127.0.0.1:\d+\n", process.stdout.readline())


FAULTS = """
[[fault]]
api = "PRODUCE"
topic = "refused"
answer = "TOPIC_AUTHORIZATION_FAILED"
message = "not this one"

[[fault]]
api = "METADATA"
delay_ms = 1.5
times = 2
after = 1

[[fault]]
api = "PRODUCE"
disconnect = true
served = true
times = 1
"""


def test_faults_by_request_are_read_from_a_file(run_at: Run, tmp_path: Path) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(FAULTS)
    with _up("--faults", str(path)) as (process, servers):
        assert process.stdout is not None
        told = [process.stdout.readline().rstrip() for _ in range(4)][1:]
        assert told == [
            "fault on PRODUCE, topic='refused': answer TOPIC_AUTHORIZATION_FAILED",
            "fault on METADATA: delay 1.5 ms",
            "fault on PRODUCE: disconnect once it is served",
        ]
        for topic in ("refused", "taken"):
            assert run_at("topics", "create", topic, "--partitions", "1", "-b", servers).code == 0
        refused = run_at("produce", "refused", "-b", servers, stdin=b"a\n")
        assert refused.code == 1
        assert "TOPIC_AUTHORIZATION_FAILED" in refused.err
        assert run_at("produce", "taken", "-b", servers, stdin=b"a\n").code == 0
        assert run_at("consume", "taken", "--from-beginning", "--until-end", "-b", servers).out == "a\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[[fault]]\napi = 'FETCH'\n",
            "fault 1: it takes one of answer, delay_ms, drop, disconnect; there is none",
        ),
        (
            "[[fault]]\ndrop = true\ndelay_ms = 3\n",
            "fault 1: it takes one of answer, delay_ms, drop, disconnect; there is delay_ms and drop",
        ),
        (
            "[[fault]]\ndrop = true\n[[fault]]\ndrop = true\ntopics = 't'\n",
            "fault 2: topics is unknown; did you mean topic?",
        ),
        (
            "[[fault]]\ndelay_ms = 1\nserved = true\n",
            "fault 1: served is unknown; with delay_ms it takes api, topic, partition, group, "
            "transactional_id, client_id, principal, broker, times, after, delay_ms",
        ),
        ("[[fault]]\ndrop = true\ntimes = 'two'\n", "fault 1: times must be a whole number, not 'two'"),
        ("[[fault]]\ndrop = false\n", "fault 1: drop must be true; leave the fault out instead"),
        ("[[fault]]\nanswer = 'OOPS'\n", "fault 1: answer: Kafka has no error 'OOPS'"),
        (
            "[[fault]]\ndrop = true\napi = 'PRODUSE'\n",
            "fault 1: on: brokers serve no API 'PRODUSE'; did you mean PRODUCE?",
        ),
        ("[[faults]]\n", "'faults' is unknown; each fault is a table [[fault]]"),
        ("", "it has no fault; each is a table [[fault]]"),
        ("fault = \n", "no TOML: "),
    ],
)
def test_a_fault_that_is_wrong_is_said_with_its_place(
    run_at: Run, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "faults.toml"
    path.write_text(text)
    ran = run_at("up", "--port", "0", "--faults", str(path))
    assert ran.code == 1
    assert f"ConfigError: {path}: {said}" in ran.err


def test_a_port_in_use_is_named(run_at: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run_at("up", "--port", str(port))
    assert ran.code == 1
    assert f"cannot listen on 127.0.0.1:{port}: address already in use" in ran.err


def test_what_is_wrong_is_said_in_one_line(run_at: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for arguments, code, said in (
        (("--port", "80000"), 2, "'--port'"),
        (("--brokers", "0"), 2, "'--brokers'"),
        (("-X", "foo=1"), 1, "broker config: foo: unknown"),
        (
            ("--port", "0", "--host", "192.0.2.1"),
            1,
            "cannot listen on 192.0.2.1:0: cannot assign requested address; give another address",
        ),
        (("--data-dir", str(tmp_path / "file")), 1, "cannot be used (File exists); name a folder"),
    ):
        ran = run_at("up", *arguments)
        assert ran.code == code
        assert said in ran.err
        assert ran.err.count("\n") == 1


def test_the_lab_refuses_what_it_does_not_know_before_it_starts(run_at: Run) -> None:
    for arguments, said in (
        (("kernels", "--profile", "x"), "--profile x: must be one of quick, full"),
        (("throughput", "--target", "foo"), "--target foo: must be one of apache-kafka, fairlead"),
        (("throughput", "--peers", ""), "--peers : must be one of raw, "),
        (("throughput", "--compression", "rar"), "--compression rar: must be one of none, "),
        (("kernels", "--json", "no-such-folder/x"), "--json no-such-folder/x: cannot be written"),
    ):
        ran = run_at("lab", *arguments)
        assert (ran.code, ran.out) == (1, "")
        assert said in ran.err


def test_the_kernels_are_measured(run_at: Run, tmp_path: Path) -> None:
    ran = run_at("lab", "kernels", "--json", str(tmp_path / "report.json"))
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].split() == [
        "kernel",
        "record_size",
        "threads",
        "records_per_s",
        "gb_per_s",
    ]
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["experiment"], report["parameters"]) == ("kernels", {"profile": "quick"})
    assert {(row["kernel"], row["threads"]) for row in report["rows"]} == {
        ("encode", 1),
        ("encode", 2),
        ("decode", 1),
        ("decode", 2),
    }
    assert all(row["records_per_s"] > 0 for row in report["rows"])


def test_throughput_is_measured_on_our_own_cluster(run_at: Run) -> None:
    ran = run_at(
        "lab",
        "throughput",
        "--target",
        "fairlead",
        "--peers",
        "fairlead.send_table",
        "--records",
        "20000",
        "--json",
        "-",
    )
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert [(row["system"], row["target"]) for row in rows] == [("fairlead.send_table", "fairlead")]
    assert rows[0]["acked"] == 20_000, rows
    assert "round 1 of 1: fairlead.send_table …" in ran.err
