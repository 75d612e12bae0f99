"""`simulate`: runs seeds of a world and its canaries on several processes, and reports."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.simulation import world_cluster, world_producer, world_readers, world_transactions
from fairlead_kafka.simulation.canaries import canaries_of
from fairlead_kafka.simulation.canary import Canary
from fairlead_kafka.simulation.outcome import RAISED, Outcome, RunSeed

WORLDS: dict[str, RunSeed] = {
    world_producer.ProducerWorld.name: world_producer.run_seed,
    world_cluster.ClusterWorld.name: world_cluster.run_seed,
    world_readers.ReadersWorld.name: world_readers.run_seed,
    world_transactions.NAME: world_transactions.run_seed,
}
"""Every world by name."""
CANARY_SEEDS = 60
"""A planted bug has to be noticed within this many seeds."""
SEEDS_AT_ONCE = 8
"""Seeds that one process of the pool runs in one go."""
PLANTING_ERRORS = tuple(f"{RAISED} {kind.__name__}" for kind in (TypeError, AttributeError))
"""Prefixes of errors that a planted method raises if the original's signature has changed."""
FAILURES_MAX = 20
"""Violated seeds that are reported in full."""

Progress = Callable[[str], object]
X = TypeVar("X")
Y = TypeVar("Y")


def simulate(
    world: str,
    seeds: int,
    first_seed: int = 0,
    *,
    jobs: int = 1,
    canaries: bool = True,
    progress: Progress = lambda text: None,
) -> JsonObject:
    """Run `seeds` seeds of a world from `first_seed` on, then plant its canaries one by one.
    Returns the report.

    `{"world", "seeds", "steps", "faults", "violations", "canaries_caught", "canaries", "seconds"}`,
    all numbers but the first: violations counts seeds with one or more. Also `"records"`,
    `"acknowledged"`; `"failures"`: the stories of violated seeds, as text; and `"missed"`: the
    names of canaries that no seed noticed. `jobs`: processes to use. ConfigError for an unknown
    world.
    """
    if world not in WORLDS:
        raise ConfigError(f"world {world!r}: must be one of {', '.join(WORLDS)}")
    began = time.monotonic()
    planted = canaries_of(world) if canaries else []
    outcomes: list[Outcome] = []
    caught: dict[str, int | None] = {}
    stop = first_seed + seeds
    groups = [
        (world, range(start, min(start + SEEDS_AT_ONCE, stop)))
        for start in range(first_seed, stop, SEEDS_AT_ONCE)
    ]
    for some in _spread(_run_group, groups, jobs):
        outcomes += some
        violated = sum(bool(outcome.violations) for outcome in outcomes)
        progress(f"world {world}: {len(outcomes)} of {seeds} seeds, {violated} violated")
    for name, seed in _spread(_run_canary, [(canary.name, world) for canary in planted], jobs):
        caught[name] = seed
        progress(f"world {world}: {len(caught)} of {len(planted)} planted bugs tried")
    violated_outcomes = [outcome for outcome in outcomes if outcome.violations]
    return {
        "world": world,
        "seeds": len(outcomes),
        "first_seed": first_seed,
        "steps": sum(outcome.steps for outcome in outcomes),
        "faults": sum(outcome.faults for outcome in outcomes),
        "records": sum(outcome.records for outcome in outcomes),
        "acknowledged": sum(outcome.acknowledged for outcome in outcomes),
        "violations": len(violated_outcomes),
        "canaries_caught": sum(seed is not None for seed in caught.values()),
        "canaries": len(planted),
        "seconds": round(time.monotonic() - began, 2),
        "missed": [name for name, seed in caught.items() if seed is None],
        "failures": [str(outcome) for outcome in violated_outcomes[:FAILURES_MAX]],
    }


def catch(canary: Canary, seeds: Iterable[int] | None = None) -> int | None:
    """The first seed in which a planted bug is noticed; None: in none of `seeds` (default:
    CANARY_SEEDS from `Canary.first_seed` on).

    A machine that raises counts, but not with an error that would be the planting's own
    (`PLANTING_ERRORS`).
    """
    run = WORLDS[canary.world]
    seeds = range(canary.first_seed, canary.first_seed + CANARY_SEEDS) if seeds is None else seeds
    with canary.planted(), _quiet():
        return next((seed for seed in seeds if _noticed(run(seed))), None)


def _noticed(outcome: Outcome) -> bool:
    return bool(outcome.violations) and not any(
        violation.startswith(PLANTING_ERRORS) for violation in outcome.violations
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence logging: machines that raise are violations, with their tracebacks."""
    logger = logging.getLogger("fairlead_kafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _run_group(group: tuple[str, range]) -> list[Outcome]:
    world, seeds = group
    with _quiet():
        return [WORLDS[world](seed) for seed in seeds]


def _run_canary(planted: tuple[str, str]) -> tuple[str, int | None]:
    name, world = planted
    (canary,) = [each for each in canaries_of(world) if each.name == name]
    return name, catch(canary)


def _spread(function: Callable[[X], Y], items: Sequence[X], jobs: int) -> Iterable[Y]:
    """`map(function, items)`, on `jobs` processes, in order."""
    if jobs <= 1 or len(items) <= 1:
        yield from map(function, items)
        return
    # Not forked: the parent may have threads, and planted bugs must not leak from it.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(function, items)
