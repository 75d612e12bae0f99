"""Interceptors of consumers; see `interceptors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead_kafka.client.interceptors import Chain, made_of
from fairlead_kafka.consumer.record import Record

if TYPE_CHECKING:
    import pyarrow as pa


class ConsumerInterceptor:
    """Base of consumers' interceptors, whose methods do nothing; Kafka's `ConsumerInterceptor`."""

    def configure(self, config: Mapping[str, object]) -> None:
        """Called with the consumer's config, if the client makes the interceptor itself."""

    def on_consume(self, records: list[Record]) -> list[Record]:
        """Called before `poll` returns records; returns the ones to give to the caller instead.

        Positions move past all of `records`, also past those left out.
        """
        return records

    def on_consume_table(self, table: pa.Table) -> pa.Table:
        """Called before `poll_table` or `read_range` returns rows; returns the table to give to the
        caller instead."""
        return table

    def close(self) -> None:
        """Called when the consumer is closed."""


class ConsumerInterceptors(Chain[ConsumerInterceptor]):
    """A consumer's interceptors, called one after the other."""

    def on_consume(self, records: list[Record]) -> list[Record]:
        """The records as the interceptors leave them."""
        return self.changed(records, lambda each, item: each.on_consume(item), list) if records else records

    def on_consume_table(self, table: pa.Table) -> pa.Table:
        """The table as the interceptors leave it."""
        return (
            self.changed(table, lambda each, item: each.on_consume_table(item), type(table))
            if table.num_rows
            else table
        )


def consumer_interceptors(given: object, config: Mapping[str, object]) -> ConsumerInterceptors | None:
    """Interceptors of `interceptor.classes`; None for none. ConfigError if one cannot be imported
    or made."""
    found = made_of(given, config, ("on_consume", "on_consume_table"), ConsumerInterceptor)
    return ConsumerInterceptors(found) if found else None
