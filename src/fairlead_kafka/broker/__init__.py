"""One Kafka broker as a machine: bytes of clients in, bytes of answers and file effects out.

Theory of operation. `Broker` (`machine`) gets events from its host and passes them on: bytes of a
connection to its `Session`, answers of the disk to `Files`, deadlines to `Timers`. A session cuts
frames, looks up the API in the registry (`dispatch`), and calls the handler in `broker.api`: one
file per API, its docstring saying which versions it serves. A handler replies when it can, at once
or in a later step; the session sends answers in the order of the requests. At the end of a step
everything that was appended in it, by all sessions to all partitions, is written together.

    Received ─▶ Session ─▶ decode ─▶ handler ──reply──▶ Session ─▶ Write
                                        │  ▲
                                 append │  │ written         fetch without data: Purgatory, woken by
                                        ▼  │                 the partition that advances
                                 Logs ─▶ FileAppend ─▶ FileDone ─▶ Replication ─▶ high watermark

`clients` has all sessions and bounds what they hold together; `log` is the shared log; `partitions`
decides what this broker leads; `produced` what it demands of a batch; `answers` are on their way
out; `purgatory` holds fetches that wait; `internal` reads and writes without a client, for the
`coordinator` of groups and that of `transactions`, both of which keep what they know in `shards` of
internal topics. `share_groups` has the other coordinator and the leader's part of share groups
(KIP-932). `replication` keeps the partitions that several brokers have, and says what is
replicated; `links` carries requests to other brokers, for replication and for transactions.
`controller` holds the cluster's metadata, and reports changes: one object for all brokers of a
thread, called directly; `control` is the way to it from another process. `lifecycle` is the life of
a broker as a table.

`listeners` has the listeners of the configs; each has its security protocol and advertised
addresses. TLS, and the check of passwords and tokens, are the host's; `login` is the order of
requests in a client's log-in. `authorizer` decides which operations a principal may do; every
handler asks it (`Session.may`, `api.rights`) for the same rights as Kafka's handler, and its
docstring names them. `quotas` limits a client's use of a broker.

`clients` keeps the sessions and what all of them may hold together. `guard` finds the owner of an
exception: callbacks of a request, a partition or a task are called with it as owner, and an
exception fails only the owner. `Broker.check()` compares redundant state of the parts.

Floors. Imports go down only, those for types included (`lint-imports`, and `tests/tidy` for circles
anywhere). No part imports `Broker`: each defines a protocol (`...Host`) with the functions of the
broker that it uses, and `Broker` in `machine`, which builds the parts, implements all of them.

    machine                                   builds the parts and wires them
    lifecycle, clients, disk_watch            the broker's life, all connections, its disk
    sessions                        api       one connection; the handlers
    answers, outstanding            conversion, produced, read_replica
    dispatch ─▶ services                      table of handlers; what a handler is given
    coordinator, share_groups, transactions, partitions, fetch_sessions
    internal, shards                          logs that coordinators keep
    replication
    requester                                 a connection as its handler sees it
    authorizer, links, login, quotas
    purgatory                                 what waits
    log                             control   records; the way to a controller elsewhere
    controller                                the cluster's metadata
    files, timers, faults, fields, listeners, home    and guard, which all stand on

A handler is given `Services` and the `Requester`, and no more; `sessions` and `api` are connected
only by the table. A test needs only a few attributes for each.

Three ways through the broker, file by file.

A produce request: `machine`, `clients` (whose connection), `sessions` (frames, order, bounds),
`dispatch` (which handler), `outstanding` (what is begun), `api/k00_produce`, `api/rights`,
`partitions` (led here?), `log/logs`, `log/table`, `replication` (in which epoch), `produced`,
`conversion`, `log/logs`, `log/entry`, `log/writer`, `log/cache`, `log/partition`, `log/index`. At
the end of the step `machine` has `log/logs` and `log/writer` write what all requests left, through
`files`. The disk's answer: `machine`, `files`, `log/writer`, `replication`, `replication/led` (the
high watermark), `purgatory` (fetches that wait for it), `api/k00_produce`, `sessions`, `answers`.
These are visited twice: `sessions`, which begins a request and sends its answer, in order; the
handler, which appends at once and answers when the batch is written or replicated; `log/logs`, for
a partition is found before its batch is checked; `log/writer`, for many appends make one write;
`replication`, which is asked for the epoch and informed of writes; `machine`, by which every event
comes in and every effect goes out, and `guard` wherever a callback of another owner is called.

A timer, say of a fetch that has waited long enough: `machine`, `timers`, `guard` (the owner),
`api/k01_fetch`, `fetch_sessions` and `purgatory` (it does not wait any more), `partitions`,
`log/reader`, `api/k01_fetch`, `sessions`, `answers`. The handler is listed twice, before the disk
is read and after.

An error: BrokerErrors are turned by the handler into error codes of its answer, and no other file
sees them. Any other exception of the handler or its callbacks is caught by `guard`, which finds the
owner: `outstanding` closes the connection by `sessions` and `clients`; a partition goes offline by
`partitions`, `replication` and `purgatory`; a shard is read again by `shards`. Exceptions of a type
in SHARED are raised to `machine`, and the host ends the broker (`crashed`).

A `Broker` is never restarted: a restart is a new machine over the same folder, and state that is
not on disk is lost. Nothing is acknowledged before it is written (and synced, where the topic asks
for it), and with acks=all before it is replicated.
"""

from fairlead_kafka.broker.controller import Controller
from fairlead_kafka.broker.faults import Faults
from fairlead_kafka.broker.lifecycle import (
    BrokerState,
    CallInStep,
    KillBroker,
    SetFaults,
    StartBroker,
    StopBroker,
)
from fairlead_kafka.broker.machine import Broker

__all__ = [
    "Broker",
    "BrokerState",
    "CallInStep",
    "Controller",
    "Faults",
    "KillBroker",
    "SetFaults",
    "StartBroker",
    "StopBroker",
]
