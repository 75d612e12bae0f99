"""The transcript: hundreds of requests to our cluster and to Apache Kafka, answered alike, or with
a reason in `differences.toml`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fairlead_kafka.cli.main import run as run_command
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.transcript import Transcript, run_secured, run_transcript, secured_steps, three_steps
from fairlead_kafka.lab.transcript.compare import Explanation, Symbols, differences, explanations, plain
from fairlead_kafka.lab.transcript.holders import DENIED, NOBODY, PREFIXED
from fairlead_kafka.lab.transcript.run import CONFIG, STEPS, ask_ours, classify
from fairlead_kafka.lab.transcript.steps import Seen, Step, ask
from fairlead_kafka.lab.transcript.talk import Outcome
from fairlead_kafka.wire import ApiKey, Message


def test_our_cluster_answers_as_apache_kafka_does_and_every_difference_has_a_reason(
    kafka_jars: str,
) -> None:
    result = run_transcript()
    assert result.unexplained == []
    assert result.unused == [], "explained in differences.toml, and not different"
    figures = result.figures()
    assert figures["requests"] > 1000
    assert figures["same"] > 0.9 * figures["requests"], "most answers are the same without an explanation"
    assert figures["requests"] == figures["same"] + figures["explained"] + figures["unexplained"]


def test_our_secured_cluster_refuses_and_answers_as_apache_kafka_does(kafka_jars: str) -> None:
    result = run_secured()
    assert result.unexplained == []
    assert result.unused == [], "explained in differences_secured.toml, and not different"
    figures = result.figures()
    assert figures["requests"] > 3000
    assert figures["same"] > 0.8 * figures["requests"], "most answers are the same without an explanation"


def test_every_api_that_is_served_is_in_the_transcript() -> None:
    from fairlead_kafka.broker.dispatch import REGISTRY

    # Apache Kafka serves telemetry only with a reporter that others write (test_client_metrics).
    served = set(REGISTRY) - {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    assert {step.api for step in STEPS} >= served
    assert {step.api for step in secured_steps.STEPS} >= served


def test_whoever_needs_a_right_is_asked_with_it_and_without_and_with_its_variants() -> None:
    for case in secured_steps.CASES:
        users = set(case.users())
        assert NOBODY in users
        assert all({user, user + DENIED, user + PREFIXED} <= users for user in case.needs.split())


@pytest.mark.parametrize(
    "file", ["differences.toml", "differences_replicated.toml", "differences_secured.toml"]
)
def test_every_explanation_is_whole(file: str) -> None:
    assert all(len(one.reason) > 20 and one.where for one in explanations(file))


def test_an_explanation_of_a_text_is_refused() -> None:
    """Each of its letters would be a pattern, and `*` matches all."""
    with pytest.raises(TypeError, match="must be a list"):
        Explanation("SHARE_FETCH", "*error_code", "a reason that is long enough")  # type: ignore[arg-type]


def test_the_transcript_of_three_brokers_says_what_is_led_where_and_what_is_refused() -> None:
    """On our cluster alone: three of Apache Kafka take long to start, and `fairlead lab transcript
    --replicated` has them."""
    outcomes, symbols = ask_ours(three_steps.STEPS, 1_700_000_000_000, CONFIG)
    answers = {outcome.name: plain(outcome, symbols) for outcome in outcomes}

    def code(name: str) -> int:
        (topic,) = answers[f"PRODUCE 9: {name}"]["responses"]
        return int(topic["partition_responses"][0]["error_code"])

    assert [code(f"to broker 0's partition, of broker {node}") for node in range(3)] == [0, 6, 6]
    assert (code("to who led before, of broker 0"), code("to who leads now, of broker 1")) == (6, 0)
    assert (code("with two in sync, of broker 2"), code("with one in sync, of broker 2")) == (0, 19)
    (topic,) = answers["METADATA 12: one is left, of broker 2"]["topics"]
    assert [(row["leader_id"], row["isr_nodes"]) for row in topic["partitions"]] == [(2, [2])] * 3


# --- How answers are compared


def asked(**fields: Any) -> Outcome:
    step: Step = ask("a step", ApiKey.METADATA, (1,))
    return Outcome(step, 1, Message(**fields))


def compared(ours: Outcome, theirs: Outcome, *known: Explanation) -> Any:
    mine, other = plain(ours, Symbols(Seen(0))), plain(theirs, Symbols(Seen(0)))
    return classify([(ours, mine)], [other], list(known))


def test_what_systems_make_up_is_no_difference() -> None:
    ours = asked(
        port=9092,
        cluster_id="a",
        error_message="our words",
        producer_id=7,
        rows=[Message(producer_id=7), Message(producer_id=9)],
    )
    theirs = asked(
        port=1234,
        cluster_id="b",
        error_message="theirs",
        producer_id=1,
        rows=[Message(producer_id=1), Message(producer_id=4)],
    )
    assert compared(ours, theirs).same == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"error_code": 3},
        {"port": -1},
        {"error_message": None},
        {"rows": []},
        {"rows": [Message(name="a", producer_id=8)]},
        {"records": b""},
        {"producer_id": -1},
    ],
)
def test_any_other_field_is(changed: dict[str, Any]) -> None:
    row = Message(name="a", producer_id=7)
    fields = {
        "error_code": 0,
        "port": 1,
        "error_message": "x",
        "producer_id": 7,
        "rows": [row],
        "records": None,
    }
    unlike = compared(asked(**fields), asked(**{**fields, **changed}))
    assert len(unlike.unexplained) == 1


def test_a_difference_is_named_by_its_path_and_may_be_explained() -> None:
    ours, theirs = asked(rows=[Message(name="a", x=1)]), asked(rows=[Message(name="a", x=2)])
    assert compared(ours, theirs).unexplained == ["METADATA 1: a step: rows[a].x: ours 1, Apache Kafka 2"]
    known = Explanation("METADATA", ["rows[*].x"], "because", ours="1")
    result = compared(ours, theirs, known)
    assert (result.explained, result.unexplained, result.unused) == (1, [], [])
    for other in (
        replace(known, ours="3"),
        replace(known, api="FETCH"),
        replace(known, step="b*"),
        replace(known, where=["rows[b].x"]),
    ):
        result = compared(ours, theirs, replace(other, used=0))
        assert (result.explained, len(result.unexplained), len(result.unused)) == (0, 1, 1)


def test_what_others_made_is_neither_compared_nor_counted() -> None:
    step = ask("all", ApiKey.LIST_TRANSACTIONS, (0,), mine=True)

    def listed(*rows: tuple[str, int]) -> Outcome:
        return Outcome(
            step,
            0,
            Message(states=[Message(transactional_id=name, producer_id=number) for name, number in rows]),
        )

    assert compared(listed(("transcript-a", 1)), listed(("somebody", 7), ("transcript-a", 8))).same == 1


def test_order_in_a_list_is_no_difference_but_number_is() -> None:
    rows = [{"name": "a", "x": 1}, {"name": "b", "x": 2}]
    assert list(differences(rows, rows[::-1])) == []
    assert [path for path, *_ in differences(rows, rows[:1])] == ["[b]"]
    assert [path for path, *_ in differences([*rows, rows[0]], rows)] == ["[a#1]"]


# --- The command


@pytest.mark.parametrize("lines", [[], ["METADATA 1: a step: x: ours 1, Apache Kafka 2"]])
def test_the_command_prints_figures_and_fails_for_what_is_not_explained(
    lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Transcript(requests=4, apis=2, same=2, explained=1 if lines else 2, unexplained=lines)
    monkeypatch.setattr("fairlead_kafka.lab.transcript.run_transcript", lambda status, kafka: found)
    assert run_command(["lab", "transcript", "--json", "-"]) == (1 if lines else 0)
    said = capsys.readouterr()
    expected = {"requests": 4, "apis": 2, "same": 2, "explained": found.explained, "unexplained": len(lines)}
    assert json.loads(said.out) == expected
    assert all(line in said.err for line in lines)


@pytest.mark.parametrize("further", [["--replicated"], ["--apache-kafka", "localhost:1"]])
def test_the_secured_one_goes_with_no_other(further: list[str]) -> None:
    assert run_command(["lab", "transcript", "--secured", *further]) != 0


def test_the_command_says_why_there_is_no_apache_kafka(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unavailable(status: object, kafka: object) -> Transcript:
        raise Unavailable("there is no java on the PATH")

    monkeypatch.setattr("fairlead_kafka.lab.transcript.run_transcript", unavailable)
    assert run_command(["lab", "transcript", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "system": "apache-kafka",
        "skipped": "there is no java on the PATH",
    }
