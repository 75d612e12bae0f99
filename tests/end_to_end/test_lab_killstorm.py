"""`fairlead lab killstorm`: a short storm over a real cluster of processes, and how it judges."""

from __future__ import annotations

import json

import pytest

from fairlead_kafka.lab import killstorm
from fairlead_kafka.lab.peers.storm import Results
from tests.support.command_line import Run


def test_nothing_acknowledged_is_lost_in_a_short_storm(run_at: Run) -> None:
    ran = run_at("lab", "killstorm", "--kills", "3", "--peers", "fairlead,confluent-kafka", "--json", "-")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert [row["system"] for row in rows] == ["fairlead", "confluent-kafka"]
    for row in rows:
        assert set(row) == {
            "system",
            "security",
            "kills",
            "acked",
            "lost",
            "duplicated",
            "unavailable_ms_max",
        }
        assert (row["kills"], row["lost"], row["duplicated"]) == (3, 0, 0)
        assert row["acked"] > 100, "to the end, and not only its first records"


def test_what_is_missing_and_what_is_there_twice_is_counted() -> None:
    acked = {1: 1_000, 2: 1_400, 3: 1_500}
    assert killstorm.comparison(acked, [3, 1, 1, 7, 7, 7]) == {
        "acked": 3,
        "lost": 1,
        "duplicated": 2,
        "unavailable_ms_max": 400,
    }
    assert killstorm.comparison(acked, [1, 2, 3])["lost"] == 0


def test_a_client_prints_its_first_result_at_once_and_the_others_at_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = Results()
    results.completed(4, None)
    first = capsys.readouterr().out
    assert set(killstorm.acknowledged(first)) == {4}
    results.completed(5, "timed out")
    results.completed(6, None)
    assert capsys.readouterr().out == ""
    results.print()
    others = capsys.readouterr().out
    assert others.splitlines()[0] == "failed 5 timed out"
    assert set(killstorm.acknowledged(first + others)) == {4, 6}


def test_what_clients_say_of_acknowledgements_is_read() -> None:
    assert killstorm.acknowledged("4 1000\nfailed 5 timed out\n6 1003\n") == {4: 1_000, 6: 1_003}
    said = [
        {"timestamp": 1, "name": "startup_complete"},
        {
            "timestamp": 9,
            "name": "producer_send_success",
            "key": None,
            "value": "4",
            "topic": "t",
            "partition": 0,
            "offset": 0,
        },
        {
            "timestamp": 10,
            "name": "producer_send_error",
            "value": "5",
            "topic": "t",
            "exception": "late",
            "message": "late",
        },
    ]
    assert killstorm.java_acknowledged("not JSON\n" + "\n".join(map(json.dumps, said))) == {4: 9}


def test_a_client_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killstorm, "SYSTEMS", {"confluent-kafka": "a_module_that_is_not_there"})
    (row,) = killstorm.run(lambda _: None, kills=1, systems=["confluent-kafka"], seed=1)
    assert row["system"] == "confluent-kafka"
    assert "a_module_that_is_not_there is not installed" in row["skipped"]
