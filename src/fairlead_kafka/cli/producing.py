"""`fairlead produce`: lines to records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from fairlead_kafka.base.errors import ConfigError, FairleadError, InvalidRecord, TimedOut
from fairlead_kafka.cli.connecting import open_producer
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.record_input import (
    Encoders,
    Outgoing,
    Read,
    header_pairs,
    json_lines,
    plain_lines,
)
from fairlead_kafka.cli.record_offsets import time_ms
from fairlead_kafka.cli.record_options import (
    FormatOptions,
    KeySeparator,
    Topic,
    separator_of,
)
from fairlead_kafka.cli.record_values import encoder
from fairlead_kafka.cli.terminal import (
    counted,
    errors,
)
from fairlead_kafka.formats.context import MessageField

if TYPE_CHECKING:
    from fairlead_kafka.client import Producer

FLUSH_S = 5.0
"""How long the records read before Ctrl-C or a bad line may take to be delivered."""


@expanded
def produce(
    *,
    topic: Topic,
    key_separator: KeySeparator = None,
    key: Annotated[str | None, typer.Option("--key", help="The key of all records.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="NAME=VALUE", help="A header of all records; may be repeated."
        ),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="The partition of all records.")
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp", help="Of all records: 2026-01-31T10:00 (UTC, or with its zone), or ms since 1970."
        ),
    ] = None,
    null: Annotated[
        str | None,
        typer.Option(
            "--null",
            metavar="TEXT",
            help="A key or value that is this text is null: a tombstone, as a value.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Each line is a JSON object: value, key, headers, partition, timestamp, as `consume --json` "
            "prints it.",
        ),
    ] = False,
    formats: FormatOptions,
    client: ClientOptions,
) -> None:
    """Send each line of standard input as a record.

    Until its end or Ctrl-C.
    """
    separator = separator_of(key_separator)
    if separator is not None and key is not None:
        raise ConfigError("--key and --key-separator: both say what the key is; give one of them")
    if as_json and (separator is not None or null is not None):
        raise ConfigError(
            "--json: a line says itself what its key is, and what is null; leave the others out"
        )
    schemas = formats.schemas()
    encoders = Encoders(
        topic,
        encoder(formats.key_format, MessageField.KEY, schemas),
        formats.key_format,
        encoder(formats.value_format, MessageField.VALUE, schemas),
        formats.value_format,
    )
    usual = Outgoing(
        None if key is None else key.encode(),
        None,
        header_pairs(header),
        partition,
        None if timestamp is None else time_ms(timestamp, "--timestamp"),
    )
    read = (
        json_lines(usual, encoders)
        if as_json
        else plain_lines(usual, separator, None if null is None else null.encode(), encoders)
    )
    with open_producer(client.settings()) as producer:
        _send_all(producer, topic, read)


def _send_all(producer: Producer, topic: str, read: Read) -> None:
    """Send all lines; says how many records were acknowledged, whatever happens."""
    failed: list[Exception] = []

    def done(_: object, error: Exception | None) -> None:
        if error is not None:
            failed.append(error)

    sent = 0
    try:
        for number, line in enumerate(_lines(sys.stdin.buffer), start=1):
            one = read(line, number)
            try:
                producer.send(
                    topic,
                    one.value,
                    key=one.key,
                    headers=one.headers,
                    partition=one.partition,
                    timestamp_ms=one.timestamp_ms,
                    on_delivery=done,
                )
            except InvalidRecord as error:
                raise InvalidRecord(f"line {number} of standard input: {error}") from None
            sent += 1
        producer.flush()
    except KeyboardInterrupt:
        errors.print("interrupted; sending what was read")
        _end_soon(producer)
    except FairleadError:
        _end_soon(producer)
        raise
    finally:
        still_open = producer.metrics()["producer-metrics"]["records-open"]
        errors.print(f"{counted(max(0, sent - len(failed) - int(still_open)))} acknowledged")
    if failed:
        raise failed[0]


def _end_soon(producer: Producer) -> None:
    """Close the producer within FLUSH_S seconds: records that are not delivered by then are given
    up."""
    with suppress(TimedOut):
        producer.flush(FLUSH_S)
    producer.close(timeout_s=0)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    for line in stream:
        yield line.rstrip(b"\r\n")
