"""Client: producer, consumer and admin classes, blocking and async, over the same machines.

Theory of operation. A client class holds no logic of Kafka's. Its machine (`producer`, `consumer`,
`admin`) runs on a host of its own, a selector loop on one daemon thread (`hosting.open_host`), and
shares only the state named here with it. The class submits operations, each with a `Completion`,
and waits: a blocking class in `Completion.result`, which Ctrl-C interrupts at once, an async class
in its event loop.

One implementation, two client APIs. The work of a call between its waits is written once, as a
generator that yields its waits (`hosting.Steps`). `run_blocking` drives it on the calling thread,
`run_async` in the event loop. A method of a client class is one line around that, and
`tests/tidy/test_client_apis_agree.py` compares names, parameters and docstrings. Where an
interrupt, a time-out or a cancelled task ends a wait, the generator is closed and leaves the line
for memory.

Thread, clock and waits come from outside. A client is given an `opener` (`hosting.Opener`; of
production: `open_host`), which makes the machine and returns its `Host`: it accepts operations, has
the clock, and lets callers wait. So a test in virtual time gives an opener of its own, and nothing
is patched.

Records are not operations, because there are many of them.

    send        checks a record and appends it to the columns of its topic's open chunk, in machine
                code (`single_records`)
    send_table  turns a table into columns, without copying, and submits pieces of about 2 MiB as
                room comes (`producer_core.ProducerCore`)
    MemoryPool  counts buffer.memory. Records take it, first come, first served; the machine
                releases it
    tables      takes any object that gives Arrow batches; splits it into what is checked together
    Delivery    results of one chunk or table. The machine reports a batch by one call; arrays are
                made when a caller first looks

The machine is woken for the first record after an idle time, and for a chunk that has grown large.
In a fast stream of records it looks into the intake by itself every millisecond, so small sends
cost neither a system call nor a step for each of them.

Transactions (`transactions`) are operations like others. While none is open the intake of a
transactional producer is shut.

Handles are references: an `Ack` to a delivery and a row in it, a `TableAck` to a delivery.
Callbacks are called on the host's thread, after the machine's step, batch by batch; they must not
wait for the same client, whose thread they hold up.

Every record sent is completed exactly once: delivered, or failed with an error that says why.
`close` flushes, gives up what is late, says how many records of which topics, and ends the thread.
A producer that is dropped does that in the background; one that is open when the interpreter ends
gets 5 s. Interceptors wrap a producer's `send` when it is made, so without any a send asks nothing.

A name of this package is loaded when it is first used: a producer's program loads no consumer and
no admin client. Modules of producers and consumers load numpy before their other imports. The
threads of its OpenBLAS spin for 80 ms once they are started; so they do that while the rest is
loaded, not while the first records come. On two cores the first 100,000 records are there 20 ms
earlier, of 175.

Metrics: the machine counts what it sends and completes (`producer.metrics`), the producer class
what its callers wait for; `Producer.metrics()` reads both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.lazy import lazily

if TYPE_CHECKING:
    from fairlead_kafka.admin import (
        AbortTransaction,
        ClientQuotaEntity,
        ClientQuotaFilter,
        ClientQuotaFilterComponent,
        ConfigChange,
        ConfigResource,
        ElectionType,
        NewPartitions,
        NewTopic,
        PartitionReplica,
        ResourceType,
        ScramCredentialInfo,
        ScramMechanism,
        TransactionDescription,
        TransactionListing,
        UpgradeType,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from fairlead_kafka.client.admin import Admin
    from fairlead_kafka.client.admin_async import AsyncAdmin
    from fairlead_kafka.client.consumer import Consumer
    from fairlead_kafka.client.consumer_async import AsyncConsumer
    from fairlead_kafka.client.consumer_group import RebalanceListener
    from fairlead_kafka.client.delivery import RecordMetadata
    from fairlead_kafka.client.interceptors_consumer import ConsumerInterceptor
    from fairlead_kafka.client.interceptors_producer import ProducerInterceptor, ProducerRecord
    from fairlead_kafka.client.producer import Producer
    from fairlead_kafka.client.producer_async import AsyncProducer
    from fairlead_kafka.client.share_consumer import ShareConsumer
    from fairlead_kafka.client.share_consumer_async import AsyncShareConsumer
    from fairlead_kafka.client.share_consumer_exchange import AcknowledgementCommitCallback
    from fairlead_kafka.consumer import Record
    from fairlead_kafka.consumer.groups.operations import SubscriptionPattern
    from fairlead_kafka.consumer.share import AcknowledgeType, ShareRecord
    from fairlead_kafka.core.metadata import PartitionMetadata
    from fairlead_kafka.core.prepared import PreparedTransaction

__all__ = [
    "AbortTransaction",
    "AcknowledgeType",
    "AcknowledgementCommitCallback",
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncShareConsumer",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaFilterComponent",
    "ConfigChange",
    "ConfigResource",
    "Consumer",
    "ConsumerInterceptor",
    "ElectionType",
    "NewPartitions",
    "NewTopic",
    "PartitionMetadata",
    "PartitionReplica",
    "PreparedTransaction",
    "Producer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RebalanceListener",
    "Record",
    "RecordMetadata",
    "ResourceType",
    "ScramCredentialInfo",
    "ScramMechanism",
    "ShareConsumer",
    "ShareRecord",
    "SubscriptionPattern",
    "TransactionDescription",
    "TransactionListing",
    "UpgradeType",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
]

_HOMES = {
    "fairlead_kafka.admin": (
        "AbortTransaction",
        "ClientQuotaEntity",
        "ClientQuotaFilter",
        "ClientQuotaFilterComponent",
        "ConfigChange",
        "ConfigResource",
        "ElectionType",
        "NewPartitions",
        "NewTopic",
        "PartitionReplica",
        "ResourceType",
        "ScramCredentialInfo",
        "ScramMechanism",
        "TransactionDescription",
        "TransactionListing",
        "UpgradeType",
        "UserScramCredentialDeletion",
        "UserScramCredentialUpsertion",
    ),
    "fairlead_kafka.client.admin": ("Admin",),
    "fairlead_kafka.client.admin_async": ("AsyncAdmin",),
    "fairlead_kafka.client.consumer": ("Consumer",),
    "fairlead_kafka.client.consumer_async": ("AsyncConsumer",),
    "fairlead_kafka.client.consumer_group": ("RebalanceListener",),
    "fairlead_kafka.client.delivery": ("RecordMetadata",),
    "fairlead_kafka.client.interceptors_consumer": ("ConsumerInterceptor",),
    "fairlead_kafka.client.interceptors_producer": ("ProducerInterceptor", "ProducerRecord"),
    "fairlead_kafka.client.producer": ("Producer",),
    "fairlead_kafka.client.producer_async": ("AsyncProducer",),
    "fairlead_kafka.client.share_consumer": ("ShareConsumer",),
    "fairlead_kafka.client.share_consumer_async": ("AsyncShareConsumer",),
    "fairlead_kafka.client.share_consumer_exchange": ("AcknowledgementCommitCallback",),
    "fairlead_kafka.consumer": ("Record",),
    "fairlead_kafka.consumer.groups.operations": ("SubscriptionPattern",),
    "fairlead_kafka.consumer.share": ("AcknowledgeType", "ShareRecord"),
    "fairlead_kafka.core.metadata": ("PartitionMetadata",),
    "fairlead_kafka.core.prepared": ("PreparedTransaction",),
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
