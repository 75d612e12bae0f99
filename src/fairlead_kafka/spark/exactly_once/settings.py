"""Options of exactly-once writes, and the settings of the clients that keep the promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.spark.option_values import not_empty, one_of, topic_name
from fairlead_kafka.spark.parsed_options import Values
from fairlead_kafka.spark.shipped import with_shipped_files

EXACTLY_ONCE = "exactly-once"
AT_LEAST_ONCE = "at-least-once"
LOG_TOPIC = "__fairlead_commits"
ID_PREFIX = "fairlead"
TRANSACTION_TIMEOUT_MS = 15 * 60_000
"""Milliseconds. A task's transaction is open until all tasks have ended, so Kafka's minute is
short; this is what brokers allow by default at most."""
DRIVER_TIMEOUT_MS = 30_000
"""Milliseconds. The driver's own transactions take few of them. One whose driver died holds up
other readers of the log for so long at most."""

VERSION_MAX = 2**63 - 1
_NEEDED = {"acks": ("all", "-1"), "enable.idempotence": ("true",)}


def _version(text: str) -> int:
    if not text.strip().isdigit() or int(text) > VERSION_MAX:
        raise ValueError("must be a whole number, 0 or more")
    return int(text)


EXACTLY_ONCE_OPTIONS: tuple[tuple[str, str, str, str, Callable[[str], object], bool], ...] = (
    (
        "deliveryGuarantee",
        "write",
        AT_LEAST_ONCE,
        "at-least-once, or exactly-once: each row is in Kafka once for readers of committed data "
        "(kafka.isolation.level=read_committed), "
        "whatever fails and is repeated. See exactly-once.md.",
        one_of(AT_LEAST_ONCE, EXACTLY_ONCE),
        True,
    ),
    (
        "transactionalIdPrefix",
        "write",
        ID_PREFIX,
        "Exactly-once: what the names of all transactions begin with; brokers may ask for permission by "
        "prefix.",
        not_empty,
        True,
    ),
    (
        "commitLogTopic",
        "write",
        LOG_TOPIC,
        "Exactly-once: the compacted topic that keeps which batch of which query is committed. It is made if "
        "it is not there; keep it.",
        topic_name,
        True,
    ),
    (
        "txnAppId",
        "write",
        "",
        "Exactly-once batch writes: with txnVersion, the name of this write to its topic. The same again, or "
        "a lower version, writes nothing to that topic.",
        not_empty,
        True,
    ),
    (
        "txnVersion",
        "write",
        "",
        "Exactly-once batch writes: a number that grows with each new write of txnAppId to the topic, such "
        "as a batch id.",
        _version,
        True,
    ),
)


@dataclass(frozen=True)
class Guarantee:
    """How an exactly-once write is to be kept. `app_id`, `topic` and `version` name a batch write;
    a streaming query has names of its own. `topic` None: the rows name their topics."""

    id_prefix: str = ID_PREFIX
    log_topic: str = LOG_TOPIC
    app_id: str | None = None
    version: int | None = None
    topic: str | None = None

    @property
    def write_name(self) -> str | None:
        """The name under which versions of a batch write are counted: of the application and the
        topic, as Delta Lake counts them for each table. None if the write has no name.

        No topic has a colon in its name, so no two pairs share a name.
        """
        return None if self.app_id is None else f"{self.app_id}-topic:{self.topic or ''}"


def parse_guarantee(
    values: Values, client: Mapping[str, str], known: Sequence[str], *, streaming: bool
) -> tuple[Guarantee | None, list[str]]:
    """The guarantee that parsed options ask for (None: at least once), and problems of it, also
    with the client's settings. `known` are the problems found so far: an option with an invalid
    value counts as given."""
    senseless = {problem.partition(":")[0] for problem in known}
    names = [row[0] for row in EXACTLY_ONCE_OPTIONS[1:] if row[0] in values or row[0] in senseless]
    guarantee_option = EXACTLY_ONCE_OPTIONS[0][0]
    if guarantee_option in senseless:
        return None, []
    if values.get(guarantee_option, AT_LEAST_ONCE) != EXACTLY_ONCE:
        return None, [
            f"{name}: says how exactly-once writes are kept; set deliveryGuarantee=exactly-once"
            for name in names
        ]
    wrong = [
        f"kafka.{name}: must be {' or '.join(allowed)} for exactly-once writes, not {client[name]}"
        for name, allowed in _NEEDED.items()
        if client.get(name, allowed[0]).strip().lower() not in allowed
    ]
    if streaming:
        wrong += [
            f"{name}: is for batch writes; a streaming query is known by its checkpoint"
            for name in names
            if name.startswith("txn")
        ]
    elif ("txnAppId" in names) != ("txnVersion" in names):
        wrong.append("txnAppId and txnVersion: one needs the other")
    if values.get("topic", "") == values.get("commitLogTopic", LOG_TOPIC):
        wrong.append(
            f"topic: {values['topic']} is the topic of the commit log; write to another one, or name another "
            "with commitLogTopic"
        )
    guarantee = Guarantee(
        values.get("transactionalIdPrefix", ID_PREFIX),
        values.get("commitLogTopic", LOG_TOPIC),
        values.get("txnAppId"),
        values.get("txnVersion"),
        values.get("topic"),
    )
    return guarantee, wrong


def settings_for(scope: str, client: Mapping[str, str]) -> dict[str, str]:
    """The producer's settings that a client of `scope` (admin or consumer) takes too."""
    taken = {key.name for key in CLIENT_CONFIGS.scope(scope)}
    return {name: text for name, text in with_shipped_files(client).items() if name in taken}


def transaction_timeout_ms(client: Mapping[str, str]) -> int:
    """Milliseconds that a task's transaction may be open."""
    return int(client.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))
