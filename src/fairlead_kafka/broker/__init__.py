"""One Kafka broker as a machine: bytes of clients in, bytes of answers and file effects out.

Theory of operation. `Broker` (`machine`) gets events from its host and hands them on: bytes of a
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
`controller` holds the cluster's metadata, and tells what changes: one object for all brokers of a
thread, called directly; `control` is the way to it from another process. `lifecycle` is the life of
a broker as a table.

`listeners` is what the configs say of where the broker listens; each has its security protocol, and
its clients are told its addresses. What TLS does to bytes is the host's, and so is the judgement of
passwords and tokens; `login` is the order in which a client's log-in goes. `authorizer` says who
may do what; every handler asks it (`Session.may`, `api.rights`) for the rights that Kafka's asks
for, and its docstring names them. `quotas` is what one client may use of a broker.

`clients` keeps the sessions and what all of them may hold together. `guard` says whose fault an
exception is: what a request, a partition or a task leaves to be called later is called in its name,
and fails nobody else. `Broker.check()` compares what its parts keep twice.

Floors. Imports go down only, those for types included (`lint-imports`, and `tests/tidy` for circles
anywhere). No part knows `Broker`: each says in a protocol beside it (`...Host`) what it needs of
the broker, and `machine`, which builds all of them, fits every one.

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

A handler is given `Services` and the `Requester`, and no more; `sessions` and `api` never meet but
in the table. A test fits either with a few attributes.

Three ways through it, file by file.

A produce request: `machine`, `clients` (whose connection), `sessions` (frames, order, bounds),
`dispatch` (which handler), `outstanding` (what is begun), `api/k00_produce`, `api/rights`,
`partitions` (led here?), `log/logs`, `log/table`, `replication` (in which epoch), `produced`,
`conversion`, `log/logs`, `log/entry`, `log/writer`, `log/cache`, `log/partition`, `log/index`. At
the end of the step `machine` has `log/logs` and `log/writer` write what all requests left, through
`files`. The disk's answer: `machine`, `files`, `log/writer`, `replication`, `replication/led` (the
high watermark), `purgatory` (fetches that wait for it), `api/k00_produce`, `sessions`, `answers`.
Visited twice: `sessions`, which begins a request and sends its answer, in order; the handler, which
appends now and answers when that is safe; `log/logs`, for a partition is found before its batch is
checked; `log/writer`, for many appends make one write; `replication`, which is asked for the epoch
and hears of what is written; `machine`, by which every event comes in and every effect goes out,
and `guard` wherever work goes on that somebody else began.

A timer, say of a fetch that has waited long enough: `machine`, `timers`, `guard` (in whose name),
`api/k01_fetch`, `fetch_sessions` and `purgatory` (it waits no more), `partitions`, `log/reader`,
`api/k01_fetch`, `sessions`, `answers`. The handler comes twice, before the disk is read and after.

An error: what a handler cannot do is a BrokerError, which it turns into a code of its own answer,
and no other file sees it. Anything else that it, or what it left to be called, raises ends in
`guard`, which finds the owner: `outstanding` closes the connection by `sessions` and `clients`; a
partition goes offline by `partitions`, `replication` and `purgatory`; a shard is read again by
`shards`. What is in SHARED goes on to `machine`, and the host ends the broker (`crashed`).

A broker has one life. Its restart is another machine over the same folder; whatever is not on disk
is gone. Nothing is acknowledged before it is written (and synced, where the topic asks for it), and
with acks=all before it is replicated.
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
