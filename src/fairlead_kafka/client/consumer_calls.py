"""Every call of a consumer, written once; `Consumer` and `AsyncConsumer` drive the steps.

A consumer is made of parts, each with one task, that use each other through narrow protocols:

    Asking             its host and settings; closed or not; until when a call may take
    Fetched            the assigned partitions, and fetched records not yet returned; never waits
    ConsumerPositions  assigns, seeks, pauses
    ConsumerGroup      rebalances, the listener, commits
    Taking             gets chunks of the machine, and decodes them
    ConsumerReading    polls of records and tables
    ConsumerRanges     reads that end
    ConsumerLookups    offsets and topics
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.client.consumer_asking import Asking
from fairlead_kafka.client.consumer_fetched import Fetched
from fairlead_kafka.client.consumer_group import AwaitUser, ConsumerGroup
from fairlead_kafka.client.consumer_lookups import ConsumerLookups
from fairlead_kafka.client.consumer_positions import ConsumerPositions
from fairlead_kafka.client.consumer_ranges import ConsumerRanges
from fairlead_kafka.client.consumer_reading import ConsumerReading
from fairlead_kafka.client.consumer_taking import Taking
from fairlead_kafka.client.hosting import Offload, Opener, Steps, abandon, open_host, wait_until
from fairlead_kafka.client.interceptors_consumer import consumer_interceptors
from fairlead_kafka.client.one_at_a_time import CallUnderWay, closes
from fairlead_kafka.consumer import ConsumerMachine, Shut
from fairlead_kafka.consumer.groups import Gate, Unsubscribe, check_group_settings
from fairlead_kafka.consumer.metrics import ConsumerMetrics
from fairlead_kafka.runtime import Completion

if TYPE_CHECKING:
    from fairlead_kafka.client.deserializing import Deserializing

CLOSE_S = 5.0
"""Seconds that `close` waits for the machine and its host."""


class ConsumerCalls:
    """The parts of a consumer. Not for several threads at once, except `close`.

    On an event loop `offload` runs work on a thread, and `await_user` a coroutine of the
    application's.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        offload: Offload | None = None,
        await_user: AwaitUser | None = None,
        opener: Opener = open_host,
    ) -> None:
        settings = CLIENT_CONFIGS.parse("consumer", config)
        check_group_settings(settings)
        self._interceptors = consumer_interceptors(settings["interceptor.classes"], config)
        deserializing = _deserializing_of(settings)
        self._closes = closes()
        gate = Gate()
        self.host = opener(lambda rng: ConsumerMachine(settings, rng, gate), settings, "fairlead-consumer")
        self._asking = asking = Asking(self.host, settings)
        self.fetched = fetched = Fetched(asking.polls.keep)
        self.host.machine.client_metrics = self._metrics_at
        self.group = ConsumerGroup(asking, fetched, gate, await_user)
        self._taking = Taking(asking, fetched, self.group, offload)
        self.positions = ConsumerPositions(asking, fetched)
        self.reading = ConsumerReading(asking, self._taking, self.group, deserializing, self._interceptors)
        self.ranges = ConsumerRanges(asking, fetched, self._taking, self.reading, self.positions)
        self.lookups = ConsumerLookups(asking)
        self.check_open = asking.check
        self.connect = asking.connect
        self.instance_id = asking.instance_id

    @property
    def client_id(self) -> str:
        """The `client.id` of the config."""
        return str(self._asking.settings["client.id"])

    @property
    def group_id(self) -> str | None:
        """The `group.id` of the config; None if there is none."""
        return self._asking.settings["group.id"]

    @property
    def closed(self) -> bool:
        """True once `close` or `abandon` was called."""
        return self._asking.closing

    def check(self) -> None:
        """Raise CheckFailed if what is kept of fetched data does not fit the assignment.

        For tests in one thread, between two calls; the machine has a check of its own.
        """
        self.fetched.check()

    def metrics(self) -> ConsumerMetrics:
        """Metrics of the machine and of the calls on it, by Kafka's names; from any thread."""
        return self._metrics_at(self.host.now_ns())

    def _metrics_at(self, now_ns: int) -> ConsumerMetrics:
        return self.host.machine.metrics(now_ns, self._asking.polls, self.fetched.held)

    def close(self) -> Steps[None]:
        """Leave the group and shut the machine; does nothing if it is closed already. CloseUnderWay
        while other steps of this method are driven."""
        return self._closes.run(self._close())

    def _close(self) -> Steps[None]:
        if self.closed or self.host.forked:
            return
        failure: Exception | None = None
        self._asking.closing = True
        try:
            yield from self._part()
        except Exception as error:  # a listener's, raised once all is closed
            failure = error
        finally:
            self._asking.closed = True
        completion: Completion[None] = Completion()
        with suppress(UsageError):  # its machine has crashed
            self.host.submit(Shut(completion))
            yield from wait_until(completion, CLOSE_S)
        self.fetched.clear()
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """Leave the group and end the thread of a consumer object that was dropped without `close`;
        nothing is committed. `hosting.end_with` has this called."""
        if self.closed or self.host.forked:
            return
        self._asking.closing = self._asking.closed = True
        abandon(self.host, self.end, Unsubscribe, Shut)

    def end(self) -> None:
        """Stop the host, after `close`."""
        self.host.close(CLOSE_S)
        if self._interceptors is not None:
            self._interceptors.close()

    def _part(self) -> Steps[None]:
        """Commit and leave the group, unless another thread polls: its poll is ended instead."""
        with suppress(CallUnderWay):
            yield from self._taking.exclusive.run(self.group.part(CLOSE_S))


def _deserializing_of(settings: Settings) -> Deserializing | None:
    """A consumer's deserializers; None if it has none, as most have: then the formats are not
    loaded. ConfigError if one cannot be imported or made."""
    if settings["key.deserializer"] is None and settings["value.deserializer"] is None:
        return None
    from fairlead_kafka.client.deserializing import deserializing_of

    return deserializing_of(settings)
