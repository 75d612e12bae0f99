"""`fairlead perf`: command lines and output lines of Kafka's own tools."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from fairlead_kafka import Consumer, TopicPartition
from fairlead_kafka.testing import Cluster
from tests.support.command_line import Run, start
from tests.support.transaction_check import ends_when_complete
from tests.support.waiting import PATIENCE_S

WINDOW = re.compile(
    r"\d+ records sent, \d+\.\d records/sec \(\d+\.\d\d MB/sec\), \d+\.\d ms avg latency, \d+\.\d ms max "
    r"latency\."
)
TOTAL = re.compile(
    r"(\d+)( steady state)? records sent, \d+\.\d{6} records/sec \(\d+\.\d\d MB/sec\), \d+\.\d\d ms avg "
    r"latency, \d+\.\d\d ms max latency, "
    r"\d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)
FIGURES = r"\d+\.\d{4}, \d+\.\d{4}, (\d+), \d+\.\d{4}, 0, \d+, \d+\.\d{4}, \d+\.\d{4}"
CLOCK = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"


@pytest.fixture(scope="module")
def filled(cluster: Cluster) -> str:
    """A topic with 5,000 records of 100 bytes."""
    with start(
        *(
            "perf",
            "produce",
            "--topic",
            "filled",
            "--num-records",
            "5000",
            "--record-size",
            "100",
            "--throughput",
            "-1",
        ),
        bootstrap_servers=cluster.bootstrap_servers,
    ) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert TOTAL.fullmatch(out.splitlines()[-1])
    return "filled"


def test_a_command_line_from_kafkas_documentation_works(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIRLEAD_BOOTSTRAP_SERVERS")
    ran = run(
        *(
            "perf",
            "produce",
            "--topic",
            "docs",
            "--num-records",
            "2000",
            "--record-size",
            "100",
            "--throughput",
            "-1",
        ),
        *(
            "--producer-props",
            f"bootstrap.servers={cluster.bootstrap_servers}",
            "acks=1",
            "linger.ms=1",
            "enable.idempotence=false",
        ),
        *("--print-metrics",),
    )
    assert ran.code == 0, ran.err
    total, blank, header, *metrics = ran.out.splitlines()
    found = TOTAL.fullmatch(total)
    assert found is not None
    assert found[1] == "2000"
    assert (blank, header.split()) == ("", ["Metric", "Name", "Value"])
    assert any(
        re.fullmatch(
            r"producer-metrics:record-delivered-total:\{client-id=perf-producer-client\} +: 2000\.000", line
        )
        for line in metrics
    )


def test_warm_up_is_summed_up_apart(run: Run) -> None:
    ran = run(
        *(
            "perf",
            "produce",
            "--topic",
            "warm",
            "--num-records",
            "400",
            "--payload-monotonic",
            "--throughput",
            "1000",
        ),
        *("--warmup-records", "100", "--reporting-interval", "50"),
    )
    assert ran.code == 0, ran.err
    first, *windows, total, steady = ran.out.splitlines()
    assert (
        first == "Warmup first 100 records. Steady state results will print after the complete test summary."
    )
    assert windows.count("In steady state.") == 1
    assert all(WINDOW.fullmatch(line) for line in windows if line != "In steady state.")
    assert [TOTAL.fullmatch(line).groups() for line in (total, steady)] == [
        ("400", None),
        ("300", " steady state"),
    ]  # type: ignore[union-attr]


def test_payloads_come_from_a_file_and_configs_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "payloads").write_text("one,two")
    (tmp_path / "config").write_text("# none\nlinger.ms=1\n")
    ran = run(
        *("perf", "produce", "--topic", "from-file", "--num-records", "50", "--throughput", "-1"),
        *(
            "--payload-file",
            str(tmp_path / "payloads"),
            "--payload-delimiter",
            ",",
            "--producer.config",
            str(tmp_path / "config"),
        ),
    )
    assert ran.code == 0, ran.err
    values = run("consume", "from-file", "--from-beginning", "--until-end").out.split()
    assert len(values) == 50
    assert set(values) == {"one", "two"}


def test_records_are_sent_in_one_transaction_after_the_other(cluster: Cluster, run: Run) -> None:
    ran = run(
        *(
            "perf",
            "produce",
            "--topic",
            "in-transactions",
            "--num-records",
            "60",
            "--payload-monotonic",
            "--throughput",
            "1000",
        ),
        *("--transaction-duration-ms", "20"),
    )
    assert ran.code == 0, ran.err
    with Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "isolation.level": "read_committed"}
    ) as consumer:
        partitions = [
            TopicPartition("in-transactions", each.partition)
            for each in consumer.partitions_for("in-transactions")
        ]
        ends = ends_when_complete(cluster.bootstrap_servers, consumer, partitions)
        values = [
            int(value)
            for partition in partitions
            for table in consumer.read_range(partition, 0, ends[partition], columns=["value"])
            for value in table["value"].to_pylist()
        ]
    assert sorted(values) == list(range(60))
    assert sum(ends.values()) > 61, "records and markers: there was more than one transaction"


def test_a_group_reads_and_says_what_its_sharing_took(run: Run) -> None:
    topic = "perf-shared"
    assert (
        run(
            "perf",
            "produce",
            "--topic",
            topic,
            "--num-records",
            "100",
            "--record-size",
            "10",
            "--throughput",
            "-1",
        ).code
        == 0
    )
    ran = run("perf", "consume", "--topic", topic, "--num-records", "100", "--group", topic)
    assert ran.code == 0, ran.err
    figures = ran.out.splitlines()[-1].split(", ")
    assert figures[4] == "100"
    assert int(figures[6]) > 0, "the time until the first assignment"
    assert f"{topic}: Empty" in run("groups", "describe", topic).out


SENDING = ("perf", "produce", "--topic", "t", "--num-records", "10", "--throughput", "-1")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ["perf", "produce", "--topic", "t", "--num-records", "10", "--record-size", "1"],
            2,
            "Missing option '--throughput'",
        ),
        ([*SENDING], 1, "exactly one of --record-size, --payload-file and --payload-monotonic must be given"),
        ([*SENDING, "--record-size", "1", "--payload-monotonic"], 1, "exactly one of"),
        (
            [*SENDING[:-1], "0", "--record-size", "1"],
            1,
            "--throughput 0: records per second, more than 0, or -1",
        ),
        (
            [*SENDING, "--record-size", "1", "--warmup-records", "10"],
            1,
            "--warmup-records 10: must be fewer than --num-records 10",
        ),
        (
            [*SENDING, "--record-size", "1", "--transactional-id", "x", "--producer-props", "acks=1"],
            1,
            "transactional.id needs acks=all",
        ),
        (
            [*SENDING, "--record-size", "1", "--producer-props", "linger.ms=1", "nonsense"],
            1,
            "--command-property 'nonsense': expected KEY",
        ),
        ([*SENDING, "--record-size", "1", "--producer-props", "foo=1"], 1, "foo: unknown"),
        (
            [*SENDING, "--record-size", "1", "--command-config", "missing"],
            1,
            "--command-config missing: cannot be read (No such file",
        ),
        (["perf", "consume", "--num-records", "1"], 1, "exactly one of --topic and --include"),
        (
            ["perf", "consume", "--num-records", "1", "--include", "("],
            1,
            "--include '(': not a regular expression",
        ),
        (
            ["perf", "consume", "--num-records", "1", "--include", "nothing-like-it"],
            1,
            "the cluster has no topic of such a name",
        ),
        (
            ["perf", "consume", "--num-records", "1", "--topic", "t", "--date-format", "EEE"],
            1,
            "--date-format 'EEE'",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run: Run, arguments: list[str], code: int, said: str) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_reading_prints_a_header_and_a_line(run: Run, filled: str) -> None:
    ran = run("perf", "consume", "--topic", filled, "--messages", "5000")
    assert ran.code == 0, ran.err
    header, line = ran.out.splitlines()
    assert header == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
        "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )
    found = re.fullmatch(f"{CLOCK}, {CLOCK}, {FIGURES}", line)
    assert found is not None
    assert found[1] == "5000"
    assert (
        run("perf", "consume", "--topic", filled, "--num-records", "5000", "--hide-header").out.count("\n")
        == 1
    )


def test_detailed_lines_replace_the_summary(run: Run, filled: str) -> None:
    ran = run(
        *("perf", "consume", "--include", "fil+ed", "--num-records", "5000", "--show-detailed-stats"),
        *("--reporting-interval", "1", "--date-format", "HH"),
    )
    assert ran.code == 0, ran.err
    header, *lines = ran.out.splitlines()
    assert header.startswith("time, threadId, data.consumed.in.MB, ")
    counts = [re.fullmatch(rf"\d\d, 0, {FIGURES}", line) for line in lines]
    assert counts[-1] is not None
    assert counts[-1][1] == "5000"


def test_too_few_records_end_it_with_a_warning(run: Run, filled: str) -> None:
    ran = run("perf", "consume", "--topic", filled, "--num-records", "5001", "--timeout", "3000")
    assert ran.code == 0
    assert ran.err == "nothing came for 3 s; 5000 of 5001 records were read (see --timeout)\n"
    assert re.search(FIGURES, ran.out.splitlines()[-1])


def test_ctrl_c_sums_up_what_was_sent(cluster: Cluster) -> None:
    with start(
        *(
            "perf",
            "produce",
            "--topic",
            "interrupted",
            "--num-records",
            "1000000",
            "--record-size",
            "10",
            "--throughput",
            "1000",
        ),
        *("--reporting-interval", "100"),
        bootstrap_servers=cluster.bootstrap_servers,
    ) as process:
        assert process.stdout is not None
        assert WINDOW.fullmatch(process.stdout.readline().strip())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert TOTAL.fullmatch(out.splitlines()[-1])
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err


def test_a_reader_that_leaves_ends_it(cluster: Cluster) -> None:
    with start(
        *(
            "perf",
            "produce",
            "--topic",
            "left",
            "--num-records",
            "1000000",
            "--record-size",
            "10",
            "--throughput",
            "2000",
        ),
        *("--reporting-interval", "50"),
        bootstrap_servers=cluster.bootstrap_servers,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
