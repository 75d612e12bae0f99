"""Replicas in sync: the leader measures them, the controller decides (KIP-497).

    in sync ──behind for replica.lag.time.max.ms──▶ proposed to leave ──controller──▶ out of sync
       ▲                                                                                 │
       └──controller── proposed to join ◀──in time, with all up to the high watermark ───┘

One proposal per partition is under way. While a replica is proposed to join, it counts as in sync
(the maximal set), so that no record that it lacks is acknowledged, in case the controller has
agreed already; a replica that is proposed to leave counts until it has left.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import AlterPartitions, ClusterView, ProposedIsr
from fairlead_kafka.broker.replication.led import Led
from fairlead_kafka.broker.replication.rules import in_time, may_join
from fairlead_kafka.broker.timers import TimerHost

RETRY_MS = 200
"""Wait before a change that the controller did not take is proposed again, if there is still reason
to."""


class Change(NamedTuple):
    """A proposal for the replicas in sync of one partition."""

    led: Led
    partition_epoch: int
    isr: tuple[int, ...]
    isr_epochs: tuple[int, ...]


class InSyncHost(TimerHost, Protocol):
    """The parts of a broker that proposals of replicas in sync use."""

    node_id: int
    settings: Settings
    controller: ClusterView


class Leaderships(Protocol):
    """The partitions led here (`replication`)."""

    def holds(self, led: Led) -> bool:
        """True as long as the partition is led here in the leader epoch of `led`."""

    def advance_mark(self, led: Led) -> None:
        """Raise the high watermark as far as the replicas allow."""


class InSyncReplicas:
    """Proposes changes of replicas in sync to the controller (KIP-497). `flush` sends the proposals
    of a step together."""

    def __init__(self, broker: InSyncHost, replication: Leaderships) -> None:
        self._broker = broker
        self._replication = replication
        self.changes: list[Change] = []
        self._flushed: list[Change] = []
        """The proposals that were sent last, until they are answered."""
        self._again: dict[Led, None] = {}

    def consider_joining(self, led: Led, node_id: int) -> None:
        """Propose that a follower joins, if it may and is not in sync already."""
        image = led.image
        if node_id in image.isr or led.proposal is not None or node_id not in image.replicas:
            return
        follower = led.followers.get(node_id)
        broker = self._broker.controller.image.brokers.get(node_id)
        if follower is None or broker is None or broker.epoch != follower.broker_epoch or not broker.eligible:
            return
        now_ns, lag_max_ns = self._broker.now_ns, ms_to_ns(self._broker.settings["replica.lag.time.max.ms"])
        if follower.feed is None or not in_time(follower.behind_since_ns, now_ns, lag_max_ns):
            # The high watermark may stand still, with too few in sync: a replica that is not heard
            # of must not join for that.
            return
        if may_join(follower.end, led.partition.high_watermark, led.former_end):
            self._propose(led, (*image.isr, node_id))

    def consider_leaving(self, led: Led, lag_max_ns: int) -> None:
        """Propose that replicas leave the in-sync set which have been behind for too long
        (`replica.lag.time.max.ms`)."""
        if led.proposal is None:
            late = led.laggards(self._broker.now_ns, lag_max_ns)
            if late:
                self._propose(led, tuple(node_id for node_id in led.image.isr if node_id not in late))

    def _propose(self, led: Led, isr: tuple[int, ...]) -> None:
        brokers = self._broker.controller.image.brokers
        epochs = []
        for node_id in isr:
            follower = led.followers.get(node_id)
            epochs.append(brokers[node_id].epoch if follower is None else follower.broker_epoch)
        led.proposal = change = Change(led, led.image.partition_epoch, isr, tuple(epochs))
        self.changes.append(change)

    def __str__(self) -> str:
        return "proposing who is in sync"

    def failed(self, _error: Exception) -> None:
        """Called when proposing raised: propose again a little later what is not decided."""
        self._ask_again_later(self._flushed)

    def flush(self) -> None:
        """Ask the controller to decide on the proposals of this step."""
        changes, self.changes = self.changes, []
        self._flushed = changes
        broker = self._broker
        proposed = [_proposed(change) for change in changes]
        own = broker.controller.image.brokers.get(broker.node_id)

        def decided(codes: list[int] | None, error: BrokerError | None) -> None:
            self._flushed = []
            if error is not None or codes is None:
                self._ask_again_later(changes)
            else:
                self._decided(changes, codes)

        broker.controller.decide(
            AlterPartitions(broker.node_id, -1 if own is None else own.epoch, proposed), decided
        )

    def _decided(self, changes: list[Change], codes: list[int]) -> None:
        for change in changes:
            if change.led.proposal is change:
                change.led.proposal = None
        for change, code in zip(changes, codes, strict=True):
            led = change.led
            if not self._replication.holds(led):
                continue
            self._replication.advance_mark(led)
            if code:
                self._try_again_later(led)
            else:
                self._look_again(led)

    def _ask_again_later(self, changes: list[Change]) -> None:
        """Send proposals to the controller again, a little later. It may have agreed already, so
        they stay pending: replicas that they would add count as in sync (KIP-497)."""

        def ask_again() -> None:
            self.changes += [
                change
                for change in changes
                if change.led.proposal is change and self._replication.holds(change.led)
            ]

        self._broker.call_at(self._broker.now_ns + ms_to_ns(RETRY_MS), ask_again)

    def _try_again_later(self, led: Led) -> None:
        if not self._again:
            self._broker.call_at(self._broker.now_ns + ms_to_ns(RETRY_MS), self._try_again)
        self._again[led] = None

    def _try_again(self) -> None:
        again, self._again = self._again, {}
        for led in again:
            if self._replication.holds(led):
                self._look_again(led)

    def _look_again(self, led: Led) -> None:
        """Propose replicas that have reached the high watermark while another proposal was under
        way."""
        for node_id in list(led.followers):
            self.consider_joining(led, node_id)


def _proposed(change: Change) -> ProposedIsr:
    led = change.led
    return ProposedIsr(
        led.topic.topic_id.hex, led.number, led.epoch, change.partition_epoch, change.isr, change.isr_epochs
    )
