"""Requests with a past epoch of a share session: none may be accepted.

A request that the network kept for too long looks like this to a broker. It has the id of a present
member, and an epoch that its session had before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Asker
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.share_member import ShareProcess
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse

ACKNOWLEDGE_VERSION = 1
PAUSE_MS = 300.0


class ShareProbes:
    """Sends requests with an epoch that is past, in share sessions of members, and looks that
    brokers refuse them. `processes()` gives (group, process) of each member."""

    def __init__(
        self,
        host: VirtualHost,
        script: Script,
        addresses: Sequence[str],
        rng: Random,
        processes: Callable[[], Sequence[tuple[str, ShareProcess]]],
    ) -> None:
        self._script = script
        self._addresses = addresses
        self._rng = rng
        self._processes = processes
        self._asker = Asker(host)
        self._finished = False
        self.refused = 0
        """Requests that a broker refused."""
        self.violations: list[str] = []
        """Requests that a broker took, though the member's session was at a later epoch."""

    def begin(self) -> None:
        """Send one such request, and the next a little later."""
        if self._finished:
            return
        processes = self._processes()
        if processes:
            group, process = self._rng.choice(processes)
            found = process.machine.stale_epoch(self._rng)
            if found is not None:
                self._ask(group, process, *found)
        self._script.after(PAUSE_MS * (0.5 + self._rng.random()), self.begin)

    def finish(self) -> None:
        """Send no more requests."""
        self._finished = True

    def _ask(self, group: str, process: ShareProcess, node_id: int, number: int, epoch: int) -> None:
        request = ShareAcknowledgeRequest(
            group_id=group,
            member_id=process.machine.member_id,
            share_session_epoch=epoch,
            is_renew_ack=False,
            topics=[],
        )

        def answered(answer: ShareAcknowledgeResponse | None) -> None:
            if answer is None:
                return
            self.refused += bool(answer.error_code)
            # A session that its member opened meanwhile may be at this epoch.
            if not answer.error_code and not process.ended and process.machine.has(node_id, number):
                self.violations.append(
                    f"share group {group}: broker {node_id} took a request of process {process.number} with "
                    f"session epoch {epoch}, which was past"
                )

        self._asker.ask(
            self._addresses[node_id], ApiKey.SHARE_ACKNOWLEDGE, ACKNOWLEDGE_VERSION, request, answered
        )
