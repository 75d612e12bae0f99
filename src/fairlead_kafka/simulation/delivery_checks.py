"""Checks of deliveries: the log is compared with the results that applications got."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairlead_kafka.base.units import ns_to_ms
from fairlead_kafka.records import decode
from fairlead_kafka.simulation.model_log import ModelPartition
from fairlead_kafka.simulation.workload import RecordResult, Sender

Place = tuple[str, int]
Contents = dict[Place, list[bytes | None]]
"""(topic, partition) → the values by offset; None at offsets without a user's record."""
SLACK_MS = 5.0
"""Ms by which a record may be completed later than delivery.timeout.ms: the machine looks into its
intake once a millisecond.
"""


@dataclass(frozen=True, slots=True)
class Promise:
    """Guarantees of a producer's configuration; times in ms."""

    completes_within_ms: float
    durable: bool
    """acks=all: an acknowledged record is in the log."""
    once: bool
    """Idempotence: no record is there twice, and order holds through every retry."""
    ordered: bool
    """One request in flight: acknowledged offsets rise."""
    one_order: bool
    """Records with and without key share one order; not so where unkeyed ones are bound late."""


def contents_of(partition: ModelPartition) -> list[bytes | None]:
    """The values of a model partition by offset."""
    values: list[bytes | None] = []
    data = b"".join(batch.data for batch in partition.batches if batch.data is not None)
    decoded = decode(data) if data else None
    flat = iter(decoded.values.to_list() if decoded is not None and decoded.values is not None else ())
    for batch in partition.batches:
        values += (
            [None] * batch.header.count
            if batch.data is None
            else [next(flat) for _ in range(batch.header.count)]
        )
    return values


def identify(value: bytes) -> tuple[int, int]:
    """The producer's number and the record's serial in a value that `Sender.value` made."""
    number, serial, _ = value.split(b"/", 2)
    return int(number), int(serial)


def check_deliveries(
    sender: Sender, promise: Promise, contents: Contents, durable: Sequence[str]
) -> list[str]:
    """Every violation, as a text, in the deliveries of one producer; `durable`: the topics that may
    lose no acknowledged record."""
    found: list[str] = []
    found += incomplete_or_late(sender, promise)
    if promise.durable:
        found += _lost(sender, contents, durable)
    places = [(place, offset, serial) for place, offset, serial in _own(sender.number, contents)]
    if promise.once:
        found += _twice(sender, places)
        found += _out_of_order(sender, places, promise.one_order)
    elif promise.ordered:
        # Where acknowledged records may be lost, their offsets are given out again.
        placed = [(serial, result) for serial, result in _acknowledged(sender) if result.topic in durable]
        acknowledged = sorted(
            ((result.topic, result.partition), result.offset, serial) for serial, result in placed
        )
        found += _out_of_order(sender, acknowledged, promise.one_order)
    return found


def _acknowledged(sender: Sender) -> Iterable[tuple[int, RecordResult]]:
    return (
        (serial, result)
        for serial, result in enumerate(sender.results)
        if result.acknowledged and result.offset >= 0
    )


def _own(number: int, contents: Contents) -> Iterable[tuple[Place, int, int]]:
    for place, values in contents.items():
        for offset, value in enumerate(values):
            if value is not None:
                producer, serial = identify(value)
                if producer == number:
                    yield place, offset, serial


def incomplete_or_late(sender: Sender, promise: Promise) -> list[str]:
    """Records of one producer that were not completed, or later than `promise` allows, as texts."""
    found = []
    for serial, result in enumerate(sender.results):
        if result.completed_ns < 0:
            if serial in sender.abandoned:
                continue
            found.append(f"{sender.name}: record {serial} for {result.topic!r} was never completed")
            continue
        took_ms = ns_to_ms(result.completed_ns - result.submitted_ns)
        if took_ms > promise.completes_within_ms + SLACK_MS:
            limit = f"delivery.timeout.ms={promise.completes_within_ms:g}"
            found.append(
                f"{sender.name}: record {serial} was completed after {took_ms:.1f} ms, {limit} "
                f"({result.error or 'acknowledged'})"
            )
    return found


def _lost(sender: Sender, contents: Contents, durable: Sequence[str]) -> list[str]:
    found = []
    for serial, result in enumerate(sender.results):
        if not result.acknowledged or result.topic not in durable:
            continue
        values = contents.get((result.topic, result.partition), [])
        if result.offset < 0:
            if not any(value is not None and identify(value) == (sender.number, serial) for value in values):
                found.append(
                    f"{sender.name}: record {serial} was acknowledged as a duplicate and is not in "
                    f"{result.topic}-{result.partition}"
                )
            continue
        value = values[result.offset] if result.offset < len(values) else None
        if value is None or identify(value) != (sender.number, serial):
            there = "nothing" if value is None else "record {1} of producer {0}".format(*identify(value))
            place = f"{result.topic}-{result.partition} at {result.offset}"
            found.append(f"{sender.name}: record {serial} was acknowledged in {place}, where {there} is")
    return found


def _twice(sender: Sender, places: Sequence[tuple[Place, int, int]]) -> list[str]:
    first: dict[int, str] = {}
    found = []
    for (topic, partition), offset, serial in places:
        where = f"{topic}-{partition} at {offset}"
        if serial in first:
            found.append(f"{sender.name}: record {serial} is there twice: {first[serial]}, and {where}")
        first.setdefault(serial, where)
    return found


def _out_of_order(sender: Sender, places: Sequence[tuple[Place, int, int]], one_order: bool) -> list[str]:
    found = []
    newest: dict[tuple[Place, bool], int] = {}
    for place, offset, serial in places:
        key = (place, one_order or sender.results[serial].placed)
        before = newest.get(key, -1)
        if serial < before:
            topic, partition = place
            found.append(
                f"{sender.name}: {topic}-{partition} has record {serial} at {offset}, behind record {before}"
            )
        newest[key] = max(before, serial)
    return found
