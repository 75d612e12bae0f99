"""`fairlead produce` and `fairlead consume`: lines to records and back."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from fairlead_kafka.base.errors import ConfigError, FairleadError, InvalidRecord, TimedOut
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.connecting import TOPIC_S, open_consumer, open_producer
from fairlead_kafka.cli.share import consume_share
from fairlead_kafka.cli.terminal import (
    DEFAULT_BOOTSTRAP_SERVERS,
    BootstrapServers,
    ClientProperties,
    client_settings,
    counted,
    errors,
)

if TYPE_CHECKING:
    from fairlead_kafka.client import Consumer, Producer, Record, ShareRecord

Topic = Annotated[str, typer.Argument(help="The topic.")]
KeySeparator = Annotated[
    str | None,
    typer.Option("--key-separator", "-k", help="What stands between key and value; \\t for a tab."),
]

POLL_S = 0.2
"""How long one poll waits; Ctrl-C is heard in between."""
FLUSH_S = 5.0
"""How long the records read before Ctrl-C or a bad line may take to be delivered."""


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
    """Send each line of standard input as a record.

    Until its end or Ctrl-C.
    """
    separator = _separator(key_separator)
    failed: list[Exception] = []

    def done(_: object, error: Exception | None) -> None:
        if error is not None:
            failed.append(error)

    sent = 0
    with open_producer(client_settings(bootstrap_servers, properties)) as producer:
        try:
            for number, line in enumerate(_lines(sys.stdin.buffer), start=1):
                key, value = _key_and_value(line, separator, number)
                try:
                    producer.send(topic, value, key=key, on_delivery=done)
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


def _key_and_value(line: bytes, separator: bytes | None, number: int) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(separator)
    if not found:
        shown = line[:60].decode(errors="replace")
        raise ConfigError(
            f"line {number} of standard input has no key separator {separator.decode()!r}: {shown!r}"
        )
    return key, value


def _end_soon(producer: Producer) -> None:
    """Delivers what was sent before, if that takes but a moment: this is the way out."""
    with suppress(TimedOut):
        producer.flush(FLUSH_S)
    producer.close(timeout_s=0)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    for line in stream:
        yield line.rstrip(b"\r\n")


def consume(
    topic: Topic,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the first record; otherwise only new ones.")
    ] = False,
    max_records: Annotated[
        int | None, typer.Option("--max-records", "-n", min=1, help="Stop after so many.")
    ] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at what is the end now.")] = False,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", help="Only this partition; may be repeated.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            help="Read as a member of this group: go on where it committed, and commit what was printed.",
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(
            "--share",
            help="Read as a member of this share group, with others of each partition; what was printed is "
            "accepted.",
        ),
    ] = None,
    key_separator: KeySeparator = None,
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    properties: ClientProperties = None,
) -> None:
    """Print the value of each record, one a line, until Ctrl-C.

    With --key-separator the key before it.
    """
    separator = _separator(key_separator)
    settings = client_settings(bootstrap_servers, properties)
    if share is not None:
        if from_beginning or until_end or partition or group is not None:
            raise ConfigError(
                "--share goes alone: brokers choose the partitions, and the group's config "
                "share.auto.offset.reset says where it begins"
            )
        settings = {**settings, "group.id": share}
        consume_share(settings, topic, max_records, lambda record: _print(record, separator))
        return
    if group is not None:
        if partition:
            raise ConfigError("--group shares out the partitions by itself: leave --partition away")
        settings = {
            "auto.offset.reset": "earliest" if from_beginning else "latest",
            **settings,
            "group.id": group,
        }
    with open_consumer(settings) as consumer:
        partitions = _chosen(consumer, topic, partition)
        if group is not None:
            consumer.subscribe([topic])
            records = _polled(
                consumer, max_records, _group_at_end(consumer, partitions) if until_end else _never
            )
        else:
            consumer.assign(partitions)
            (consumer.seek_to_beginning if from_beginning else consumer.seek_to_end)(partitions)
            records = (
                _until_end(consumer, partitions) if until_end else _polled(consumer, max_records, _never)
            )
        shown = 0
        try:
            for record in itertools.islice(records, max_records):
                _print(record, separator)
                shown += 1
        except KeyboardInterrupt:
            pass  # The usual way to end it.
        finally:
            sys.stdout.buffer.flush()
            errors.print(counted(shown))


def _chosen(consumer: Consumer, topic: str, numbers: list[int] | None) -> list[TopicPartition]:
    existing = [each.partition for each in consumer.partitions_for(topic, timeout_s=TOPIC_S)]
    unknown = sorted(set(numbers or ()) - set(existing))
    if unknown:
        raise ConfigError(
            f"--partition {unknown[0]}: topic {topic} has partitions {min(existing)} to {max(existing)}"
        )
    return [TopicPartition(topic, number) for number in numbers or existing]


def _polled(consumer: Consumer, max_records: int | None, over: Callable[[], bool]) -> Iterator[Record]:
    """Records until so many, or `over`. No more are polled than are wanted: a group counts what was
    polled as read."""
    left = max_records
    while left != 0 and not over():
        records = consumer.poll(POLL_S, left)
        yield from records
        if left is not None:
            left -= len(records)
        if not records:
            sys.stdout.buffer.flush()


def _never() -> bool:
    return False


def _until_end(consumer: Consumer, partitions: list[TopicPartition]) -> Iterator[Record]:
    ends = consumer.end_offsets(partitions)
    while any(consumer.position(one) < ends[one] for one in partitions):
        for record in consumer.poll(POLL_S):
            if record.offset < ends[TopicPartition(record.topic, record.partition)]:
                yield record


def _group_at_end(consumer: Consumer, partitions: list[TopicPartition]) -> Callable[[], bool]:
    """Whether the group has read everything that there is now: this member what is its share, the
    others what they committed."""
    ends = consumer.end_offsets(partitions)

    def over() -> bool:
        mine = set(consumer.assignment())
        unfinished = [one for one in partitions if one in mine and consumer.position(one) < ends[one]]
        others = [one for one in partitions if one not in mine and ends[one] > 0]
        if unfinished or not others:
            return not unfinished and bool(mine)
        committed = consumer.committed(others)
        return all((at := committed[one]) is not None and at.offset >= ends[one] for one in others)

    return over


def _print(record: Record | ShareRecord, separator: bytes | None) -> None:
    if separator:
        sys.stdout.buffer.write((record.key or b"") + separator)
    sys.stdout.buffer.write((record.value or b"") + b"\n")
