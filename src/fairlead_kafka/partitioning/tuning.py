"""Every number of the policies that no setting changes: its unit, and why it is what it is. The producer's own: `producer.tuning`."""

from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S

WEIGH_AS_ARRAYS = 100
"""Partitions. From so many candidates on `adaptive` weighs them as arrays: that costs some 10 microseconds, and grows a hundred times more
slowly."""
TOGETHER_TURNS = 2
"""Turns for each partition. From so many on, what is handed over at once is given out as one stretch for each."""

RATE_SPAN_NS = NS_PER_S
"""`late` expects records to come as they came in the last so many ns. What is expected and does not come is what a broker will not find."""
RATE_LEAST_NS = 200 * NS_PER_MS
"""At the beginning, as if what came had taken so long: a burst is not followed by others."""
RATE_SAMPLE_NS = 25 * NS_PER_MS
"""How often what came is noted."""
OWED_SPAN_S = 10
"""What a broker could not take is made up for, but no more than its even part of what all took in so many seconds."""
SKEW_RATIO = 0.01
"""By default a broker may be behind by so much of that: evenness of 1 % within ten seconds. Where much is sent, a broker that stalls for
some ms then holds nobody up. It is behind by that once and not again and again, so over a long run it is nothing."""

assert RATE_SAMPLE_NS < RATE_LEAST_NS < RATE_SPAN_NS < OWED_SPAN_S * NS_PER_S, "samples make a rate, and a rate is of now"
