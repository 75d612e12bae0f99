"""Constants of the policies, with units and reasons. Those of the producer: `producer.tuning`."""

from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S

WEIGH_AS_ARRAYS = 100
"""Candidate partitions from which on `adaptive` weighs them as arrays: that costs some 10
microseconds, and grows a hundred times more slowly."""
TOGETHER_QUANTA = 2
"""Quanta for each partition from which on a submission becomes one run for each (`together`)."""

RATE_SPAN_NS = NS_PER_S
"""`late` expects records to arrive as in the last so many nanoseconds. A broker will not find what
is expected and does not come."""
RATE_LEAST_NS = 200 * NS_PER_MS
"""Nanoseconds that a rate is taken over at least: after a burst at the start nothing may follow."""
RATE_SAMPLE_NS = 25 * NS_PER_MS
"""Nanoseconds between notes of the bytes that have arrived."""
OWED_SPAN_S = 10
"""Seconds: a broker that was slow is given its even part of what all took in so long, at most."""
SKEW_RATIO = 0.01
"""Share of its even part in OWED_SPAN_S that a broker may be behind by, by default: evenness of 1 %
within ten seconds. Where much is sent, a broker that stalls for some ms then delays no other. It is
behind by that once and not again and again, so over a long run it is nothing."""

assert RATE_SAMPLE_NS < RATE_LEAST_NS < RATE_SPAN_NS < OWED_SPAN_S * NS_PER_S, (
    "samples make a rate, and a rate is of now"
)
