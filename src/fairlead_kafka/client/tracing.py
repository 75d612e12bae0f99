"""Spans for OpenTelemetry, by the extra `fairlead-kafka[opentelemetry]`.

    from fairlead_kafka.client.tracing import instrument, processing

    instrument(producer)
    instrument(consumer)
    for record in consumer:
        with processing(record, consumer):
            ...

Names and attributes are those of OpenTelemetry's semantic conventions for messaging and Kafka. A
client that is not instrumented does nothing for tracing, and loads nothing of it: `instrument`
puts functions of this module before the methods of that one client. Of a consumer these are the
steps of its calls, which both client APIs drive.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import NO_OFFSET, NO_PARTITION
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.client.consumer_async import AsyncConsumer
from fairlead_kafka.client.delivery import ALL_ROWS, Delivery, OnDelivery, RecordMetadata
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.client.producer import Producer
from fairlead_kafka.client.producer_async import AsyncProducer
from fairlead_kafka.client.share_consumer import ShareConsumer
from fairlead_kafka.client.share_consumer_async import AsyncShareConsumer
from fairlead_kafka.consumer.record import Record
from fairlead_kafka.consumer.share import ShareRecord

try:
    from opentelemetry import propagate, trace
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider
except ImportError as error:
    raise ImportError("tracing needs OpenTelemetry: pip install 'fairlead-kafka[opentelemetry]'") from error

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead_kafka.client.intake import Headers

LINKS_MAX = 128
"""Links of one poll's span, one for each trace among its records: what OpenTelemetry's SDK
keeps."""
_Value = str | int
_Consuming = Consumer | AsyncConsumer | ShareConsumer | AsyncShareConsumer
_AnyRecord = Record | ShareRecord
P = ParamSpec("P")
T = TypeVar("T")


class _Named(Protocol):
    """The part of a client that spans use: its id."""

    @property
    def client_id(self) -> str:
        """The `client.id` of the config."""


def instrument(
    client: Producer | AsyncProducer | _Consuming,
    tracer_provider: TracerProvider | None = None,
    *,
    link_tables: bool = False,
) -> None:
    """Make spans of this client's calls from now on.

    `send` and `send_table` of a producer: a span "send TOPIC" until the record, or every row, is
    delivered or failed. `send` writes the span's context into the record's headers (W3C Trace
    Context, or what `opentelemetry.propagate` is set to), over one that is there; rows of tables
    get no headers. `poll` and `poll_table` of a consumer or share consumer: a span "poll TOPIC" for
    each call that returns records, with links to the spans that sent them, 128 at most. An
    iteration over a consumer has such a span for each block of up to `max.poll.records`.
    `read_range` and `read_batches` have none.

    `tracer_provider`: None for the global one. `link_tables`: look for links in the column
    `headers` of `poll_table` as well, which reads it row by row. UsageError if the client has spans
    already.
    """
    tracer = trace.get_tracer("fairlead_kafka", tracer_provider=tracer_provider)
    if getattr(client, "_traced", False):
        raise UsageError("this client is instrumented already; do so once, where it is made")
    if isinstance(client, Producer | AsyncProducer):
        _instrument_producer(client, _Sends(tracer, client))
    elif isinstance(client, _Consuming):
        _instrument_consumer(client, _Polls(tracer, client, link_tables))
    else:
        raise UsageError(f"instrument takes a producer or a consumer, blocking or async, not {client!r}")
    setattr(client, "_traced", True)  # noqa: B010  # no field of every client's: most are not traced


@contextmanager
def processing(
    record: _AnyRecord,
    consumer: _Consuming | None = None,
    tracer_provider: TracerProvider | None = None,
) -> Iterator[Span]:
    """A span "process TOPIC" for a `with` block, which is the current one in it.

    Its parent is the span that sent the record, if its headers say so. `consumer` gives the span
    client and group. What the block raises is recorded, and goes on. `tracer_provider`: None for
    the global one.
    """
    tracer = trace.get_tracer("fairlead_kafka", tracer_provider=tracer_provider)
    attributes = {
        **_about(consumer, "process", record.topic),
        "messaging.destination.partition.id": str(record.partition),
        "messaging.kafka.offset": record.offset,
    }
    with tracer.start_as_current_span(
        f"process {record.topic}",
        context=propagate.extract(_carrier(record.headers)),
        kind=SpanKind.CONSUMER,
        attributes=attributes,
    ) as span:
        yield span


class _Sends:
    """Begins and ends the spans of a producer's sends."""

    def __init__(self, tracer: Tracer, client: _Named) -> None:
        self._tracer = tracer
        self._client = client

    def begin(self, topic: str) -> Span:
        """A new span for a send to `topic`; the caller ends it."""
        return self._tracer.start_span(
            f"send {topic}", kind=SpanKind.PRODUCER, attributes=_about(self._client, "send", topic)
        )

    @staticmethod
    def completing(span: Span, on_delivery: OnDelivery | None) -> OnDelivery | None:
        """A delivery callback that ends the span, then calls `on_delivery`. If the span is not
        recorded, `on_delivery` itself."""
        if not span.is_recording() or not (on_delivery is None or callable(on_delivery)):
            return on_delivery

        def delivered(metadata: RecordMetadata | None, error: Exception | None) -> None:
            if metadata is not None and metadata.partition != NO_PARTITION:
                span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
            if metadata is not None and metadata.offset != NO_OFFSET:
                span.set_attribute("messaging.kafka.offset", metadata.offset)
            _end(span, error)
            if on_delivery is not None:
                on_delivery(metadata, error)

        return delivered

    @staticmethod
    def follow(span: Span, delivery: Delivery) -> None:
        """End the span once every row of a table is delivered or failed."""

        def completed(_: object = None) -> None:
            results = delivery.results()
            span.set_attribute("messaging.batch.message_count", len(results.states))
            _end(span, results.errors[min(results.errors)] if results.errors else None)

        completion = delivery.completion(ALL_ROWS)
        if completion is None:
            completed()
        else:
            completion.add_done_callback(completed)


class _Polls:
    """Makes the spans of a consumer's polls. `begun_ns` is when a poll began, ns since 1970."""

    def __init__(self, tracer: Tracer, client: _Consuming, link_tables: bool) -> None:
        self._tracer = tracer
        # Of the client itself nothing is kept: what ends a client that was dropped holds its steps.
        self._about = _about(client, "receive", None) | {"messaging.operation.name": "poll"}
        self._link_tables = link_tables

    def collected(self, begun_ns: int, found: tuple[Sequence[_AnyRecord], object]) -> None:
        """Make the span of a poll that is about to return records (the first of `found`), before
        they are handed out: what a span's end raises must not lose them."""
        self.records(begun_ns, found[0])

    def collected_table(self, begun_ns: int, found: tuple[pa.Table, object]) -> None:
        """As `collected`, of a poll that is about to return a table."""
        self.table(begun_ns, found[0])

    def records(self, begun_ns: int, records: Sequence[_AnyRecord]) -> None:
        """Make the span of a poll that returns `records`, if there are any."""
        if records:
            topics = {record.topic for record in records}
            self._span(begun_ns, topics, len(records), (record.headers for record in records))

    def block(self, begun_ns: int, block: tuple[object, Sequence[_AnyRecord]] | None) -> None:
        """Make the span of an iteration's next block of records."""
        if block is not None:
            self.records(begun_ns, block[1])

    def table(self, begun_ns: int, table: pa.Table) -> None:
        """Make the span of a poll that returned `table`, if it has rows."""
        if table.num_rows:
            names = table.column_names
            topics = set(table["topic"].unique().to_pylist()) if "topic" in names else set()
            rows = table["headers"].to_pylist() if self._link_tables and "headers" in names else []
            headers = ([(row["key"], row["value"]) for row in each or ()] for each in rows)
            self._span(begun_ns, topics, table.num_rows, headers)

    def _span(
        self,
        begun_ns: int,
        topics: set[str],
        count: int,
        headers: Iterator[Sequence[tuple[str, bytes | None]]],
    ) -> None:
        topic = next(iter(topics)) if len(topics) == 1 else None
        attributes = {**self._about, "messaging.batch.message_count": count}
        if topic is not None:
            attributes["messaging.destination.name"] = topic
        self._tracer.start_span(
            "poll" if topic is None else f"poll {topic}",
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=_links(headers),
            start_time=begun_ns,
        ).end()


def _instrument_producer(client: Producer | AsyncProducer, sends: _Sends) -> None:
    if isinstance(client, AsyncProducer):
        _replace(client, "send", _sending_async(client.send, sends))
        _replace(client, "send_table", _sending_tables_async(client, sends))
    else:
        _replace(client, "send", _sending(client.send, sends))
        _replace(client, "send_table", _sending_tables(client, sends))


def _instrument_consumer(client: _Consuming, polls: _Polls) -> None:
    if isinstance(client, ShareConsumer | AsyncShareConsumer):
        calls = client._calls
        _replace(calls, "collect", _timed(calls.collect, polls.collected))
        _replace(calls, "collect_table", _timed(calls.collect_table, polls.collected_table))
    else:
        reading = client._calls.reading
        _replace(reading, "collect", _timed(reading.collect, polls.collected))
        _replace(reading, "collect_table", _timed(reading.collect_table, polls.collected_table))
        _replace(reading, "block", _timed(reading.block, polls.block))


def _sending(send: Callable[..., T], sends: _Sends) -> Callable[..., T]:
    @wraps(send)
    def traced(
        topic: str,
        value: object = None,
        *,
        headers: Headers | None = None,
        on_delivery: OnDelivery | None = None,
        **more: object,
    ) -> T:
        span = sends.begin(topic)
        try:
            given = {"headers": _injected(headers, span), "on_delivery": sends.completing(span, on_delivery)}
            return send(topic, value, **given, **more)
        except Exception as error:
            _end(span, error)
            raise

    return traced


def _sending_async(
    send: Callable[..., Awaitable[T]], sends: _Sends
) -> Callable[..., Coroutine[object, object, T]]:
    @wraps(send)
    async def traced(
        topic: str,
        value: object = None,
        *,
        headers: Headers | None = None,
        on_delivery: OnDelivery | None = None,
        **more: object,
    ) -> T:
        span = sends.begin(topic)
        try:
            given = {"headers": _injected(headers, span), "on_delivery": sends.completing(span, on_delivery)}
            return await send(topic, value, **given, **more)
        except Exception as error:
            _end(span, error)
            raise

    return traced


def _sending_tables(client: Producer, sends: _Sends) -> Callable[..., object]:
    send_table = client.send_table

    @wraps(send_table)
    def traced(topic: str, table: object) -> object:
        span = sends.begin(topic)
        try:
            ack = send_table(topic, table)
        except Exception as error:
            _end(span, error)
            raise
        sends.follow(span, ack.delivery)
        return ack

    return traced


def _sending_tables_async(client: AsyncProducer, sends: _Sends) -> Callable[..., object]:
    send_table = client.send_table

    @wraps(send_table)
    async def traced(topic: str, table: object) -> object:
        span = sends.begin(topic)
        try:
            ack = await send_table(topic, table)
        except Exception as error:
            _end(span, error)
            raise
        sends.follow(span, ack.delivery)
        return ack

    return traced


def _timed(call: Callable[P, Steps[T]], after: Callable[[int, T], None]) -> Callable[P, Steps[T]]:
    @wraps(call)
    def traced(*args: P.args, **more: P.kwargs) -> Steps[T]:
        begun_ns = time.time_ns()
        result = yield from call(*args, **more)
        after(begun_ns, result)
        return result

    return traced


def _replace(target: object, name: str, function: Callable[..., object]) -> None:
    """Set `function` in the place of the method `name` of one object: a client, or its calls."""
    setattr(target, name, function)


def _about(client: _Named | None, operation: str, topic: str | None) -> dict[str, _Value]:
    """The attributes of a span: those of every span, and of its client and topic if they are not
    None."""
    attributes: dict[str, _Value] = {
        "messaging.system": "kafka",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }
    if topic is not None:
        attributes["messaging.destination.name"] = topic
    if client is not None:
        attributes["messaging.client.id"] = client.client_id
    if isinstance(client, _Consuming) and client.group_id is not None:
        attributes["messaging.consumer.group.name"] = client.group_id
    return attributes


def _end(span: Span, error: Exception | None) -> None:
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(Status(StatusCode.ERROR, str(error)))
    span.end()


def _injected(headers: Headers | None, span: Span) -> Headers | None:
    """`headers` with the context of `span` added; headers that `send` would refuse are not
    changed."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier, trace.set_span_in_context(span))
    if not carrier or not isinstance(headers, Mapping | list | tuple | None):
        return headers
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    kept = [pair for pair in pairs if not (isinstance(pair, tuple) and pair and pair[0] in carrier)]
    return [*kept, *((name, text.encode()) for name, text in carrier.items())]


def _carrier(headers: Sequence[tuple[str, bytes | None]]) -> dict[str, str]:
    """Headers of a record as a propagator of OpenTelemetry reads them; of several with one name,
    the last."""
    return {name: value.decode("utf-8", "replace") for name, value in headers if value is not None}


def _links(headers: Iterator[Sequence[tuple[str, bytes | None]]]) -> list[Link]:
    """A link to each span that sent a record, LINKS_MAX at most."""
    found: dict[int, Link] = {}
    for pairs in headers:
        if pairs:
            context = trace.get_current_span(propagate.extract(_carrier(pairs))).get_span_context()
            if context.is_valid and context.is_remote:
                found.setdefault(context.span_id, Link(context))
                if len(found) == LINKS_MAX:
                    break
    return list(found.values())
