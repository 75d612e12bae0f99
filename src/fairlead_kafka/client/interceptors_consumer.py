"""Interceptors of consumers; see `interceptors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead_kafka.client.interceptors import Chain, made_of
from fairlead_kafka.consumer.record import Record

if TYPE_CHECKING:
    import pyarrow as pa


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


class ConsumerInterceptors(Chain[ConsumerInterceptor]):
    """A consumer's interceptors."""

    def on_consume(self, records: list[Record]) -> list[Record]:
        """The records as the last of them leaves them."""
        return self.changed(records, lambda each, item: each.on_consume(item), list) if records else records

    def on_consume_table(self, table: pa.Table) -> pa.Table:
        """The table as the last of them leaves it."""
        return self.changed(table, lambda each, item: each.on_consume_table(item), type(table)) if table.num_rows else table


def consumer_interceptors(given: Any, config: Mapping[str, Any]) -> ConsumerInterceptors | None:
    """Those that `interceptor.classes` names; None for none. ConfigError if it names what cannot be had."""
    found = made_of(given, config, ("on_consume", "on_consume_table"), ConsumerInterceptor)
    return ConsumerInterceptors(found) if found else None
