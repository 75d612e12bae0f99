"""Client: the faces people use. Producer, consumer and admin, blocking and awaiting, over the same machines.

Theory of operation
-------------------
A face holds no logic of Kafka's. Its machine (`producer`, `consumer`, `admin`) runs on a host of its own, a selector loop on one
daemon thread (`hosting.open_host`), and shares no state with it but what is named here. A face hands operations over, each with a
`Completion`, and waits: the blocking face in `Completion.result`, which Ctrl-C interrupts at once, the awaiting face in its loop.

One implementation, two faces. What a call does between its waits is written once, as a generator that yields what it waits for
(`hosting.Steps`). `run_blocking` drives it on the calling thread, `run_async` in the event loop. A face's method is one line around
that, and `tests/tidy/test_faces_agree.py` compares names, parameters and docstrings. Where an interrupt, a time-out or a
cancelled task ends a wait, the generator is closed and gives back what it had reserved.

Records go another way than operations, for they are many.

    send        checks a record and appends it to the columns of its topic's open chunk, in machine code (`single_records`)
    send_table  turns a table into columns, without copying, and hands over pieces of some MiB as room comes (`producer_core.ProducerCore`)
    MemoryPool  the account of buffer.memory. A face reserves, first come, first served; the machine releases
    tables      whatever gives Arrow batches: what is checked together, and the pieces it is handed over in
    Delivery    results of one chunk or table. The machine notes a batch by one call; arrays are made when somebody looks

The machine is woken for the first record after a lull, and for a chunk that has grown large. While records are under way it looks
into the intake by itself every millisecond, so a stream of small sends costs neither a system call nor a step for each of them.

Transactions (`transactions`) are operations like others. While none is open the intake of a transactional producer is shut.

Handles (`Ack`, `TableAck`) are a reference to a delivery and a row in it. Callbacks are called on the host's thread, after the
machine's step, batch by batch; they must not wait for the same client, whose thread they hold up.

Every record handed over is settled exactly once: delivered, or failed with an error that says why. `close` flushes, gives up what
is late, says how much of which topic, and ends the thread. A face that is dropped has that done in the background; one that is open when
the interpreter ends gets a few seconds. Interceptors wrap a face's methods when it is made, so without any there is nothing to ask.

A name of this package is loaded when it is first used: a producer's program loads no consumer and no admin client.

Metrics: the machine records what it sends and settles (`producer.metrics`), a face what its callers wait for; `metrics()` reads both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.lazy import lazily

if TYPE_CHECKING:
    from fairlead_kafka.admin import (
        ClientQuotaEntity,
        ClientQuotaFilter,
        ClientQuotaFilterComponent,
        ConfigChange,
        ConfigResource,
        NewPartitions,
        NewTopic,
        ScramCredentialInfo,
        ScramMechanism,
        TransactionDescription,
        TransactionListing,
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
    from fairlead_kafka.consumer import Record
    from fairlead_kafka.core.metadata import PartitionMetadata
    from fairlead_kafka.core.prepared import PreparedTransaction

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaFilterComponent",
    "ConfigChange",
    "ConfigResource",
    "Consumer",
    "ConsumerInterceptor",
    "NewPartitions",
    "NewTopic",
    "PartitionMetadata",
    "PreparedTransaction",
    "Producer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RebalanceListener",
    "Record",
    "RecordMetadata",
    "ScramCredentialInfo",
    "ScramMechanism",
    "TransactionDescription",
    "TransactionListing",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
]

_HOMES = {
    "fairlead_kafka.admin": (
        "ClientQuotaEntity",
        "ClientQuotaFilter",
        "ClientQuotaFilterComponent",
        "ConfigChange",
        "ConfigResource",
        "NewPartitions",
        "NewTopic",
        "ScramCredentialInfo",
        "ScramMechanism",
        "TransactionDescription",
        "TransactionListing",
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
    "fairlead_kafka.consumer": ("Record",),
    "fairlead_kafka.core.metadata": ("PartitionMetadata",),
    "fairlead_kafka.core.prepared": ("PreparedTransaction",),
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
