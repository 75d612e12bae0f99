"""A topic made of a file of lines, in an embedded cluster: each line is a record, its first field
the key."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from fairlead_kafka.cli.demo.access_log import from_file
from fairlead_kafka.client import Admin, NewTopic, Producer
from fairlead_kafka.client.handles import TableAck
from fairlead_kafka.testing import Cluster

BROKERS = 3
TABLES_UNDER_WAY_MAX = 64
PERIOD_S = 0.001
"""Seconds. Records of so long are submitted together, where they come at a rate."""


@contextmanager
def filled_cluster(path: Path, topic: str, partitions: int, records_per_s: float | None) -> Iterator[str]:
    """`bootstrap.servers` of a cluster whose topic is filled from the file at `path`,
    `records_per_s` records a second (None: as fast as possible).

    ConfigError if the file cannot be read or is empty.
    """
    with Cluster(brokers=BROKERS) as cluster:
        config = {"bootstrap.servers": cluster.bootstrap_servers}
        with Admin(config) as admin:
            admin.create_topics([NewTopic(topic, partitions=partitions)])
        with Producer(config) as producer:
            producer.partitions_for(topic)
            under_way: deque[TableAck] = deque()
            for table in paced(from_file(path), records_per_s):
                under_way.append(producer.send_table(topic, table))
                if len(under_way) > TABLES_UNDER_WAY_MAX:
                    under_way.popleft().result()
            producer.flush()
            for sent in under_way:
                sent.result()
        yield cluster.bootstrap_servers


def paced(tables: Iterator[pa.Table], records_per_s: float | None) -> Iterator[pa.Table]:
    """The rows of the tables, each at its time at `records_per_s`: those of one millisecond as one
    table. None: the tables as they are, at once."""
    if records_per_s is None:
        yield from tables
        return
    rows, done, begun_s = max(1, round(records_per_s * PERIOD_S)), 0, time.perf_counter()
    for table in tables:
        for start in range(0, table.num_rows, rows):
            wait_s = begun_s + done / records_per_s - time.perf_counter()
            if wait_s > 0:
                time.sleep(wait_s)
            piece = table.slice(start, rows)
            done += piece.num_rows
            yield piece
