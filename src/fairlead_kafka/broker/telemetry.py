"""Metrics that clients push (KIP-714): subscriptions, the clients that push, and each client's last
push.

A subscription is a config resource (`client-metrics`) that names metrics and clients. A client asks
which of its metrics are wanted (`subscribe`), gets a subscription id, and pushes with that id
(`push`). Subscriptions that match the same client are made one: all their metrics, the shortest
interval. Kafka's `ClientMetricsManager` decides the same; Kafka passes the metrics to a plug-in;
here the last push of each client is kept, for `testing.Cluster.client_metrics`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import google_crc32c

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_client_metrics import parse_match
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.records import Compression, decompress

INTERVAL_DEFAULT_MS = 300_000
"""Interval, ms, after which a client that no subscription matches asks again (Kafka's default)."""
CLIENTS_MAX = 16_384
"""Clients that are known at a time, Kafka's bound; the one that was quiet for longest is
forgotten."""
KEPT_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of all pushes that are kept; the oldest goes first."""
INFLATED_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of one push when it is decompressed."""
EVERY_METRIC = "*"
"""A name in a subscription that stands for all metrics of a client."""
COMPRESSIONS = (Compression.zstd, Compression.lz4, Compression.gzip, Compression.snappy)
"""Codecs that a push may be compressed with, the best one first."""
_NO_CLIENT = UUID(int=0)
_RESERVED = frozenset({_NO_CLIENT, UUID(int=1)})
"""Kafka's `Uuid.RESERVED`: nobody's id."""


class TelemetryClient(NamedTuple):
    """A client as its connection describes it; a field is None if the client did not say. The names
    are those that the config `match` has patterns for."""

    client_id: str | None
    client_software_name: str | None
    client_software_version: str | None
    client_source_address: str
    client_source_port: str


class Wanted(NamedTuple):
    """The metrics that the cluster wants of a client: those that begin with one of these names,
    pushed every `interval_ms` milliseconds."""

    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int


class Pushed(NamedTuple):
    """The last push of one client: `data` is OTLP's `MetricsData`, compressed with
    `compression`."""

    instance_id: UUID
    client: TelemetryClient
    wall_ms: int
    compression: Compression
    data: bytes


class _Instance:
    """One client instance: when it asked and pushed, and its last push."""

    def __init__(self, client: TelemetryClient) -> None:
        self.client = client
        self.got_ms: int | None = None
        self.pushed_ms: int | None = None
        self.terminating = False
        self.kept: Pushed | None = None

    def may_get(self, now_ms: int, interval_ms: int) -> bool:
        """Whether the client may ask again what is wanted: one interval after it last asked or
        pushed."""
        times = [each for each in (self.got_ms, self.pushed_ms) if each is not None]
        return not times or now_ms - max(times) >= interval_ms

    def may_push(self, now_ms: int, interval_ms: int) -> bool:
        """True if the client may push at `now_ms`: at any time after it asked, since clients draw a
        random time to begin; then one interval after the last push."""
        if self.pushed_ms is None or (self.got_ms is not None and self.got_ms > self.pushed_ms):
            return True
        return now_ms - self.pushed_ms >= interval_ms


class ClientTelemetry:
    """The clients that push to one broker. Times are ms since 1970, of the broker's clock."""

    def __init__(self) -> None:
        self._instances: OrderedDict[UUID, _Instance] = OrderedDict()  # the quietest first
        self._kept: OrderedDict[UUID, int] = OrderedDict()  # bytes kept, the oldest push first
        self._kept_bytes = 0

    def wanted(
        self, subscriptions: Mapping[str, Settings], instance_id: UUID, client: TelemetryClient
    ) -> Wanted:
        """The metrics that all subscriptions which match a client want of it, with a subscription
        id made of them."""
        metrics: set[str] = set()
        interval_ms = INTERVAL_DEFAULT_MS
        known = {**client._asdict(), "client_instance_id": str(instance_id)}
        for settings in subscriptions.values():
            if _matches(settings["match"], known):
                metrics.update(settings["metrics"])
                interval_ms = min(interval_ms, settings["interval.ms"])
        names = (EVERY_METRIC,) if EVERY_METRIC in metrics else tuple(sorted(metrics))
        digest = google_crc32c.value("\0".join((*names, str(interval_ms), instance_id.hex)).encode())
        return Wanted(digest - (1 << 32) if digest >> 31 else digest, names, interval_ms)

    def subscribe(self, instance_id: UUID, client: TelemetryClient, wanted: Wanted, now_ms: int) -> None:
        """Note that a client has asked. BrokerError THROTTLING_QUOTA_EXCEEDED if it asks too often
        while nothing has changed."""
        instance = self._instance(instance_id, client)
        if not instance.may_get(now_ms, wanted.interval_ms):
            raise BrokerError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "asked before its interval was over")
        instance.got_ms = now_ms

    def push(self, pushed: Pushed, subscription_id: int, wanted: Wanted, terminating: bool) -> None:
        """Keep a push; `terminating`: it is the client's last.

        BrokerError: INVALID_REQUEST after the last push, THROTTLING_QUOTA_EXCEEDED for one that
        comes too early, UNKNOWN_SUBSCRIPTION_ID if other metrics are wanted by now, INVALID_RECORD
        for data that do not decompress.
        """
        if pushed.instance_id in _RESERVED:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "nobody has this client instance id")
        instance = self._instance(pushed.instance_id, pushed.client)
        ended, instance.terminating = instance.terminating, terminating
        if ended:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "it said before that it ends")
        if not instance.may_push(pushed.wall_ms, wanted.interval_ms) and not terminating:
            raise BrokerError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "pushed before its interval was over")
        instance.pushed_ms = pushed.wall_ms
        if subscription_id != wanted.subscription_id:
            instance.got_ms = None
            raise BrokerError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "something else is wanted by now")
        if not pushed.data:
            return
        try:
            decompress(pushed.compression, pushed.data, INFLATED_BYTES_MAX)
        except DecodeError as error:
            raise BrokerError(ErrorCode.INVALID_RECORD, str(error)) from None
        self._keep(instance, pushed)

    @property
    def pushed(self) -> Sequence[Pushed]:
        """The last push of each client, the oldest first."""
        return [kept for each in self._kept if (kept := self._instances[each].kept) is not None]

    def check(self) -> None:
        """Raise AssertionError unless the counts fit the pushes that are kept."""
        assert self._kept_bytes == sum(self._kept.values()) == sum(len(each.data) for each in self.pushed)
        assert len(self._instances) <= CLIENTS_MAX
        assert self._kept.keys() <= self._instances.keys()

    def _instance(self, instance_id: UUID, client: TelemetryClient) -> _Instance:
        instance = self._instances.get(instance_id)
        if instance is None:
            instance = self._instances[instance_id] = _Instance(client)
            if len(self._instances) > CLIENTS_MAX:
                quietest, _ = self._instances.popitem(last=False)
                self._kept_bytes -= self._kept.pop(quietest, 0)
        self._instances.move_to_end(instance_id)
        return instance

    def _keep(self, instance: _Instance, pushed: Pushed) -> None:
        self._kept_bytes += len(pushed.data) - self._kept.pop(pushed.instance_id, 0)
        self._kept[pushed.instance_id] = len(pushed.data)
        instance.kept = pushed
        while self._kept_bytes > KEPT_BYTES_MAX:
            oldest, size_bytes = self._kept.popitem(last=False)
            self._kept_bytes -= size_bytes
            self._instances[oldest].kept = None


def _matches(match: Sequence[str], known: Mapping[str, str | None]) -> bool:
    return all(
        (text := known[name]) is not None and pattern.matches(text)
        for name, pattern in parse_match(match).items()
    )
