"""The clients of a soak that create, use and delete groups and topics, and members that join and
leave."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Set
from functools import partial

import numpy as np
import pyarrow as pa

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin, Consumer, NewTopic, Producer
from fairlead_kafka.lab.peers.soak import KEYED, UNKEYED, Errand, Ledger, numbers_of, values_of
from fairlead_kafka.lab.soak_figures import Int64

EVERY_S = 1.0
"""Least time between two visits, or two topics, s."""
VISIT_S = 10.0
"""Seconds that a member waits for its first record at most."""
STEADY_GROUP = "soak-steady"
DELETED_EVERY = 2
"""Short-lived groups per one that is deleted, by number; the offsets of the others expire."""
TOPIC_PARTITIONS = 3
TOPIC_ROWS = 100
TOPICS_KEPT = 5
"""Number of newer topics at which a topic is deleted."""
WARM_UP_TOPICS = 1_100
"""Topics that come without a pause, first of all. Brokers and clients remember the names and ids of
the last 1,000 and 1,024 topics; until they have so many they grow, 20 minutes with a topic a
second.
"""
TIMEOUT_S = 120.0
_GONE_ON = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)
"""Error codes of a commit during a rebalance: the group assigns its partitions again, and the next
owner reads these records.
"""
_NOT_DELETED = {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NON_EMPTY_GROUP}
"""Error codes of a deletion that are not failures: an earlier try has deleted the group, or its
last member left while the coordinator was being killed, and is in it still.
"""


def groups(errand: Errand, ledger: Ledger, stopping: threading.Event) -> None:
    """Run a group with a member that stays and one that comes and goes, and short-lived groups."""
    staying = threading.Thread(target=_stay, args=(errand, ledger, stopping), name="soak-steady")
    staying.start()
    try:
        with Admin(errand.config) as admin:
            number = 0
            while not stopping.wait(EVERY_S):
                with _member(errand, STEADY_GROUP, UNKEYED) as visitor:
                    _visit(visitor, ledger, stopping)
                    ledger.count("members")
                _pass(errand, ledger, stopping, admin, number)
                number += 1
    finally:
        stopping.set()
        staying.join()


def _member(errand: Errand, group: str, topic: str) -> Consumer:
    config = {
        "group.id": group,
        "auto.offset.reset": "latest",
        "enable.auto.commit": False,
        "max.poll.records": 100_000,
    }
    member = Consumer({**errand.config, **config})
    member.subscribe([topic])
    return member


def _stay(errand: Errand, ledger: Ledger, stopping: threading.Event) -> None:
    with _member(errand, STEADY_GROUP, UNKEYED) as member:
        while not stopping.is_set():
            _read(member, ledger, 1.0)


def _read(member: Consumer, ledger: Ledger, timeout_s: float) -> int:
    """Poll once, and commit. Returns how many records came."""
    count: int = member.poll_table(timeout_s, columns=["offset"]).num_rows
    if count:
        begun_s = time.monotonic()
        try:
            member.commit(timeout_s=TIMEOUT_S)
        except BrokerError as error:
            if error.code not in _GONE_ON:
                raise
            ledger.count("commits_refused")
        else:
            ledger.took((time.monotonic() - begun_s) * 1000, count)
    return count


def _visit(member: Consumer, ledger: Ledger, stopping: threading.Event) -> bool:
    """Read with a member that comes and goes, until some records came; False if none did."""
    until_s = time.monotonic() + VISIT_S
    while not stopping.is_set() and time.monotonic() < until_s:
        if _read(member, ledger, 0.2):
            return True
    return False


def _pass(errand: Errand, ledger: Ledger, stopping: threading.Event, admin: Admin, number: int) -> None:
    """Run a group of its own for each number: its second member has to find what the first
    committed.
    """
    group = f"soak-passing-{number}"
    with _member(errand, group, KEYED) as first:
        if not _visit(first, ledger, stopping):
            return
        mine = {partition: first.position(partition, TIMEOUT_S) for partition in first.assignment()}
        first.commit(mine, TIMEOUT_S)
    with _member(errand, group, KEYED) as second:
        found = second.committed(mine, TIMEOUT_S)
    ledger.count("groups")
    ledger.count("offsets_checked", len(mine))
    ledger.count(
        "offsets_wrong",
        sum(each is None or each.offset != mine[partition] for partition, each in found.items()),
    )
    if number % DELETED_EVERY == 0:
        _tolerating(_NOT_DELETED, partial(admin.delete_groups, [group], TIMEOUT_S))


def topics(errand: Errand, ledger: Ledger, stopping: threading.Event) -> None:
    """Create topics with a few records, and read them back before the topic is deleted."""
    living: deque[str] = deque()
    number = 0
    with (
        Admin(errand.config) as admin,
        Producer(errand.config) as producer,
        Consumer(errand.config) as consumer,
    ):
        while not stopping.wait(EVERY_S if number >= WARM_UP_TOPICS else 0):
            name, number = f"soak-passing-{number}", number + 1
            begun_s = time.monotonic()
            fresh = NewTopic(
                name, TOPIC_PARTITIONS, configs={"cleanup.policy": "compact" if number % 2 else "delete"}
            )
            _tolerating(
                {ErrorCode.TOPIC_ALREADY_EXISTS}, partial(admin.create_topics, [fresh], timeout_s=TIMEOUT_S)
            )
            living.append(name)
            numbers = np.arange(TOPIC_ROWS)
            keys = pa.array([b"%d" % each for each in range(TOPIC_ROWS)])
            results = producer.send_table(
                name, pa.table({"key": keys, "value": values_of(numbers, errand.value_bytes)})
            ).result()
            found = np.concatenate([_all(consumer, partition) for partition in _ends(name, results)])
            ledger.took((time.monotonic() - begun_s) * 1000, TOPIC_ROWS)
            ledger.count("topics")
            ledger.count("topics_wrong", int(not np.array_equal(np.sort(found), numbers)))
            while len(living) > TOPICS_KEPT:
                _tolerating(
                    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
                    partial(admin.delete_topics, [living.popleft()], TIMEOUT_S),
                )


def _ends(topic: str, results: pa.Table) -> Iterable[tuple[TopicPartition, int]]:
    """Partitions of the topic that have records, each with the offset after the last one
    acknowledged."""
    partitions, offsets = results["partition"].to_numpy(), results["offset"].to_numpy()
    return [
        (TopicPartition(topic, each), int(offsets[partitions == each].max()) + 1)
        for each in np.unique(partitions).tolist()
    ]


def _all(consumer: Consumer, partition_and_end: tuple[TopicPartition, int]) -> Int64:
    partition, end = partition_and_end
    tables = consumer.read_range(partition, 0, end, ["value"], TIMEOUT_S)
    return np.concatenate([numbers_of(chunk) for table in tables for chunk in table["value"].chunks])


def _tolerating(codes: Set[int], call: Callable[[], object]) -> None:
    """Make the call `call`, ignoring BrokerErrors with one of `codes`: an earlier attempt
    succeeded, and its answer was lost with a broker."""
    try:
        call()
    except ItemsFailed as error:
        if any(each.code not in codes for each in error.errors.values()):
            raise
