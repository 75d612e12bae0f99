"""A Kafka cluster for tests, laptops and CI: in this process, or with a process for each broker.

Theory of operation. A `Cluster` hosts its brokers, each a machine (`broker`), in one of two ways
behind one API (`handles`).

- In one thread (`in_thread`): a broker is neither a process nor a thread, so three of them start in
  milliseconds. They call the controller directly.
- In processes (`in_process`): brokers use all cores, and `kill -9` is the real thing. The
  controller stays here, in the launcher, and is reached through a local socket (`broker.control`).
  Broker processes (`broker_process`) are forked from a `nursery`, which has loaded their modules;
  each has a `channel` to the launcher, and ends with it.

Either way they listen on real ports, and any Kafka client can talk to them. The metadata log is
written by the cluster (`folder`), synchronously, before the answer that depends on it goes out.

    data_dir/lock            held while a cluster uses the folder
    data_dir/cluster.json    the brokers' ports, to be taken again
    data_dir/metadata.log    topics, configs, producer ids: what the controller decided
    data_dir/broker-N/log/   the log of broker N (`fairlead_kafka.broker.log`)
    data_dir/security/       of a secured cluster: authority, certificates, users, files of settings

`brokers` makes a broker and the transport of its host. `securing` makes what a cluster needs to be
secured by one word (`certificates`, `tokens`), and the settings of its clients.

Faults, starts and stops are methods of `cluster.broker(N)`: `slow`, `cut`, `fill_disk`, `heal`,
`stop`, `kill`, `start`. A broker that starts again is a new machine over the same folder, with the
state that is on disk.

Faults of single requests begin with `cluster.on(...)` (`requests_on`): a rule (`request_faults`) is
applied to the requests of all brokers before their handlers, and acts on those that match
(`request_actions`). The names in a request, and the places in its answer for their errors, are
derived from Kafka's schemas (`error_places`). `cluster.clock` moves the clock of the thread that
all brokers run on (`clock`). Both are for brokers in one thread.

`plugin` is for pytest, which imports it in every run where Fairlead is installed, so this package
loads nothing before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.lazy import lazily

if TYPE_CHECKING:
    from fairlead_kafka.base.codes import ErrorCode
    from fairlead_kafka.testing.client_metrics import ClientMetric, ClientMetrics
    from fairlead_kafka.testing.clock import ClusterClock
    from fairlead_kafka.testing.cluster import Cluster
    from fairlead_kafka.testing.handles import BrokerHandle
    from fairlead_kafka.testing.request_faults import Fault, SeenRequest
    from fairlead_kafka.testing.requests_on import RequestsOn
    from fairlead_kafka.wire import ApiKey

_HOMES = {
    "fairlead_kafka.base.codes": ("ErrorCode",),
    "fairlead_kafka.testing.client_metrics": ("ClientMetric", "ClientMetrics"),
    "fairlead_kafka.testing.clock": ("ClusterClock",),
    "fairlead_kafka.testing.cluster": ("Cluster",),
    "fairlead_kafka.testing.handles": ("BrokerHandle",),
    "fairlead_kafka.testing.request_faults": ("Fault", "SeenRequest"),
    "fairlead_kafka.testing.requests_on": ("RequestsOn",),
    "fairlead_kafka.wire": ("ApiKey",),
}

__all__ = [
    "ApiKey",
    "BrokerHandle",
    "ClientMetric",
    "ClientMetrics",
    "Cluster",
    "ClusterClock",
    "ErrorCode",
    "Fault",
    "RequestsOn",
    "SeenRequest",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
