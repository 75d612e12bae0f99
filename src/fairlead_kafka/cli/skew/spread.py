"""Three figures of how evenly records or bytes are spread over partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np


class SpreadFigures(TypedDict):
    """The figures of a `Spread`, as columns of a row."""

    max_over_mean: float
    min_over_mean: float
    variation: float


class Spread(NamedTuple):
    """Figures of n parts; with nothing in any of them, or no parts, all are as for equal parts."""

    max_over_mean: float
    """The largest part by the mean: how much sooner its partition is full, and its reader behind.
    1.0: all equal."""
    min_over_mean: float
    variation: float
    """Standard deviation by the mean. 0.0: all equal."""

    @classmethod
    def of(cls, parts: Sequence[int]) -> Spread:
        """The spread of parts, given by their sizes."""
        mean = float(np.mean(parts)) if len(parts) else 0.0
        if not mean:
            return cls(1.0, 1.0, 0.0)
        return cls(max(parts) / mean, min(parts) / mean, float(np.std(parts)) / mean)

    def figures(self) -> SpreadFigures:
        """The figures as columns of a row."""
        return {
            "max_over_mean": round(self.max_over_mean, 4),
            "min_over_mean": round(self.min_over_mean, 4),
            "variation": round(self.variation, 4),
        }
