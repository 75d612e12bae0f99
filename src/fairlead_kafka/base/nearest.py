"""Suggestions for mistyped names: the known name that was most likely meant."""

from __future__ import annotations

from collections.abc import Iterable

CUTOFF = 0.6
"""Names less similar than this ratio of `difflib`, 0 to 1, are not near."""


def nearest(name: str, known: Iterable[str], cutoff: float = CUTOFF) -> str | None:
    """The one of the known names that is nearest to `name`, upper and lower case alike; None if no
    name is as similar as `cutoff` (0 to 1)."""
    import difflib  # a program that makes no mistake does not need it

    by_lower = {one.lower(): one for one in sorted(known)}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=cutoff)
    return by_lower[near[0]] if near else None
