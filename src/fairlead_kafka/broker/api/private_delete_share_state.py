"""DeleteShareState, a private API: the group coordinator has the share coordinator forget the state
of a share partition, if it is not of a later state epoch.

Kafka's own DeleteShareGroupState (86) names no epoch: one that comes late forgets the state of the
next group of that name. It is answered at the listener by which brokers reach each other, and needs
CLUSTER_ACTION on the cluster. The connection of anybody else is closed.
"""

from __future__ import annotations

from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.broker.api.rights import speaks_for_a_broker
from fairlead_kafka.broker.dispatch import serves_privately
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import decode_deletion, encode_deleted
from fairlead_kafka.wire import Message, PrivateApi, Request


@serves_privately(PrivateApi.DELETE_SHARE_STATE)
def delete_share_state(broker: Services, request: Request[Message], session: Requester, reply: Reply) -> None:
    """Serve DeleteShareState: forget the state of one share partition."""
    if not speaks_for_a_broker(broker, session):
        return

    def done(error: int) -> None:
        reply(Message(body=[encode_deleted(error)]))

    try:
        key, state_epoch = decode_deletion(bytes(request.message.body))
        broker.share_coordinator.delete(key, state_epoch, done)
    except DecodeError as error:
        session.close(f"no deletion of share state: {error}")
    except BrokerError as error:
        done(error.code)
