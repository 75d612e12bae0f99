"""Interceptors: code of the user's that sees, and may change, records on their way in and out (`interceptor.classes`, KIP-42).

They are called in the order given, each with what the one before made of it. What an interceptor raises is logged and goes no further:
the client carries on with what it had before. A client without interceptors does not know of them: its methods are chosen when it is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import NO_OFFSET, NO_PARTITION, NO_TIMESTAMP
from fairlead_kafka.client.delivery import ALL_ROWS, Delivery, OnDelivery, RecordMetadata

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead_kafka.client.intake import Headers
    from fairlead_kafka.consumer import Record

LOGGER = logging.getLogger("fairlead_kafka.interceptors")
T = TypeVar("T")


class ProducerRecord(NamedTuple):
    """A record as it was given to `send`; `record._replace(value=...)` makes a changed one."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: Headers | None
    partition: int | None
    timestamp_ms: int | None


class ProducerInterceptor:
    """Base of producers' interceptors, whose methods do nothing; Kafka's `ProducerInterceptor`."""

    def configure(self, config: Mapping[str, Any]) -> None:
        """The producer's config as it was given; called once on interceptors that the client makes itself."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record to send instead, or `record`. On the caller's thread, before anything is checked."""
        return record

    def on_send_table(self, topic: str, table: pa.Table) -> pa.Table:
        """The table to send instead, or `table`: one given to `send_table`, or one batch of a stream. On the caller's thread."""
        return table

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """A record was delivered or failed, before its `on_delivery`; with an error, `metadata` has the topic, and what else is known.

        On the producer's thread, which it holds up (of an AsyncProducer: in its event loop); of records that `send` refused, on the
        caller's.
        """

    def on_acknowledgement_table(self, topic: str, results: pa.Table) -> None:
        """Every row of a table is delivered or failed; `results` as `TableAck.result` has them. On the producer's thread."""

    def close(self) -> None:
        """The producer is closed."""


class ConsumerInterceptor:
    """Base of consumers' interceptors, whose methods do nothing; Kafka's `ConsumerInterceptor`."""

    def configure(self, config: Mapping[str, Any]) -> None:
        """The consumer's config as it was given; called once on interceptors that the client makes itself."""

    def on_consume(self, records: list[Record]) -> list[Record]:
        """The records to hand over instead, or `records`. Positions move on over all that were fetched."""
        return records

    def on_consume_table(self, table: pa.Table) -> pa.Table:
        """The table to hand over instead, or `table`; of `poll_table` and `read_range`."""
        return table

    def close(self) -> None:
        """The consumer is closed."""


I = TypeVar("I", ProducerInterceptor, ConsumerInterceptor)  # noqa: E741


class _Chain(Generic[I]):
    """Interceptors one after the other."""

    def __init__(self, interceptors: Sequence[I]) -> None:
        self._interceptors: Sequence[I] = interceptors
        self._closed = False

    def _changed(self, item: T, apply: Callable[[I, T], Any], kind: type | tuple[type, ...]) -> T:
        for interceptor in self._interceptors:
            try:
                found = apply(interceptor, item)
                if not isinstance(found, kind):
                    raise TypeError(f"it returned {found!r} instead of what it was given, or something like it")
                item = cast(T, found)
            except Exception:
                LOGGER.exception("an interceptor (%r) raised; what it was given goes on as it was", interceptor)
        return item

    def _told(self, tell: Callable[[I], object]) -> None:
        for interceptor in self._interceptors:
            try:
                tell(interceptor)
            except Exception:
                LOGGER.exception("an interceptor (%r) raised", interceptor)

    def close(self) -> None:
        """Close them all, once."""
        if not self._closed:
            self._closed = True
            self._told(lambda each: each.close())


class ProducerInterceptors(_Chain[ProducerInterceptor]):
    """A producer's interceptors."""

    def around(self, send: Callable[..., T]) -> Callable[..., T]:
        """`Producer.send`, intercepted."""

        @wraps(send)
        def intercepted(
            topic: str,
            value: bytes | None = None,
            *,
            key: bytes | None = None,
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

    def around_async(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """`AsyncProducer.send`, intercepted."""

        @wraps(send)
        async def intercepted(
            topic: str,
            value: bytes | None = None,
            *,
            key: bytes | None = None,
            headers: Headers | None = None,
            partition: int | None = None,
            timestamp_ms: int | None = None,
            on_delivery: OnDelivery | None = None,
        ) -> Any:
            record = self.on_send(ProducerRecord(topic, value, key, headers, partition, timestamp_ms))
            try:
                return await send(**record._asdict(), on_delivery=self._on_delivery(record, on_delivery))
            except Exception as error:
                self._acknowledged(_unsent(record), error)
                raise

        return intercepted

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record as the last of them leaves it."""
        return self._changed(record, lambda each, item: each.on_send(item), ProducerRecord)

    def on_send_table(self, topic: str, table: pa.Table) -> pa.Table:
        """The table as the last of them leaves it."""
        return self._changed(table, lambda each, item: each.on_send_table(topic, item), type(table))

    def watch_table(self, delivery: Delivery) -> None:
        """Tell of a table's results once they are all there."""
        from fairlead_kafka.client.handles import as_arrow

        def told(_: object = None) -> None:
            results = as_arrow(delivery.results())
            self._told(lambda each: each.on_acknowledgement_table(delivery.topic, results))

        completion = delivery.completion(ALL_ROWS)
        if completion is None:
            told()
        else:
            completion.add_done_callback(told)

    def _on_delivery(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> OnDelivery:
        def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
            self._acknowledged(_unsent(record) if metadata is None else metadata, error)
            if on_delivery is not None:
                on_delivery(metadata, error)

        return delivered

    def _acknowledged(self, metadata: RecordMetadata, error: Exception | None) -> None:
        self._told(lambda each: each.on_acknowledgement(metadata, error))


class ConsumerInterceptors(_Chain[ConsumerInterceptor]):
    """A consumer's interceptors."""

    def on_consume(self, records: list[Record]) -> list[Record]:
        """The records as the last of them leaves them."""
        return self._changed(records, lambda each, item: each.on_consume(item), list) if records else records

    def on_consume_table(self, table: pa.Table) -> pa.Table:
        """The table as the last of them leaves it."""
        return self._changed(table, lambda each, item: each.on_consume_table(item), type(table)) if table.num_rows else table


def producer_interceptors(given: Any, config: Mapping[str, Any]) -> ProducerInterceptors | None:
    """Those that `interceptor.classes` names; None for none. ConfigError if it names what cannot be had."""
    found = _made(given, config, ("on_send", "on_send_table", "on_acknowledgement", "on_acknowledgement_table"), ProducerInterceptor)
    return ProducerInterceptors(found) if found else None


def consumer_interceptors(given: Any, config: Mapping[str, Any]) -> ConsumerInterceptors | None:
    """Those that `interceptor.classes` names; None for none. ConfigError if it names what cannot be had."""
    found = _made(given, config, ("on_consume", "on_consume_table"), ConsumerInterceptor)
    return ConsumerInterceptors(found) if found else None


def _unsent(record: ProducerRecord) -> RecordMetadata:
    """What is known of a record that has no offset."""
    partition = NO_PARTITION if record.partition is None else record.partition
    timestamp_ms = NO_TIMESTAMP if record.timestamp_ms is None else record.timestamp_ms
    return RecordMetadata(record.topic, partition, NO_OFFSET, timestamp_ms)


def _made(given: Any, config: Mapping[str, Any], methods: tuple[str, ...], base: type[T]) -> list[T]:
    if given is None:
        return []
    items: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    if isinstance(given, str):
        items = [text.strip() for text in given.split(",")]
    made = []
    for item in items:
        if item == "":
            continue
        name = item
        if isinstance(item, str):
            item = _looked_up(item)
        if isinstance(item, type):
            try:
                item = item()
                getattr(item, "configure", lambda _: None)(config)
            except Exception as error:
                raise ConfigError(f"interceptor.classes: {name!r} could not be made: {error!r}") from error
        if not isinstance(item, base) and not any(hasattr(item, method) for method in methods):
            raise ConfigError(f"interceptor.classes: {name!r} has none of the methods {', '.join(methods)}")
        made.append(item if isinstance(item, base) else _completed(item, base))
    return made


def _looked_up(path: str) -> Any:
    module, dot, name = path.rpartition(".")
    try:
        if not dot:
            raise ImportError("a dotted path is needed, such as package.module.Class")
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"interceptor.classes: {path!r} cannot be imported: {error}") from None


def _completed(item: Any, base: type[T]) -> T:
    """An interceptor that is not one of ours by descent: what it lacks does nothing."""
    made = base()
    for method in dir(base):
        if not method.startswith("_") and hasattr(item, method):
            setattr(made, method, getattr(item, method))
    return made
