"""The pure parts of the command line: settings, options of several values, payloads, date formats,
tables."""

from __future__ import annotations

import importlib
import inspect
import random
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.application import COMMANDS
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.perf_consume import Count
from fairlead_kafka.cli.perf_options import (
    date_formatter,
    metric_lines,
    one_value_each,
    payloads,
    property_file,
    servers,
)
from fairlead_kafka.cli.record_input import Encoders, Outgoing, json_lines
from fairlead_kafka.cli.record_offsets import parse_offset
from fairlead_kafka.cli.record_values import Format
from fairlead_kafka.cli.terminal import counted, numbers, rows_table, settings
from fairlead_kafka.consumer import metric_names as _consumer  # noqa: F401  (entered in the table)
from fairlead_kafka.producer import metric_names as _producer  # noqa: F401

SEVERAL = ("--producer-props", "--command-property")


def test_settings_are_texts_with_an_equals_sign() -> None:
    assert settings(["linger.ms=5", " a = b=c ", "empty="]) == {"linger.ms": "5", "a": "b=c", "empty": ""}
    assert settings(None) == {}
    for wrong in ("linger.ms", "=5"):
        with pytest.raises(ConfigError, match=r"--property '.*': expected KEY=VALUE"):
            settings([wrong])


def test_a_property_goes_over_the_option() -> None:
    assert ClientOptions("a:1", ["bootstrap.servers=b:2"]).settings() == {"bootstrap.servers": "b:2"}


def test_servers_come_from_the_option_then_the_configs_then_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAIRLEAD_BOOTSTRAP_SERVERS", "environment:1")
    assert servers("option:1", {"bootstrap.servers": "config:1"}) == {"bootstrap.servers": "option:1"}
    assert servers(None, {"bootstrap.servers": "config:1"}) == {"bootstrap.servers": "config:1"}
    assert servers(None, {}) == {"bootstrap.servers": "environment:1"}
    monkeypatch.delenv("FAIRLEAD_BOOTSTRAP_SERVERS")
    assert servers(None, {}) == {"bootstrap.servers": "127.0.0.1:9092"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--producer-props a=1 b=2 --topic t", "--producer-props a=1 --producer-props b=2 --topic t"),
        ("--topic t --producer-props a=1", "--topic t --producer-props a=1"),
        ("--producer-props=a=1 b=2", "--producer-props a=1 --producer-props b=2"),
        ("--producer-props a=-1 --throughput -1", "--producer-props a=-1 --throughput -1"),
        (
            "--producer-props a=1 --command-property b=2 c=3",
            "--producer-props a=1 --command-property b=2 --command-property c=3",
        ),
        ("--producer-props --topic t", "--producer-props --topic t"),
        ("--topic=t x", "--topic=t x"),
    ],
)
def test_an_option_takes_all_the_values_that_follow(given: str, expected: str) -> None:
    assert one_value_each(given.split(), SEVERAL) == expected.split()


def test_properties_in_one_quoted_text_are_several() -> None:
    assert one_value_each(["--producer-props", "a=1 b.c=x y"], SEVERAL) == [
        "--producer-props",
        "a=1",
        "--producer-props",
        "b.c=x y",
    ]


def test_a_property_file_has_comments_and_says_where_it_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# a comment\n! another\n\nlinger.ms = 5\nacks=all\n")
    assert property_file(path, "--command-config") == {"linger.ms": "5", "acks": "all"}
    assert property_file(None, "--command-config") == {}
    path.write_text("linger.ms")
    with pytest.raises(ConfigError, match=r"client\.properties: 'linger\.ms': expected KEY=VALUE"):
        property_file(path, "--command-config")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        property_file(path, "--command-config")
    with pytest.raises(ConfigError, match="No such file"):
        property_file(tmp_path / "missing", "--command-config")


def test_payloads_are_letters_of_the_size_asked_for_and_the_same_each_time() -> None:
    made = payloads(100, None, "\\n", False, 50, random.Random(0))
    assert made is not None
    assert made == payloads(100, None, "\\n", False, 50, random.Random(0))
    assert len(made) == len(set(made)) == 50
    assert {len(one) for one in made} == {100}
    assert set(b"".join(made)) <= set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    large = payloads(1 << 24, None, "\\n", False, 50, random.Random(0))
    assert large is not None
    assert [len(one) for one in large] == [1 << 24]


def test_payloads_of_a_file_are_what_stands_between_delimiters(tmp_path: Path) -> None:
    path = tmp_path / "payloads"
    path.write_bytes(b"a\nb,c\n")
    assert payloads(None, path, "\\n", False, 1, random.Random(0)) == [b"a", b"b,c"]
    assert payloads(None, path, ",", False, 1, random.Random(0)) == [b"a\nb", b"c\n"]
    path.write_bytes(b"\n\n")
    with pytest.raises(ConfigError, match="no payload"):
        payloads(None, path, "\\n", False, 1, random.Random(0))
    with pytest.raises(ConfigError, match="No such file"):
        payloads(None, tmp_path / "missing", "\\n", False, 1, random.Random(0))


@pytest.mark.parametrize(("size", "monotonic"), [(None, False), (10, True)])
def test_one_kind_of_payload_has_to_be_chosen(size: int | None, monotonic: bool) -> None:
    with pytest.raises(ConfigError, match="exactly one of"):
        payloads(size, None, "\\n", monotonic, 1, random.Random(0))
    assert payloads(None, None, "\\n", True, 1, random.Random(0)) is None


def test_dates_are_shown_by_javas_patterns() -> None:
    when = datetime(2026, 3, 4, 5, 6, 7, 8_000)
    assert date_formatter("yyyy-MM-dd HH:mm:ss:SSS")(when) == "2026-03-04 05:06:07:008"
    assert date_formatter("dd.MM.yyyy 'at' HH%")(when) == "04.03.2026 at 05%"
    for wrong in ("EEE", "HH:mm 'open"):
        with pytest.raises(ConfigError, match="--date-format"):
            date_formatter(wrong)


def test_consumer_figures_have_the_columns_of_kafkas() -> None:
    start, end = Count(10.0, 0, 0), Count(12.0, 4 << 20, 1000)
    assert end.figures(start) == "4.0000, 2.0000, 1000, 500.0000, 0, 2000, 2.0000, 500.0000"
    assert (
        end.figures(Count(11.0, 3 << 20, 900)) == "4.0000, 1.0000, 1000, 100.0000, 0, 1000, 1.0000, 100.0000"
    )


def test_metrics_are_sorted_and_aligned() -> None:
    assert metric_lines("me", {"producer-metrics": {"b-c": 1, "a": 2.5}}) == [
        "",
        "Metric Name                           Value",
        "producer-metrics:a:{client-id=me}   : 2.500",
        "producer-metrics:b-c:{client-id=me} : 1.000",
    ]


def test_metrics_of_nodes_topics_and_partitions_are_tagged_with_them() -> None:
    lines = metric_lines(
        "me",
        {
            "producer-node-metrics": {"node-0": {"a": 1}},
            "producer-topic-metrics": {"t": {"b": 2}},
            "consumer-fetch-manager-partition-metrics": {TopicPartition("t", 3): {"c": 4}},
        },
    )
    assert [line.split(" : ")[0].rstrip() for line in lines[2:]] == [
        "consumer-fetch-manager-metrics:c:{client-id=me, topic=t, partition=3}",
        "producer-node-metrics:a:{client-id=me, node-id=node-0}",
        "producer-topic-metrics:b:{client-id=me, topic=t}",
    ]


def test_records_are_counted_in_words() -> None:
    assert [counted(number) for number in (0, 1, 2, 12_345)] == [
        "0 records",
        "1 record",
        "2 records",
        "12,345 records",
    ]


def test_a_table_of_rows_shows_every_key_and_cuts_nothing() -> None:
    rows = [
        {"system": "[ours]", "records_per_s": 1_234_567, "share": 0.5},
        {"system": "theirs", "skipped": "why " * 50},
    ]
    console = Console(width=1000)
    with console.capture() as capture:
        console.print(rows_table(rows))
    header, ours, theirs = capture.get().splitlines()
    assert header.split() == ["system", "records_per_s", "share", "skipped"]
    assert ours.split() == ["[ours]", "1234567", "0.5"]
    assert ("why " * 50).strip() in theirs


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    """`fairlead --help` loads none of them, for that would take most of a second."""
    place, text = COMMANDS[name]
    module, _, attribute = place.partition(":")
    command = getattr(importlib.import_module(f"fairlead_kafka.cli.{module}"), attribute)
    own = command.info.help if attribute == "app" else inspect.getdoc(command)
    assert " ".join(own.split("\n\n")[0].split()) == text


def test_what_help_says_of_a_command_fits_into_its_line() -> None:
    places = {name: place for name, (place, _) in COMMANDS.items() if place.endswith(":app")}
    for place in places.values():
        module, _, attribute = place.partition(":")
        group: Any = typer.main.get_command(
            getattr(importlib.import_module(f"fairlead_kafka.cli.{module}"), attribute)
        )
        for name, command in group.commands.items():
            assert not command.get_short_help_str(80 - 6 - max(map(len, group.commands))).endswith("..."), (
                f"{module} {name}"
            )
    assert max(len(text) for _, text in COMMANDS.values()) <= 80 - 6 - max(map(len, COMMANDS))


def test_a_group_of_options_stands_where_its_argument_stood() -> None:
    said: list[object] = []

    @expanded
    def command(
        name: str, *, client: ClientOptions, quiet: Annotated[bool, typer.Option("--quiet")] = False
    ) -> None:
        """Say it."""
        said.append((name, client, quiet))

    parameters = inspect.signature(command).parameters
    assert list(parameters) == ["name", "bootstrap_servers", "properties", "quiet"]
    assert parameters["bootstrap_servers"].default == "127.0.0.1:9092"
    application = typer.Typer()
    application.command()(command)
    result = CliRunner().invoke(application, ["x", "-b", "a:1", "-X", "k=v", "--quiet"])
    assert (result.exit_code, said) == (0, [("x", ClientOptions("a:1", ["k=v"]), True)]), result.output


@pytest.mark.parametrize("number", ["9" * 5000, str(2**63)])
def test_numbers_beyond_64_bits_are_refused(number: str) -> None:
    with pytest.raises(
        ConfigError, match=r"--linger-ms 1,9.*: must be whole numbers from 0 on, of 64 bits at most"
    ):
        numbers("--linger-ms", f"1,{number}")
    for text in (number, f"-{number}", f"@{number}"):
        with pytest.raises(ConfigError, match="-o "):
            parse_offset(text, "-o")


def test_the_largest_numbers_are_taken() -> None:
    most = 2**63 - 1
    assert numbers("--linger-ms", f"0,{most}") == [0, most]
    assert parse_offset(str(most), "-o") == ("offset", most)
    assert parse_offset(f"-{most}", "-o") == ("before_end", most)
    assert parse_offset("@1769853600000", "-o") == ("time", 1769853600000)


def test_a_line_of_json_that_is_nested_too_deep_is_said_with_its_number() -> None:
    plain = Encoders("t", lambda text, _: text, Format.BYTES, lambda text, _: text, Format.BYTES)
    with pytest.raises(ConfigError, match=r"line 7 of standard input: no JSON: .* nested too deep"):
        json_lines(Outgoing(None, None), plain)(b'{"value":' + b"[" * 100_000, 7)
