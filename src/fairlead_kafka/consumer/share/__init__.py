"""The share consumer: a member of a share group, for which brokers acquire records one by one
(KIP-932).

Theory of operation. Brokers keep no offset per group but a state per record: available, acquired by
a member for as long as its lock lasts, acknowledged, or archived. So several members may read one
partition, each getting different records. `ShareConsumerMachine` has two parts, with a `Network`
each, so that heartbeats do not wait behind fetches that wait for data.

Membership (`membership`) is by ShareGroupHeartbeat. Its states are a table (`states`):

    UNSUBSCRIBED ──subscribe──▶ JOINING ──joined──▶ STABLE
    JOINING, STABLE ──fenced──▶ JOINING
    JOINING, STABLE ──no poll──▶ STALE ──poll──▶ JOINING
    any ──fail──▶ FATAL ──subscribe──▶ JOINING
    any ──leave──▶ UNSUBSCRIBED

An assignment is applied at once: no partition is revoked, and records acquired of a partition that
is not assigned any more may still be acknowledged.

Fetching (`fetcher`). Each broker has a session for the member (`session`): ShareFetch and
ShareAcknowledge requests with consecutive epochs, one under way at a time. A fetch names only what
changed, and takes acknowledgements along. Since locks run out from when a record is acquired, a
broker is asked for records only while a poll waits and no fetched record is left. Polls return
whole chunks, each one partition's part of one answer.

In flight (`inflight`). A chunk is kept, in the caller's thread, until a poll returns its records as
its last step; then they are columns of offsets and types, until all are acknowledged and the
machine has that. Acknowledgements have numbers in ascending order: the caller submits them again if
Ctrl-C came in between, and the machine counts them once. Offsets that were acquired and hold no
record are acknowledged as gaps; a batch that does not decode is rejected, and the poll raises its
error. Records whose lock is renewed (KIP-1222) are returned again by the next poll, alone.

A lock that ends. The session of a broker ends with its connection, and with it all its locks. Each
session gets a number in the client; acknowledgements of an earlier one fail at once
(SHARE_SESSION_NOT_FOUND). Where records come again in the same session, acknowledgements of the
delivery before that were not sent yet fail (INVALID_RECORD_STATE): sent now, they would end the new
delivery, which the application has not seen yet. Chunks that waited until their lock was over are
dropped.

Closing sends acknowledgements with the last request of each session (epoch -1), by which the broker
releases all other records; it waits for a fetch under way first, because that might acquire more.
Then the member leaves its group.

Sources: KIP-932, KIP-1206 (record_limit), KIP-1222 (renewing); Kafka's `ShareConsumerImpl`,
`ShareConsumeRequestManager`, `ShareMembershipManager`.
"""

from fairlead_kafka.consumer.share.acknowledging import GAP, UNDECIDED, AcknowledgeType, AckResult, Acks
from fairlead_kafka.consumer.share.chunk import Decoded, ShareChunk, ShareRecord, decode_share_chunk
from fairlead_kafka.consumer.share.inflight import Delivery, InFlight, delivery_of
from fairlead_kafka.consumer.share.machine import ShareConsumerMachine
from fairlead_kafka.consumer.share.operations import (
    Acknowledge,
    GetLockTimeout,
    Shut,
    Subscribe,
    Take,
    Taken,
    Unsubscribe,
)
from fairlead_kafka.consumer.share.settings import share_settings
from fairlead_kafka.consumer.share.states import SHARE_TRANSITIONS, ShareSignal, ShareState

__all__ = [
    "GAP",
    "SHARE_TRANSITIONS",
    "UNDECIDED",
    "AckResult",
    "Acknowledge",
    "AcknowledgeType",
    "Acks",
    "Decoded",
    "Delivery",
    "InFlight",
    "ShareChunk",
    "ShareConsumerMachine",
    "ShareRecord",
    "ShareSignal",
    "ShareState",
    "Shut",
    "Subscribe",
    "Take",
    "Taken",
    "GetLockTimeout",
    "Unsubscribe",
    "decode_share_chunk",
    "delivery_of",
    "share_settings",
]
