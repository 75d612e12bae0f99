"""`lab batching`: the table's cases, its arithmetic, and what the limits tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlead_kafka.base.errors import BufferExhausted, RecordTooLarge
from fairlead_kafka.cli.main import run as run_command
from fairlead_kafka.lab import batching
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.batching import CODECS, DEFAULT_CODECS, PROFILES, Case, cases, row_of
from fairlead_kafka.lab.batching_limits import GOT_MAX_LETTERS, LIMITS, Limit, limit_row, reported_by
from fairlead_kafka.lab.experiment import AS_KAFKA
from fairlead_kafka.lab.held import Held
from fairlead_kafka.lab.pacing import Journal, Load
from fairlead_kafka.testing import Cluster


def test_a_profile_is_every_combination_and_every_level_where_batches_are_largest() -> None:
    for profile in PROFILES.values():
        found = cases(profile)
        assert (
            len(found)
            == len(set(found))
            == len(profile.batch_sizes) * len(profile.lingers_ms) * 5 + len(CODECS) - 5
        )
        assert {(case.batch_size, case.linger_ms) for case in found if case.codec not in DEFAULT_CODECS} == {
            profile.deep
        }
        assert profile.deep == (max(profile.batch_sizes), max(profile.lingers_ms))


def test_options_replace_their_part_of_the_profile() -> None:
    assert cases(PROFILES["quick"], [10], [0, 5], ["zstd 9"]) == [
        Case(10, 0, "zstd 9"),
        Case(10, 5, "zstd 9"),
    ]
    codec = {"compression.type": "zstd", "compression.zstd.level": 9}
    assert Case(10, 5, "zstd 9").config() == {**AS_KAFKA, "batch.size": 10, "linger.ms": 5, **codec}


def test_a_row_counts_what_the_partitions_hold() -> None:
    clock = iter(range(0, 10**9, 1_000_000))
    journal = Journal(load := Load(4, 1000, 0), lambda: next(clock))
    for number in range(4):
        journal.sent(number)
        journal.acked(number)
    row = row_of(
        Case(1024, 5, "lz4"), load, journal, [Held(0, 3, 1, 150), Held(1, 1, 1, 50)], value_bytes=400
    )
    assert row == {
        "batch_size": 1024, "linger_ms": 5, "compression": "lz4",
        "records": 4, "batches": 2, "records_per_batch": 2.0, "bytes": 200, "ratio": 0.5, "p50_ms": 1.0,
        "p99_ms": 1.0,
    }  # fmt: skip


def test_a_target_that_cannot_be_had_gives_a_skipped_row(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def unavailable(name: str) -> Iterator[str]:
        raise Unavailable(f"no {name} here")
        yield ""

    monkeypatch.setattr(batching, "target", unavailable)
    assert batching.run(lambda _: None, targets=["apache-kafka"]) == [
        {"table": "batching", "target": "apache-kafka", "skipped": "no apache-kafka here"}
    ]


def test_the_plot_has_a_panel_for_each_linger_and_a_line_for_each_codec(tmp_path: Path) -> None:
    where = {"table": "batching", "target": "fairlead"}
    rows = [
        {"batch_size": size, "linger_ms": linger_ms, "compression": codec, "ratio": 0.5, "p99_ms": 3.0,
        **where}
        for size in (1024, 16_384) for linger_ms in (0, 100) for codec in ("none", "zstd", "zstd 9")
    ]  # fmt: skip
    batching.plot(
        [
            *rows,
            {"table": "limits", "target": "fairlead", "limit": "a record too large", "got": "RecordTooLarge"},
        ],
        tmp_path / "plot.svg",
    )
    said = (tmp_path / "plot.svg").read_text()
    assert said.count("linger.ms 0, fairlead") == said.count("linger.ms 100, fairlead") == 2
    assert "zstd 9" not in said


def test_what_the_caller_got_is_said_in_words() -> None:
    limit = Limit("x", "y", records=10, size=1)
    assert reported_by(limit, 10, 1, []) == "acknowledged"
    assert reported_by(limit, 10, 4, []) == "acknowledged, in 4 batches"
    assert reported_by(limit, 0, 0, [RecordTooLarge("too large")] * 10) == "RecordTooLarge: too large"
    assert (
        reported_by(limit, 7, 1, [BufferExhausted("full")])
        == "7 acknowledged; 1 × BufferExhausted: full; 2 not submitted"
    )
    assert len(reported_by(limit, 0, 0, [RecordTooLarge("x" * 500)] * 10)) <= GOT_MAX_LETTERS + 20


GOT = {
    "a record beyond max.request.size": (0, "RecordTooLarge: the record for topic"),
    "a record beyond max.message.bytes of the topic": (0, "RecordTooLarge: "),
    "the same record, compressed below it": (1, "acknowledged"),
    "a record beyond max.request.size that would compress": (0, "RecordTooLarge: the record for topic"),
    "a batch beyond max.message.bytes of the topic": (200, "acknowledged, in "),
    "buffer.memory used up, brokers there": (500, "acknowledged, in "),
    "buffer.memory used up, no broker there": (0, "BufferExhausted: no room for a record"),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1) as made:
        yield made


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_every_limit_gives_the_caller_what_it_should(cluster: Cluster, limit: Limit) -> None:
    row = limit_row(cluster.bootstrap_servers, f"limit-{LIMITS.index(limit)}", limit)
    acked, got = GOT[limit.name]
    assert (row["limit"], row["setting"], row["records"], row["acked"]) == (
        limit.name,
        limit.setting,
        limit.records,
        acked,
    )
    assert row["got"].startswith(got), row["got"]


def test_one_case_on_a_real_cluster_sends_every_record_in_full_batches(cluster: Cluster) -> None:
    row = batching.measure(
        cluster.bootstrap_servers, "one-case", Case(16_384, 50, "zstd"), Load(300, 100_000, 0)
    )
    assert (row["records"], row["compression"], row["batch_size"], row["linger_ms"]) == (
        300,
        "zstd",
        16_384,
        50,
    )
    assert 1 <= row["batches"] < 30
    assert 0 < row["ratio"] < 0.7, "log lines compress"
    assert row["requests"] >= 1


def test_the_command_is_there_and_refuses_what_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["lab", "batching", "--compression", "rar"]) == 1
    assert "--compression rar: must be one of none, gzip" in capsys.readouterr().err.replace("\n", " ")
