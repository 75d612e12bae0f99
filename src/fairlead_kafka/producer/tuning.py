"""Constants of the producer, with units and reasons. Those of the policies: `partitioning.tuning`.

Relations that must hold between them are asserted at the end.
"""

from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S
from fairlead_kafka.partitioning.tuning import OWED_SPAN_S, SKEW_RATIO

# Taking in

POLL_INTERVAL_NS = 1_000_000
"""How soon the machine looks at its intake again by itself. Longer was measured, and a stream of
single sends was slower for it."""
STREAM_RECORDS = 64
"""Records in one look that make a stream, which need not wake the machine; fewer records do."""
LOOK_BYTES = 1 << 22
"""Bytes taken in after which submissions are searched for what can be copied out; nothing is copied
for less."""

# Cutting

GROWTH_BYTES = 3
"""Bytes that a record may take in a batch beyond its size by itself: 1 for an offset delta above
8191, 2 for the timestamps of records submitted up to 17 minutes apart
(`RecordColumns.sizes_bytes`). A batch that still comes out larger is split."""
COMPRESSION_MARGIN = 1.05
"""Batches are cut as if they compressed 5 % worse than estimated (Kafka's
`COMPRESSION_RATE_ESTIMATION_FACTOR`)."""
RATIO_UP = 0.05
RATIO_DOWN = 0.005
"""How fast the estimate of the compression ratio follows (Kafka's `CompressionRatioEstimator`): up
at once, down slowly."""
REQUEST_PARTS = 4
"""Batches that fill a request if much waits: fewer and larger ones cost less, but would leave
requests half empty."""
TAKEN_AHEAD = 2
"""Under `late` a broker takes a batch for each of its partitions, and may have so many for each
kept: the one after it goes out as soon as that one is answered, or right behind it if both are full
(`Window.full_limit`). With one it idles in between, and stays behind near its limit."""

# The window of requests in flight (`Window`)

DELAY_NS = 4 * NS_PER_MS
"""How long a request may wait behind others at the broker. Less would let a fast broker idle while
the producer makes its next request."""
DELAY_NS_PER_BYTE = 20
"""How much longer a request may wait for each byte of its own: a large one takes longer anyway (50
MB/s)."""
SHORT_NS = 4 * NS_PER_MS
"""A request alone that takes less went a short way. A second small one beside it would save its
records less than it costs: both are work for client and broker, and batches are half as large."""
ALONE_SAMPLES = 5
CROWDED_SAMPLES = 3
"""Latencies kept of requests alone, of which the least counts, and of others, of which the median
does."""
PROBE_ANSWERS = 32
"""Answers between probes, at first; each that fails doubles it."""
PROBE_WAIT_MOST = 64
"""Bound of that doubling: the wait for a probe is at most so many times PROBE_ANSWERS."""
ALONE_WAIT = 8
"""Answers in a row after which the next request goes alone, while fewer than `ALONE_SAMPLES` did
since the broker was connected to."""
LONGER = 4
"""A request alone that takes so many times what any before it took went a longer way, or to a
slower broker: what was learnt is old."""

# Who is waited for (`Nodes`)

SILENCE_NS = 250 * NS_PER_MS
"""With partitioner.availability.timeout.ms=0: a broker slower than this is not waited for under
`late`, unless all are slow (SILENCE_LATENCIES)."""
SILENCE_LATENCIES = 10
"""How many times what the quickest broker last took a broker may take under `late`, if that is more
than SILENCE_NS. Far beyond any service time of a broker that works, KIP-794's 20 ms included, and
short enough that a broker at 500 ms does not set the pace of the others."""
SMOOTHING = 8
"""A broker's average latency moves by one of so many parts toward that of each answer."""

# Transactions

BUSY_BACKOFF_MS = 2
"""First wait, ms, after a coordinator has answered CONCURRENT_TRANSACTIONS; it doubles up to
retry.backoff.ms. Markers on their way, or a write to the coordinator's log, take from a few ms to
some 20 ms, and the answer costs the coordinator a look at a table. Java's wait of 20 ms each time
(`ADD_PARTITIONS_RETRY_BACKOFF_MS`) is as long as all of that."""

# What holds between them

assert min(DELAY_NS, SHORT_NS) > POLL_INTERVAL_NS, (
    "a look at the intake comes before any wait at a broker is over"
)
assert RATIO_DOWN < RATIO_UP <= COMPRESSION_MARGIN - 1, (
    "a ratio that is one step behind still cuts batches that come out small enough"
)
assert 2 * TAKEN_AHEAD <= REQUEST_PARTS, (
    "half of a request, which is what `late` has beside bound records, holds what a broker takes ahead"
)
assert CROWDED_SAMPLES % 2, "a median is one of an odd number"
assert CROWDED_SAMPLES <= ALONE_SAMPLES, "the measure is surer than what is measured against it"
assert ALONE_SAMPLES * ALONE_WAIT < PROBE_ANSWERS * PROBE_WAIT_MOST, (
    "the measure is there before the longest wait for a probe is over"
)
assert LONGER < SILENCE_LATENCIES, "a broker that got slower is measured again before it is given up"
assert LONGER * max(DELAY_NS, SHORT_NS) < SILENCE_NS, "and so is one that is slow among quick ones"
assert DELAY_NS <= SKEW_RATIO * OWED_SPAN_S * NS_PER_S, (
    "under `late` a stall that is no longer than requests may wait holds nobody up"
)
