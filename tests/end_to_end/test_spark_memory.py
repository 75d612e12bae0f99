"""The memory of a Spark task is bounded by options, not by what it reads or writes: our side of it,
in a process without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fairlead_kafka

ROWS = 400_000
ROW_BYTES = 512
DATA_MB = ROWS * ROW_BYTES / 2**20
GROWTH_MAX_MB = DATA_MB / 2

TASKS = """
import sys
from itertools import repeat
from pathlib import Path
import pyarrow as pa
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.offsets import OffsetRange
from fairlead_kafka.spark.options import parse_read_options, parse_write_options
from fairlead_kafka.spark.reading import read_task
from fairlead_kafka.spark.schema import source_schema
from fairlead_kafka.spark.writer import write_at_least_once

def peak_mb():
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM:")).split()[1]) / 1024

def measured(work):
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is resident now
    before = peak_mb()
    print(work(), round(peak_mb() - before), flush=True)

servers, rows, row_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
batch = pa.record_batch({"value": pa.array([b"x" * row_bytes] * 10_000, pa.binary())})
writing = parse_write_options({"kafka.bootstrap.servers": servers, "topic": "big"})
measured(lambda: write_at_least_once(writing, repeat(batch, rows // batch.num_rows)).records)
reading = parse_read_options({"kafka.bootstrap.servers": servers, "subscribe": "big"})
whole = OffsetRange(TopicPartition("big", 0), 0, rows)
measured(lambda: sum(each.num_rows for each in read_task(reading, source_schema(reading.layout), [whole])))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")
def test_a_task_takes_no_more_memory_for_a_partition_of_any_size() -> None:
    pytest.importorskip("pyspark")
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic("big", partitions=1)])
        command = [sys.executable, "-c", TASKS, cluster.bootstrap_servers, str(ROWS), str(ROW_BYTES)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr
    for line in ran.stdout.splitlines():
        rows, growth_mb = map(int, line.split())
        assert rows == ROWS
        assert growth_mb < GROWTH_MAX_MB, f"{growth_mb} MB more for {DATA_MB:.0f} MB of data"
    assert len(ran.stdout.splitlines()) == 2
