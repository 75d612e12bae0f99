"""Every number of the producer that no setting changes: its unit, and why it is what it is; those of the policies: `partitioning.tuning`.

What must hold between them is asserted at the end.
"""

from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S
from fairlead_kafka.partitioning.tuning import OWED_SPAN_S, SKEW_RATIO

# Taking in

POLL_INTERVAL_NS = 1_000_000
"""How soon the machine looks at its intake again by itself. Longer was measured, and a stream of single sends was slower for it."""
STREAM_RECORDS = 64
"""So many in one look are a stream, which is not to wake the machine; a few now and then do, and wait for no look."""
LOOK_BYTES = 1 << 22
"""Submissions are looked through for what can be copied out each time so much was taken in, and nothing is done for less."""

# Cutting

GROWTH_BYTES = 3
"""What a record may take in a batch beyond its size by itself: 1 for an offset delta above 8191, 2 for the timestamps of
records that were handed over up to 17 minutes apart (`RecordColumns.sizes_bytes`). A batch that still comes out larger is split."""
COMPRESSION_MARGIN = 1.05
"""Batches are cut as if they compressed 5 % worse than estimated (Kafka's `COMPRESSION_RATE_ESTIMATION_FACTOR`)."""
RATIO_UP = 0.05
RATIO_DOWN = 0.005
"""How fast the estimate of the compression ratio follows (Kafka's `CompressionRatioEstimator`): up at once, down slowly."""
REQUEST_PARTS = 4
"""Where much waits, so many batches fill a request: fewer and larger ones cost less, but would leave requests half empty."""
TAKEN_AHEAD = 2
"""Under `late` a broker takes a batch for each of its partitions, and may have so many for each kept: the one after it goes out as soon as
that one is answered, or right behind it if both are full (`Window.full_limit`). With one it idles in between, and stays behind near its
limit."""

# The window of requests in flight (`Window`)

DELAY_NS = 4 * NS_PER_MS
"""So long may a request wait behind others at the broker. Less would let a fast broker idle while the producer makes its next request."""
DELAY_NS_PER_BYTE = 20
"""And so much longer for each byte of its own: a large request takes longer anyway (50 MB/s)."""
SHORT_NS = 4 * NS_PER_MS
"""A request alone that takes less went a short way. A second small one beside it would save its records less than it costs all of us:
both are work for client and broker, and batches half as large."""
ALONE_SAMPLES = 5
CROWDED_SAMPLES = 3
"""So many latencies of requests alone are kept, of which the least counts; and so many of others, of which the median does."""
PROBE_ANSWERS = 32
"""Answers between probes, at first; each that fails doubles it."""
PROBE_WAIT_MOST = 64
"""And no more than so many times that."""
ALONE_WAIT = 8
"""While fewer than `ALONE_SAMPLES` requests were sent alone since it was connected to: answers in a row after which the next one is."""
LONGER = 4
"""A request alone that takes so many times what any before it took went a longer way, or to a slower broker: what was learnt is old."""

# Who is waited for (`Nodes`)

SILENCE_NS = 250 * NS_PER_MS
"""With partitioner.availability.timeout.ms=0: a broker that lets us wait longer than this is not waited for under `late`..."""
SILENCE_LATENCIES = 10
"""...unless all are slow: then than so many times what the quickest broker last took. Far beyond any service time of a broker that
works, KIP-794's 20 ms included, and short enough that a broker at 500 ms does not set the pace of the others."""
SMOOTHING = 8
"""One of so many parts of a broker's average latency is the last answer."""

# What holds between them

assert min(DELAY_NS, SHORT_NS) > POLL_INTERVAL_NS, "a look at the intake comes before any wait at a broker is over"
assert RATIO_DOWN < RATIO_UP <= COMPRESSION_MARGIN - 1, "a ratio that is one step behind still cuts batches that come out small enough"
assert 2 * TAKEN_AHEAD <= REQUEST_PARTS, "half of a request, which is what `late` has beside bound records, holds what a broker takes ahead"
assert CROWDED_SAMPLES % 2, "a median is one of an odd number"
assert CROWDED_SAMPLES <= ALONE_SAMPLES, "the measure is surer than what is judged by it"
assert ALONE_SAMPLES * ALONE_WAIT < PROBE_ANSWERS * PROBE_WAIT_MOST, "the measure is there before the longest wait for a probe is over"
assert LONGER < SILENCE_LATENCIES, "a broker that got slower is measured anew before it is given up"
assert LONGER * max(DELAY_NS, SHORT_NS) < SILENCE_NS, "and so is one that is slow among quick ones"
assert DELAY_NS <= SKEW_RATIO * OWED_SPAN_S * NS_PER_S, "under `late` a stall that is no longer than requests may wait holds nobody up"
