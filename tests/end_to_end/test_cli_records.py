"""`fairlead produce` and `consume` with headers, times, offsets, formats, JSON and null."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import pytest

from fairlead_kafka import Producer
from fairlead_kafka.testing import Cluster
from tests.support.command_line import Run
from tests.support.schema_registry import schema_registry
from tests.support.waiting import PATIENCE_S


@pytest.fixture
def topic(run: Run, request: pytest.FixtureRequest) -> str:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    assert run("topics", "create", name, "--partitions", "1").code == 0
    return name


def read(run: Run, topic: str, *options: str) -> str:
    ran = run("consume", topic, "-o", "beginning", "--until-end", *options)
    assert ran.code == 0, ran.err
    return ran.out


def test_headers_keys_times_and_partitions_go_out_and_come_back(run: Run) -> None:
    run("topics", "create", "whole", "--partitions", "2")
    options = [
        "-H",
        "a=1",
        "-H",
        "none",
        "--key",
        "k",
        "-p",
        "1",
        "--timestamp",
        "2026-01-31T10:00:00.5+01:00",
    ]
    assert run("produce", "whole", *options, stdin=b"v\n").code == 0
    (row,) = [json.loads(line) for line in read(run, "whole", "--json").splitlines()]
    assert row == {
        "topic": "whole",
        "partition": 1,
        "offset": 0,
        "timestamp": 1769850000500,
        "timestamp_type": "create",
        "headers": [["a", "1"], ["none", None]],
        "key": "k",
        "value": "v",
    }
    shown = read(run, "whole", "-f", r"%t-%p@%o %T key=%k/%K value=%s/%S [%h] 100%%\n")
    assert shown == "whole-1@0 1769850000500 key=k/1 value=v/1 [a=1,none=NULL] 100%\n"


def test_what_consume_prints_as_json_produce_takes(run: Run, topic: str) -> None:
    run("topics", "create", f"{topic}-copy", "--partitions", "1")
    rows = [
        {"key": "k", "value": "v", "headers": {"h": "x", "n": None}, "timestamp": "2026-01-31T10:00"},
        {"key": None, "value": {"base64": base64.b64encode(b"\xff\x00").decode()}, "headers": []},
        {"value": None, "key": "gone"},
        {"value": 'äöü "quoted"\n', "partition": 0, "timestamp": 5},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert run("produce", topic, "--json", "-p", "0", stdin=lines).err == "4 records acknowledged\n"
    first = read(run, topic, "--json")
    assert run("produce", f"{topic}-copy", "--json", stdin=first.encode()).code == 0
    assert read(run, f"{topic}-copy", "--json") == first.replace(f'"{topic}"', f'"{topic}-copy"')
    assert [json.loads(line)["value"] for line in first.splitlines()] == [
        "v",
        {"base64": "/wA="},
        None,
        'äöü "quoted"\n',
    ]


def test_a_tombstone_is_written_and_shown(run: Run, topic: str) -> None:
    assert (
        run("produce", topic, "-p", "0", "-k", ":", "--null", "NULL", stdin=b"a:NULL\nNULL:b\n:\n").code == 0
    )
    rows = [json.loads(line) for line in read(run, topic, "--json").splitlines()]
    assert [(row["key"], row["value"]) for row in rows] == [("a", None), (None, "b"), ("", "")]
    assert read(run, topic, "-k", "=", "--null", "~") == "a=~\n~=b\n=\n"
    assert read(run, topic, "-f", "%K %S;") == "1 -1;-1 1;0 0;"


def test_reading_begins_and_stops_where_it_is_told(run: Run, topic: str) -> None:
    for number in range(10):
        stamp = str(1_700_000_000_000 + 1000 * number)
        run("produce", topic, "--timestamp", stamp, stdin=b"%d\n" % number)

    def values(*options: str) -> str:
        ran = run("consume", topic, *options)
        assert ran.code == 0, ran.err
        return ran.out.replace("\n", "")

    assert values("-o", "7", "--until-end") == "789"
    assert values("-o", "-3", "--until-end") == "789"
    assert values("-o", "-300", "-n", "2") == "01"
    assert values("-o", "@1700000004000", "--until", "@1700000006000") == "45"
    assert values("-o", "@2023-11-14T22:13:25", "--until", "-3") == "56"
    assert values("-o", "beginning", "--until", "2") == "01"
    assert values("-o", "@1970-01-01", "--until", "1") == "0"
    assert values("-o", "@2100-01-01", "--until-end") == ""
    assert values("-o", "end", "--until-end") == ""
    ran = run("consume", topic, "-o", "99", "--until-end")
    assert ran.err == f"--offset 99: {topic}-0 has offsets 0 to 10; taking 10\n0 records\n"


@pytest.mark.parametrize(
    ("form", "text", "data", "plain", "value"),
    [
        ("string", "ä", "ä".encode(), "ä", "ä"),
        ("json", '{"a": [1, null]}', b'{"a": [1, null]}', '{"a": [1, null]}', {"a": [1, None]}),
        ("integer", "-5", b"\xff\xff\xff\xfb", "-5", -5),
        ("long", "7", b"\0\0\0\0\0\0\0\x07", "7", 7),
        ("double", "1.5", b"\x3f\xf8\0\0\0\0\0\0", "1.5", 1.5),
        ("hex", "00ff", b"\x00\xff", "00ff", "00ff"),
        ("base64", "AP8=", b"\x00\xff", "AP8=", "AP8="),
    ],
)
def test_formats_of_values(
    run: Run, topic: str, form: str, text: str, data: bytes, plain: str, value: object
) -> None:
    option = ("--value-format", form, "--key-format", form)
    assert run("produce", topic, "-k", "|", *option, stdin=f"{text}|{text}\n".encode()).code == 0
    assert read(run, topic, "--value-format", "hex") == data.hex() + "\n"
    assert read(run, topic, "-k", "|", *option) == f"{plain}|{plain}\n"
    written = read(run, topic, "--json", *option)
    assert json.loads(written)["value"] == value
    assert run("produce", topic, "--json", *option, stdin=written.encode()).code == 0
    assert read(run, topic, "-k", "|", *option).split("\n")[1].replace(" ", "") == f"{plain}|{plain}".replace(
        " ", ""
    )


def test_avro_with_a_registry_and_without(run: Run, topic: str, tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "what", "type": "string"}],
    }
    file = tmp_path / "order.avsc"
    file.write_text(json.dumps(schema))
    line = b'{"id":7,"what":"tea"}\n'
    plain = ("--value-format", "avro", "--value-schema", str(file))
    assert run("produce", topic, *plain, stdin=line).code == 0
    assert read(run, topic, "--value-format", "hex") == "0e06746561\n"
    assert read(run, topic, *plain) == line.decode()
    with schema_registry() as registry:
        run("topics", "create", f"{topic}-r", "--partitions", "1")
        told = ("--value-format", "avro", "--schema-registry", registry.url)
        assert run("produce", f"{topic}-r", *told, "--value-schema", str(file), stdin=line).code == 0
        assert read(run, f"{topic}-r", *told) == line.decode()
        assert run("produce", f"{topic}-r", *told, stdin=line).code == 0  # by the latest schema
        assert read(run, f"{topic}-r", *told) == line.decode() * 2
    ran = run("consume", topic, "--value-format", "avro")
    assert ran.code == 1
    assert ran.err == (
        "ConfigError: --value-format avro: give --schema-registry URL, or --value-schema FILE "
        "for plain Avro\n"
    )


def test_only_committed_records_are_read_if_that_is_asked_for(run: Run, cluster: Cluster, topic: str) -> None:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic}
    with Producer(config) as producer:
        producer.init_transactions()
        for value, commit in ((b"no", False), (b"yes", True)):
            producer.begin_transaction()
            producer.send(topic, value).result(PATIENCE_S)
            producer.commit_transaction() if commit else producer.abort_transaction()
        assert read(run, topic) == "no\nyes\n"
        assert read(run, topic, "--isolation-level", "read_committed") == "yes\n"


def test_what_does_not_parse_is_said_with_its_place(run: Run, topic: str) -> None:
    run("produce", topic, stdin=b'{"a": 1}\n\xff\n')
    ran = run("consume", topic, "-o", "beginning", "--until-end", "--value-format", "json")
    assert (ran.code, ran.out) == (1, '{"a": 1}\n')
    assert ran.err.startswith("1 record\n")
    assert f"value of {topic}-0 at offset 1: UnicodeDecodeError: " in ran.err
    assert ran.err.endswith("; --value-format bytes or hex shows it as it is\n")


def test_binary_formats_pass_as_they_are(run: Run, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run("produce", topic, "--value-format", "hex", stdin=b"00ff0a\n")
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, write_through=True))
    assert run("consume", topic, "-o", "beginning", "-n", "1", "-f", r"%R%s\x00").code == 0
    assert written.getvalue() == b"\0\0\0\x03\x00\xff\n\0"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["consume", "t", "-o", "5x"],
            "--offset 5x: write beginning, end, 42, -5 (before the end), @2026-01-31T10:00 ",
        ),
        (
            ["consume", "t", "-o", "@tomorrow"],
            "--offset @tomorrow: 'tomorrow' is no time; write 2026-01-31T10:00, ",
        ),
        (
            ["consume", "t", "-o", "1", "--from-beginning"],
            "--from-beginning and --offset: both say where to start; ",
        ),
        (
            ["consume", "t", "--until", "1", "--until-end"],
            "--until and --until-end: both say where to stop; ",
        ),
        (["consume", "t", "-g", "g", "-o", "-5"], "--offset -5: a group goes on where it committed; "),
        (["consume", "t", "-g", "g", "--until", "5"], "--until 5: with --group only the end can be given"),
        (
            ["consume", "t", "-g", "g", "-p", "0"],
            "--group shares out the partitions by itself: leave --partition",
        ),
        (["consume", "t", "--json", "-f", "%s"], "--json and --format: each says how records are printed; "),
        (
            ["consume", "t", "-f", "%x"],
            "--format '%x': there is no %x; there are %s %S %R %k %K %T %h %t %p %o %%",
        ),
        (["consume", "t", "-f", "%s%"], "--format '%s%': there is no %; there are "),
        (
            ["consume", "t", "--registry-property", "a=b"],
            "--registry-property: name the registry with --schema-",
        ),
        (
            ["produce", "t", "-H", "=x"],
            "--header '=x': write NAME=VALUE, or NAME for a header without a value",
        ),
        (["produce", "t", "--key", "a", "-k", ":"], "--key and --key-separator: both say what the key is; "),
        (
            ["produce", "t", "--json", "--null", "x"],
            "--json: a line says itself what its key is, and what is null",
        ),
        (
            ["produce", "t", "--timestamp", "noon"],
            "--timestamp: 'noon' is no time; write 2026-01-31T10:00, with +01",
        ),
        (
            ["produce", "t", "--value-format", "avro", "--value-schema", "none.avsc"],
            "--value-schema none.avsc: No such file or directory",
        ),
    ],
)
def test_options_that_make_no_sense_are_said_in_one_line(run: Run, arguments: list[str], said: str) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"ConfigError: {said}"), ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "line", "said"),
    [
        (["--json"], b"{", "ConfigError: line 1 of standard input: no JSON: Expecting property name"),
        (
            ["--json"],
            b"[1]",
            "ConfigError: line 1 of standard input: must be an object with key, value, headers, ",
        ),
        (
            ["--json"],
            b'{"valve": 1}',
            "ConfigError: line 1 of standard input: 'valve' is unknown; there are key, ",
        ),
        (
            ["--json"],
            b'{"value": 1}',
            "ConfigError: line 1 of standard input: 1 is no text; --value-format json ",
        ),
        (
            ["--json"],
            b'{"value": "", "partition": "0"}',
            "ConfigError: line 1 of standard input: partition must be a ",
        ),
        (
            ["--json"],
            b'{"value": "", "headers": 1}',
            "ConfigError: line 1 of standard input: headers must be an ",
        ),
        (
            ["--value-format", "json"],
            b"nonsense",
            "InvalidRecord: line 1 of standard input: JSONDecodeError: Expecting value: line 1 column 1 "
            "(char 0); the value 'nonsense' is to be json",
        ),
        (
            ["--value-format", "integer"],
            b"1.5",
            "InvalidRecord: line 1 of standard input: ValueError: invalid literal",
        ),
        (
            ["--value-format", "hex"],
            b"0g",
            "InvalidRecord: line 1 of standard input: ValueError: non-hexadecimal ",
        ),
    ],
)
def test_a_line_that_makes_no_sense_is_said_with_its_number(
    run: Run, topic: str, options: list[str], line: bytes, said: str
) -> None:
    ran = run("produce", topic, *options, stdin=line + b"\n")
    assert ran.code == 1
    assert ran.err.splitlines()[0] == "0 records acknowledged"
    assert ran.err.splitlines()[1].startswith(said), ran.err
    assert len(ran.err.splitlines()) == 2


@pytest.mark.parametrize(
    "option",
    [("-o", "5"), ("--until-end",), ("-p", "0"), ("-g", "g"), ("--isolation-level", "read_committed")],
)
def test_what_a_share_group_decides_itself_is_not_taken(run: Run, option: tuple[str, ...]) -> None:
    ran = run("consume", "t", "--share", "s", *option)
    assert ran.code == 1
    assert ran.err.startswith("ConfigError: --share goes with --from-beginning alone: brokers choose")


def test_records_of_a_share_group_are_printed_as_others_are(run: Run, topic: str) -> None:
    group = f"{topic}-share"
    assert run("produce", topic, "-k", ":", "-p", "0", stdin=b"a:1\nb:2\n").code == 0
    ran = run("consume", topic, "--share", group, "--from-beginning", "-n", "1", "-f", "%k=%s@%o;")
    assert (ran.code, ran.out) == (0, "a=1@0;"), ran.err
    begins = f"share group {group} begins in {topic} (share.auto.offset.reset=earliest) with the first record"
    assert ran.err.splitlines() == [begins, "1 record"]
    ran = run("consume", topic, "--share", group, "-n", "1", "--json")
    assert [(row["key"], row["value"], row["offset"]) for row in ran.rows()] == [("b", "2", 1)]
