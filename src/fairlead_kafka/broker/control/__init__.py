"""The broker's way to the controller, in the same thread or in another process.

Theory of operation. A broker reads the cluster's image from a `ClusterView` and asks for changes by
`ClusterView.decide`, whose answer may come later. In one thread the view is the controller itself,
and the answer comes within the call. With a process for each broker the controller is served by a
machine in the launcher's (`server`), and each broker has a copy of the image (`link`):

    broker ──join──▶ server                    broker ◀──image: the folded log── server
    broker ──decide(number, decision)──▶ server ──▶ Controller.decide ──▶ line ──▶ to all brokers
    broker ◀──answer(number, result)── server  after the line: `done` is called when it is applied
    broker ──beat──▶ server ──beat──▶ broker   each ends after broker.session.timeout.ms without

The lines are the very bytes of the metadata log, folded by the very function that replays it. A
broker that was disconnected is sent the whole image again, and its listeners are informed of the
changes in between as if it had been connected (`catch_up`). `plain` writes decisions and results as
JSON, `frames` the protocol, `producer_ids` the block of producer ids that the controller gave this
broker.

A registration of a broker lasts from its `BrokerStarted` to the end of its connection; broker
epochs distinguish registrations. The server learns of a `kill -9` from the kernel, which closes the
connection, and of a broker that hangs or is cut off by its silence.
"""

from fairlead_kafka.broker.control.link import FIRST_CONNECTION, LinkState, RemoteController
from fairlead_kafka.broker.control.producer_ids import ProducerIds
from fairlead_kafka.broker.control.server import ControllerServer, Decide, OpenController

__all__ = [
    "FIRST_CONNECTION",
    "ControllerServer",
    "Decide",
    "LinkState",
    "OpenController",
    "ProducerIds",
    "RemoteController",
]
