"""`isolation.level`: what readers of committed data see, where they stop, and where their positions
are."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.wire import ApiKey
from tests.support.client_rig import Rig
from tests.support.metrics import lags

T0 = TopicPartition("t", 0)
DONE, UNDONE = 1, 2


@pytest.fixture
def rig() -> Rig:
    made = Rig()
    made.cluster.topic("t")
    return made


def reader(rig: Rig, level: str = "read_committed", **configs: Any) -> Consumer:
    made = rig.consumer(isolation_level=level, auto_offset_reset="earliest", **configs)
    made.assign([T0])
    return made


def interleaved(rig: Rig) -> None:
    """Offsets: 0-1 undone, 2 done, 3 plain, 4 undone, 5 abort, 6 done, 7 commit, 8 done again, 9
    commit."""
    write, end = rig.cluster.write, rig.cluster.end_transaction
    write("t", 0, [b"u0", b"u1"], transaction_of=UNDONE)
    write("t", 0, [b"d2"], transaction_of=DONE)
    write("t", 0, [b"p3"])
    write("t", 0, [b"u4"], transaction_of=UNDONE)
    end("t", 0, UNDONE, commit=False)
    write("t", 0, [b"d6"], transaction_of=DONE)
    end("t", 0, DONE, commit=True)
    write("t", 0, [b"d8"], transaction_of=UNDONE)
    end("t", 0, UNDONE, commit=True)


def test_aborted_records_are_left_out_and_the_position_goes_over_them_and_over_the_markers(rig: Rig) -> None:
    interleaved(rig)
    with reader(rig) as consumer:
        assert [(record.offset, record.value) for record in consumer.poll(5)] == [
            (2, b"d2"),
            (3, b"p3"),
            (6, b"d6"),
            (8, b"d8"),
        ]
        assert consumer.poll(0.1) == []
        assert consumer.position(T0) == 10
        assert lags(consumer) == {T0: 0}


def test_tables_leave_the_same_out(rig: Rig) -> None:
    interleaved(rig)
    with reader(rig) as consumer:
        assert consumer.poll_table(5, columns=["offset"])["offset"].to_pylist() == [2, 3, 6, 8]
        assert [
            row
            for table in consumer.read_range(T0, 1, 8, columns=["offset"])
            for row in table["offset"].to_pylist()
        ] == [2, 3, 6]


def test_by_default_everything_but_the_markers_is_read(rig: Rig) -> None:
    interleaved(rig)
    with reader(rig, "read_uncommitted") as consumer:
        assert [record.offset for record in consumer.poll(5)] == [0, 1, 2, 3, 4, 6, 8]
    assert {request.message.isolation_level for request in rig.cluster.asked(ApiKey.FETCH)} == {0}


@pytest.mark.parametrize("start", range(10))
def test_reading_from_anywhere_gives_the_committed_records_from_there_on(rig: Rig, start: int) -> None:
    interleaved(rig)
    with reader(rig) as consumer:
        consumer.seek(T0, start)
        expected = [offset for offset in (2, 3, 6, 8) if offset >= start]
        assert [record.offset for record in consumer.poll(0.2)] == expected


def test_a_stretch_of_nothing_but_aborted_records_is_passed_over(rig: Rig) -> None:
    for _ in range(3):
        rig.cluster.write("t", 0, [b"undone"] * 5, transaction_of=UNDONE)
        rig.cluster.end_transaction("t", 0, UNDONE, commit=False)
    rig.cluster.write("t", 0, [b"plain"])
    with reader(rig, max_partition_fetch_bytes=1) as consumer:
        assert [record.offset for record in consumer.poll(5)] == [18]


def test_an_open_transaction_is_where_reading_stops_and_where_the_end_is(rig: Rig) -> None:
    rig.cluster.write("t", 0, [b"plain"])
    rig.cluster.write("t", 0, [b"open"], transaction_of=DONE)
    rig.cluster.write("t", 0, [b"behind"])
    with reader(rig) as consumer, reader(rig, "read_uncommitted") as dirty:
        assert [record.value for record in consumer.poll(1)] == [b"plain"]
        assert consumer.poll(0.5) == []
        assert (consumer.position(T0), consumer.end_offsets([T0])[T0]) == (1, 1)
        assert lags(consumer) == {T0: 0}, "behind what may be read, not behind what is written"
        assert dirty.end_offsets([T0])[T0] == 3
        consumer.seek_to_end()
        assert consumer.position(T0) == 1
        rig.cluster.end_transaction("t", 0, DONE, commit=True)
        assert [record.value for record in consumer.poll(1)] == [b"open", b"behind"]


def test_a_level_that_does_not_exist_is_refused(rig: Rig) -> None:
    with pytest.raises(ConfigError, match=r"isolation\.level"):
        reader(rig, "serializable")
