"""`fairlead transactions list | describe | producers | abort | hanging`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from fairlead_kafka.admin import AbortTransaction, ProducerState
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.hanging import hanging_transactions
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.partition_names import known_brokers, named_partitions
from fairlead_kafka.cli.terminal import (
    JsonFile,
    errors,
    output,
    show_rows,
)
from fairlead_kafka.client import Admin

app = typer.Typer(no_args_is_help=True, help="List, describe, abort transactions; find hanging ones.")

_LONGEST_MINUTES = 15
"""Kafka's default of `transaction.max.timeout.ms`: no coordinator leaves one open for longer."""


@app.command(name="list")
@expanded
def list_transactions(
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state", help="Only transactional ids in this state, such as Ongoing; may be repeated."
        ),
    ] = None,
    producer_id: Annotated[
        list[int] | None, typer.Option("--producer-id", help="Only those of this producer id.")
    ] = None,
    open_for: Annotated[
        float | None, typer.Option("--open-for", metavar="SECONDS", help="Only those open for longer.")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option("--pattern", help="Only ids that this regular expression takes whole.")
    ] = None,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """List transactional ids, with their states."""
    with open_admin(client.settings()) as admin:
        listed = admin.list_transactions(
            state or (),
            producer_ids=producer_id or (),
            open_for_ms=None if open_for is None else open_for * 1000,
            pattern=pattern,
        )
    show_rows(
        [
            {"transactional_id": one.transactional_id, "producer_id": one.producer_id, "state": one.state}
            for _, one in sorted(listed.items())
        ],
        json_file,
    )


@app.command()
@expanded
def describe(
    transactional_ids: Annotated[list[str], typer.Argument(help="Transactional ids.")],
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Show what a coordinator knows of transactional ids."""
    with open_admin(client.settings()) as admin:
        described = admin.describe_transactions(transactional_ids)
    show_rows(
        [
            {
                "transactional_id": one.transactional_id,
                "coordinator": None if one.coordinator is None else one.coordinator.node_id,
                "producer_id": one.producer_id,
                "epoch": one.epoch,
                "state": one.state,
                "timeout_ms": one.timeout_ms,
                "started": _time(one.started_ms),
                "partitions": [str(of) for of in one.partitions],
            }
            for one in described.values()
        ],
        json_file,
    )


@app.command()
@expanded
def producers(
    topic: Annotated[list[str], typer.Argument(metavar="TOPIC", help="TOPIC, or TOPIC:0,1.")],
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Show the producers of partitions, as their leaders know them."""
    with open_admin(client.settings()) as admin:
        found = admin.describe_producers(named_partitions(admin, topic, "TOPIC"))
    rows = [
        {
            "topic": of.topic,
            "partition": of.partition,
            "producer_id": one.producer_id,
            "epoch": one.epoch,
            "last_sequence": one.last_sequence,
            "last_time": _time(one.last_timestamp_ms),
            "coordinator_epoch": one.coordinator_epoch,
            "transaction_start_offset": one.transaction_start_offset,
        }
        for of, producers in sorted(found.items())
        for one in producers
    ]
    show_rows(rows, json_file)


@app.command()
@expanded
def abort(
    transactional_id: Annotated[
        str | None, typer.Argument(help="End what its coordinator has open under this id.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", help="One that hangs, past its coordinator: the partition, as TOPIC:0."),
    ] = None,
    start_offset: Annotated[
        int | None, typer.Option("--start-offset", help="Where it begins; `hanging` tells.")
    ] = None,
    *,
    client: ClientOptions,
) -> None:
    """Abort a transaction, by its id or where it hangs.

    Its producer is fenced; one that still runs gets an error with its next request.
    """
    if (transactional_id is None) == (topic is None) or (topic is None) != (start_offset is None):
        raise UsageError("say which: a transactional id, or --topic TOPIC:0 with --start-offset")
    with open_admin(client.settings()) as admin:
        if transactional_id is not None:
            if transactional_id not in admin.list_transactions():
                raise UsageError(
                    f"there is no transactional id {transactional_id}; `fairlead transactions list` has "
                    "those that there are"
                )
            admin.force_terminate_transaction(transactional_id)
            output.print(f"aborted: {transactional_id}", markup=False)
            return
        partitions = named_partitions(admin, [topic or ""])
        if len(partitions) != 1:
            raise UsageError(f"--topic {topic}: name one partition, such as {topic}:0")
        admin.abort_transaction(_at(admin, partitions[0], start_offset or 0))
    output.print(f"aborted: {partitions[0]} from offset {start_offset}", markup=False)


@app.command()
@expanded
def hanging(
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="Look at TOPIC, or TOPIC:0,1; may be repeated.")
    ] = None,
    broker: Annotated[
        int | None, typer.Option("--broker", help="Look at the partitions that this broker has.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Look at all partitions.")] = False,
    open_for: Annotated[
        float,
        typer.Option(
            "--open-for",
            min=0,
            metavar="MINUTES",
            help="Only those open for longer; less than transaction.max.timeout.ms finds those that live.",
        ),
    ] = _LONGEST_MINUTES,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Find open transactions that no coordinator knows.

    They hold back every consumer that reads committed records, and nobody ends them.
    """
    if [bool(topic), broker is not None, every].count(True) != 1:
        raise UsageError("say where to look: one of --topic, --broker, --all")
    with open_admin(client.settings()) as admin:
        partitions = _looked_at(admin, topic, broker)
        now_ms = datetime.now(UTC).timestamp() * 1000
        found = hanging_transactions(admin, partitions, now_ms - open_for * 60_000)
    rows = [_hanging_row(of, one) for of, one in found]
    show_rows(rows, json_file)
    if not rows:
        errors.print(f"none in {len(partitions)} partitions")


def _looked_at(admin: Admin, topics: list[str] | None, broker: int | None) -> list[TopicPartition]:
    if topics:
        return named_partitions(admin, topics)
    described = admin.describe_topics(admin.list_topics(include_internal=True))
    found = [
        TopicPartition(name, one.partition)
        for name, topic in described.items()
        for one in topic.partitions
        if broker is None or broker in one.replicas
    ]
    if broker is not None and not found:  # one that is down is known by its replicas
        known_brokers(admin.describe_cluster(), [broker])
    return found


def _at(admin: Admin, of: TopicPartition, start_offset: int) -> AbortTransaction:
    """The open transaction that begins at `start_offset` of a partition. UsageError if there is
    none."""
    states = admin.describe_producers([of])[of]
    for one in states:
        if one.transaction_start_offset == start_offset:
            # A coordinator that never ended one has epoch 0 there (Kafka's TransactionsCommand).
            return AbortTransaction(of, one.producer_id, one.epoch, max(one.coordinator_epoch or 0, 0))
    begin = sorted(one.transaction_start_offset for one in states if one.transaction_start_offset is not None)
    there = f"those that are open begin at {', '.join(map(str, begin))}" if begin else "none is open"
    raise UsageError(f"no transaction of {of} begins at offset {start_offset}; {there}")


def _hanging_row(of: TopicPartition, one: ProducerState) -> dict[str, object]:
    return {
        "topic": of.topic,
        "partition": of.partition,
        "producer_id": one.producer_id,
        "epoch": one.epoch,
        "coordinator_epoch": one.coordinator_epoch,
        "start_offset": one.transaction_start_offset,
        "last_time": _time(one.last_timestamp_ms),
    }


def _time(milliseconds: int) -> str | None:
    """A time, in milliseconds since 1970, as text, in UTC to the millisecond; None for -1, which is
    none."""
    if milliseconds < 0:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
