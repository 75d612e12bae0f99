"""Fenced producers: each sends a request after another one took over its transactional id, and no
such request may be served.

A process that hangs for a while, or a request that the network kept for too long, looks like this
to the brokers. Each fenced producer sends EndTxn to every broker; the transaction that it would end
is its successor's.

A broker that does not know yet that another one coordinates may answer that the last committed
transaction is committed, as in Kafka: it answers from memory, and can commit nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.producer.identity import Identity
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.committer import Asker
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import EndTxnRequest, EndTxnResponse

END_VERSION = 3


class FormerLives:
    """Sends requests in the name of producers that were fenced. `violated` is called for each
    request that a coordinator served. `coordinator(transactional id)` gives the coordinator's
    address, as the controller knows it; None: there is none."""

    def __init__(
        self,
        host: VirtualHost,
        addresses: Sequence[str],
        coordinator: Callable[[str], str | None],
        violated: Callable[[str], None],
    ) -> None:
        self._addresses = addresses
        self._coordinator = coordinator
        self._violated = violated
        self._asker = Asker(host)
        self.refused = 0
        """Commits that a broker refused because the producer was fenced."""

    def commit(self, transactional_id: str, former: Identity) -> None:
        """End the open transaction of `transactional_id`, as `former` would."""
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=former.producer_id,
            producer_epoch=former.epoch,
            committed=True,
        )
        coordinator = self._coordinator(transactional_id)
        for address in self._addresses:
            known = address if address == coordinator else None
            answered = partial(self._answered, transactional_id, former, known)
            self._asker.ask(address, ApiKey.END_TXN, END_VERSION, request, answered)

    def _answered(
        self, transactional_id: str, former: Identity, known: str | None, answer: EndTxnResponse | None
    ) -> None:
        if answer is None:
            return
        self.refused += answer.error_code == ErrorCode.PRODUCER_FENCED
        coordinates = known is not None and known == self._coordinator(transactional_id)
        if not answer.error_code and coordinates:
            who = f"producer {former.producer_id} of epoch {former.epoch}"
            self._violated(
                f"{who} committed a transaction of {transactional_id!r}, which another one had taken over"
            )
