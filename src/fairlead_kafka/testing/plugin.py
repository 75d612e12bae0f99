"""The pytest plugin: a Kafka cluster for a whole run, and a topic of its own for each test.

    def test_orders_arrive(kafka_cluster, kafka_topic):
        send(kafka_cluster.bootstrap_servers, kafka_topic, b"an order")

    @pytest.mark.kafka(brokers=1, config={"auto.create.topics.enable": "false"})
    def test_alone(kafka_marked_cluster, kafka_topic): ...

- `kafka_cluster` (session): a running `Cluster`; started when the first test asks for it.
- `kafka_bootstrap_servers` (session): its `bootstrap_servers`.
- `kafka_client_settings` (session): a function that gives a client's settings for a user
  (`Cluster.client_settings`).
- `kafka_marked_cluster` (function): the cluster that the mark `kafka` describes by arguments of
  `Cluster`; without the mark, `kafka_cluster`. Tests with the same mark share one.
- `kafka_topic` (function): the name of a fresh topic in that cluster, deleted after the test.

    @pytest.mark.kafka_topic(partitions=12, replication_factor=3, configs={"retention.ms": "60000"})

Changes of these clusters by a test are undone after it (`Cluster.restore`): faults by request
(`cluster.on`), slow, cut, stopped and killed brokers.

Settings, each as an option of the command line and in the configuration file: `--kafka-brokers` and
`kafka_brokers` (3), `--kafka-processes` and `kafka_processes` (all in one thread), `--kafka-config
KEY=VALUE` and the lines of `kafka_config`, `--kafka-security` and `kafka_security` (none),
`--kafka-user` and the lines of `kafka_users` (alice, bob).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import pytest

if TYPE_CHECKING:
    from fairlead_kafka.testing.cluster import Cluster

_BROKERS, _BROKERS_MAX = 3, 1000
_NAME_LENGTH_MAX = 200
_MARKED = ("partitions", "replication_factor", "configs")
_MARKED_CLUSTER = ("brokers", "processes", "security", "users", "racks", "config")
_SECURITY = (None, "ssl", "sasl_plaintext", "sasl_ssl")
_numbers = itertools.count(1)


class _Settings(TypedDict):
    """Arguments of the `Cluster` that `kafka_cluster` gives."""

    brokers: int
    processes: bool
    security: str | None
    users: Sequence[str]
    config: dict[str, str]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the command line and their counterparts in the configuration file."""
    group = parser.getgroup("fairlead", "Kafka cluster (fairlead)")
    group.addoption(
        "--kafka-brokers", type=int, metavar="N", help=f"Brokers of `kafka_cluster`; default: {_BROKERS}."
    )
    group.addoption(
        "--kafka-processes",
        action="store_true",
        default=None,
        help="Run each broker of `kafka_cluster` in its own process.",
    )
    group.addoption(
        "--kafka-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="A broker config; may be repeated.",
    )
    group.addoption(
        "--kafka-security",
        metavar="PROTOCOL",
        help="ssl, sasl_plaintext or sasl_ssl: `kafka_cluster` is secured.",
    )
    group.addoption(
        "--kafka-user",
        action="append",
        default=[],
        metavar="NAME",
        help="A user of a secured cluster; may be repeated.",
    )
    parser.addini(
        "kafka_security", "ssl, sasl_plaintext or sasl_ssl: `kafka_cluster` is secured.", default=""
    )
    parser.addini(
        "kafka_users", "Users of a secured `kafka_cluster`, one a line.", type="linelist", default=[]
    )
    parser.addini("kafka_brokers", "Brokers of `kafka_cluster`.", default=str(_BROKERS))
    parser.addini(
        "kafka_processes",
        "Run each broker of `kafka_cluster` in its own process.",
        type="bool",
        default=False,
    )
    parser.addini(
        "kafka_config",
        "Broker configs of `kafka_cluster`, KEY=VALUE, one a line.",
        type="linelist",
        default=[],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and check the settings (pytest.UsageError)."""
    config.addinivalue_line(
        "markers",
        "kafka_topic(partitions, replication_factor, configs): what the fixture `kafka_topic` creates.",
    )
    config.addinivalue_line(
        "markers",
        "kafka(brokers, processes, security, users, racks, config): the cluster of `kafka_marked_cluster`.",
    )
    _check(_settings(config))


@pytest.fixture(scope="session")
def kafka_cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A Kafka cluster for the whole run."""
    # Imported only now: a plugin is loaded in every run, whether it is used or not.
    from fairlead_kafka.testing.cluster import Cluster

    with Cluster(**_settings(pytestconfig)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(kafka_cluster: Cluster) -> str:
    """The cluster's `bootstrap.servers`, as clients take them."""
    return kafka_cluster.bootstrap_servers


@pytest.fixture(scope="session")
def kafka_client_settings(kafka_cluster: Cluster) -> Callable[..., dict[str, object]]:
    """A function that gives a client's configs by user; see `Cluster.client_settings`."""
    return kafka_cluster.client_settings


@pytest.fixture(scope="session")
def _kafka_clusters() -> Iterator[dict[str, Cluster]]:
    """The clusters that marks of tests describe, by what the marks say."""
    clusters: dict[str, Cluster] = {}
    yield clusters
    for cluster in clusters.values():
        cluster.close()


@pytest.fixture
def kafka_marked_cluster(
    request: pytest.FixtureRequest, pytestconfig: pytest.Config, _kafka_clusters: dict[str, Cluster]
) -> Cluster:
    """The cluster that the test's mark `kafka` describes; without a mark, `kafka_cluster`."""
    mark = request.node.get_closest_marker("kafka")
    wanted = _wanted(mark, "kafka", _MARKED_CLUSTER)
    if not wanted:
        shared: Cluster = request.getfixturevalue("kafka_cluster")
        return shared
    if "kafka_cluster" in request.fixturenames:
        pytest.fail(
            "@pytest.mark.kafka describes kafka_marked_cluster; kafka_cluster is another: use one of them",
            pytrace=False,
        )
    key = _written(wanted)
    if key not in _kafka_clusters:
        from fairlead_kafka.base.errors import FairleadError
        from fairlead_kafka.testing.cluster import Cluster

        settings: dict[str, Any] = {**_settings(pytestconfig), **wanted}
        settings["config"] = {**_settings(pytestconfig)["config"], **wanted.get("config", {})}
        try:
            _kafka_clusters[key] = Cluster(**settings)
        except FairleadError as error:
            pytest.fail(f"@pytest.mark.kafka({key}): {error}", pytrace=False)
    return _kafka_clusters[key]


@pytest.fixture
def kafka_topic(kafka_marked_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a topic that no other test uses."""
    wanted = _wanted(request.node.get_closest_marker("kafka_topic"), "kafka_topic", _MARKED)
    name = f"{re.sub('[^a-zA-Z0-9-]+', '-', request.node.name)[:_NAME_LENGTH_MAX]}-{next(_numbers)}"
    from fairlead_kafka.base.errors import FairleadError

    try:
        kafka_marked_cluster.create_topic(name, **wanted)
    except FairleadError as error:
        pytest.fail(f"@pytest.mark.kafka_topic({_written(wanted)}): {error}", pytrace=False)
    yield name
    kafka_marked_cluster.restore()
    if kafka_marked_cluster.has_topic(name):  # else the test deleted it
        kafka_marked_cluster.delete_topic(name)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Undo what a test did to its cluster, after the test's own fixtures have ended."""
    found: Mapping[str, object] = getattr(item, "funcargs", {})
    for name in ("kafka_cluster", "kafka_marked_cluster"):
        cluster = found.get(name)
        if cluster is not None and not getattr(cluster, "closed", True):
            cluster.restore()  # type: ignore[attr-defined]


def _wanted(mark: pytest.Mark | None, name: str, known: Sequence[str]) -> dict[str, Any]:
    """The arguments of a test's mark; an argument not in `known` fails the test."""
    if mark is None:
        return {}
    wrong = [repr(value) for value in mark.args] + [
        f"{given}={value!r}" for given, value in mark.kwargs.items() if given not in known
    ]
    if wrong:
        pytest.fail(
            f"@pytest.mark.{name} takes {', '.join(f'{each}=...' for each in known)}, not {', '.join(wrong)}",
            pytrace=False,
        )
    return dict(mark.kwargs)


def _written(wanted: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in wanted.items())


def _check(settings: _Settings) -> None:
    """Raise pytest.UsageError, before any test runs, for settings that no cluster can have. Without
    settings of its own, a run does not check anything."""
    if not 1 <= settings["brokers"] <= _BROKERS_MAX:
        raise pytest.UsageError(
            f"kafka_brokers: must be a number from 1 to {_BROKERS_MAX}, got {settings['brokers']}"
        )
    if settings["security"] not in _SECURITY:
        raise pytest.UsageError(
            f"kafka_security: must be ssl, sasl_plaintext or sasl_ssl, got {settings['security']!r}"
        )
    if settings["config"]:
        from fairlead_kafka.base.config_broker import BROKER_CONFIGS
        from fairlead_kafka.base.errors import ConfigError

        try:
            BROKER_CONFIGS.parse("broker", settings["config"])
        except ConfigError as error:
            raise pytest.UsageError(f"kafka_config: {error}") from None


def _settings(config: pytest.Config) -> _Settings:
    brokers = config.getoption("kafka_brokers")
    processes = config.getoption("kafka_processes")
    pairs = [*config.getini("kafka_config"), *config.getoption("kafka_config")]
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise pytest.UsageError(f"kafka_config: write KEY=VALUE, got {wrong[0]!r}")
    try:
        number = int(config.getini("kafka_brokers")) if brokers is None else brokers
    except ValueError:
        raise pytest.UsageError(
            f"kafka_brokers: must be a number, got {config.getini('kafka_brokers')!r}"
        ) from None
    if processes is None:
        try:
            processes = config.getini("kafka_processes")
        except (ValueError, pytest.UsageError) as error:
            raise pytest.UsageError(f"kafka_processes: must be true or false ({error})") from None
    parts = [pair.partition("=") for pair in pairs]
    return {
        "brokers": number,
        "processes": processes,
        "security": config.getoption("kafka_security") or config.getini("kafka_security") or None,
        "users": [*config.getini("kafka_users"), *config.getoption("kafka_user")] or ("alice", "bob"),
        "config": {key.strip(): value.strip() for key, _, value in parts},
    }
