"""KIP-794's test as a queueing model in virtual time: the policy `late` and windows of requests,
without sockets, bytes or batches."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from fairlead_kafka.partitioning import BrokerView, LatePolicy
from fairlead_kafka.producer.window import Window

RECORD_BYTES, BATCH_BYTES = 519, 16_384
BATCH_RECORDS = BATCH_BYTES // RECORD_BYTES
ONE_WAY_S = 0.0001


@dataclass
class Result:
    """What came of it."""

    records_per_s: float
    avg_ms: float
    p99_ms: float
    shares: list[float]
    """Of the bytes, by broker."""
    most_apart_bytes: int
    limits: list[int]


def run(
    rate_per_s: float,
    service_s: Sequence[float],
    *,
    serial: bool = True,
    skew_bytes: int | None = None,
    records: int = 60_000,
    adaptive: bool = True,
) -> Result:
    """Records of 512 B at a pace, one partition on each broker, linger 0, a request carries one
    batch.

    `serial`: a broker serves one request after another, each in its `service_s`; otherwise all at
    once, equally late.
    """
    count = len(service_s)
    brokers = range(count)
    policy = LatePolicy(batch_size_bytes=BATCH_BYTES, skew_bytes=skew_bytes, rng=Random(1))
    policy.arrange({broker: [broker] for broker in brokers}, count)
    windows = [Window(5, adaptive=adaptive) for _ in brokers]
    waiting: deque[float] = deque()
    flight, free_s, pressed = [0] * count, [0.0] * count, [False] * count
    # When, broker, depth, since, and when its records were sent.
    answers: list[tuple[float, int, int, float, list[float]]] = []
    took: list[float] = []
    most_apart, submitted, now = 0, 0, 0.0
    # How long an answer took, as far as is known, and when requests without an answer were sent.
    took_s, sent_s = [0.0] * count, [deque[float]() for _ in brokers]

    def drain() -> None:
        nonlocal most_apart
        while waiting:
            full = len(waiting) >= BATCH_RECORDS
            places = [window.limit if full else window.partial_limit for window in windows]
            ready = [each for each in brokers if flight[each] < places[each]]
            for each in brokers:
                pressed[each] = pressed[each] or each not in ready
            policy.observe((submitted - 1) * RECORD_BYTES, int(now * 1e9))
            waits_ns = [_wait_ns(sent_s[each], took_s[each], windows[each], now) for each in brokers]
            views = {each: BrokerView(waits_ns[each], 2 * BATCH_BYTES, each in ready) for each in brokers}
            found_bytes, quotas = policy.quotas(RECORD_BYTES * len(waiting), views, 1.0, int(now * 1e9))
            if not quotas:
                return
            broker = quotas[0].broker
            sent = [waiting.popleft() for _ in range(min(found_bytes // RECORD_BYTES or 1, BATCH_RECORDS))]
            policy.placed(broker, RECORD_BYTES * len(sent))
            policy.counter.check()
            took_s[broker] = took_s[broker] or service_s[broker] + 2 * ONE_WAY_S
            sent_s[broker].append(now)
            placed = policy.counter.placed_bytes
            most_apart = max(most_apart, max(placed) - min(placed))
            flight[broker] += 1
            windows[broker].sent(flight[broker])
            start = max(now + ONE_WAY_S, free_s[broker] if serial else 0)
            free_s[broker] = start + service_s[broker]
            heapq.heappush(answers, (free_s[broker] + ONE_WAY_S, broker, flight[broker], now, sent))

    while submitted < records or answers:
        next_record = submitted / rate_per_s if submitted < records else float("inf")
        if answers and answers[0][0] < next_record:
            now, broker, depth, since, sent = heapq.heappop(answers)
            flight[broker] -= 1
            sent_s[broker].popleft()
            took += [now - at for at in sent]
            windows[broker].answered(
                int((now - since) * 1e9), depth, RECORD_BYTES * len(sent), pressed=pressed[broker]
            )
            windows[broker].check()
            pressed[broker] = False
        else:
            now = next_record
            waiting.append(now)
            submitted += 1
        drain()
    return _result(records / now, sorted(took), policy.counter.placed_bytes, most_apart, windows)


def _result(
    rate_per_s: float, took: list[float], placed: list[int], most_apart: int, windows: list[Window]
) -> Result:
    shares = [size / sum(placed) for size in placed]
    average_ms, p99_ms = 1e3 * sum(took) / len(took), 1e3 * took[int(0.99 * len(took))]
    return Result(rate_per_s, average_ms, p99_ms, shares, most_apart, [window.limit for window in windows])


def _wait_ns(sent_s: deque[float], took_s: float, window: Window, now_s: float) -> int:
    """Until a broker has room that was sent requests at these times, as `Nodes` expects it."""
    before = len(sent_s) - window.partial_limit
    return 0 if before < 0 else max(int((sent_s[before] + took_s - now_s) * 1e9), 0)
