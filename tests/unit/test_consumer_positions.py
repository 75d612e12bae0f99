"""Positions: reset policies, seeks, pauses, ranges, look-ups."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from fairlead_kafka.base.errors import BrokerError, LogTruncated, OffsetOutOfRange, TimedOut, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.consumer import OffsetAndTimestamp
from fairlead_kafka.wire import ApiKey
from tests.support.client_rig import Rig

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def rig() -> Rig:
    made = Rig()
    made.cluster.topic("t", 2)
    for number in range(2):
        for batch in range(5):
            made.cluster.write("t", number, [b"%d" % (10 * batch + n) for n in range(10)])
    return made


def open_consumer(rig: Rig, *partitions: TopicPartition, reset: str = "earliest", **configs: Any) -> Consumer:
    made = rig.consumer(auto_offset_reset=reset, **configs)
    made.assign(partitions)
    return made


def offsets(reader: Consumer, timeout_s: float = 1.0) -> list[int]:
    seen: list[int] = []
    while records := reader.poll(timeout_s):
        seen += [record.offset for record in records]
    return seen


def test_the_reset_policy_places_a_partition_without_position(rig: Rig) -> None:
    rig.cluster.log("t").start = 30
    with open_consumer(rig, T0) as reader:
        assert reader.position(T0) == 30
        assert offsets(reader) == list(range(30, 50))
    with open_consumer(rig, T0, reset="latest") as reader:
        assert reader.poll(0.2) == []
        rig.cluster.write("t", 0, [b"new"])
        assert offsets(reader) == [50]
    with open_consumer(rig, T0, reset="none") as reader:
        with pytest.raises(UsageError, match=r"auto\.offset\.reset is none; seek"):
            reader.poll(1)
        reader.seek(T0, 45)
        assert offsets(reader) == list(range(45, 51))


def test_a_seek_drops_what_was_fetched_of_that_partition_alone(rig: Rig) -> None:
    with open_consumer(rig, T0, T1) as reader:
        assert len(reader.poll(1, max_records=3)) == 3
        rig.host.advance(1_000)
        reader.seek(T0, 47)
        assert reader.position(T0) == 47
        seen = [(record.partition, record.offset) for _ in range(3) for record in reader.poll(1)]
        assert [offset for partition, offset in seen if partition == 0] == [47, 48, 49]
        assert [offset for partition, offset in seen if partition == 1] == list(range(50))


def test_seeks_to_both_ends(rig: Rig) -> None:
    with open_consumer(rig, T0, T1, reset="none") as reader:
        reader.seek_to_end()
        assert (reader.position(T0), reader.position(T1)) == (50, 50)
        reader.seek_to_beginning([T1])
        assert (reader.position(T0), reader.position(T1)) == (50, 0)
        with pytest.raises(UsageError, match="offsets begin at 0"):
            reader.seek(T0, -5)


def test_an_answer_under_way_when_the_position_moves_is_dropped(rig: Rig) -> None:
    with open_consumer(rig, T0, reset="latest") as reader:
        assert reader.poll(0.1) == []  # a long poll at offset 50 is under way
        reader.seek(T0, 49)
        rig.cluster.write("t", 0, [b"new"])
        assert offsets(reader) == [49, 50]


def test_a_new_assignment_keeps_positions_of_what_stays(rig: Rig) -> None:
    with open_consumer(rig, T0) as reader:
        assert len(reader.poll(1, max_records=5)) == 5
        reader.assign([T0, T1])
        assert reader.assignment() == [T0, T1]
        assert (reader.position(T0), reader.position(T1)) == (5, 0)
        reader.assign([T1])
        assert {record.partition for record in reader.poll(1)} == {1}
        reader.assign([T0])
        assert reader.position(T0) == 0
        reader.assign([])
        with pytest.raises(UsageError, match="no partition is assigned"):
            reader.poll(1)


@pytest.mark.parametrize("call", ["position", "seek", "pause"])
def test_partitions_that_are_not_assigned_are_refused(rig: Rig, call: str) -> None:
    calls = {
        "position": lambda: reader.position(T1),
        "seek": lambda: reader.seek(T1, 0),
        "pause": lambda: reader.pause([T1]),
    }
    with open_consumer(rig, T0) as reader, pytest.raises(UsageError, match="t-1 is not assigned"):
        calls[call]()


def test_a_paused_partition_gives_nothing_and_loses_nothing(rig: Rig) -> None:
    with open_consumer(rig, T0, T1) as reader:
        first = reader.poll(1, max_records=4)
        assert [record.partition for record in first] == [0] * 4
        reader.pause([T0])
        assert reader.paused() == [T0]
        assert {record.partition for _ in range(3) for record in reader.poll(0.2)} == {1}
        assert reader.position(T0) == 4
        reader.resume([T0])
        assert offsets(reader) == list(range(4, 50))


def test_much_data_of_a_paused_partition_does_not_hold_up_the_others(rig: Rig) -> None:
    for _ in range(20):
        rig.cluster.write("t", 0, [b"x" * 2000])
    with open_consumer(rig, T0, fetch_max_bytes=8_000, max_partition_fetch_bytes=2_500) as reader:
        rig.host.advance(1_000)
        assert reader.metrics()["consumer-metrics"]["bytes-waiting"] > 4_000
        reader.pause([T0])
        assert reader.metrics()["consumer-metrics"]["bytes-waiting"] == 0
        reader.assign([T0, T1])
        assert offsets(reader) == list(range(50))
        reader.resume([T0])
        assert offsets(reader) == list(range(70))


def test_an_answer_to_what_was_asked_before_a_pause_leaves_no_gap(rig: Rig) -> None:
    for _ in range(10):
        rig.cluster.write("t", 0, [b"x" * 2000])
    with open_consumer(rig, T0, fetch_max_bytes=30_000, max_partition_fetch_bytes=2_500) as reader:
        fetched = 0
        while fetched < 5_000:
            rig.host.advance(0.5)
            fetched = reader.metrics()["consumer-metrics"]["incoming-byte-total"]
        reader.pause([T0])  # puts the position back, while a request from a later one is under way
        reader.resume([T0])
        assert offsets(reader) == list(range(60))


@pytest.mark.parametrize(("reset", "where"), [("earliest", "first one"), ("latest", "end")])
def test_an_offset_out_of_range_resets_by_policy_and_the_application_hears_of_it(
    rig: Rig, caplog: pytest.LogCaptureFixture, reset: str, where: str
) -> None:
    rig.cluster.log("t").start = 20
    with open_consumer(rig, T0, reset=reset) as reader:
        reader.seek(T0, 5)
        assert offsets(reader) == (list(range(20, 50)) if reset == "earliest" else [])
    assert "t-0 was to be read from offset 5 on, which is not in the log" in caplog.text
    assert f"going on from the {where} (auto.offset.reset)" in caplog.text


def test_an_offset_out_of_range_says_what_there_is_where_positions_are_not_reset(rig: Rig) -> None:
    rig.cluster.log("t").start = 20
    with open_consumer(rig, T0, reset="none") as reader:
        reader.seek(T0, 5)
        for _ in range(2):
            with pytest.raises(
                OffsetOutOfRange, match="offset 5 of t-0 was asked for, but its log holds 20 to 50"
            ) as caught:
                reader.poll(1)
        assert (caught.value.partition, caught.value.offset, caught.value.log_start_offset) == (T0, 5, 20)
        copy = pickle.loads(pickle.dumps(caught.value))  # as when it comes from another process
        assert (str(copy), copy.partition, copy.log_end_offset) == (str(caught.value), T0, 50)
        reader.seek(T0, 48)
        assert offsets(reader) == [48, 49]


def test_an_offset_that_only_a_new_leader_did_not_have_yet_is_fetched_again(rig: Rig) -> None:
    rig.cluster.errors[ApiKey.FETCH, T0] += [1, 1]
    with open_consumer(rig, T0, reset="none") as reader:
        reader.seek(T0, 48)
        assert offsets(reader) == [48, 49]


def test_a_log_that_was_cut_below_the_position_is_read_on_from_there_and_the_application_hears_of_it(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    with open_consumer(rig, T0) as reader:
        assert offsets(reader) == list(range(50))
        rig.cluster.cut("t", 0, 40)
        rig.cluster.write("t", 0, [b"instead"] * 15)
        assert [(record.offset, record.value) for record in reader.poll(2)] == [
            (offset, b"instead") for offset in range(40, 55)
        ]
    assert "t-0 was read up to offset 50 and cut at 40, in an unclean election" in caplog.text


@pytest.mark.parametrize("count", [15, 80])
def test_a_topic_that_was_made_again_is_read_from_its_beginning(
    rig: Rig, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    with open_consumer(rig, T0, reset="latest") as reader:
        reader.seek(T0, 0)
        assert offsets(reader) == list(range(50))
        rig.cluster.topic("t")
        rig.cluster.write("t", 0, [b"new"] * count)
        assert offsets(reader) == list(range(count))
    assert "t-0 was read up to offset 50 and begins at 0, for its topic is new" in caplog.text


def test_a_topic_that_was_made_again_is_an_error_where_positions_are_not_reset(rig: Rig) -> None:
    with open_consumer(rig, T0, reset="none") as reader:
        reader.seek(T0, 0)
        assert offsets(reader) == list(range(50))
        rig.cluster.topic("t")
        rig.cluster.write("t", 0, [b"new"] * 80)
        with pytest.raises(LogTruncated, match="or when its topic was made again"):
            reader.poll(5)
        reader.seek(T0, 78)
        assert offsets(reader) == [78, 79]


def test_a_log_that_was_cut_is_an_error_where_positions_are_not_reset(rig: Rig) -> None:
    with open_consumer(rig, T0, reset="none") as reader:
        reader.seek(T0, 0)
        assert offsets(reader) == list(range(50))
        rig.cluster.cut("t", 0, 40)
        rig.cluster.write("t", 0, [b"instead"] * 15)
        with pytest.raises(LogTruncated, match="lost its records from 40 on") as caught:
            reader.poll(2)
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (copy.partition, copy.offset, copy.diverging_offset) == (T0, 50, 40)
        reader.seek(T0, caught.value.diverging_offset)
        assert offsets(reader) == list(range(40, 55))


def test_a_range_gives_exactly_its_records_and_fetches_no_further(rig: Rig) -> None:
    with open_consumer(rig) as reader:
        tables = list(reader.read_range(T0, 13, 27, columns=["offset", "value"]))
        assert [offset for table in tables for offset in table["offset"].to_pylist()] == list(range(13, 27))
        asked = len(rig.cluster.asked(ApiKey.FETCH))
        rig.host.advance(5_000)
        assert len(rig.cluster.asked(ApiKey.FETCH)) == asked
        assert list(reader.read_range(T0, 7, 7)) == []
        assert [table.num_rows for table in reader.read_range(T1, 49, 50)] == [1]


def test_a_range_ends_where_its_last_offsets_hold_no_records(rig: Rig) -> None:
    rig.cluster.write("t", 0, [b"\0\0\0\1"], control=True)
    with open_consumer(rig) as reader:
        begun_ns = rig.host.now_ns()
        assert sum(table.num_rows for table in reader.read_range(T0, 45, 51)) == 5
        assert list(reader.read_range(T0, 50, 51)) == []
        rig.cluster.log("t").batches[3:5] = []  # compaction took offsets 30 to 49
        assert sum(table.num_rows for table in reader.read_range(T0, 25, 40)) == 5
        assert rig.host.now_ns() - begun_ns < 1_000_000_000


def test_a_range_that_is_gone_or_not_there_yet_fails_with_its_numbers(rig: Rig) -> None:
    rig.cluster.log("t").start = 20
    with open_consumer(rig) as reader:
        with pytest.raises(OffsetOutOfRange, match=r"offset 10 of t-0 .* 20 to 50"):
            list(reader.read_range(T0, 10, 30))
        with pytest.raises(TimedOut, match="reading t-0 up to offset 60: nothing came for 2 s at offset 50"):
            list(reader.read_range(T0, 20, 60, timeout_s=2))
        with pytest.raises(UsageError, match="0 <= start <= end"):
            list(reader.read_range(T0, 30, 20))


@pytest.mark.parametrize("offset", [-1, -2, -(2**63)])
def test_a_log_without_an_end_is_an_error_of_the_broker(rig: Rig, offset: int) -> None:
    rig.cluster.topic("t")
    rig.cluster.log("t").start = offset
    with (
        rig.consumer() as reader,
        pytest.raises(BrokerError, match="gave no offset for an end of t-0"),
    ):
        reader.beginning_offsets([T0], timeout_s=2)


def test_look_ups_need_no_assignment_and_leave_no_trace(rig: Rig) -> None:
    rig.cluster.log("t", 1).start = 7
    with open_consumer(rig) as reader:
        assert reader.beginning_offsets([T0, T1]) == {T0: 0, T1: 7}
        assert reader.end_offsets([T0, T1]) == {T0: 50, T1: 50}
        assert reader.offsets_for_times({T0: 1_030, T1: 99_999}) == {
            T0: OffsetAndTimestamp(30, 1_030, 0),
            T1: None,
        }
        assert [each.partition for each in reader.partitions_for("t")] == [0, 1]
        assert [item.leader for item in reader.list_topics()["t"]] == [1, 1]
        assert reader.end_offsets([]) == {}
        assert rig.opener.machine.network.metadata.topic("t") is None
        assert not rig.opener.machine._looked_up
        with pytest.raises(UsageError, match="not negative"):
            reader.offsets_for_times({T0: -1})


def test_a_topic_or_partition_that_is_not_there_is_told_after_the_time_out(rig: Rig) -> None:
    nowhere, beyond = TopicPartition("nowhere", 0), TopicPartition("t", 9)
    with open_consumer(rig, nowhere) as reader:
        for call in (
            lambda: reader.poll(3),
            lambda: reader.poll_table(3),
            lambda: reader.position(nowhere, timeout_s=3),
            lambda: reader.end_offsets([nowhere], timeout_s=3),
            lambda: reader.partitions_for("nowhere", timeout_s=3),
        ):
            begun_ns = rig.host.now_ns()
            with pytest.raises(BrokerError, match="topic nowhere is not in the cluster; create it") as caught:
                call()
            assert caught.value.code == 3
            assert 3_000 <= (rig.host.now_ns() - begun_ns) / 1e6 < 3_100
        with pytest.raises(BrokerError, match="t-9 does not exist: topic t has 2 partitions"):
            reader.end_offsets([beyond], timeout_s=1)
        rig.cluster.topic("nowhere")
        rig.cluster.write("nowhere", 0, [b"now it is"])
        assert [record.value for record in reader.poll(5)] == [b"now it is"]
