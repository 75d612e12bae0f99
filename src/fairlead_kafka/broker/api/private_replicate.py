"""Replicate, a private API: what a follower asks its leader on their replication stream (`broker.replication`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.broker.dispatch import Reply, serves_privately
from fairlead_kafka.wire import PrivateApi, Request

if TYPE_CHECKING:
    from fairlead_kafka.broker.machine import Broker
    from fairlead_kafka.broker.sessions import Session


@serves_privately(PrivateApi.REPLICATE)
def replicate(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """A follower's pull or nudge."""
    broker.replication.pull(request, session, reply)
