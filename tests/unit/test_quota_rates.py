"""Rates and buckets against the arithmetic of Kafka's `Rate`, `SampledStat`, `TokenBucket` and
`QuotaUtils`, at their edges."""

from __future__ import annotations

import sys
from math import inf

import pytest

from fairlead_kafka.base.config import INT_MAX
from fairlead_kafka.broker.quota_rates import Rate, TokenBucket, rounded_ms, throttle_ms

SAMPLES, WINDOW_MS = 11, 1_000


def rate() -> Rate:
    return Rate(SAMPLES, WINDOW_MS)


def test_the_first_moments_are_measured_over_all_windows_but_one() -> None:
    measured = rate()
    measured.record(1_000, 5_000)
    assert measured.elapsed_ms(5_000) == 10_000
    assert measured.per_second(5_000) == 100
    assert measured.elapsed_ms(5_400) == 10_400, "the window that is not over counts by what has passed of it"


@pytest.mark.parametrize(
    ("passed_ms", "elapsed_ms"),
    [(999, 10_999), (1_000, 10_000), (9_999, 10_999), (10_000, 10_000), (10_999, 10_999)],
)
def test_whole_windows_count_in_the_place_of_those_that_are_missing(passed_ms: int, elapsed_ms: int) -> None:
    measured = rate()
    measured.record(1, 0)
    assert measured.elapsed_ms(passed_ms) == elapsed_ms


def test_a_window_begins_with_what_is_recorded_first_in_it() -> None:
    measured = Rate(2, WINDOW_MS)
    measured.record(10, 0)
    measured.record(10, 999)
    measured.record(10, 1_500)
    measured.record(10, 2_499)
    assert measured.per_second(2_499) == pytest.approx(40 / 2.499), "the second one lasts from 1500 to 2500"


def test_what_ended_long_ago_is_forgotten_and_a_window_that_overlaps_counts_whole() -> None:
    measured = Rate(2, WINDOW_MS)
    measured.record(10, 0)
    measured.record(10, 900)
    assert measured.per_second(2_899) == pytest.approx(20 / 2.899), (
        "something came in it within the last two windows"
    )
    assert measured.per_second(2_900) == 0
    assert measured.elapsed_ms(2_900) == 1_000


def test_no_more_samples_are_kept_than_windows_and_one() -> None:
    measured = rate()
    for second in range(100):
        measured.record(50, second * 1_000)
    assert len(measured._samples) == SAMPLES + 1
    assert measured.per_second(99_999) == pytest.approx(50, rel=0.1)


def test_what_is_taken_back_was_never_there() -> None:
    measured = rate()
    measured.record(100, 0)
    before = measured.per_second(10)
    measured.record(5_000, 10)
    measured.record(-5_000, 10)
    assert measured.per_second(10) == before


def test_one_window_measures_from_its_own_beginning_and_never_over_nothing() -> None:
    measured = Rate(1, WINDOW_MS)
    measured.record(5, 0)
    assert measured.elapsed_ms(0) == 1
    assert measured.per_second(500) == 10


def test_nothing_recorded_is_no_rate() -> None:
    assert rate().per_second(7) == 0
    assert rate().throttle_ms(1, 7) == 0


def test_the_wait_is_what_brings_the_rate_down_to_the_limit() -> None:
    measured = rate()
    measured.record(3_000, 0)  # 300 a second over ten
    assert measured.throttle_ms(300, 0) == 0, "what is granted may be used"
    assert measured.throttle_ms(100, 0) == 20_000
    assert 3_000 / ((10_000 + 20_000) / 1_000) == 100
    assert throttle_ms(110, 100, 5) == 1, "halves upward, as Java's Math.round"
    assert throttle_ms(109, 100, 5) == 0


def test_a_wait_fits_an_int32() -> None:
    assert throttle_ms(1e30, 1e-9, 10_000) == INT_MAX
    assert rounded_ms(-0.5) == 0
    assert rounded_ms(-0.51) == -1


def test_a_bucket_is_full_at_first_and_holds_so_many_windows() -> None:
    bucket = TokenBucket(10, 1_000)
    assert bucket.tokens(5, 123) == 50
    bucket.spend(60, 5, 123)
    assert bucket.tokens(5, 123) == -10
    assert bucket.throttle_ms(5, 123) == 2_000
    assert bucket.throttle_ms(5, 1_123) == 1_000
    assert bucket.throttle_ms(5, 2_123) == 0
    assert bucket.tokens(5, 2_123) == 0, "0 is not below 0: the next one may spend"
    assert bucket.tokens(5, 100_000) == 50


def test_a_burst_is_paid_off_in_the_time_that_kip_599_gives() -> None:
    """Quota 5, burst 500, 560 spent at once: 12 s (the example in Kafka's `TokenBucket`)."""
    bucket = TokenBucket(100, 1_000)
    bucket.spend(560, 5, 0)
    assert bucket.throttle_ms(5, 0) == 12_000


def test_a_lower_limit_takes_effect_on_what_was_saved() -> None:
    bucket = TokenBucket(10, 1_000)
    assert bucket.tokens(100, 0) == 1_000
    assert bucket.tokens(1, 0) == 10
    bucket.spend(-50, 1, 0)
    assert bucket.tokens(1, 0) == 10, "what is given back never passes the most"


def test_a_quota_of_the_largest_number_there_is_is_none() -> None:
    bucket = TokenBucket(11, 1_000)
    bucket.spend(1_000, sys.float_info.max, 0)
    assert bucket.throttle_ms(sys.float_info.max, 0) == 0
    assert rounded_ms(-inf) == -INT_MAX
