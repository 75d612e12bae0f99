"""Judges: an Apache Kafka and an embedded cluster, each started once for all conformance tests of a
process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

import fairlead_kafka
from fairlead_kafka.lab.apache_kafka import ApacheKafka, Unavailable, jars
from fairlead_kafka.lab.transcript.run import CONFIG
from fairlead_kafka.wire import TRANSACTION_VERSION, ApiKey
from fairlead_kafka.wire.messages import UpdateFeaturesRequest
from tests.support.java_tools import JavaTools
from tests.support.secured_kafka import SecuredKafka, secured_kafka
from tests.support.share_members import ShareMembers
from tests.support.waiting import until
from tests.support.wire_client import Wire

QUICK_GROUPS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "10000",
}
"""Groups of KIP-848 are told of a change in moments, and a death is noticed in seconds; Kafka's
defaults are 5 and 45 seconds."""

QUICK_SHARES = {
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Share groups of one broker, told of a change in moments; a group may have locks of a second
(share.record.lock.duration.ms), where Kafka's least is fifteen."""

QUICK = {**QUICK_GROUPS, **QUICK_SHARES, "quota.window.num": "3"}
"""And quotas count over three seconds, where Kafka's default is eleven."""


@pytest.fixture(scope="session")
def apache_kafka(kafka_jars: str) -> Iterator[str]:
    """`bootstrap.servers` of an Apache Kafka; skips with the reason where Java or Maven is missing.
    One that does not start is an error."""
    with ApacheKafka(heap="512m", properties={**CONFIG, **QUICK}) as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture(scope="session")
def secured(kafka_jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """An Apache Kafka with an authorizer and users, for tests that change both and leave no rights
    behind."""
    with secured_kafka(tmp_path_factory.mktemp("secured")) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def secured_admin(secured: SecuredKafka) -> Iterator[fairlead_kafka.Admin]:
    """Our admin client of it, who may do everything."""
    with fairlead_kafka.Admin({"bootstrap.servers": secured.plaintext}) as admin:
        yield admin


@pytest.fixture
def no_rights_after(secured_admin: fairlead_kafka.Admin) -> Iterator[None]:
    """What a test gives and denies is gone when the next one begins."""
    yield
    secured_admin.delete_acls([fairlead_kafka.AclFilter()])
    until(lambda: not secured_admin.describe_acls())


@pytest.fixture(scope="session")
def kafka_jars() -> str:
    """The folder of Kafka's own clients and tools; skips where they cannot be had."""
    try:
        return str(jars())
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def tools(kafka_jars: str) -> Iterator[JavaTools]:
    """Kafka's own tools, all in one Java."""
    with JavaTools() as running:
        yield running


@pytest.fixture(scope="session")
def share_members(kafka_jars: str) -> Iterator[ShareMembers]:
    """Members of share groups of Kafka's own client, all in one Java."""
    with ShareMembers() as running:
        yield running


@pytest.fixture(scope="session")
def embedded() -> Iterator[str]:
    """`bootstrap.servers` of an embedded cluster of three brokers."""
    with fairlead_kafka.Cluster(brokers=3, config=QUICK_GROUPS) as cluster:
        yield cluster.bootstrap_servers


def first_protocol(servers: str) -> None:
    """Lower a cluster's `transaction.version` to 0: clients speak the first protocol then."""
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=TRANSACTION_VERSION, max_version_level=0, upgrade_type=2
    )
    with Wire(servers.split(",")[0]) as wire:
        answer = wire.ask(
            ApiKey.UPDATE_FEATURES, 2, timeout_ms=10_000, feature_updates=[update], validate_only=False
        )
    assert answer.error_code == 0, answer.error_message


@pytest.fixture(scope="session")
def apache_kafka_first_protocol(kafka_jars: str) -> Iterator[str]:
    """An Apache Kafka of its own whose `transaction.version` is 0."""
    with ApacheKafka(heap="512m", properties=CONFIG) as kafka:
        first_protocol(kafka.bootstrap_servers)
        yield kafka.bootstrap_servers


@pytest.fixture(scope="session")
def embedded_first_protocol() -> Iterator[str]:
    """An embedded cluster of three brokers whose `transaction.version` is 0."""
    with fairlead_kafka.Cluster(brokers=3) as cluster:
        first_protocol(cluster.bootstrap_servers)
        yield cluster.bootstrap_servers


_numbers = itertools.count()


@pytest.fixture
def new_topic() -> Callable[..., str]:
    """Makes a topic with a name of its own: new_topic(bootstrap_servers, partitions=…, **configs).

    Nothing in it expires unless a test says so: many records here are dated years ago.
    """

    def make(bootstrap_servers: str, partitions: int = 3, **configs: str) -> str:
        name = f"conformance-{next(_numbers)}"
        with fairlead_kafka.Admin({"bootstrap.servers": bootstrap_servers}) as admin:
            settings = {key.replace("_", "."): value for key, value in configs.items()}
            settings.setdefault("retention.ms", "-1")
            admin.create_topics(
                [fairlead_kafka.NewTopic(name, partitions=partitions, replication_factor=1, configs=settings)]
            )
        return name

    return make
