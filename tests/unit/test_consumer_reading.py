"""Polls: records and tables, order, pruned columns, fairness, back-pressure, iteration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError, TimedOut, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.consumer import ALL_COLUMNS, Record
from fairlead_kafka.consumer.partition import TRANSITIONS, Phase, Signal, end_of_batches
from fairlead_kafka.records import MESSAGE_SCHEMA
from fairlead_kafka.wire import ApiKey
from tests.support.client_rig import Rig
from tests.support.kept import grown, kept

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


@pytest.fixture
def rig() -> Rig:
    return Rig()


def consumer(rig: Rig, *partitions: TopicPartition, **configs: Any) -> Consumer:
    made = rig.consumer(**{"auto_offset_reset": "earliest", **configs})
    made.assign(partitions)
    return made


def drain(reader: Consumer, count: int) -> Iterator[Record]:
    while count > 0:
        records = reader.poll(10)
        assert records, "nothing came"
        count -= len(records)
        yield from records


def test_a_poll_gives_every_field_of_every_record(rig: Rig) -> None:
    rig.cluster.topic("t")
    rig.cluster.write(
        "t",
        0,
        [b"a", None, b""],
        keys=[b"k", None, b""],
        headers=[[("h", b"1"), ("n", None)], None, []],
        times_ms=[5, 6, 7],
    )
    with consumer(rig, T0) as reader:
        assert reader.poll(1) == [
            Record("t", 0, 0, 5, 0, b"k", b"a", (("h", b"1"), ("n", None))),
            Record("t", 0, 1, 6, 0, None, None),
            Record("t", 0, 2, 7, 0, b"", b""),
        ]


def test_a_table_has_the_message_schema_and_the_columns_asked_for(rig: Rig) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"a", b"b"], keys=[b"k", None], times_ms=[5, 6])
    with consumer(rig, T0) as reader:
        table = reader.poll_table(1)
        assert table.schema == MESSAGE_SCHEMA
        assert table["topic"].to_pylist() == ["t", "t"]
        assert table["key"].to_pylist() == [b"k", None]
        assert [stamp.timestamp() for stamp in table["timestamp"].to_pylist()] == [0.005, 0.006]
        reader.seek(T0, 1)
        assert reader.poll_table(1, columns=["value", "offset"]).to_pydict() == {
            "value": [b"b"],
            "offset": [1],
        }
        empty = reader.poll_table(0.1, columns=["value"])
        assert (empty.num_rows, empty.schema.names) == (0, ["value"])


@pytest.mark.parametrize("columns", [["nope"], ["key", "key"], []])
def test_columns_that_cannot_be_are_refused_by_name(rig: Rig, columns: list[str]) -> None:
    rig.cluster.topic("t")
    with consumer(rig, T0) as reader, pytest.raises(UsageError, match=", ".join(ALL_COLUMNS)):
        reader.poll_table(1, columns=columns)


def test_a_poll_gives_no_more_than_asked_for_and_loses_nothing(rig: Rig) -> None:
    rig.cluster.topic("t", 2)
    for number in range(2):
        for batch in range(3):
            rig.cluster.write("t", number, [b"%d" % (10 * batch + n) for n in range(10)])
    with consumer(rig, T0, T1, max_poll_records=7) as reader:
        sizes, seen = [], []
        while len(seen) < 60:
            records = reader.poll(1)
            sizes.append(len(records))
            seen += records
            if len(seen) == 14:
                table = reader.poll_table(1, max_records=5)
                assert table.num_rows == 5
                seen += [
                    Record("t", part, offset, 0, 0, None, None)
                    for part, offset in zip(*map(table.column, ["partition", "offset"]), strict=True)
                ]
        assert max(sizes) == 7
        for number in range(2):
            offsets = [int(str(record.offset)) for record in seen if int(str(record.partition)) == number]
            assert offsets == list(range(30))


def test_what_a_poll_left_over_begins_the_next_table(rig: Rig) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"a", b"b", b"c"])
    with consumer(rig, T0) as reader:
        assert [record.value for record in reader.poll(1, max_records=1)] == [b"a"]
        assert reader.position(T0) == 1
        assert reader.poll_table(1)["value"].to_pylist() == [b"b", b"c"]
        assert reader.position(T0) == 3


def test_data_written_while_a_poll_waits_is_handed_over_at_once(rig: Rig) -> None:
    rig.cluster.topic("t")
    with consumer(rig, T0) as reader:
        assert reader.poll(0.05) == []
        begun_ns = rig.host.now_ns()
        rig.host._call_at(begun_ns + 40_000_000, lambda: rig.cluster.write("t", 0, [b"late"]))
        assert [record.value for record in reader.poll(30)] == [b"late"]
        assert rig.host.now_ns() - begun_ns < 60_000_000


def test_one_fetch_is_under_way_per_node_and_names_every_partition_of_it() -> None:
    rig = Rig(nodes=2)
    rig.cluster.topic("t", 3)
    with consumer(rig, T0, T1, T2) as reader:
        reader.poll(0.1)
        fetches = [
            (node_id, request.message)
            for node_id, request in rig.cluster.requests
            if request.api_key == ApiKey.FETCH
        ]
        assert {
            node_id: [part.partition for topic in message.topics for part in topic.partitions]
            for node_id, message in fetches
        } == {
            1: [0, 2],
            2: [1],
        }
        assert {node_id: message.session_epoch for node_id, message in fetches} == {1: 0, 2: -1}, (
            "for one partition no session is begun"
        )
        assert len(fetches) == 2


def test_fetching_stops_when_the_budget_is_full_and_goes_on_as_data_are_taken(rig: Rig) -> None:
    rig.cluster.topic("t")
    for _ in range(40):
        rig.cluster.write("t", 0, [b"x" * 1000])
    with consumer(rig, T0, fetch_max_bytes=8_000, max_partition_fetch_bytes=3_000) as reader:
        reader.poll(1, max_records=1)
        rig.host.advance(10_000)
        waiting = reader.metrics()["consumer-metrics"]["bytes-waiting"]
        assert 5_000 <= waiting <= 11_000
        asked = len(rig.cluster.asked(ApiKey.FETCH))
        rig.host.advance(10_000)
        assert len(rig.cluster.asked(ApiKey.FETCH)) == asked
        assert [record.offset for record in drain(reader, 39)] == list(range(1, 40))


def test_a_partition_that_gave_data_goes_to_the_end_of_the_line(rig: Rig) -> None:
    rig.cluster.topic("t", 3)
    for number in range(3):
        for _ in range(4):
            rig.cluster.write("t", number, [b"x" * 900])
    # An answer has room for one partition only: without turns the first would come four times
    # before the others.
    with consumer(rig, T0, T1, T2, fetch_max_bytes=1_000, max_partition_fetch_bytes=1_000) as reader:
        assert [record.partition for record in drain(reader, 12)] == [0, 1, 2] * 4


def test_iteration_moves_the_position_with_each_record_and_yields_to_a_seek(rig: Rig) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"%d" % n for n in range(10)])
    with consumer(rig, T0) as reader:
        seen = []
        for record in reader:
            seen.append(record.offset)
            assert reader.position(T0) == record.offset + 1
            if len(seen) == 4:
                reader.seek(T0, 8)
            if record.offset == 9:
                break
        assert seen == [0, 1, 2, 3, 8, 9]
        assert reader.metrics()["consumer-fetch-manager-metrics"]["records-consumed-total"] == 6


def test_iteration_ends_when_the_consumer_is_closed(rig: Rig) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"a", b"b"])
    reader = consumer(rig, T0)
    for _ in reader:
        reader.close()
    with pytest.raises(UsageError, match="closed"):
        reader.poll(1)
    reader.close()


def test_damaged_bytes_are_told_at_every_poll_after_the_data_before_them_until_a_seek(rig: Rig) -> None:
    rig.cluster.topic("t", 2)
    rig.cluster.write("t", 0, [b"good"])
    with consumer(rig, T0, T1) as reader:
        assert [record.value for record in reader.poll(1)] == [b"good"]
        rig.cluster.write("t", 1, [b"other"])
        rig.cluster.write("t", 0, [b"bad"], corrupt=True)
        seen: list[bytes | None] = []
        for _ in range(2):
            with pytest.raises(DecodeError, match="t-0 from offset 1"):
                seen.extend(record.value for record in drain(reader, 99))
        with pytest.raises(DecodeError, match="t-0 from offset 1"):
            reader.poll_table(1)
        assert seen == [b"other"]
        assert reader.position(T0) == 1
        rig.cluster.write("t", 0, [b"after"])
        reader.seek(T0, 2)
        assert [record.value for record in reader.poll(1)] == [b"after"]


def test_damaged_bytes_pass_where_crcs_are_not_checked(rig: Rig) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"abc"])
    base, last, batch = rig.cluster.log("t").batches[0]
    rig.cluster.log("t").batches[0] = (base, last, batch[:17] + b"\0\0\0\0" + batch[21:])
    with consumer(rig, T0, check_crcs="false") as reader:
        assert [record.value for record in reader.poll(1)] == [b"abc"]


@pytest.mark.parametrize("read", ["read_range", "read_batches"])
def test_a_range_is_read_whatever_was_paused_before_it(rig: Rig, read: str) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"a", b"b"])
    with consumer(rig, T0) as reader:
        reader.pause([T0])
        rig.host.steps_max = rig.host.steps + 1000
        assert sum(len(table) for table in getattr(reader, read)(T0, 0, 2, timeout_s=2)) > 0


@pytest.mark.parametrize("read", ["read_range", "read_batches"])
def test_a_range_of_a_topic_that_is_deleted_ends_once_that_is_certain(rig: Rig, read: str) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"a", b"b"])
    with consumer(rig, T0) as reader:
        tables = getattr(reader, read)(T0, 0, 9, timeout_s=120)
        next(tables)
        topic = rig.cluster.topics.pop("t")
        rig.host.advance(7_000)
        rig.cluster.topics["t"] = topic  # it was only a broker that did not know it
        rig.cluster.write("t", 0, [b"c"])
        next(tables)
        del rig.cluster.topics["t"]
        begun_ns = rig.host.now_ns()
        with pytest.raises(BrokerError, match="topic t is not in the cluster") as caught:
            next(tables)
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert 10_000 <= (rig.host.now_ns() - begun_ns) / 1e6 < 12_000


def test_a_range_that_is_paused_waits_out_its_time_without_being_busy(rig: Rig) -> None:
    rig.cluster.topic("t")
    with consumer(rig, T0) as reader:
        tables = reader.read_range(T0, 0, 4, timeout_s=2)
        rig.cluster.write("t", 0, [b"a"] * 2)
        next(tables)
        reader.calls.fetched.clear()
        rig.cluster.write("t", 0, [b"b"] * 2)
        rig.host.advance(1000)  # fetched ahead
        reader.pause([T0])
        rig.host.steps_max = rig.host.steps + 1000
        with pytest.raises(TimedOut, match="nothing came for 2 s"):
            list(tables)


def test_a_second_poll_at_the_same_time_is_refused(rig: Rig) -> None:
    rig.cluster.topic("t")
    with consumer(rig, T0) as reader:
        steps = reader.calls.reading.poll(10, None)
        next(steps)
        with pytest.raises(UsageError, match="another poll"):
            reader.poll(1)
        steps.close()
        assert reader.poll(0.1) == []


def test_no_poll_begins_while_another_hands_out(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"a", b"b"])
    refused = []
    with consumer(rig, T0) as reader:
        taking = reader.calls.reading._taking
        sound = taking.hand_out

        def hand_out(parts: Any) -> None:
            for poll in (reader.poll, reader.poll_table):
                try:
                    poll(0)
                except UsageError as error:
                    refused.append(str(error))
            sound(parts)

        monkeypatch.setattr(taking, "hand_out", hand_out)
        assert [record.value for record in reader.poll(1, 1)] == [b"a"]
        assert reader.poll_table(1)["value"].to_pylist() == [b"b"]
    assert len(refused) == 4
    assert all("another poll" in each for each in refused)


def test_a_cancelled_poll_loses_nothing(rig: Rig) -> None:
    rig.cluster.topic("t")
    with consumer(rig, T0) as reader:
        steps = reader.calls.reading.poll(10, None)
        next(steps)
        steps.close()
        rig.cluster.write("t", 0, [b"a"])
        rig.host.advance(1_000)  # the machine answers the poll that nobody waits for any more
        assert [record.value for record in reader.poll(1)] == [b"a"]


def test_the_walk_over_batches_ends_before_one_that_is_cut_short(rig: Rig) -> None:
    rig.cluster.topic("t")
    for _ in range(3):
        rig.cluster.write("t", 0, [b"a", b"b"])
    data = b"".join(batch for _, _, batch in rig.cluster.log("t").batches)
    size = len(data) // 3
    expected = [0] * size + [2] * size + [4] * size + [6]
    assert [end_of_batches(memoryview(data)[:length], 0)[0] for length in range(len(data) + 1)] == expected
    assert end_of_batches(memoryview(b"\0" * 100), 5) == (5, -1, 0)


@pytest.mark.parametrize(
    ("answer", "read"), [((0, 0), 1), ((0, 1, 0), 2), ((1, 0), 1), ((0, 2), 2), ((0, 1, 1, 2), 2)]
)
def test_the_walk_ends_at_a_batch_that_goes_back(rig: Rig, answer: tuple[int, ...], read: int) -> None:
    rig.cluster.topic("t")
    for _ in range(3):
        rig.cluster.write("t", 0, [b"a", b"b"])
    batches = [batch for _, _, batch in rig.cluster.log("t").batches]
    data = b"".join(batches[number] for number in answer)
    end, _, size_bytes = end_of_batches(memoryview(data), 0)
    assert (end, size_bytes) == (2 * answer[read - 1] + 2, read * len(batches[0]))


def test_batches_that_a_broker_repeats_are_handed_over_once(rig: Rig) -> None:
    rig.cluster.topic("t")
    for value in (b"a", b"b", b"c"):
        rig.cluster.write("t", 0, [value])
    log = rig.cluster.log("t")
    log.batches = [log.batches[number] for number in (0, 1, 0, 1, 2)]
    with consumer(rig, T0) as reader:
        assert [record.value for record in drain(reader, 3)] == [b"a", b"b", b"c"]
        assert reader.poll(1) == []


def test_every_phase_can_be_left_by_a_seek_or_a_failure() -> None:
    for phase in Phase:
        assert TRANSITIONS[phase, Signal.SEEK] is Phase.FETCHING
        assert TRANSITIONS[phase, Signal.SEEK_END] is Phase.UNPLACED
        assert TRANSITIONS[phase, Signal.FAIL] is Phase.FAILED
    assert set(TRANSITIONS.values()) == set(Phase)


def test_nothing_is_kept_of_partitions_that_were_assigned_once(rig: Rig) -> None:
    counts = []
    with consumer(rig) as reader:
        for number in range(400):
            name = f"t{number}"
            rig.cluster.topic(name)
            rig.cluster.write(name, 0, [b"a"])
            reader.assign([TopicPartition(name, 0)])
            reader.seek(TopicPartition(name, 0), 0)
            assert [record.value for record in reader.poll(10)] == [b"a"]
            reader.assign([])
            if number in (99, 399):
                counts.append(kept(reader.calls, without=(type(rig.cluster), type(rig.host))))
    assert grown(*counts, least=100) == {}
