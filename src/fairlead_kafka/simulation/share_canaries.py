"""Bugs to plant in share groups; see `canaries`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.hooks import Method
from fairlead_kafka.broker.share_groups import (
    FIRST_EPOCH,
    NO_OFFSET,
    RecordEvent,
    RecordState,
    SessionKey,
    ShareSessions,
    ShareState,
    Window,
)
from fairlead_kafka.simulation.canary import Canary


def _doing_nothing(_: Method) -> Method:
    return lambda *arguments: None


def _always(_: Method) -> Method:
    return lambda *arguments: True


def _beginning_with_the_first(_: Method) -> Method:
    return lambda records, shard: FIRST_EPOCH


def _taking_late_acknowledgements(check: Method) -> Method:
    """Plant: an acknowledgement counts also if its member's lock has ended, and no member or
    another one has the record now."""

    def planted(window: Window, member: str, first: int, last: int) -> None:
        for run in window._between(max(first, window.start), min(last, window.end)):
            late = run.now.state in (RecordState.AVAILABLE, RecordState.ACQUIRED) and run.now.deliveries > 0
            if late and run.change is None:
                run.now = run.now._replace(state=RecordState.ACQUIRED, member=member)
        check(window, member, first, last)

    return planted


def _forgetting_deliveries(change: Method) -> Method:
    def planted(window: object, run: object, written: object, event: RecordEvent, limits: object) -> None:
        change(window, run, written, event, limits)
        if event is RecordEvent.RELEASE:
            run.now = run.now._replace(deliveries=0)  # type: ignore[attr-defined]

    return planted


def _not_checking_session_epochs(of: Method) -> Method:
    def planted(sessions: ShareSessions, key: SessionKey, epoch: int) -> object:
        session = sessions._sessions.get(key)
        return of(sessions, key, epoch if session is None or epoch < 0 else session.epoch)

    return planted


def _answering_states_at_once(write: Method) -> Method:
    def planted(
        log: object, shard: object, entries: Sequence[object], written: Callable[[int], None]
    ) -> None:
        write(log, shard, entries, lambda _error: None)
        written(ErrorCode.NONE)

    return planted


def _beginning_again(read: Method) -> Method:
    def planted(share: object, error: int, state: ShareState | None) -> None:
        lost = None if state is None else state._replace(start_offset=NO_OFFSET, batches=())
        read(share, error, lost)

    return planted


SHARE_CANARIES = (
    Canary(
        "a lock of a share group does not expire",
        "cluster",
        "share groups: locks may be over",
        _doing_nothing,
        first_seed=15,
    ),
    Canary(
        "an acknowledgement is taken though the lock is over",
        "cluster",
        "share groups: may this member acknowledge",
        _taking_late_acknowledgements,
        first_seed=28,
    ),
    Canary(
        "the epoch of a share session is not checked",
        "cluster",
        "share sessions: is this the next request",
        _not_checking_session_epochs,
        first_seed=15,
    ),
    Canary(
        "a release forgets how often a record was delivered",
        "cluster",
        "share groups: what is said of records is done",
        _forgetting_deliveries,
        first_seed=15,
    ),
    Canary(
        "the state of a share partition is acknowledged before it is replicated",
        "cluster",
        "share state: entries are told once they are committed",
        _answering_states_at_once,
        first_seed=34,
    ),
    Canary(
        "the state of a share partition is lost when its leader moves",
        "cluster",
        "share groups: a new leader takes up the state that there was",
        _beginning_again,
        first_seed=15,
    ),
    Canary(
        "a late deletion forgets the state of the next share group",
        "cluster",
        "share state: a deletion is not older than the state",
        _always,
        first_seed=28,
    ),
    Canary(
        "the next share group of a name has the epochs of the one before",
        "cluster",
        "share groups: no epoch comes again",
        _beginning_with_the_first,
        first_seed=34,
    ),
)
"""Planted bugs of share groups."""
