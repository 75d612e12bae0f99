"""Back-off: doubling, bounds and jitter."""

from __future__ import annotations

import pytest

from fairlead_kafka.core.backoff import Backoff, exponential_ms, jittered_ms


class Fixed:
    """Rng that always show the same."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value

    def randrange(self, stop: int, /) -> int:
        return 0


@pytest.mark.parametrize(
    ("first", "limit", "failures", "wait"),
    [
        (100, 1000, 0, 100),
        (100, 1000, 1, 200),
        (100, 1000, 3, 800),
        (100, 1000, 4, 1000),
        (100, 1000, 10**9, 1000),
        (0, 1000, 5, 0),
        (50, 0, 3, 0),
        (2000, 1000, 0, 1000),
        (2000, 1000, 7, 1000),
        (1, 2**63, 62, 2**62),
    ],
)
def test_waits_double_up_to_their_limit(first: float, limit: float, failures: int, wait: float) -> None:
    assert exponential_ms(first, limit, failures) == wait


def test_fewer_than_no_failures_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        exponential_ms(100, 1000, -1)


@pytest.mark.parametrize(("shown", "factor"), [(0.0, 0.8), (0.5, 1.0), (0.999_999, 1.2)])
def test_jitter_is_a_fifth_either_way(shown: float, factor: float) -> None:
    assert jittered_ms(100, Fixed(shown)) == pytest.approx(100 * factor, rel=1e-5)


def test_jitter_never_exceeds_the_limit() -> None:
    assert Backoff(100, 1000).wait_ms(20, Fixed(0.999)) == 1000
    assert Backoff(100, 1000).wait_ms(20, Fixed(0.0)) == 800
    assert Backoff(100, 1000).wait_ns(0, Fixed(0.5)) == 100_000_000
