"""Log lines about what happens to a client: stable loggers, events and fields, one line each.

    partitions_assigned client_id=shop group=billing count=2 partitions=orders-0,orders-1

`EVENTS` is the table of all of them, from which docs/reference/logging.md is written. Machines log
by `EventLog.log`, within their step; handling the lines is up to the application, and exceptions of
its filters and handlers never reach a machine (`base.guarded_log`). Nothing here is printed unless
the application configures logging: loggers of warnings have a `NullHandler`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import NS_PER_S

NETWORK = "fairlead_kafka.network"
METADATA = "fairlead_kafka.metadata"
GROUP = "fairlead_kafka.consumer.group"
DELIVERY = "fairlead_kafka.producer.delivery"
IDENTITY = "fairlead_kafka.producer.identity"

LINES_MAX, WINDOW_S = 20, 10
"""Lines of one event that one client may log within this many seconds. Further ones are counted:
when a broker dies, each of its thousands of batches is retried, and the first few say why."""
VALUE_MAX = 300
"""Characters of a value: an error's text may list what is wrong with each broker."""
ITEMS_MAX = 20
"""Partitions that a line names. A member may get thousands; `count` says how many."""
_PLAIN = re.compile(r'[^\s"=\x00-\x1f]+')
"""Values that need no quotes."""


class Event(NamedTuple):
    """One kind of line of the event log: its name, logger, level and fields."""

    name: str
    logger: str
    level: int
    fields: tuple[str, ...]
    """Fields in their order, after `client_id`."""
    when: str
    """Sentence about what happened."""


CONNECTION_OPENED = Event(
    "connection_opened",
    NETWORK,
    logging.DEBUG,
    ("node", "address"),
    "A connection was opened, with TLS if that is on. Versions and the log-in come next.",
)
LOGGED_IN = Event(
    "logged_in",
    NETWORK,
    logging.DEBUG,
    ("node", "mechanism"),
    "A broker accepted a log-in, or a renewed one.",
)
CONNECTION_CLOSED = Event(
    "connection_closed",
    NETWORK,
    logging.DEBUG,
    ("node", "reason"),
    "The client closed a connection: it was idle, the broker moved, or the client ends.",
)
CONNECTION_LOST = Event(
    "connection_lost",
    NETWORK,
    logging.INFO,
    ("node", "address", "error"),
    "A connection that had worked ended without being closed by this client.",
)
CONNECTION_FAILED = Event(
    "connection_failed",
    NETWORK,
    logging.DEBUG,
    ("node", "address", "error", "attempt"),
    "An attempt to connect failed, or a log-in. What lasts is a warning besides, in a sentence.",
)
REQUEST_RETRIED = Event(
    "request_retried",
    NETWORK,
    logging.DEBUG,
    ("work", "error"),
    "An admin call, a commit, a heartbeat or a look-up is asked again.",
)
BROKERS_CHANGED = Event(
    "brokers_changed",
    METADATA,
    logging.INFO,
    ("cluster", "controller", "nodes"),
    "The metadata names other brokers than before; the first answer counts.",
)
PARTITIONS_CHANGED = Event(
    "partitions_changed",
    METADATA,
    logging.INFO,
    ("topic", "partitions", "before", "error"),
    "A topic became known, has another number of partitions, or was made again.",
)
LEADER_CHANGED = Event(
    "leader_changed",
    METADATA,
    logging.DEBUG,
    ("topic", "partition", "node", "before", "epoch"),
    "A partition has another leader; node -1: none.",
)
REBOOTSTRAPPED = Event(
    "rebootstrapped",
    METADATA,
    logging.WARNING,
    ("reason",),
    "All known brokers are forgotten, and the bootstrap servers are asked again.",
)
METADATA_FAILED = Event(
    "metadata_failed", METADATA, logging.DEBUG, ("error",), "A request for metadata got no usable answer."
)
GROUP_JOINED = Event(
    "group_joined",
    GROUP,
    logging.INFO,
    ("group", "member", "generation"),
    "The consumer is a member, or in a new generation of the classic protocol.",
)
PARTITIONS_ASSIGNED = Event(
    "partitions_assigned",
    GROUP,
    logging.INFO,
    ("group", "count", "partitions"),
    "A rebalance adds these partitions; `on_assigned` is called next.",
)
PARTITIONS_REVOKED = Event(
    "partitions_revoked",
    GROUP,
    logging.INFO,
    ("group", "count", "partitions"),
    "A rebalance takes these partitions away; `on_revoked` is called next.",
)
PARTITIONS_LOST = Event(
    "partitions_lost",
    GROUP,
    logging.WARNING,
    ("group", "count", "partitions"),
    "The group went on without this member, whose partitions others may read; `on_lost` is called next.",
)
MEMBER_FENCED = Event(
    "member_fenced",
    GROUP,
    logging.WARNING,
    ("group", "member", "error"),
    "The coordinator does not know the member any more. It joins again by itself.",
)
POLL_TOO_LATE = Event(
    "poll_too_late",
    GROUP,
    logging.WARNING,
    ("group", "member", "limit_ms"),
    "The application did not poll within max.poll.interval.ms, so the member leaves.",
)
MEMBERSHIP_FAILED = Event(
    "membership_failed",
    GROUP,
    logging.WARNING,
    ("group", "error"),
    "The member cannot go on; every poll raises the error until the next `subscribe`.",
)
GROUP_LEFT = Event(
    "group_left", GROUP, logging.INFO, ("group", "member"), "The consumer unsubscribes, or is closed."
)
BATCH_RETRIED = Event(
    "batch_retried",
    DELIVERY,
    logging.INFO,
    ("node", "topic", "partition", "records", "attempt", "error"),
    "A batch was refused or its answer was lost; it is sent again.",
)
BATCH_SPLIT = Event(
    "batch_split",
    DELIVERY,
    logging.INFO,
    ("topic", "partition", "records", "parts"),
    "A broker found a batch too large; it is sent in smaller ones.",
)
BATCH_FAILED = Event(
    "batch_failed",
    DELIVERY,
    logging.WARNING,
    ("topic", "partition", "records", "error"),
    "Records of a batch were not delivered; their callers get the error.",
)
PRODUCER_ID_GRANTED = Event(
    "producer_id_granted",
    IDENTITY,
    logging.INFO,
    ("transactional_id", "producer_id", "epoch"),
    "A broker gave the producer its id, or a new epoch.",
)
TRANSACTION_FAILED = Event(
    "transaction_failed",
    IDENTITY,
    logging.WARNING,
    ("transactional_id", "error"),
    "The open transaction can only be aborted.",
)
PRODUCER_FENCED = Event(
    "producer_fenced",
    IDENTITY,
    logging.WARNING,
    ("transactional_id", "producer_id", "epoch", "error"),
    "Another producer of this transactional id took over, or the transaction timed out.",
)
PRODUCER_FAILED = Event(
    "producer_failed",
    IDENTITY,
    logging.WARNING,
    ("transactional_id", "error"),
    "A transactional producer cannot go on, for another reason than a fence.",
)
EVENTS = (
    CONNECTION_OPENED,
    LOGGED_IN,
    CONNECTION_CLOSED,
    CONNECTION_LOST,
    CONNECTION_FAILED,
    REQUEST_RETRIED,
    BROKERS_CHANGED,
    PARTITIONS_CHANGED,
    LEADER_CHANGED,
    REBOOTSTRAPPED,
    METADATA_FAILED,
    GROUP_JOINED,
    PARTITIONS_ASSIGNED,
    PARTITIONS_REVOKED,
    PARTITIONS_LOST,
    MEMBER_FENCED,
    POLL_TOO_LATE,
    MEMBERSHIP_FAILED,
    GROUP_LEFT,
    BATCH_RETRIED,
    BATCH_SPLIT,
    BATCH_FAILED,
    PRODUCER_ID_GRANTED,
    TRANSACTION_FAILED,
    PRODUCER_FENCED,
    PRODUCER_FAILED,
)
"""Table of all events that are logged."""

_LOGGERS = {event.logger: GuardedLogger(event.logger) for event in EVENTS}
for _name, _logger in _LOGGERS.items():
    if _name != NETWORK:  # whose warnings are to be seen by those who have not configured logging
        _logger.logger.addHandler(logging.NullHandler())


class _Window:
    """Lines of one event within the present window."""

    __slots__ = ("held_back", "lines", "since_ns")

    def __init__(self, since_ns: int) -> None:
        self.since_ns = since_ns
        self.lines = 0
        self.held_back = 0


class EventLog:
    """The log lines of one client; called from within its machine's step alone.

    `clock`: the machine's monotonic time, ns.
    """

    def __init__(self, client_id: str, clock: Callable[[], int]) -> None:
        self._client_id = client_id or None
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def log(self, event: Event, *values: object) -> None:
        """Log `event` with `values`, one for each of its fields; nothing if its level is off.

        Beyond LINES_MAX in WINDOW_S seconds lines are held back, and the next one that is logged
        says how many (`held_back`).
        """
        logger = _LOGGERS[event.logger]
        if not logger.isEnabledFor(event.level):
            return
        held_back = self._held_back(event.name)
        if held_back is None:
            return
        fields = [("client_id", self._client_id), *zip(event.fields, values, strict=True)]
        if held_back:
            fields.append(("held_back", held_back))
        logger.log(event.level, "%s", line(event.name, fields))

    def _held_back(self, name: str) -> int | None:
        """Number of lines of the event `name` that were held back before this one; None: this one
        is held back as well."""
        now_ns = self._clock()
        window = self._windows.get(name)
        if window is None:
            window = self._windows[name] = _Window(now_ns)
        elif now_ns - window.since_ns >= WINDOW_S * NS_PER_S:
            window.since_ns, window.lines = now_ns, 0
        if window.lines == LINES_MAX:
            window.held_back += 1
            return None
        window.lines += 1
        held_back, window.held_back = window.held_back, 0
        return held_back


def line(name: str, fields: Sequence[tuple[str, object]]) -> str:
    """`name` and `key=value` for each field.

    None is `-`. A text with spaces, quotes, `=` or control characters is quoted as in JSON.
    """
    return " ".join([name, *(f"{key}={_shown(value)}" for key, value in fields)])


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, Sequence) and not isinstance(value, str):
        more = [f"+{len(value) - ITEMS_MAX}"] if len(value) > ITEMS_MAX else []
        text = ",".join([*(str(each) for each in value[:ITEMS_MAX]), *more])
    else:
        text = str(value)
        if len(text) > VALUE_MAX:
            text = text[: VALUE_MAX - 1] + "…"
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
