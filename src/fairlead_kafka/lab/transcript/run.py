"""Runs the transcript: starts both systems if need be, talks to both, compares the answers and
looks up the differences.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from fairlead_kafka.lab.apache_kafka import ApacheKafka
from fairlead_kafka.lab.transcript import (
    acl_steps,
    broken_steps,
    cluster_steps,
    consumer_group_steps,
    feature_steps,
    group_steps,
    offset_steps,
    quota_steps,
    record_steps,
    replica_steps,
    resource_steps,
    second_protocol_steps,
    secured_steps,
    session_steps,
    share_steps,
    three_steps,
    transaction_steps,
)
from fairlead_kafka.lab.transcript.compare import (
    Explanation,
    Plain,
    Symbols,
    differences,
    explanations,
    plain,
)
from fairlead_kafka.lab.transcript.holders import ADMIN, NOBODY, USERS
from fairlead_kafka.lab.transcript.steps import Step
from fairlead_kafka.lab.transcript.talk import Outcome, Talk
from fairlead_kafka.testing import Cluster

CONFIG = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "2",
}
"""Broker configs of both systems.

Partitions of internal topics cost time when the first group, or transaction, comes: hence few.
"""
STEPS: tuple[Step, ...] = (
    *cluster_steps.STEPS,
    *record_steps.STEPS,
    *session_steps.STEPS,
    *consumer_group_steps.TOPICS,
    *group_steps.STEPS,
    *offset_steps.STEPS,
    *consumer_group_steps.STEPS,
    *share_steps.STEPS,
    *transaction_steps.STEPS,
    *second_protocol_steps.STEPS,
    *replica_steps.STEPS,
    *resource_steps.STEPS,
    *acl_steps.STEPS,
    *quota_steps.STEPS,
    *feature_steps.STEPS,
    *broken_steps.STEPS,
    *cluster_steps.LAST_STEPS,
)

_SECURED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "auto.create.topics.enable": "true",
    "connection.failed.authentication.delay.ms": "0",
}
"""Broker configs of the secured transcript, on top of CONFIG."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

Status = Callable[[str], None]


@dataclass
class Transcript:
    """Result of a run.

    `unexplained` has a line for each difference that no entry of the data file covers.
    """

    requests: int = 0
    apis: int = 0
    same: int = 0
    explained: int = 0
    unexplained: list[str] = field(default_factory=list)
    unused: list[Explanation] = field(default_factory=list)
    """Entries of the data file that covered nothing."""

    def figures(self) -> dict[str, int]:
        """Counts of requests: `{"requests", "apis", "same", "explained", "unexplained"}`; the last
        three add up to the first.
        """
        differing = self.requests - self.same - self.explained
        return {
            "requests": self.requests,
            "apis": self.apis,
            "same": self.same,
            "explained": self.explained,
            "unexplained": differing,
        }


def run_replicated(status: Status = lambda _: None) -> Transcript:
    """The transcript of three brokers (`three_steps`), some of which are killed: an embedded
    cluster's, and an Apache Kafka's started here.

    Raises `lab.apache_kafka.Unavailable` where Apache Kafka cannot be had.
    """
    base_ms, steps = time.time_ns() // 1_000_000 - 60_000, three_steps.STEPS
    config = CONFIG | {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "500"}
    status("three brokers of Apache Kafka start")
    with (
        ApacheKafka(heap="400m", brokers=3, properties=config) as kafka,
        Talk(kafka.bootstrap_servers, base_ms, kafka.kill) as talk,
    ):
        status("Apache Kafka is asked")
        theirs, their_symbols = talk.run(steps), Symbols(talk.seen)
    ours, our_symbols = ask_ours(steps, base_ms, config, status)
    own = explanations("differences_replicated.toml")
    result = classify(
        [(one, plain(one, our_symbols)) for one in ours],
        [plain(one, their_symbols) for one in theirs],
        [*own, *explanations()],
    )
    result.unused = [
        one for one in own if not one.used
    ]  # those of one broker's transcript are its own affair
    return result


def run_secured(status: Status = lambda _: None, steps: tuple[Step, ...] = secured_steps.STEPS) -> Transcript:
    """The transcript of one broker with users, log-ins and an authorizer (`secured_steps`): an
    embedded one's, and an Apache Kafka's.

    Raises `lab.apache_kafka.Unavailable` where Apache Kafka cannot be had.
    """
    base_ms = time.time_ns() // 1_000_000 - 60_000
    config = {**CONFIG, **_SECURED}
    status("Apache Kafka starts")
    properties = {
        "super.users": f"User:ANONYMOUS;User:{ADMIN}",
        **{f"listener.name.sasl.{key}": value for key, value in _jaas(USERS).items()},
        "listener.name.sasl.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **config,
    }
    with ApacheKafka(
        heap="512m",
        listeners={"SASL": "SASL_PLAINTEXT"},
        users={NOBODY: USERS[NOBODY]},
        properties=properties,
    ) as kafka:
        status("Apache Kafka is asked")
        with Talk(kafka.servers("SASL"), base_ms, users=USERS) as talk:
            theirs, their_symbols = talk.run(steps), Symbols(talk.seen)
    status("our cluster is asked")
    secured = {"super.users": f"User:{ADMIN}", "sasl.enabled.mechanisms": ",".join(MECHANISMS), **config}
    with (
        _quietly(),
        Cluster(brokers=1, security="sasl_plaintext", users=USERS, config=secured) as cluster,
        Talk(cluster.bootstrap_servers, base_ms, users=USERS) as talk,
    ):
        ours, our_symbols = talk.run(steps), Symbols(talk.seen)
    own = explanations("differences_secured.toml")
    result = classify(
        [(one, plain(one, our_symbols)) for one in ours],
        [plain(one, their_symbols) for one in theirs],
        [*own, *explanations()],
    )
    result.unused = [one for one in own if not one.used]
    return result


def ask_ours(
    steps: tuple[Step, ...], base_ms: int, config: dict[str, str], status: Status = lambda _: None
) -> tuple[list[Outcome], Symbols]:
    """Answers of our cluster of three brokers, and the names for values that it made up. `status`
    is called with progress."""
    status("our cluster is asked")
    with (
        _quietly(),
        Cluster(brokers=3, config=config) as cluster,
        Talk(cluster.bootstrap_servers, base_ms, lambda node: cluster.broker(node).kill()) as talk,
    ):
        return talk.run(steps), Symbols(talk.seen)


def run_transcript(
    status: Status = lambda _: None, kafka: str | None = None, steps: tuple[Step, ...] = STEPS
) -> Transcript:
    """Run the transcript on an embedded cluster of one broker and on Apache Kafka: the one at
    `kafka` (host:port), else one that is started here.

    Raises `lab.apache_kafka.Unavailable` where Apache Kafka cannot be had.
    """
    base_ms = time.time_ns() // 1_000_000 - 60_000
    if kafka is None:
        status("Apache Kafka starts")
        with ApacheKafka(heap="512m", properties=CONFIG) as started:
            return run_transcript(status, started.bootstrap_servers, steps)
    status("Apache Kafka is asked")
    with Talk(kafka, base_ms) as talk:
        theirs, their_symbols = talk.run(steps), Symbols(talk.seen)
    status("our cluster is asked")
    with (
        _quietly(),
        Cluster(brokers=1, config=CONFIG) as cluster,
        Talk(cluster.bootstrap_servers, base_ms) as talk,
    ):
        ours, our_symbols = talk.run(steps), Symbols(talk.seen)
    return classify(
        [(one, plain(one, our_symbols)) for one in ours],
        [plain(one, their_symbols) for one in theirs],
        explanations(),
    )


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence the brokers' warnings: many steps are requests that they have to complain of."""
    logger = logging.getLogger("fairlead_kafka.broker")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def classify(ours: list[tuple[Outcome, Plain]], theirs: list[Plain], known: list[Explanation]) -> Transcript:
    """Compare the answers of both systems, one by one; `known` are the differences that have an
    explanation."""
    result = Transcript(requests=len(ours), apis=len({outcome.step.api for outcome, _ in ours}))
    for (outcome, mine), other in zip(ours, theirs, strict=True):
        found = list(differences(mine, other))
        lines = []
        for path, our_value, their_value in found:
            covering = [one for one in known if one.covers(outcome, path, our_value, their_value)]
            for one in covering[:1]:
                one.used += 1
            if not covering:
                lines.append(
                    f"{outcome.name}: {path or 'the whole'}: ours {our_value!r}, Apache Kafka {their_value!r}"
                )
        result.unexplained += lines
        result.same += not found
        result.explained += bool(found and not lines)
    result.unused = [one for one in known if not one.used]
    return result


def _jaas(users: Mapping[str, str]) -> dict[str, str]:
    """The log-in modules of Apache Kafka's listener, by mechanism."""
    words = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    plain_module = f"org.apache.kafka.common.security.plain.PlainLoginModule required {words};"
    return {
        f"{name.lower()}.sasl.jaas.config": plain_module if name == "PLAIN" else scram for name in MECHANISMS
    }
