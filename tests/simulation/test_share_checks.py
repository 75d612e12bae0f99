"""What the checks of share groups say of ledgers made by hand: each rule, broken once."""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConnectionFailed
from fairlead_kafka.consumer.share import AcknowledgeType
from fairlead_kafka.simulation.share_checks import check_contents, check_share_group
from fairlead_kafka.simulation.share_ledger import (
    Acquisition,
    Connected,
    GivenRecord,
    Said,
    ShareLedger,
    Tenure,
)
from fairlead_kafka.simulation.share_story import SHARE, draw_shares

PLACE = ("orders", 0)
MS = 1_000_000
LOCK = 1_000
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
FIRST, SECOND = Tenure(0, 1, 0), Tenure(1, 1, 1)


class History:
    """A ledger, and short ways to write into it; times in ms."""

    def __init__(self) -> None:
        self.ledger = ShareLedger("g", ["orders"], False, 3, LOCK * MS)

    def given(
        self, member: str, at: int, deliveries: int = 1, offset: int = 0, tenure: Tenure = FIRST
    ) -> Acquisition:
        one = Acquisition(at * MS, (at + LOCK) * MS, member, offset, offset, deliveries, tenure)
        self.ledger.acquired(PLACE, one)
        return one

    def said(
        self,
        kind: AcknowledgeType,
        acquisition: Acquisition,
        asked: int,
        answered: int,
        error: Exception | None = None,
    ) -> None:
        said = Said(1, PLACE, acquisition.first, kind, acquisition, asked * MS, answered * MS, error)
        self.ledger.said.append(said)

    def connected(self, member: str, since: int, until: int) -> None:
        sessions = self.ledger.sessions.setdefault(member, {})
        sessions[0, len(sessions)] = Connected(since * MS, until * MS, 5, False, until * MS)

    def errors(self, *visible: int, start: int = 0) -> str:
        held = {PLACE: dict.fromkeys(visible, b"")}
        return "\n".join(check_share_group(self.ledger, held, {PLACE: visible}, {PLACE: start}, ["orders"]))


def refused() -> BrokerError:
    return BrokerError(ErrorCode.INVALID_RECORD_STATE, "not with this member")


def test_a_record_that_was_released_and_accepted_then_is_in_order() -> None:
    history = History()
    history.said(RELEASE, history.given("a", 0), 10, 20)
    history.said(ACCEPT, history.given("b", 30, deliveries=2), 40, 50)
    assert history.errors(0) == ""


def test_a_record_that_was_accepted_is_not_given_again() -> None:
    history = History()
    history.said(ACCEPT, history.given("a", 0), 10, 20)
    history.given("b", 30, deliveries=2, tenure=SECOND)
    assert "orders-0/0: delivery 2 at 30.0 ms" in history.errors(0)


def test_a_broker_that_was_deposed_may_give_it_again() -> None:
    history = History()
    history.said(ACCEPT, history.given("a", 0, tenure=SECOND), 10, 20)
    history.given("b", 30, deliveries=2, tenure=FIRST)
    assert history.errors(0) == ""


def test_an_acknowledgement_of_a_lock_that_was_over_is_not_taken() -> None:
    history = History()
    late = history.given("a", 0)
    history.said(ACCEPT, late, 1_500, 1_510)
    assert "the lock was over at 1000.0 ms, yet it took the ACCEPT" in history.errors(0)
    assert history.errors() == ""  # the record was compacted away meanwhile


def test_one_of_a_record_that_is_done_with_meanwhile_is_no_error() -> None:
    history = History()
    late = history.given("a", 0)
    history.said(ACCEPT, history.given("b", 1_100, deliveries=2), 1_200, 1_210)
    history.said(REJECT, late, 1_500, 1_510)
    assert history.errors(0) == ""


def test_two_that_are_late_do_not_excuse_each_other() -> None:
    history = History()
    first, second = history.given("a", 0), history.given("b", 1_100, deliveries=2)
    history.said(ACCEPT, first, 2_500, 2_510)
    history.said(ACCEPT, second, 2_500, 2_510)
    assert "yet it took the ACCEPT" in history.errors(0)


def test_a_renewed_lock_is_over_later() -> None:
    history = History()
    renewed = history.given("a", 0)
    history.connected("a", 0, 5_000)
    history.said(RENEW, renewed, 500, 600)
    history.said(ACCEPT, renewed, 1_400, 1_410)
    assert history.errors(0) == ""


def test_a_record_has_one_lock_at_a_time() -> None:
    history = History()
    history.given("a", 0)
    history.given("b", 900, deliveries=2)
    history.said(ACCEPT, history.given("a", 2_000, deliveries=3), 2_010, 2_020)
    assert history.errors(0) == ""  # the session of member a may have ended
    history.connected("a", 0, 950)
    assert "delivery 2 at 900.0 ms" in history.errors(0)
    assert "while it was locked: delivery 1" in history.errors(0)


def test_a_lock_that_was_renewed_is_one() -> None:
    history = History()
    renewed = history.given("a", 0)
    history.connected("a", 0, 5_000)
    history.said(RENEW, renewed, 500, 600)
    history.said(ACCEPT, history.given("b", 1_200, deliveries=2), 1_210, 1_220)
    assert "while it was locked" in history.errors(0)


def test_a_delivery_after_a_release_counts_one_more() -> None:
    history = History()
    history.said(RELEASE, history.given("a", 0), 10, 20)
    history.said(ACCEPT, history.given("b", 30, tenure=SECOND), 40, 50)
    assert "delivery 1 at 30.0 ms" in history.errors(0)


def test_no_record_is_delivered_more_often_than_the_limit_says() -> None:
    history = History()
    history.said(ACCEPT, history.given("a", 0, deliveries=4), 10, 20)
    assert "delivery 4 at 0.0 ms" in history.errors(0)
    assert "though 3 are the limit" in history.errors(0)


def test_each_record_is_settled_in_the_end() -> None:
    history = History()
    history.said(ACCEPT, history.given("a", 0, offset=1), 10, 20, refused())
    assert "2 records of orders-0 were never accepted" in history.errors(0, 1)
    assert history.errors(0, 1, start=2) == ""
    history.said(ACCEPT, history.given("a", 30, offset=0), 40, 50, ConnectionFailed("no answer"))
    history.given("b", 60, deliveries=3, offset=1)
    assert history.errors(0, 1) == ""


def test_members_are_given_what_is_in_the_log() -> None:
    ledger = ShareLedger("g", ["orders", "jobs"], True, 3, LOCK * MS)
    ledger.given = [
        GivenRecord(PLACE, 0, b"a", 1),
        GivenRecord(PLACE, 1, b"x", 1),
        GivenRecord(PLACE, 2, b"c", 1),
        GivenRecord(PLACE, 3, b"d", 1),
        GivenRecord(("jobs", 0), 7, b"gone", 1),
    ]
    contents = {PLACE: {0: b"a", 1: b"b", 2: b"c"}, ("jobs", 0): {8: b"h"}}
    visible = {PLACE: [0, 1], ("jobs", 0): [8]}
    found = check_contents(ledger, contents, visible, ["jobs"], ["orders", "jobs"])
    assert [what.split(" was given ")[1] for what in found] == [
        "b'x' at orders-0/1, where b'b' is",
        "b'c' at orders-0/2, of a transaction that was aborted",
        "b'd' at orders-0/3, which is not there",
    ]


def test_three_worlds_of_ten_have_share_groups() -> None:
    topics = [("orders", "clicks")]
    drawn = [draw_shares(seed, 3_000.0, 3, topics) for seed in range(1_000)]
    assert abs(sum(one is not None for one in drawn) / len(drawn) - SHARE) < 0.05
    assert "share group workers-0: limit" in str(next(one for one in drawn if one is not None).groups[0])
