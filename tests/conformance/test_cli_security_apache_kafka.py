"""`fairlead acls`, `users` and `quotas` on Apache Kafka, beside Kafka's own tools."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka import AclBinding, Admin, ClientQuotaEntity, ScramMechanism, UserScramCredentialUpsertion
from fairlead_kafka.testing.certificates import PASSWORD
from tests.support.command_line import Run, runner
from tests.support.java_tools import JavaTools
from tests.support.log_ins import logs_in
from tests.support.secured_kafka import USER, SecuredKafka
from tests.support.waiting import until

NEVER_SHOWN = "a-p4ssw0rd-th4t-n0b0dy-s33s"
WIDTH = 80


@pytest.fixture
def run(secured: SecuredKafka, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(secured.plaintext, capsys, monkeypatch)


def listed(run: Run, *options: str) -> list[dict[str, Any]]:
    ran = run("acls", "list", *options, "--json", "-")
    assert ran.code == 0, ran.err
    return ran.rows()


SAME_AS_KAFKAS = {
    "producer": ["--producer", "--topic", "orders", "--topic", "bills"],
    "producer of transactions": ["--producer", "--topic", "orders", "--transactional-id", "ids"],
    "consumer": ["--consumer", "--topic", "orders", "--group", "readers"],
    "both": [
        "--producer",
        "--consumer",
        "--topic",
        "orders",
        "--group",
        "readers",
        "--transactional-id",
        "ids",
    ],
    "operations": ["--operation", "Read", "--operation", "DescribeConfigs", "--topic", "orders"],
    "all by default": ["--topic", "orders", "--group", "*"],
    "cluster": ["--cluster", "--operation", "ClusterAction"],
    "hosts": [
        "--allow-host",
        "10.0.0.1",
        "--allow-host",
        "10.0.0.2",
        "--topic",
        "orders",
        "--operation",
        "Read",
    ],
    "denied": [
        "--deny-principal",
        "User:eve",
        "--deny-host",
        "10.0.0.3",
        "--topic",
        "orders",
        "--operation",
        "Write",
    ],
    "prefix": ["--prefixed", "--topic", "orders-", "--producer"],
}
"""Options of `fairlead acls add` which are those of `kafka-acls --add`, but for `--prefixed`."""


@pytest.mark.usefixtures("no_rights_after")
@pytest.mark.parametrize("name", SAME_AS_KAFKAS)
def test_the_same_options_give_the_same_rights_as_kafka_s_own_tool(
    secured: SecuredKafka, secured_admin: Admin, tools: JavaTools, run: Run, name: str
) -> None:
    options = [*SAME_AS_KAFKAS[name], *([] if name == "denied" else ["--allow-principal", "User:alice"])]

    def told() -> list[AclBinding]:
        return secured_admin.describe_acls()

    ran = run("acls", "add", *options)
    assert ran.code == 0, ran.err
    until(lambda: len(told()) == ran.out.count("added: "))
    ours = told()
    removed = run("acls", "remove", *options)
    assert (removed.code, sorted(removed.out.splitlines())) == (
        0,
        sorted(ran.out.replace("added", "removed").splitlines()),
    )
    until(lambda: not told())
    again = run("acls", "remove", *options)
    assert (again.code, again.out) == (0, "")
    assert "nothing was removed" in again.err
    in_kafkas_words = [
        word
        for each in options
        for word in (("--resource-pattern-type", "prefixed") if each == "--prefixed" else (each,))
    ]
    tools.run("acls", "--bootstrap-server", secured.plaintext, "--add", *in_kafkas_words)
    until(lambda: told() == ours)


@pytest.mark.usefixtures("no_rights_after")
def test_rights_are_listed_by_what_applies_and_by_whom(
    run: Run, secured_admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    for options in (
        ("--allow-principal", "User:alice", "--topic", "orders", "--operation", "describe-configs"),
        ("--allow-principal", "User:alice", "--prefixed", "--topic", "ord", "--operation", "Read"),
        ("--allow-principal", "User:*", "--topic", "*", "--operation", "Describe"),
        ("--deny-principal", "User:eve", "--topic", "other"),
    ):
        assert run("acls", "add", *options).code == 0
    until(lambda: len(secured_admin.describe_acls()) == 4)
    assert [(row["resource_name"], row["pattern_type"]) for row in listed(run, "--topic", "orders")] == [
        ("*", "literal"),
        ("ord", "prefixed"),
        ("orders", "literal"),
    ]
    assert [row["resource_name"] for row in listed(run, "--topic", "ord", "--prefixed")] == ["ord"]
    assert listed(run, "--principal", "User:eve") == [
        {
            "resource_type": "topic",
            "resource_name": "other",
            "pattern_type": "literal",
            "principal": "User:eve",
            "host": "*",
            "operation": "All",
            "permission": "Deny",
        }
    ]
    shown = run("acls", "list").out
    assert "User:alice" in shown
    assert "DescribeConfigs" in shown
    gone = run("acls", "remove", "--allow-principal", "User:alice")
    assert sorted(gone.out.splitlines()) == [
        "removed: Allow User:alice DescribeConfigs on topic orders",
        "removed: Allow User:alice Read on topic ord (prefixed)",
    ]
    until(lambda: len(secured_admin.describe_acls()) == 2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["add", "--topic", "t"], "say for whom: --allow-principal or --deny-principal"),
        (
            ["add", "--allow-principal", "User:a"],
            "say on what: --topic, --group, --transactional-id or --cluster",
        ),
        (
            ["add", "--allow-principal", "alice", "--topic", "t"],
            "--allow-principal: a principal is written Type:name, such as User:alice",
        ),
        (["add", "--allow-principal", "User:a", "--topic", "t", "--operation", "Raed"], "did you mean Read?"),
        (
            ["add", "--allow-principal", "User:a", "--group", "g", "--operation", "Write"],
            "a group has no operation Write; it has All, Read",
        ),
        (["add", "--allow-principal", "User:a", "--producer"], "--producer needs a topic: add --topic"),
        (
            ["add", "--allow-principal", "User:a", "--consumer", "--topic", "t"],
            "--consumer needs a group: add --group",
        ),
        (
            ["add", "--allow-principal", "User:a", "--producer", "--topic", "t", "--operation", "Read"],
            "leave --operation out",
        ),
        (
            ["add", "--allow-principal", "User:a", "--producer", "--topic", "t", "--group", "g"],
            "leave --group out, or add --consumer",
        ),
        (["add", "--allow-host", "10.0.0.1", "--deny-principal", "User:a", "--topic", "t"], "give both"),
        (["remove"], "say which: --topic"),
        (["list", "--principal", "alice"], "a principal is written Type:name"),
    ],
)
def test_options_of_rights_that_make_no_sense_are_one_line(run: Run, options: list[str], says: str) -> None:
    ran = run("acls", *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert says in ran.err


def test_a_password_is_piped_in_or_referred_to(
    run: Run, secured: SecuredKafka, secured_admin: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha_256, sha_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
    piped = run(
        "users",
        "set",
        "heidi",
        "--mechanism",
        "scram-sha-256",
        "--iterations",
        "5000",
        stdin=b"first\nsecond\n",
    )
    assert (piped.code, piped.out) == (0, "set: heidi, SCRAM-SHA-256 (5,000 iterations)\n")
    monkeypatch.setenv("HEIDIS", "from the environment")
    assert (
        run("users", "set", "heidi", "--password", "${env:HEIDIS}").out
        == "set: heidi, SCRAM-SHA-512 (8,192 iterations)\n"
    )
    until(lambda: len(secured_admin.describe_user_scram_credentials().get("heidi", ())) == 2)
    quiesce(secured_admin)
    assert logs_in(secured, "heidi", "first", sha_256)
    assert logs_in(secured, "heidi", "from the environment", sha_512)
    (tmp_path / "password").write_text("from a file\n")
    assert run("users", "set", "heidi", "--password", f"${{file:{tmp_path / 'password'}}}").code == 0
    quiesce(secured_admin)
    assert logs_in(secured, "heidi", "from a file", sha_512)
    assert run("users", "list", "heidi", "--json").rows() == [
        {"user": "heidi", "mechanism": "SCRAM-SHA-256", "iterations": 5000},
        {"user": "heidi", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]
    assert re.search(r"heidi +SCRAM-SHA-512 +8192", run("users", "list").out)
    assert run("users", "remove", "heidi", "--mechanism", "SCRAM-SHA-256").out == "removed: heidi\n"
    until(lambda: len(secured_admin.describe_user_scram_credentials()["heidi"]) == 1)
    missing = run("users", "remove", "heidi", "nobody")
    assert (missing.code, missing.out) == (1, "removed: heidi\n")
    assert "failed: nobody: RESOURCE_NOT_FOUND" in missing.err
    until(lambda: "heidi" not in secured_admin.describe_user_scram_credentials())
    quiesce(secured_admin)
    assert not logs_in(secured, "heidi", "from a file", sha_512)


def test_a_password_is_no_argument_and_is_not_repeated(run: Run) -> None:
    refused = run("users", "set", "ivan", "--password", NEVER_SHOWN)
    assert (refused.code, refused.out) == (1, "")
    assert "others can see what stands in a command line" in refused.err
    assert NEVER_SHOWN not in refused.err
    assert "no password: standard input has no first line" in run("users", "set", "ivan").err
    assert (
        "must be SCRAM-SHA-256 or SCRAM-SHA-512"
        in run("users", "set", "ivan", "--mechanism", "PLAIN", stdin=b"x\n").err
    )
    assert run("users", "set", "ivan", "--iterations", "1", stdin=b"x\n").code == 2


@pytest.mark.parametrize(("again", "code"), [(NEVER_SHOWN, 0), ("something else", 1)])
def test_a_password_is_typed_twice_and_not_shown(
    secured: SecuredKafka, secured_admin: Admin, again: str, code: int
) -> None:
    ours, its = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "fairlead_kafka.cli.main",
        "users",
        "set",
        "judy",
        "-b",
        secured.plaintext,
    ]
    process = subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, start_new_session=True, close_fds=True
    )
    os.close(its)
    shown = b""
    for prompt, line in ((b"password of judy: ", NEVER_SHOWN), (b"again: ", again)):
        while prompt not in shown:
            shown += os.read(ours, 1000)
        os.write(ours, f"{line}\n".encode())
    with contextlib.suppress(OSError):  # how a terminal says that nobody is there any more
        while more := os.read(ours, 1000):
            shown += more
    assert process.wait() == code
    os.close(ours)
    assert NEVER_SHOWN not in shown.decode()
    if code:
        assert b"the two passwords differ; nothing was changed" in shown
    else:
        until(lambda: "judy" in secured_admin.describe_user_scram_credentials())
        quiesce(secured_admin)
        assert logs_in(secured, "judy", NEVER_SHOWN, ScramMechanism.SCRAM_SHA_512)


def test_quotas_are_set_listed_and_removed(run: Run, secured_admin: Admin) -> None:
    done = run(
        "quotas", "set", "--user", "kim", "--producer-byte-rate", "1048576", "--request-percentage", "12.5"
    )
    assert (done.code, done.out) == (
        0,
        "set: user kim, producer_byte_rate 1,048,576\nset: user kim, request_percentage 12.5\n",
    )
    assert run("quotas", "set", "--user", "kim", "--client-id-default", "--consumer-byte-rate", "1").code == 0
    assert run("quotas", "set", "--ip", "127.0.0.8", "--connection-creation-rate", "5").code == 0
    until(lambda: len(secured_admin.describe_client_quotas()) == 3)
    rows = run("quotas", "list", "--user", "kim", "--json").rows()
    assert sorted(rows, key=lambda row: len(row["entity"])) == [
        {"entity": {"user": "kim"}, "quotas": {"producer_byte_rate": 1048576.0, "request_percentage": 12.5}},
        {"entity": {"user": "kim", "client-id": None}, "quotas": {"consumer_byte_rate": 1.0}},
    ]
    shown = run("quotas", "list").out
    assert re.search(r"user kim, client-id \(default\) +consumer_byte_rate +1\n", shown)
    assert re.search(r"ip 127.0.0.8 +connection_creation_rate +5\n", shown)
    assert (
        run("quotas", "remove", "--user", "kim", "--quota", "request_percentage").out
        == "removed: user kim, request_percentage\n"
    )
    until(lambda: run("quotas", "remove", "--user", "kim", "--quota", "request_percentage").err != "")
    assert run("quotas", "remove", "--user", "kim").out == "removed: user kim, producer_byte_rate\n"
    assert run("quotas", "remove", "--user", "kim", "--client-id-default").code == 0
    assert run("quotas", "remove", "--ip", "127.0.0.8").code == 0
    until(lambda: not secured_admin.describe_client_quotas())
    none = run("quotas", "remove", "--user", "kim")
    assert (none.code, none.out, none.err) == (0, "", "nothing was removed: user kim has no quotas\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["set", "--user", "a"], "say how much: --producer-byte-rate"),
        (["set", "--producer-byte-rate", "1"], "say whose: --user, --client-id, both of them, or --ip"),
        (
            ["set", "--user", "a", "--user-default", "--producer-byte-rate", "1"],
            "either --user or --user-default",
        ),
        (["set", "--user", "a", "--ip", "::1", "--producer-byte-rate", "1"], "a quota is for"),
        (["set", "--user", "a", "--producer-byte-rate", "0"], "must be a number above 0"),
        (["set", "--user", "a", "--connection-creation-rate", "1"], "failed: user a: INVALID_REQUEST"),
        (["remove"], "say whose"),
    ],
)
def test_options_of_quotas_that_make_no_sense_are_one_line(run: Run, options: list[str], says: str) -> None:
    ran = run("quotas", *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert says in ran.err


@pytest.mark.usefixtures("no_rights_after")
def test_settings_of_a_log_in_come_from_a_file_or_a_profile(
    run: Run, secured: SecuredKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HERS", PASSWORD)
    servers = secured.settings("SASL")["bootstrap.servers"]
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": "${env:HERS}",
    }
    (tmp_path / "client.properties").write_text(
        "".join(f"{key}={value}\n" for key, value in settings.items())
    )
    kept = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
    assert run("profile", "add", "lab", "-b", servers, *kept).code == 0
    assert run("acls", "add", "--allow-principal", "User:nobody", "--cluster", "--profile", "lab").code == 0

    def refused(command: list[str], *how: str) -> bool:
        ran = run(*command, *how)
        return (
            ran.code == 1
            and "CLUSTER_AUTHORIZATION_FAILED" in ran.err
            and "needs the right to Describe" in ran.err
        )

    until(
        lambda: refused(["acls", "list"], "--profile", "lab")
    )  # nobody has all rights on the cluster now, and so nobody else has any
    for command in (["acls", "list"], ["users", "list"], ["quotas", "list"]):
        assert refused(command, "--profile", "lab")
        assert refused(command, "-b", servers, "--command-config", str(tmp_path / "client.properties"))


DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "security.md"


def recipes(language: str) -> str:
    """The last block of a language in the document's section about rights, users and quotas: one
    of the shell's before it starts a cluster to try them on."""
    section = (
        DOCUMENT.read_text(encoding="utf-8")
        .partition("## Rights, users and quotas\n")[2]
        .partition("\n## ")[0]
    )
    found: str = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)[-1]
    return str(found)


@pytest.mark.usefixtures("no_rights_after")
def test_the_commands_in_the_document_do_what_it_says(
    run: Run, secured_admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALICES_PASSWORD", PASSWORD)
    before = secured_admin.describe_user_scram_credentials([USER])
    assert USER == "alice", "whose password is set anew at the end"
    said = {}
    for command in recipes("sh").splitlines():
        words = shlex.split(command.replace("< password.txt", ""), comments=True)
        ran = run(*words[1:], stdin=PASSWORD.encode())
        assert ran.code == 0, (command, ran.err)
        said[" ".join(words[1:])] = ran
        if words[2] in ("set", "add", "remove"):
            assert ran.out.count("\n") >= 1, command
            quiesce(secured_admin)
    assert said["acls add --allow-principal User:alice --producer --topic orders"].out.count("added") == 3
    assert len(said["acls list --principal User:alice --json"].rows()) == 6
    assert said["acls remove --allow-principal User:alice"].out.count("removed") == 6
    assert said["acls remove --topic orders"].out == "removed: Deny User:eve Write on topic orders\n"
    until(lambda: USER not in secured_admin.describe_user_scram_credentials())
    again = [UserScramCredentialUpsertion(USER, info, PASSWORD) for info in before[USER]]
    secured_admin.alter_user_scram_credentials(again)
    until(lambda: secured_admin.describe_user_scram_credentials().get(USER) == before[USER])


def quiesce(admin: Admin) -> None:
    """Have the controller write one thing more, and wait until the broker has it: then it has what
    came before."""
    marker = ClientQuotaEntity({"client-id": "marker"})
    for wanted in ({"producer_byte_rate": 1.0}, None):
        admin.alter_client_quotas({marker: wanted or {"producer_byte_rate": None}})
        until(lambda wanted=wanted: admin.describe_client_quotas().get(marker) == wanted)  # type: ignore[misc]


def test_the_program_in_the_document_runs(secured: SecuredKafka, secured_admin: Admin) -> None:
    program = recipes("python").replace("localhost:9092", secured.plaintext)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "CLUSTER_ACTION" in ran.stdout
    until(
        lambda: (
            not secured_admin.describe_acls() and "bob" not in secured_admin.describe_user_scram_credentials()
        )
    )
