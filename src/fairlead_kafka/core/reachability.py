"""Problems with brokers, as texts for log lines, time-outs and progress.

An address is in trouble from its first failure until a connection to it is usable again. It is
logged at once, again after 2, 4, 8 ... 60 s while it lasts, and when it is over; if the trouble
returns within a minute, these intervals continue. A connection or an answer that takes too long is
logged too, so that a broker that drops packets is noticed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import NS_PER_S, ms_to_ns
from fairlead_kafka.core.connection import NEVER_NS, Connection, State
from fairlead_kafka.core.peers import Peer
from fairlead_kafka.wire import ApiKey, PrivateApi

LOGGER = GuardedLogger("fairlead_kafka.network")
CONNECTING_LONG_MS = 800.0
"""Milliseconds after which a missing connection is worth a warning; new users get it soon."""
ANSWER_LONG_MS = 5_000.0
"""Milliseconds after which a missing answer is worth a warning: a fetch waits half a second, and a
slow disk a few."""
REPEAT_MS, REPEAT_MAX_MS = 2_000.0, 60_000.0
"""How long the log is silent about an address after its first line, and at most; it doubles with
each further line."""
REMEMBERED_MAX = 1_000
"""Addresses remembered; with more, those without news for two minutes are forgotten. As many are in
use as the cluster has."""
REPORTS_MAX = 10
"""Bound of `Trouble.reports`: enough doublings to reach the longest silence."""
NO_ANSWER = "no answer so far"


@dataclass(slots=True)
class Trouble:
    """An address that cannot be connected to, or has been silent for too long."""

    reason: str
    since_ns: int
    next_report_ns: int
    """When the log may speak of it again."""
    reports: int = 0
    connection: int | None = None
    """The number of the connection that is silent, of several to this address; None: there is
    none."""
    over_ns: int | None = None
    """When the address answered again; None: it is in trouble. What comes back within a minute is
    the same trouble."""
    worth_an_end: bool = False
    """True if the trouble was logged since it last began, so that its end is logged too."""


class Reachability:
    """The addresses that one client cannot reach, or that do not answer, and why; called from
    within its machine's step alone.

    `request_timeout_ms`: `request.timeout.ms`. A broker may hold a request that is given more for
    the difference (Fetch, JoinGroup). `quiet`: nothing is logged.
    """

    def __init__(self, client_id: str, request_timeout_ms: float, quiet: bool = False) -> None:
        self._name = f"{client_id}: " if client_id else ""
        self._request_timeout_ns = ms_to_ns(request_timeout_ms)
        self._quiet = quiet
        self._troubles: dict[str, Trouble] = {}
        self.reached = False
        """Some broker has answered a request at some time."""
        self.negotiated = False
        """Some broker has said what it speaks: `bootstrap.servers` lead to a Kafka."""

    # What happened

    def failed(self, peer: Peer, reason: str, now_ns: int, *, worked: bool, refused: bool = False) -> None:
        """Called when an attempt to connect failed, or (`worked`) a connection was lost. A loss
        alone is no warning, but an event (`event_log`): the next attempt shows whether it was
        more. `refused`: by TLS or the log-in, whose reason says what to do."""
        known = self._in_trouble(peer.address)
        trouble = self._begin(peer, reason, now_ns, now_ns)
        trouble.connection = None
        if not worked or known:
            self._warn(trouble, now_ns, f"no connection to {peer}", self._again(refused))

    def late(self, peer: Peer, connection: Connection, now_ns: int) -> None:
        """Note that nothing has come from this peer for a while. The peer counts as unreachable
        once `late_ns` is reached."""
        if now_ns < self.late_ns(peer, connection):
            return
        since_ns, reason = _awaited(connection)
        trouble = self._begin(peer, reason, since_ns, now_ns)
        trouble.connection = connection.number
        if connection.state is State.READY:
            self._warn(trouble, now_ns, f"no answer from {peer}", "")
        else:
            self._warn(trouble, now_ns, f"no connection to {peer}", self._again())

    def _again(self, refused: bool = False) -> str:
        """The end of a line about a missing connection. A wrong address is likely only until some
        broker was reached."""
        return "; trying again" if self.negotiated or refused else "; trying again: check bootstrap.servers"

    def late_ns(self, peer: Peer, connection: Connection) -> int:
        """Monotonic time, ns, at which `late` has to be called for the peer; NEVER_NS if no answer
        is awaited from the peer."""
        if self._quiet or (connection.state is State.READY and not connection.in_flight):
            return NEVER_NS
        since_ns, _ = _awaited(connection)
        trouble = self._troubles.get(peer.address) if self._troubles else None
        return max(since_ns + self._patience_ns(connection), 0 if trouble is None else trouble.next_report_ns)

    def usable(self, peer: Peer, now_ns: int) -> None:
        """Note that a connection to this peer can be used. (Only the first answer shows whether
        brokers serve this client at all.)"""
        if self.reached:
            self._over(peer, now_ns, None)

    def answered(self, peer: Peer, now_ns: int, connection: Connection) -> None:
        """Note that a peer has answered a request on `connection`."""
        self.reached = True
        self._over(peer, now_ns, connection)

    def forget_old(self, now_ns: int) -> None:
        """Forget addresses without news for two minutes, if there are more than REMEMBERED_MAX."""
        if len(self._troubles) > REMEMBERED_MAX:
            old_ns = now_ns - 2 * ms_to_ns(REPEAT_MAX_MS)
            self._troubles = {
                address: each
                for address, each in self._troubles.items()
                if max(each.next_report_ns, each.over_ns or 0) > old_ns
            }

    # What is wrong

    def reason(self, peer: Peer) -> str:
        """Why this peer cannot be reached, in words, as far as is known."""
        return self._troubles[peer.address].reason if self._in_trouble(peer.address) else NO_ANSWER

    def trouble(self, peers: Iterable[Peer]) -> str:
        """Trouble with these peers: "could not reach any of a:9092, b:9092 (connection refused)".

        Empty if there is none.
        """
        by_address: dict[str, Peer] = {}
        for peer in peers:
            if peer.address not in by_address or peer.connected:
                by_address[peer.address] = peer
        unreached: dict[str, list[str]] = {}
        silent: list[str] = []
        for address, peer in by_address.items():
            if peer.connected:
                silent += [f"{peer} is silent ({self.reason(peer)})"] if self._in_trouble(address) else []
            elif self._in_trouble(address) or peer.connection is not None:
                unreached.setdefault(self.reason(peer), []).append(address)
        described = [f"{', '.join(addresses)} ({reason})" for reason, addresses in unreached.items()]
        if not described and not self.reached:
            described = [f"{', '.join(by_address)} ({NO_ANSWER})"]
        if not described:
            return "; ".join(silent)
        none = not any(peer.connected for peer in by_address.values())
        return "; ".join([f"could not reach {'any of ' if none else ''}{', '.join(described)}", *silent])

    # Inside

    def _over(self, peer: Peer, now_ns: int, connection: Connection | None) -> None:
        trouble = self._troubles.get(peer.address) if self._troubles else None
        if trouble is None or trouble.over_ns is not None:
            return
        if connection is not None and trouble.connection not in (None, connection.number):
            return  # another connection to it is the silent one
        trouble.over_ns = now_ns
        if trouble.worth_an_end:
            trouble.worth_an_end = False
            self._say(logging.INFO, f"{peer} answers again, after {_seconds(now_ns - trouble.since_ns)}")

    def _in_trouble(self, address: str) -> bool:
        trouble = self._troubles.get(address)
        return trouble is not None and trouble.over_ns is None

    def _begin(self, peer: Peer, reason: str, since_ns: int, now_ns: int) -> Trouble:
        """The Trouble of a peer's address, with `reason`: the one there is, also if it was over a
        moment ago, or a new one."""
        trouble = self._troubles.get(peer.address)
        if trouble is None or (
            trouble.over_ns is not None and now_ns - trouble.over_ns > ms_to_ns(REPEAT_MAX_MS)
        ):
            trouble = self._troubles[peer.address] = Trouble(reason, since_ns, now_ns)
        elif trouble.over_ns is not None:
            trouble.since_ns, trouble.over_ns = since_ns, None
        trouble.reason = reason
        return trouble

    def _patience_ns(self, connection: Connection) -> int:
        if connection.state is not State.READY:
            return ms_to_ns(CONNECTING_LONG_MS)
        return ms_to_ns(ANSWER_LONG_MS) + max(
            connection.in_flight[0].timeout_ns - self._request_timeout_ns, 0
        )

    def _warn(self, trouble: Trouble, now_ns: int, what: str, then: str) -> None:
        if now_ns < trouble.next_report_ns:
            return
        lasting = f" for {_seconds(now_ns - trouble.since_ns)}" if trouble.worth_an_end else ""
        trouble.worth_an_end = True
        trouble.next_report_ns = now_ns + ms_to_ns(min(REPEAT_MS * 2**trouble.reports, REPEAT_MAX_MS))
        trouble.reports = min(trouble.reports + 1, REPORTS_MAX)
        self._say(logging.WARNING, f"{what}{lasting} ({trouble.reason}){then}")

    def _say(self, level: int, text: str) -> None:
        if not self._quiet:
            LOGGER.log(level, "%s%s", self._name, text)


def _awaited(connection: Connection) -> tuple[int, str]:
    """Since when (monotonic, ns) something is awaited on this connection, and what, in words."""
    if connection.state is State.CONNECTING:
        return connection.used_ns, NO_ANSWER
    if connection.state is not State.READY:
        return connection.used_ns, _unusable(connection)
    request = connection.in_flight[0]
    return max(
        request.deadline_ns - request.timeout_ns, connection.heard_ns
    ), f"{request.api_key.name} is not answered"


def unanswered(connection: Connection, api_key: ApiKey | PrivateApi, waited_ms: float) -> str:
    """Why a connection is given up on which a request was not answered within `waited_ms`: a log
    line's words and an error's."""
    within = f"within {waited_ms:.0f} ms"
    usable = connection.state in (State.READY, State.REAUTHENTICATING)
    return f"no answer to {api_key.name} {within}" if usable else _unusable(connection, f" {within}")


def _unusable(connection: Connection, within: str = "") -> str:
    """Why a connection is not ready yet, or no longer, in words."""
    if connection.state in (State.AUTHENTICATING, State.REAUTHENTICATING):
        if not connection.in_flight:  # it is the host's turn (`effects.Authenticate`)
            return f"connected, but this client has no token or ticket to log in with{within or ' so far'}"
        return f"connected, but the log-in is not answered{within}"
    return f"connected, but ApiVersions is not answered{within}: is this a Kafka broker?"


def _seconds(duration_ns: int) -> str:
    return f"{duration_ns / NS_PER_S:.0f} s"
