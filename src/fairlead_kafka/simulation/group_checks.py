"""Checks of groups: compare the answers that members got (`group_ledger`) with the log, once a
world is over.

- Every record that readers see was given to a member; so was everything before a committed offset,
  by the time that the commit was asked for.
- While a member holds a partition it is given each record once, in order.
- A member that is assigned a partition begins at what had been committed before, or later.
- What was committed stays so. A commit that was asked for again after request.timeout.ms may arrive
  late, and set back what the same claim has committed since, as in Kafka.
- Once a partition is assigned to a member, no commit of a former owner is taken; and no member that
  is in the group still holds it.
- A group that writes in transactions has one output record for each record read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.simulation.delivery_checks import Contents
from fairlead_kafka.simulation.group_ledger import OPEN_NS, Claim, CommitResult, GroupLedger, Place, Session
from fairlead_kafka.simulation.model_log import ModelLog, ModelPartition
from fairlead_kafka.simulation.processor import output_of

Visible = Mapping[Place, Sequence[int]]
"""Partition → offsets of the records that readers see, in order."""


def visible_offsets(log: ModelLog, committed_only: bool) -> dict[Place, list[int]]:
    """The offsets of each partition that a reader is given: of committed transactions and plain
    records, or of all."""
    return {(topic, index): _visible(partition, committed_only) for topic, index, partition in log.each()}


def _visible(partition: ModelPartition, committed_only: bool) -> list[int]:
    undecided: dict[int, list[int]] = defaultdict(list)
    seen: list[int] = []
    for batch in partition.batches:
        producer_id = batch.header.producer_id
        if batch.committed is not None:
            seen += undecided.pop(producer_id, []) if batch.committed else []
            undecided.pop(producer_id, None)
        elif batch.data is not None:
            offsets = list(range(batch.base_offset, batch.end_offset))
            if committed_only and batch.header.transactional:
                undecided[producer_id] += offsets
            else:
                seen += offsets
    return sorted(seen)


def check_group(ledger: GroupLedger, visible: Visible, durable: Sequence[str]) -> list[str]:
    """Every violation, as a text, in what one group's members were told; `durable`: topics that
    lost nothing."""
    found: list[str] = []
    for place, offsets in visible.items():
        if place[0] in ledger.topics and place[0] in durable:
            claims = [claim for claim in ledger.claims if claim.place == place]
            commits = [commit for commit in ledger.commits if commit.claim.place == place]
            found += _unread(place, claims, offsets)
            found += _skipped(claims, commits, offsets)
            found += [what for claim in claims for what in _within(claim)]
            found += _went_back(ledger, claims, commits)
            found += _final(ledger, place, commits)
    found += _shared(ledger)
    return [f"group {ledger.group}: {what}" for what in found]


def _unread(place: Place, claims: Sequence[Claim], offsets: Sequence[int]) -> Iterable[str]:
    given = {one.offset for claim in claims for run in claim.runs for one in run}
    missing = [offset for offset in offsets if offset not in given]
    if missing:
        yield f"{len(missing)} records of {place[0]}-{place[1]} were given to no member, first {missing[0]}"
    strange = given - set(offsets)
    if strange:
        yield f"records of {place[0]}-{place[1]} were given that are not there, first {min(strange)}"


def _skipped(
    claims: Sequence[Claim], commits: Sequence[CommitResult], offsets: Sequence[int]
) -> Iterable[str]:
    """Commits of offsets beyond records that no member had been given, as texts."""
    first_ns: dict[int, int] = {}
    for claim in claims:
        for run in claim.runs:
            for one in run:
                first_ns[one.offset] = min(one.at_ns, first_ns.get(one.offset, OPEN_NS))
    for commit in commits:
        early = [
            offset
            for offset in offsets
            if offset < commit.offset and first_ns.get(offset, OPEN_NS) > commit.asked_ns
        ]
        if early:
            yield f"{commit}, before record {early[0]} was given to anybody"


def _within(claim: Claim) -> Iterable[str]:
    for run in claim.runs:
        for one, after in pairwise(run):
            if after.offset <= one.offset:
                yield f"{claim}: it was given {after.offset} after {one.offset}"


def _floor(ledger: GroupLedger, commits: Sequence[CommitResult], before_ns: int) -> CommitResult | None:
    """The commit with the least offset that may be the committed one at `before_ns`; None: there
    may be no commit then."""
    done = [commit for commit in commits if commit.acknowledged and commit.answered_ns <= before_ns]
    if not done:
        return None
    last = max(done, key=lambda commit: commit.offset)
    late_ns = ms_to_ns(ledger.request_timeout_ms)
    again = [
        commit
        for commit in commits
        if commit.claim is last.claim
        and commit.asked_ns < last.asked_ns
        and commit.answered_ns - commit.asked_ns >= late_ns
    ]
    if ledger.mixed:
        again += [one for one in done if one.claim is not last.claim and one.answered_ns > last.asked_ns]
    return min([last, *again], key=lambda commit: commit.offset)


def _went_back(
    ledger: GroupLedger, claims: Sequence[Claim], commits: Sequence[CommitResult]
) -> Iterable[str]:
    for claim in claims:
        floor = _floor(ledger, commits, claim.begun_ns)
        if floor is not None and 0 <= claim.base < floor.offset:
            yield f"{claim}: it began at {claim.base}, after the {floor} was acknowledged"


def _final(ledger: GroupLedger, place: Place, commits: Sequence[CommitResult]) -> Iterable[str]:
    name, found = f"{place[0]}-{place[1]}", ledger.final.get(place)
    if found is None:
        yield f"the committed offset of {name} could not be read, though all is well"
        return
    floor = _floor(ledger, commits, OPEN_NS - 1)
    if floor is not None and found < floor.offset:
        yield f"{name} has offset {found} in the end, after the {floor} was acknowledged"
    if found >= 0 and found not in {commit.offset for commit in commits if not commit.never}:
        yield f"{name} has offset {found} in the end, which nobody committed"


def _shared(ledger: GroupLedger) -> Iterable[str]:
    """Partitions that two members had at once, as texts. A member that hung may learn of an
    assignment when that is long past; no commit of it is accepted then, and it does not count."""
    proofs: dict[Session, list[CommitResult]] = defaultdict(list)
    by_place: dict[Place, list[Claim]] = defaultdict(list)
    for commit in ledger.commits:
        if commit.acknowledged:
            proofs[commit.session].append(commit)
    for claim in ledger.claims:
        by_place[claim.place].append(claim)
    for claims in by_place.values():
        for claim in claims:
            for next_one in claims:
                overlap = claim.begun_ns < next_one.begun_ns < claim.ended_ns
                if overlap and ledger.is_proven(next_one):
                    yield from _proven(ledger, claim, next_one, proofs[claim.session])


def _proven(
    ledger: GroupLedger, claim: Claim, after: Claim, commits: Sequence[CommitResult]
) -> Iterable[str]:
    """Proofs, as texts, that the group still took the former owner of a partition for a member
    after another member had it.

    A member of the classic protocol in a group of both that was removed may join again under its
    id, as in Kafka. Until it takes its new assignment it commits for what it held: at an epoch
    behind the other's.
    """
    proofs = [
        one
        for one in commits
        if one.asked_ns > after.begun_ns and not (ledger.mixed and one.epoch > after.epoch)
    ]
    own = next((one for one in proofs if one.claim is claim), None)
    if own is not None:
        yield f"{after}: yet the {own} was taken, which had it before"
    elif proofs:
        yield f"{claim}, and at the same time {after}: both are in the group, for the {proofs[0]} was taken"


def check_log(ledger: GroupLedger, labels: Collection[str]) -> list[str]:
    """Commits that were acknowledged and are not in the log of `__consumer_offsets`; `labels`: the
    metadata of the commits in that log."""
    lost = [commit for commit in ledger.commits if commit.acknowledged and commit.label not in labels]
    return [f"group {ledger.group}: the {commit} was acknowledged, and the log lacks it" for commit in lost]


def check_output(ledger: GroupLedger, visible: Visible, outputs: Contents, seen: Visible) -> list[str]:
    """Errors in the output topic of a group that writes in transactions; `seen`: offsets of the
    outputs that readers see.
    """
    written = Counter(
        outputs[place][offset]
        for place, offsets in seen.items()
        if place[0] == ledger.output
        for offset in offsets
    )
    wanted = {
        output_of(place, offset)
        for place, offsets in visible.items()
        if place[0] in ledger.topics
        for offset in offsets
    }
    found = [f"{key!r} is {count} times in the output" for key, count in written.items() if count > 1]
    found += [f"{key!r} is in the output, and was not to be read" for key in written if key not in wanted]
    found += [f"{key!r} is not in the output" for key in sorted(wanted) if key not in written]
    return [f"group {ledger.group}: {what}" for what in found]
