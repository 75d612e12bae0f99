"""Spark programs of the documents, run as they stand: the README's, and the tutorial's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairlead_kafka
from tests.support.spark_workers import workers_start

ROOT = Path(__file__).parents[2]


def programs(page: str) -> list[str]:
    """The Spark programs of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [each for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "spark" in each]


def test_the_spark_program_in_the_readme_runs(spark: Any, servers: str, read: Callable[..., Any]) -> None:
    assert programs("README.md")
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        admin.create_topics([fairlead_kafka.NewTopic(name, partitions=2) for name in ("events", "counts")])
    if not any("producer.send" in program for program in programs("README.md")):
        with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
            for number in range(30):
                producer.send("events", b"v", key=b"k%d" % (number % 3))
    for program in programs("README.md"):
        exec(re.sub(r"(?m)^servers = .*$", "", program), {"servers": servers})
    assert {(bytes(row.key), bytes(row.value)) for row in read(subscribe="counts").collect()} == {
        (b"k0", b"10"),
        (b"k1", b"10"),
        (b"k2", b"10"),
    }


def test_the_spark_programs_of_the_tutorial_run(
    spark: Any,
    servers: str,
    read: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count, copy = (
        # other tests of this cluster have a topic `counts`
        each.replace("127.0.0.1:9092", servers).replace('"counts"', '"visit_counts"')
        for each in programs("docs/tutorials/spark-pipeline.md")
    )
    monkeypatch.chdir(tmp_path)
    copy = copy.replace('"checkpoint"', f'"{tmp_path}/checkpoint"')
    exec(count, {})
    shown = capsys.readouterr().out
    assert all(f"|host {host}|   10|" in shown for host in range(3)), shown
    for copies in (30, 60):
        with workers_start():
            exec(copy, {})
        assert read(subscribe="copies").count() == copies
        exec(count, {})
