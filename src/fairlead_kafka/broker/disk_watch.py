"""Watches the disk of a broker: a failed disk is reported to the controller, and other brokers lead
until it works again (Kafka's LogDirFailureChannel).

    working ──appends fail──▶ reporting ──the controller answers──▶ failed
    failed ──the log is mended──▶ reporting ──the controller answers──▶ working
    reporting ──no answer, or the broker's epoch changed──▶ reporting again, a little later

A failed write cuts the logs that it was for. A follower may have met this broker while what is
lost was still to be written, so that its log goes on where ours has ended: all streams of followers
begin again.

Meanwhile the broker leads only partitions that no other replica in sync can, answers
KAFKA_STORAGE_ERROR to their producers, and serves records written before.
"""

from __future__ import annotations

from typing import Protocol

from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.broker.controller import ClusterView, DiskReported
from fairlead_kafka.broker.log import Logs
from fairlead_kafka.broker.replication import Replication
from fairlead_kafka.broker.timers import DelayHost

REPORT_AGAIN_MS = 500

_logger = GuardedLogger("fairlead_kafka.broker")


class DiskWatchHost(DelayHost, Protocol):
    """The parts of a broker that the watch uses."""

    node_id: int
    controller: ClusterView
    logs: Logs
    replication: Replication


class DiskWatch:
    """Reports the state of this broker's disk to the controller, if that knows another one."""

    def __init__(self, broker: DiskWatchHost) -> None:
        self._broker = broker
        self._reporting = False
        self._failures = 0

    def __str__(self) -> str:
        return "telling the controller how the disk is"

    def failed(self, _error: Exception) -> None:
        """Called when the report to the controller raised: the next step looks again."""
        self._reporting = False

    def look(self) -> None:
        """Report the state of the disk if the controller knows another one; after a failed write,
        begin followers' streams again. Called in each step of a broker that takes part."""
        broker = self._broker
        if self._failures != broker.logs.failures:
            self._failures = broker.logs.failures
            broker.replication.logs_cut()
        known = broker.controller.image.brokers.get(broker.node_id)
        works = broker.logs.error is None
        if self._reporting or known is None or not known.alive or known.disk_failed is not works:
            return
        self._reporting = True

        def decided(_result: object, error: BrokerError | None) -> None:
            if error is None:
                self._reporting = False
                _logger.warning("broker %d %s", broker.node_id, _SAYS[works])
            else:
                broker.call_later(REPORT_AGAIN_MS, self._report_again)

        broker.controller.decide(DiskReported(broker.node_id, known.epoch, works), decided)

    def _report_again(self) -> None:
        self._reporting = False  # the step that calls this looks again


_SAYS = {
    True: "takes part in full again: its disk works",
    False: "leads only what nobody else can, until its disk works again",
}
