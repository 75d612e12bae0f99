"""A log cut at any byte comes back as a prefix of what was written; a log with any byte changed is
cut or refused, never believed."""

from __future__ import annotations

import logging

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.records import decode
from tests.support.broker_driver import Driver, batch, fetch, produce

LOG = "/data/log/000000000001.log"
PARTITIONS = 3

logging.getLogger("fairlead_kafka.broker").addHandler(logging.NullHandler())


def written(sizes: list[tuple[int, int]]) -> tuple[Driver, list[list[bytes]]]:
    driver = Driver()
    driver.controller.create_topic("events", PARTITIONS)
    client = driver.connect()
    logs: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for number, (partition, size) in enumerate(sizes):
        value = (b"%d:" % number).ljust(size, b"x")
        assert produce(client, batch([value]), partition=partition).error_code == 0
        logs[partition].append(value)
    driver.kill()
    return driver, logs


def read(driver: Driver) -> list[list[bytes]]:
    client = driver.connect()
    rows = [fetch(client, 0, partition=partition) for partition in range(PARTITIONS)]
    return [decode(bytes(row.records)).values.to_arrow().to_pylist() if row.records else [] for row in rows]


writings = st.lists(st.tuples(st.integers(0, PARTITIONS - 1), st.integers(0, 80)), min_size=1, max_size=6)


@settings(max_examples=60)
@given(writings, st.data())
def test_a_log_cut_anywhere_recovers_a_prefix(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    driver, logs = written(sizes)
    kept = data.draw(st.integers(0, len(driver.disk.files[LOG])))
    del driver.disk.files[LOG][kept:]
    assert driver.start().error is None
    recovered = read(driver)
    for before, after in zip(logs, recovered, strict=True):
        assert before[: len(after)] == after
    again = produce(driver.connect(), batch([b"next"]))
    assert again.base_offset == len(recovered[0])


@settings(max_examples=60)
@given(writings, st.data())
def test_a_changed_byte_is_never_believed(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    driver, logs = written(sizes)
    file = driver.disk.files[LOG]
    position = data.draw(st.integers(0, len(file) - 1))
    file[position] ^= data.draw(st.integers(1, 255))
    if driver.start().error is None:
        assert len(file) <= position, "the changed byte was cut off"
        for before, after in zip(logs, read(driver), strict=True):
            assert before[: len(after)] == after
