"""Ctrl-C all over a share consumer's calls: nothing is accepted that nobody has seen,
and nothing waits until its lock ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlead_kafka.client.share_consumer import ShareConsumer
from fairlead_kafka.consumer.share import UNDECIDED, AcknowledgeType
from tests.support.fake_share_group import DONE, GROUP
from tests.support.interrupting import Interrupting
from tests.support.share_rig import T0, Sharing

ACCEPT, RENEW = AcknowledgeType.ACCEPT, AcknowledgeType.RENEW
Seen = list[int]
AFTER_MAX = 40
"""Bytecodes after records are handed out, until the application has them."""
AT_MOST = 25
"""Interrupts of one consumer; the group looks through all the records it ever had."""


class Sharer:
    """A member of a share group, and the records that its application has seen."""

    def __init__(self, mode: str) -> None:
        rig = self.rig = Sharing()
        config = rig.config(group_id=GROUP, retry_backoff_ms=10, share_acknowledgement_mode=mode)
        self.explicit = mode == "explicit"
        self.member = ShareConsumer(config, opener=rig.opener)
        self.member.subscribe(["t"])
        self.member.set_acknowledgement_commit_callback(self.tell)
        self.seen: set[int] = set()
        self.told: set[int] = set()
        self.end = 10
        self.settle()

    def tell(self, offsets: Any, error: Exception | None) -> None:
        assert error is None
        self.told.update(offsets[T0])

    def write(self) -> None:
        """Write two records."""
        self.rig.cluster.write("t", 0, [b"x", b"y"])
        self.end += 2

    def see(self, seen: Seen, chosen: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Process records, and in explicit mode say so."""
        self.seen.update(seen)
        if self.explicit:
            for offset in seen:
                self.member.acknowledge_offset("t", 0, offset, chosen)

    def accepted(self) -> set[int]:
        """Offsets that the group has as processed."""
        return {offset for offset, lock in self.rig.group.locks[T0].items() if lock.state == DONE}

    def held(self) -> Seen:
        """Offsets of records that a poll handed out, undecided."""
        deliveries = self.member._calls._flight._deliveries
        return [int(of) for each in deliveries for of in each.offsets[each.types == UNDECIDED]]

    def settle(self) -> None:
        """Read and process all there is, before any lock ends; each record is accepted once."""
        until_ns = self.rig.host.now_ns() + 20 * 10**9
        everything = set(range(self.end))
        while self.rig.group.state(T0) != "d" * self.end:
            assert self.rig.host.now_ns() < until_ns
            self.see(poll(self.member))
            assert set(self.member.commit().values()) <= {None}
        assert self.seen == everything
        assert self.member.commit() == {}
        assert self.told == everything
        assert {count for _, count in self.rig.group.happened("accept")} == {1}


def poll(member: ShareConsumer) -> Seen:
    return [record.offset for record in member.poll(0.5)]


def poll_table(member: ShareConsumer) -> Seen:
    return member.poll_table(0.5, ["offset"])["offset"].to_pylist()  # type: ignore[no-any-return]


def commit(member: ShareConsumer) -> Seen:
    assert set(member.commit().values()) <= {None}
    return []


def commit_async(member: ShareConsumer) -> Seen:
    member.commit_async()
    return []


@pytest.mark.parametrize(
    ("mode", "call", "chosen", "step"),
    [
        ("implicit", poll, ACCEPT, 7),
        ("explicit", poll_table, ACCEPT, 7),
        ("explicit", poll, RENEW, 7),
        ("implicit", commit, ACCEPT, 3),
        ("explicit", commit_async, ACCEPT, 2),
    ],
)
def test_an_interrupt_anywhere_accepts_nothing_that_nobody_saw(
    mode: str, call: Callable[[ShareConsumer], Seen], chosen: AcknowledgeType, step: int
) -> None:
    at = after = rounds = 0
    raised = True
    while raised:  # until a call is over before that
        if rounds % AT_MOST == 0:
            sharer = Sharer(mode)
        rounds += 1
        at += step  # not 1, to save time: calls have most of their steps in common
        sharer.write()
        sharer.see(poll(sharer.member), chosen)  # which is to be sent
        sharer.write()
        interrupting = Interrupting(at)
        seen = interrupting(lambda sharer=sharer: call(sharer.member))
        raised = interrupting.raised
        if seen is None and interrupting.handing and call is not commit and (seen := sharer.held()):
            after += 1  # handed out, and not seen
        sharer.see(seen or [])
        assert sharer.accepted() <= sharer.seen
        sharer.settle()
    assert at > 100
    assert after <= AFTER_MAX


def test_what_a_cancelled_poll_was_given_is_told_by_the_next_commit() -> None:
    sharer = Sharer("explicit")
    sharer.write()
    sharer.see(poll(sharer.member))
    calls, host = sharer.member._calls, sharer.rig.host
    steps = calls.poll(0.8)
    next(steps)
    steps.close()
    host.advance(1_000)  # the machine's answer has come, with outcomes
    assert sharer.told < sharer.seen
    assert sharer.member.commit() == {T0: None}
    assert sharer.told == sharer.seen
    sharer.member.close()
