"""The window of requests in flight to a broker: as many as the broker and the network process at
once."""

from __future__ import annotations

from collections import deque

from fairlead_kafka.base.checks import holds
from fairlead_kafka.producer.tuning import (
    ALONE_SAMPLES,
    ALONE_WAIT,
    CROWDED_SAMPLES,
    DELAY_NS,
    DELAY_NS_PER_BYTE,
    LONGER,
    PROBE_ANSWERS,
    PROBE_WAIT_MOST,
    SHORT_NS,
)


class Window:
    """The requests in flight that one broker is allowed, `limit`, between 1 and `most`.

    Requests beyond what a broker serves at once move the queue from where records still join a
    batch, and still choose their broker, to where they cannot. How many it serves at once shows in
    the latency of requests sent when others were in flight. If the way is long and the broker
    quick, they take no longer than one sent alone; if it serves one after another, latency grows
    with depth, and by Little's law (throughput = depth / latency) throughput does not. So a request
    at depth d that took longer than one alone and the allowance (`DELAY_NS`) says: only `d * (alone
    + allowance) / latency` requests were of use (`_places`). The median of three such requests
    decides, as single ones stall for other reasons.

    It begins wide open, since a long way is lost at once by waiting, while a queue costs something
    only once it has grown. Until it was tested though, more than two requests may be in flight only
    if they are full: small ones that a slow broker serves one by one are a debt that takes long to
    pay. Even later the last place of several is for a full one (`partial_limit`): under load that
    place is worth most, and small requests in it would make more small requests.

    After closing, one more request is tried from time to time while there is more to send; a
    success doubles the limit and is followed by the next try, a failure doubles the time until
    then. What closes it to one may be a way that got longer: then the next request goes alone
    (`full_limit`), and if that took much longer than any before (`LONGER`) more are tried at once,
    so that a broker which begins to answer half a second late has its five requests under way some
    answers later. With two in flight all the time none would be alone ever again, and what the
    first one of a cold broker took would stay the measure: so some are sent alone at the beginning
    (`ALONE_WAIT`). Pure: `answered` gives it each answer.
    """

    __slots__ = (
        "_adaptive",
        "_alone",
        "_alone_count",
        "_alone_wanted",
        "_crowded",
        "_limit_after",
        "_since_alone",
        "_since_probe",
        "_tested",
        "_trying",
        "_wait",
        "limit",
        "most",
    )

    def __init__(self, most: int, *, adaptive: bool = True) -> None:
        self.most = most
        self.limit = most
        self._adaptive = adaptive and most > 1
        self._tested = not self._adaptive
        self._alone: deque[int] = deque(maxlen=ALONE_SAMPLES)
        self._crowded: list[tuple[float, int]] = []
        self._trying = (
            0  # a depth on trial; requests at it are sent one at a time, since each may wait in vain
        )
        self._since_probe = 0
        self._wait = 1
        self._since_alone = self._alone_count = 0
        self._limit_after = 0  # one request is to be sent alone, then this is the limit again
        self._alone_wanted = False  # the same, with a limit of one: not even a full batch beside it

    @property
    def partial_limit(self) -> int:
        """Limit of requests in flight for one that carries less than a full batch.

        It is 1 on a short way, where records soon go with the next request.
        """
        if self._alone and min(self._alone) < SHORT_NS:
            return 1
        return min(max(self.limit - 1, 2) if self._tested else 2, self.limit)

    @property
    def full_limit(self) -> int:
        """Limit of requests in flight for a request of full batches; see `partial_limit`.

        Even a broker that serves one at a time gets a second one of those. Nothing could join them
        any more, so they lose nothing by waiting there; and between two requests such a broker
        would idle for a round trip, which it cannot make up for when it is near its limit
        (KIP-794's second series: 90 % of what it can take).
        """
        return self.limit if self._alone_wanted else max(self.limit, min(2, self.most))

    def sent(self, depth: int) -> None:
        """Note that a request was sent; `depth` requests are in flight now, it included."""
        if depth == self._trying:
            self.limit = depth - 1

    def answered(self, latency_ns: int, depth: int, size_bytes: int, *, pressed: bool) -> None:
        """Adapt the limits to an answer, `latency_ns` after its request of `size_bytes` was sent.

        `depth`: requests in flight when it was sent, itself included. `pressed`: since the last
        answer something more could have been sent, had `limit` allowed it.
        """
        if not self._adaptive:
            return
        may_count = pressed and not self._trying and self.limit < self.most
        if depth == 1:
            self._answered_alone(latency_ns)
        elif self._alone and (depth == self._trying if self._trying else depth <= self.limit):
            delay_ns = DELAY_NS + DELAY_NS_PER_BYTE * size_bytes
            useful = depth * (min(self._alone) + delay_ns) / max(latency_ns, 1)
            self._since_alone += 1
            if latency_ns < 2 * depth * delay_ns:
                # Served in so short a time that a second one costs little, and keeps the broker
                # from idling.
                useful, self._since_alone = max(useful, 2.0), 0
            share = useful / depth
            self._crowded.append((share, depth))
            if self._trying:
                self.limit = self._trying
            # A try that was in vain is over with the first request that says so.
            if len(self._crowded) >= CROWDED_SAMPLES or (self._trying and _places(useful) < depth):
                self._set_limit()
        if self._alone_count < ALONE_SAMPLES and self._since_alone >= ALONE_WAIT and self.limit > 1:
            self._since_alone = 0
            self._crowded.clear()
            self.limit, self._limit_after, self._alone_wanted = 1, self.limit, True
        if may_count and self.limit < self.most:
            self._since_probe += 1
            if self._since_probe >= PROBE_ANSWERS * self._wait:
                self.limit += 1
                self._trying, self._since_probe = self.limit, 0
                self._crowded.clear()

    def check(self) -> None:
        """Raise CheckFailed unless the limits are within their bounds."""
        holds(
            f"a window of {self.limit} of {self.most}",
            1 <= self.limit <= self.most and 0 <= self._limit_after <= self.most,
        )
        holds(
            f"requests allowed: {self.partial_limit}, {self.full_limit}",
            1 <= self.partial_limit <= self.full_limit <= self.most,
        )
        holds(f"depth {self._trying} is tried of {self.most}", 0 <= self._trying <= self.most)

    def reset(self) -> None:
        """Start from scratch: the connection was lost, and nothing is known of the next one."""
        self.limit, self._tested = self.most, not self._adaptive
        self._alone.clear()
        self._crowded.clear()
        self._trying, self._since_probe, self._wait, self._limit_after = 0, 0, 1, 0
        self._since_alone = self._alone_count = 0
        self._alone_wanted = False

    def _answered_alone(self, latency_ns: int) -> None:
        if self._alone and 2 * latency_ns < min(self._alone):
            self._wait, self._since_probe = 1, 0  # much quicker than it was: what was learnt is out of date
        elif self._alone and latency_ns > LONGER * max(max(self._alone), DELAY_NS):
            self._alone.clear()
            self._wait, self._since_probe = 1, PROBE_ANSWERS
        self._alone.append(latency_ns)
        self._alone_count, self._since_alone = self._alone_count + 1, 0
        self._alone_wanted = False
        self.limit, self._limit_after = max(self.limit, self._limit_after), 0

    def _set_limit(self) -> None:
        self._crowded.sort()
        share, depth = self._crowded[0 if self._trying else len(self._crowded) // 2]
        self._crowded.clear()
        self._tested = True
        if _places(depth * share) < depth:
            self.limit = max(_places(depth * share), 1)
            if self._trying:
                self._wait = min(2 * self._wait, PROBE_WAIT_MOST)
                if self.limit > 1:
                    # With more to send all the time no request is ever alone: what one took may be
                    # out of date.
                    self._alone.clear()
                    self.limit, self._limit_after = 1, self.limit
            self._alone_wanted = self.limit == 1
            self._since_probe = 0
        elif self._trying:
            self._wait, self._since_probe = 1, PROBE_ANSWERS
            self.limit = min(2 * self.limit, self.most)
        self._trying = 0


def _places(useful: float) -> int:
    """The requests that a broker should be allowed, given that `useful` of them shortened the wait:
    rounded, because requests sent in one go wait for each other.

    Below 1.75 it is 1, though: a broker that serves one request at a time, and is sent a second one
    at any moment of the first one's service, takes one and a half times as long for it on average,
    which gives a `useful` of 1.6.
    """
    return 1 if useful < 1.75 else round(useful)
