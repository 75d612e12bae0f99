"""The quota of partitions that a client may create and delete: `controller_mutation_rate`
(KIP-599), measured for the whole cluster.

A decision that is made for a client (`Spender`) is charged for each partition that it creates or
deletes, after all its other checks. In a strict decision the items after the quota is used up are
refused, with the time after which the client may retry; any other decision is carried out, and its
client is throttled for that time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker_quotas import CONTROLLER_SAMPLES, CONTROLLER_WINDOW_S
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.limits import QUOTA_RATES_MAX
from fairlead_kafka.base.units import NS_PER_MS
from fairlead_kafka.broker.controller.configs import Configs
from fairlead_kafka.broker.controller.decisions import Spender
from fairlead_kafka.broker.controller.image import Change, ClientQuotasChanged, ClusterImage
from fairlead_kafka.broker.quota_rates import TokenBucket
from fairlead_kafka.broker.quota_table import CONTROLLER_MUTATION_RATE, QuotaTable

_MS_PER_S = 1_000
R = TypeVar("R")


class Mutations:
    """Charges clients for partitions that are created and deleted, each from a token bucket of its
    quota."""

    def __init__(self, image: ClusterImage, configs: Configs) -> None:
        self._image = image
        self._configs = configs
        self._table = QuotaTable()
        self._buckets: dict[Hashable, TokenBucket] = {}
        """Who shares a quota → the token bucket; the one used last at the end."""
        self._now_ms = 0
        self._spender: Spender | None = None
        self._throttle_ms = 0

    def note(self, change: Change | None) -> None:
        """Update the quotas after a change of the image."""
        if isinstance(change, ClientQuotasChanged):
            values = self._image.client_quotas.get(change.entity, {})
            self._table.set(change.entity, values.get(CONTROLLER_MUTATION_RATE))

    def tick(self, now_ns: int) -> None:
        """Note the time, monotonic ns."""
        self._now_ms = now_ns // NS_PER_MS

    def spend_for(self, spender: Spender, decide: Callable[[], R]) -> tuple[R | BrokerError, int]:
        """Call `decide` and charge the client for it: (result or BrokerError, milliseconds that the
        client is throttled)."""
        self._spender, self._throttle_ms = spender, 0
        outcome: R | BrokerError
        try:
            outcome = decide()
        except BrokerError as error:
            outcome = error
        finally:
            self._spender = None
        return outcome, self._throttle_ms

    def spend(self, partitions: int) -> None:
        """Charge partitions that are about to be created or deleted.

        BrokerError(THROTTLING_QUOTA_EXCEEDED) if the client's quota does not allow it now.
        """
        spender = self._spender
        applied = None if spender is None else self._table.of_client(spender.user, spender.client_id)
        if spender is None or applied is None:
            return
        bucket = self._bucket(applied.sharers)
        if spender.strict:
            self._throttle(bucket.throttle_ms(applied.limit, self._now_ms))
            if bucket.tokens(applied.limit, self._now_ms) < 0:
                raise BrokerError(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                    f"{CONTROLLER_MUTATION_RATE}: {applied.limit:g} partitions a second are granted, and "
                    "more were asked for: "
                    f"ask again in {self._throttle_ms} ms",
                )
        bucket.spend(partitions, applied.limit, self._now_ms)
        if not spender.strict:
            self._throttle(bucket.throttle_ms(applied.limit, self._now_ms))

    def _throttle(self, milliseconds: int) -> None:
        self._throttle_ms = max(self._throttle_ms, milliseconds)

    def _bucket(self, key: Hashable) -> TokenBucket:
        bucket = self._buckets.pop(key, None)
        if bucket is None:
            settings = self._configs.broker_settings()
            bucket = TokenBucket(settings[CONTROLLER_SAMPLES], settings[CONTROLLER_WINDOW_S] * _MS_PER_S)
            if len(self._buckets) >= QUOTA_RATES_MAX:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[key] = bucket
        return bucket
