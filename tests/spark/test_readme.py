"""The README's Spark program, run as it stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairlead_kafka

README = Path(__file__).parents[2] / "README.md"


def test_the_spark_program_in_the_readme_runs(spark: Any, servers: str, read: Callable[..., Any]) -> None:
    programs = [
        program
        for program in re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
        if "spark" in program
    ]
    assert programs
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        admin.create_topics([fairlead_kafka.NewTopic(name, partitions=2) for name in ("events", "counts")])
    if not any("producer.send" in program for program in programs):
        with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
            for number in range(30):
                producer.send("events", b"v", key=b"k%d" % (number % 3))
    for program in programs:
        exec(re.sub(r"(?m)^servers = .*$", "", program), {"servers": servers})
    assert {(bytes(row.key), bytes(row.value)) for row in read(subscribe="counts").collect()} == {
        (b"k0", b"10"),
        (b"k1", b"10"),
        (b"k2", b"10"),
    }
