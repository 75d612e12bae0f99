"""Interceptors of producers; see `interceptors`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fairlead_kafka.base.ids import NO_OFFSET, NO_PARTITION, NO_TIMESTAMP
from fairlead_kafka.client.delivery import ALL_ROWS, Delivery, OnDelivery, RecordMetadata
from fairlead_kafka.client.interceptors import Chain, made_of

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead_kafka.client.intake import Headers

T = TypeVar("T")


class ProducerRecord(NamedTuple):
    """A record as it was given to `send`; `record._replace(value=...)` makes a changed one."""

    topic: str
    value: object
    key: object
    headers: Headers | None
    partition: int | None
    timestamp_ms: int | None


class ProducerInterceptor:
    """Base of producers' interceptors, whose methods do nothing; Kafka's `ProducerInterceptor`."""

    def configure(self, config: Mapping[str, object]) -> None:
        """Called with the producer's config, if the client makes the interceptor itself."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Called before `send`'s checks, on the caller's thread; returns the record to send."""
        return record

    def on_send_table(self, topic: str, table: pa.Table) -> pa.Table:
        """Called by `send_table`, on the caller's thread; returns the table to send.

        `table` is the one given, or one batch of a stream.
        """
        return table

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Called when a record is delivered or failed, before its `on_delivery`.

        With an error, `metadata` has the topic, and what else is known. On the producer's thread,
        which it holds up (of an AsyncProducer: in its event loop); of records that `send` refused,
        on the caller's.
        """

    def on_acknowledgement_table(self, topic: str, results: pa.Table) -> None:
        """Called when every row of a table is delivered or failed.

        `results` is the table of `TableAck.result`. On the producer's thread; on the caller's if
        all rows are completed when `send_table` returns.
        """

    def close(self) -> None:
        """Called when the producer is closed."""


class ProducerInterceptors(Chain[ProducerInterceptor]):
    """A producer's interceptors, called one after the other."""

    def around(self, send: Callable[..., T]) -> Callable[..., T]:
        """`Producer.send` with the interceptors around it."""

        @wraps(send)
        def intercepted(
            topic: str,
            value: object = None,
            *,
            key: object = None,
            headers: Headers | None = None,
            partition: int | None = None,
            timestamp_ms: int | None = None,
            on_delivery: OnDelivery | None = None,
        ) -> T:
            record = self.on_send(ProducerRecord(topic, value, key, headers, partition, timestamp_ms))
            try:
                return send(**record._asdict(), on_delivery=self._on_delivery(record, on_delivery))
            except Exception as error:
                self._acknowledged(_unsent(record), error)
                raise

        return intercepted

    def around_async(self, send: Callable[..., Awaitable[T]]) -> Callable[..., Coroutine[object, object, T]]:
        """`AsyncProducer.send` with the interceptors around it."""

        @wraps(send)
        async def intercepted(
            topic: str,
            value: object = None,
            *,
            key: object = None,
            headers: Headers | None = None,
            partition: int | None = None,
            timestamp_ms: int | None = None,
            on_delivery: OnDelivery | None = None,
        ) -> T:
            record = self.on_send(ProducerRecord(topic, value, key, headers, partition, timestamp_ms))
            try:
                return await send(**record._asdict(), on_delivery=self._on_delivery(record, on_delivery))
            except Exception as error:
                self._acknowledged(_unsent(record), error)
                raise

        return intercepted

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record as the interceptors leave it."""
        return self.changed(record, lambda each, item: each.on_send(item), ProducerRecord)

    def on_send_table(self, topic: str, table: pa.Table) -> pa.Table:
        """The table as the interceptors leave it."""
        return self.changed(table, lambda each, item: each.on_send_table(topic, item), type(table))

    def watch_table(self, delivery: Delivery) -> None:
        """Call the interceptors with a table's results once they are all there."""
        from fairlead_kafka.client.handles import as_arrow

        def completed(_: object = None) -> None:
            results = as_arrow(delivery.results())
            self.each(lambda each: each.on_acknowledgement_table(delivery.topic, results))

        completion = delivery.completion(ALL_ROWS)
        if completion is None:
            completed()
        else:
            completion.add_done_callback(completed)

    def _on_delivery(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> OnDelivery:
        def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
            self._acknowledged(_unsent(record) if metadata is None else metadata, error)
            if on_delivery is not None:
                on_delivery(metadata, error)

        return delivered

    def _acknowledged(self, metadata: RecordMetadata, error: Exception | None) -> None:
        self.each(lambda each: each.on_acknowledgement(metadata, error))


def producer_interceptors(given: object, config: Mapping[str, object]) -> ProducerInterceptors | None:
    """Interceptors of `interceptor.classes`; None for none. ConfigError if one cannot be imported
    or made."""
    found = made_of(
        given,
        config,
        ("on_send", "on_send_table", "on_acknowledgement", "on_acknowledgement_table"),
        ProducerInterceptor,
    )
    return ProducerInterceptors(found) if found else None


def _unsent(record: ProducerRecord) -> RecordMetadata:
    """Metadata of a record without offset; partition and timestamp are -1 unless given."""
    partition = NO_PARTITION if record.partition is None else record.partition
    timestamp_ms = NO_TIMESTAMP if record.timestamp_ms is None else record.timestamp_ms
    return RecordMetadata(record.topic, partition, NO_OFFSET, timestamp_ms)
