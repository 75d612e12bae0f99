"""`fairlead produce` and `fairlead consume`: lines to records and back."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Annotated, BinaryIO

import typer

from fairlead.base.errors import ConfigError
from fairlead.base.ids import TopicPartition
from fairlead.cli.terminal import DEFAULT_BOOTSTRAP_SERVERS, BootstrapServers, ClientProperties, client_settings, errors
from fairlead.client import Consumer, Producer, Record

Topic = Annotated[str, typer.Argument(help="The topic.")]
KeySeparator = Annotated[str | None, typer.Option("--key-separator", "-k", help="What stands between key and value; \\t for a tab.")]

POLL_S = 0.2
"""How long one poll waits; Ctrl-C is heard in between."""


def _separator(text: str | None) -> bytes | None:
    if text == "":
        raise ConfigError("--key-separator: must not be empty")
    return text.replace("\\t", "\t").encode() if text else None


def produce(
    topic: Topic,
    key_separator: KeySeparator = None,
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    properties: ClientProperties = None,
) -> None:
    """Send each line of standard input as a record, until its end or Ctrl-C."""
    separator = _separator(key_separator)
    sent = 0
    failed: list[Exception] = []

    def done(_: object, error: Exception | None) -> None:
        if error is not None:
            failed.append(error)

    with Producer(client_settings(bootstrap_servers, properties)) as producer:
        try:
            for number, line in enumerate(_lines(sys.stdin.buffer), start=1):
                key, found, value = line.partition(separator) if separator else (None, b"", line)
                if separator and not found:
                    raise ConfigError(f"line {number} of standard input has no key separator {key_separator!r}: {line[:60]!r}")
                producer.send(topic, value, key=key, on_delivery=done)
                sent += 1
        except KeyboardInterrupt:
            errors.print("interrupted; sending what was read")
        producer.flush()
    errors.print(f"{sent - len(failed):,} records acknowledged")
    if failed:
        raise failed[0]


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    for line in stream:
        yield line.rstrip(b"\r\n")


def consume(
    topic: Topic,
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="Start at the first record; otherwise only new ones.")] = False,
    max_records: Annotated[int | None, typer.Option("--max-records", "-n", min=1, help="Stop after so many.")] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at what is the end now.")] = False,
    partition: Annotated[list[int] | None, typer.Option("--partition", help="Only this partition; may be repeated.")] = None,
    key_separator: KeySeparator = None,
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    properties: ClientProperties = None,
) -> None:
    """Print the value of each record, one a line, until Ctrl-C; with --key-separator the key before it."""
    separator = _separator(key_separator)
    with Consumer(client_settings(bootstrap_servers, properties)) as consumer:
        existing = consumer.partitions_for(topic)
        unknown = sorted(set(partition or ()) - set(existing))
        if unknown:
            raise ConfigError(f"--partition {unknown[0]}: topic {topic} has partitions {min(existing)} to {max(existing)}")
        partitions = [TopicPartition(topic, number) for number in partition or existing]
        consumer.assign(partitions)
        if from_beginning:
            consumer.seek_to_beginning(partitions)
        else:
            consumer.seek_to_end(partitions)
        records = _until_end(consumer, partitions) if until_end else _forever(consumer)
        shown = 0
        try:
            for record in itertools.islice(records, max_records):
                _print(record, separator)
                shown += 1
        except KeyboardInterrupt:
            pass  # The usual way to end it.
        finally:
            sys.stdout.buffer.flush()
            errors.print(f"{shown:,} records")


def _forever(consumer: Consumer) -> Iterator[Record]:
    while True:
        records = consumer.poll(POLL_S)
        yield from records
        if not records:
            sys.stdout.buffer.flush()


def _until_end(consumer: Consumer, partitions: list[TopicPartition]) -> Iterator[Record]:
    ends = consumer.end_offsets(partitions)
    while any(consumer.position(one) < ends[one] for one in partitions):
        for record in consumer.poll(POLL_S):
            if record.offset < ends[TopicPartition(record.topic, record.partition)]:
                yield record


def _print(record: Record, separator: bytes | None) -> None:
    if separator:
        sys.stdout.buffer.write((record.key or b"") + separator)
    sys.stdout.buffer.write((record.value or b"") + b"\n")
