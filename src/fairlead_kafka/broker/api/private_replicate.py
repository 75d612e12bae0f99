"""Replicate, a private API: what a follower asks its leader on their replication stream
(`broker.replication`).

It is answered at the listener by which brokers reach each other, and needs CLUSTER_ACTION on the
cluster: brokers are super users, or have it. The connection of anybody else is closed.
"""

from __future__ import annotations

from fairlead_kafka.broker.api.rights import speaks_for_a_broker
from fairlead_kafka.broker.dispatch import serves_privately
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import Message, PrivateApi, Request


@serves_privately(PrivateApi.REPLICATE)
def replicate(broker: Services, request: Request[Message], session: Requester, reply: Reply) -> None:
    """Serve Replicate: have the replication serve a follower's request on its stream. A session of
    anybody else is closed."""
    if speaks_for_a_broker(broker, session):
        broker.replication.pull(request, session, reply)
