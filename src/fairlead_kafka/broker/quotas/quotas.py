"""The client quotas of one broker: the quotas that apply, the rates of use, and throttle times. See
the package for the theory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_broker_quotas import SAMPLES, WINDOW_S
from fairlead_kafka.base.limits import QUOTA_RATES_MAX
from fairlead_kafka.base.principal import Principal
from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S, ms_to_ns
from fairlead_kafka.broker.controller import ClusterView, QuotaEntity
from fairlead_kafka.broker.quota_rates import Rate
from fairlead_kafka.broker.quota_table import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaTable,
    plain_address,
)
from fairlead_kafka.broker.quotas.muting import Muting
from fairlead_kafka.wire import ApiKey, ApiMessage, RequestHeader
from fairlead_kafka.wire.private import PRIVATE_FIRST

_MS_PER_S = 1_000
_PERCENT_PER_NS = 100 / NS_PER_S
_OF_BROKERS: dict[int, int] = {
    ApiKey.WRITE_TXN_MARKERS: 0,
    ApiKey.ADD_PARTITIONS_TO_TXN: 4,
    ApiKey.SASL_HANDSHAKE: 0,
    ApiKey.SASL_AUTHENTICATE: 0,
}
"""APIs that are charged to nobody, each from which version on: brokers use them among themselves,
or to log in."""


class QuotasHost(Protocol):
    """The parts of a broker that quotas use."""

    now_ns: int
    settings: Settings
    controller: ClusterView
    handler_clock: Callable[[], int]


class Payer(Protocol):
    """The session that is charged, as quotas need it."""

    principal: Principal
    muting: Muting

    @property
    def logged_in(self) -> bool:
        """True if it is known who is at the other end."""


class Toll:
    """Quota charge of one request, made when it is begun if it is not exempt."""

    __slots__ = ("api_key", "began_ns", "client_id", "session", "until_ns")

    def __init__(self, session: Payer, header: RequestHeader) -> None:
        self.session = session
        self.api_key = header.api_key
        self.client_id = header.client_id
        self.began_ns = 0
        """Handler clock up to which its time is charged, ns; 0: it is not measured now."""
        self.until_ns = 0
        """Time until which its client must be still for what it has sent, ns; 0: it need not."""


def no_time() -> int:
    """The clock of a broker whose host gives it none: no handler takes any time."""
    return 0


def is_exempt(header: RequestHeader) -> bool:
    """True for requests that are charged to no client's quota."""
    return header.api_key >= PRIVATE_FIRST or header.version >= _OF_BROKERS.get(
        header.api_key, header.version + 1
    )


class Quotas:
    """The client quotas of one broker: what clients have used, and for how long they are throttled.
    `changed` and `follow` keep them as the image has them."""

    def __init__(self, broker: QuotasHost) -> None:
        self._broker = broker
        self.enabled = False
        """Some client has a quota: requests are charged."""
        self.timed = False
        """Some client has a request_percentage: time in handlers is measured."""
        self.limits_mutations = False
        """Some client has a controller_mutation_rate."""
        self.limits_connections = False
        """Some address has a connection_creation_rate."""
        self._tables = {
            name: QuotaTable()
            for name in (
                PRODUCER_BYTE_RATE,
                CONSUMER_BYTE_RATE,
                REQUEST_PERCENTAGE,
                CONTROLLER_MUTATION_RATE,
                CONNECTION_CREATION_RATE,
            )
        }
        self._rates: dict[Hashable, tuple[Rate, int]] = {}
        """Rates and when each was used last, the one used last at the end."""

    # --- What is granted

    def follow(self) -> None:
        """Follow changes of quotas from now on, and read those that there are."""
        for entity in self._broker.controller.image.client_quotas:
            self.changed(entity)

    def changed(self, entity: QuotaEntity) -> None:
        """Called when the quotas of an entity changed: the image has them."""
        values = self._broker.controller.image.client_quotas.get(entity, {})
        for name, table in self._tables.items():
            table.set(entity, values.get(name))
        tables = self._tables
        self.timed = bool(tables[REQUEST_PERCENTAGE])
        self.limits_mutations = bool(tables[CONTROLLER_MUTATION_RATE])
        self.limits_connections = bool(tables[CONNECTION_CREATION_RATE])
        self.enabled = (
            self.timed
            or self.limits_mutations
            or bool(tables[PRODUCER_BYTE_RATE])
            or bool(tables[CONSUMER_BYTE_RATE])
        )

    # --- What is used

    def begun(self, session: Payer, header: RequestHeader, size_bytes: int) -> Toll | None:
        """Called when a request is about to be served: charge it for its bytes if it is a Produce.
        None: it is exempt.

        It is charged that early because later requests on the connection may be begun before it is
        answered; if this one was too much, none is.
        """
        if is_exempt(header) or not session.logged_in:
            return None
        toll = Toll(session, header)
        if self.timed:
            toll.began_ns = self._broker.handler_clock()
        if header.api_key == ApiKey.PRODUCE:
            wait_ms = self._charge(PRODUCER_BYTE_RATE, session, header.client_id, size_bytes)[0]
            toll.until_ns = self._broker.now_ns + ms_to_ns(wait_ms) if wait_ms else 0
            session.muting.begin(wait_ms)
        return toll

    def answered(self, toll: Toll, answer: ApiMessage | None) -> None:
        """Charge a request that is about to be answered for its time (`answer` None: acks=0 gets
        none), set the throttle time in the answer, and mute the session for as long. If the handler
        has set a throttle time already, that one counts."""
        if answer is None:
            toll.began_ns = 0  # a request without an answer is measured by its bytes alone, as in Kafka
            return
        fields = answer.__dict__  # of any API
        wait_ms: int = fields.get("throttle_time_ms", 0)
        if toll.until_ns:
            wait_ms = max(wait_ms, -(-(toll.until_ns - self._broker.now_ns) // NS_PER_MS))
        if (
            toll.api_key != ApiKey.FETCH or fields["error_code"] != ErrorCode.NONE
        ):  # else `fetch_wait_ms` has decided
            wait_ms = max(wait_ms, self._time_wait_ms(toll))
        if wait_ms > 0:
            fields["throttle_time_ms"] = wait_ms
            toll.session.muting.begin(wait_ms)

    def spent(self, toll: Toll) -> None:
        """Called when the handler has returned: its time that was not charged yet is charged with
        the client's next request."""
        began_ns, toll.began_ns = toll.began_ns, 0
        if began_ns:
            applied = self._tables[REQUEST_PERCENTAGE].of_client(toll.session.principal.name, toll.client_id)
            if applied is not None:
                spent_ns = self._broker.handler_clock() - began_ns
                self.rate((REQUEST_PERCENTAGE, applied.sharers)).record(
                    spent_ns * _PERCENT_PER_NS, self._now_ms
                )

    def fetch_wait_ms(self, toll: Toll, size_bytes: int) -> int:
        """Milliseconds that a consumer has to wait instead of getting `size_bytes` of record
        batches; 0: it gets them. Bytes that it does not get are not charged."""
        wait_ms, rate = self._charge(CONSUMER_BYTE_RATE, toll.session, toll.client_id, size_bytes)
        wait_ms = max(wait_ms, self._time_wait_ms(toll))
        if wait_ms and rate is not None:
            rate.record(-size_bytes, self._now_ms)
        return wait_ms

    def fetch_max_bytes(self, toll: Toll) -> int | None:
        """The most bytes that a consumer can ever get in one answer, however long it has waited;
        None: it has no quota."""
        applied = self._tables[CONSUMER_BYTE_RATE].of_client(toll.session.principal.name, toll.client_id)
        settings = self._broker.settings
        return (
            None
            if applied is None
            else int(applied.limit * max(settings[SAMPLES] - 1, 0) * settings[WINDOW_S])
        )

    def connection_wait_ms(self, address: str) -> int:
        """Milliseconds that a new connection is kept waiting before it is closed, where there are
        too many; 0: it may stay."""
        address = plain_address(address)
        limit = self._tables[CONNECTION_CREATION_RATE].of_address(address)
        if limit is None:
            return 0
        rate, now_ms = self.rate((CONNECTION_CREATION_RATE, address)), self._now_ms
        rate.record(1, now_ms)
        wait_ms = min(rate.throttle_ms(limit, now_ms), self._window_ms)
        if wait_ms:
            rate.record(-1, now_ms)
        return wait_ms

    def _charge(
        self, name: str, session: Payer, client_id: str | None, value: float
    ) -> tuple[int, Rate | None]:
        """Record that a client has used `value` of the quota `name`, if it has one. Returns the
        milliseconds that it is throttled, and its rate."""
        applied = self._tables[name].of_client(session.principal.name, client_id)
        if applied is None:
            return 0, None
        rate, now_ms = self.rate((name, applied.sharers)), self._now_ms
        rate.record(value, now_ms)
        return rate.throttle_ms(applied.limit, now_ms), rate

    def _time_wait_ms(self, toll: Toll) -> int:
        """Charge the time that a request took so far. Returns the milliseconds that its client is
        throttled, at most one quota window."""
        if not self.timed:
            return 0
        spent_ns = 0
        if toll.began_ns:
            now_ns = self._broker.handler_clock()
            spent_ns, toll.began_ns = now_ns - toll.began_ns, now_ns
        wait_ms = self._charge(REQUEST_PERCENTAGE, toll.session, toll.client_id, spent_ns * _PERCENT_PER_NS)[
            0
        ]
        return min(wait_ms, self._window_ms)

    @property
    def _now_ms(self) -> int:
        return self._broker.now_ns // NS_PER_MS

    @property
    def _window_ms(self) -> int:
        return int(self._broker.settings[WINDOW_S]) * _MS_PER_S

    def rate(self, key: Hashable) -> Rate:
        """The rate at `key`: of clients that share a quota, or of an address.

        Rates unused for as long as rates look back are forgotten on the way.
        """
        found = self._rates.pop(key, None)
        now_ms, samples = self._now_ms, self._broker.settings[SAMPLES]
        rate = Rate(samples, self._window_ms) if found is None else found[0]
        self._rates[key] = rate, now_ms
        if found is None:
            oldest = next(iter(self._rates.values()))
            while oldest[1] <= now_ms - samples * self._window_ms or len(self._rates) > QUOTA_RATES_MAX:
                del self._rates[next(iter(self._rates))]
                oldest = next(iter(self._rates.values()))
        return rate

    def __len__(self) -> int:
        return len(self._rates)
