"""`fairlead consume`: records to lines.

`record_options`, `record_offsets` and `record_values` parse the options, `record_output` prints
records; here the records are read.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.connecting import TOPIC_S, open_consumer
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.record_offsets import BEGINNING, END, SYNTAX, OffsetSpec, parse_offset, resolve
from fairlead_kafka.cli.record_options import (
    FormatOptions,
    KeySeparator,
    Topic,
    separator_of,
)
from fairlead_kafka.cli.record_output import Decoders, Print, formatted, json_lines, lines
from fairlead_kafka.cli.record_values import decoder
from fairlead_kafka.cli.share import consume_share
from fairlead_kafka.cli.terminal import (
    counted,
    errors,
)
from fairlead_kafka.formats.context import MessageField

if TYPE_CHECKING:
    from fairlead_kafka.cli.record_output import AnyRecord
    from fairlead_kafka.client import Consumer, Record

POLL_S = 0.2
"""Time that one poll waits, s; Ctrl-C takes effect in between."""


class Isolation(StrEnum):
    """Values of `isolation.level`."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


@expanded
def consume(
    *,
    topic: Topic,
    from_beginning: Annotated[
        bool,
        typer.Option(
            "--from-beginning",
            help="Start at the first record; otherwise only new ones. With --share: sets the group's "
            "share.auto.offset.reset=earliest.",
        ),
    ] = False,
    offset: Annotated[
        str | None, typer.Option("--offset", "-o", help=f"Start here in each partition: {SYNTAX}.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", help="Stop before this offset of each partition, written like --offset."),
    ] = None,
    max_records: Annotated[
        int | None, typer.Option("--max-records", "-n", min=1, help="Stop after so many.")
    ] = None,
    until_end: Annotated[bool, typer.Option("--until-end", help="Stop at what is the end now.")] = False,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only this partition; may be repeated.")
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
    isolation_level: Annotated[
        Isolation | None,
        typer.Option("--isolation-level", help="read_committed: nothing of open or aborted transactions."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each record as a JSON object in a line.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="Print records like this: %s value, %S its size, %k key, %K its size, %o offset, "
            "%p partition, %t topic, %T timestamp, %h headers, \\n (as kcat's -f).",
        ),
    ] = None,
    null: Annotated[
        str, typer.Option("--null", metavar="TEXT", help="What is printed for a null key or value.")
    ] = "",
    formats: FormatOptions,
    key_separator: KeySeparator = None,
    client: ClientOptions,
) -> None:
    """Print the value of each record, one a line, until Ctrl-C.

    With --key-separator the key before it.
    """
    show = _print(as_json, form, key_separator)
    schemas = formats.schemas()
    decoders = Decoders(
        decoder(formats.key_format, MessageField.KEY, schemas),
        decoder(formats.value_format, MessageField.VALUE, schemas),
        null.encode(),
    )
    start, stop = _start(from_beginning, offset, group), _stop(until, until_end, group)
    settings = client.settings()
    if isolation_level is not None:
        settings = {**settings, "isolation.level": isolation_level.value}
    if share is not None:
        if offset or stop or partition or group is not None or isolation_level:
            raise ConfigError(
                "--share goes with --from-beginning alone: brokers choose the partitions, and the group's "
                "configs share.auto.offset.reset and share.isolation.level say where it begins and what it "
                "reads"
            )
        settings = {**settings, "group.id": share}
        consume_share(settings, topic, max_records, partial(_write, show, decoders), from_beginning)
        return
    if group is not None:
        if partition:
            raise ConfigError("--group shares out the partitions by itself: leave --partition away")
        reset = "earliest" if start == BEGINNING else "latest"
        settings = {"auto.offset.reset": reset, **settings, "group.id": group}
    with open_consumer(settings) as consumer:
        partitions = _chosen(consumer, topic, partition)
        if group is not None:
            consumer.subscribe([topic])
            over = _never if stop is None else _group_at_end(consumer, partitions)
            records = _polled(consumer, max_records, over)
        else:
            ends = None if stop is None else resolve(consumer, stop, partitions, "--until", bounded=False)
            # Before it is assigned: a question asked while a fetch waits for records waits with it.
            starts = resolve(consumer, start, partitions, "--offset", bounded=True)
            consumer.assign(partitions)
            for of, at in starts.items():
                consumer.seek(of, at)
            records = _polled(consumer, max_records, _never) if ends is None else _until(consumer, ends)
        _print_all(itertools.islice(records, max_records), show, decoders)


def _write(show: Print, decoders: Decoders, record: AnyRecord) -> None:
    sys.stdout.buffer.write(show(record, decoders))


def _print_all(records: Iterator[Record], show: Print, decoders: Decoders) -> None:
    shown = 0
    try:
        for record in records:
            _write(show, decoders, record)
            shown += 1
    except KeyboardInterrupt:
        pass  # The usual way to end it.
    finally:
        sys.stdout.buffer.flush()
        errors.print(counted(shown))


def _print(as_json: bool, form: str | None, key_separator: str | None) -> Print:
    """The function that prints a record as the options say. ConfigError if they ask for more than
    one way."""
    given = {"--json": as_json, "--format": form is not None, "--key-separator": key_separator is not None}
    chosen = [name for name, one in given.items() if one]
    if len(chosen) > 1:
        raise ConfigError(f"{' and '.join(chosen)}: each says how records are printed; give one of them")
    if as_json:
        return json_lines
    return lines(separator_of(key_separator)) if form is None else formatted(form)


def _start(from_beginning: bool, offset: str | None, group: str | None) -> OffsetSpec:
    if offset is None:
        return BEGINNING if from_beginning else END
    if from_beginning:
        raise ConfigError("--from-beginning and --offset: both say where to start; give one of them")
    start = parse_offset(offset, "--offset")
    if group is not None and start not in (BEGINNING, END):
        raise ConfigError(
            f"--offset {offset}: a group goes on where it committed; `fairlead groups reset-offsets` "
            "moves it. Here only beginning or end can be given, for partitions where it has not"
        )
    return start


def _stop(until: str | None, until_end: bool, group: str | None) -> OffsetSpec | None:
    if until is None:
        return END if until_end else None
    if until_end:
        raise ConfigError("--until and --until-end: both say where to stop; give one of them")
    stop = parse_offset(until, "--until")
    if group is not None and stop != END:
        raise ConfigError(f"--until {until}: with --group only the end can be given (--until-end)")
    return stop


def _chosen(consumer: Consumer, topic: str, numbers: list[int] | None) -> list[TopicPartition]:
    existing = [each.partition for each in consumer.partitions_for(topic, timeout_s=TOPIC_S)]
    unknown = sorted(set(numbers or ()) - set(existing))
    if unknown:
        raise ConfigError(
            f"--partition {unknown[0]}: topic {topic} has partitions {min(existing)} to {max(existing)}"
        )
    return [TopicPartition(topic, number) for number in numbers or existing]


def _polled(consumer: Consumer, max_records: int | None, over: Callable[[], bool]) -> Iterator[Record]:
    """Records, until there are `max_records` or `over()` is true. No more are polled than are
    wanted, for a group counts polled records as read."""
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


def _until(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> Iterator[Record]:
    """Records below the offsets `ends`, until the positions of all partitions have reached them."""
    while any(consumer.position(one) < end for one, end in ends.items()):
        records = consumer.poll(POLL_S)
        for record in records:
            if record.offset < ends[TopicPartition(record.topic, record.partition)]:
                yield record
        if not records:
            sys.stdout.buffer.flush()


def _group_at_end(consumer: Consumer, partitions: list[TopicPartition]) -> Callable[[], bool]:
    """A function that is true once the group has read all records that there are now: this member
    by its positions, the others by their committed offsets."""
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
