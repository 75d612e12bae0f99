"""What the checks of groups say of ledgers made by hand: each rule, broken once."""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.simulation.group_checks import check_group, check_log, check_output
from fairlead_kafka.simulation.group_ledger import (
    OPEN_NS,
    Claim,
    CommitResult,
    Given,
    GroupLedger,
    Session,
    label_of,
)
from fairlead_kafka.simulation.group_story import SHARE, draw_groups
from fairlead_kafka.simulation.processor import output_of

PLACE = ("orders", 0)
MS = 1_000_000


class History:
    """A ledger, and short ways to write into it; times in ms."""

    def __init__(self) -> None:
        self.ledger = GroupLedger("g", ["orders"], True, 400)
        self.ledger.final[PLACE] = -1

    def claim(
        self, process: int, begun: float, *offsets: int, until: float | None = None, base: int = 0
    ) -> Claim:
        ended_ns = OPEN_NS if until is None else int(until * MS)
        claim = Claim(PLACE, Session(process, f"m{process}", 0), process, int(begun * MS), ended_ns)
        claim.base = base
        claim.runs[0] += [Given(offset, int((begun + 1) * MS)) for offset in offsets]
        self.ledger.claims.append(claim)
        return claim

    def commit(
        self, claim: Claim, offset: int, asked: float, answered: float, error: Exception | None = None
    ) -> CommitResult:
        label = label_of("g", claim.session.process, len(self.ledger.commits))
        commit = CommitResult(
            claim, claim.session, claim.epoch, offset, label, int(asked * MS), int(answered * MS)
        )
        commit.error = error
        self.ledger.commits.append(commit)
        if error is None:
            self.ledger.final[PLACE] = offset
        return commit

    def errors(self, *visible: int) -> str:
        return "\n".join(check_group(self.ledger, {PLACE: visible}, ["orders"]))


def test_a_group_that_read_everything_and_gave_up_its_partition_is_in_order() -> None:
    history = History()
    first = history.claim(1, 0, 0, 1, 2, until=100)
    history.commit(first, 2, 10, 11)
    second = history.claim(2, 110, 2, 3, base=2)
    history.commit(second, 4, 120, 121)
    assert history.errors(0, 1, 2, 3) == ""


def test_a_record_that_nobody_was_given_and_one_that_is_not_there() -> None:
    history = History()
    history.claim(1, 0, 0, 2, 5)
    found = history.errors(0, 1, 2)
    assert "1 records of orders-0 were given to no member, first 1" in found
    assert "records of orders-0 were given that are not there, first 5" in found


def test_a_commit_beyond_what_was_given() -> None:
    history = History()
    claim = history.claim(1, 5, 0, 1)
    history.commit(claim, 2, 3, 4)
    assert "before record 0 was given to anybody" in history.errors(0, 1)


def test_a_record_given_twice_to_one_owner() -> None:
    history = History()
    claim = history.claim(1, 0, 0, 1, 1)
    assert "it was given 1 after 1" in history.errors(0, 1)
    claim.runs.append([claim.runs[0].pop()])  # its transaction was aborted, and it went back
    assert history.errors(0, 1) == ""


def test_an_owner_that_begins_before_what_was_committed() -> None:
    history = History()
    first = history.claim(1, 0, 0, 1, 2, until=50)
    history.commit(first, 3, 10, 11)
    history.claim(2, 60, 1, 2, base=1)
    assert "it began at 1, after the commit of 3" in history.errors(0, 1, 2)


def test_a_commit_that_was_asked_for_again_may_arrive_late() -> None:
    history = History()
    first = history.claim(1, 0, 0, 1, 2, until=1_500)
    history.commit(first, 1, 10, 10 + 400)
    history.commit(first, 3, 1_000, 1_001)
    history.claim(2, 1_600, 1, 2, base=1)
    assert history.errors(0, 1, 2) == ""


def test_the_committed_offset_in_the_end() -> None:
    history = History()
    claim = history.claim(1, 0, 0, 1)
    history.commit(claim, 2, 10, 11)
    history.ledger.final[PLACE] = 1
    found = history.errors(0, 1)
    assert "orders-0 has offset 1 in the end, after the commit of 2" in found
    assert "orders-0 has offset 1 in the end, which nobody committed" in found
    history.ledger.final[PLACE] = None
    assert "the committed offset of orders-0 could not be read" in history.errors(0, 1)


def test_two_owners_at_once_both_of_whom_the_group_takes_for_members() -> None:
    history = History()
    first, second = history.claim(1, 0, 0, until=200), history.claim(2, 100, 0, 1)
    history.commit(second, 1, 150, 151)
    assert history.errors(0, 1) == "", "the first has hung since, as far as is known"
    refused = BrokerError(ErrorCode.STALE_MEMBER_EPOCH, "commit")
    history.commit(first, 1, 160, 161, refused)
    assert history.errors(0, 1) == ""
    history.commit(first, 1, 170, 171)
    assert "yet the commit of 1 for orders-0 by process 1" in history.errors(0, 1)


def test_an_assignment_that_is_heard_of_when_it_is_long_past_is_no_claim() -> None:
    history = History()
    owner = history.claim(1, 0, 0, 1)
    history.claim(2, 50, 0, 1, until=60)
    history.commit(owner, 2, 100, 101)
    assert history.errors(0, 1) == ""


def test_a_commit_that_the_log_lacks() -> None:
    history = History()
    commit = history.commit(history.claim(1, 0, 0), 1, 10, 11)
    assert check_log(history.ledger, {commit.label}) == []
    assert "was acknowledged, and the log lacks it" in check_log(history.ledger, set())[0]


def test_the_output_has_each_record_once() -> None:
    history = History()
    history.ledger.output = "out"
    written: list[bytes | None] = [output_of(PLACE, offset) for offset in (0, 1, 1, 7)]
    found = check_output(history.ledger, {PLACE: [0, 1, 2]}, {("out", 0): written}, {("out", 0): range(4)})
    assert found == [
        "group g: b'orders/0/1' is 2 times in the output",
        "group g: b'orders/0/7' is in the output, and was not to be read",
        "group g: b'orders/0/2' is not in the output",
    ]


def test_stories_are_drawn_by_seed_and_have_all_kinds() -> None:
    stories = [draw_groups(seed, 2_000.0, 3, ("orders", "clicks")) for seed in range(300)]
    assert str(stories[7]) == str(draw_groups(7, 2_000.0, 3, ("orders", "clicks")))
    groups = [group for story in stories if story is not None for group in story.groups]
    assert abs(sum(story is not None for story in stories) / 300 - SHARE) < 0.1
    kinds = {happening.kind for group in groups for seat in group.seats for happening in seat.happenings}
    assert kinds == {"kill", "close", "nap", "hang", "cut", "subscribe", "retire", "roll"}
    assert {group.protocols for group in groups} == {
        ("classic", "classic"),
        ("consumer", "consumer"),
        ("classic", "consumer"),
        ("consumer", "classic"),
    }
    assert {(group.static, group.processes) for group in groups} == {
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    }
    assert all("retire" not in {one.kind for one in group.seats[0].happenings} for group in groups)
