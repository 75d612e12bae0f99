"""Interceptors see, and may change, what goes in and out; what they raise harms nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import ConfigError, InvalidRecord
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import ConsumerInterceptor, ProducerInterceptor, ProducerRecord
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.client.producer import Producer
from fairlead_kafka.client.producer_async import AsyncProducer
from tests.support import client_rig
from tests.support.producer_rig import Rig

PARTITION_0 = pa.array([0, 0], pa.int32())


class Marking(ProducerInterceptor):
    """Marks every value, and notes all it is told."""

    made: list[Marking] = []

    def __init__(self, mark: bytes = b"!") -> None:
        self.mark = mark
        self.calls: list[tuple[Any, ...]] = []
        Marking.made.append(self)

    def configure(self, config: Any) -> None:
        self.calls.append(("configure", config["client.id"]))

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record._replace(value=(record.value or b"") + self.mark)

    def on_send_table(self, topic: str, table: pa.Table) -> pa.Table:
        return table.set_column(0, "value", pa.array([value.as_py() + self.mark for value in table["value"]]))

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        self.calls.append((metadata.partition, metadata.offset, error))

    def on_acknowledgement_table(self, topic: str, results: pa.Table) -> None:
        self.calls.append((topic, results["offset"].to_pylist()))

    def close(self) -> None:
        self.calls.append(("close",))


class Raising(ProducerInterceptor):
    """Raises wherever it can."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        raise RuntimeError("on_send")

    def on_send_table(self, topic: str, table: pa.Table) -> pa.Table:
        raise RuntimeError("on_send_table")

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        raise RuntimeError("on_acknowledgement")

    def on_acknowledgement_table(self, topic: str, results: pa.Table) -> None:
        raise RuntimeError("on_acknowledgement_table")

    def close(self) -> None:
        raise RuntimeError("close")


@pytest.fixture
def rig() -> Rig:
    Marking.made.clear()
    made = Rig(brokers=1)
    made.cluster.create("t", 1)
    return made


def test_records_go_through_all_in_order_and_come_back_to_all(rig: Rig) -> None:
    first, second = Marking(b"1"), Marking(b"2")
    told: list[Any] = []
    with rig.producer({"interceptor.classes": [first, second]}) as producer:
        assert (
            producer.send("t", b"v", partition=0, on_delivery=lambda *both: told.append(both)).result().offset
            == 0
        )
    assert rig.cluster.values("t") == [[b"v12"]]
    assert first.calls == second.calls == [(0, 0, None), ("close",)]
    assert told[0][0].offset == 0


def test_a_failed_record_is_told_with_what_is_known_of_it(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: 87
    seen = Marking()
    producer = rig.producer({"interceptor.classes": seen})
    producer.send("t", b"v", partition=0)
    producer.flush()
    rig.host.advance(0)
    partition, offset, error = seen.calls[0]
    assert (partition, offset, type(error).__name__) == (0, -1, "BrokerError")


def test_a_record_that_send_refuses_is_told_too(rig: Rig) -> None:
    seen = Marking()
    producer = rig.producer({"interceptor.classes": seen})
    with pytest.raises(InvalidRecord):
        producer.send("t", b"v", key="text")  # type: ignore[arg-type]
    assert [type(call[2]) for call in seen.calls] == [InvalidRecord]


def test_tables_go_through_as_tables(rig: Rig) -> None:
    seen = Marking()
    producer = rig.producer({"interceptor.classes": [seen]})
    batch = pa.record_batch({"value": [b"a", b"b"], "partition": PARTITION_0})
    producer.send_table("t", batch).result()
    producer.send_table("t", pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])).result()
    assert rig.cluster.values("t") == [[b"a!", b"b!"] * 3]
    assert seen.calls == [("t", [0, 1]), ("t", [2, 3, 4, 5])]


def test_what_interceptors_raise_or_return_amiss_is_logged_and_goes_no_further(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    class Forgetful(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> Any:
            return None

    last = Marking()
    with rig.producer({"interceptor.classes": [Raising(), Forgetful(), last]}) as producer:
        assert producer.send("t", b"v").result().offset == 0
        assert producer.send_table("t", pa.table({"value": [b"w"]})).result()["offset"].to_pylist() == [1]
    assert rig.cluster.values("t") == [[b"v!", b"w!"]]
    assert len(last.calls) == 3
    # Not `caplog.text`: once PySpark has logged an exception in this process, pytest's handlers
    # write JSON (pytest 9, PySparkLogger).
    raised = {repr(record.exc_info[1]) for record in caplog.records if record.exc_info}
    methods = ("on_send", "on_send_table", "on_acknowledgement", "on_acknowledgement_table", "close")
    assert raised.issuperset(repr(RuntimeError(method)) for method in methods)
    assert any("returned None" in each for each in raised)


@pytest.mark.parametrize(
    "given", [Marking, f"{__name__}.Marking", f" {__name__}.Marking , ", [f"{__name__}.Marking"]]
)
def test_interceptors_come_as_classes_and_dotted_paths_and_are_configured(rig: Rig, given: Any) -> None:
    with rig.producer({"interceptor.classes": given}, client_id="me") as producer:
        producer.send("t", b"v").result()
    (made,) = [each for each in Marking.made if type(each).__name__ == "Marking"]
    assert made.calls == [("configure", "me"), (0, 0, None), ("close",)]


def test_what_has_one_of_the_methods_will_do(rig: Rig) -> None:
    class Plain:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(value=b"plain")

    rig.producer({"interceptor.classes": [Plain()]}).send("t", b"v").result()
    assert rig.cluster.values("t") == [[b"plain"]]


@pytest.mark.parametrize(
    "given", ["nowhere.Nobody", "Nobody", f"{__name__}.Nobody", [object()], 5, [Marking(), int]]
)
def test_what_is_no_interceptor_is_refused_by_name(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"interceptor.classes: .*(Nobody|object|5|int)"):
        Producer({"bootstrap.servers": "h:1", "interceptor.classes": given})


def test_without_interceptors_send_is_the_intake_itself(rig: Rig) -> None:
    plain, marking = rig.producer(), rig.producer({"interceptor.classes": [Marking()]})
    assert plain.send is plain._send
    assert marking.send is not marking._send


def test_a_subclass_may_have_a_send_of_its_own(rig: Rig) -> None:
    class Loud(Producer):
        def send(self, topic: str, value: bytes | None = None, **rest: Any) -> Any:
            return super().send(topic, (value or b"").upper(), **rest)

    producer = Loud({"bootstrap.servers": rig.cluster.bootstrap}, opener=rig.opener)
    try:
        producer.send("t", b"v", key=b"k").result()
    finally:
        producer.close()
    assert rig.cluster.values("t") == [[b"V"]]


def test_the_awaiting_face_has_them_too(rig: Rig) -> None:
    seen = Marking()

    async def main() -> None:
        async with AsyncProducer(
            {"bootstrap.servers": rig.cluster.bootstrap, "interceptor.classes": [seen]},
            opener=rig.opener,
        ) as producer:
            await producer.send("t", b"v")
            with pytest.raises(InvalidRecord):
                await producer.send("t", 5)  # type: ignore[arg-type]

    async def pumped() -> None:
        task = asyncio.ensure_future(main())
        while not task.done():
            await asyncio.sleep(0)
            rig.host.advance(1)
        await task

    seen.on_send = lambda record: record  # type: ignore[method-assign]
    asyncio.run(pumped())
    assert [type(call[2]) for call in seen.calls[:-1]] == [InvalidRecord, type(None)]


class Halving(ConsumerInterceptor):
    """Lets every other record through."""

    def __init__(self) -> None:
        self.closed = 0

    def on_consume(self, records: list[Any]) -> list[Any]:
        return records[::2]

    def on_consume_table(self, table: pa.Table) -> pa.Table:
        return table.take(list(range(0, table.num_rows, 2)))

    def close(self) -> None:
        self.closed += 1


def test_consumers_hand_over_what_interceptors_leave_and_move_on_over_all() -> None:
    made = client_rig.Rig()
    made.cluster.topic("t")
    made.cluster.write("t", 0, [b"%d" % n for n in range(20)])
    partition = TopicPartition("t", 0)
    halving = Halving()
    consumer = Consumer(
        {**made.config(auto_offset_reset="earliest"), "interceptor.classes": [halving]}, opener=made.opener
    )
    consumer.assign([partition])
    assert [record.offset for record in consumer.poll(1, max_records=4)] == [0, 2]
    assert consumer.position(partition) == 4
    assert consumer.poll_table(1, max_records=4)["offset"].to_pylist() == [4, 6]
    assert next(iter(consumer)).offset == 8
    consumer.close()
    consumer.close()
    assert halving.closed == 1
