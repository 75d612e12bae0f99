"""Former owners of partitions: each commits an offset after another member took over, and no such
commit may be accepted.

A process that hangs for a while, or a request that the network kept for too long, looks like this
to the coordinator. The request has a member's id with the generation or epoch at which it owned the
partition, which has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fairlead_kafka.core.group_offsets import OffsetAndMetadata, offset_rows
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Asker
from fairlead_kafka.simulation.group_ledger import OPEN_NS, Claim, GroupLedger, partition_of
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import OffsetCommitRequest, OffsetCommitResponse

COMMIT_VERSION = 9
"""Version of OffsetCommit, the first with a member's epoch."""
SHARE = 0.6
"""Share of takeovers after which the former owner commits."""
DELAY_MS = 200.0
"""Most milliseconds between a takeover and that commit."""


class FormerMembers:
    """Sends commits in the name of members that owned a partition before, and keeps those that a
    broker accepted."""

    def __init__(
        self,
        host: VirtualHost,
        script: Script,
        addresses: Sequence[str],
        rng: Random,
    ) -> None:
        self._script = script
        self._addresses = addresses
        self._rng = rng
        self._asker = Asker(host)
        self.refused = 0
        """Commits that a broker refused."""
        self._taken: list[tuple[GroupLedger, Claim, Claim]] = []

    def claimed(self, ledger: GroupLedger, claim: Claim) -> None:
        """Called when a member was assigned a partition: sometimes have its former owner commit,
        some time later."""
        former = next(
            (
                one
                for one in reversed(ledger.claims)
                if one.place == claim.place
                and one.session.process != claim.session.process
                and one.ended_ns != OPEN_NS
                and one.subscribed
            ),
            None,
        )
        if former is not None and self._rng.random() < SHARE:
            self._script.after(self._rng.random() * DELAY_MS, self._commit, ledger, former, claim)

    def _commit(self, ledger: GroupLedger, former: Claim, claim: Claim) -> None:
        again = any(
            one.place == former.place and one.session.process == former.session.process
            for one in ledger.claims
            if one.begun_ns > former.begun_ns
        )
        if claim.ended_ns != OPEN_NS or again:
            return
        offsets = {partition_of(former.place): OffsetAndMetadata(max(former.base, 0), "of a former owner")}
        request = OffsetCommitRequest(
            group_id=ledger.group,
            generation_id_or_member_epoch=former.epoch,
            member_id=former.session.member_id,
            group_instance_id=None,
            retention_time_ms=-1,
            topics=offset_rows(offsets),
        )
        for address in self._addresses:
            self._asker.ask(
                address,
                ApiKey.OFFSET_COMMIT,
                COMMIT_VERSION,
                request,
                lambda answer: self._completed(ledger, former, claim, answer),
            )

    def _completed(
        self, ledger: GroupLedger, former: Claim, claim: Claim, answer: OffsetCommitResponse | None
    ) -> None:
        code = -1 if answer is None else answer.topics[0].partitions[0].error_code
        self.refused += code > 0
        if not code:
            self._taken.append((ledger, former, claim))

    def violations(self) -> list[str]:
        """Commits of former owners that a broker accepted, as texts. (A member that hung may learn
        of its assignment when that is long past; then no other owner was there.)"""
        return [
            f"group {ledger.group}: a commit for {former} was taken, though now it is {claim}"
            for ledger, former, claim in self._taken
            if ledger.is_proven(claim)
        ]
