"""Checks of transactions: compare what a read_committed reader sees with the results that
applications got."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.simulation.delivery_checks import Contents, Place, identify
from fairlead_kafka.simulation.model_log import ModelLog, ModelPartition
from fairlead_kafka.simulation.transactional import Outcome, TransactionalSender, TransactionResult

Offsets = dict[str, dict[Place, int]]


def committed_records(log: ModelLog, contents: Contents) -> tuple[set[tuple[int, int]], list[str]]:
    """(producer, serial) of every record that a read_committed reader sees, and errors in the log
    itself.
    """
    seen: set[tuple[int, int]] = set()
    wrong: list[str] = []
    for topic, index, partition in log.each():
        hanging = _read(partition, contents[topic, index], seen)
        wrong += [
            f"{topic}-{index} has a transaction of producer id {each} that never ended: readers wait for it"
            for each in hanging
        ]
    return seen, wrong


def _read(partition: ModelPartition, values: Sequence[bytes | None], seen: set[tuple[int, int]]) -> list[int]:
    undecided: dict[int, list[tuple[int, int]]] = {}
    for batch in partition.batches:
        header = batch.header
        if batch.committed is not None:
            records = undecided.pop(header.producer_id, [])
            if batch.committed:
                seen.update(records)
            continue
        records = [
            identify(value) for value in values[batch.base_offset : batch.end_offset] if value is not None
        ]
        if header.transactional:
            undecided.setdefault(header.producer_id, []).extend(records)
        else:
            seen.update(records)
    return list(undecided)


def check_transactions(
    sender: TransactionalSender, seen: set[tuple[int, int]], offsets: Offsets | None, durable: Sequence[str]
) -> list[str]:
    """Every violation, as a text, in the transactions of one application; `durable` as for
    `check_deliveries`.

    `offsets` None: offsets are not checked.
    """
    found: list[str] = []
    for transaction in sender.transactions:
        found += _check_one(sender, transaction, seen, durable)
    return found if offsets is None else found + _check_offsets(sender, offsets)


def _check_one(
    sender: TransactionalSender,
    transaction: TransactionResult,
    seen: set[tuple[int, int]],
    durable: Sequence[str],
) -> list[str]:
    stop = transaction.stop if transaction.stop >= 0 else len(sender.results)
    serials = [serial for serial in range(transaction.first, stop) if sender.results[serial].topic in durable]
    visible = [serial for serial in serials if (sender.number, serial) in seen]
    who = (
        f"{sender.name}: transaction {transaction.number} ({transaction.outcome.name}, records "
        f"{transaction.first} to {stop - 1})"
    )
    outcome = transaction.outcome
    if outcome is Outcome.OPEN:
        return [f"{who} never ended"]
    if outcome is Outcome.ABORTED:
        return [f"{who} shows {len(visible)} records, the first is {visible[0]}"] if visible else []
    if outcome is Outcome.COMMITTED:
        failed = [serial for serial in serials if not sender.results[serial].acknowledged]
        if failed:
            return [
                f"{who}: was committed though record {failed[0]} was not delivered "
                f"({sender.results[failed[0]].error})"
            ]
    if len(visible) != len(serials) and (visible or outcome is Outcome.COMMITTED):
        missing = next(serial for serial in serials if (sender.number, serial) not in seen)
        return [f"{who} shows {len(visible)} of {len(serials)} records; record {missing} is not to be seen"]
    return []


def _check_offsets(sender: TransactionalSender, offsets: Offsets) -> list[str]:
    found = offsets.get(sender.group, {}).get(("orders", 0), -1)
    sent = [each for each in sender.transactions if each.sends_offset]
    least = max((each.number for each in sent if each.outcome is Outcome.COMMITTED), default=-1)
    allowed = {each.number for each in sent if each.outcome is Outcome.UNKNOWN and each.number > least} | {
        least
    }
    if found in allowed:
        return []
    return [f"{sender.name}: its group has offset {found}, though {least} was committed last"]
