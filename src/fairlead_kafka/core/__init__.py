"""Core: the protocol between machines and hosts, and the network half of every client machine.

Machines and hosts (`machine`, `events`, `effects`). All logic is in machines: a machine gets events
(`receive`, which only queues), works on all of them at once (`step`, which returns effects), and
has a deadline at which it is stepped again if nothing happens (`deadline_ns`). It owns no socket,
file, thread, clock or rng; a host does, and carries out its effects.

A client machine has a `Network`, which is a part, not a machine: the owner passes its connection
events on, calls `advance` in each step, and gives what `take_effects` returns to its host together
with its own effects. Answers come back as callbacks inside those calls. There is one thread, so
there are no locks; every wait is a deadline, so nothing polls.

    Network       requests to brokers: now (`send`), once a node is ready (`request`), for metadata
    Connections   opening, reconnect back-off with jitter, request time-outs, idleness, throttling;
                  one `Connection` per peer
    Reachability  what is wrong with each broker: for log lines, time-outs and waiting calls
    Peers         the addresses: bootstrap servers in random order, then the metadata's brokers
    Connection    one connection's states as a table (connecting, negotiating, ready, closed), its
                  versions, and its queue of requests in flight
    Metadata      the view of the cluster, its one merge rule, and when to ask again

A connection is opened when a request needs it, and negotiates before anything else: ApiVersions
version 3, and again with what the broker offers if it refuses that (error 35). Brokers answer in
order, so a wrong correlation id, a frame that does not decode or an answer that is late ends the
connection: no later answer on it could be trusted or would come. Requests in flight fail, the peer
goes into back-off, and fresh metadata is asked for, because a broken connection is the first sign
of a dead broker.

Bootstrap servers are tried in rotation until the metadata is here, and again whenever none of the
brokers it named can be tried. The owner may send before it passes the time of its step; deadlines
are set by the latest time known when the step ends.

Metrics are pushed to the cluster if a broker offers that (`pushing`; `telemetry` has the states, as
a table, and `telemetry_bytes` the message; both are loaded then).

`script` runs request sequences with retries written from top to bottom; `partition_offsets` is one,
shared by consumer and admin.
"""

from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.machine import Machine, MemoryPool, Rng
from fairlead_kafka.core.metadata import Metadata, PartitionMetadata, TopicMetadata
from fairlead_kafka.core.network import CONTROLLER, AwaitConnection, Network

__all__ = [
    "CONTROLLER",
    "AwaitConnection",
    "Backoff",
    "Completion",
    "Rng",
    "Machine",
    "MemoryPool",
    "Metadata",
    "Network",
    "PartitionMetadata",
    "TopicMetadata",
]
