"""`Cluster`: a Kafka cluster for tests, laptops and CI, inside this process or with a process for
each broker."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import BrokerError, ConfigError, UsageError
from fairlead_kafka.base.json_types import Json, JsonObject, integers_at
from fairlead_kafka.base.within import Int32
from fairlead_kafka.broker import Controller
from fairlead_kafka.broker.control import ControllerServer, Decide
from fairlead_kafka.broker.controller import CreateTopics, DeleteTopics, NewTopic
from fairlead_kafka.broker.controller.image import TopicImage
from fairlead_kafka.broker.listeners import DEFAULT_LISTENER, Listener, listeners_of
from fairlead_kafka.core.metric_table import Metrics
from fairlead_kafka.runtime import Completion, Handle, SelectorHost, system_rng
from fairlead_kafka.runtime.at_exit import close_last, was_closed
from fairlead_kafka.testing.brokers import check_listeners
from fairlead_kafka.testing.client_metrics import ClientMetrics, taken_apart
from fairlead_kafka.testing.clock import ClusterClock
from fairlead_kafka.testing.cluster_metrics import read as read_metrics
from fairlead_kafka.testing.error_places import Kind
from fairlead_kafka.testing.folder import FolderLock, MetadataFile
from fairlead_kafka.testing.handles import TIMEOUT_S, BrokerHandle, Where
from fairlead_kafka.testing.in_process import BrokerInProcess, Processes, check_config
from fairlead_kafka.testing.in_thread import BrokerInThread
from fairlead_kafka.testing.request_faults import Fault, Predicate, RequestFaults
from fairlead_kafka.testing.requests_on import RequestsOn, Wanted, criteria_of
from fairlead_kafka.wire import ApiKey

if TYPE_CHECKING:
    from fairlead_kafka.testing.securing import Securing

_PORTS_NAME = "cluster.json"


@checked()
class Cluster:
    """A cluster of `brokers` brokers, which any Kafka client can use at `bootstrap_servers`.

    `data_dir`: where the data is kept; None: in a temporary folder that is removed by `close`. A
    cluster opened again over the same folder has its topics, records, committed offsets and id, and
    its ports if they are free. `config`: broker configs by Kafka's names, the same for all brokers
    (`docs/reference/configuration.md`). `port`: of the first broker, the next ones follow; 0: any
    free ports. `host`: the address to listen on. `processes`: a process of its own for each broker,
    with the controller in this one; otherwise all live in one thread of this process. `security`:
    "ssl", "sasl_plaintext" or "sasl_ssl": certificates and `users` (names, or name → password) are
    made, brokers reach each other as the user `admin`, who may do everything, and `client_settings`
    gives clients what they need. Needs the extra `security`. Other listeners are a matter of
    `config` (`listeners`, `advertised.listeners`; docs/how-to/security.md). `racks`: where brokers
    stand (`broker.rack`), given out in turn: replicas are spread over them (KIP-36), and with
    `replica.selector.class` consumers read in their own (KIP-392).

    Raises ConfigError for what is wrong with the arguments, UsageError if another cluster uses
    `data_dir`, ConnectionFailed if a port is taken, FairleadError if the data on disk is damaged.
    All methods may be called from any thread.
    """

    def __init__(
        self,
        brokers: int = 3,
        data_dir: str | os.PathLike[str] | None = None,
        config: Mapping[str, object] | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        processes: bool = False,
        racks: Sequence[str] = (),
        security: str | None = None,
        users: Mapping[str, str] | Sequence[str] = ("alice", "bob"),
    ) -> None:
        given = dict(config or {})
        BROKER_CONFIGS.parse("broker", given)
        _check_arguments(brokers, port, host, given, security)
        self._racks = tuple(racks)
        self._temporary = data_dir is None
        self._folder = (
            Path(tempfile.mkdtemp(prefix="fairlead-")) if data_dir is None else Path(data_dir).absolute()
        )
        self._lock = FolderLock(self._folder)
        self._host: SelectorHost | None = None
        self._metadata: MetadataFile | None = None
        self._processes: Processes | None = None
        self._server: Handle
        self._brokers: list[BrokerHandle] = []
        self._closed = False
        self._closing = threading.Lock()
        self._process = os.getpid()
        self._securing: Securing | None = None
        self._request_faults = RequestFaults(self._call_in_step)
        try:
            if security is not None:
                from fairlead_kafka.testing.securing import Securing

                self._securing = Securing(security, self._folder / "security", users, host)
                given = self._securing.broker_config(host, port) | given
            settings = BROKER_CONFIGS.parse("broker", given)
            check_listeners(settings, brokers, host, port)
            _check_heartbeats(settings)
            self._open(brokers, settings, port, host, check_config(given) if processes else None)
        except BaseException:
            self.close()
            raise

    def _open(
        self, brokers: int, settings: Settings, port: int, host: str, crossing: JsonObject | None
    ) -> None:
        ports = _ports_of(self._folder, brokers)
        self._metadata = MetadataFile(self._folder / "metadata.log", durable=not self._temporary)
        self._controller = Controller(settings, system_rng(), self._metadata.append, self._metadata.replace)
        self._metadata.replay(self._controller)
        self._know_users()
        self._controller.await_brokers(range(brokers))
        self._host = loop = SelectorHost("fairlead-cluster")
        loop.start()
        close_last(loop, self.close)
        token = secrets.token_hex(16)
        server = ControllerServer(self._controller, token)
        self._server = handle = loop.add(server)
        server.wake = lambda: loop.wake(handle)
        if crossing is not None:
            self._processes = Processes(loop, handle, token, crossing)
        for node_id in range(brokers):
            rack = self._racks[node_id % len(self._racks)] if self._racks else None
            listeners = listeners_of(settings, node_id, host, port and port + node_id)
            where = Where(node_id, str(self._folder / f"broker-{node_id}"), host, listeners, rack)
            shared = self._processes
            runner = (
                BrokerInThread(loop, self._controller, where, self._request_faults)
                if shared is None
                else BrokerInProcess(shared, where)
            )
            self._brokers.append(
                BrokerHandle(where, runner, _fixed(listeners), lambda: self._brokers, self._check)
            )
        begun = [broker._begin(ports[broker.node_id]) for broker in self._brokers]
        for broker, start in zip(self._brokers, begun, strict=True):
            broker._finish_start(start)
        if not self._temporary:
            text = json.dumps({"version": 2, "ports": [broker.ports for broker in self._brokers]})
            (self._folder / _PORTS_NAME).write_text(text)

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every broker, running or not, separated by commas."""
        return ",".join(broker.address for broker in self._brokers)

    @property
    def listeners(self) -> tuple[str, ...]:
        """The names of the listeners, the first one first."""
        return self._brokers[0].listeners

    def bootstrap_servers_of(self, listener: str) -> str:
        """`host:port` of every broker for clients of the listener `listener`, separated by commas;
        `bootstrap_servers` has those of the first.
        """
        return ",".join(broker.address_of(listener) for broker in self._brokers)

    def client_settings(
        self,
        user: str | None = None,
        *,
        mechanism: str | None = None,
        style: Literal["fairlead", "librdkafka", "java"] = "fairlead",
    ) -> dict[str, object]:
        """A client's configs for this cluster, `bootstrap.servers` included, to log in as `user`.

        `mechanism`: the SASL mechanism; None: SCRAM-SHA-512. `style`: the client whose config names
        are used. Without security only `bootstrap.servers` is set. UsageError if there is no such
        user.
        """
        if self._securing is None:
            return {"bootstrap.servers": self.bootstrap_servers}
        return self._securing.client_settings(self.bootstrap_servers, user, mechanism, style)

    @property
    def users(self) -> list[str]:
        """Names of the users that can authenticate, `admin` first; empty without `security`."""
        return [] if self._securing is None else list(self._securing.passwords)

    def settings_file(self, user: str, *, mechanism: str | None = None) -> Path:
        """A file of a user's settings, as `--command-config` and Java's tools take it. UsageError
        without security."""
        if self._securing is None:
            raise UsageError("this cluster is not secured; its clients need bootstrap.servers alone")
        return self._securing.write_settings(self.bootstrap_servers, user, mechanism)

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._controller.image.cluster_id

    @property
    def brokers(self) -> list[BrokerHandle]:
        """All brokers, by id."""
        return list(self._brokers)

    def broker(self, node_id: int) -> BrokerHandle:
        """The broker with this id, counted from 0. UsageError if there is none."""
        if not 0 <= node_id < len(self._brokers):
            raise UsageError(f"there is no broker {node_id}; this cluster has 0 to {len(self._brokers) - 1}")
        return self._brokers[node_id]

    def create_topic(
        self,
        name: str,
        partitions: Int32 = -1,
        replication_factor: Int32 = -1,
        configs: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a topic without a client; -1: as `num.partitions` and `default.replication.factor`
        say. BrokerError if it is refused.
        """
        self._decide_one(
            CreateTopics([NewTopic(name, partitions, replication_factor, None, dict(configs or {}))])
        )

    def has_topic(self, name: str) -> bool:
        """True if there is a topic of this name."""
        return name in self._controller.image.topics

    def delete_topic(self, name: str) -> None:
        """Delete a topic without a client. BrokerError if it is refused."""
        self._decide_one(DeleteTopics([name]))

    # --- Faults of requests, and time

    def on(
        self,
        api: ApiKey | int | str | None = None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        client_id: str | None = None,
        principal: str | None = None,
        broker: int | None = None,
        where: Predicate | None = None,
    ) -> RequestsOn:
        """Requests that something is to happen to: `cluster.on(ApiKey.PRODUCE,
        topic="orders").answer(ErrorCode.NOT_ENOUGH_REPLICAS, times=2)`.

        All that is given must be so. `api`: a key, or its name; None: every request. `topic`,
        `partition`, `group`, `transactional_id`: what the request names. An error is then answered
        for that part of it alone, and the rest is served. `client_id`, `principal` ("User:alice"):
        who asks. `broker`: the id of the broker that is asked. `where`: a function of the
        `SeenRequest`, called on the cluster's thread. UsageError for an API that brokers do not
        serve or whose requests name no such thing, and where brokers run in processes of their own.
        """
        self._check()
        if self._processes is not None:
            raise UsageError(
                "on: brokers in processes of their own take no faults by request, for a rule counts over all "
                "brokers and may call a function of the test; leave processes=True out"
            )
        if broker is not None:
            self.broker(broker)
        named = {
            Kind.TOPIC: topic,
            Kind.PARTITION: partition,
            Kind.GROUP: group,
            Kind.TRANSACTIONAL_ID: transactional_id,
        }
        wanted = Wanted(api, named, client_id, principal, broker, where)
        return RequestsOn(criteria_of(wanted), self._request_faults)

    @property
    def faults(self) -> list[Fault]:
        """The faults by request that were not removed, in the order in which a request meets
        them."""
        return list(self._request_faults.rules)

    @property
    def clock(self) -> ClusterClock:
        """The time that the brokers go by, which tests can move on. UsageError where brokers run in
        processes of their own."""
        self._check()
        if self._processes is not None:
            raise UsageError(
                "clock: brokers in processes of their own go by the machine's time; leave processes=True out"
            )
        assert self._host is not None, "it is open"
        return ClusterClock(self._host)

    def metrics(self) -> Metrics:
        """Metrics of the cluster, for `PrometheusCollector` (docs/reference/metrics.md); on any
        thread.

        {"cluster-metrics": {name: number}, "cluster-node-metrics": {"node-0": {name: number}}}.
        """
        return read_metrics(self._controller.image)

    def client_metrics(self) -> list[ClientMetrics]:
        """Metrics that clients have pushed of themselves (KIP-714): the last push of each to each
        broker, the oldest first.

        Clients push once a subscription asks for it:
        `admin.alter_configs({ConfigResource.client_metrics("all"): [ConfigChange.set("metrics",
        "*"), ConfigChange.set("interval.ms", "1000")]})`, and only those that connect after that.
        What was pushed to a broker that has ended since is gone. Needs the extra `telemetry`.
        UsageError without it, and where brokers run in processes of their own.
        """
        self._check()
        if self._processes is not None:
            raise UsageError(
                "client_metrics: brokers in processes of their own keep what clients push to themselves; "
                "leave processes=True out"
            )
        runners = [(each.node_id, each._runner) for each in self._brokers]
        found = [
            metrics
            for node_id, runner in runners
            if isinstance(runner, BrokerInThread)
            for metrics in taken_apart(node_id, runner.client_pushes())
        ]
        return sorted(found, key=lambda each: each.timestamp_ms)

    def _call_in_step(self, node_id: int, function: Callable[[], object]) -> None:
        runner = self._brokers[node_id]._runner
        assert isinstance(runner, BrokerInThread), "others take no rules"
        runner.call_in_step(function)

    def _know_users(self) -> None:
        """Register the SCRAM users before any broker runs: brokers authenticate to each other as
        one of these users."""
        if self._securing is None or not self._securing.protocol.startswith("SASL"):
            return
        self._controller.alter_scram_credentials(
            self._securing.scram_alterations(self._controller.image.scram_credentials)
        )

    def _decide_one(self, decision: CreateTopics | DeleteTopics) -> None:
        self._check()
        assert self._host is not None, "it is open"
        completion: Completion[list[TopicImage | BrokerError]] = Completion()
        self._host.submit(self._server, Decide(decision, completion))
        (result,) = completion.result(TIMEOUT_S)
        if isinstance(result, BrokerError):
            raise result

    def _check(self) -> None:
        if self._closed:
            raise UsageError("this cluster is closed; make a new one")

    @property
    def controller_running(self) -> bool:
        """True as long as the controller runs; if it has ended (its log says why), make the cluster
        again."""
        return not self._closed and not self._server.ended

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return self._closed

    def restore(self) -> None:
        """Remove all faults by request, heal all brokers, and start those that do not run: the
        cluster is whole again, whatever a test did to it. Its clock stays where it is."""
        self._check()
        self._request_faults.clear()
        for broker in self._brokers:
            broker.heal()
        for broker in self._brokers:
            broker.start()

    def close(self) -> None:
        """Stop all brokers; data in a temporary folder is removed, other data is synced to disk.
        Idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            if os.getpid() != self._process:
                return  # a forked child: the brokers and the folder are its parent's
            if self._host is not None:
                was_closed(self._host)
                self._controller.cluster_stopping()
                for broker in self._brokers:
                    broker._end(abruptly=self._temporary)
                self._host.close()
            if self._processes is not None:
                self._processes.nursery.close()
            if self._metadata is not None:
                self._metadata.close()
            self._lock.release()
            if self._temporary:
                shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Cluster:
        self._check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Cluster {'closed' if self._closed else self.bootstrap_servers}>"


def _check_arguments(
    brokers: int, port: int, host: str, config: Mapping[str, object], security: str | None
) -> None:
    if host in ("", "0.0.0.0", "::"):
        raise ConfigError(
            "host: clients are told to connect to it, so it must be an address they can reach, got "
            f"{host!r}; to listen "
            "everywhere, give the configs listeners=PLAINTEXT://0.0.0.0:9092 and "
            "advertised.listeners=PLAINTEXT://localhost:9092"
        )
    if config.get("listeners") is not None and (security is not None or port):
        what = "security" if security is not None else "port"
        raise ConfigError(
            f"{what}: the config listeners says where and how brokers listen; leave one of them out"
        )
    if isinstance(brokers, bool) or not isinstance(brokers, int) or not 1 <= brokers <= 1000:
        raise ConfigError(f"brokers: must be a number from 1 to 1000, got {brokers!r}")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_536 - brokers:
        raise ConfigError(f"port: must be 0, or leave room for {brokers} brokers below 65536, got {port!r}")


def _check_heartbeats(settings: Settings) -> None:
    beat_ms, session_ms = settings["broker.heartbeat.interval.ms"], settings["broker.session.timeout.ms"]
    if beat_ms >= session_ms:
        raise ConfigError(
            f"broker.heartbeat.interval.ms: {beat_ms} is not less than broker.session.timeout.ms, "
            f"{session_ms}: the controller would take each broker for gone between two heartbeats"
        )


def _fixed(listeners: Sequence[Listener]) -> dict[str, int]:
    """The configured ports, by listener; empty if any port is still to be chosen (0)."""
    ports = {each.name: each.port for each in listeners}
    return ports if all(ports.values()) else {}


def _ports_of(folder: Path, brokers: int) -> list[dict[str, int]]:
    """The ports the brokers had before, by listener. ConfigError if the data belongs to more
    brokers than are asked for."""
    path = folder / _PORTS_NAME
    if not path.exists():
        return [{}] * brokers
    try:
        ports = [_by_listener(entry) for entry in json.loads(path.read_text())["ports"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path}: not a file of a cluster's ports ({error}); delete it to have new ports"
        ) from None
    if len(ports) > brokers:
        raise ConfigError(
            f"{folder} holds the data of {len(ports)} brokers; open it with {len(ports)} brokers or more, "
            f"not {brokers}"
        )
    return ports + [{}] * (brokers - len(ports))


def _by_listener(entry: Json) -> dict[str, int]:
    """The ports of one broker, by listener, from its `entry` in the file of ports. Releases before
    0.3 wrote one port."""
    if isinstance(entry, int):
        return {DEFAULT_LISTENER: entry}
    return integers_at({"ports": entry}, "ports")
