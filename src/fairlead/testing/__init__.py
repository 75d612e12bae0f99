"""A Kafka cluster inside this process.

Theory of operation. A `Cluster` hosts its brokers, each a machine (`fairlead.broker`), on one thread with one selector: a broker is
neither a process nor a thread, so three of them start in milliseconds. They listen on real ports, and any Kafka client can talk to
them. The controller is one passive object that the brokers call directly; its metadata log is written by the cluster (`folder`),
synchronously, before the answer that depends on it goes out.

    data_dir/lock            held while a cluster uses the folder
    data_dir/cluster.json    the brokers' ports, to be taken again
    data_dir/metadata.log    topics, configs, producer ids: what the controller decided
    data_dir/broker-N/log/   the log of broker N (`fairlead.broker.log`)

Faults and life go through `cluster.broker(N)`: `slow`, `stop`, `kill`, `start`. A broker that starts again is a new machine over
the same folder: what it knows, it read from disk.
"""

from fairlead.testing.cluster import BrokerHandle, Cluster

__all__ = ["BrokerHandle", "Cluster"]
